//! The actor behind a mailbox: when it is scheduled, how it rests, and how it ends.
//!
//! An actor is woken by a step of its mailbox, which says so; a run begins with a look at the mailbox and ends
//! with another one. Whoever closes a mailbox gives back what waits in its line.

use super::contents::Mailbox;
use super::queue::Batch;
use super::state::{Flags, Termination, Wake};
use crate::sync::mutant;
use crate::waiters::Waiters;

/// What a run that is over leads to.
#[must_use]
pub(crate) enum RunOutcome {
    Asleep,
    /// Woken meanwhile: it is scheduled again and the caller has the runnable.
    Again,
    /// To be dropped now; the run is not over.
    Drop,
}

impl<M> Mailbox<M> {
    /// Something other than a message wakes the actor.
    pub(crate) fn wake(&self) -> Wake {
        if mutant("wake_looks_without_the_lock") && self.peek().has(Flags::ACTIVE) {
            return Wake::Nobody;
        }
        self.lock(|flags, _| flags.wake())
    }

    /// A scheduled run begins; says if it is to drop the actor instead.
    pub(crate) fn begin(&self) -> Option<Termination> {
        let news = Flags::NOTIFIED.or(Flags::KILLED).or(Flags::CANCELLED);
        if !self.peek().has(news) {
            return None;
        }
        self.lock(|flags, _| {
            flags.clear(Flags::NOTIFIED);
            flags.termination()
        })
    }

    /// A run ends; `receiving` says that `recv` found nothing and waits in this actor's own task, `woken`
    /// that the run itself has woken it.
    pub(crate) fn rest(&self, receiving: bool, woken: bool) -> RunOutcome {
        if woken && !receiving && self.termination().is_none() {
            // It stays active, and what came meanwhile is seen by the next run, or by the one after.
            return RunOutcome::Again;
        }
        self.lock(|flags, _| {
            if flags.termination().is_some() {
                return RunOutcome::Drop;
            }
            let missed = receiving && flags.has_news() && !mutant("rest_without_a_look");
            if receiving && !missed {
                // Also if it goes on: the next run need not poll that `recv` again.
                flags.set(Flags::RECEIVING);
            }
            if flags.has(Flags::NOTIFIED) || woken || missed {
                flags.clear(Flags::NOTIFIED);
                return RunOutcome::Again;
            }
            flags.clear(Flags::ACTIVE);
            RunOutcome::Asleep
        })
    }

    /// The actor is over; says whether somebody may ask for its result, and who waits for the end.
    pub(crate) fn end(&self) -> (bool, Option<&Waiters>) {
        let early = mutant("annex_looked_for_before_the_end").then(|| self.ended());
        let (is_joinable, extras) = self.lock_actor_extras(|flags| {
            flags.clear(Flags::ACTIVE.or(Flags::NOTIFIED));
            flags.set(Flags::ENDED.or(Flags::CLOSED));
            flags.has(Flags::JOINABLE)
        });
        let ended = early.unwrap_or_else(|| extras.map(|extras| &extras.ended));
        (is_joinable, ended)
    }

    /// Nobody will ask for the result; says whether it is there already, to be dropped.
    pub(crate) fn unjoin(&self) -> bool {
        self.lock(|flags, _| {
            flags.clear(Flags::JOINABLE);
            flags.has(Flags::ENDED)
        })
    }

    // -- the end of messages ------------------------------------------------------------------

    /// Refuses all that comes from now on; what was accepted stays.
    pub(crate) fn close(&self) -> Wake {
        // The close is final, and whoever closed sees to what belongs to it.
        if self.peek().has(Flags::CLOSED) {
            return Wake::Nobody;
        }
        let (wake, waited_for) = self.lock(|flags, contents| {
            if flags.has(Flags::CLOSED) {
                return (Wake::Nobody, false);
            }
            flags.set(Flags::CLOSED);
            (contents.arrived(flags), flags.has(Flags::WAITED_FOR))
        });
        if waited_for {
            self.refuse_line();
        }
        wake
    }

    /// Takes what was accepted and not taken, once it is closed.
    pub(crate) fn drain(&self) -> Batch<M> {
        // What was accepted was so before the close, so it is seen.
        if !self.peek().has(Flags::FILLED.or(Flags::RESERVED)) {
            return Batch::EMPTY;
        }
        self.lock(|flags, contents| contents.drain(flags))
    }

    /// Closes and has the actor dropped at its next suspension; takes what was accepted, if that is to be killed.
    /// What waits in line is still to be given back, what else was accepted to be drained.
    pub(crate) fn terminate(&self, termination: Termination) -> (Wake, Batch<M>) {
        self.lock(|flags, contents| {
            flags.set(Flags::CLOSED);
            let messages = match termination {
                Termination::Killed => {
                    flags.set(Flags::KILLED);
                    contents.drain(flags)
                }
                Termination::Cancelled => {
                    flags.set(Flags::CANCELLED);
                    Batch::EMPTY
                }
            };
            let wake = flags.wake();
            (contents.and_receiver(flags, wake), messages)
        })
    }
}
