//! Loans of the context, so that it comes back to a lender when it is dropped.
//!
//! A lender gives the context to an incarnation of its actor. The drop of a lent context leaves the
//! mailbox open, and wakes the lender. The context may be lent again by its holder, so the loans
//! are a stack, and a drop gives the context to the lender of the last one. The first loan needs no
//! memory.
//!
//! # Invariants
//! - LOAN-1: `LENT` is set while the first loan is open, `RELENT` while there are others. Both
//!   change under the lock. A context that ends a loan does not use the reader any more.

use std::task::{Poll, Waker};

use super::contents::Mailbox;
use super::extras::{AnyBond, HookOptions, Hooks, KnownExtras};
use super::state::Flags;
use crate::contain::KeptWaker;
use crate::error::End;
use crate::sync::mutant;

/// The key of the first loan.
const FIRST: u32 = 0;

impl<M> Mailbox<M> {
    /// Runs a critical section with the mailbox's hooks, which are created if they are missing.
    pub(super) fn lock_hooks<R>(
        &self,
        mut section: impl FnMut(&mut Flags, &mut Hooks<M>) -> R,
    ) -> R {
        let mut fresh = Some(Box::new(Hooks::new(HookOptions::default())));
        self.lock_extras(|flags, _, extras| {
            let hooks = match &mut extras.hooks {
                Some(hooks) => hooks,
                none => none.insert(fresh.take().expect("the section is run once")),
            };
            section(flags, hooks)
        })
    }

    /// Records that the context is lent, and returns the key of the loan.
    pub(crate) fn lend(&self) -> u32 {
        // The first loan is a flag, and needs no hooks.
        let is_first = self.lock(|flags, _| {
            let is_first = !flags.has(Flags::LENT.or(Flags::RELENT));
            if is_first {
                flags.set(Flags::LENT);
            }
            is_first
        });
        if is_first {
            return FIRST;
        }
        self.lock_hooks(|flags, hooks| {
            flags.set(Flags::RELENT);
            let loans = &mut hooks.loans;
            loans.last = loans.last.wrapping_add(1).max(FIRST + 1);
            loans.others.push((loans.last, None));
            loans.last
        })
    }

    /// Ends the last loan, since the context is being dropped. Returns the lender, if it waits, or
    /// an error if the context is not lent.
    ///
    /// From now on the lender uses the reader.
    #[cold]
    pub(crate) fn give_back(&self) -> Result<Option<KeptWaker>, ()> {
        self.lock(|flags, contents| {
            let loans = contents.hooks().map(|hooks| &mut hooks.loans);
            // The last borrower gives back to the last lender.
            if flags.has(Flags::RELENT) {
                let loans = loans.expect("they have the other loans");
                let last = loans.others.pop();
                if loans.others.is_empty() {
                    flags.clear(Flags::RELENT);
                }
                Ok(last.and_then(|(_, lender)| lender))
            } else if flags.has(Flags::LENT) {
                flags.clear(Flags::LENT);
                Ok(loans.and_then(|loans| loans.first.take()))
            } else {
                Err(())
            }
        })
    }

    /// Ends the loan with this key, since its lender is being dropped. Returns whether the context
    /// was still lent.
    #[cold]
    pub(crate) fn revoke(&self, key: u32) -> bool {
        let hint = mutant("revoked_by_a_hint").then(|| self.state.peek().has(Flags::LENT));
        let (was_lent, lender) = self.lock(|flags, contents| {
            let loans = contents.hooks().map(|hooks| &mut hooks.loans);
            if key == FIRST {
                let was_lent = flags.has(Flags::LENT);
                flags.clear(Flags::LENT);
                return (was_lent, loans.and_then(|loans| loans.first.take()));
            }
            // A lender in the middle of others may end first.
            let others = &mut loans.expect("they have the other loans").others;
            let lender = others.iter().position(|(other, _)| *other == key);
            let lender = lender.map(|index| others.remove(index).1);
            if others.is_empty() {
                flags.clear(Flags::RELENT);
            }
            (lender.is_some(), lender.flatten())
        });
        drop(lender);
        hint.unwrap_or(was_lent)
    }

    /// Returns whether the context of this loan has come back. If not, the return wakes `waker`.
    #[inline]
    pub(crate) fn poll_back(&self, key: u32, waker: &Waker) -> Poll<()> {
        // A peek is enough for the usual case: Acquire pairs with the Release of `unlock`.
        if key == FIRST && !self.state.peek().has(Flags::LENT) {
            return Poll::Ready(());
        }
        self.await_back(key, waker)
    }

    #[cold]
    #[inline(never)]
    fn await_back(&self, key: u32, waker: &Waker) -> Poll<()> {
        let mut lender = Some(KeptWaker::new(waker));
        // `lender` then holds the previous waker, which is dropped outside the lock.
        let polled = self.lock_hooks(|flags, hooks| {
            let loans = &mut hooks.loans;
            let lender_of = if key == FIRST {
                flags.has(Flags::LENT).then_some(&mut loans.first)
            } else {
                let mut others = loans.others.iter_mut();
                others
                    .find(|(other, _)| *other == key)
                    .map(|loan| &mut loan.1)
            };
            match lender_of {
                None => Poll::Ready(()),
                Some(lender_of) => {
                    if !mutant("the_lender_is_not_woken") {
                        std::mem::swap(lender_of, &mut lender);
                    }
                    Poll::Pending
                }
            }
        });
        drop(lender);
        polled
    }

    /// Returns what is known of the mailbox and its actor, if they have extras.
    pub(crate) fn known_extras(&self) -> KnownExtras {
        let known = self.lock(|_, contents| Some(contents.extras()?.known()));
        known.unwrap_or_default()
    }

    /// Returns the number of incarnations that have ended.
    pub(crate) fn incarnations(&self) -> u64 {
        self.lock(|_, contents| contents.hooks().map_or(0, |hooks| hooks.incarnations))
    }

    /// Records that the actor ends with a panic of this text.
    #[cold]
    pub(crate) fn fail(&self, text: String) {
        self.set_panic(text);
        self.lock(|flags, _| flags.set_known_end(End::Panicked));
    }

    /// Stores the text of the panic with which an incarnation of the actor ends, or the actor does.
    #[cold]
    pub(crate) fn set_panic(&self, text: String) {
        let mut text = Some(text.into());
        self.lock_hooks(|_, hooks| hooks.panic = text.take());
    }

    /// Counts an incarnation that has ended, and returns the number of the next one. A restart counts
    /// it when that one begins, `Context::incarnation` when it has returned.
    #[cold]
    pub(crate) fn count_incarnation(&self) -> u64 {
        self.lock_hooks(|_, hooks| {
            hooks.incarnations += 1;
            hooks.incarnations
        })
    }

    /// Returns whether no warning is given of long turns of the actor.
    pub(crate) fn has_long_turns(&self) -> bool {
        self.lock(|_, contents| contents.hooks().is_some_and(|hooks| hooks.has_long_turns))
    }

    /// Takes what joins the actor to its supervisor, if it has one.
    pub(crate) fn take_bond(&self) -> Option<AnyBond> {
        self.lock(|_, contents| contents.hooks()?.bond.take())
    }
}
