//! A plain task's frame: one allocation with its word, its executor and its future, or what that came to.
//!
//! The front, [`Head`], is what wakers and the handle see; they do not know the future. What is behind it is
//! reached through the head's table. Whoever has a pointer counts in the word.
//!
//! # Invariants
//! - TASK-1: a pointer to the head is a pointer to the frame, and to what a runnable begins with (`repr(C)`).
//! - TASK-2: whoever holds a reference may use the head; the last one frees the frame. A task that has not ended
//!   holds one, so its runnable needs none.
//! - TASK-3: the stage and the live index are the run's, from `begin` to `rest` or `end`; after `end` what it came to
//!   is the handle's, or, if there is none, the end's.
//! - TASK-4: the place of the waker is the end's while it is armed, otherwise the handle's; the last one's of all.
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see TASK-1 to TASK-4"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::executor::Executor;
use super::handle::Handle;
use super::head::{self, Entries, Head};
use super::key::Key;
use super::live_index::LiveIndex;
use super::outcome::{Outcome, Unheard};
use super::run::{self, Run};
use super::runnable::{Runnable, Table};
use super::word::Rest;
use crate::blocks;
use crate::contain::{attempt_on, contain};
use crate::sync::UnsafeCell;

#[repr(C)]
struct Frame<H, Fut: Future> {
    head: Head,
    executor: H,
    own: UnsafeCell<Own<Fut>>,
}

/// What is the run's.
struct Own<Fut: Future> {
    live_index: Option<LiveIndex>,
    stage: Stage<Fut>,
}

/// The word says which it is.
union Stage<Fut: Future> {
    future: ManuallyDrop<Fut>,
    outcome: ManuallyDrop<Outcome<Fut::Output>>,
}

/// A new task, scheduled, with the reference that its handle has.
///
/// # Safety
/// From its first poll on, the executor polls and drops the future on one thread only if it is not `Send`.
pub(super) unsafe fn new<H, Fut>(executor: H, future: Fut) -> Handle<Fut::Output>
where
    H: Executor,
    Fut: Future + 'static,
{
    let frame = blocks::room::<Frame<H, Fut>>();
    let stage = Stage {
        future: ManuallyDrop::new(future),
    };
    let place = frame.as_ptr();
    // SAFETY: memory for a frame, of which each field is written.
    unsafe {
        (&raw mut (*place).head).write(Head::new(Frame::<H, Fut>::ENTRIES));
        (&raw mut (*place).executor).write(executor);
        let live_index = None;
        (&raw mut (*place).own).write(UnsafeCell::new(Own { live_index, stage }));
    }
    let head = frame.cast::<Head>();
    // SAFETY: (TASK-2) the handle's reference; (TASK-STATE-1) a new word has one wake-up.
    unsafe { (head.as_ref().table.schedule)(head) };
    // SAFETY: (TASK-2, TASK-3) the reference and the right that a new task comes with, to a value of this type.
    unsafe { Handle::new(head) }
}

impl<H: Executor, Fut: Future + 'static> Frame<H, Fut> {
    const ENTRIES: &'static Entries = &Entries {
        table: Table {
            run: Self::run,
            discard: Self::discard,
        },
        schedule: Self::schedule,
        take: Self::take,
        forget: Self::forget,
        // SAFETY: (TASK-2) the last reference; it is of `room`, in `new`.
        free: |head| unsafe { blocks::discard(head.cast::<Self>()) },
        // SAFETY: (TASK-1, TASK-2) the caller's reference.
        process: |head| unsafe { head.cast::<Self>().as_ref() }.executor.process(),
        // SAFETY: as above.
        looked_at: |head, has_ended| unsafe {
            let executor = &head.cast::<Self>().as_ref().executor;
            executor.looked_at(Key::at(head.as_ptr().cast()), has_ended);
        },
    };

    /// # Safety
    /// As [`Table::run`].
    unsafe fn run(head: NonNull<()>) {
        let head = head.cast::<Head>();
        // SAFETY: (TASK-1, TASK-2) it has not ended.
        let frame = unsafe { head.cast::<Self>().as_ref() };
        let word = &frame.head.word;
        if !word.begin() {
            // SAFETY: (TASK-3) instead of a run.
            return unsafe { Self::end(head, None) };
        }
        // SAFETY: (TASK-2) the run is what keeps the frame.
        let waker = unsafe { head::waker(head) };
        let poll = || {
            frame.own.with_mut(|own| {
                let poll = |own: &mut Own<Fut>| {
                    // SAFETY: (TASK-3) this is the run, so it is the future; a frame is never moved.
                    let future = unsafe { Pin::new_unchecked(&mut *own.stage.future) };
                    future.poll(&mut Context::from_waker(&waker))
                };
                // SAFETY: (TASK-3) as above.
                unsafe { attempt_on(&mut *own, poll, |own| frame.drop_future(own)) }
            })
        };
        // SAFETY: (TASK-2) it does not end before it was polled.
        let (polled, notes) = unsafe { Run::of_task(head.cast()).during(poll) };
        let mut woken = notes & run::WOKEN != 0;
        match polled {
            Ok(Poll::Pending) => {}
            // SAFETY: (TASK-3) this is the run.
            Ok(Poll::Ready(value)) => return unsafe { Self::end(head, Some(Ok(value))) },
            Err(panic) => {
                let unheard = Unheard::new(panic, &frame.executor);
                // SAFETY: as above; the future was dropped while that unwound.
                return unsafe { Self::finish(head, Some(Err(unheard))) };
            }
        }
        frame.own.with_mut(|own| {
            // SAFETY: (TASK-3) this is the run.
            let live_index = unsafe { &mut (*own).live_index };
            if live_index.is_none() {
                *live_index = frame.executor.track(&waker);
                // Without one it wakes itself, to be dropped.
                woken |= live_index.is_none();
            }
        });
        match word.rest(woken) {
            Rest::Asleep => {}
            Rest::Again => {
                // SAFETY: (EXECUTOR-1 in executor.rs) a copy that is not dropped: another thread may free the frame before
                // `schedule` returns.
                let executor =
                    ManuallyDrop::new(unsafe { std::ptr::read(&raw const frame.executor) });
                // SAFETY: (TASK-STATE-1) this is its runnable; (TASK-2) it has not ended.
                executor.schedule(unsafe { Runnable::from_table(head.cast()) }, true);
            }
            // SAFETY: (TASK-3) this is the run.
            Rest::Closed => unsafe { Self::end(head, None) },
        }
    }

    /// # Safety
    /// As [`Table::discard`].
    unsafe fn discard(head: NonNull<()>) {
        // SAFETY: (TASK-3) in place of a run.
        unsafe { Self::end(head.cast(), None) };
    }

    /// # Safety
    /// As [`Entries::schedule`].
    unsafe fn schedule(head: NonNull<Head>) {
        // SAFETY: (TASK-2) the caller's reference keeps it meanwhile; (TASK-STATE-1) this is its runnable.
        unsafe {
            let frame = head.cast::<Self>().as_ref();
            let runnable = Runnable::from_table(head.cast());
            frame.executor.schedule(runnable, false);
        }
    }

    /// The end of the task: its future is dropped on this thread, and what it came to is left.
    ///
    /// # Safety
    /// Called by the run (TASK-3), as its last step.
    unsafe fn end(head: NonNull<Head>, outcome: Option<Outcome<Fut::Output>>) {
        // SAFETY: (TASK-1, TASK-2) it has not ended before the last line; (TASK-3) this is the run.
        unsafe {
            let frame = head.cast::<Self>().as_ref();
            frame.own.with_mut(|own| frame.drop_future(&mut *own));
            Self::finish(head, outcome);
        }
    }

    /// Drops the future in place, and tells of the end before.
    ///
    /// # Safety
    /// As [`end`](Self::end).
    unsafe fn drop_future(&self, own: &mut Own<Fut>) {
        self.executor.task_completed();
        // SAFETY: (TASK-3) it is the future.
        contain(|| unsafe { ManuallyDrop::drop(&mut own.stage.future) });
    }

    /// The same when the future is dropped.
    ///
    /// # Safety
    /// As [`end`](Self::end).
    unsafe fn finish(head: NonNull<Head>, outcome: Option<Outcome<Fut::Output>>) {
        // SAFETY: (TASK-1, TASK-2) it has not ended before the last line.
        let frame = unsafe { head.cast::<Self>().as_ref() };
        let has_value = outcome.is_some();
        let live_index = frame.own.with_mut(|own| {
            // SAFETY: (TASK-3) the future has given way to what it came to.
            unsafe {
                if let Some(outcome) = outcome {
                    (*own).stage.outcome = ManuallyDrop::new(outcome);
                }
                (*own).live_index.take()
            }
        });
        frame.executor.task_dropped();
        if let Some(live_index) = live_index {
            frame.executor.untrack(live_index);
        }
        let before = frame.head.word.end(has_value);
        if has_value && !before.is_wanted {
            // SAFETY: (TASK-3) it has ended, and there is no handle.
            unsafe { Self::forget(head) };
        }
        if before.is_awaited {
            // (TASK-4) It was armed.
            let awaiter = frame.head.change_awaiter(None);
            contain(|| match awaiter {
                Some(waker) if before.is_wanted => waker.wake(),
                unneeded => drop(unneeded),
            });
        }
        // SAFETY: (TASK-2) the task's own reference, given up last.
        unsafe { head::release(head) };
    }

    /// # Safety
    /// As [`Entries::take`].
    unsafe fn take(head: NonNull<Head>, out: *mut ()) {
        // SAFETY: (TASK-3) by the caller's promise.
        unsafe {
            let frame = head.cast::<Self>().as_ref();
            let outcome = |own: *mut Own<Fut>| ManuallyDrop::take(&mut (*own).stage.outcome);
            out.cast::<Option<Outcome<Fut::Output>>>()
                .write(Some(frame.own.with_mut(outcome)));
        }
    }

    /// # Safety
    /// As [`Entries::forget`].
    unsafe fn forget(head: NonNull<Head>) {
        // SAFETY: (TASK-3) by the caller's promise.
        let frame = unsafe { head.cast::<Self>().as_ref() };
        frame.own.with_mut(|own| {
            // SAFETY: (TASK-3) as above.
            contain(|| unsafe { ManuallyDrop::drop(&mut (*own).stage.outcome) });
        });
    }
}
