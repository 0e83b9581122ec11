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
use crate::contain::attempt;
use crate::instant::{Instant, SystemInstant};
use crate::park::Parker;
use crate::scheduler::{Driven, Worker, WorkerEnd};

/// Runs the loop of a worker in a driver, until it is over.
#[inline(never)]
pub(super) fn drive<'c>(
    driver: &dyn Driver,
    worker: &mut Worker<'_, Inner, ThreadContext<'c>>,
    context: &ThreadContext<'c>,
    driven: &Driven,
) -> WorkerEnd {
    let mut future = DrivenWorker {
        driver: Some(driver),
        worker,
        context,
        role: context.role.get(),
        driven,
        until: None,
        alarm: None,
        left: None,
    };
    // A panic is not of anything that the runtime runs, and nothing could be told of it.
    let pinned: Pin<&mut DrivenWorker<'_, '_, '_>> = Pin::new(&mut future);
    let _ = attempt(|| driver.drive(pinned));
    if future.left.is_none() {
        future.driver = None;
        future.alarm = None;
        future.park_until_over();
    }
    match future.left {
        Some(left) => left,
        None => unreachable!("it was run until it was over"),
    }
}

/// The loop of a worker as a future.
struct DrivenWorker<'d, 'w, 'c> {
    /// `None`: it has given up.
    driver: Option<&'d dyn Driver>,
    worker: &'d mut Worker<'w, Inner, ThreadContext<'c>>,
    context: &'d ThreadContext<'c>,
    /// That of a worker.
    role: Role<'c>,
    driven: &'d Driven,
    /// When the worker goes on by itself.
    until: Option<Instant>,
    /// What wakes it then.
    alarm: Option<Alarm>,
    /// Why it is no worker any more, once it is not.
    left: Option<WorkerEnd>,
}

type Alarm = Pin<Box<dyn Future<Output = ()> + Send>>;

impl DrivenWorker<'_, '_, '_> {
    /// Lets the worker run until it waits; returns whether it waits.
    fn waits(&mut self, cx: &mut Context<'_>) -> bool {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        self.driven.begin_poll(cx.waker(), is_over);
        self.context.role.set(self.role);
        self.left = self.worker.poll(self.driven);
        if self.left.is_some() {
            return false;
        }
        self.context.role.set(Role::Reacting);
        (self.until, self.alarm) = (None, None);
        let Some(wait) = self.driven.waits() else {
            // The reactor has its turn.
            cx.waker().wake_by_ref();
            return true;
        };
        let Some(wait) = wait else { return true };
        self.until = Instant::now().checked_add(wait);
        let at = SystemInstant::now().checked_add(wait);
        let (Some(driver), Some(at)) = (self.driver, at) else {
            return true;
        };
        let alarm = self.alarm.insert(driver.sleep_until(at));
        alarm.as_mut().poll(cx).is_pending()
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
        while this.left.is_none() {
            if this.waits(cx) {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}
