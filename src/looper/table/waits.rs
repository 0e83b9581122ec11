//! Who waits for whom: the cycles among loopers, locks and the world.
//!
//! A wait is judged when it begins. Later grants and newcomers close no cycle: a request that goes
//! before another one waits for nothing for which the other does not wait as well.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Phase, Table};
use crate::error::Deadlock;
use crate::looper::holders::Hold;
use crate::looper::hub::Awaited;
use crate::looper::identity::Key;
use crate::looper::line::Rank;

/// The largest number of waits in a text.
const WAITS_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Looper(Key),
    World,
}

impl Table {
    /// Returns the cycle to which the wait of this looper leads, if deadlocks are detected.
    pub(super) fn judge(&self, key: Key) -> Option<Deadlock> {
        self.cycle(Node::Looper(key))
    }

    /// Returns the cycle to which the wait of the world leads, if deadlocks are detected.
    pub(super) fn judge_world(&self) -> Option<Deadlock> {
        self.cycle(Node::World)
    }

    /// Notes that the task of a looper awaits a result. Returns the deadlock that this closes.
    pub(in crate::looper) fn await_result(
        &mut self,
        key: Key,
        of: Box<dyn Awaited>,
    ) -> Option<Deadlock> {
        if !self.detects {
            return None;
        }
        let at = of.at();
        let awaited = self.awaits.entry(key).or_default();
        if awaited.iter().any(|it| it.at() == at) {
            return None;
        }
        awaited.push(of);
        let deadlock = self.judge(key);
        if deadlock.is_some() {
            self.end_await(key, at);
        }
        deadlock
    }

    /// Removes such a note, given the address of the job.
    pub(in crate::looper) fn end_await(&mut self, key: Key, of: *const ()) {
        if let Some(awaited) = self.awaits.get_mut(&key) {
            awaited.retain(|it| it.at() != of);
            if awaited.is_empty() {
                self.awaits.remove(&key);
            }
        }
    }

    /// Returns whether others depend on a looper that waits for its first lock: it keeps locks, or
    /// a result of it is awaited.
    pub(super) fn is_needed(&self, key: Key) -> bool {
        let mut awaited = self.awaits.values().flatten();
        self.loopers[key as usize].keeps_locks() || awaited.any(|job| job.looper() == Some(key))
    }

    fn cycle(&self, start: Node) -> Option<Deadlock> {
        if !self.detects {
            return None;
        }
        // For each node that was reached: from where.
        let mut came: BTreeMap<Node, Node> = BTreeMap::new();
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            for next in self.awaited(node) {
                if next == start {
                    return Some(self.name(start, node, &came));
                }
                came.entry(next).or_insert_with(|| {
                    open.push(next);
                    node
                });
            }
        }
        None
    }

    /// Returns what a node waits for.
    fn awaited(&self, node: Node) -> Vec<Node> {
        let Node::Looper(key) = node else {
            if self.world.is_running || self.world.tasks.is_empty() {
                return Vec::new();
            }
            let begun = self
                .loopers
                .iter()
                .filter(|(_, entry)| entry.phase.has_begun());
            return begun
                .map(|(_, entry)| Node::Looper(entry.seat.key))
                .collect();
        };
        let Some(entry) = self.loopers.get(key as usize) else {
            return Vec::new();
        };
        match entry.phase {
            Phase::Waiting { at, number } => self.before(key, at, number),
            Phase::Ready { .. } if self.is_world_stopped() => vec![Node::World],
            Phase::Running { .. } | Phase::Suspended | Phase::Resumed => {
                let awaited = self.awaits.get(&key).into_iter().flatten();
                let awaited = awaited.filter(|job| !job.is_over());
                awaited.flat_map(|job| self.before_end(&**job)).collect()
            }
            Phase::Ready { .. } | Phase::Idle => Vec::new(),
        }
    }

    /// Returns for what the end of a task waits. Before its begin that is also the world.
    fn before_end(&self, job: &dyn Awaited) -> impl Iterator<Item = Node> + use<> {
        let key = job.looper();
        let entry = key.and_then(|key| self.loopers.get(key as usize));
        let has_begun = entry.is_some_and(|entry| {
            entry.phase.has_begun() && entry.head.as_ref().is_some_and(|it| it.at() == job.at())
        });
        let world = (!has_begun && self.is_world_stopped()).then_some(Node::World);
        key.map(Node::Looper).into_iter().chain(world)
    }

    /// Returns the holders of the lock for which a looper waits, and the loopers before it.
    fn before(&self, key: Key, at: u32, number: u64) -> Vec<Node> {
        let head = self.loopers[key as usize].head.as_ref();
        let Some((job, want)) =
            head.and_then(|job| Some((job, job.wants.as_slice().get(at as usize)?)))
        else {
            return Vec::new();
        };
        let state = want.place.state();
        let rank = Rank::new(job.priority, want.mode.is_exclusive, number);
        let holders = state.holders.iter().filter_map(Hold::looper);
        if holders.clone().any(|holder| holder == key) {
            // It was granted in this change, and is about to go on.
            return Vec::new();
        }
        holders.chain(state.ahead(rank)).map(Node::Looper).collect()
    }

    /// Returns the text of the cycle that comes back to `start` from `last`.
    fn name(&self, start: Node, last: Node, came: &BTreeMap<Node, Node>) -> Deadlock {
        let mut way = vec![start];
        let mut at = last;
        while at != start {
            way.push(at);
            at = came[&at];
        }
        way.push(start);
        way.reverse();
        let mut text = self.name_of(start);
        for (index, pair) in way.windows(2).enumerate() {
            if index == WAITS_MAX {
                // Writing to a string does not fail.
                let _ = write!(text, ", … ({} more)", way.len() - 1 - WAITS_MAX);
                break;
            }
            let which = if index == 0 { "" } else { ", which" };
            let _ = write!(text, "{which} waits for {}", self.wait(pair[0], pair[1]));
        }
        Deadlock::new(text, true)
    }

    fn name_of(&self, node: Node) -> String {
        match node {
            Node::World => "the world".to_owned(),
            Node::Looper(key) => self.loopers[key as usize].seat.identity.to_string(),
        }
    }

    /// Returns for what the first waits, and how that depends on the second.
    fn wait(&self, from: Node, to: Node) -> String {
        let (Node::Looper(key), Node::Looper(other)) = (from, to) else {
            return self.name_of(to);
        };
        let entry = &self.loopers[key as usize];
        let Phase::Waiting { at, .. } = entry.phase else {
            return format!("a task of {}", self.name_of(to));
        };
        let want = entry
            .head
            .as_ref()
            .map(|job| &job.wants.as_slice()[at as usize]);
        want.map_or_else(String::new, |want| {
            let holds = want.place.state().holders.of(other).is_some();
            let how = if holds { "held by" } else { "behind" };
            format!("{}, {how} {}", want.place.identity, self.name_of(to))
        })
    }

    /// Returns a line for each looper that waits for a lock, and for the world.
    pub(in crate::looper) fn waits(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (_, entry) in &self.loopers {
            let key = entry.seat.key;
            let Phase::Waiting { at, number } = entry.phase else {
                continue;
            };
            let Some(job) = &entry.head else { continue };
            let before = self.before(key, at, number);
            let wait = match before.first() {
                Some(&other) => self.wait(Node::Looper(key), other),
                None => format!(
                    "{}, held by a guard",
                    job.wants.as_slice()[at as usize].place.identity
                ),
            };
            lines.push(format!("{} waits for {wait}", entry.seat.identity));
        }
        if !self.world.tasks.is_empty() && !self.world.is_running {
            let begun = self.awaited(Node::World);
            let whom = begun.first().map(|&node| self.name_of(node));
            let whom = whom.unwrap_or_else(|| "a guard".to_owned());
            lines.push(format!("the world waits for {whom}"));
        }
        lines
    }
}

impl Phase {
    pub(super) fn has_begun(self) -> bool {
        matches!(
            self,
            Phase::Running { .. } | Phase::Suspended | Phase::Resumed
        )
    }
}
