//! How many can send, and what happens when none is left.
//!
//! The count rises without the lock as long as it is not zero. It leaves zero only under the lock, where the
//! reader decides whether to close; so an address that was made anew is never one of a mailbox closed for
//! want of addresses.

use super::contents::Mailbox;
use super::state::{Flags, Wake};
use crate::sync::atomic::Ordering;
use crate::sync::{COUNT_MAX, mutant};

impl<M> Mailbox<M> {
    /// Counts one sender more. The caller is one.
    pub(crate) fn add_sender(&self) {
        // Relaxed: the sender that the new one comes from is counted meanwhile.
        if self.senders.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Counts one sender more where there may be none; says whether there was none. `None` if the mailbox is
    /// closed and `even_closed` is false.
    pub(crate) fn revive_sender(&self, even_closed: bool) -> Option<bool> {
        if !even_closed && self.state.peek().has(Flags::CLOSED) {
            return None;
        }
        let raise = |senders: u32| (0 < senders && senders < COUNT_MAX).then(|| senders + 1);
        // Relaxed: the count itself decides, and publishes nothing.
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
            // Relaxed: from zero it rises under the lock alone.
            let before = self.senders.fetch_add(1, Ordering::Relaxed);
            if before > COUNT_MAX {
                std::process::abort();
            }
            Some(before == 0)
        })
    }

    /// Counts one sender less; says whether it was the last one, of which the mailbox is to be
    /// [abandoned](Mailbox::abandon).
    pub(crate) fn remove_sender(&self) -> bool {
        // AcqRel: what the other senders did is done before the reader hears of the last one.
        self.senders.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Leaves it to the reader to close when it finds nothing, unless there is a sender again.
    pub(crate) fn abandon(&self) -> Wake {
        // The close is final.
        if self.state.peek().has(Flags::CLOSED) {
            return Wake::Nobody;
        }
        self.lock(|flags, contents| {
            // Relaxed: ordered by the lock, under which the count leaves zero.
            let revived = self.senders.load(Ordering::Relaxed) > 0;
            if revived && !mutant("abandoned_without_a_second_look") {
                return Wake::Nobody;
            }
            flags.set(Flags::ABANDONED);
            match flags.has_news() {
                true => contents.arrived(flags),
                false => Wake::Nobody,
            }
        })
    }
}
