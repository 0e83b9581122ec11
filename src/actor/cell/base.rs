//! The base of a cell: its core and its executor, at the same place whatever the future is.
//!
//! What needs no more is compiled once for the actors of one message type on one kind of executor,
//! and not for each future.
#![expect(
    unsafe_code,
    reason = "the base of one allocation seen through several types; see CELL-1 in cell.rs"
)]

use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::NonNull;

use crate::actor::context::Context;
use crate::actor::core::{ActorOptions, Core, CoreArc, CoreRef};
use crate::actor::lifecycle::Completed;
use crate::actor::undelivered::detail_about;
use crate::error::{AskCause, End, Fault};
use crate::info::TaskInfo;
use crate::mailbox::{Batch, LabelFn, RunOutcome, RunStart, Termination, Wake};
use crate::sync::atomic::Ordering;
use crate::sync::global::{AtomicU64, Ordering::Relaxed};
use crate::task::run::{self, CurrentTurn};
use crate::task::{
    ActorExecutor, Delivery, Ending, Header, Look, NotedWait, NotedWaits, Runnable, SenderAction,
    TaskHooks, VTable, WaitsFor, as_run, loss, take_waits,
};
use crate::tracer::Subject;

#[repr(C)]
pub(super) struct Base<M, H> {
    pub(super) core: Core<M>,
    pub(super) executor: H,
    /// The number of messages that the actor has handled. Only its run writes it, so a step is a load
    /// and a store.
    pub(super) messages: AtomicU64,
}

impl<M, H> Base<M, H>
where
    M: Send + 'static,
    H: ActorExecutor,
{
    // -- the creation -------------------------------------------------------------------------

    /// Writes the base of a new cell.
    ///
    /// # Safety
    /// The memory is for a base. It is the first part of a cell with this table.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) unsafe fn write(
        target: *mut Self,
        vtable: &'static VTable,
        executor: H,
        options: ActorOptions<M>,
    ) {
        let core = Core::new(vtable, executor.marks(), options);
        // SAFETY: guaranteed by the caller.
        unsafe {
            target.write(Base {
                core,
                executor,
                messages: AtomicU64::new(0),
            });
        }
    }

    /// Schedules a new cell. Returns false if the executor is shutting down.
    ///
    /// # Safety
    /// (CELL-1) The core is of a new cell with such a base, whose references the caller holds.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) unsafe fn launch(
        core: NonNull<Core<M>>,
        location: &'static Location<'static>,
        label: Option<LabelFn<M>>,
    ) -> bool {
        // SAFETY: guaranteed by the caller.
        let (header, base) = unsafe { (Core::header_of(core), core.cast::<Self>().as_ref()) };
        if !base.executor.enter(header) {
            return false;
        }
        if base.core.header.is_marked() {
            // SAFETY: (CELL-2) the references of the caller.
            base.note(unsafe { CoreRef::new(core) }, location, label);
        }
        // SAFETY: (RUNNABLE-1) the one runnable of a new cell; (RUNNABLE-3, CELL-4) it has not ended.
        let runnable = unsafe { Runnable::from_cell(header) };
        // The caller's references keep the cell allocated, however soon it ends.
        base.executor.schedule(runnable, false);
        true
    }

    /// Notes where a new actor was spawned, and traces that. Out of the way of what is not marked.
    #[cold]
    #[inline(never)]
    fn note(
        &self,
        core: CoreRef<'_, M>,
        location: &'static Location<'static>,
        label: Option<LabelFn<M>>,
    ) {
        let has_long_turns = core.mailbox.has_long_turns();
        (self.executor.hooks()).spawned(&core.info(), location, has_long_turns);
        if core.header.is_traced() {
            core.created(label);
        }
    }

    /// Ends a cell that the executor has refused.
    ///
    /// # Safety
    /// (CELL-1) The core is of such a cell, which is not shared.
    #[cold]
    pub(super) unsafe fn end_refused(core: NonNull<Core<M>>) {
        // SAFETY: (CELL-2) guaranteed by the caller.
        let core: CoreRef<'_, M> = unsafe { CoreRef::new(core) };
        core.mailbox.forget_context();
        core.finish_undelivered(End::NotStarted, Batch::EMPTY);
        core.mailbox.end(End::NotStarted);
        // An ended cell holds no reference to itself (CELL-4). Relaxed: it is not shared yet.
        core.header.refs.store(2, Ordering::Relaxed);
    }

    /// Returns the base with this header.
    ///
    /// # Safety
    /// (CELL-1) It is the header of a cell with such a base, and a reference is held during `'a`.
    pub(super) unsafe fn of<'a>(header: NonNull<Header>) -> &'a Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Core::<M>::of(header).cast().as_ref() }
    }

    /// Returns the core with this header.
    ///
    /// # Safety
    /// As in `of`.
    pub(super) unsafe fn at<'a>(header: NonNull<Header>) -> CoreRef<'a, M> {
        // SAFETY: guaranteed by the caller.
        unsafe { CoreRef::new(Core::of(header)) }
    }

    // -- the functions of the header's table --------------------------------------------------

    /// Wakes the actor. During its own run this only sets a note.
    ///
    /// # Safety
    /// As [`VTable::wake`].
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

    /// # Safety
    /// As [`VTable::schedule`].
    pub(super) unsafe fn schedule(header: NonNull<Header>) {
        // SAFETY: (CELL-2) the caller's reference; (RUNNABLE-1) the caller made the cell scheduled.
        unsafe {
            let runnable = Runnable::from_cell(header);
            Self::of(header).executor.schedule(runnable, false);
        }
    }

    /// # Safety
    /// As [`VTable::end`].
    pub(super) unsafe fn end_by(header: NonNull<Header>, ending: Ending) {
        // SAFETY: (CELL-1) and the caller's reference.
        let core = unsafe { Self::at(header) };
        match ending {
            Ending::Stop => core.close(),
            Ending::Cancel => core.terminate(Termination::Cancelled),
            Ending::Refuse => core.refuse(),
        }
    }

    /// # Safety
    /// As [`VTable::info`].
    pub(super) unsafe fn info(header: NonNull<Header>) -> TaskInfo {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::at(header) }.info()
    }

    /// # Safety
    /// As [`VTable::subject`].
    pub(super) unsafe fn subject(header: NonNull<Header>) -> Subject {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::at(header) }.subject()
    }

    /// # Safety
    /// As [`VTable::delivery`].
    pub(super) unsafe fn delivery(header: NonNull<Header>, action: SenderAction) -> Delivery {
        // SAFETY: (CELL-1) and the caller's reference.
        let to = CoreArc::from(unsafe { Self::at(header) });
        match action {
            SenderAction::Message(message) => {
                // SAFETY: the caller has given the message away.
                let message = unsafe { message.cast::<M>().read() };
                let from = to.mailbox.is_traced().then(|| to.at().sender());
                Box::new(move || to.arrive::<false>(message, from))
            }
            SenderAction::Urgent(message) => {
                // SAFETY: the caller has given the message away.
                let message = unsafe { message.cast::<M>().read() };
                let from = to.mailbox.is_traced().then(|| to.at().sender());
                Box::new(move || to.arrive::<true>(message, from))
            }
            SenderAction::Stop => Box::new(move || to.at().close()),
            // SAFETY: the caller has given the address away.
            SenderAction::Leave => Box::new(move || unsafe { to.at().remove_sender_now() }),
        }
    }

    /// # Safety
    /// As [`VTable::look`].
    pub(super) unsafe fn look(header: NonNull<Header>) -> Look {
        // SAFETY: (CELL-1) and the caller's reference.
        let (core, base) = unsafe { (Self::at(header), Self::of(header)) };
        let mut look = core.look();
        if core.header.is_counted() {
            // Relaxed: a number, which publishes nothing.
            look.messages = base.messages.load(Relaxed);
            look.turns = core.mailbox.turns();
            look.highest = match (core.mailbox.highest(look.mailbox), look.messages) {
                // It has received nothing, or its first message in this turn.
                (1, 0) => look.mailbox,
                (highest, _) => highest,
            };
        }
        look
    }

    /// # Safety
    /// As [`VTable::hooks`].
    pub(super) unsafe fn hooks(header: NonNull<Header>) -> NonNull<dyn TaskHooks> {
        // SAFETY: (CELL-1) and the caller's reference.
        unsafe { Self::of(header) }.executor.hooks().into()
    }

    // -- the run: a turn, or the drop of a terminated cell ---------------------------------------

    /// Begins the run that drops a cell instead.
    pub(super) fn begin_last(&self) -> (H, Termination) {
        let termination = match self.core.mailbox.state.begin() {
            RunStart::Drop(termination) => termination,
            RunStart::Usual | RunStart::StoppedNow => Termination::Cancelled,
        };
        (self.executor.clone(), termination)
    }

    /// Creates the context of the actor.
    ///
    /// # Safety
    /// (CELL-1) The header is of this cell.
    pub(super) unsafe fn context(&self, header: NonNull<Header>) -> Context<M> {
        // SAFETY: guaranteed by the caller; (CELL-2) the borrowed cell is held.
        Context::new(CoreArc::from(unsafe { Self::at(header) }))
    }

    /// Ends the turn of an actor that is pending. Returns how it was terminated, if it was: then it
    /// is to be ended now. Otherwise the cell is not the caller's any more, and may be freed before
    /// this returns.
    ///
    /// # Safety
    /// (CELL-1) It is the header of a cell with such a base. (CELL-3) Called by the run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) unsafe fn rest(header: NonNull<Header>, turn: &CurrentTurn) -> Option<Termination> {
        // SAFETY: guaranteed by the caller; (CELL-4) the cell has not ended.
        let base = unsafe { Self::of(header) };
        let notes = turn.notes();
        let (receiving, woken) = (notes & run::RECEIVING != 0, notes & run::WOKEN != 0);
        let state = &base.core.mailbox.state;
        match state.rest(receiving, woken) {
            RunOutcome::Asleep => None,
            RunOutcome::Again => {
                // SAFETY: (EXECUTOR-1) a copy that is not dropped: another thread may free the cell
                // before `schedule` returns.
                let executor =
                    ManuallyDrop::new(unsafe { std::ptr::read(&raw const base.executor) });
                // SAFETY: (RUNNABLE-1) the cell was made scheduled again; (RUNNABLE-3, CELL-4) it
                // has not ended.
                executor.schedule(unsafe { Runnable::from_cell(header) }, true);
                None
            }
            RunOutcome::Drop => Some(state.termination().unwrap_or(Termination::Cancelled)),
        }
    }

    /// Passes on what the turn has noted of the actor's waits, if it does not receive.
    ///
    /// Has an ask of the actor to itself judged, if it waits for nothing else.
    #[cold]
    #[inline(never)]
    pub(super) fn note_waits(&self, header: NonNull<Header>, turn: &CurrentTurn) {
        // Without `NOTED`, notes under this pointer are of a cell that was here before.
        let waits = match turn.notes() & run::NOTED {
            0 => NotedWaits::NONE,
            _ => take_waits(header.addr().get()),
        };
        if turn.notes() & (run::RECEIVING | run::WOKEN) != 0 {
            return;
        }
        let own = self.core.header.id();
        let is_own = |wait: &NotedWait| wait.for_what == WaitsFor::Answer && wait.to == own;
        let asks = waits.as_slice();
        if !asks.is_empty() && asks.iter().all(is_own) {
            let look = self.core.look();
            let is_known = look.others as usize == asks.len();
            let may_hang = is_known && !look.is_receiving && look.mailbox > 0;
            let (hooks, actor) = (self.executor.hooks(), self.core.info());
            if hooks.asks_itself(&actor, may_hang, turn.handled() > 0) {
                // SAFETY: (CELL-4) the cell has not ended, and this is its run.
                unsafe { Header::waker(header) }.wake_by_ref();
            }
        }
        self.executor.note_waits(header, waits);
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

    /// Completes the replies that were lost while the turn unwound, because of this fault. Their
    /// askers already find how the actor ends.
    #[inline]
    pub(super) fn complete_lost(
        &self,
        header: NonNull<Header>,
        turn: &CurrentTurn,
        fault: Option<&Fault>,
    ) {
        if let Some(Fault::Panicked(panic)) = fault {
            let text = panic.text().unwrap_or_default();
            self.core.mailbox.fail(text.to_owned());
        }
        if turn.notes() & run::LOST != 0 {
            self.complete_lost_for(header, fault);
        }
    }

    #[cold]
    #[inline(never)]
    fn complete_lost_for(&self, header: NonNull<Header>, fault: Option<&Fault>) {
        let detail = match fault {
            Some(Fault::Panicked(panic)) => {
                let text = panic.text().unwrap_or_default().to_owned();
                let cause = AskCause::Panicked(text);
                Some(detail_about(self.core.info(), cause))
            }
            _ => None,
        };
        loss::complete_kept(as_run(header), detail);
    }
}

/// Notifies the observer of the end, before the future is dropped.
impl<M, H> Completed for Base<M, H>
where
    M: Send + 'static,
    H: ActorExecutor,
{
    fn completed(&self) {
        if self.executor.is_observed() {
            self.executor.hooks().completed(&self.core.info());
        }
    }
}
