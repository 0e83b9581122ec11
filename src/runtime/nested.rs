//! `block_on` on a thread that runs tasks: a worker gives its place away before it waits.
//!
//! # Invariants
//! - H1: a place (ring, slot, station and parker of one index) has one thread at a time. Who gives
//!   it away touches nothing of it from the moment when another thread may have it: what this one
//!   wakes then comes "from outside".
//! - H2: a place that is given away is taken by exactly one thread, also during a shutdown.

use super::current::{self, Place, Role};
use super::queues::Local;
use crate::contain::contain;
use crate::sync::mutant;

/// Makes this thread one that may wait; says why it must not.
pub(super) fn make_way() -> Result<(), String> {
    let made = current::outward(|places| {
        let mut judged = places.filter_map(|place| match place.role.get() {
            Role::Worker(local) => Some(give_away(place, local)),
            Role::Pinned(_) => Some(Err(
                "`block_on` was called in a task of a pinned thread, whose tasks could run \
                 nowhere else meanwhile: await the future instead"
                    .into(),
            )),
            Role::Outside | Role::Blocking | Role::Closing | Role::Displaced => None,
        });
        judged.next()
    });
    made.unwrap_or(Ok(()))
}

/// Another thread goes on in the worker's place; this one goes to those for blocking calls when
/// its turn ends.
fn give_away(place: &Place<'_>, local: &Local<'_>) -> Result<(), String> {
    let runtime = place.runtime;
    if runtime.is_over() {
        // The place has nothing to run any more, and this thread is needed to clear it.
        return Ok(());
    }
    if local.owed_keeper() {
        runtime.queues.sleep.hand_over(&**runtime);
    }
    let role = place.role.get();
    if !mutant("a_displaced_worker_keeps_its_place") {
        // (H1) First, so that nothing here touches the queues once somebody else has them.
        place.role.set(Role::Displaced);
    }
    let refused = match runtime.blocking.lend(runtime, local.index()) {
        Ok(true) => return Ok(()),
        Ok(false) => None,
        Err(refused) => Some(refused),
    };
    place.role.set(role);
    let Some(refused) = refused else {
        // As above: it has ended meanwhile.
        return Ok(());
    };
    for job in refused.jobs {
        contain(|| job.run());
    }
    Err(format!(
        "`block_on` was called in a task, and no thread can be started that would go on in the \
         worker's place: {}",
        refused.error
    ))
}
