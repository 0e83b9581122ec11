//! Who waits for whom: the cycles among loopers, locks and the world.
//!
//! A wait is judged when it begins. Later grants and newcomers close no cycle: a request that goes
//! before another one waits for nothing for which the other does not wait as well.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use super::LooperTable;
use super::line::{LockHold, Rank};
use crate::error::Deadlock;
use crate::looper::cell::{LooperCell, LooperPhase, WORLD};
use crate::looper::job::{PostedJob, is_same};

/// The largest number of waits in a text.
const WAITS_MAX: usize = 16;

impl LooperTable {
    /// Returns the cycle to which the wait of this looper leads, if deadlocks are detected.
    pub(super) fn judge(&self, key: u32) -> Option<Deadlock> {
        self.cycle(key)
    }

    /// Returns the cycle to which the wait of the world leads, if deadlocks are detected.
    pub(super) fn judge_world(&self) -> Option<Deadlock> {
        self.cycle(WORLD)
    }

    /// Notes that the task of a looper awaits a result. Returns the deadlock that this closes.
    pub(in crate::looper) fn await_result(
        &mut self,
        key: u32,
        of: &Arc<PostedJob>,
    ) -> Option<Deadlock> {
        if !self.detects {
            return None;
        }
        let awaited = self.awaits.entry(key).or_default();
        if awaited.iter().any(|it| is_same(it, of)) {
            return None;
        }
        awaited.push(of.clone());
        let deadlock = self.judge(key);
        if deadlock.is_some() {
            self.end_await(key, of);
        }
        deadlock
    }

    /// Removes such a note. The caller has the job.
    pub(in crate::looper) fn end_await(&mut self, key: u32, of: &Arc<PostedJob>) {
        if let Some(awaited) = self.awaits.get_mut(&key) {
            awaited.retain(|it| !is_same(it, of));
            if awaited.is_empty() {
                self.awaits.remove(&key);
            }
        }
    }

    /// Returns whether others depend on a looper that waits for its first lock: it keeps locks, or
    /// a result of it is awaited.
    pub(super) fn is_needed(&self, looper: &LooperCell) -> bool {
        let mut awaited = self.awaits.values().flatten();
        looper.with(|state| !state.kept.is_empty())
            || awaited.any(|job| job.looper.key == looper.key)
    }

    fn cycle(&self, start: u32) -> Option<Deadlock> {
        if !self.detects {
            return None;
        }
        // For each looper that was reached, or the world: from where.
        let mut came: BTreeMap<u32, u32> = BTreeMap::new();
        let mut open = vec![start];
        while let Some(key) = open.pop() {
            for next in self.awaited(key) {
                if next == start {
                    return Some(self.name(start, key, &came));
                }
                came.entry(next).or_insert_with(|| {
                    open.push(next);
                    key
                });
            }
        }
        None
    }

    /// Returns for whom a looper waits, or the world.
    fn awaited(&self, key: u32) -> Vec<u32> {
        if key == WORLD {
            if self.is_world_task_running || self.world.is_empty() {
                return Vec::new();
            }
            let begun = self.loopers.iter().map(|(_, looper)| looper);
            let begun = begun.filter(|looper| looper.phase().has_begun());
            return begun.map(|looper| looper.key).collect();
        }
        let Some(looper) = self.loopers.get(key as usize) else {
            return Vec::new();
        };
        // A task that has begun waits for the results that it awaits.
        match looper.phase() {
            LooperPhase::Waiting { at, number } => before(looper, at, number),
            LooperPhase::Ready { .. } if self.is_world_stopped() => vec![WORLD],
            phase if phase.has_begun() => {
                let awaited = self.awaits.get(&key).into_iter().flatten();
                let awaited = awaited.filter(|job| !job.body.is_over());
                awaited.flat_map(|job| self.before_end(job)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns for what the end of a task waits. Before its begin that is also the world.
    fn before_end(&self, job: &Arc<PostedJob>) -> impl Iterator<Item = u32> + use<> {
        let looper = &job.looper;
        let has_begun = looper.with(|state| {
            let is_head = state.head.as_ref().is_some_and(|head| is_same(head, job));
            is_head && state.phase.has_begun()
        });
        let world = (!has_begun && self.is_world_stopped()).then_some(WORLD);
        let own = (!looper.is_world()).then_some(looper.key);
        own.into_iter().chain(world)
    }

    /// Returns the text of the cycle that comes back to `start` from `last`.
    fn name(&self, start: u32, last: u32, came: &BTreeMap<u32, u32>) -> Deadlock {
        let mut path = vec![start];
        let mut at = last;
        while at != start {
            path.push(at);
            at = came[&at];
        }
        path.push(start);
        path.reverse();
        let mut text = self.name_of(start);
        for (index, pair) in path.windows(2).enumerate() {
            if index == WAITS_MAX {
                // Writing to a string does not fail.
                let _ = write!(text, ", … ({} more)", path.len() - 1 - WAITS_MAX);
                break;
            }
            let which = if index == 0 { "" } else { ", which" };
            let _ = write!(text, "{which} waits for {}", self.wait(pair[0], pair[1]));
        }
        Deadlock::new(text, true)
    }

    fn name_of(&self, key: u32) -> String {
        match key {
            WORLD => "the world".to_owned(),
            key => self.at(key).to_string(),
        }
    }

    /// Returns for what the first waits, and how that depends on the second.
    fn wait(&self, from: u32, to: u32) -> String {
        if from == WORLD || to == WORLD {
            return self.name_of(to);
        }
        let (phase, head) = self
            .at(from)
            .with(|state| (state.phase, state.head.clone()));
        let LooperPhase::Waiting { at, .. } = phase else {
            return format!("a task of {}", self.name_of(to));
        };
        head.map_or_else(String::new, |job| {
            let lock = &job.wants()[at as usize].lock;
            let holds = lock.with(|state| state.is_held_by(to));
            let how = if holds { "held by" } else { "behind" };
            format!("{lock}, {how} {}", self.name_of(to))
        })
    }

    /// Returns a line for each looper that waits for a lock, and for the world.
    pub(in crate::looper) fn waits(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (_, looper) in &self.loopers {
            let (phase, head) = looper.with(|state| (state.phase, state.head.clone()));
            let (LooperPhase::Waiting { at, number }, Some(job)) = (phase, head) else {
                continue;
            };
            // One of those before it is named. Without one a guard outside of any task has the lock.
            let wait = match before(looper, at, number).first() {
                Some(&other) => self.wait(looper.key, other),
                None => format!("{}, held by a guard", job.wants()[at as usize].lock),
            };
            lines.push(format!("{looper} waits for {wait}"));
        }
        if !self.world.is_empty() && !self.is_world_task_running {
            let begun = self.awaited(WORLD);
            let whom = begun.first().map(|&key| self.name_of(key));
            let whom = whom.unwrap_or_else(|| "a guard".to_owned());
            lines.push(format!("the world waits for {whom}"));
        }
        lines
    }
}

/// Returns the holders of the lock for which a looper waits, and the loopers before it.
fn before(looper: &LooperCell, at: u32, number: u64) -> Vec<u32> {
    let Some(job) = looper.head() else {
        return Vec::new();
    };
    let Some(want) = job.wants().get(at as usize) else {
        return Vec::new();
    };
    let rank = Rank::new(job.priority, want.is_exclusive, number);
    want.lock.with(|state| {
        let mut before: Vec<_> = state.holds().filter_map(LockHold::looper).collect();
        if before.contains(&looper.key) {
            // It was granted in this change, and is about to go on.
            return Vec::new();
        }
        before.extend(state.ahead(rank));
        before
    })
}
