//! The thread of a worker, from its start until its end in a shutdown.
//!
//! With a driver, the loop of the worker is a future that a reactor drives. One future lasts as long
//! as the thread is that worker. It is pending while there is nothing to run. A busy worker is also
//! pending for a moment about every 50 µs, so that the reactor gets a turn.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::blocking;
use super::context::{Role, ThreadContext};
use super::driver::Driver;
use super::inner::Inner;
use super::warning::Continues;
use crate::contain::{Panic, attempt, contain};
use crate::instant::{Instant, SystemInstant};
use crate::park::Parker;
use crate::scheduler::{DriverWait, Employer, WorkerEnd, WorkerLocal, WorkerLoop};
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{MODEL, mutant};

/// Runs the thread of a worker.
pub(super) fn work(inner: &Arc<Inner>, index: usize) {
    if run_worker(inner, index) == WorkerEnd::Displaced {
        blocking::join_pool(inner);
    }
}

/// Runs worker `index` until the runtime is over, or until another thread is the worker.
pub(super) fn run_worker(inner: &Arc<Inner>, index: usize) -> WorkerEnd {
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
        WorkerLoop::new(&**inner, local, &context).run_until_over()
    });
    leave(inner, &WorkerLoop::new(&**inner, local, &context), left)
}

// Not inlined into `hold`: a worker that is lent to a driver is in memory, and not in registers.
#[inline(never)]
fn hold_driven(
    inner: &Arc<Inner>,
    local: &WorkerLocal<'_>,
    driver: &dyn Driver,
    driven: &DriverWait,
) -> WorkerEnd {
    let context = ThreadContext::new(inner, Role::Worker(local));
    let mut worker = WorkerLoop::new(&**inner, local, &context);
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
    worker: &WorkerLoop<'_, Inner, ThreadContext<'_>>,
    left: WorkerEnd,
) -> WorkerEnd {
    inner.process().end_copy();
    if left == WorkerEnd::Displaced {
        if inner.is_over() {
            cancel_rest(inner);
        }
        return left;
    }
    // SeqCst pairs with the fence after a push (`Inner::push`): a policy has here what a thread has pushed
    // that did not see the end.
    fence(Ordering::SeqCst);
    worker.drop_all();
    let clear = || worker.drop_all();
    inner
        .shutdown
        .linger(|runnable| worker.turn(runnable), clear);
    cancel_rest(inner);
    // Drops what the drops above pushed on this thread.
    worker.drop_all();
    inner.threads.leave();
    inner.shutdown.worker_left();
    // A thread that pushed meanwhile left that to this worker.
    if inner.shutdown.is_completed() && !mutant("the_last_worker_leaves_what_was_pushed") {
        inner.drain();
    }
    left
}

/// Cancels what the last turns of this thread have left pending, or pushed.
///
/// The shutdown may have cancelled all others when such a task was taken from a queue and had not begun
/// its turn. And it may wait for a thread that waits for the drop of that task.
fn cancel_rest(inner: &Inner) {
    if !mutant("a_worker_leaves_what_its_last_turn_left") {
        inner.cancel_queued();
    }
    inner.drain();
}

/// Reports and leaves for a worker whose policy panicked at its start, so that no thread waits for
/// it.
fn go_without(inner: &Inner, index: usize) {
    inner.shutdown.note_queue_report(index);
    inner.shutdown.note_queue_report(index);
    inner.shutdown.progress();
    inner.threads.leave();
    inner.shutdown.worker_left();
}

/// Runs the loop of a worker in a driver until the loop ends.
///
/// The worker's context is entered in each poll, and not around the driver. The driver may be the
/// `block_on` of another runtime, and what the reactor wakes is pushed from outside.
#[inline(never)]
pub(super) fn drive<'c>(
    driver: &dyn Driver,
    worker: &mut WorkerLoop<'_, Inner, ThreadContext<'c>>,
    context: &ThreadContext<'c>,
    driven: &DriverWait,
) -> WorkerEnd {
    let reacting = ThreadContext::new(context.runtime, Role::Reacting);
    let _entered = reacting.enter();
    let mut future = DrivenWorker {
        driver: Some(driver),
        worker,
        context,
        driven,
        until: None,
        alarm: None,
        end: None,
    };
    let pinned: Pin<&mut DrivenWorker<'_, '_, '_>> = Pin::new(&mut future);
    let driven = attempt(|| driver.drive(pinned));
    future.drop_alarm();
    if let Err(panic) = driven {
        let (warnings, index) = (&context.runtime.warnings, future.worker.index());
        warnings.worker_panicked(index, &panic, Continues::WithoutDriver);
    }
    // A driver that returns early, or panics, leaves a worker that parks from now on.
    if future.end.is_none() {
        future.driver = None;
        future.park_until_over();
    }
    match future.end {
        Some(end) => end,
        None => unreachable!("the worker ran to its end"),
    }
}

/// The loop of a worker as a future.
struct DrivenWorker<'d, 'w, 'c> {
    /// `None`: the driver has returned or panicked.
    driver: Option<&'d dyn Driver>,
    worker: &'d mut WorkerLoop<'w, Inner, ThreadContext<'c>>,
    context: &'d ThreadContext<'c>,
    driven: &'d DriverWait,
    /// When the worker continues without being woken.
    until: Option<Instant>,
    /// The future that wakes it then.
    alarm: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Why the thread is no longer the worker, once it is not.
    end: Option<WorkerEnd>,
}

impl DrivenWorker<'_, '_, '_> {
    /// Runs the worker until it waits, yields or ends.
    fn run(&mut self, waker: &Waker) {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        self.driven.begin_poll(waker, is_over);
        let _entered = self.context.enter();
        let waited = self.driven.is_sleeping() && !is_over;
        self.end = self.worker.poll(self.driven);
        let until = self.driven.wait();
        let until = until.and_then(|wait| Instant::now().checked_add(wait));
        // A driver may poll at any time: what is left of the first wait counts.
        self.until = match (self.until.filter(|_| waited), until) {
            (Some(before), Some(until)) => Some(before.min(until)),
            (_, until) => until,
        };
    }

    /// Makes the driver wake the worker when its wait is over.
    fn set_alarm(&mut self, cx: &mut Context<'_>) {
        self.drop_alarm();
        let (Some(driver), Some(until)) = (self.driver, self.until) else {
            return;
        };
        let wait = until.duration_since(Instant::now());
        let Some(at) = SystemInstant::now().checked_add(wait) else {
            return;
        };
        let alarm = self.alarm.insert(driver.sleep_until(at));
        if alarm.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    fn drop_alarm(&mut self) {
        let alarm = self.alarm.take();
        contain(|| drop(alarm));
    }

    /// Runs the worker to its end without a driver.
    fn park_until_over(&mut self) {
        let parker = Arc::new(Parker::new());
        let waker = Waker::from(parker.clone());
        while Pin::new(&mut *self)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            let until = self.until;
            parker.park(until.map(|until| until.duration_since(Instant::now())));
        }
    }
}

impl Future for DrivenWorker<'_, '_, '_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.context.runtime.process().end_copy();
        if this.end.is_none() {
            this.run(cx.waker());
        }
        if this.end.is_some() {
            return Poll::Ready(());
        }
        match this.driven.is_sleeping() {
            true => this.set_alarm(cx),
            // The reactor gets a turn.
            false => cx.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}
