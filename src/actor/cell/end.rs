//! The end of an actor: its state is dropped, and its result is kept until it is taken.
//!
//! The end has steps in a fixed order. The state is dropped, and undelivered messages are passed on.
//! Then the result is stored, and the executor forgets the actor. Last, the tasks that wait for the
//! end are woken.
#![expect(
    unsafe_code,
    reason = "the last accesses to a cell; see CELL-1 to CELL-4 in cell.rs"
)]

use std::future::Future;
use std::ptr::NonNull;

use super::Cell;
use crate::actor::core::At;
use crate::actor::lifecycle::Lifecycle;
use crate::contain::{Panic, contain, drop_result};
use crate::error::{End, Fault, FaultyPart};
use crate::mailbox::{Batch, Flags, Termination};
use crate::task::{ActorExecutor, Header, loss};

impl<M, H, A, Fut> Cell<M, H, A, Fut, Fut::Output>
where
    M: Send + 'static,
    H: ActorExecutor,
    A: 'static,
    Fut: Future + 'static,
{
    /// Returns the fault of an actor that was terminated.
    pub(super) fn fault(&self, termination: Termination) -> Fault {
        // SAFETY: (CELL-3) called by the run.
        let begun = self
            .lifecycle
            .with_mut(|life| unsafe { (*life).has_begun() });
        self.front.fault(termination, begun)
    }

    /// Ends the actor: drops its state on this thread, and keeps or reports its result.
    ///
    /// # Safety
    /// (CELL-1, CELL-4) It is the header of a cell with this table that has not ended. (CELL-3) The
    /// run calls this as its last step.
    pub(super) unsafe fn end(header: NonNull<Header>, result: Result<Fut::Output, Fault>) {
        // SAFETY: (CELL-4) the cell's own reference is given up in the last line.
        let (cell, core) = unsafe { (Self::of(header).as_ref(), Self::at(header)) };
        let executor = &cell.front.executor;
        let end = End::of(&result);
        // SAFETY: (CELL-3) called by the run.
        unsafe { cell.clear(core, &result) };
        core.close();
        core.mailbox.refuse_line();
        let flags = core.mailbox.state.peek();
        let mut messages = core.mailbox.drain_seen(flags);
        if flags.has(Flags::KEEPS.or(Flags::TRACED)) {
            if flags.has(Flags::KEEPS) {
                core.finish_undelivered(end, std::mem::replace(&mut messages, Batch::EMPTY));
            }
            core.ended(&result, &messages);
        }
        // A message to a terminated actor is dropped later: its drop may wait for the end.
        if flags.termination().is_none() {
            core.lose(end, std::mem::replace(&mut messages, Batch::EMPTY));
        }
        // SAFETY: (CELL-3) called by the run.
        cell.lifecycle
            .with_mut(|life| unsafe { (*life).keep(result) });
        executor.leave(header);
        let (is_joinable, waiters) = core.mailbox.end(end);
        if !is_joinable {
            // SAFETY: (CELL-3) the actor has ended, and no join is left.
            unsafe { Self::drop_result(header) };
        }
        if let Some(waiters) = waiters {
            waiters.wake_all();
        }
        core.lose(end, messages);
        // SAFETY: (CELL-4) the cell's own reference, given up last.
        unsafe { Self::release(header) };
    }

    /// Drops the future, or the actor that did not begin, and notifies the executor of the end.
    ///
    /// # Safety
    /// (CELL-3) Called by the run.
    #[inline]
    pub(super) unsafe fn clear(&self, core: At<'_, M>, result: &Result<Fut::Output, Fault>) {
        let Err(fault) = result else {
            self.front.completed();
            // SAFETY: guaranteed by the caller.
            return self.lifecycle.with_mut(|life| unsafe { (*life).clear() });
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.clear_after(core, fault) };
    }

    /// Does the same after a fault.
    ///
    /// # Safety
    /// As in `clear`.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn clear_after(&self, core: At<'_, M>, fault: &Fault) {
        match fault {
            // While it unwound, the state was dropped and the executor was notified.
            Fault::Panicked(panic) => return core.mailbox.set_panic(text_of(panic)),
            Fault::Killed => {}
            Fault::Cancelled | Fault::NotStarted => self.front.executor.cancelled(),
        }
        self.front.completed();
        let end = End::of_fault(fault);
        // SAFETY: guaranteed by the caller.
        let life = |life: *mut Lifecycle<_, _, _>| unsafe { &mut *life };
        if !self.lifecycle.with_mut(|it| life(it).has_begun()) {
            core.mailbox.forget_context();
        }
        let clear = || self.lifecycle.with_mut(|it| life(it).clear());
        loss::during(|| core.detail(end), clear);
    }

    /// # Safety
    /// As [`VTable::take_result`](crate::task::VTable::take_result); `out` points to an
    /// `Option<Result<Fut::Output, Fault>>`.
    pub(super) unsafe fn take_result(header: NonNull<Header>, out: *mut ()) {
        // SAFETY: (CELL-2) the caller's reference; (CELL-3) the caller alone takes the result.
        unsafe {
            let cell = Self::of(header).as_ref();
            let result = cell.lifecycle.with_mut(|life| (*life).take_result());
            *out.cast::<Option<Result<Fut::Output, Fault>>>() = result;
        }
    }

    /// # Safety
    /// As [`VTable::drop_result`](crate::task::VTable::drop_result).
    pub(super) unsafe fn drop_result(header: NonNull<Header>) {
        // SAFETY: (CELL-1) and the caller's reference.
        let cell = unsafe { Self::of(header).as_ref() };
        // SAFETY: (CELL-3) the caller guarantees that the cell has ended, and owns the result.
        let result = cell
            .lifecycle
            .with_mut(|life| unsafe { (*life).take_result() });
        if let Some(Err(fault @ Fault::Panicked(_))) = &result {
            cell.front.report_to_executor(fault, FaultyPart::Future);
        }
        match result {
            Some(Ok(value)) => drop_result(value),
            unneeded => contain(|| drop(unneeded)),
        }
    }
}

/// Returns the text of a panic, which is empty if the panic has none.
pub(super) fn text_of(panic: &Panic) -> String {
    panic.text().unwrap_or_default().to_owned()
}
