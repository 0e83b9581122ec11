//! The state word of a mailbox: a lock bit, and the flags of the actor that it belongs to.
//!
//! The flags change only while the lock bit is held. So each transition below is part of a critical
//! section, and a read of the word never sees half of one. A read without the lock is a hint.
//!
//! ```text
//!                wake               wake
//!   dormant ─────────────> ACTIVE ─────────> ACTIVE|NOTIFIED
//!      ^                     │ ^                │
//!      └──────── rest ───────┘ └─ begin, rest ──┘     end: ENDED, from any state
//! ```
//!
//! From dormant, the caller of `wake` schedules the actor. RECEIVING is independent of these states:
//! `rest` sets it for a waiting `recv`, and `arrived` (a message, a close) clears it and wakes.
//! Without it a message wakes no task.
//!
//! An actor is active from its scheduling until its turn ends in `rest`. If no wake-up came since
//! the scheduling, `begin` changes nothing and only reads the word. `rest` sees a wake-up that
//! `begin` missed.

use crate::error::End;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{mutant, relax};

/// The flags of a mailbox and of its actor, as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    const LOCKED: Flags = Flags(1);
    /// The actor's one runnable exists, or its future is being polled.
    pub(crate) const ACTIVE: Flags = Flags(1 << 1);
    /// The actor was woken since it was scheduled. The next turn clears this as it begins, since its
    /// poll comes after the cause. Set during a turn, it schedules the actor again.
    pub(crate) const NOTIFIED: Flags = Flags(1 << 2);
    /// `recv` waits, or a restartable actor for the end of its mailbox (`poll_end`): a message wakes
    /// the actor. Not set while it awaits anything else.
    pub(crate) const RECEIVING: Flags = Flags(1 << 3);
    /// As `RECEIVING`, but a message wakes the stored waker. That is the one of another task or, in
    /// `poll_end`, perhaps the actor's own.
    pub(crate) const FOREIGN: Flags = Flags(1 << 4);
    /// The mailbox's queue contains messages.
    pub(crate) const FILLED: Flags = Flags(1 << 5);
    /// Senders wait for room.
    pub(crate) const WAITED_FOR: Flags = Flags(1 << 6);
    /// No message is accepted any more.
    pub(crate) const CLOSED: Flags = Flags(1 << 7);
    /// The actor is to be dropped at its next suspension, because of `kill`.
    pub(crate) const KILLED: Flags = Flags(1 << 8);
    /// The actor is to be dropped at its next suspension, because its executor is shutting down.
    pub(crate) const CANCELLED: Flags = Flags(1 << 9);
    /// The actor has ended: its future was dropped.
    pub(crate) const ENDED: Flags = Flags(1 << 10);
    /// The result may still be requested.
    pub(crate) const JOINABLE: Flags = Flags(1 << 11);
    /// There is no address: the reader closes the mailbox when it finds no message.
    pub(crate) const ABANDONED: Flags = Flags(1 << 12);
    /// Permits are given and not used yet.
    pub(crate) const RESERVED: Flags = Flags(1 << 13);
    /// The queue was drained: no message for a permit will be received.
    pub(crate) const DEAF: Flags = Flags(1 << 14);

    /// The mailbox is bounded or has two queues, so it is read one message at a time; constant from
    /// its creation.
    pub(crate) const BOUNDED: Flags = Flags(1 << 15);
    /// The actor has a name; constant from its creation.
    pub(crate) const NAMED: Flags = Flags(1 << 16);
    /// Messages that are not handled go to a function; constant from its creation.
    pub(crate) const KEEPS: Flags = Flags(1 << 17);

    /// The actor is to end after the message in hand: no accepted message is received any more.
    pub(crate) const STOPPED_NOW: Flags = Flags(1 << 24);

    /// No sender waits for room, see [`Overflow`](super::Overflow); constant from its creation.
    pub(crate) const OVERFLOWS: Flags = Flags(1 << 25);

    /// The mailbox has a second queue, for urgent messages; constant from its creation.
    pub(crate) const HAS_URGENT: Flags = Flags(1 << 26);
    /// The queue of urgent messages contains some, and `FILLED` is set as well.
    pub(crate) const URGENT: Flags = Flags(1 << 27);
    /// Senders wait for room in the queue of urgent messages.
    pub(crate) const URGENT_LINE: Flags = Flags(1 << 28);

    /// A tracer of the user traces the messages; constant from the spawn of the actor.
    pub(crate) const TRACED: Flags = Flags(1 << 23);

    /// The position of the way in which the actor ends: three bits, 0 while it is not known.
    const END: u32 = 18;

    /// The first loan of the context is open: its drop gives it back.
    pub(crate) const LENT: Flags = Flags(1 << 21);
    /// Other loans of the context are open.
    pub(crate) const RELENT: Flags = Flags(1 << 22);

    /// Returns the flag for the line of one of the queues.
    pub(super) const fn line_of<const URGENT: bool>() -> Flags {
        match URGENT {
            true => Flags::URGENT_LINE,
            false => Flags::WAITED_FOR,
        }
    }

    /// Returns whether any flag of `other` is set: `has(A.or(B))` is true if one of them is.
    pub(crate) const fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn set(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    pub(crate) fn clear(&mut self, other: Flags) {
        self.0 &= !other.0;
    }

    /// Records a wake-up, and returns whether to schedule the actor.
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

    /// Wakes the reader if it waits, and returns which task to wake. There is a message or a final
    /// state for it to see.
    pub(super) fn arrived(&mut self) -> Wake {
        if !self.has(Flags::RECEIVING.or(Flags::FOREIGN)) {
            return Wake::Nobody;
        }
        let mut wake = Wake::Nobody;
        if self.has(Flags::RECEIVING) {
            self.clear(Flags::RECEIVING);
            wake = self.wake();
        }
        // A `recv` may have been polled in both tasks, of which only the later one polls it again.
        self.and_receiver(wake)
    }

    /// Extends `wake` by the other task in which `recv` waits, if there is one.
    pub(super) fn and_receiver(self, wake: Wake) -> Wake {
        match wake {
            wake if !self.has(Flags::FOREIGN) => wake,
            Wake::Actor => Wake::Both,
            _ => Wake::Foreign,
        }
    }

    /// Returns whether `recv` would find something: a message, or the end of the messages.
    pub(crate) fn has_news(self) -> bool {
        self.has(Flags::FILLED) || self.is_at_its_end()
    }

    /// Returns whether no message will follow those in the queue. That is so if the mailbox is
    /// closed or abandoned and no permit is given.
    ///
    /// The line of an abandoned mailbox may be non-empty: weak addresses can send, too.
    fn is_at_its_end(self) -> bool {
        let lines = Flags::WAITED_FOR.or(Flags::URGENT_LINE);
        let abandoned = self.has(Flags::ABANDONED) && !self.has(lines);
        (self.has(Flags::CLOSED) || abandoned) && self.is_final()
    }

    /// Returns whether no message is received by a permit that was given.
    fn is_final(self) -> bool {
        let reserved = self.has(Flags::RESERVED) && !mutant("reserved_is_not_waited_for");
        !reserved || self.has(Flags::STOPPED_NOW)
    }

    /// Returns whether the mailbox is closed, and no message of it will be received.
    pub(crate) fn is_exhausted(self) -> bool {
        let has_more = self.has(Flags::FILLED) && !self.has(Flags::STOPPED_NOW);
        self.has(Flags::CLOSED) && self.is_final() && !has_more
    }

    /// Returns whether no message will come, and if so closes the mailbox. The reader has found the
    /// queue empty.
    pub(crate) fn reach_the_end(&mut self) -> bool {
        let ended = self.is_at_its_end();
        if ended {
            self.set(Flags::CLOSED);
        }
        ended
    }

    /// Returns why the actor is to be dropped, or `None` if it is not.
    pub(crate) fn termination(self) -> Option<Termination> {
        if self.has(Flags::KILLED) {
            Some(Termination::Killed)
        } else if self.has(Flags::CANCELLED) {
            Some(Termination::Cancelled)
        } else {
            None
        }
    }

    /// Records the way in which the actor ended.
    pub(crate) fn set_end(&mut self, end: End) {
        self.set(Flags::ENDED.or(Flags::CLOSED));
        self.set_known_end(end);
    }

    /// Records the way in which the actor is about to end.
    pub(super) fn set_known_end(&mut self, end: End) {
        let number = ENDS.iter().position(|other| *other == end);
        self.0 |= number.map_or(0, |number| number as u32 + 1) << Flags::END;
    }

    /// Returns the way in which the actor ended, or `None` if it has not ended.
    pub(crate) fn end(self) -> Option<End> {
        self.known_end().filter(|_| self.has(Flags::ENDED))
    }

    /// Returns the way in which the actor ended or is about to end, if it is known.
    pub(crate) fn known_end(self) -> Option<End> {
        let number = (self.0 >> Flags::END & 7).checked_sub(1)?;
        ENDS.get(number as usize).copied()
    }

    pub(crate) const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The ways in which an actor ends, in the order of their numbers in the flags.
const ENDS: [End; 5] = [
    End::Returned,
    End::Panicked,
    End::Killed,
    End::Cancelled,
    End::NotStarted,
];

/// The reason why an actor is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Termination {
    Killed,
    Cancelled,
}

/// How a turn begins.
#[must_use]
pub(crate) enum RunStart {
    /// The actor was not terminated before.
    Usual,
    /// The actor was stopped at once: `recv` looks at the flags before each message.
    StoppedNow,
    /// The actor is to be dropped instead.
    Drop(Termination),
}

/// The result of a turn that did not complete the future.
#[must_use]
pub(crate) enum RunOutcome {
    Asleep,
    /// The actor was woken meanwhile: it is scheduled again, and the caller creates its runnable.
    Again,
    /// The actor is to be dropped now, as part of this turn.
    Drop,
}

/// The tasks that an operation has woken, for the caller to schedule after it has released the
/// lock.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use = "a wake-up that is not passed on is lost"]
pub(crate) enum Wake {
    Nobody,
    /// The actor was made active: put it on its executor's queue.
    Actor,
    /// `recv` waits in another task: call `Mailbox::wake_receiver`.
    Foreign,
    /// The actor and the other task: `recv` was last polled in one of them.
    Both,
}

/// The state word.
pub(crate) struct MailboxState(AtomicU32);

impl MailboxState {
    pub(crate) fn new(flags: Flags) -> Self {
        MailboxState(AtomicU32::new(flags.0))
    }

    /// Returns the current flags, as a hint. [`Flags::ENDED`] is final: Acquire pairs with the
    /// Release of `unlock`, so all that happened before the end is seen.
    pub(crate) fn peek(&self) -> Flags {
        Flags(self.0.load(Ordering::Acquire))
    }

    /// Returns why the actor is to be dropped, or `None` if it is not.
    pub(crate) fn termination(&self) -> Option<Termination> {
        self.peek().termination()
    }

    // -- the actor's turns --------------------------------------------------------------------

    /// Wakes the actor for any reason but a message.
    #[inline]
    pub(crate) fn wake(&self) -> Wake {
        if mutant("wake_looks_without_the_lock") && self.peek().has(Flags::ACTIVE) {
            return Wake::Nobody;
        }
        self.with(|flags| flags.wake())
    }

    /// Begins a scheduled turn.
    #[inline]
    pub(crate) fn begin(&self) -> RunStart {
        let ends = Flags::KILLED.or(Flags::CANCELLED).or(Flags::STOPPED_NOW);
        if !self.peek().has(Flags::NOTIFIED.or(ends)) {
            return RunStart::Usual;
        }
        self.with(|flags| {
            flags.clear(Flags::NOTIFIED);
            match flags.termination() {
                Some(termination) => RunStart::Drop(termination),
                None if flags.has(Flags::STOPPED_NOW) => RunStart::StoppedNow,
                None => RunStart::Usual,
            }
        })
    }

    /// Ends a turn. `receiving`: `recv` found nothing and waits in the actor's own task. `woken`:
    /// the turn has woken its own actor.
    #[inline]
    pub(crate) fn rest(&self, receiving: bool, woken: bool) -> RunOutcome {
        if woken && !receiving && self.termination().is_none() {
            // The actor stays active; the next turn, or the one after it, sees the wake-ups that
            // came meanwhile.
            return RunOutcome::Again;
        }
        self.with(|flags| {
            if flags.termination().is_some() {
                return RunOutcome::Drop;
            }
            let missed = receiving && flags.has_news() && !mutant("rest_without_a_look");
            if receiving && !missed {
                // Set even if the actor runs again: its next turn may not poll that `recv`.
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

    /// Gives up the right to the result. Returns whether the result exists already, and is to be
    /// dropped.
    pub(crate) fn unjoin(&self) -> bool {
        self.with(|flags| {
            flags.clear(Flags::JOINABLE);
            flags.has(Flags::ENDED)
        })
    }

    // -- the lock -----------------------------------------------------------------------------

    /// Runs a critical section that uses only the flags.
    #[inline]
    fn with<R>(&self, section: impl FnOnce(&mut Flags) -> R) -> R {
        let mut flags = self.lock();
        let result = section(&mut flags);
        self.unlock(flags);
        result
    }

    #[inline]
    pub(super) fn lock(&self) -> Flags {
        #[cfg(all(test, not(greenroom_loom)))]
        super::tests::sections::count();
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
        // Acquire pairs with the Release store of `unlock`: the section sees the writes of the
        // previous one. This is a read-modify-write even if no flag changes. So a thread that wakes
        // an actor which is already scheduled still publishes its earlier writes to the actor's
        // turn.
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
        // Release pairs with the Acquire in `try_lock`.
        self.0.store(flags.0 & !Flags::LOCKED.0, order);
    }
}
