//! The number of senders, and what happens when the last one is dropped.
//!
//! Above zero, the count is incremented without the lock. It leaves zero only under the lock, where
//! the reader decides whether to close the mailbox. So a new address never belongs to a mailbox
//! that was closed because it had no address.

use super::contents::Mailbox;
use super::state::{Flags, Wake};
use crate::sync::atomic::Ordering;
use crate::sync::{COUNT_MAX, mutant};

impl<M> Mailbox<M> {
    /// Adds a sender. The caller is a sender itself.
    pub(crate) fn add_sender(&self) {
        // Relaxed: the sender from which the new one is cloned stays counted meanwhile.
        if self.senders.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Returns the number of senders at this moment.
    pub(crate) fn addresses(&self) -> usize {
        // Relaxed: a snapshot, which publishes nothing.
        self.senders.load(Ordering::Relaxed) as usize
    }

    /// Adds a sender where there may be none. Returns whether there was none, or `None` if the
    /// mailbox is closed and `even_closed` is false.
    pub(crate) fn revive_sender(&self, even_closed: bool) -> Option<bool> {
        if !even_closed && self.state.peek().has(Flags::CLOSED) {
            return None;
        }
        let raise = |senders: u32| (0 < senders && senders < COUNT_MAX).then(|| senders + 1);
        // Relaxed: only the count itself matters; it publishes no other data.
        let raised = self
            .senders
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise);
        if raised.is_ok() {
            return Some(false);
        }
        self.lock(|flags, _| {
            if !even_closed && flags.has(Flags::CLOSED) {
                return None;
            }
            if !mutant("revived_and_still_abandoned") {
                flags.clear(Flags::ABANDONED);
            }
            // Relaxed: the count leaves zero only under the lock.
            let before = self.senders.fetch_add(1, Ordering::Relaxed);
            if before > COUNT_MAX {
                std::process::abort();
            }
            Some(before == 0)
        })
    }

    /// Removes a sender. Returns whether it was the last one, in which case the caller must
    /// [abandon](Mailbox::abandon) the mailbox.
    pub(crate) fn remove_sender(&self) -> bool {
        // AcqRel pairs with itself: the last sender sees what the other senders did, and so does
        // the reader.
        self.senders.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Marks the mailbox as abandoned, unless it has a sender again. The reader of an abandoned
    /// mailbox closes it when it finds no message.
    pub(crate) fn abandon(&self) -> Wake {
        // A close is final.
        if self.state.peek().has(Flags::CLOSED) {
            return Wake::Nobody;
        }
        self.lock(|flags, _| {
            // Relaxed: ordered by the lock, under which the count leaves zero.
            let revived = self.senders.load(Ordering::Relaxed) > 0;
            if revived && !mutant("abandoned_without_a_second_look") {
                return Wake::Nobody;
            }
            flags.set(Flags::ABANDONED);
            match flags.has_news() {
                true => flags.arrived(),
                false => Wake::Nobody,
            }
        })
    }
}
