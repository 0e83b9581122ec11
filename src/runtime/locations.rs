//! Where each live task and actor was spawned, and which warnings have named it.
//!
//! Kept only by a runtime that warns of long turns, and in simulations of debug builds. A cell does
//! not have its place, since most runtimes need none.

use std::collections::{HashMap, HashSet};
use std::panic::Location;

use super::warning::Topic;
use crate::sync::Mutex;
use crate::task::TaskInfo;

/// The number of shards, which keeps contention between workers low.
const SHARDS: usize = 16;

pub(super) type SpawnPlace = &'static Location<'static>;

/// The places of all live tasks and actors of a runtime.
pub(super) struct Places {
    shards: [Mutex<HashMap<TaskNumber, Spawned>>; SHARDS],
    /// The places whose plain tasks were named. A program may spawn such a task for each request.
    of_tasks: Mutex<HashSet<(SpawnPlace, Topic)>>,
}

/// The number, and whether it is that of an actor.
type TaskNumber = (u64, bool);

/// How a task or actor was spawned.
#[derive(Clone, Copy)]
pub(super) struct Spawned {
    pub(super) place: SpawnPlace,
    /// A bit for each [`Topic`] of a warning that has named the actor.
    named: u8,
}

impl Places {
    pub(super) fn new() -> Self {
        Places {
            shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            of_tasks: Mutex::new(HashSet::new()),
        }
    }

    fn with<R>(
        &self,
        task: &TaskInfo,
        f: impl FnOnce(&mut HashMap<TaskNumber, Spawned>, TaskNumber) -> R,
    ) -> R {
        // The number of a plain task is an address, whose lowest bits are equal.
        let shard = (task.id() >> if task.is_actor() { 0 } else { 6 }) as usize % SHARDS;
        f(&mut self.shards[shard].lock(), (task.id(), task.is_actor()))
    }

    /// Adds a new task or actor.
    #[cold]
    #[inline(never)]
    pub(super) fn enter(&self, task: &TaskInfo, place: SpawnPlace) {
        let spawned = Spawned { place, named: 0 };
        self.with(task, |shard, key| shard.insert(key, spawned));
    }

    /// Removes a task or actor that has ended.
    pub(super) fn leave(&self, task: &TaskInfo) {
        self.with(task, |shard, key| shard.remove(&key));
    }

    pub(super) fn of(&self, task: &TaskInfo) -> Option<Spawned> {
        self.with(task, |shard, key| shard.get(&key).copied())
    }

    /// Returns whether no warning of this topic has named the actor, or another task of this place.
    /// `spawned` was read earlier, since the task may have ended.
    pub(super) fn is_news(&self, task: &TaskInfo, spawned: Spawned, topic: Topic) -> bool {
        if !task.is_actor() {
            return self.of_tasks.lock().insert((spawned.place, topic));
        }
        let bit = 1 << topic as u8;
        let named = self.with(task, |shard, key| {
            let spawned = shard.get_mut(&key)?;
            let named = spawned.named;
            spawned.named |= bit;
            Some(named)
        });
        named.unwrap_or(spawned.named) & bit == 0
    }
}
