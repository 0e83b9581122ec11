//! The end of an actor: its state is dropped, and its result is kept until it is taken.
//!
//! The end has steps in a fixed order. The state is dropped, and the result is stored in its place.
//! Undelivered messages are passed on, then the executor forgets the actor. Last, the tasks that wait
//! for the end are woken.
#![expect(
    unsafe_code,
    reason = "the last accesses to a cell; see CELL-1 to CELL-4 in cell.rs"
)]

use std::ptr::NonNull;

use super::front::Front;
use crate::actor::core::{At, Core};
use crate::actor::lifecycle::Completed;
use crate::contain::contain;
use crate::error::{End, Fault, FaultyPart};
use crate::mailbox::{Batch, Flags};
use crate::task::{ActorExecutor, Header, loss};

impl<M, H> Front<M, H>
where
    M: Send + 'static,
    H: ActorExecutor,
{
    /// Drops the state of an actor that has returned, by this function.
    ///
    /// # Safety
    /// (CELL-1) The header is of this cell. (CELL-3) Called by the run.
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
            Fault::Panicked(panic) => {
                let text = panic.text().unwrap_or_default().to_owned();
                return self.core.mailbox.set_panic(text);
            }
            Fault::Killed => {}
            Fault::Cancelled | Fault::NotStarted => self.executor.cancelled(),
        }
        self.completed();
        let end = End::of_fault(fault);
        if !begun {
            self.core.mailbox.forget_context();
        }
        // SAFETY: guaranteed by the caller.
        loss::during(|| self.core.detail(end), || unsafe { clear(header) });
    }

    /// Ends the actor, whose state was dropped and whose result is kept. `value` returns the name of
    /// the type of its value.
    ///
    /// # Safety
    /// (CELL-1) The header is of this cell. (CELL-3) The run calls this as its last step.
    pub(super) unsafe fn end(
        &self,
        header: NonNull<Header>,
        fault: Option<&Fault>,
        value: fn() -> &'static str,
    ) {
        // SAFETY: (CELL-4) the cell's own reference is given up in the last line.
        let core: At<'_, M> = unsafe { Self::at(header) };
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
        self.executor.leave(header);
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
            self.report_to_executor(&fault, FaultyPart::Future);
        }
        contain(|| drop(fault));
    }
}
