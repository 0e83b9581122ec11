//! The thread of a worker, from its start until its end in a shutdown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::blocking;
use super::context::{Role, ThreadContext};
use super::driven_worker::drive;
use super::driver::Driver;
use super::inner::Inner;
use super::warning::Continues;
use crate::contain::{Panic, attempt, contain};
use crate::scheduler::{Driven, Employer, Worker, WorkerEnd, WorkerLocal};
use crate::sync::MODEL;

/// Runs the thread of a worker.
pub(super) fn work(inner: &Arc<Inner>, index: usize) {
    if hold_place(inner, index) == WorkerEnd::Displaced {
        blocking::come(inner);
    }
}

/// Runs worker `index` until the runtime is over, or until another thread takes its place.
pub(super) fn hold_place(inner: &Arc<Inner>, index: usize) -> WorkerEnd {
    let made = attempt(|| WorkerLocal::new(&inner.scheduler, &**inner, index));
    let mut local = match made {
        Ok(local) => local,
        Err(panic) => {
            let warnings = &inner.warnings;
            warnings.worker_panicked(index, &panic, Continues::Nowhere);
            go_without(inner, index);
            return WorkerEnd::Over;
        }
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
    // The worker of the loop is in registers, so it is made within.
    let left = until_over(&context, local, || {
        Worker::new(&**inner, local, &context).run_until_over()
    });
    leave(inner, &Worker::new(&**inner, local, &context), left)
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
    let left = until_over(&context, local, || {
        drive(driver, &mut worker, &context, driven)
    });
    let _entered = context.enter();
    leave(inner, &worker, left)
}

/// Runs the loop of a worker to its end. If it panics, another thread becomes the worker; if none
/// can be started, this one remains it.
fn until_over<'a>(
    context: &ThreadContext<'a>,
    local: &'a WorkerLocal<'a>,
    mut run: impl FnMut() -> WorkerEnd,
) -> WorkerEnd {
    let counters = &context.runtime.scheduler.counters[local.index()];
    loop {
        let turns = counters.runs();
        let panic = match attempt(&mut run) {
            Ok(left) => return left,
            Err(panic) => panic,
        };
        if has_replaced(context, local, panic, counters.runs() > turns) {
            return WorkerEnd::Displaced;
        }
    }
}

/// How long a thread waits before the worker continues, if its loop has panicked before its first
/// turn. It may do so again and again, and must not hold a core.
const PAUSE: Duration = Duration::from_millis(100);

/// Reports the panic of a worker's loop, and makes another thread the worker. Returns false if none
/// could be started, or the runtime has ended.
#[cold]
fn has_replaced<'a>(
    context: &ThreadContext<'a>,
    local: &'a WorkerLocal<'a>,
    panic: Panic,
    had_turns: bool,
) -> bool {
    let inner = context.runtime;
    if MODEL && panic.text() != Some(IN_A_TEST) {
        // Of the model.
        std::panic::resume_unwind(panic.into_payload());
    }
    let warn = |continues| {
        let warnings = &inner.warnings;
        warnings.worker_panicked(local.index(), &panic, continues);
    };
    if context.running.take().is_some() {
        // Its turn was not ended.
        inner.turn_ended();
    }
    if context.is_displaced() {
        warn(Continues::OnAnotherThread);
        return true;
    }
    local.recover();
    if !had_turns && !MODEL {
        std::thread::sleep(PAUSE);
    }
    let given = match blocking::give_away(context, local) {
        Ok(false) => Err(io::Error::other("the runtime has ended")),
        given => given.map(drop),
    };
    let has_replaced = given.is_ok();
    let continues = given.map_or_else(
        |error| Continues::OnThisThread(Arc::new(error)),
        |()| Continues::OnAnotherThread,
    );
    warn(continues);
    has_replaced
}

/// The text of the panics that tests cause in the loop of a worker.
pub(super) const IN_A_TEST: &str = "bomb in a loop";

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
