//! A loan of a context: the lender has it back when the borrower has dropped it.
//!
//! The lender is a future that outlives an incarnation of its actor. It never uses the reader of
//! the cell during the loan.
//!
//! # Invariants
//! - LOAN-2: from its begin until [`Loan::poll`] is ready, a loan has no right to the reader. From
//!   then on it has the right that a context has (CONTEXT-1).

use std::task::{Poll, Waker};

use super::context::Context;
use super::core::{CoreArc, CoreRef};

/// A lent context, as its lender sees it.
///
/// If it is dropped during the loan, the mailbox is closed, and the borrowed context becomes the
/// actor's only one.
pub(super) struct Loan<M> {
    /// `None` once the context was taken back.
    core: Option<CoreArc<M>>,
    key: u32,
}

impl<M> Loan<M> {
    /// Lends a context.
    pub(super) fn new(context: Context<M>) -> (Self, Context<M>) {
        let core = context.core().clone();
        let key = core.mailbox.lend();
        let loan = Loan {
            core: Some(core),
            key,
        };
        (loan, context)
    }

    pub(super) fn core(&self) -> CoreRef<'_, M> {
        self.core.as_ref().expect("it was not taken back").at()
    }

    /// Waits until the borrower has dropped the context.
    #[inline]
    pub(super) fn poll(&self, waker: &Waker) -> Poll<()> {
        self.core().mailbox.poll_back(self.key, waker)
    }

    /// Takes the context back. [`poll`](Loan::poll) was ready.
    pub(super) fn take_back(mut self) -> Context<M> {
        let core = self.core.take().expect("it is taken back once");
        Context::new(core)
    }
}

impl<M> Drop for Loan<M> {
    fn drop(&mut self) {
        let Some(core) = self.core.take() else {
            return;
        };
        if core.mailbox.revoke(self.key) {
            core.at().stop_now();
        } else {
            drop(Context::new(core));
        }
    }
}
