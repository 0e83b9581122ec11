//! `block_on` on a thread that runs tasks: a worker gives its place away before it waits.
//!
//! # Invariants
//! - PLACE-1: a place (the queues and the parker of one index) has one thread at a time. Who gives
//!   it away touches nothing of it from the moment when another thread may have it: what this one
//!   wakes then comes "from outside".
//! - PLACE-2: a place that is given away is taken by exactly one thread, also during a shutdown.

use std::cell::Cell;
use std::sync::Arc;

use super::blocking;
use super::context::{self, Role, ThreadContext};
use crate::scheduler::WorkerLocal;
use crate::sync::mutant;
use crate::timers::Clock;

/// Makes this thread one that may wait, and gives the timers that nobody else looks at meanwhile;
/// or says why it must not wait.
pub(super) fn make_way() -> Result<Option<Arc<dyn Clock>>, String> {
    let is_displaced = Cell::new(false);
    let made = context::outward(|contexts| {
        let contexts = contexts.filter(|context| context.runtime.is_here());
        let mut judged = contexts.filter_map(|context| match context.role.get() {
            Role::Worker(local) => Some(give_away(context, local).map(|()| None)),
            Role::Pinned(local) if local.is_detached() => Some(Ok(Some(local.clock()))),
            Role::Pinned(_) => Some(Err(
                "`block_on` was called in a task of a pinned thread, whose tasks could run \
                 nowhere else meanwhile: await the future instead"
                    .into(),
            )),
            // Not so if it drives what has given its place away.
            Role::Reacting if !is_displaced.get() => Some(Err(
                "`block_on` was called by what a reactor woke on the thread of a worker, which would \
                 wait for itself"
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

/// Another thread goes on in the worker's place; this one goes to those for blocking calls when
/// its turn ends.
fn give_away<'a>(context: &ThreadContext<'a>, local: &'a WorkerLocal<'a>) -> Result<(), String> {
    let runtime = context.runtime;
    if runtime.is_over() || runtime.is_simulated() {
        // The place has nothing to run any more, and this thread is needed to clear it; or this is the
        // only thread that there is.
        return Ok(());
    }
    local.hand_over();
    let role = context.role.get();
    if !mutant("a_displaced_worker_keeps_its_place") {
        // (PLACE-1) First, so that nothing here touches the queues once somebody else has them.
        context.role.set(Role::Displaced(local));
    }
    // The place goes on being counted where workers are; this thread is counted until it comes to
    // those for blocking calls.
    runtime.inc_activity_apart();
    let refused = match blocking::lend(runtime, local.index()) {
        Ok(true) => return Ok(()),
        Ok(false) => None,
        Err(refused) => Some(refused),
    };
    runtime.dec_activity_apart();
    local.take_back();
    context.role.set(role);
    let Some(refused) = refused else {
        // As above: it has ended meanwhile.
        return Ok(());
    };
    for job in refused.jobs {
        blocking::run(Some(runtime), job);
    }
    Err(format!(
        "`block_on` was called in a task, and no thread can be started that would go on in the \
         worker's place: {}",
        refused.error
    ))
}
