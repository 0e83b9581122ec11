//! An actor's cell: one allocation for its header, its mailbox and its future.
//!
//! Addresses and the context see the core, [`Core`], which does not know the future. They reach
//! the rest through the header's table. Every holder of a pointer counts in the header's `refs`;
//! all addresses together count once.
//!
//! # Invariants
//! - CELL-1: a pointer to the core is a pointer to the cell, and valid for all of it. The header
//!   lies at the same offset whatever the types are (`repr(C)`). No such pointer is made from a
//!   reference to a part.
//! - CELL-2: a holder of a reference may use the core; the last one frees the cell.
//! - CELL-3: a run of the cell, until `rest` or `end`, has exclusive access to the
//!   lifecycle. After `end`, the task that takes or drops the result has it.
//! - CELL-4: a cell that has not ended holds a reference to itself, given up as the last step of
//!   its end. So a runnable needs none.
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see CELL-1 to CELL-4"
)]

mod base;
mod counting;
mod end;
#[cfg(all(test, greenroom_loom))]
mod loom;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::any::type_name;
use std::future::Future;
use std::panic::Location;
use std::ptr::NonNull;
use std::task::Poll;

use base::Base;

use super::context::Context;
use super::core::{ActorOptions, Core};
use super::lifecycle::{Large, Lifecycle};
use super::reader::Reader;
use crate::blocks;
use crate::contain::drop_result;
use crate::error::Fault;
use crate::info::TypeNames;
use crate::mailbox::Termination;
use crate::sync::UnsafeCell;
use crate::task::{ActorExecutor, Header, VTable, is_large};

/// What only this type can do is little, since each actor has a copy of it: the rest is in [`Base`].
#[repr(C)]
struct ActorCell<M, H, A, Fut, T> {
    base: Base<M, H>,
    lifecycle: UnsafeCell<Lifecycle<CellParts<M, A, Fut>, Fut, T>>,
    /// Used by the context alone.
    reader: UnsafeCell<Reader<M>>,
}

/// An actor, and the function that turns it and its context into a future.
pub(super) type CellParts<M, A, Fut> = (A, fn(A, Context<M>) -> Fut);

/// Creates and schedules a cell, which comes with one address and the right to join, each with a
/// reference.
///
/// If the executor is shutting down, the actor never starts and is returned. Its cell is closed, and
/// joins with `NotStarted`.
///
/// The executor keeps anything that is not `Send` on its thread.
pub(super) fn new<M, H, A, Fut>(
    executor: H,
    parts: CellParts<M, A, Fut>,
    options: ActorOptions<M>,
    spawned_at: &'static Location<'static>,
) -> (NonNull<Core<M>>, Option<A>)
where
    M: Send + 'static,
    H: ActorExecutor,
    A: 'static,
    Fut: Future + 'static,
{
    if const { is_large::<A>() || is_large::<Fut>() } {
        let parts: CellParts<M, _, _> = (Box::new(parts), |parts, cx| {
            let (actor, begin) = *parts;
            Large::<A, Fut>::new(begin(actor, cx))
        });
        let (core, refused) = ActorCell::create(executor, parts, options, spawned_at);
        return (core, refused.map(|parts| parts.0));
    }
    ActorCell::create(executor, parts, options, spawned_at)
}

impl<M, H, A, Fut> ActorCell<M, H, A, Fut, Fut::Output>
where
    M: Send + 'static,
    H: ActorExecutor,
    A: 'static,
    Fut: Future + 'static,
{
    fn create(
        executor: H,
        parts: CellParts<M, A, Fut>,
        options: ActorOptions<M>,
        spawned_at: &'static Location<'static>,
    ) -> (NonNull<Core<M>>, Option<A>) {
        let label = options.label;
        let cell = blocks::room::<Self>();
        let cell_ptr = cell.as_ptr();
        // SAFETY: memory for a cell. Every field is written, in place: most of a waiting lifecycle
        // is unused space for the future.
        unsafe {
            Base::write(&raw mut (*cell_ptr).base, Self::VTABLE, executor, options);
            (&raw mut (*cell_ptr).reader).write(UnsafeCell::new(Reader::EMPTY));
            (&raw mut (*cell_ptr).lifecycle).write(UnsafeCell::new(Lifecycle::Waiting(parts)));
        }
        let core = cell.cast::<Core<M>>();
        // SAFETY: (CELL-2) the caller's references, which it receives from this function.
        if unsafe { Base::<M, H>::launch(core, spawned_at, label) } {
            return (core, None);
        }
        // SAFETY: (CELL-2) as above; (CELL-3) the cell is not shared, and never runs.
        unsafe {
            let (actor, _) = (*cell.as_ref().life()).refuse();
            Base::<M, H>::end_refused(core);
            (core, Some(actor))
        }
    }

    const VTABLE: &'static VTable = &VTable {
        run: Self::run,
        discard: Self::discard,
        free: Self::free,
        take_result: Self::take_result,
        reader: Self::reader,
        types: TypeNames::of::<Fut, A>,
        schedule: Base::<M, H>::schedule,
        wake: Base::<M, H>::wake,
        end: Base::<M, H>::end_by,
        info: Base::<M, H>::info,
        subject: Base::<M, H>::subject,
        delivery: Base::<M, H>::delivery,
        look: Base::<M, H>::look,
        hooks: Base::<M, H>::hooks,
    };

    /// Returns the cell with this header.
    ///
    /// # Safety
    /// (CELL-1) It is the header of a cell with this table, and a reference is held during `'a`.
    unsafe fn of<'a>(header: NonNull<Header>) -> &'a Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Core::<M>::of(header).cast().as_ref() }
    }

    /// Returns the lifecycle, which is the caller's (CELL-3).
    fn life(&self) -> *mut Lifecycle<CellParts<M, A, Fut>, Fut, Fut::Output> {
        self.lifecycle.with_mut(|life| life)
    }

    /// # Safety
    /// As [`VTable::run`].
    unsafe fn run(header: NonNull<Header>) {
        // SAFETY: (CELL-1, CELL-4) the cell has not ended.
        let cell = unsafe { Self::of(header) };
        // SAFETY: (CELL-3) this is the run.
        let life = unsafe { &mut *cell.life() };
        // SAFETY: (CELL-1, RUN-3) the header and the reader are this cell's.
        let begun = unsafe { cell.base.begin(header, Self::reader(header), life.quota()) };
        let (turn, allowed) = match begun {
            Ok(begun) => begun,
            // SAFETY: (CELL-3) this is the run.
            Err(termination) => return unsafe { Self::terminate(header, termination) },
        };
        // SAFETY: (RUN-1, CELL-4) the cell ends only after the turn; (RUN-2) the guard is dropped
        // below.
        let entered = unsafe { turn.enter() };
        // SAFETY: (CELL-2) the waker is used while the cell is held; (LIFECYCLE-1) the cell is never
        // moved.
        let polled = unsafe {
            let waker = Header::waker(header);
            let mut cx = std::task::Context::from_waker(&waker);
            let begin =
                |(actor, begin): CellParts<M, A, Fut>| begin(actor, cell.base.context(header));
            life.poll(begin, &cell.base, &mut cx)
        };
        drop(entered);
        let Poll::Ready(result) = polled else {
            // SAFETY: (CELL-1) the header is this cell's; (CELL-3) this is the run.
            if let Some(quota) = unsafe { cell.base.count(header, &turn, allowed) } {
                life.set_quota(quota);
            }
            // SAFETY: (CELL-3) this is the run.
            if let Some(termination) = unsafe { Base::<M, H>::rest(header, &turn) } {
                // SAFETY: (CELL-3) this is the run.
                unsafe { Self::terminate(header, termination) };
            }
            return;
        };
        cell.base
            .complete_lost(header, &turn, result.as_ref().err());
        // SAFETY: (CELL-3) this is the run.
        unsafe { Self::end(header, result) };
    }

    /// # Safety
    /// As [`VTable::discard`].
    unsafe fn discard(header: NonNull<Header>) {
        // SAFETY: (CELL-1, CELL-4) the cell has not ended.
        let base = unsafe { &Self::of(header).base };
        let (executor, termination) = base.begin_last();
        // SAFETY: (CELL-3) this replaces a run.
        unsafe { Self::terminate(header, termination) };
        executor.discarded();
    }

    /// Ends an actor that was terminated.
    ///
    /// # Safety
    /// As in `end`.
    #[cold]
    unsafe fn terminate(header: NonNull<Header>, termination: Termination) {
        // SAFETY: (CELL-4) the cell has not ended; (CELL-3) this is the run.
        unsafe {
            let cell = Self::of(header);
            let fault = cell.base.fault(termination, (*cell.life()).has_begun());
            Self::end(header, Err(fault));
        }
    }

    /// Ends the actor: drops its state on this thread, and keeps or reports its result.
    ///
    /// # Safety
    /// (CELL-1, CELL-4) It is the header of a cell with this table that has not ended. (CELL-3) The
    /// run calls this as its last step.
    unsafe fn end(header: NonNull<Header>, result: Result<Fut::Output, Fault>) {
        // SAFETY: (CELL-4) the cell's own reference is given up in the last line; (CELL-3) the
        // lifecycle is the run's until then.
        unsafe {
            let cell = Self::of(header);
            match &result {
                Ok(_) => cell.base.drop_state(header, Self::clear),
                Err(fault) => {
                    let begun = (*cell.life()).has_begun();
                    cell.base
                        .drop_state_after(header, Self::clear, fault, begun);
                }
            }
            let name = type_name::<Fut::Output>;
            let (end, messages) = cell.base.close(header, result.as_ref().err(), name);
            (*cell.life()).keep(result);
            Base::<M, H>::leave(header, end, messages);
        }
    }

    /// Drops the future, or the actor that did not begin.
    ///
    /// # Safety
    /// (CELL-3) Called by the run.
    unsafe fn clear(header: NonNull<Header>) {
        // SAFETY: guaranteed by the caller.
        unsafe { (*Self::of(header).life()).clear() };
    }

    /// # Safety
    /// As [`VTable::take_result`].
    unsafe fn take_result(header: NonNull<Header>, out: *mut ()) {
        // SAFETY: (CELL-1) and the caller's reference.
        let cell = unsafe { Self::of(header) };
        // SAFETY: (CELL-3) the caller guarantees that the cell has ended, and owns the result.
        let result = unsafe { (*cell.life()).take_result() };
        if let Some(out) = NonNull::new(out) {
            // SAFETY: (CELL-3) by the caller's promise, it points to such an option.
            return unsafe {
                out.cast::<Option<Result<Fut::Output, Fault>>>()
                    .write(result)
            };
        }
        match result {
            Some(Ok(value)) => drop_result(value),
            Some(Err(fault)) => cell.base.drop_fault(fault),
            None => {}
        }
    }

    /// # Safety
    /// As [`VTable::free`].
    unsafe fn free(header: NonNull<Header>) {
        // SAFETY: (CELL-2) the last reference; the memory is of `room`, in `create`.
        unsafe { blocks::discard(Core::<M>::of(header).cast::<Self>()) };
    }

    /// # Safety
    /// As [`VTable::reader`].
    unsafe fn reader(header: NonNull<Header>) -> NonNull<()> {
        // SAFETY: (CELL-1) and the caller's reference.
        NonNull::from(unsafe { &Self::of(header).reader }).cast()
    }
}
