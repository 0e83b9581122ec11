//! Model 15: wake-ups without a message, during a turn, several at once, and after the end.

use std::cell::Cell;
use std::rc::Rc;

use ::loom::sync::atomic::{AtomicUsize, Ordering};
use ::loom::thread::{spawn, yield_now};

use super::super::{Mailbox, RunOutcome, RunStart, Wake};
use crate::error::End;

/// An actor that reads in each turn what its wakers wrote.
struct Looker {
    mailbox: Mailbox<()>,
    scheduled: Cell<bool>,
    written: [AtomicUsize; 2],
    seen: Cell<[usize; 2]>,
}

impl Looker {
    /// Creates an actor that is dormant after its first turn.
    fn new() -> Rc<Self> {
        let looker = Rc::new(Looker {
            mailbox: Mailbox::with_capacity(None),
            scheduled: Cell::new(true),
            written: [AtomicUsize::new(0), AtomicUsize::new(0)],
            seen: Cell::new([0, 0]),
        });
        assert!(looker.run(false));
        looker
    }

    fn wake(&self) {
        if let Wake::Actor = self.mailbox.state.wake() {
            assert!(!self.scheduled.replace(true), "scheduled twice");
        }
    }

    /// Runs the actor if it has a runnable, and returns whether it did. `woken`: it wakes itself.
    fn run(&self, woken: bool) -> bool {
        let scheduled = self.scheduled.replace(false);
        if scheduled {
            assert!(
                matches!(self.mailbox.state.begin(), RunStart::Usual),
                "no thread kills the actor"
            );
            // Relaxed: only the wake-ups order these writes and reads.
            let seen = [0, 1].map(|at| self.written[at].load(Ordering::Relaxed));
            self.seen.set(seen);
            if let RunOutcome::Again = self.mailbox.state.rest(false, woken) {
                assert!(!self.scheduled.replace(true), "scheduled twice");
            }
        }
        scheduled
    }
}

/// Checks that two wake-ups may lead to one turn, but the last turn sees what was written before
/// either.
#[test]
fn model_15_writes_before_a_wake_are_seen_by_a_later_turn() {
    is_seen(false);
}

/// Checks the same if the first turn wakes itself, so that its end does not change the state word.
#[test]
fn model_15_writes_before_a_wake_are_seen_after_a_turn_that_wakes_itself() {
    is_seen(true);
}

fn is_seen(woken: bool) {
    ::loom::model(move || {
        let looker = Looker::new();
        let wakers = [0, 1].map(|at| {
            let looker = looker.clone();
            spawn(move || {
                looker.written[at].store(1, Ordering::Relaxed);
                looker.wake();
            })
        });
        for run in 0..2 {
            yield_now();
            looker.run(woken && run == 0);
        }
        // Joining would establish the order that the wake-ups have to: a turn before it must have
        // seen all.
        let seen_before = looker.seen.get();
        let rested = !looker.scheduled.get();
        for waker in wakers {
            waker.join().unwrap();
        }
        let again = looker.run(false);
        while looker.run(false) {}
        if rested && !again {
            assert_eq!(seen_before, [1, 1], "the last run has seen all");
        }
        assert_eq!(looker.seen.get(), [1, 1], "the last run has seen all");
    });
}

/// Checks that a wake-up of an ended actor schedules nothing.
#[test]
fn model_15_a_wake_of_an_ended_actor_schedules_nothing() {
    ::loom::model(|| {
        let looker = Looker::new();
        let waker = spawn({
            let looker = looker.clone();
            move || {
                looker.wake();
                looker.wake();
            }
        });
        yield_now();
        let ended = looker.scheduled.replace(false);
        if ended {
            assert!(
                matches!(looker.mailbox.state.begin(), RunStart::Usual),
                "no thread kills the actor"
            );
            looker.mailbox.end(End::Returned);
        }
        waker.join().unwrap();
        assert!(
            !(ended && looker.scheduled.get()),
            "scheduled after its end"
        );
    });
}
