//! The mailbox's word: one lock bit, and what everybody must know about the actor behind it.
//!
//! The flags change only while the lock bit is held, so every move below is a step of a critical
//! section and the word never shows a half-made one. Reading it without the lock gives a hint.
//!
//! ```text
//!              schedule             wake
//!   dormant ─────────────> ACTIVE ─────────> ACTIVE|NOTIFIED
//!      ^                     │ ^                │
//!      └──────── rest ───────┘ └─ begin, rest ──┘     end: ENDED, whatever it was
//! ```
//!
//! An actor is active from when it is scheduled until its run rests. A run that begins without having
//! been notified meanwhile changes nothing, so it only looks: a wake-up that it does not see, its rest
//! does.

use std::task::Waker;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{mutant, relax};

/// What is known about an actor, as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    const LOCKED: Flags = Flags(1);
    /// Its one runnable exists, or its future is being polled.
    pub(crate) const ACTIVE: Flags = Flags(1 << 1);
    /// Woken since its run was scheduled: to be looked at by that run, or to be scheduled again.
    pub(crate) const NOTIFIED: Flags = Flags(1 << 2);
    /// `recv` waits: a message wakes the actor. Not set while a handler awaits something else.
    pub(crate) const RECEIVING: Flags = Flags(1 << 3);
    /// `recv` waits in another task: a message wakes the waker that was left.
    pub(crate) const FOREIGN: Flags = Flags(1 << 4);
    /// Messages are in the mailbox's queue.
    pub(crate) const FILLED: Flags = Flags(1 << 5);
    /// Senders wait for room.
    pub(crate) const WAITED_FOR: Flags = Flags(1 << 6);
    /// Nothing is accepted any more.
    pub(crate) const CLOSED: Flags = Flags(1 << 7);
    /// To be dropped at its next suspension, by `kill`.
    pub(crate) const KILLED: Flags = Flags(1 << 8);
    /// To be dropped at its next suspension, by the end of its executor.
    pub(crate) const CANCELLED: Flags = Flags(1 << 9);
    /// The future is gone.
    pub(crate) const ENDED: Flags = Flags(1 << 10);
    /// Somebody may still ask for the result.
    pub(crate) const JOINABLE: Flags = Flags(1 << 11);
    /// No address is left: the reader closes when it finds nothing.
    pub(crate) const ABANDONED: Flags = Flags(1 << 12);
    /// Places are reserved whose messages are still to come.
    pub(crate) const RESERVED: Flags = Flags(1 << 13);
    /// Nobody will receive what is put in a reserved place.
    pub(crate) const DEAF: Flags = Flags(1 << 14);

    /// It is bounded, from the beginning on.
    pub(crate) const BOUNDED: Flags = Flags(1 << 15);
    /// A name is kept, from the beginning on.
    pub(crate) const NAMED: Flags = Flags(1 << 16);

    pub(crate) const fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn set(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    pub(crate) fn clear(&mut self, other: Flags) {
        self.0 &= !other.0;
    }

    /// Something happened that the actor must look at; says whether to schedule it.
    pub(crate) fn wake(&mut self) -> Wake {
        if self.has(Flags::ACTIVE) {
            self.set(Flags::NOTIFIED);
            Wake::Nobody
        } else if self.has(Flags::ENDED) {
            Wake::Nobody
        } else {
            self.set(Flags::ACTIVE);
            Wake::Actor
        }
    }

    /// Whether `recv` would find something: a message, or that there will be none.
    pub(crate) fn has_news(self) -> bool {
        self.has(Flags::FILLED) || self.is_at_its_end()
    }

    /// Whether nothing will come after what is in the queue: the mailbox is closed or abandoned, and nothing
    /// that was accepted is still to be made. An abandoned one may have a line, of senders by weak addresses.
    fn is_at_its_end(self) -> bool {
        let reserved = self.has(Flags::RESERVED) && !mutant("reserved_is_not_waited_for");
        let abandoned = self.has(Flags::ABANDONED) && !self.has(Flags::WAITED_FOR);
        (self.has(Flags::CLOSED) || abandoned) && !reserved
    }

    /// The reader has found no message: says whether none will come, and then closes for good.
    pub(crate) fn reach_the_end(&mut self) -> bool {
        let ended = self.is_at_its_end();
        if ended {
            self.set(Flags::CLOSED);
        }
        ended
    }

    /// Returns why the actor is to be dropped, if it is.
    pub(crate) fn termination(self) -> Option<Termination> {
        if self.has(Flags::KILLED) {
            Some(Termination::Killed)
        } else if self.has(Flags::CANCELLED) {
            Some(Termination::Cancelled)
        } else {
            None
        }
    }

    pub(crate) const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// Why an actor is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Termination {
    Killed,
    Cancelled,
}

/// What a run that is over leads to.
#[must_use]
pub(crate) enum RunOutcome {
    Asleep,
    /// Woken meanwhile: it is scheduled again and the caller has the runnable.
    Again,
    /// To be dropped now; the run is not over.
    Drop,
}

/// Whom a step has woken: to be done after the lock is given back.
#[must_use = "a wake-up that is not passed on is lost"]
pub(crate) enum Wake {
    Nobody,
    /// The actor became scheduled: put it on its executor's queue.
    Actor,
    /// `recv` waits in another task.
    Foreign(Waker),
    /// Both: the one that `recv` was last polled in is among them.
    Both(Waker),
}

/// The word itself.
pub(crate) struct MailboxState(AtomicU32);

impl MailboxState {
    pub(crate) fn new(flags: Flags) -> Self {
        MailboxState(AtomicU32::new(flags.0))
    }

    /// The flags as they were a moment ago: a hint. For [`Flags::ENDED`], which is final, Acquire
    /// pairs with the Release of `unlock`: what was done before is seen.
    pub(crate) fn peek(&self) -> Flags {
        Flags(self.0.load(Ordering::Acquire))
    }

    /// Returns why the actor is to be dropped, if it is.
    pub(crate) fn termination(&self) -> Option<Termination> {
        self.peek().termination()
    }

    // -- the actor's runs ---------------------------------------------------------------------

    /// Wakes the actor for anything but a message.
    #[inline]
    pub(crate) fn wake(&self) -> Wake {
        if mutant("wake_looks_without_the_lock") && self.peek().has(Flags::ACTIVE) {
            return Wake::Nobody;
        }
        self.with(|flags| flags.wake())
    }

    /// Begins a scheduled run; returns why it is to drop the actor instead, if it is.
    #[inline]
    pub(crate) fn begin(&self) -> Option<Termination> {
        let news = Flags::NOTIFIED.or(Flags::KILLED).or(Flags::CANCELLED);
        if !self.peek().has(news) {
            return None;
        }
        self.with(|flags| {
            flags.clear(Flags::NOTIFIED);
            flags.termination()
        })
    }

    /// Ends a run; `receiving` says that `recv` found nothing and waits in this actor's own task, `woken`
    /// that the run itself has woken it.
    #[inline]
    pub(crate) fn rest(&self, receiving: bool, woken: bool) -> RunOutcome {
        if woken && !receiving && self.termination().is_none() {
            // It stays active, and what came meanwhile is seen by the next run, or by the one after.
            return RunOutcome::Again;
        }
        self.with(|flags| {
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

    /// Gives up the right to the result; returns whether that is there already, to be dropped.
    pub(crate) fn unjoin(&self) -> bool {
        self.with(|flags| {
            flags.clear(Flags::JOINABLE);
            flags.has(Flags::ENDED)
        })
    }

    // -- the lock -----------------------------------------------------------------------------

    /// Runs a critical section that concerns the flags alone.
    #[inline]
    fn with<R>(&self, section: impl FnOnce(&mut Flags) -> R) -> R {
        let mut flags = self.lock();
        let result = section(&mut flags);
        self.unlock(flags);
        result
    }

    #[inline]
    pub(super) fn lock(&self) -> Flags {
        match self.try_lock() {
            Some(flags) => flags,
            None => self.lock_contended(),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<Flags> {
        // Relaxed: the exchange decides.
        let seen = self.0.load(Ordering::Relaxed);
        if seen & Flags::LOCKED.0 != 0 {
            return None;
        }
        let locked = seen | Flags::LOCKED.0;
        if mutant("word_taken_without_exchange") {
            self.0.store(locked, Ordering::Release);
            return Some(Flags(seen));
        }
        // Acquire pairs with the Release store of `unlock`: the section sees the last one's writes.
        // It is a read-modify-write even if nothing will change, so whoever wakes an actor that is
        // scheduled already still publishes to its run what it wrote before.
        let taken =
            self.0
                .compare_exchange_weak(seen, locked, Ordering::Acquire, Ordering::Relaxed);
        taken.ok().map(Flags)
    }

    #[cold]
    fn lock_contended(&self) -> Flags {
        let mut attempt = 0;
        loop {
            relax(&mut attempt);
            if let Some(flags) = self.try_lock() {
                return flags;
            }
        }
    }

    pub(super) fn unlock(&self, flags: Flags) {
        let order = if mutant("word_release") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the Acquire in `lock`.
        self.0.store(flags.0 & !Flags::LOCKED.0, order);
    }
}
