//! The operations of the reader.
//!
//! The reader of an unbounded mailbox takes the whole queue in one critical section and reads it
//! without the lock. The reader of a bounded mailbox, or of one with two queues, takes one message at
//! a time and grants the freed room to the waiting senders.

use std::task::{Poll, Waker};

use super::contents::{Contents, Mailbox};
use super::queue::{Batch, TakenMessage};
use super::send::wake_foreign;
use super::state::Flags;
use crate::contain::KeptWaker;
use crate::sync::global::Ordering;
use crate::sync::mutant;

impl<M> Mailbox<M> {
    /// Takes the next message from `batch`, which the reader took before, or from the mailbox's
    /// queue. Returns `Ready(None)` if there is no message, and none will come.
    ///
    /// Pending: there is no message now, as far as a read without the lock can tell. The check under
    /// the lock is in [`MailboxState::rest`](super::state::MailboxState::rest).
    #[inline(always)]
    pub(crate) fn receive(&self, batch: &mut Batch<M>) -> Poll<Option<M>> {
        match self.receive_of_batch(batch) {
            Some(taken) => taken.map(|taken| taken.map(TakenMessage::read)),
            None => self.receive_one(),
        }
    }

    /// Does the same, but leaves the message in the batch until it is read. Returns `None` if the
    /// mailbox is bounded and has news: its messages do not come in batches.
    #[inline(always)]
    pub(crate) fn receive_of_batch(
        &self,
        batch: &mut Batch<M>,
    ) -> Option<Poll<Option<TakenMessage<M>>>> {
        if batch.is_empty() {
            let look = Flags::FILLED.or(Flags::CLOSED).or(Flags::ABANDONED);
            let seen = self.state.peek();
            if !seen.has(look) {
                return Some(Poll::Pending);
            }
            if seen.has(Flags::BOUNDED) {
                return None;
            }
            let ended = self.lock(|flags, contents| {
                // The old batch is empty, so there is nothing to drop.
                std::mem::forget(std::mem::replace(batch, contents.queue.take()));
                flags.clear(Flags::FILLED);
                batch.is_empty() && flags.reach_the_end()
            });
            if batch.is_empty() {
                return Some(match ended {
                    true => Poll::Ready(None),
                    false => Poll::Pending,
                });
            }
            // Relaxed: a number that only the reader writes, and which publishes nothing.
            if batch.may_exceed(self.highest.load(Ordering::Relaxed)) {
                self.raise_highest(batch.len());
            }
        }
        Some(Poll::Ready(batch.take_one()))
    }

    /// Notes that the reader has found so many messages in the queue.
    #[cold]
    #[inline(never)]
    fn raise_highest(&self, len: usize) {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        // Relaxed: as above.
        let highest = self.highest.load(Ordering::Relaxed).max(len);
        self.highest.store(highest, Ordering::Relaxed);
    }

    /// Takes the next message of a bounded mailbox, and grants its room to the line.
    #[inline(never)]
    fn receive_one(&self) -> Poll<Option<M>> {
        let (mut waited_for, mut emptied) = (false, None);
        let received = self.lock(|flags, contents| {
            waited_for = flags.has(Flags::WAITED_FOR.or(Flags::URGENT_LINE));
            let taken = match flags.has(Flags::HAS_URGENT) {
                true => self.take_of_two(flags, contents),
                false => self.take_of_one(flags, contents),
            };
            let Some(taken) = taken else {
                return match flags.reach_the_end() {
                    true => Poll::Ready(None),
                    false => Poll::Pending,
                };
            };
            // In this critical section: a kill frees the blocks in the next one.
            let (message, block) = taken.read_apart();
            emptied = block;
            Poll::Ready(Some(message))
        });
        drop(emptied);
        if waited_for && !mutant("room_is_not_passed_on") {
            self.promote();
            if self.has_urgent() {
                self.promote_urgent();
            }
        }
        received
    }

    /// Takes the next message of a bounded mailbox with one queue, and notes what is left.
    #[inline]
    fn take_of_one(
        &self,
        flags: &mut Flags,
        contents: &mut Contents<M>,
    ) -> Option<TakenMessage<M>> {
        let taken = contents.queue.take_one()?;
        if contents.queue.is_empty() {
            flags.clear(Flags::FILLED);
        }
        if let Some(bound) = contents.bound() {
            bound.len -= 1;
            // The bound has the permits, too, and no longer the message that was taken. Relaxed: as above.
            if bound.len >= self.highest.load(Ordering::Relaxed) as usize {
                self.raise_highest(contents.queue.len() + 1);
            }
        }
        Some(taken)
    }

    /// Takes the next message of a mailbox with two queues, and notes what is left.
    #[cold]
    #[inline(never)]
    fn take_of_two(
        &self,
        flags: &mut Flags,
        contents: &mut Contents<M>,
    ) -> Option<TakenMessage<M>> {
        // Relaxed: as above.
        if contents.may_exceed(self.highest.load(Ordering::Relaxed) as usize) {
            self.raise_highest(contents.len());
        }
        let taken = contents.take_of_two(flags)?;
        let has_urgent = flags.has(Flags::URGENT) && !mutant("urgent_letter_is_forgotten");
        if contents.queue.is_empty() && !has_urgent {
            flags.clear(Flags::FILLED);
        }
        Some(taken)
    }

    /// Stores `waker`, to be woken by the next message or by the close. Returns false if there is a
    /// message or the mailbox has reached its end.
    #[cold]
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        self.wait_unless(waker, Flags::has_news)
    }

    /// Stores `waker`, to be woken by the next message or once the mailbox is closed and empty.
    /// Returns false if there is a message or that is so.
    #[cold]
    pub(crate) fn wait_for_end(&self, waker: &Waker) -> bool {
        self.wait_unless(waker, |flags| {
            flags.has(Flags::FILLED) || flags.is_exhausted()
        })
    }

    /// Stores `waker`, to be woken if the actor is killed or cancelled. Returns false if it was.
    #[cold]
    pub(crate) fn wait_for_termination(&self, waker: &Waker) -> bool {
        self.wait_unless(waker, |flags| flags.termination().is_some())
    }

    fn wait_unless(&self, waker: &Waker, is_over: impl Fn(Flags) -> bool) -> bool {
        let mut fresh = Some(KeptWaker::new(waker));
        // `fresh` then holds the previous waker, which is dropped outside the lock.
        self.lock_extras(|flags, _, extras| {
            if is_over(*flags) {
                return false;
            }
            std::mem::swap(&mut extras.receiver, &mut fresh);
            flags.set(Flags::FOREIGN);
            true
        })
    }

    /// Records that the reader no longer waits, so messages do not wake it.
    #[cold]
    pub(crate) fn wait_no_more(&self) {
        drop(self.take_receiver(Flags::RECEIVING.or(Flags::FOREIGN)));
    }

    /// Wakes the task other than the actor's own in which `recv` waits, if one still does.
    ///
    /// A step that returns [`Wake::Foreign`](super::Wake) leaves the waker in place. If `recv` waits
    /// again meanwhile, this wakes it once without need.
    #[cold]
    pub(crate) fn wake_receiver(&self) {
        if mutant("foreign_reader_is_not_woken") {
            return;
        }
        if let Some(waker) = self.take_receiver(Flags::FOREIGN) {
            wake_foreign(waker);
        }
    }

    fn take_receiver(&self, noted: Flags) -> Option<KeptWaker> {
        self.lock(|flags, contents| {
            flags.clear(noted);
            contents.extras().and_then(|extras| extras.receiver.take())
        })
    }
}
