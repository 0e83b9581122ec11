//! What few actors have: functions for their messages, the text of a panic, and incarnations.
//!
//! The mailbox stores it behind one pointer, so that it costs other actors nothing.
//!
//! A lender gives the context to an incarnation of its actor. The drop of a lent context leaves the
//! mailbox open, and wakes the lender. The context may be lent again by its holder, so the loans
//! are a stack, and a drop gives the context to the lender of the last one. The first loan needs no
//! memory.
//!
//! # Invariants
//! - LOAN-1: `LENT` is set while the first loan is open, `RELENT` while there are others. Both
//!   change under the lock. A context that ends a loan does not use the reader any more.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::RefUnwindSafe;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::contents::Mailbox;
use super::state::Flags;
use crate::sync::{Mutex, mutant};
use crate::waker::KeptWaker;

/// The options of an actor that concern its messages. They are `Send` and `Sync` whatever the
/// messages are.
pub(crate) struct HookOptions<M> {
    /// The function that shows a message in a trace.
    pub(crate) show: Option<fn(&M) -> String>,
    /// The function that names a message in a trace.
    pub(crate) label: Option<LabelFn<M>>,
    /// The function for messages that are not handled.
    pub(crate) on_undelivered: Option<Mutex<OnUndelivered<M>>>,
    /// The link between the actor and its supervisor. The mailbox only stores it.
    pub(crate) bond: Option<AnyBond>,
}

/// No panic leaves it half changed.
pub(crate) type AnyBond = Arc<dyn Any + Send + Sync + RefUnwindSafe>;

pub(crate) type LabelFn<M> = fn(&M) -> &'static str;

pub(crate) type OnUndelivered<M> = Box<dyn FnMut(M) + Send>;

pub(crate) struct Hooks<M> {
    /// The function that shows a message in a trace.
    pub(super) show: Option<fn(&M) -> String>,
    pub(super) label: Option<LabelFn<M>>,
    /// What a tracer of the user knows of the actor.
    pub(super) traced: Traced,
    pub(super) undelivered: Option<Arc<Mutex<Undelivered<M>>>>,
    /// The text of the panic with which the actor ended.
    pub(super) panic: Option<Arc<str>>,
    pub(super) bond: Option<AnyBond>,
    pub(super) loans: Loans,
    /// The number of incarnations of the actor that have ended.
    pub(super) incarnations: u64,
}

/// What a tracer knows of an actor and its messages.
#[derive(Default)]
pub(super) struct Traced {
    /// The senders of the messages that were accepted and are not received yet, oldest first.
    pub(super) senders: VecDeque<u64>,
    /// The sender of the last message that was received.
    pub(super) last: u64,
    /// The name of the actor's state.
    pub(super) state: Option<&'static str>,
    /// Whether the end of the actor was traced.
    pub(super) is_over: bool,
}

/// Messages that are not handled, and the function for them.
pub(super) struct Undelivered<M> {
    /// `None` while a thread calls the function, and once no message can follow.
    pub(super) function: Option<OnUndelivered<M>>,
    pub(super) messages: VecDeque<M>,
    /// Whether the actor has ended, so that the function may be called.
    pub(super) is_over: bool,
    /// Whether a context may still give messages back.
    pub(super) has_context: bool,
}

impl<M> Undelivered<M> {
    pub(super) fn new(function: OnUndelivered<M>) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Undelivered {
            function: Some(function),
            messages: VecDeque::new(),
            is_over: false,
            has_context: true,
        }))
    }
}

/// The loans of one context, but for the first one.
#[derive(Default)]
pub(super) struct Loans {
    /// The lender of the first loan, if it waits for the context.
    pub(super) first: Option<KeptWaker>,
    /// The keys of the other loans, oldest first, with their lenders.
    pub(super) others: Vec<(u32, Option<KeptWaker>)>,
    /// The last key.
    pub(super) last: u32,
}

impl<M> Default for HookOptions<M> {
    fn default() -> Self {
        HookOptions {
            show: None,
            label: None,
            on_undelivered: None,
            bond: None,
        }
    }
}

impl<M> Hooks<M> {
    pub(crate) fn new(options: HookOptions<M>) -> Self {
        let function = options.on_undelivered.map(Mutex::into_inner);
        Hooks {
            show: options.show,
            label: options.label,
            traced: Traced::default(),
            undelivered: function.map(Undelivered::new),
            panic: None,
            bond: options.bond,
            loans: Loans::default(),
            incarnations: 0,
        }
    }
}

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

    /// Returns the number of incarnations that have ended.
    pub(crate) fn incarnations(&self) -> u64 {
        self.lock(|_, contents| contents.hooks().map_or(0, |hooks| hooks.incarnations))
    }

    /// Counts the end of an incarnation, and returns how many have ended.
    #[cold]
    pub(crate) fn count_incarnation(&self) -> u64 {
        self.lock_hooks(|_, hooks| {
            hooks.incarnations += 1;
            hooks.incarnations
        })
    }

    /// Takes what joins the actor to its supervisor, if it has one.
    pub(crate) fn take_bond(&self) -> Option<AnyBond> {
        self.lock(|_, contents| contents.hooks()?.bond.take())
    }
}
