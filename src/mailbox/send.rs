//! The operations of senders, and of the line in which they wait for room.
//!
//! A message is in one place at a time: with its sender, in the line, or in the queue. An operation
//! that refuses a message leaves it where it was. Blocks are allocated and wakers woken outside the
//! lock.
//!
//! A message is copied from the sender's place into the queue, under the lock. A copy before the lock
//! would read what was written just now, often in parts, and wait for these writes.
#![expect(unsafe_code, reason = "a message is moved by its address; see `accept`")]

use std::task::{Context, Poll};

use super::contents::{Contents, Mailbox};
use super::extras::{Bound, MailboxExtras};
use super::line::{PlaceInLine, SenderState};
use super::queue::Spare;
use super::reserve::Refused;
use super::state::{Flags, Wake};
use super::traced::note_sender;
use crate::sync::mutant;
use crate::waker::KeptWaker;

/// The result of an attempt to put a message into the queue. It fits a register: the message stays
/// where it is.
enum Accept {
    Done(Wake),
    Full,
    Waiting,
    Closed,
    NeedsBlock,
}

enum Promotion {
    Enough,
    NeedsBlock,
    /// A sender was promoted, with its waker, and whether there is room for another one.
    Settled(Option<KeptWaker>, bool),
}

impl<M> Mailbox<M> {
    /// Appends the message if there is room now.
    ///
    /// # Safety
    /// After a success the message is the mailbox's, and the caller must forget it.
    #[inline(always)]
    pub(crate) unsafe fn tell(&self, message: &M) -> Result<Wake, Refused> {
        // SAFETY: by the caller's promise.
        match unsafe { self.accept(Some(message), |_| Accept::Full, |_, _| ()) } {
            Accept::Done(wake) => Ok(wake),
            Accept::Closed => Err(Refused::Closed),
            _ => Err(Refused::Full),
        }
    }

    /// Appends the message, or waits in line until there is room. Fails only if the mailbox is
    /// closed; the message is then in `message`.
    ///
    /// While the sender waits, `place` is its entry in the line and contains the message. `from` is
    /// the actor that sends, if the mailbox is traced.
    pub(crate) fn poll_send(
        &self,
        message: &mut Option<M>,
        place: &mut Option<PlaceInLine<M>>,
        from: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Wake, Refused>> {
        if place.is_some() {
            return self.poll_line(place, cx).map(|(_, left)| {
                *message = left;
                match message {
                    None => Ok(Wake::Nobody),
                    Some(_) => Err(Refused::Closed),
                }
            });
        }
        loop {
            let wait = |bound: &mut Bound<M>| match place.as_ref() {
                Some(place) => {
                    bound.line.join(place);
                    Accept::Waiting
                }
                None => Accept::Full,
            };
            let note = |flags: Flags, contents: &mut Contents<M>| {
                if flags.has(Flags::TRACED) {
                    contents.note_sender(from);
                }
            };
            // SAFETY: an accepted message is forgotten below.
            let accepted = unsafe { self.accept(message.as_ref(), wait, note) };
            match accepted {
                Accept::Waiting => return Poll::Pending,
                // Waiting needs an entry in the line, which is allocated outside the lock;
                // meanwhile a place may be freed.
                Accept::Full => match place.take() {
                    Some(unneeded) => *message = unneeded.free(),
                    None => {
                        let waits = message
                            .take()
                            .map(|m| PlaceInLine::new(Some(m), from, KeptWaker::new(cx.waker())));
                        *place = waits;
                    }
                },
                Accept::Done(wake) => {
                    std::mem::forget(message.take());
                    return Poll::Ready(Ok(wake));
                }
                _closed => {
                    if let Some(unneeded) = place.take() {
                        *message = unneeded.free();
                    }
                    return Poll::Ready(Err(Refused::Closed));
                }
            }
        }
    }

    /// Polls the state of a waiting sender. Once it is final, also returns the message if the
    /// mailbox did not take it.
    pub(super) fn poll_line(
        &self,
        place: &mut Option<PlaceInLine<M>>,
        cx: &mut Context<'_>,
    ) -> Poll<(SenderState, Option<M>)> {
        let mut waker = Some(KeptWaker::new(cx.waker()));
        let found = self.lock(|_, contents| match (contents.bound(), place.as_ref()) {
            (Some(bound), Some(place)) => bound.line.look(place, &mut waker),
            _ => SenderState::Refused,
        });
        match found {
            SenderState::Waiting => Poll::Pending,
            settled => Poll::Ready((settled, place.take().and_then(PlaceInLine::free))),
        }
    }

    /// Leaves the line. Returns the message unless the mailbox took it.
    pub(crate) fn give_up(&self, place: PlaceInLine<M>) -> Option<M> {
        self.leave(place).1
    }

    pub(super) fn leave(&self, place: PlaceInLine<M>) -> (SenderState, Option<M>) {
        let state = self.lock(|flags, contents| {
            let Some(bound) = contents.bound() else {
                return SenderState::Refused;
            };
            let state = bound.line.leave(&place);
            if bound.line.is_empty() {
                flags.clear(Flags::WAITED_FOR);
            }
            state
        });
        (state, place.free())
    }

    /// Puts `message` into the queue, or calls `full` if there is no room. A `message` of `None` is
    /// in an entry for the line: if there is room now, returns [`Accept::Full`], and the caller
    /// takes it out again. Calls `accepted` once the message is in the queue.
    ///
    /// A block is allocated outside the lock, so the critical section may be run twice.
    ///
    /// # Safety
    /// If this returns [`Accept::Done`], the message is the mailbox's, and the caller must forget it.
    unsafe fn accept(
        &self,
        message: Option<&M>,
        full: impl Fn(&mut Bound<M>) -> Accept,
        accepted: impl Fn(Flags, &mut Contents<M>),
    ) -> Accept {
        let mut spare = Spare::NONE;
        if !self.state.peek().has(Flags::FILLED) {
            spare.provide(false);
        }
        loop {
            let done = self.lock(|flags, contents| {
                if flags.has(Flags::CLOSED) && !mutant("closed_still_accepts") {
                    return Accept::Closed;
                }
                if flags.has(Flags::BOUNDED)
                    && let Some(bound) = contents.bound()
                    && !bound.has_room()
                {
                    let accept = full(bound);
                    if !bound.line.is_empty() {
                        flags.set(Flags::WAITED_FOR);
                    }
                    return accept;
                }
                let Some(message) = message else {
                    return Accept::Full;
                };
                // SAFETY: by the caller's promise.
                if !unsafe { contents.queue.push_from(message, &mut spare) } {
                    return Accept::NeedsBlock;
                }
                if flags.has(Flags::BOUNDED)
                    && let Some(bound) = contents.bound()
                {
                    bound.len += 1;
                }
                accepted(*flags, contents);
                flags.set(Flags::FILLED);
                Accept::Done(flags.arrived())
            });
            match done {
                Accept::NeedsBlock => spare.provide(true),
                done => return done,
            }
        }
    }

    /// Takes the messages of waiting senders while there is room, and wakes those senders.
    pub(super) fn promote(&self) {
        let mut spare = Spare::NONE;
        loop {
            let step = self.lock(|flags, contents| {
                let (
                    queue,
                    Some(MailboxExtras {
                        bound: Some(bound),
                        reserved,
                        hooks,
                        ..
                    }),
                ) = contents.parts()
                else {
                    return Promotion::Enough;
                };
                if bound.len >= bound.capacity || flags.has(Flags::CLOSED) {
                    return Promotion::Enough;
                }
                match bound.line.first_message() {
                    None => return Promotion::Enough,
                    Some((None, _)) => {
                        *reserved += 1;
                        flags.set(Flags::RESERVED);
                    }
                    Some((message, from)) => {
                        if !queue.push(message, &mut spare) {
                            return Promotion::NeedsBlock;
                        }
                        if flags.has(Flags::TRACED) {
                            note_sender(hooks, from);
                        }
                        flags.set(Flags::FILLED);
                    }
                }
                bound.len += 1;
                let waker = bound.line.settle_first(SenderState::Accepted);
                if bound.line.is_empty() {
                    flags.clear(Flags::WAITED_FOR);
                }
                let goes_on = bound.len < bound.capacity && !bound.line.is_empty();
                Promotion::Settled(waker, goes_on)
            });
            match step {
                Promotion::Enough => return,
                Promotion::NeedsBlock => spare.provide(true),
                Promotion::Settled(waker, goes_on) => {
                    if !mutant("accepted_sender_is_not_woken") {
                        waker.into_iter().for_each(wake_foreign);
                    }
                    if !goes_on {
                        return;
                    }
                }
            }
        }
    }

    /// Returns the messages of all waiting senders to them. The mailbox must be closed.
    pub(crate) fn refuse_line(&self) {
        // The mailbox is closed, so no sender joins the line any more.
        if !self.state.peek().has(Flags::WAITED_FOR) {
            return;
        }
        while let Some(waker) = self.lock(|flags, contents| {
            let bound = contents.bound()?;
            flags.clear(Flags::WAITED_FOR);
            if mutant("close_forgets_the_line") {
                return None;
            }
            bound.line.settle_first(SenderState::Refused)
        }) {
            wake_foreign(waker);
        }
    }
}

/// Wakes a task other than the actor's own, and contains a panic of its waker.
#[cold]
pub(crate) fn wake_foreign(waker: KeptWaker) {
    waker.wake();
}
