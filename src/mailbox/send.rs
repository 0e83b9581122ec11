//! The operations of senders, and of the line in which they wait for room.
//!
//! A message is in one place at a time: with its sender, in the line, or in the queue. An operation
//! that refuses a message leaves it where it was. Blocks are allocated and wakers woken outside the
//! lock.

use std::task::{Context, Poll};

use super::contents::{Contents, Mailbox};
use super::extras::{Bound, MailboxExtras};
use super::line::{PlaceInLine, SenderState};
use super::queue::Spare;
use super::state::{Flags, Wake};
use super::traced::note_sender;
use crate::error::{SendError, TellError};
use crate::sync::mutant;
use crate::waker::KeptWaker;

/// The result of an attempt to put a message into the queue.
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
    Settled(Option<KeptWaker>),
}

impl<M> Mailbox<M> {
    /// Appends the message if there is room now.
    pub(crate) fn tell(&self, message: M) -> Result<Wake, TellError<M>> {
        let mut message = Some(message);
        match self.accept(&mut message, |_| Accept::Full, |_, _| ()) {
            Accept::Done(wake) => Ok(wake),
            Accept::Closed => Err(TellError::Closed(
                message.expect("a refused message is kept"),
            )),
            _ => Err(TellError::Full(message.expect("a refused message is kept"))),
        }
    }

    /// Appends the message, or waits in line until there is room.
    ///
    /// While the sender waits, `place` is its entry in the line and contains the message. `from` is
    /// the actor that sends, if the mailbox is traced.
    pub(crate) fn poll_send(
        &self,
        message: &mut Option<M>,
        place: &mut Option<PlaceInLine<M>>,
        from: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Wake, SendError<M>>> {
        if place.is_some() {
            return self.poll_line(place, cx).map(|(_, left)| match left {
                None => Ok(Wake::Nobody),
                Some(message) => Err(SendError(message)),
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
            let accepted = self.accept(message, wait, |flags, contents| {
                if flags.has(Flags::TRACED) {
                    contents.note_sender(from);
                }
            });
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
                done_or_closed => {
                    // An entry that was allocated and is not needed returns the message.
                    let kept = place
                        .take()
                        .and_then(PlaceInLine::free)
                        .or_else(|| message.take());
                    return Poll::Ready(match (done_or_closed, kept) {
                        (Accept::Done(wake), _) => Ok(wake),
                        (_, Some(message)) => Err(SendError(message)),
                        (_, None) => unreachable!("a refused message is kept"),
                    });
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
    fn accept(
        &self,
        message: &mut Option<M>,
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
                if message.is_none() {
                    return Accept::Full;
                }
                if !contents.queue.push(message, &mut spare) {
                    return Accept::NeedsBlock;
                }
                if flags.has(Flags::BOUNDED)
                    && let Some(bound) = contents.bound()
                {
                    bound.len += 1;
                }
                accepted(*flags, contents);
                flags.set(Flags::FILLED);
                Accept::Done(contents.arrived(flags))
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
                Promotion::Settled(waker)
            });
            match step {
                Promotion::Enough => return,
                Promotion::NeedsBlock => spare.provide(true),
                Promotion::Settled(_) if mutant("accepted_sender_is_not_woken") => {}
                Promotion::Settled(Some(waker)) => wake_foreign(waker),
                Promotion::Settled(None) => {}
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
