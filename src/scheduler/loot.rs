//! What a thief has taken, and whether that was worth it.
//!
//! A task that moves to another core takes lines of memory with it, and those of whom it tells something follow. A
//! thief that has begun a few short turns and has nothing left has cost the others more than it did for them. After
//! several such loots it holds off for a while, so that what belongs together comes to rest on one core.
//!
//! # Invariants
//! - LOOT-1: a thief holds off once for each loot, and for [`HOLD_OFF_MIN`] times 2 to the power of
//!   [`DOUBLINGS_MAX`] at most.

use std::cell::Cell;
use std::time::Duration;

use crate::instant::Instant;
use crate::sync::MODEL;

/// A turn of this length is worth a task's move: a few lines go there, and a few come back.
const TURN_WORTH: Duration = Duration::from_micros(1);
/// A loot that lasts so long is worth it however short its turns are: to rouse a core takes less.
const LASTING: Duration = Duration::from_micros(30);
/// Loot of more entries is worth it: so many wait only where a worker has more than it can do.
const LITTLE: usize = 100;
/// So many futile loots in a row are chance.
const CHANCE: u32 = 2;
/// The first wait, which doubles from loot to loot: what it takes to sleep and to be roused.
const HOLD_OFF_MIN: Duration = Duration::from_micros(50);
/// How often it doubles, up to 400 µs: a task behind others of its worker's is late by ten turns of theirs at most.
const DOUBLINGS_MAX: u32 = 3;

/// What one worker has taken.
pub(super) struct Loot {
    /// When it was taken, and how many turns had been begun by then; if it was little.
    begun: Cell<Option<(Instant, u64)>>,
    /// How often in a row it was futile.
    futile: Cell<u32>,
}

impl Loot {
    pub(super) fn new() -> Self {
        Loot {
            begun: Cell::new(None),
            futile: Cell::new(0),
        }
    }

    /// Notes a loot of one and so many more, by a worker that has begun so many turns.
    pub(super) fn take(&self, more: usize, turns: u64) {
        // In a model no time passes.
        let is_little = more < LITTLE && !MODEL;
        self.begun.set(is_little.then(|| (Instant::now(), turns)));
    }

    /// The worker has nothing left, after so many turns in all: how long it is to hold off.
    pub(super) fn used_up(&self, turns: u64) -> Option<Duration> {
        let (begun, before) = self.begun.take()?;
        self.hold_off(begun.elapsed(), turns.saturating_sub(before))
    }

    /// The same for a loot that took so long and was so many turns.
    fn hold_off(&self, took: Duration, turns: u64) -> Option<Duration> {
        let worth = TURN_WORTH.as_nanos() * u128::from(turns);
        if took.as_nanos() >= worth || took >= LASTING {
            self.futile.set(0);
            return None;
        }
        let futile = (self.futile.get() + 1).min(CHANCE + 1 + DOUBLINGS_MAX);
        self.futile.set(futile);
        let doublings = futile.checked_sub(CHANCE + 1)?;
        Some(HOLD_OFF_MIN * (1 << doublings))
    }
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use super::*;

    const FUTILE: (Duration, u64) = (Duration::from_micros(5), 10);
    const WORTH: (Duration, u64) = (Duration::from_micros(50), 10);

    /// How long a thief holds off after each of these.
    fn waits(loots: &[(Duration, u64)]) -> Vec<Option<u64>> {
        let loot = Loot::new();
        let waits = loots
            .iter()
            .map(|&(took, turns)| loot.hold_off(took, turns));
        waits.map(|wait| Some(wait?.as_micros() as u64)).collect()
    }

    #[test]
    fn the_third_futile_loot_in_a_row_is_followed_by_a_wait_that_doubles_up_to_an_end() {
        let expected = [
            None,
            None,
            Some(50),
            Some(100),
            Some(200),
            Some(400),
            Some(400),
        ];
        assert_eq!(waits(&[FUTILE; 7]), expected);
        assert_eq!(waits(&[FUTILE; 1000]).last(), Some(&Some(400)));
    }

    #[test]
    fn a_loot_that_was_worth_it_ends_the_row() {
        let loots = [FUTILE, FUTILE, WORTH, FUTILE, FUTILE, FUTILE];
        assert_eq!(waits(&loots), [None, None, None, None, None, Some(50)]);
    }

    #[test]
    fn short_turns_that_go_on_are_worth_it() {
        let lasting = (LASTING, 1000);
        assert_eq!(waits(&[lasting; 10]), [None; 10]);
    }

    #[test]
    fn a_large_loot_is_never_held_against_the_thief() {
        let loot = Loot::new();
        for turns in 0..10 {
            loot.take(LITTLE, turns);
            assert_eq!(loot.used_up(turns + 1), None);
        }
    }

    #[test]
    fn nothing_taken_is_nothing_to_hold_off_for() {
        assert_eq!(Loot::new().used_up(5), None);
    }
}
