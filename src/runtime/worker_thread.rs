//! The thread of a worker, from its start until its end in a shutdown.

use std::sync::Arc;

use super::blocking;
use super::context::{Role, ThreadContext};
use super::driven_worker::drive;
use super::driver::Driver;
use super::inner::Inner;
use crate::contain::contain;
use crate::scheduler::{Driven, Worker, WorkerEnd, WorkerLocal};

/// Runs the thread of a worker.
pub(super) fn work(inner: &Arc<Inner>, index: usize) {
    if hold_place(inner, index) == WorkerEnd::Displaced {
        blocking::come(inner);
    }
}

/// Runs worker `index` until the runtime is over, or until another thread takes its place.
pub(super) fn hold_place(inner: &Arc<Inner>, index: usize) -> WorkerEnd {
    let mut made = None;
    contain(|| made = Some(WorkerLocal::new(&inner.scheduler, &**inner, index)));
    let Some(mut local) = made else {
        go_without(inner, index);
        return WorkerEnd::Over;
    };
    if inner.options.driver.is_some() {
        local.drive();
    }
    let left = hold(inner, &local);
    // The policy's data of a worker is dropped like user code: a panic is caught.
    contain(|| drop(local));
    left
}

fn hold(inner: &Arc<Inner>, local: &WorkerLocal<'_>) -> WorkerEnd {
    if let (Some(driver), Some(driven)) = (&inner.options.driver, local.driven()) {
        return hold_driven(inner, local, &**driver, driven);
    }
    let context = ThreadContext::new(inner, Role::Worker(local));
    let _entered = context.enter();
    let mut worker = Worker::new(&**inner, local, &context);
    let left = worker.run_until_over();
    leave(inner, &worker, left)
}

// Not inlined into `hold`: a worker that is lent to a driver is in memory, and not in registers.
#[inline(never)]
fn hold_driven(
    inner: &Arc<Inner>,
    local: &WorkerLocal<'_>,
    driver: &dyn Driver,
    driven: &Driven,
) -> WorkerEnd {
    let context = ThreadContext::new(inner, Role::Worker(local));
    let mut worker = Worker::new(&**inner, local, &context);
    let left = drive(driver, &mut worker, &context, driven);
    let _entered = context.enter();
    leave(inner, &worker, left)
}

/// Cleans up when a thread stops being a worker.
#[inline(always)]
fn leave(
    inner: &Arc<Inner>,
    worker: &Worker<'_, Inner, ThreadContext<'_>>,
    left: WorkerEnd,
) -> WorkerEnd {
    inner.process().end_copy();
    if left == WorkerEnd::Displaced {
        if inner.shutdown.is_settled() {
            // Cancels what was left pending on a thread that comes back late.
            inner.cancel_all();
        } else if inner.is_over() {
            // Drops what this turn pushed when no worker was left to take it.
            inner.drain();
        }
        return left;
    }
    worker.drop_all();
    let lingered = inner.shutdown.linger(|runnable| worker.turn(runnable));
    if lingered || inner.shutdown.is_settled() {
        // Cancels what was exempt until now, or left pending on a thread that comes back late.
        inner.cancel_all();
        worker.drop_all();
    }
    inner.drain();
    // Drops what the drops above pushed on this thread.
    worker.drop_all();
    inner.threads.leave();
    inner.shutdown.leave_place();
    left
}

/// Reports and leaves for a worker whose policy panicked at its start, so that no thread waits for
/// it.
fn go_without(inner: &Inner, index: usize) {
    inner.shutdown.tell(index);
    inner.shutdown.tell(index);
    inner.shutdown.progress();
    inner.threads.leave();
    inner.shutdown.leave_place();
}
