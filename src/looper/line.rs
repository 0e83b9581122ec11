//! The state of a lock: who holds it, and who waits in its line.
//!
//! The line is sorted by rank: the higher priority first, then exclusive before shared, then the
//! earlier request. Only a request that would be first in the line is granted at once, so no
//! request overtakes one of a higher rank.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::holders::{Hold, Holders};
use super::identity::Key;
use crate::sync::mutant;
use crate::waiters::Waiters;

#[derive(Default)]
pub(super) struct LockState {
    pub(super) holders: Holders,
    line: Option<Box<Line>>,
    /// The number of requests that found the lock free, and take it when a lane begins their task.
    claims: u32,
    pub(super) is_closed: bool,
    /// It was closed and free, so its value was given back.
    pub(super) is_over: bool,
}

/// What few locks have.
#[derive(Default)]
struct Line {
    waiting: BTreeMap<Rank, Waiter>,
    /// The number of requests that were granted while others waited. 0 if none waits.
    turns: u32,
    /// The task that closes the lock.
    closer: Option<Arc<Waiters>>,
}

/// The place of a request in the line: not the priority, whether it is shared, and its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    below: u8,
    is_shared: bool,
    number: u64,
}

impl Rank {
    pub(super) fn new(priority: u8, is_exclusive: bool, number: u64) -> Self {
        Rank {
            below: u8::MAX - priority,
            is_shared: !is_exclusive,
            number,
        }
    }
}

/// A request in the line.
#[derive(Clone, Copy)]
struct Waiter {
    looper: Key,
    is_kept: bool,
    pins: u32,
}

impl LockState {
    pub(super) fn is_free(&self) -> bool {
        self.holders.is_empty()
    }

    pub(super) fn has_line(&self) -> bool {
        let line = self.line.as_ref();
        line.is_some_and(|line| !line.waiting.is_empty())
    }

    /// Returns the list of the task that closes the lock, unless nothing uses the lock.
    pub(super) fn closer(&mut self) -> Option<Arc<Waiters>> {
        if self.is_unused() {
            return None;
        }
        let line = self.line.get_or_insert_default();
        let new = || Arc::new(Waiters::new());
        Some(line.closer.get_or_insert_with(new).clone())
    }

    /// Takes the list of the task that closes the lock, if the lock is free.
    pub(super) fn take_closer(&mut self) -> Option<Arc<Waiters>> {
        if !self.is_closed || !self.is_unused() {
            return None;
        }
        let closer = self.line.as_mut()?.closer.take();
        self.close_line();
        closer
    }

    /// Returns the loopers in the line before this rank whose request does not go together with
    /// it, up to the nearest exclusive one. That one waits for all before it.
    pub(super) fn ahead(&self, rank: Rank) -> Vec<Key> {
        let mut ahead = Vec::new();
        let line = self
            .line
            .iter()
            .flat_map(|line| line.waiting.range(..rank).rev());
        for (other, waiter) in line {
            if !(rank.is_shared && other.is_shared) {
                ahead.push(waiter.looper);
            }
            if !other.is_shared {
                break;
            }
        }
        ahead
    }

    /// Claims a lock that is free for a task that is ready. Returns whether it is.
    pub(super) fn claim(&mut self) -> bool {
        let is_idle = self.is_free() && !self.has_line() && !self.is_closed;
        self.claims += u32::from(is_idle);
        is_idle
    }

    /// Ends a claim, before the lock is taken or because it is not needed.
    pub(super) fn unclaim(&mut self) {
        self.claims -= 1;
    }

    /// Returns whether nothing has the lock, waits for it or is about to take it.
    pub(super) fn is_unused(&self) -> bool {
        self.is_free() && self.claims == 0
    }

    /// Grants the lock to a looper, or puts its request into the line. Returns whether it was
    /// granted. A request that had claimed the lock came before the others of its priority.
    pub(super) fn request(
        &mut self,
        looper: Key,
        rank: Rank,
        (is_kept, pins): (bool, u32),
        has_claimed: bool,
        aging: Option<NonZeroU32>,
    ) -> bool {
        let waiter = Waiter {
            looper,
            is_kept,
            pins,
        };
        let first = self.line.as_ref().and_then(|line| line.first());
        let passes = if has_claimed {
            first.is_none_or(|first| rank.below <= first.below)
        } else {
            let is_due = self.line.as_ref().is_some_and(|line| line.is_due(aging));
            self.claims == 0 && !is_due && first.is_none_or(|first| rank < first)
        };
        if passes && self.holders.has_room(!rank.is_shared) {
            self.hold(waiter, !rank.is_shared);
            if let Some(line) = &mut self.line {
                line.turns = line.turns.saturating_add(1);
            }
            self.close_line();
            return true;
        }
        let line = self.line.get_or_insert_default();
        line.waiting.insert(rank, waiter);
        false
    }

    /// Takes the lock for a looper that keeps it, if nothing is in the way and nothing waits.
    pub(super) fn attempt(&mut self, looper: Key, is_exclusive: bool) -> bool {
        let granted = self.would_grant(is_exclusive);
        if granted {
            let waiter = Waiter {
                looper,
                is_kept: true,
                pins: 0,
            };
            self.hold(waiter, is_exclusive);
        }
        granted
    }

    /// Returns whether nothing is in the way of a request, and nothing waits.
    pub(super) fn would_grant(&self, is_exclusive: bool) -> bool {
        !self.has_line() && self.claims == 0 && self.holders.has_room(is_exclusive)
    }

    fn hold(&mut self, waiter: Waiter, is_exclusive: bool) {
        let hold = Hold::new(waiter.looper, waiter.pins, is_exclusive, waiter.is_kept);
        self.holders.add(hold);
    }

    /// Grants the lock to the next request in the line, if it can be. Returns the looper.
    ///
    /// That is the request of the highest rank or, when it is due, the first one of the lowest
    /// priority and mode. Claims come first.
    pub(super) fn hand_on(&mut self, aging: Option<NonZeroU32>) -> Option<Key> {
        if self.claims > 0 {
            return None;
        }
        let line = self.line.as_ref()?;
        let is_due = line.is_due(aging);
        let rank = if is_due { line.lowest() } else { line.first() }?;
        if !self.holders.has_room(!rank.is_shared)
            && !mutant("a_writer_is_granted_a_lock_that_is_held")
        {
            return None;
        }
        let line = self.line.as_mut()?;
        let waiter = line.waiting.remove(&rank)?;
        line.turns = if is_due {
            0
        } else {
            line.turns.saturating_add(1)
        };
        self.close_line();
        self.hold(waiter, !rank.is_shared);
        Some(waiter.looper)
    }

    /// Removes a request from the line.
    pub(super) fn leave(&mut self, rank: Rank) {
        if let Some(line) = &mut self.line {
            line.waiting.remove(&rank);
        }
        self.close_line();
    }

    /// Frees an empty line.
    fn close_line(&mut self) {
        let Some(line) = &mut self.line else { return };
        if line.waiting.is_empty() {
            line.turns = 0;
        }
        if line.is_unused() {
            self.line = None;
        }
    }
}

impl Line {
    fn is_unused(&self) -> bool {
        self.waiting.is_empty() && self.closer.is_none()
    }

    /// Returns whether the next grant is due to the lowest rank.
    fn is_due(&self, aging: Option<NonZeroU32>) -> bool {
        let turn = self.turns.saturating_add(1);
        !self.waiting.is_empty() && aging.is_some_and(|aging| turn >= aging.get())
    }

    fn first(&self) -> Option<Rank> {
        self.waiting.first_key_value().map(|(rank, _)| *rank)
    }

    /// Returns the first rank of the lowest priority and mode.
    fn lowest(&self) -> Option<Rank> {
        let (last, _) = self.waiting.last_key_value()?;
        let from = Rank { number: 0, ..*last };
        self.waiting.range(from..).next().map(|(rank, _)| *rank)
    }
}
