//! The run that is under way on this thread, if any: of which task or actor, what it may do and what it notes.
//!
//! A note in a thread-local costs no exchange, and touches no line that senders write. A run notes that it has
//! woken itself; an actor's, too, that `recv` waits, so that the end of the run puts it to rest in one step.
//! How many messages are handled is counted here as well, from whichever context they come. Runs nest where
//! user code drives another executor inside one.
//!
//! # Invariants
//! - RUN-1: what is run does not end before its run has.
//! - RUN-2: a run is the innermost of its thread from when it begins to when it ends, but for those inside, so the
//!   innermost one is on the stack.
//! - RUN-3: a cell's run has the cell's reader; a task's has none, and is of nothing that a context belongs to.
#![expect(unsafe_code, reason = "a pointer to what is run; see RUN-1")]

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::cell::Cell;
use std::ptr::NonNull;

use super::info::TaskInfo;
use super::runnable::cell_of;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, mutant};

/// How many messages are handled in one poll by default: long enough to be worth a turn, and so few
/// that a crowd of messages does not come to rest in one actor.
pub(crate) const BATCH: u32 = 32;

/// It has woken itself.
pub(crate) const WOKEN: u8 = 1;
/// `recv` waits in it.
pub(crate) const RECEIVING: u8 = 2;
/// It has handled a batch.
pub(crate) const SPENT: u8 = 4;

/// A run under way, on the stack of its thread.
pub(crate) struct CurrentRun {
    /// As a runnable has it.
    of: NonNull<()>,
    /// What its context reads from (RUN-3).
    reader: NonNull<()>,
    /// How many [`terminations`] there were when it began, or `u64::MAX`.
    terminations: u64,
    /// How many messages it may handle.
    batch: u32,
    /// How many more it may handle then, if nothing else waits.
    more: Cell<u32>,
    /// How many of them are left.
    left: Cell<u32>,
    /// A byte, as notes are set in one: to load more than was just stored waits for the store.
    notes: Cell<u8>,
}

crate::sync::thread_local! {
    /// The innermost one.
    static RUN: Cell<Option<NonNull<CurrentRun>>> = const { Cell::new(None) };
}
crate::sync::thread_local! {
    /// What is left to a thread that has no run.
    static LEFT: Cell<u32> = const { Cell::new(BATCH) };
}

impl CurrentRun {
    /// Of a task, as a runnable has it.
    #[inline]
    pub(crate) fn of_task(of: NonNull<()>) -> Self {
        CurrentRun::new(of, NonNull::dangling(), (BATCH, 0), 0)
    }

    /// Of an actor, as a runnable has it; with what its context reads from, how many messages it may handle and
    /// how many more if nothing else waits then, and how many [`terminations`] there were when it was known not to be
    /// terminated. `None`: each message is looked at.
    ///
    /// # Safety
    /// (RUN-3) `reader` is that of the cell.
    #[inline]
    pub(crate) unsafe fn of_actor(
        of: NonNull<()>,
        reader: NonNull<()>,
        batches: (u32, u32),
        terminations: Option<u64>,
    ) -> Self {
        CurrentRun::new(of, reader, batches, terminations.unwrap_or(u64::MAX))
    }

    #[inline]
    fn new(
        of: NonNull<()>,
        reader: NonNull<()>,
        (batch, more): (u32, u32),
        terminations: u64,
    ) -> Self {
        CurrentRun {
            of,
            reader,
            terminations,
            batch,
            more: Cell::new(more),
            left: Cell::new(batch),
            notes: Cell::new(0),
        }
    }

    /// Runs this; gives what was noted, too.
    ///
    /// # Safety
    /// (RUN-1) What is run does not end before `f` has returned.
    #[inline(always)]
    pub(crate) unsafe fn during<R>(self, f: impl FnOnce() -> R) -> (R, u8) {
        /// Makes the outer run the innermost again, also if `f` panics.
        struct Outer(Option<NonNull<CurrentRun>>);
        impl Drop for Outer {
            #[inline]
            fn drop(&mut self) {
                let _ = RUN.try_with(|run| run.set(self.0));
            }
        }
        let outer = RUN.try_with(|run| run.replace(Some(NonNull::from(&self))));
        let outer = Outer(outer.unwrap_or(None));
        let result = f();
        drop(outer);
        (result, self.notes.get())
    }

    pub(crate) fn reader(&self) -> NonNull<()> {
        self.reader
    }

    #[inline]
    pub(crate) fn note(&self, note: u8) {
        self.notes.set(self.notes.get() | note);
    }

    #[inline]
    fn is_undisturbed(&self) -> bool {
        self.terminations == terminations()
    }

    /// Whether another message may be handled, as far as it is known without a look at the actor.
    #[inline]
    pub(crate) fn may_handle(&self) -> bool {
        self.left.get() > 0 && self.is_undisturbed()
    }

    /// One message is handled.
    #[inline]
    pub(crate) fn spend(&self) {
        spend_of(&self.left);
    }
}

crate::sync::own_static! {
    /// How often an actor of this process was killed or cancelled: as long as that does not change, a run need not
    /// look at the word of its actor, which senders write.
    static TERMINATIONS: CachePadded<AtomicU64> = CachePadded(AtomicU64::new(0));
}

#[inline]
pub(crate) fn terminations() -> u64 {
    // Acquire pairs with the Release in `count_termination`: what is terminated by then is seen to be.
    TERMINATIONS.0.load(Ordering::Acquire)
}

/// Called when an actor was terminated.
pub(crate) fn count_termination() {
    let order = if mutant("termination_counted_relaxed") {
        Ordering::Relaxed
    } else {
        Ordering::Release
    };
    // Release pairs with the Acquire in `terminations`.
    TERMINATIONS.0.fetch_add(1, order);
}

/// Has the run note this, if it is of `of` and under way on this thread; says whether it is.
#[inline]
pub(crate) fn note(of: NonNull<()>, note: u8) -> bool {
    with_own(of, |run| run.note(note)).is_some()
}

/// The same for what is so no more.
#[inline]
pub(crate) fn unnote(of: NonNull<()>, note: u8) {
    with_own(of, |run| run.notes.set(run.notes.get() & !note));
}

/// What the context of the actor `of` reads from, if this thread runs that.
#[inline]
pub(crate) fn reader_of(of: NonNull<()>) -> Option<NonNull<()>> {
    with_own(of, CurrentRun::reader)
}

/// Whether this thread runs `of`, and no actor at all was terminated meanwhile.
#[inline]
pub(crate) fn is_undisturbed(of: NonNull<()>) -> bool {
    with_own(of, CurrentRun::is_undisturbed) == Some(true)
}

/// Whether all that this thread may handle at a time is handled; then it may handle as many again. `is_alone` says
/// whether nothing else waits for the thread.
#[inline]
pub(crate) fn is_spent(is_alone: impl FnOnce() -> bool) -> bool {
    let is_spent = with_left(|left, batch| {
        let is_spent = left.get() == 0;
        if is_spent {
            left.set(batch);
        }
        is_spent
    });
    if is_spent != Some(true) {
        return false;
    }
    let Some(run) = innermost() else {
        return true;
    };
    run.note(SPENT);
    let more = run.more.replace(0);
    let goes_on = more > 0 && is_alone();
    if goes_on {
        run.left.set(more);
    }
    !goes_on
}

/// One message is handled.
#[inline]
pub(crate) fn spend() {
    with_left(|left, _| spend_of(left));
}

/// What a sender's waker did meanwhile may have spent it.
#[inline]
fn spend_of(left: &Cell<u32>) {
    left.set(left.get().saturating_sub(1));
}

/// With how many messages are left, of how many.
#[inline(always)]
fn with_left<R>(f: impl FnOnce(&Cell<u32>, u32) -> R) -> Option<R> {
    match innermost() {
        Some(run) => Some(f(&run.left, run.batch)),
        None => LEFT.try_with(|left| f(left, BATCH)).ok(),
    }
}

/// With the run of `of`, if it is this thread's innermost.
#[inline(always)]
pub(crate) fn with_own<R>(of: NonNull<()>, f: impl FnOnce(&CurrentRun) -> R) -> Option<R> {
    innermost().filter(|run| run.of == of).map(f)
}

/// It is used no longer than the call that asked for it takes, which the run does not end in.
#[inline(always)]
fn innermost<'a>() -> Option<&'a CurrentRun> {
    let run = RUN.try_with(Cell::get).ok().flatten();
    // SAFETY: (RUN-2) it is under way, below on this stack.
    run.map(|run| unsafe { run.as_ref() })
}

/// Which actor this thread runs.
pub(crate) fn actor() -> Option<TaskInfo> {
    let cell = cell_of(innermost()?.of)?;
    // SAFETY: (RUN-1) this is its run.
    Some(unsafe { (cell.as_ref().vtable.info)(cell) })
}
