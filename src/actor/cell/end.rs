//! The end of an actor: its state is dropped, and its result is kept until it is taken.
//!
//! The end has steps in a fixed order. The state is dropped, and undelivered messages are passed on.
//! Then the result is stored, and the executor forgets the actor. Last, the tasks that wait for the
//! end are woken.
#![expect(
    unsafe_code,
    reason = "the last accesses to a cell; see CELL-1 to CELL-4 in cell.rs"
)]

use std::ptr::NonNull;

use super::base::Base;
use crate::actor::core::{Core, CoreRef};
use crate::actor::lifecycle::Completed;
use crate::contain::contain;
use crate::error::{End, Fault, UnhandledFault};
use crate::mailbox::{Batch, Flags};
use crate::task::{ActorExecutor, Header, loss};

impl<M, H> Base<M, H>
where
    M: Send + 'static,
    H: ActorExecutor,
{
    /// Drops the state of an actor that has returned, by this function.
    ///
    /// # Safety
    /// (CELL-1) The header and `clear` are of this cell. (CELL-3) Called by the run.
    #[inline]
    pub(super) unsafe fn drop_state(
        &self,
        header: NonNull<Header>,
        clear: unsafe fn(NonNull<Header>),
    ) {
        self.completed();
        // SAFETY: guaranteed by the caller.
        unsafe { clear(header) };
    }

    /// Drops the state of an actor that ends with a fault. `begun` says whether it has begun.
    ///
    /// # Safety
    /// As in `drop_state`.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn drop_state_after(
        &self,
        header: NonNull<Header>,
        clear: unsafe fn(NonNull<Header>),
        fault: &Fault,
        begun: bool,
    ) {
        match fault {
            // While it unwound, the state was dropped and the executor was notified.
            Fault::Panicked(_) => {
                return self.executor.hooks().failed(&self.core.info(), fault);
            }
            Fault::Killed => {}
            Fault::Cancelled | Fault::NotStarted => {
                self.executor.hooks().cancelled(&self.core.info());
            }
        }
        self.completed();
        let end = End::of_fault(fault);
        if !begun {
            self.core.mailbox.forget_context();
        }
        // SAFETY: guaranteed by the caller.
        loss::during(|| self.core.detail(end), || unsafe { clear(header) });
    }

    /// Closes the mailbox of an actor whose state was dropped, and passes on what is in it. Returns
    /// how the actor ends, and the messages that are dropped last. `value` returns the name of the
    /// type of its value.
    ///
    /// # Safety
    /// As in `drop_state`.
    pub(super) unsafe fn close(
        &self,
        header: NonNull<Header>,
        fault: Option<&Fault>,
        value: fn() -> &'static str,
    ) -> (End, Batch<M>) {
        // SAFETY: guaranteed by the caller; (CELL-4) the cell has not ended.
        let core: CoreRef<'_, M> = unsafe { Self::at(header) };
        let end = fault.map_or(End::Returned, End::of_fault);
        core.close();
        core.mailbox.refuse_line();
        let flags = core.mailbox.state.peek();
        let mut messages = core.mailbox.drain_seen(flags);
        if flags.has(Flags::KEEPS.or(Flags::TRACED)) {
            if flags.has(Flags::KEEPS) {
                core.finish_undelivered(end, std::mem::replace(&mut messages, Batch::EMPTY));
            }
            core.ended(fault, value, &messages);
        }
        // A message to a terminated actor is dropped later: its drop may wait for the end.
        if flags.termination().is_none() {
            core.lose(end, std::mem::replace(&mut messages, Batch::EMPTY));
        }
        (end, messages)
    }

    /// Ends a cell that was closed and has a result. It may be freed before this returns.
    ///
    /// # Safety
    /// (CELL-1, CELL-4) It is the header of a cell with such a base that has not ended. (CELL-3)
    /// The run calls this as its last step.
    pub(super) unsafe fn leave(header: NonNull<Header>, end: End, messages: Batch<M>) {
        // SAFETY: (CELL-4) the cell's own reference is given up in the last line.
        let (base, core) = unsafe { (Self::of(header), Self::at(header)) };
        base.executor.leave(header);
        let (is_joinable, waiters) = core.mailbox.end(end);
        if !is_joinable {
            // SAFETY: (CELL-3) the actor has ended, and no join is left.
            unsafe { core.drop_result() };
        }
        if let Some(waiters) = waiters {
            waiters.wake_all();
        }
        core.lose(end, messages);
        // SAFETY: (CELL-4) the cell's own reference, given up last.
        unsafe { Core::release(core.pointer()) };
    }

    /// Drops a fault that no join receives, and reports it to the executor if it is a panic.
    pub(super) fn drop_fault(&self, fault: Fault) {
        if let Fault::Panicked(_) = &fault {
            let info = self.core.info();
            let unhandled = UnhandledFault::of_actor(&info, &fault, None);
            self.executor.hooks().report(&unhandled);
        }
        contain(|| drop(fault));
    }
}
