//! Races of two threads over a few instructions each, on real hardware, as often as wanted.
//!
//! A model treats a `SeqCst` fence as weaker than it is, and knows no processor. Here the real
//! instructions race: an entry that a store buffer delays, or that a heavy fence misses, shows up
//! as an outcome that must not occur. An outcome that no round produced is not disproved, and a
//! processor that orders more than the source demands hides faults.
//!
//! `GREENROOM_LITMUS_ROUNDS` sets the number of rounds of each test.

use std::hint::{black_box, spin_loop};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::slot::LifoSlot;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::sync::{CachePadded, yield_now};

/// Few, so that other tests can run at the same time.
const ROUNDS: usize = 2_000;
/// Far longer than a round takes on the busiest machine. If no round ends in that time, a thread
/// waits forever.
const ROUND_MAX: Duration = Duration::from_secs(120);

/// A race of two threads, run again and again.
pub(super) trait Race: Send + Sync + 'static {
    /// Prepares a round, while neither thread runs.
    fn prepare(&self, round: usize);
    /// Runs the first thread's side.
    fn left(&self, round: usize);
    /// Runs the second thread's side.
    fn right(&self, round: usize);
    /// Checks the state again and again after `left`, until `right` has ended.
    ///
    /// # Panics
    /// If the state must not occur, or means that `right` never ends.
    fn watch(&self, _round: usize) {}
    /// Checks the outcome of a round.
    ///
    /// # Panics
    /// If the outcome must not occur.
    fn judge(&self, round: usize);
}

/// The number of the round that a thread has reached.
struct Far(CachePadded<AtomicUsize>);

impl Far {
    fn new() -> Arc<Self> {
        Arc::new(Far(CachePadded(AtomicUsize::new(0))))
    }

    fn notify(&self, round: usize) {
        // Release pairs with the Acquire in `is`.
        self.0.store(round, Ordering::Release);
    }

    fn is(&self, round: usize) -> bool {
        // Acquire pairs with the Release in `notify`.
        self.0.load(Ordering::Acquire) >= round
    }
}

/// Spins until the condition holds, and yields at every 256th check.
fn wait(is_so: impl Fn() -> bool) {
    let mut looks = 0;
    while !is_so() {
        looks += 1;
        if looks % 256 == 0 {
            yield_now();
        } else {
            spin_loop();
        }
    }
}

/// Waits for some nanoseconds, a different number each time.
fn stagger(random: &mut fastrand::Rng) {
    for turn in 0..random.u32(0..64) {
        black_box(turn);
    }
}

/// Runs the rounds.
///
/// # Panics
/// If a round does not end in [`ROUND_MAX`].
pub(super) fn race(race: impl Race) {
    let chosen = std::env::var("GREENROOM_LITMUS_ROUNDS");
    let rounds = chosen.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    let race = Arc::new(race);
    let (begun, ended) = (Far::new(), Far::new());
    let right = {
        let (race, begun, ended) = (race.clone(), begun.clone(), ended.clone());
        move || {
            let mut random = fastrand::Rng::with_seed(1);
            for round in 1..=rounds {
                wait(|| begun.is(round));
                stagger(&mut random);
                race.right(round);
                ended.notify(round);
            }
        }
    };
    let (over, outcome) = mpsc::channel::<()>();
    let left = {
        let begun = begun.clone();
        move || {
            let _over = over;
            let mut random = fastrand::Rng::with_seed(2);
            for round in 1..=rounds {
                race.prepare(round);
                begun.notify(round);
                stagger(&mut random);
                race.left(round);
                wait(|| {
                    race.watch(round);
                    ended.is(round)
                });
                race.judge(round);
            }
        }
    };
    thread::spawn(right);
    let left = thread::spawn(left);
    let mut before = 0;
    // Ends when the sender is dropped, also by a panic.
    while outcome.recv_timeout(ROUND_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
        // Relaxed: only compared.
        let round = begun.0.load(Ordering::Relaxed);
        assert!(round > before, "hung in round {round}: a wake-up was lost");
        before = round;
    }
    left.join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// A slot whose owner and another thread take the same entry.
struct Taken {
    slot: LifoSlot,
    /// The entry that each of them took.
    taken: [CachePadded<AtomicPtr<()>>; 2],
}

impl Taken {
    fn note(&self, by: usize, entry: Option<super::ring::Queued>) {
        let entry = entry.map_or(std::ptr::null_mut(), |entry| entry.as_ptr());
        // Relaxed, as are all of these: the end of the round is published with Release.
        self.taken[by].store(entry, Ordering::Relaxed);
    }
}

impl Race for Taken {
    fn prepare(&self, round: usize) {
        let entry = std::ptr::NonNull::new(std::ptr::without_provenance_mut(round << 4));
        assert!(self.slot.put(entry.expect("from 1")).is_none());
    }

    fn left(&self, _round: usize) {
        self.note(0, self.slot.take());
    }

    fn right(&self, _round: usize) {
        self.note(1, self.slot.claim());
    }

    fn judge(&self, round: usize) {
        let taken = [0, 1].map(|by| self.taken[by].load(Ordering::Relaxed).addr());
        assert!(
            taken == [round << 4, 0] || taken == [0, round << 4],
            "what was in the slot was taken once, in round {round}: {taken:x?}"
        );
    }
}

#[test]
fn litmus_slot_entry_is_taken_once() {
    race(Taken {
        slot: LifoSlot::new(),
        taken: [(); 2].map(|()| CachePadded(AtomicPtr::new(std::ptr::null_mut()))),
    });
}
