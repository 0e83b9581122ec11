//! The operations of senders that may wait for room, and of the line in which they wait.
//!
//! A message has one holder at a time: its sender, the line, or the queue. An operation that refuses a
//! message leaves it where it was. Blocks are allocated and wakers woken outside the lock.
#![expect(
    unsafe_code,
    reason = "a message is moved by its address; see `Mailbox::accept`"
)]

use std::task::{Context, Poll};

use super::contents::{Contents, Mailbox, Refused};
use super::extras::MailboxExtras;
use super::line::{LineEntry, SenderState};
use super::queue::Spare;
use super::state::{Flags, Wake};
use super::traced::note_sender;
use crate::contain::KeptWaker;
use crate::sync::mutant;
use crate::tracer::MessageSender;

// A result that has the message, or a waker, is written in parts and read as a whole.
const _: () = assert!(size_of::<Poll<Result<Wake, Refused>>>() <= size_of::<usize>());

enum Promotion {
    Enough,
    NeedsBlock,
    /// A sender was promoted, with its waker, and whether there is room for another one.
    Accepted(Option<KeptWaker>, bool),
}

/// What became of a sender that tries to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Joining {
    /// It waits in line.
    Waits,
    /// There is room, or the mailbox is closed: it tries again.
    Again,
    /// No sender waits for room.
    Refused,
}

impl<M> Mailbox<M> {
    /// Appends the message if there is room now.
    #[cfg(test)]
    pub(super) fn tell(&self, message: M) -> Result<Wake, Refused> {
        let mut message = Some(message);
        match self.send_now(&mut message, &MessageSender::NONE) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Err(Refused::Full),
        }
    }

    /// Appends the message, or waits in line until there is room. Fails if the mailbox is closed, or
    /// full and no sender waits for room. The message is then in `message`.
    ///
    /// While the sender waits, `entry` is its entry in the line and contains the message. `from` is
    /// the actor that sends, if the mailbox is traced.
    #[inline(always)]
    pub(crate) fn poll_send(
        &self,
        message: &mut Option<M>,
        entry: &mut Option<LineEntry<M>>,
        from: &MessageSender,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Wake, Refused>> {
        if entry.is_none() {
            let sent = self.send_now(message, from);
            if sent.is_ready() {
                return sent;
            }
        }
        self.poll_wait(message, entry, from, cx)
    }

    /// Appends the message. Pending if there is no room.
    #[inline(never)]
    pub(crate) fn send_now(
        &self,
        message: &mut Option<M>,
        from: &MessageSender,
    ) -> Poll<Result<Wake, Refused>> {
        let original = message.as_ref().expect("a sender has a message");
        let note = |flags: Flags, contents: &mut Contents<M>| {
            if flags.has(Flags::TRACED) {
                contents.note_sender(from);
            }
        };
        // SAFETY: an accepted message is forgotten in the next line.
        match unsafe { self.accept(original, note) } {
            Ok(wake) => {
                std::mem::forget(message.take());
                Poll::Ready(Ok(wake))
            }
            Err(Refused::Full) => Poll::Pending,
            Err(Refused::Closed) => Poll::Ready(Err(Refused::Closed)),
        }
    }

    /// Waits in line with a message for which there was no room.
    #[inline(never)]
    pub(crate) fn poll_wait(
        &self,
        message: &mut Option<M>,
        entry: &mut Option<LineEntry<M>>,
        from: &MessageSender,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Wake, Refused>> {
        if entry.is_some() {
            return self
                .poll_line::<false>(entry, message, cx)
                .map(|_| match message {
                    None => Ok(Wake::Nobody),
                    Some(_) => Err(Refused::Closed),
                });
        }
        loop {
            // The entry is allocated outside the lock; meanwhile room may be freed.
            let new = LineEntry::new(message, from.clone(), KeptWaker::new(cx.waker()));
            let joining = self.join::<false>(&new);
            if joining == Joining::Waits {
                *entry = Some(new);
                return Poll::Pending;
            }
            new.free(message);
            if joining == Joining::Refused {
                return Poll::Ready(Err(Refused::Full));
            }
            let sent = self.send_now(message, from);
            if sent.is_ready() {
                return sent;
            }
        }
    }

    /// Polls the state of a waiting sender. Once it is final, also moves the message to `left` if the
    /// mailbox did not take it.
    pub(super) fn poll_line<const URGENT: bool>(
        &self,
        entry: &mut Option<LineEntry<M>>,
        left: &mut Option<M>,
        cx: &mut Context<'_>,
    ) -> Poll<SenderState> {
        let mut waker = Some(KeptWaker::new(cx.waker()));
        let found =
            self.lock(
                |_, contents| match (contents.bound_of::<URGENT>(), entry.as_ref()) {
                    (Some(bound), Some(entry)) => bound.line.look(entry, &mut waker),
                    _ => SenderState::Refused,
                },
            );
        if found == SenderState::Waiting {
            return Poll::Pending;
        }
        if let Some(entry) = entry.take() {
            entry.free(left);
        }
        Poll::Ready(found)
    }

    /// Leaves the line. Returns the message unless the mailbox took it.
    pub(crate) fn give_up(&self, entry: LineEntry<M>) -> Option<M> {
        let mut left = None;
        self.leave::<false>(entry, &mut left);
        left
    }

    /// Leaves the line, and moves the message to `left` unless the mailbox took it.
    pub(super) fn leave<const URGENT: bool>(
        &self,
        entry: LineEntry<M>,
        left: &mut Option<M>,
    ) -> SenderState {
        let state = self.lock(|flags, contents| {
            let Some(bound) = contents.bound_of::<URGENT>() else {
                return SenderState::Refused;
            };
            let state = bound.line.leave(&entry);
            if bound.line.is_empty() {
                flags.clear(Flags::line_of::<URGENT>());
            }
            state
        });
        entry.free(left);
        state
    }

    /// Joins the line if there is no room, and the mailbox is open.
    pub(super) fn join<const URGENT: bool>(&self, entry: &LineEntry<M>) -> Joining {
        self.lock(|flags, contents| match contents.bound_of::<URGENT>() {
            Some(bound) if !bound.has_room() && !flags.has(Flags::CLOSED) => {
                if !URGENT && flags.has(Flags::OVERFLOWS) {
                    return Joining::Refused;
                }
                bound.line.join(entry);
                flags.set(Flags::line_of::<URGENT>());
                Joining::Waits
            }
            _ => Joining::Again,
        })
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
                // A sender without a message waits for a permit.
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
                let waker = bound.line.complete_first(SenderState::Accepted);
                if bound.line.is_empty() {
                    flags.clear(Flags::WAITED_FOR);
                }
                let goes_on = bound.len < bound.capacity && !bound.line.is_empty();
                Promotion::Accepted(waker, goes_on)
            });
            match step {
                Promotion::Enough => return,
                // Allocated without the lock, and tried again.
                Promotion::NeedsBlock => spare.provide(true),
                Promotion::Accepted(waker, goes_on) => {
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
        // The mailbox is closed, so no sender joins a line any more.
        let seen = self.state.peek();
        if seen.has(Flags::URGENT_LINE) {
            self.refuse_urgent_line();
        }
        if !seen.has(Flags::WAITED_FOR) {
            return;
        }
        while let Some(waker) = self.lock(|flags, contents| {
            let bound = contents.bound()?;
            flags.clear(Flags::WAITED_FOR);
            if mutant("close_forgets_the_line") {
                return None;
            }
            bound.line.complete_first(SenderState::Refused)
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
