//! Incarnations: futures that have the context of an actor for a time, and the loan of that context.
//!
//! The lender has the context back when the borrower has dropped it. It is a future that outlives the
//! incarnation, and it never uses the reader of the cell during the loan. The owner of a context that
//! is lent by [`Context::incarnation`] has another one meanwhile, of an actor that never starts. So
//! only the incarnation receives, even if its future is leaked.
//!
//! # Invariants
//! - LOAN-2: from its begin until [`Loan::poll`] is ready, a loan has no right to the reader. From
//!   then on it has the right that a context has (CONTEXT-1).
#![expect(
    unsafe_code,
    reason = "the address and the result of a new cell are given up; see CELL-2 in cell.rs"
)]

use std::future::{Future, poll_fn, ready};
use std::panic::Location;
use std::pin::pin;
use std::ptr::NonNull;
use std::task::{Poll, Waker};

use super::cell::{self, CellParts};
use super::context::{Context, end_sources, end_wait};
use super::core::{ActorOptions, CoreArc, CoreRef};
use super::handle::Handle;
use super::lifecycle::Attempt;
use super::own_sources::SomeSources;
use crate::contain::{contain, counted};
use crate::error::{Fault, UnhandledFault};
use crate::mailbox::{Flags, MailboxOptions, wake_foreign};
use crate::sync::mutant;
use crate::task::{ActorExecutor, Executor, Header, Runnable, TaskHooks};

/// Incarnations, which begin anew where an actor has panicked.
impl<M: Send + 'static> Context<M> {
    /// Runs a future that has the receiving half of this actor's mailbox, and returns its result.
    ///
    /// A panic of the future, or of `f`, does not end the actor: the mailbox stays open, with the
    /// messages that were accepted and not received. The asker of a message that the future had
    /// received gets [`AskError::NoReply`](crate::AskError::NoReply) at once.
    /// [`restart`](crate::ActorBuilder::restart) does all of that by itself.
    ///
    /// - The future gets a context of its own. When that context is dropped, its sources are
    ///   dropped, and its children are stopped.
    /// - This waits for the end of the future, then until its context was dropped. If the future
    ///   has moved its context elsewhere, that may be later.
    /// - Sources that were attached to this context before stay with it. They are polled when it
    ///   receives again. They keep the actor open meanwhile.
    ///
    /// # Errors
    /// [`Fault::Panicked`] if the future or `f` panicked. The panic is not reported to
    /// [`on_fault`](crate::Builder::on_fault).
    ///
    /// # Cancel safety
    /// Dropping this future drops the incarnation. If the context was moved out of it, the mailbox
    /// is closed: the holder of that context receives what was accepted and then `None`, and this
    /// context receives nothing any more.
    ///
    /// ```
    /// use greenroom::{Context, Reply, spawn};
    ///
    /// async fn divider(mut cx: Context<(u32, u32, Reply<u32>)>) {
    ///     while let Some((a, b, reply)) = cx.recv().await {
    ///         reply.send(a / b);
    ///     }
    /// }
    ///
    /// async fn tolerant(mut cx: Context<(u32, u32, Reply<u32>)>) -> u64 {
    ///     while cx.incarnation(divider).await.is_err() {}
    ///     cx.incarnation_number()
    /// }
    ///
    /// greenroom::run(async {
    ///     let divider = spawn!(tolerant(_));
    ///     assert!(divider.ask(|reply| (1, 0, reply)).await.is_err());
    ///     assert_eq!(divider.ask(|reply| (42, 2, reply)).await, Ok(21));
    ///     assert_eq!(divider.join().await.unwrap(), 2);
    /// });
    /// ```
    pub async fn incarnation<F, Fut>(&mut self, f: F) -> Result<Fut::Output, Fault>
    where
        F: FnOnce(Context<M>) -> Fut,
        Fut: Future,
    {
        let (mut lent, context) = Lent::new(self);
        // Counted, since the context may have left the turns of its actor.
        let result = {
            let mut attempt = pin!(counted(|| Attempt::new(|| f(context))));
            poll_fn(|cx| counted(|| attempt.as_mut().poll(cx))).await
        };
        // The loan alone is shared with the closure below, since sources are not `Sync`.
        let loan = lent.loan();
        if let Err(Fault::Panicked(panic)) = &result {
            loan.core().complete_caught(panic);
        }
        poll_fn(|cx| loan.poll(cx.waker())).await;
        lent.take_back();
        result
    }

    /// Counts a restart, and notifies the observer. `fault` is why the last incarnation ended.
    pub(super) fn count_restart(&self, fault: Option<&Fault>) {
        let core = self.core().at();
        // Before the count, so that a look with the new one has the new text.
        if let Some(Fault::Panicked(panic)) = fault {
            let text = panic.text().unwrap_or_default();
            core.mailbox.set_panic(text.to_owned());
        }
        let number = core.mailbox.count_incarnation();
        core.restarted(number, fault);
    }

    /// Returns the number of incarnations of this actor that have ended: 0 in the first one.
    ///
    /// It counts each [restart](crate::ActorBuilder::restart), and each
    /// [`incarnation`](Context::incarnation) that has returned.
    pub fn incarnation_number(&self) -> u64 {
        self.core().mailbox.incarnations()
    }
}

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
            core.at().close();
        } else {
            drop(Context::new(core));
        }
    }
}

/// What a loan needs of a context: its return to the lender, and a wait for the end.
impl<M> Context<M> {
    /// Returns this context to its lender, without its sources. Returns false if it is not lent any
    /// more.
    #[cold]
    #[inline(never)]
    pub(super) fn give_back(&mut self) -> bool {
        let early = mutant("given_back_before_the_reader_is_left");
        let early = early.then(|| self.core().mailbox.give_back());
        let (core, reader) = self.parts();
        // The drops of wakers and sources may run any code, but cannot reach this context.
        contain(|| end_wait(core, reader));
        contain(|| end_sources(core, reader));
        match early.unwrap_or_else(|| core.mailbox.give_back()) {
            Ok(None) => true,
            Ok(Some(lender)) => {
                wake_foreign(lender);
                true
            }
            Err(()) => false,
        }
    }

    /// Returns whether the mailbox is closed, and nothing of it will be received.
    pub(super) fn is_at_end(&mut self) -> bool {
        let (core, reader) = self.parts();
        let flags = core.mailbox.state.peek();
        flags.is_exhausted() && (reader.is_empty() || flags.has(Flags::STOPPED_NOW))
    }

    /// Waits until the mailbox is closed and empty. It does not receive, and while there is a
    /// message nothing wakes it.
    pub(super) fn poll_end(&mut self, waker: &Waker) -> Poll<()> {
        self.end_wait();
        while !self.is_at_end() {
            let (core, reader) = self.parts();
            let flags = core.mailbox.state.peek();
            if !reader.is_empty() || flags.has(Flags::FILLED) {
                return Poll::Pending;
            }
            // The usual wait ends in `MailboxState::rest`, which runs the actor again if `recv` would
            // find something. In an abandoned mailbox `recv` would find the end and close it. This does
            // not, so the actor would run without end: it leaves its waker as that of another task.
            let is_usual = !flags.has(Flags::ABANDONED);
            if is_usual && core.receive_in_turn(waker) || core.mailbox.wait_for_end(waker) {
                reader.set_waits();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Ends the wait, so that the next message wakes no task.
    pub(super) fn end_wait(&mut self) {
        let (core, reader) = self.parts();
        end_wait(core, reader);
    }
}

/// A context that is lent to an incarnation, and its owner.
struct Lent<'a, M: Send + 'static> {
    owner: &'a mut Context<M>,
    /// `None` once the context was put back.
    loan: Option<Loan<M>>,
    sources: Option<Box<dyn SomeSources<M>>>,
}

impl<'a, M: Send + 'static> Lent<'a, M> {
    fn new(owner: &'a mut Context<M>) -> (Self, Context<M>) {
        let sources = owner.parts().1.take_sources();
        let own = std::mem::replace(owner, nobodys_context());
        let (loan, context) = Loan::new(own);
        let loan = Some(loan);
        let lent = Lent {
            owner,
            loan,
            sources,
        };
        (lent, context)
    }

    fn loan(&self) -> &Loan<M> {
        self.loan.as_ref().expect("it is used until it is back")
    }

    /// Puts the context back, with its sources. The loan has come back.
    fn take_back(&mut self) {
        let Some(loan) = self.loan.take() else {
            return;
        };
        loan.core().mailbox.count_incarnation();
        *self.owner = loan.take_back();
        if let Some(sources) = self.sources.take() {
            self.owner.parts().1.put_sources(sources);
        }
    }
}

impl<M: Send + 'static> Drop for Lent<'_, M> {
    fn drop(&mut self) {
        let back = self.loan.as_ref().map(|loan| loan.poll(Waker::noop()));
        if back == Some(Poll::Ready(())) {
            self.take_back();
        }
        contain(|| drop(self.sources.take()));
    }
}

/// Creates the context of an actor that has ended before it began.
fn nobodys_context<M: Send + 'static>() -> Context<M> {
    let options = ActorOptions {
        mailbox: MailboxOptions::of(None),
        priority: 0,
        label: None,
    };
    let parts: CellParts<M, _, _> = ((), |(), _| ready(()));
    let (core, _) = cell::new(Nowhere, parts, options, Location::caller());
    // SAFETY: (CELL-2) a new cell comes with one address and the right to join.
    let handle = unsafe { Handle::<M, ()>::new(core) };
    // (CONTEXT-1) The cell has not begun, so it has no context yet.
    Context::new(handle.core())
}

/// The executor of cells that never run.
#[derive(Clone)]
struct Nowhere;

impl Executor for Nowhere {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        drop(runnable);
    }

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        self
    }
}

impl TaskHooks for Nowhere {
    fn report(&self, _unhandled: &UnhandledFault<'_>) {}
}

impl ActorExecutor for Nowhere {
    fn enter(&self, _cell: NonNull<Header>) -> bool {
        false
    }

    fn leave(&self, _cell: NonNull<Header>) {}

    fn is_closing(&self) -> bool {
        true
    }
}
