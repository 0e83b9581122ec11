//! An actor's cell: one allocation for its header, its mailbox and its future.
//!
//! Addresses and the context see the front, [`Core`], which does not know the future. They reach
//! the rest through the header's table. Every holder of a pointer counts in the header's `refs`;
//! all addresses together count once.
//!
//! # Invariants
//! - CELL-1: a pointer to the core is a pointer to the cell, and valid for all of it. The header
//!   lies at the same offset whatever the types are (`repr(C)`). No such pointer is made from a
//!   reference to a part.
//! - CELL-2: a holder of a reference may use the core; the last one frees the cell.
//! - CELL-3: a run of the cell, from `begin` to `rest` or `end`, has exclusive access to the
//!   lifecycle. After `end`, the task that takes or drops the result has it.
//! - CELL-4: a cell that has not ended holds a reference to itself, given up as the last step of
//!   its end. So a runnable needs none.
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see CELL-1 to CELL-4"
)]

mod end;
mod front;
#[cfg(all(test, greenroom_loom))]
mod loom;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::any::type_name;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::NonNull;
use std::task::Poll;

use front::Front;

use super::context::Context;
use super::core::{ActorOptions, At, Core, Held};
use super::lifecycle::{Large, Lifecycle};
use super::reader::Reader;
use crate::blocks;
use crate::error::{End, Fault};
use crate::instant::Instant;
use crate::mailbox::{Batch, RunOutcome, Termination};
use crate::sync::atomic::Ordering;
use crate::sync::{UnsafeCell, acquire, mutant};
use crate::task::quota::Quota;
use crate::task::run::{self, CurrentRun};
use crate::task::{ActorExecutor, Header, Runnable, VTable, as_run, is_large};

#[repr(C)]
struct Cell<M, H, A, Fut, T> {
    front: Front<M, H>,
    lifecycle: UnsafeCell<Lifecycle<Parts<M, A, Fut>, Fut, T>>,
    /// Used by the context alone.
    reader: UnsafeCell<Reader<M>>,
}

/// An actor, and the function that turns it and its context into a future.
pub(super) type Parts<M, A, Fut> = (A, fn(A, Context<M>) -> Fut);

/// Creates and schedules a cell, which comes with one address and the right to join, each with a
/// reference. Returns the parts if the executor is shutting down.
///
/// The executor keeps anything that is not `Send` on its thread.
#[track_caller]
pub(super) fn new<M, H, A, Fut>(
    executor: H,
    parts: Parts<M, A, Fut>,
    options: ActorOptions<M>,
) -> Result<NonNull<Core<M>>, (H, A, ActorOptions<M>)>
where
    M: Send + 'static,
    H: ActorExecutor,
    A: 'static,
    Fut: Future + 'static,
{
    if const { is_large::<A>() || is_large::<Fut>() } {
        let parts: Parts<M, _, _> = (Box::new(parts), |parts, cx| {
            let (actor, begin) = *parts;
            Large::<A, Fut>::new(begin(actor, cx))
        });
        let cell = new_inline(executor, parts, options);
        return cell.map_err(|(executor, parts, options)| (executor, parts.0, options));
    }
    new_inline(executor, parts, options)
}

#[track_caller]
fn new_inline<M, H, A, Fut>(
    executor: H,
    parts: Parts<M, A, Fut>,
    options: ActorOptions<M>,
) -> Result<NonNull<Core<M>>, (H, A, ActorOptions<M>)>
where
    M: Send + 'static,
    H: ActorExecutor,
    A: 'static,
    Fut: Future + 'static,
{
    let raw = Cell::<M, H, A, Fut, Fut::Output>::put(executor, options, Lifecycle::Waiting(parts));
    // SAFETY: (CELL-2) this function owns the cell until it is scheduled.
    let cell = unsafe { raw.as_ref() };
    // SAFETY: (CELL-2) this function owns the cell until it is scheduled.
    let header = unsafe { Core::<M>::header_of(raw.cast()) };
    if !cell.front.executor.enter(header) {
        // SAFETY: the cell was created just now and is not shared.
        return Err(unsafe { blocks::take_out(raw) }.take_apart());
    }
    if cell.front.core.header.is_marked() {
        cell.front
            .executor
            .spawned(|| cell.front.core.info(), Location::caller());
        if cell.front.core.header.is_traced() {
            // SAFETY: (CELL-2) the references of the caller.
            unsafe { At::<M>::new(raw.cast()) }.created();
        }
    }
    // SAFETY: (RUNNABLE-1) the one runnable of a new cell; (RUNNABLE-3, CELL-4) it has not ended.
    let runnable = unsafe { Runnable::from_cell(header) };
    // The caller's references keep the cell allocated, however soon it ends.
    cell.front.executor.schedule(runnable, false);
    Ok(raw.cast())
}

/// Creates an actor that never starts: closed, ended, and joined with `NotStarted`. Its function was
/// dropped. It is the cell that `new` creates, so that no other one is compiled for the actor.
pub(super) fn stillborn<M, H, A, Fut>(executor: H, options: ActorOptions<M>) -> NonNull<Core<M>>
where
    M: Send + 'static,
    H: ActorExecutor,
    A: 'static,
    Fut: Future + 'static,
{
    if const { is_large::<A>() || is_large::<Fut>() } {
        return stillborn_inline::<_, _, Box<Parts<M, A, Fut>>, Large<A, Fut>>(executor, options);
    }
    stillborn_inline::<_, _, A, Fut>(executor, options)
}

fn stillborn_inline<M, H, A, Fut>(executor: H, options: ActorOptions<M>) -> NonNull<Core<M>>
where
    M: Send + 'static,
    H: ActorExecutor,
    A: 'static,
    Fut: Future + 'static,
{
    let lifecycle = Lifecycle::Ended(Err(Fault::NotStarted));
    let raw = Cell::<M, H, A, Fut, Fut::Output>::put(executor, options, lifecycle);
    // SAFETY: (CELL-2) the cell is not shared yet.
    let core: At<'_, M> = unsafe { At::new(raw.cast()) };
    core.mailbox.forget_context();
    core.finish_undelivered(End::NotStarted, Batch::EMPTY);
    core.mailbox.end(End::NotStarted);
    // An ended cell holds no reference to itself (CELL-4). Relaxed: it is not shared yet.
    core.header.refs.store(2, Ordering::Relaxed);
    raw.cast()
}

impl<M, H, A, Fut> Cell<M, H, A, Fut, Fut::Output>
where
    M: Send + 'static,
    H: ActorExecutor,
    A: 'static,
    Fut: Future + 'static,
{
    /// Writes a cell in place: most of a waiting lifecycle is unused space for the future.
    fn put(
        executor: H,
        options: ActorOptions<M>,
        lifecycle: Lifecycle<Parts<M, A, Fut>, Fut, Fut::Output>,
    ) -> NonNull<Self> {
        let core = Core::new(Self::VTABLE, executor.marks(), options);
        let front = Front { core, executor };
        let cell = blocks::room::<Self>();
        let place = cell.as_ptr();
        // SAFETY: memory for a cell; every field is written.
        unsafe {
            (&raw mut (*place).front).write(front);
            (&raw mut (*place).lifecycle).write(UnsafeCell::new(lifecycle));
            (&raw mut (*place).reader).write(UnsafeCell::new(Reader::EMPTY));
        }
        cell
    }

    const VTABLE: &'static VTable = &VTable {
        run: Self::run,
        discard: Self::discard,
        release: Self::release,
        take_result: Self::take_result,
        drop_result: Self::drop_result,
        // SAFETY: (CELL-1) and the caller's reference.
        subject: |cell| unsafe { Self::at(cell) }.subject_of(type_name::<Fut>(), type_name::<A>()),
        // SAFETY: (CELL-1) and the caller's reference.
        reader: |cell| unsafe { Self::of(cell).as_ref() }.reader_pointer(),
        schedule: Front::<M, H>::schedule,
        wake: Front::<M, H>::wake,
        stop: Front::<M, H>::stop,
        cancel: Front::<M, H>::cancel,
        refuse: Front::<M, H>::refuse,
        info: Front::<M, H>::info,
        undelivered: Front::<M, H>::undelivered,
        report: Front::<M, H>::report,
        restarted: Front::<M, H>::restarted,
        trace: Front::<M, H>::trace,
        tracer: Front::<M, H>::tracer,
        delivery: Front::<M, H>::delivery,
        look: Front::<M, H>::look,
        process: Front::<M, H>::process,
    };

    /// Returns the cell with this header.
    ///
    /// # Safety
    /// (CELL-1) It is the header of a cell with this table.
    unsafe fn of(header: NonNull<Header>) -> NonNull<Self> {
        // SAFETY: guaranteed by the caller.
        unsafe { Core::<M>::of(header) }.cast()
    }

    /// Returns the core with this header.
    ///
    /// # Safety
    /// As in `of`; a reference is held during `'a`.
    unsafe fn at<'a>(header: NonNull<Header>) -> At<'a, M> {
        // SAFETY: guaranteed by the caller.
        unsafe { At::new(Core::of(header)) }
    }

    fn reader_pointer(&self) -> NonNull<()> {
        NonNull::from(&self.reader).cast()
    }

    /// Takes apart a cell that was never shared.
    fn take_apart(self) -> (H, A, ActorOptions<M>) {
        let Cell {
            front: Front { core, executor },
            lifecycle,
            ..
        } = self;
        let lifecycle = lifecycle.into_inner();
        let Lifecycle::Waiting((actor, _)) = lifecycle else {
            unreachable!("it was never run")
        };
        (executor, actor, core.into_options())
    }

    /// # Safety
    /// As [`VTable::run`].
    unsafe fn run(header: NonNull<Header>) {
        // SAFETY: (CELL-1, CELL-4) the cell has not ended.
        let (cell, core) = unsafe { (Self::of(header).as_ref(), Self::at(header)) };
        let terminations = run::terminations();
        if let Some(termination) = core.mailbox.state.begin() {
            // SAFETY: (CELL-3) this is the run.
            return unsafe { Self::end(header, Err(cell.fault(termination))) };
        }
        let waker = core.waker();
        let poll = || {
            cell.lifecycle.with_mut(|life| {
                let mut cx = std::task::Context::from_waker(&waker);
                // SAFETY: (CELL-3) this is the run; (LIFECYCLE-1) the cell is never moved.
                unsafe {
                    (*life).poll(
                        |(actor, begin)| begin(actor, Context::new(Held::from(core))),
                        || cell.front.completed(),
                        &mut cx,
                    )
                }
            })
        };
        let (reader, mut batch) = (cell.reader_pointer(), cell.front.executor.batch());
        // SAFETY: (CELL-3) this is the run.
        let quota = cell.lifecycle.with_mut(|life| unsafe { (*life).quota() });
        let (mut more, mut begun) = (0, Instant::ZERO);
        if quota.is_known() {
            (batch, more, begun) = front::pace(quota, batch);
        }
        // Tracing reports every message, so a traced run takes the slow path for each.
        let terminations = (!core.header.is_traced()).then_some(terminations);
        // SAFETY: (RUN-3) the reader is this cell's; (CELL-4) the cell ends only after the poll.
        let (polled, notes) = unsafe {
            CurrentRun::of_actor(as_run(header), reader, (batch, more), terminations).during(poll)
        };
        if notes & run::SPENT != 0 {
            // SAFETY: (CELL-3) this is the run.
            unsafe { cell.learn(quota, batch, begun) };
        }
        if notes & run::LOST != 0 {
            let fault = match &polled {
                Poll::Ready(result) => result.as_ref().err(),
                Poll::Pending => None,
            };
            cell.front.settle_kept(header, fault);
        }
        let (receiving, woken) = (notes & run::RECEIVING != 0, notes & run::WOKEN != 0);
        match polled {
            // SAFETY: (CELL-3) this is the run.
            Poll::Ready(result) => unsafe { Self::end(header, result) },
            Poll::Pending => match core.mailbox.state.rest(receiving, woken) {
                RunOutcome::Asleep => {}
                RunOutcome::Again => {
                    // SAFETY: (EXECUTOR-1) a copy that is not dropped: another thread may free the
                    // cell before `schedule` returns.
                    let executor = ManuallyDrop::new(unsafe {
                        std::ptr::read(&raw const cell.front.executor)
                    });
                    // SAFETY: (RUNNABLE-1) the cell was made scheduled again; (RUNNABLE-3, CELL-4)
                    // it has not ended.
                    executor.schedule(unsafe { Runnable::from_cell(header) }, true);
                }
                RunOutcome::Drop => {
                    let termination = core
                        .mailbox
                        .state
                        .termination()
                        .unwrap_or(Termination::Cancelled);
                    // SAFETY: (CELL-3) this is the run.
                    unsafe { Self::end(header, Err(cell.fault(termination))) };
                }
            },
        }
    }

    /// Sets the quota of the next turn, after a turn that used up its batch.
    ///
    /// # Safety
    /// (CELL-3) Called by the run.
    #[cold]
    #[inline(never)]
    unsafe fn learn(&self, quota: Quota, batch: u32, begun: Instant) {
        if self.front.executor.is_batch_chosen() {
            return;
        }
        let next = if quota.is_timed() {
            quota.after_timed(batch, begun.elapsed())
        } else {
            quota.after_untimed()
        };
        // SAFETY: guaranteed by the caller.
        self.lifecycle
            .with_mut(|life| unsafe { (*life).set_quota(next) });
    }

    /// # Safety
    /// As [`VTable::discard`].
    unsafe fn discard(header: NonNull<Header>) {
        // SAFETY: (CELL-1, CELL-4) the cell has not ended.
        let cell = unsafe { Self::of(header).as_ref() };
        let executor = cell.front.executor.clone();
        let termination = cell
            .front
            .core
            .mailbox
            .state
            .begin()
            .unwrap_or(Termination::Cancelled);
        // SAFETY: (CELL-3) this replaces a run.
        unsafe { Self::end(header, Err(cell.fault(termination))) };
        executor.discarded();
    }

    /// # Safety
    /// As [`VTable::release`].
    unsafe fn release(header: NonNull<Header>) {
        // SAFETY: (CELL-2) the caller's reference.
        let refs = unsafe { &header.as_ref().refs };
        let order = if mutant("cell_released_relaxed") {
            Ordering::Relaxed
        } else {
            Ordering::Release
        };
        // Release pairs with the fence below: every use of the cell happens before it is freed.
        if refs.fetch_sub(1, order) == 1 {
            if !mutant("cell_freed_without_fence") {
                acquire(|order| refs.load(order));
            }
            // SAFETY: (CELL-2) the last reference; the memory is of `room`, in `put`.
            unsafe { blocks::discard(Self::of(header)) };
        }
    }
}
