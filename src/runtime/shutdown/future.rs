//! The future with which a task awaits the shutdown of its runtime.

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
    /// Shuts the runtime down: stops every actor, cancels whatever remains, and ends the threads.
    ///
    /// From the first poll on, the runtime accepts nothing new. Actors get
    /// [`grace`](crate::Builder::grace) to handle the messages that they accepted, while plain
    /// tasks continue to run. The wait ends when the last actor has ended or the grace is over.
    /// Tasks that were queued before the call still get their turn. Then all remaining actors and
    /// tasks are cancelled.
    ///
    /// A thread that user code does not return within the grace and about one more second is left
    /// behind, and counted in the report. So is a thread that takes more than half a second, after
    /// the grace, to drop its thread-locals.
    ///
    /// The task that awaits this future is exempt. The shutdown does not wait for it, and does not
    /// cancel it before it has the report. Its worker ends when the task next suspends. A second
    /// call returns the same report.
    ///
    /// # Panics
    /// In a child of a `fork`, if the runtime belongs to the parent.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll does not stop the shutdown. Another call returns
    /// the report.
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
    /// The task that polled this last, if it belongs to the runtime.
    pub(super) exempt: Option<TaskKey>,
    pub(super) ticket: Ticket,
}

impl Closed {
    /// Exempts the task that polls this, and no longer the task that polled it before.
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
        Poll::Ready(shutdown.report().expect("the report was awaited"))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if !self.runtime.is_here() {
            return;
        }
        // A task that no longer waits is like any other. A task that has the report is in its last
        // turn now, and ends when it next suspends.
        if let Some(key) = self.exempt.take() {
            self.runtime.shutdown.exempt_no_more(key);
        }
        self.runtime.shutdown.leave_report(&mut self.ticket);
    }
}
