//! Where each live task and actor was spawned, and which warnings have named it.
//!
//! Kept only by a runtime that warns of long turns, and in simulations of debug builds. A cell does
//! not have its location, since most runtimes need none.

use std::collections::{HashMap, HashSet};
use std::panic::Location;

use super::warning::Topic;
use crate::sync::Mutex;
use crate::task::{TaskInfo, run};

/// The number of shards, which keeps contention between workers low.
const SHARDS: usize = 16;

/// Where all live tasks and actors of a runtime were spawned.
pub(super) struct SpawnLocations {
    /// By the number, and whether it is that of an actor.
    shards: [Mutex<HashMap<(u64, bool), Spawned>>; SHARDS],
    /// The locations whose plain tasks were named. A program may spawn such a task for each request.
    of_tasks: Mutex<HashSet<(&'static Location<'static>, Topic)>>,
}

/// How a task or actor was spawned.
#[derive(Clone, Copy)]
pub(super) struct Spawned {
    pub(super) location: &'static Location<'static>,
    /// The number of the actor that has spawned it, or 0.
    pub(super) by: u64,
    /// A bit for each [`Topic`] of a warning that has named the actor.
    named: u8,
}

impl SpawnLocations {
    pub(super) fn new() -> Self {
        SpawnLocations {
            shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            of_tasks: Mutex::new(HashSet::new()),
        }
    }

    fn with<R>(
        &self,
        task: &TaskInfo,
        f: impl FnOnce(&mut HashMap<(u64, bool), Spawned>, (u64, bool)) -> R,
    ) -> R {
        // The number of a plain task is an address, whose lowest bits are equal.
        let shard = (task.id() >> if task.is_actor() { 0 } else { 6 }) as usize % SHARDS;
        f(&mut self.shards[shard].lock(), (task.id(), task.is_actor()))
    }

    /// Adds a new task or actor, which may have long turns.
    #[cold]
    #[inline(never)]
    pub(super) fn enter(
        &self,
        task: &TaskInfo,
        location: &'static Location<'static>,
        has_long_turns: bool,
    ) {
        // What an actor is allowed to do is no news.
        let named = match has_long_turns {
            true => bit(Topic::LongTurn) | bit(Topic::WorkersHeld),
            false => 0,
        };
        let by = run::current_actor().map_or(0, |actor| actor.id());
        let spawned = Spawned {
            location,
            by,
            named,
        };
        self.with(task, |shard, key| shard.insert(key, spawned));
    }

    /// Removes a task or actor that has ended.
    pub(super) fn leave(&self, task: &TaskInfo) {
        self.with(task, |shard, key| shard.remove(&key));
    }

    pub(super) fn of(&self, task: &TaskInfo) -> Option<Spawned> {
        self.with(task, |shard, key| shard.get(&key).copied())
    }

    /// Returns whether no warning of this topic has named the actor, or another task of this location.
    /// `spawned` was read earlier, since the task may have ended.
    pub(super) fn is_news(&self, task: &TaskInfo, spawned: Spawned, topic: Topic) -> bool {
        if !task.is_actor() {
            return self.of_tasks.lock().insert((spawned.location, topic));
        }
        let bit = bit(topic);
        let named = self.with(task, |shard, key| {
            let spawned = shard.get_mut(&key)?;
            let named = spawned.named;
            spawned.named |= bit;
            Some(named)
        });
        named.unwrap_or(spawned.named) & bit == 0
    }
}

/// Returns the bit of a topic in [`Spawned::named`].
fn bit(topic: Topic) -> u8 {
    1 << topic as u8
}
