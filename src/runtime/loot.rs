//! What a thief has taken, and whether it was worth it.
//!
//! Each task that moves to another core takes some lines of memory with it, and those that it tells something come
//! after. If a thief runs a few short turns and has nothing left, the tasks would have been done sooner where they
//! were. So a thief that has come back at once several times waits before it takes more.
//!
//! # Invariants
//! - L1: a thief holds off for at most [`HOLD_OFF_MAX`] between two looks.

use std::cell::Cell;
use std::time::Duration;

use crate::instant::Instant;
use crate::sync::MODEL;

/// More than this is worth to be taken whatever it is.
const FEW: usize = 100;
/// A turn on another core is worth it from this length on.
const TURN: Duration = Duration::from_nanos(1_000);
/// How often in a row a thief may come back at once.
const PATIENCE: u32 = 2;
const HOLD_OFF_MIN: Duration = Duration::from_micros(50);
const HOLD_OFF_MAX: Duration = Duration::from_micros(400);

/// What one worker took last.
pub(super) struct Loot {
    /// How many turns it had begun then, if it was little.
    turns: Cell<Option<u64>>,
    at: Cell<Instant>,
    /// How often in a row it was used up at once.
    futile: Cell<u32>,
}

impl Loot {
    pub(super) fn new() -> Self {
        Loot {
            turns: Cell::new(None),
            at: Cell::new(Instant::ZERO),
            futile: Cell::new(0),
        }
    }

    /// So many were taken besides the first, when so many turns had been begun.
    pub(super) fn taken(&self, more: usize, turns: u64) {
        self.at.set(Instant::now());
        self.turns.set((more < FEW).then_some(turns));
    }

    /// It is used up after so many turns: how long to wait before more is taken.
    pub(super) fn used_up(&self, turns: u64) -> Option<Duration> {
        let Some(begun) = self.turns.take() else {
            return None;
        };
        let turns = u32::try_from(turns - begun).unwrap_or(u32::MAX);
        let was_futile = !MODEL && self.at.get().elapsed() < TURN * turns && turns < 4 * FEW as u32;
        if !was_futile {
            self.futile.set(0);
            return None;
        }
        let futile = self.futile.get().saturating_add(1);
        self.futile.set(futile);
        let doublings = futile.checked_sub(PATIENCE)?.min(10);
        Some((HOLD_OFF_MIN * (1 << doublings)).min(HOLD_OFF_MAX))
    }
}
