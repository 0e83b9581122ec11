//! The run of an actor that is under way on this thread, if any: which, and whether `recv` waits.
//!
//! It lets `recv` leave its wish to be woken in a thread-local, so that the end of the run can put
//! the actor to rest in one step, and tells who asks. Runs nest where user code drives another
//! executor inside one.
//!
//! # Invariants
//! - U1: the cell of a run that is under way has not ended.
#![expect(unsafe_code, reason = "a pointer to the cell that is run; see U1")]

use std::cell::Cell;
use std::ptr::NonNull;

use crate::task::{Header, TaskInfo};

#[derive(Clone, Copy)]
struct Run {
    cell: Option<NonNull<Header>>,
    receiving: bool,
}

thread_local! {
    static RUN: Cell<Run> = const { Cell::new(Run { cell: None, receiving: false }) };
}

/// A run under way; dropping it ends it, and the outer one goes on.
pub(super) struct Entered(Run);

/// Begins a run of the cell on this thread.
///
/// # Safety
/// (U1) The cell does not end before the guard is dropped, on this thread.
pub(super) unsafe fn enter(cell: NonNull<Header>) -> Entered {
    let run = Run {
        cell: Some(cell),
        receiving: false,
    };
    Entered(RUN.try_with(|outer| outer.replace(run)).unwrap_or(run))
}

impl Entered {
    /// Whether `recv` waits in this run.
    pub(super) fn is_receiving(&self) -> bool {
        RUN.try_with(|run| run.get().receiving).unwrap_or(false)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = RUN.try_with(|run| run.set(self.0));
    }
}

/// Notes whether `recv` waits, if this thread runs the cell; says whether it does.
pub(super) fn set_receiving(cell: NonNull<Header>, receiving: bool) -> bool {
    RUN.try_with(|run| {
        let own = run.get().cell == Some(cell);
        if own {
            run.set(Run {
                cell: Some(cell),
                receiving,
            });
        }
        own
    })
    .unwrap_or(false)
}

/// Whose run this is.
pub(super) fn info() -> Option<TaskInfo> {
    let cell = RUN.try_with(|run| run.get().cell).ok().flatten()?;
    // SAFETY: (U1) this is its run.
    Some(unsafe { (cell.as_ref().vtable.info)(cell) })
}
