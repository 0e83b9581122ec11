//! Messages that were accepted and will not be handled.
//!
//! They are kept for the actor's function until the actor and its context have ended. Then one
//! thread at a time takes them out and calls the function, so they keep their order. No lock is
//! held during a call, so the function may send to the mailbox or give up a permit of it.

use std::sync::Arc;

use super::contents::Mailbox;
use super::extras::{OnUndelivered, Undelivered};
use super::queue::Batch;
use super::state::{Flags, Wake};
use crate::contain::{Panic, attempt, contain};
use crate::sync::{Mutex, mutant};

impl<M> Mailbox<M> {
    /// Returns how a trace shows a message, if that was set.
    pub(crate) fn show(&self) -> Option<fn(&M) -> String> {
        self.lock(|_, contents| contents.hooks()?.show)
    }

    /// Returns the text of the panic with which the actor has ended, if it has.
    pub(crate) fn panic(&self) -> Option<Arc<str>> {
        self.lock(|_, contents| contents.hooks()?.panic.clone())
    }

    /// Returns whether messages that are not handled go to a function.
    #[inline]
    pub(crate) fn keeps_undelivered(&self) -> bool {
        self.state.peek().has(Flags::KEEPS)
    }

    fn undelivered(&self) -> Option<Arc<Mutex<Undelivered<M>>>> {
        if !self.keeps_undelivered() {
            return None;
        }
        self.lock(|_, contents| contents.hooks()?.undelivered.clone())
    }

    /// Keeps messages that will not be handled for the function, or drops them if there is none.
    #[cold]
    pub(crate) fn lose(&self, mut messages: Batch<M>) {
        match self.undelivered() {
            None => drop(messages.clear()),
            Some(undelivered) => {
                let mut undelivered = undelivered.lock();
                while let Some(message) = messages.pop() {
                    undelivered.messages.push_back(message);
                }
            }
        }
    }

    /// Does so with messages that the context has taken: none of the kept ones is older.
    #[cold]
    pub(crate) fn lose_taken(&self, mut messages: Batch<M>) {
        match self.undelivered() {
            None => drop(messages.clear()),
            Some(undelivered) => {
                let mut undelivered = undelivered.lock();
                let newer = std::mem::take(&mut undelivered.messages);
                while let Some(message) = messages.pop() {
                    undelivered.messages.push_back(message);
                }
                undelivered.messages.extend(newer);
            }
        }
    }

    /// Passes on or drops a message whose permit was not used, since the mailbox was
    /// drained before. Gives up the permit.
    #[cold]
    pub(crate) fn lose_late<const URGENT: bool>(&self, message: M, report: impl Fn(Panic)) -> Wake {
        match self.undelivered() {
            None => contain(|| drop(message)),
            Some(undelivered) => undelivered.lock().messages.push_back(message),
        }
        // The function is kept as long as a permit is given.
        self.pass_undelivered(&report);
        let wake = self.give_up_permit::<URGENT>();
        self.pass_undelivered(&report);
        wake
    }

    /// Sets the function for messages that are not handled, if there is none and the mailbox is
    /// open.
    #[cold]
    pub(crate) fn keep_undelivered(&self, function: OnUndelivered<M>) {
        let mut undelivered = Some(Undelivered::new(function));
        self.lock_hooks(|flags, hooks| {
            // The close comes before the end, which reads this flag.
            if !flags.has(Flags::CLOSED.or(Flags::KEEPS)) {
                hooks.undelivered = undelivered.take();
                flags.set(Flags::KEEPS);
            }
        });
    }

    /// Records that no context gives messages back any more.
    #[cold]
    pub(crate) fn forget_context(&self) {
        if let Some(undelivered) = self.undelivered() {
            undelivered.lock().has_context = false;
        }
    }

    /// Records that the actor has ended, so that undelivered messages are passed on.
    #[cold]
    pub(crate) fn finish_handling(&self) {
        if let Some(undelivered) = self.undelivered() {
            undelivered.lock().is_over = true;
        }
    }

    /// Passes the undelivered messages to the function, and drops it if no message can follow.
    /// `report` is called with each panic of the function. Does nothing before actor and context
    /// have ended, or while another thread does this.
    #[cold]
    pub(crate) fn pass_undelivered(&self, report: impl Fn(Panic)) {
        let Some(undelivered) = self.undelivered() else {
            return;
        };
        let mut kept = undelivered.lock();
        if !kept.is_over || kept.has_context {
            return;
        }
        let Some(mut function) = kept.function.take() else {
            return;
        };
        while let Some(message) = kept.messages.pop_front() {
            drop(kept);
            if let Err(panic) = attempt(|| function(message)) {
                report(panic);
            }
            kept = undelivered.lock();
        }
        // A permit that is given up after this look is followed by another call of this function.
        let is_reserved = self.state.peek().has(Flags::RESERVED);
        if is_reserved && !mutant("the_last_place_forgets_its_message") {
            kept.function = Some(function);
            return;
        }
        drop(kept);
        contain(|| drop(function));
    }
}
