//! The run that is under way on this thread, if any: of which task or actor, and what it notes for its end.
//!
//! A note in a thread-local costs no exchange. Either notes that it has woken itself; an actor, too, that
//! `recv` waits, so that the end of the run puts it to rest in one step. Runs nest where user code drives
//! another executor inside one.
//!
//! # Invariants
//! - U1: what is run does not end before its run has.

#![expect(unsafe_code, reason = "a pointer to what is run; see U1")]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::info::TaskInfo;
use super::runnable::cell_of;

#[derive(Clone, Copy)]
struct Run {
    /// As a runnable has it.
    of: Option<NonNull<()>>,
    notes: u8,
}

/// It has woken itself.
pub(crate) const WOKEN: u8 = 1;
/// `recv` waits in it.
pub(crate) const RECEIVING: u8 = 2;

crate::sync::thread_local! {
    static RUN: Cell<Run> = const { Cell::new(Run { of: None, notes: 0 }) };
}

/// A run under way; dropping it ends it, and the outer one goes on.
pub(crate) struct Entered(Run);

/// Begins a run on this thread.
///
/// # Safety
/// (U1) What is run does not end before the guard is dropped, on this thread.
pub(crate) unsafe fn enter(of: NonNull<()>) -> Entered {
    let run = Run {
        of: Some(of),
        notes: 0,
    };
    Entered(RUN.try_with(|outer| outer.replace(run)).unwrap_or(run))
}

impl Entered {
    /// Ends it; gives what it has noted.
    #[inline]
    pub(crate) fn end(self) -> u8 {
        let outer = ManuallyDrop::new(self).0;
        RUN.try_with(|run| run.replace(outer).notes).unwrap_or(0)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = RUN.try_with(|run| run.set(self.0));
    }
}

/// Has the run note this, if it is of `of` and under way on this thread; says whether it is.
#[inline]
pub(crate) fn note(of: NonNull<()>, note: u8) -> bool {
    change(of, |notes| notes | note)
}

/// The same for what is so no more.
pub(crate) fn unnote(of: NonNull<()>, note: u8) {
    change(of, |notes| notes & !note);
}

#[inline]
fn change(of: NonNull<()>, change: impl FnOnce(u8) -> u8) -> bool {
    RUN.try_with(|run| {
        let Run { of: now, notes } = run.get();
        let own = now == Some(of);
        if own {
            let notes = change(notes);
            run.set(Run { of: now, notes });
        }
        own
    })
    .unwrap_or(false)
}

/// Which actor this thread runs.
pub(crate) fn actor() -> Option<TaskInfo> {
    let cell = cell_of(RUN.try_with(|run| run.get().of).ok().flatten()?)?;
    // SAFETY: (U1) this is its run.
    Some(unsafe { (cell.as_ref().vtable.info)(cell) })
}
