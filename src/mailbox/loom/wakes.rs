//! Model 15: wake-ups that are not messages, while the actor runs, one on another, and too late.

use std::cell::Cell;
use std::rc::Rc;

use ::loom::sync::atomic::{AtomicUsize, Ordering};
use ::loom::thread::{spawn, yield_now};

use super::super::{Mailbox, RunOutcome, Wake};

/// An actor that looks at what its wakers wrote, each time it is run.
struct Looker {
    mailbox: Mailbox<()>,
    scheduled: Cell<bool>,
    written: [AtomicUsize; 2],
    seen: Cell<[usize; 2]>,
}

impl Looker {
    /// At rest after its first run.
    fn new() -> Rc<Self> {
        let looker = Rc::new(Looker {
            mailbox: Mailbox::new(None, None),
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

    /// Its runnable is run, if there is one; `woken`: that wakes itself.
    fn run(&self, woken: bool) -> bool {
        let scheduled = self.scheduled.replace(false);
        if scheduled {
            assert!(self.mailbox.state.begin().is_none(), "nobody kills it");
            // Relaxed: only the wake-ups order it.
            let seen = [0, 1].map(|at| self.written[at].load(Ordering::Relaxed));
            self.seen.set(seen);
            if let RunOutcome::Again = self.mailbox.state.rest(false, woken) {
                assert!(!self.scheduled.replace(true), "scheduled twice");
            }
        }
        scheduled
    }
}

/// Two wake-ups may become one run, but the last run has seen what was written before either.
#[test]
fn model_15_what_was_written_before_a_wake_is_seen_by_a_run_after_it() {
    is_seen(false);
}

/// Also where the first of the runs wakes itself, and so looks at nothing when it ends.
#[test]
fn model_15_what_was_written_before_a_wake_is_seen_after_a_run_that_wakes_itself() {
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
        // Joining would order what the wake-ups must: what ran before it has to have seen it.
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

/// Who wakes an actor that has ended wakes nobody.
#[test]
fn model_15_a_wake_that_comes_too_late_schedules_nothing() {
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
            assert!(looker.mailbox.state.begin().is_none(), "nobody kills it");
            looker.mailbox.end();
        }
        waker.join().unwrap();
        assert!(
            !(ended && looker.scheduled.get()),
            "scheduled after its end"
        );
    });
}
