//! `block_on` on a thread that runs tasks: a worker gives its place away before it waits.
//!
//! # Invariants
//! - PLACE-1: a place (the queues and the parker of one index) has one thread at a time. A thread
//!   that gives its place away touches nothing of it from the moment when another thread may have
//!   it. Whatever the former worker wakes from then on is pushed from outside, as by any other
//!   thread.
//! - PLACE-2: exactly one thread takes a place that is given away, also during a shutdown.

use std::cell::Cell;
use std::sync::Arc;

use super::blocking;
use super::context::{self, Role, ThreadContext};
use crate::scheduler::WorkerLocal;
use crate::timers::Clock;

/// Prepares this thread to wait, and returns the timers that only this thread would fire.
///
/// # Errors
/// The reason why this thread must not wait.
pub(super) fn make_way() -> Result<Option<Arc<dyn Clock>>, String> {
    let is_displaced = Cell::new(false);
    let made = context::outward(|contexts| {
        let contexts = contexts.filter(|context| context.runtime.is_here());
        let mut judged = contexts.filter_map(|context| match context.role.get() {
            Role::Worker(local) => Some(make_way_of(context, local).map(|()| None)),
            Role::Pinned(local) if local.is_detached() => Some(Ok(Some(local.clock()))),
            Role::Pinned(_) => Some(Err(
                "`block_on` was called in a task of a pinned thread, whose other tasks can run \
                 nowhere else: await the future instead"
                    .into(),
            )),
            // A reactor may wait if it is driven by a turn that has given its place away.
            Role::Reacting if !is_displaced.get() => Some(Err(
                "`block_on` was called in a waker that a driver called on a worker thread, which \
                 would wait for itself"
                    .into(),
            )),
            Role::Displaced(_) => {
                is_displaced.set(true);
                None
            }
            Role::Reacting | Role::Outside | Role::Blocking | Role::Closing => None,
        });
        judged.next()
    });
    made.unwrap_or(Ok(None))
}

/// Returns whether this thread may wait: whether it is neither a stage nor a pinned thread with other
/// tasks, and no driver calls it.
pub(crate) fn may_wait() -> bool {
    let must_not = |context: &ThreadContext<'_>| match context.role.get() {
        Role::Pinned(local) => !local.is_detached(),
        role => matches!(role, Role::Reacting),
    };
    let is_pinned = context::outward(|contexts| {
        let mut here = contexts.filter(|context| context.runtime.is_here());
        here.any(must_not)
    });
    !is_pinned && context::stage().is_none()
}

/// Gives a worker's place away, unless no thread needs it.
fn make_way_of<'a>(context: &ThreadContext<'a>, local: &'a WorkerLocal<'a>) -> Result<(), String> {
    let runtime = context.runtime;
    if runtime.is_over() || runtime.is_simulated() {
        // In a shutdown that is over, the place has nothing left to run, and this thread must clear
        // it. In a simulation this is the only thread.
        return Ok(());
    }
    // If it returns false, the runtime has ended meanwhile: as above.
    blocking::give_away(context, local).map(drop).map_err(|error| {
        format!(
            "`block_on` was called in a task, and no spare thread could be started to replace the \
             worker: {error}"
        )
    })
}
