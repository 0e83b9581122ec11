//! The front of a cell: its core and its executor, at the same place whatever the future is.
//!
//! What needs no more is compiled once for the actors of one message type on one kind of executor,
//! and not for each future.
#![expect(
    unsafe_code,
    reason = "the front of one allocation seen through several types; see CELL-1 in cell.rs"
)]

use std::ptr::NonNull;

use crate::actor::core::{At, Core, Held};
use crate::actor::traced;
use crate::error::{AskCause, AskDetail, Fault, FaultyPart, UnhandledFault};
use crate::info::TaskInfo;
use crate::instant::Instant;
use crate::mailbox::{Termination, Wake};
use crate::sync::Process;
use crate::task::quota::Quota;
use crate::task::run;
use crate::task::{
    ActorExecutor, Deed, Delivery, Header, Look, MessageEvent, Runnable, WithTracer, as_run, loss,
};

#[repr(C)]
pub(super) struct Front<M, H> {
    pub(super) core: Core<M>,
    pub(super) executor: H,
}

/// The functions of the header's table. Of each, the caller holds a reference.
impl<M, H> Front<M, H>
where
    M: Send + 'static,
    H: ActorExecutor,
{
    /// Returns the front with this header.
    ///
    /// # Safety
    /// (CELL-1) It is the header of a cell with such a front, and a reference is held during `'a`.
    unsafe fn of<'a>(header: NonNull<Header>) -> &'a Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Core::<M>::of(header).cast().as_ref() }
    }

    /// Returns the core with this header.
    ///
    /// # Safety
    /// As in `of`.
    pub(super) unsafe fn at<'a>(header: NonNull<Header>) -> At<'a, M> {
        // SAFETY: guaranteed by the caller.
        unsafe { At::new(Core::of(header)) }
    }

    /// Wakes the actor. During its own run this only sets a note.
    pub(super) unsafe fn wake(header: NonNull<Header>) {
        if run::note(as_run(header), run::WOKEN) {
            return;
        }
        // SAFETY: (CELL-1) and the caller's reference.
        if let Wake::Actor = unsafe { Self::at(header) }.mailbox.state.wake() {
            // SAFETY: (CELL-2) the caller's reference; the cell was made scheduled just now.
            unsafe { Self::schedule(header) };
        }
    }

    pub(super) unsafe fn schedule(header: NonNull<Header>) {
        // SAFETY: (CELL-2) the caller's reference; (RUNNABLE-1) the caller made the cell scheduled.
        unsafe {
            let runnable = Runnable::from_cell(header);
            Self::of(header).executor.schedule(runnable, false);
        }
    }

    pub(super) unsafe fn stop(header: NonNull<Header>) {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::at(header) }.close();
    }

    pub(super) unsafe fn cancel(header: NonNull<Header>) {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::at(header) }.terminate(Termination::Cancelled);
    }

    pub(super) unsafe fn refuse(header: NonNull<Header>) {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::at(header) }.refuse();
    }

    pub(super) unsafe fn info(header: NonNull<Header>) -> TaskInfo {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::at(header) }.info()
    }

    pub(super) unsafe fn undelivered(header: NonNull<Header>, messages: usize) {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::of(header) }.executor.undelivered(messages);
    }

    pub(super) unsafe fn report(header: NonNull<Header>, fault: &Fault, part: FaultyPart) {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::of(header) }.report_to_executor(fault, part);
    }

    pub(super) unsafe fn restarted(
        header: NonNull<Header>,
        incarnation: u64,
        fault: Option<&Fault>,
    ) {
        // SAFETY: (CELL-1) and the caller's reference.
        let front = unsafe { Self::of(header) };
        front
            .executor
            .restarted(&front.core.info(), incarnation, fault);
    }

    pub(super) unsafe fn trace(header: NonNull<Header>, event: MessageEvent) {
        // SAFETY: (CELL-1) and the caller's reference.
        let front = unsafe { Self::of(header) };
        front.executor.trace(front.core.info(), event);
    }

    pub(super) unsafe fn tracer(header: NonNull<Header>, f: WithTracer<'_>) {
        // SAFETY: (CELL-1) and the caller's reference.
        if let Some(tracer) = unsafe { Self::of(header) }.executor.tracer() {
            f(tracer);
        }
    }

    pub(super) unsafe fn delivery(header: NonNull<Header>, deed: Deed) -> Delivery {
        // SAFETY: (CELL-1) and the caller's reference.
        let to = Held::from(unsafe { Self::at(header) });
        match deed {
            Deed::Message(message) => {
                // SAFETY: the caller has given the message away.
                let message = unsafe { message.cast::<M>().read() };
                let from = to.mailbox.is_traced().then(traced::sender);
                Box::new(move || to.arrive(message, from))
            }
            Deed::Close => Box::new(move || to.at().close()),
            // SAFETY: the caller has given the address away.
            Deed::Leave => Box::new(move || unsafe { to.at().remove_sender_now() }),
        }
    }

    pub(super) unsafe fn look(header: NonNull<Header>) -> Look {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::at(header) }.look()
    }

    pub(super) unsafe fn process(header: NonNull<Header>) -> Process {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::of(header) }.executor.process()
    }

    /// Reports a fault that no join receives to the executor.
    pub(super) fn report_to_executor(&self, fault: &Fault, part: FaultyPart) {
        let (name, id) = (self.core.name(), Some(self.core.header.id()));
        self.executor.report(&UnhandledFault {
            name,
            id,
            fault,
            is_source: part == FaultyPart::Source,
            is_on_undelivered: part == FaultyPart::OnUndelivered,
        });
    }

    /// Returns the fault of an actor that was terminated.
    pub(super) fn fault(&self, termination: Termination, begun: bool) -> Fault {
        match termination {
            _ if !begun && self.executor.is_closing() => Fault::NotStarted,
            Termination::Killed => Fault::Killed,
            Termination::Cancelled if begun => Fault::Cancelled,
            Termination::Cancelled => Fault::NotStarted,
        }
    }

    /// Notifies the observer of the end, before the future is dropped.
    pub(super) fn completed(&self) {
        if self.executor.is_observed() {
            self.executor.completed(&self.core.info());
        }
    }

    /// Settles the replies that were lost while the turn unwound, because of this fault.
    #[cold]
    pub(super) fn settle_kept(&self, header: NonNull<Header>, fault: Option<&Fault>) {
        let detail = match fault {
            Some(Fault::Panicked(panic)) => {
                let text = panic.text().unwrap_or_default().to_owned();
                let cause = AskCause::Panicked(text);
                Some(AskDetail::new(Some(self.core.info()), cause))
            }
            _ => None,
        };
        loss::settle_kept(as_run(header), detail);
    }
}

/// Returns how many messages a turn may handle, how many more if nothing else waits, and when it
/// began, if it is timed.
#[cold]
#[inline(never)]
pub(super) fn pace(quota: Quota, batch: u32) -> (u32, u32, Instant) {
    let begun = if quota.is_timed() {
        Instant::now()
    } else {
        Instant::ZERO
    };
    (batch.min(quota.messages()), quota.more(), begun)
}
