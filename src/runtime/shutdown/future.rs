//! How a task awaits the shutdown of its runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::runtime::context;
use crate::runtime::handle::Runtime;
use crate::runtime::inner::Inner;
use crate::runtime::shutdown_report::ShutdownReport;
use crate::task::TaskKey;
use crate::waiters::Ticket;

impl Runtime {
    /// Stops every actor, waits for them, cancels what is left, and ends the threads.
    ///
    /// Nothing new is accepted from the first poll on. For the time of
    /// [`grace`](crate::Builder::grace) actors may finish what they accepted, and plain tasks run on. When
    /// the last actor has ended or the time is over, and whatever was queued before the call has
    /// had that run, all that is left is cancelled. A thread that user code does not give back
    /// within the grace and a second more is left behind, and counted in the report. So is one that
    /// takes more than half a second, after the grace, to drop its thread-locals.
    ///
    /// The task that awaits this is exempt: it is not waited for, and not cancelled before it has
    /// the report; its worker ends when it next suspends. A second call gives the same report.
    ///
    /// # Cancel safety
    /// Once polled, the shutdown goes on whether or not it is awaited.
    pub async fn shutdown(&self) -> ShutdownReport {
        let runtime = self.inner.clone();
        Closed {
            runtime,
            begun: false,
            exempt: None,
            ticket: Default::default(),
        }
        .await
    }
}

/// The future of [`Runtime::shutdown`](crate::Runtime::shutdown).
pub(super) struct Closed {
    pub(super) runtime: Arc<Inner>,
    pub(super) begun: bool,
    /// The task that polled this last, if it is one of the runtime's.
    pub(super) exempt: Option<TaskKey>,
    pub(super) ticket: Ticket,
}

impl Closed {
    /// Has the task that polls this exempted, and no longer the one that did before.
    fn exempt_this(&mut self) {
        let here = context::with(|context| {
            let context = context?;
            let ours = Arc::ptr_eq(context.runtime, &self.runtime);
            context.running.get().filter(|_| ours)
        });
        if here == self.exempt {
            return;
        }
        if let Some(key) = here {
            self.runtime.shutdown.exempt(key);
        }
        if let Some(key) = std::mem::replace(&mut self.exempt, here) {
            self.runtime.shutdown.exempt_no_more(key);
        }
    }
}

impl Future for Closed {
    type Output = ShutdownReport;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ShutdownReport> {
        let this = self.get_mut();
        this.runtime.check_process();
        let shutdown = &this.runtime.clone().shutdown;
        if shutdown.report().is_none() {
            this.exempt_this();
            if !this.begun {
                this.begun = true;
                this.runtime.begin_close(this.runtime.options.grace);
            }
            ready!(shutdown.poll_report(&mut this.ticket, cx));
        }
        Poll::Ready(shutdown.report().expect("waited for it"))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if !self.runtime.is_here() {
            return;
        }
        // A task that no longer waits is like any other. One that has its report is in its last
        // turn now, and ends when it next suspends.
        if let Some(key) = self.exempt.take() {
            self.runtime.shutdown.exempt_no_more(key);
        }
        self.runtime.shutdown.leave_report(&mut self.ticket);
    }
}
