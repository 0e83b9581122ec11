//! A plain task's frame: one allocation with its word, its executor and its future, or what that came to.
//!
//! The front, [`Head`], is what wakers and the handle see; they do not know the future. What is behind it is
//! reached through the head's table. Whoever has a pointer counts in the word.
//!
//! # Invariants
//! - F1: a pointer to the head is a pointer to the frame, and to what a runnable begins with (`repr(C)`).
//! - F2: whoever holds a reference may use the head; the last one frees the frame. A task that has not ended
//!   holds one, so its runnable needs none.
//! - F3: the stage and the live index are the run's, from `begin` to `rest` or `end`; after `end` what it came to
//!   is the handle's, or, if there is none, the end's.
//! - F4: the place of the waker is the end's while it is armed, otherwise the handle's; the last one's of all.
#![expect(
    unsafe_code,
    reason = "one allocation seen through several types; see F1 to F4"
)]

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use super::executor::Executor;
use super::key::Key;
use super::live_index::LiveIndex;
use super::outcome::{Outcome, Unheard};
use super::run::{self, Run};
use super::runnable::{Runnable, Table};
use super::word::{Found, Rest, Word};
use crate::blocks;
use crate::contain::{attempt_on, contain};
use crate::instant;
use crate::sync::{Process, UnsafeCell};

/// What the handle and wakers see of a frame.
#[repr(C)]
pub(super) struct Head {
    table: &'static Entries,
    word: Word,
    awaiter: UnsafeCell<Option<Waker>>,
}

/// What can be done to a frame without knowing its types.
///
/// # Safety
/// The pointer is to a frame with this table, and the caller holds a reference, or what the entry names.
#[repr(C)]
struct Entries {
    /// The caller owns its runnable.
    table: Table,
    /// The caller has just made its runnable.
    schedule: unsafe fn(NonNull<Head>),
    /// Moves what it came to, an `Outcome` of its type, to `out`; once.
    take: unsafe fn(NonNull<Head>, out: *mut ()),
    /// Drops what it came to; once.
    forget: unsafe fn(NonNull<Head>),
    /// The caller gives up its reference, and there is no other one.
    free: unsafe fn(NonNull<Head>),
    /// The process that has the threads of its executor.
    process: unsafe fn(NonNull<Head>) -> Process,
    /// Tells its executor whether this thread sees its end, or waits for it.
    looked_at: unsafe fn(NonNull<Head>, has_ended: bool),
}

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
        (&raw mut (*place).head).write(Head {
            table: Frame::<H, Fut>::ENTRIES,
            word: Word::new(),
            awaiter: UnsafeCell::new(None),
        });
        (&raw mut (*place).executor).write(executor);
        let live_index = None;
        (&raw mut (*place).own).write(UnsafeCell::new(Own { live_index, stage }));
    }
    let head = frame.cast::<Head>();
    // SAFETY: (F2) the handle's reference; (W1) a new word has one wake-up.
    unsafe { (head.as_ref().table.schedule)(head) };
    Handle {
        head: Some(head),
        _outcome: PhantomData,
    }
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
        // SAFETY: (F2) the last reference; it is of `room`, in `new`.
        free: |head| unsafe { blocks::discard(head.cast::<Self>()) },
        // SAFETY: (F1, F2) the caller's reference.
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
        // SAFETY: (F1, F2) it has not ended.
        let frame = unsafe { head.cast::<Self>().as_ref() };
        let word = &frame.head.word;
        if !word.begin() {
            // SAFETY: (F3) instead of a run.
            return unsafe { Self::end(head, None) };
        }
        // SAFETY: it is forgotten, and so holds no reference; (F2) the run is what keeps the frame.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(head)) });
        let poll = || {
            frame.own.with_mut(|own| {
                let poll = |own: &mut Own<Fut>| {
                    // SAFETY: (F3) this is the run, so it is the future; a frame is never moved.
                    let future = unsafe { Pin::new_unchecked(&mut *own.stage.future) };
                    future.poll(&mut Context::from_waker(&waker))
                };
                // SAFETY: (F3) as above.
                unsafe { attempt_on(&mut *own, poll, |own| frame.drop_future(own)) }
            })
        };
        // SAFETY: (F2) it does not end before it was polled.
        let (polled, notes) = unsafe { Run::of_task(head.cast()).during(poll) };
        let mut woken = notes & run::WOKEN != 0;
        match polled {
            Ok(Poll::Pending) => {}
            // SAFETY: (F3) this is the run.
            Ok(Poll::Ready(value)) => return unsafe { Self::end(head, Some(Ok(value))) },
            Err(panic) => {
                let unheard = Unheard::new(panic, &frame.executor);
                // SAFETY: as above; the future was dropped while that unwound.
                return unsafe { Self::finish(head, Some(Err(unheard))) };
            }
        }
        frame.own.with_mut(|own| {
            // SAFETY: (F3) this is the run.
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
                // SAFETY: (O1 in executor.rs) a copy that is not dropped: another thread may free the frame before
                // `schedule` returns.
                let executor =
                    ManuallyDrop::new(unsafe { std::ptr::read(&raw const frame.executor) });
                // SAFETY: (W1) this is its runnable; (F2) it has not ended.
                executor.schedule(unsafe { Runnable::from_table(head.cast()) }, true);
            }
            // SAFETY: (F3) this is the run.
            Rest::Closed => unsafe { Self::end(head, None) },
        }
    }

    /// # Safety
    /// As [`Table::discard`].
    unsafe fn discard(head: NonNull<()>) {
        // SAFETY: (F3) in place of a run.
        unsafe { Self::end(head.cast(), None) };
    }

    /// # Safety
    /// As [`Entries::schedule`].
    unsafe fn schedule(head: NonNull<Head>) {
        // SAFETY: (F2) the caller's reference keeps it meanwhile; (W1) this is its runnable.
        unsafe {
            let frame = head.cast::<Self>().as_ref();
            let runnable = Runnable::from_table(head.cast());
            frame.executor.schedule(runnable, false);
        }
    }

    /// The end of the task: its future is dropped on this thread, and what it came to is left.
    ///
    /// # Safety
    /// Called by the run (F3), as its last step.
    unsafe fn end(head: NonNull<Head>, outcome: Option<Outcome<Fut::Output>>) {
        // SAFETY: (F1, F2) it has not ended before the last line; (F3) this is the run.
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
        // SAFETY: (F3) it is the future.
        contain(|| unsafe { ManuallyDrop::drop(&mut own.stage.future) });
    }

    /// The same when the future is dropped.
    ///
    /// # Safety
    /// As [`end`](Self::end).
    unsafe fn finish(head: NonNull<Head>, outcome: Option<Outcome<Fut::Output>>) {
        // SAFETY: (F1, F2) it has not ended before the last line.
        let frame = unsafe { head.cast::<Self>().as_ref() };
        let has_value = outcome.is_some();
        let live_index = frame.own.with_mut(|own| {
            // SAFETY: (F3) the future has given way to what it came to.
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
            // SAFETY: (F3) it has ended, and there is no handle.
            unsafe { Self::forget(head) };
        }
        if before.is_awaited {
            // (F4) It was armed.
            let awaiter = frame.head.change_awaiter(None);
            contain(|| match awaiter {
                Some(waker) if before.is_wanted => waker.wake(),
                unneeded => drop(unneeded),
            });
        }
        // SAFETY: (F2) the task's own reference, given up last.
        unsafe { release(head) };
    }

    /// # Safety
    /// As [`Entries::take`].
    unsafe fn take(head: NonNull<Head>, out: *mut ()) {
        // SAFETY: (F3) by the caller's promise.
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
        // SAFETY: (F3) by the caller's promise.
        let frame = unsafe { head.cast::<Self>().as_ref() };
        frame.own.with_mut(|own| {
            // SAFETY: (F3) as above.
            contain(|| unsafe { ManuallyDrop::drop(&mut (*own).stage.outcome) });
        });
    }
}

/// Gives a reference up; the last one frees the frame.
///
/// # Safety
/// The reference is the caller's.
unsafe fn release(head: NonNull<Head>) {
    // SAFETY: (F2) by that reference, or as the last one.
    unsafe {
        if head.as_ref().word.release() {
            (head.as_ref().table.free)(head);
        }
    }
}

impl Head {
    /// What the handle does when it is polled: whether the task has ended, of which `waker` will tell.
    fn await_end(&self, waker: &Waker) -> Found {
        let found = match self.word.look() {
            Found::Alive => self.word.disarm(),
            ended => ended,
        };
        if found != Found::Alive {
            return found;
        }
        let new = self.awaiter.with_mut(|awaiter| {
            // SAFETY: (F4) disarmed, and it has not ended.
            let old = unsafe { &*awaiter };
            let same = old.as_ref().is_some_and(|old| old.will_wake(waker));
            (!same).then(|| waker.clone())
        });
        let old = new.and_then(|new| self.change_awaiter(Some(new)));
        contain(|| drop(old));
        let found = self.word.arm();
        if found != Found::Alive {
            // It ended before, so it told nobody.
            let unneeded = self.change_awaiter(None);
            contain(|| drop(unneeded));
        }
        found
    }

    /// Called by whose the place is (F4).
    fn change_awaiter(&self, new: Option<Waker>) -> Option<Waker> {
        // SAFETY: (F4) by the caller's promise; nothing of the user's is called.
        self.awaiter
            .with_mut(|awaiter| unsafe { std::mem::replace(&mut *awaiter, new) })
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        // SAFETY: (F4) the last one's.
        let awaiter = self
            .awaiter
            .with_mut(|awaiter| unsafe { (*awaiter).take() });
        contain(|| drop(awaiter));
    }
}

/// Wakes the task; for its own run that costs nothing.
///
/// # Safety
/// The caller holds a reference.
unsafe fn wake(head: NonNull<Head>) {
    if run::note(head.cast(), run::WOKEN) {
        return;
    }
    // SAFETY: (F2) the caller's reference; (W1) the runnable is ours.
    unsafe {
        if head.as_ref().word.wake() {
            (head.as_ref().table.schedule)(head);
        }
    }
}

fn raw_waker(head: NonNull<Head>) -> RawWaker {
    RawWaker::new(head.as_ptr().cast(), &WAKER)
}

/// # Safety
/// The data are of a waker made by `raw_waker`.
unsafe fn head_of(data: *const ()) -> NonNull<Head> {
    // SAFETY: by the caller's promise, so it is not null.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

/// Of every task: a waker is a reference (F2). A static, since wakers are told by its address.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    // SAFETY: the data are of `raw_waker`, with the waker's reference.
    |data| unsafe {
        head_of(data).as_ref().word.retain();
        raw_waker(head_of(data))
    },
    // SAFETY: as above; the reference goes with the waker.
    |data| unsafe {
        wake(head_of(data));
        release(head_of(data));
    },
    // SAFETY: as above.
    |data| unsafe { wake(head_of(data)) },
    // SAFETY: as above; the reference goes with the waker.
    |data| unsafe { release(head_of(data)) },
);

/// The one handle of a task: a reference (F2), and the right to what it came to (F3).
pub(super) struct Handle<T> {
    /// `None` once it has given that.
    head: Option<NonNull<Head>>,
    _outcome: PhantomData<T>,
}

// SAFETY: it hands out an outcome, once, and nothing else of the task's but wake-ups.
unsafe impl<T: Send> Send for Handle<T> {}
// SAFETY: a shared one only looks at the word.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Unpin for Handle<T> {}
impl<T> UnwindSafe for Handle<T> {}
impl<T> RefUnwindSafe for Handle<T> {}

impl<T> Handle<T> {
    /// Of a task that was cancelled before it began.
    pub(super) const CANCELLED: Self = Handle {
        head: None,
        _outcome: PhantomData,
    };

    /// Whether it has given what it came to, or never began.
    pub(super) fn is_over(&self) -> bool {
        self.head.is_none()
    }

    /// Whether the future is gone.
    pub(super) fn is_finished(&self) -> bool {
        let Some(head) = self.head else { return true };
        // SAFETY: (F2) the handle's reference.
        let has_ended = unsafe { head.as_ref() }.word.look() != Found::Alive;
        if has_ended {
            Self::look_at(head, true);
        }
        has_ended
    }

    /// Tells a simulation whether this thread sees the end of the task, or waits for it.
    #[inline]
    fn look_at(head: NonNull<Head>, has_ended: bool) {
        if instant::is_simulated() {
            // SAFETY: (F2) the handle's reference.
            unsafe { (head.as_ref().table.looked_at)(head, has_ended) };
        }
    }

    /// The process that has the threads of its executor.
    fn process(head: NonNull<Head>) -> Process {
        // SAFETY: (F2) the handle's reference.
        Process::of(|| unsafe { (head.as_ref().table.process)(head) })
    }

    /// Waits for the end; gives what it came to, once.
    ///
    /// # Panics
    /// If it would wait for another process.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outcome<T>>> {
        let Some(head) = self.head else {
            return Poll::Ready(None);
        };
        // SAFETY: (F2) the handle's reference.
        let found = unsafe { head.as_ref() }.await_end(cx.waker());
        let Found::Ended { has_value } = found else {
            Self::process(head).check();
            Self::look_at(head, false);
            return Poll::Pending;
        };
        Self::look_at(head, true);
        self.head = None;
        let mut outcome = None;
        // SAFETY: (F3) it has ended and this is the handle, which has nothing afterwards; `outcome`
        // is of the type that it came with.
        unsafe {
            if has_value {
                (head.as_ref().table.take)(head, (&raw mut outcome).cast());
            }
            release(head);
        }
        Poll::Ready(outcome)
    }

    /// Has it end at its next suspension, and waits until it has; gives what it came to if it did.
    pub(super) async fn cancel(mut self) -> Option<Outcome<T>> {
        self.close();
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Has it end at its next suspension.
    fn close(&self) {
        let Some(head) = self.head else {
            return;
        };
        Self::look_at(head, true);
        // SAFETY: (F2) the handle's reference.
        unsafe {
            if Self::process(head).is_current() && head.as_ref().word.close() {
                wake(head);
            }
        }
    }

    /// Lets it go on, and drops what it comes to.
    pub(super) fn detach(mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        let Some(head) = self.head.take() else {
            return;
        };
        // SAFETY: (F2, F3) as in `poll`.
        unsafe {
            if let Found::Ended { has_value } = head.as_ref().word.detach() {
                if has_value {
                    (head.as_ref().table.forget)(head);
                }
                release(head);
            }
        }
    }
}

/// As a cancelled task's is dropped.
impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.close();
        self.leave();
    }
}
