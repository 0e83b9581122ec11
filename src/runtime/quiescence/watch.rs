//! Who waits for the end of a runtime's work, and what keeps that from coming.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::runtime::handle::Runtime;
use crate::runtime::inner::Inner;
use crate::sync::mutant;
use crate::waiters::Ticket;

impl Runtime {
    /// Waits until the runtime has run out of work: until there was a moment when nothing was under
    /// way, and nothing could come of itself.
    ///
    /// What keeps it alive: tasks and actors that are ready to run or run, the future of a
    /// [`block_on`](Runtime::block_on) among them; its timers, also on its pinned threads; jobs of
    /// [`unblock`](crate::unblock()) that were begun where it is current; and each [`KeepAlive`]. What does not: actors and tasks that wait, for a message, for
    /// I/O, for another thread; an idle pinned thread. Whoever brings it work from elsewhere holds
    /// a [`KeepAlive`], or the moment may come just before.
    ///
    /// That is exact: nothing is under way at that moment, and it is not missed (document 1). The
    /// task that waits here does not count, once it waits; a job of `unblock` that waits for it does, and
    /// waits for ever. It is also ready when the runtime is shut down.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// async fn save(mut cx: Context<String>) {
    ///     while let Some(game) = cx.recv().await {
    ///         greenroom::unblock(move || println!("saved {game}")).await;
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let save = spawn!(save(_));
    ///     save.tell("level 3".into()).unwrap();
    ///     Runtime::current().quiescent().await; // the game is saved
    /// });
    /// ```
    pub async fn quiescent(&self) {
        Quiescent::new(&self.inner).await;
    }

    /// Blocks this thread until the runtime has run out of work, as [`quiescent`](Runtime::quiescent)
    /// says. The runtime goes on afterwards, and this may be called again.
    ///
    /// # Panics
    /// As [`block_on`](Runtime::block_on).
    ///
    /// ```
    /// let runtime = greenroom::Runtime::new()?;
    /// let task = runtime.spawn(async { 40 + 2 });
    /// runtime.run_until_quiescent();
    /// assert!(task.is_finished());
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn run_until_quiescent(&self) {
        self.block_on(self.quiescent());
    }

    /// Keeps the runtime from [running out of work](Runtime::quiescent) as long as it lives.
    pub fn keep_alive(&self) -> KeepAlive {
        KeepAlive::new(&self.inner)
    }
}

/// As long as this lives its runtime is not at its end, whatever runs there.
///
/// For those the runtime cannot see: a thread that will bring it work, an I/O reactor. It says
/// nothing of shutdowns, which do not wait for it. A clone counts as well.
///
/// ```
/// let runtime = greenroom::Runtime::new()?;
/// let keep = runtime.keep_alive();
/// let (sender, receiver) = futures::channel::oneshot::channel();
/// std::thread::spawn(move || {
///     sender.send(42).unwrap();
///     drop(keep); // after what it brings
/// });
/// let task = runtime.spawn(receiver);
/// runtime.run_until_quiescent();
/// assert!(task.is_finished());
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[must_use = "it keeps the runtime alive until it is dropped"]
pub struct KeepAlive(Arc<Inner>);

impl KeepAlive {
    pub(crate) fn new(runtime: &Arc<Inner>) -> Self {
        runtime.inc_activity();
        KeepAlive(runtime.clone())
    }
}

impl Clone for KeepAlive {
    fn clone(&self) -> Self {
        KeepAlive::new(&self.0)
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        if mutant("the_last_hold_declares_nothing") {
            self.0.scheduler.activity.dec();
            return;
        }
        self.0.dec_activity();
    }
}

impl fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepAlive").finish_non_exhaustive()
    }
}

/// The future of [`quiescent`](crate::Runtime::quiescent).
pub(crate) struct Quiescent {
    runtime: Arc<Inner>,
    /// The number of this asker, from the first poll on.
    number: Option<u64>,
    ticket: Ticket,
}

impl Quiescent {
    pub(crate) fn new(runtime: &Arc<Inner>) -> Self {
        Quiescent {
            runtime: runtime.clone(),
            number: None,
            ticket: Ticket::default(),
        }
    }
}

impl Future for Quiescent {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.runtime.check_process();
        let declared = &this.runtime.declared;
        let activity = &this.runtime.scheduler.activity;
        let first = this.number.is_none();
        let number = *this.number.get_or_insert_with(|| activity.ask());
        let happened = || activity.told() >= number || this.runtime.is_over();
        let polled = declared.waiters.poll(&mut this.ticket, cx, happened);
        if first && polled.is_pending() && !mutant("a_watcher_does_not_look") {
            // Everything may be at rest already, if whoever polls this is not counted.
            this.runtime.declare();
        }
        polled
    }
}

impl Drop for Quiescent {
    fn drop(&mut self) {
        if self.runtime.is_here() {
            self.runtime.declared.waiters.leave(&mut self.ticket);
        }
    }
}
