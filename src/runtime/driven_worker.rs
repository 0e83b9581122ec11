//! The loop of a worker as a future, which a reactor drives.
//!
//! It is one future for as long as the thread is that worker. It is pending while there is nothing to run, and for a
//! moment about every 50 µs while there is, so that the reactor has its turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::context::{Role, ThreadContext};
use super::driver::Driver;
use super::inner::Inner;
use crate::contain::{attempt, contain};
use crate::instant::{Instant, SystemInstant};
use crate::park::Parker;
use crate::scheduler::{Driven, Worker, WorkerEnd};

/// Runs the loop of a worker in a driver, until it is over.
///
/// The worker's context is entered in each poll, and not around the driver: that may be the `block_on` of another
/// runtime, and what the reactor wakes is from outside.
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
    // A panic is not of anything that the runtime runs, and nothing could be told of it.
    let _ = attempt(|| driver.drive(pinned));
    future.drop_alarm();
    if future.end.is_none() {
        future.driver = None;
        future.park_until_over();
    }
    match future.end {
        Some(end) => end,
        None => unreachable!("it was run until it was over"),
    }
}

/// The loop of a worker as a future.
struct DrivenWorker<'d, 'w, 'c> {
    /// `None`: it has given up.
    driver: Option<&'d dyn Driver>,
    worker: &'d mut Worker<'w, Inner, ThreadContext<'c>>,
    context: &'d ThreadContext<'c>,
    driven: &'d Driven,
    /// When the worker goes on by itself.
    until: Option<Instant>,
    /// What wakes it then.
    alarm: Option<Alarm>,
    /// Why it is no worker any more, once it is not.
    end: Option<WorkerEnd>,
}

type Alarm = Pin<Box<dyn Future<Output = ()> + Send>>;

impl DrivenWorker<'_, '_, '_> {
    /// Lets the worker run until it waits, yields or is over.
    fn run(&mut self, waker: &Waker) {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        self.driven.begin_poll(waker, is_over);
        let _entered = self.context.enter();
        let waited = self.driven.waits().is_some() && !is_over;
        self.end = self.worker.poll(self.driven);
        let wait = self.driven.waits().flatten();
        let until = wait.and_then(|wait| Instant::now().checked_add(wait));
        // A driver may poll as often as it likes: what is left of the first wait counts.
        self.until = match (self.until.filter(|_| waited), until) {
            (Some(before), Some(until)) => Some(before.min(until)),
            (_, until) => until,
        };
    }

    /// Has the driver wake the worker when its time is over.
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
            // The reactor has its turn.
            None => cx.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}
