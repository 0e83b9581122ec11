//! The loop of a worker as a future that a reactor drives.
//!
//! One future lasts as long as the thread is that worker. It is pending while there is nothing to
//! run. A busy worker is also pending for a moment about every 50 µs, so that the reactor gets a
//! turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::context::{Role, ThreadContext};
use super::driver::Driver;
use super::inner::Inner;
use super::warning::Continues;
use crate::contain::{attempt, contain};
use crate::instant::{Instant, SystemInstant};
use crate::park::Parker;
use crate::scheduler::{Driven, Worker, WorkerEnd};

/// Runs the loop of a worker in a driver until the loop ends.
///
/// The worker's context is entered in each poll, and not around the driver. The driver may be the
/// `block_on` of another runtime, and what the reactor wakes is pushed from outside.
#[inline(never)]
pub(super) fn drive<'c>(
    driver: &dyn Driver,
    worker: &mut Worker<'_, Inner, ThreadContext<'c>>,
    context: &ThreadContext<'c>,
    driven: &Driven,
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
    worker: &'d mut Worker<'w, Inner, ThreadContext<'c>>,
    context: &'d ThreadContext<'c>,
    driven: &'d Driven,
    /// When the worker continues without being woken.
    until: Option<Instant>,
    /// The future that wakes it then.
    alarm: Option<Alarm>,
    /// Why the thread is no longer the worker, once it is not.
    end: Option<WorkerEnd>,
}

type Alarm = Pin<Box<dyn Future<Output = ()> + Send>>;

impl DrivenWorker<'_, '_, '_> {
    /// Runs the worker until it waits, yields or ends.
    fn run(&mut self, waker: &Waker) {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        self.driven.begin_poll(waker, is_over);
        let _entered = self.context.enter();
        let waited = self.driven.waits().is_some() && !is_over;
        self.end = self.worker.poll(self.driven);
        let wait = self.driven.waits().flatten();
        let until = wait.and_then(|wait| Instant::now().checked_add(wait));
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
        match this.driven.waits() {
            Some(_) => this.set_alarm(cx),
            // The reactor gets a turn.
            None => cx.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}
