//! Quiescence, the state of a runtime without work: detection, waiting for it, and `KeepAlive`.
//!
//! The scheduler's `activity.rs` defines what counts as work. In Sophie
//! (<https://github.com/kjosib/sophie>) quiescence is the end of the program. Asks may be ended as a
//! deadlock before it, if the only deadlines are their own timeouts.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::deadlock;
use super::declared::Quiescence;
use super::handle::Runtime;
use super::inner::Inner;
use super::warning::Warning;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::mutant;
use crate::timers::Left;
use crate::waiters::Ticket;

impl Inner {
    /// Counts a thread or runnable that may create work.
    pub(crate) fn inc_activity(&self) {
        self.scheduler.activity.inc();
    }

    /// Releases such a count, where wakers may be called.
    pub(crate) fn dec_activity(&self) {
        if self.scheduler.activity.dec() {
            self.declare();
        }
    }

    /// Declares quiescence if it has been reached, where wakers may be called.
    pub(crate) fn declare(&self) {
        if !self.is_here() {
            return;
        }
        while let Some(end) = self.find_end() {
            if self.engine().judges_end(self) {
                return;
            }
            // The notified tasks may create work.
            self.inc_activity();
            self.report_end(&end);
            if !self.scheduler.activity.dec() {
                return;
            }
        }
    }

    /// Notes quiescence from a worker that sleeps already; the worker wakes up to notify the
    /// waiters.
    pub(crate) fn declare_from_sleep(&self) {
        if let Some(end) = self.find_end() {
            *self.declared.last.lock() = Some(end);
            // Release pairs with the Acquire in `is_declared`.
            self.declared.is_declared.store(true, Ordering::Release);
        }
    }

    /// Notifies the waiters of the quiescence that this or another worker has noted.
    pub(crate) fn report_quiescence(&self) {
        if !self.declared.is_declared() {
            return;
        }
        let declared = self.declared.last.lock().take();
        // Release: as above. A later declaration is made when this worker sleeps again.
        self.declared.is_declared.store(false, Ordering::Release);
        declared.iter().for_each(|end| self.report_end(end));
        self.report_found();
    }

    /// Ends the asks that can never be answered, whose askers then continue. If there are none,
    /// warns of other waits that never end, and wakes the tasks that wait for quiescence.
    fn report_end(&self, end: &Quiescence) {
        if !end.deadlocked.is_empty() {
            deadlock::end(&end.deadlocked, &end.waits);
            return;
        }
        self.waits.mark_reported(&end.cycles);
        for cycle in &end.cycles {
            self.warnings.warn(&Warning::Deadlock(cycle.path.clone()));
        }
        if end.quiescence_waits > self.scheduler.activity.notified()
            && self.options.detect_deadlocks
        {
            self.warn_of_lonely_actors();
        }
        self.scheduler.activity.notify(end.quiescence_waits);
        self.declared.waiters.wake_all();
    }

    /// Returns the end to declare if nothing is in flight, nothing can create work, and a task
    /// waits for quiescence, for a reply, or for another task in a cycle.
    fn find_end(&self) -> Option<Quiescence> {
        let activity = &self.scheduler.activity;
        // Acquire: sees everything that threads no longer counted have put into queues
        // (ACTIVITY-1).
        let before = activity.read(Ordering::Acquire);
        if activity.is_active(before) || !activity.is_awaited() {
            return None;
        }
        let left = match self.timers.left() {
            Left::Timeouts if mutant("timeouts_are_no_work") => Left::Nothing,
            left => left,
        };
        if !mutant("declared_before_the_scan")
            && (self.scheduler.has_uncounted() || left == Left::Events)
        {
            return None;
        }
        let waiting = self.asks.waiting();
        let waits = match self.options.detect_deadlocks {
            true => self.waits.stuck(),
            false => Vec::new(),
        };
        let deadlocked = match left {
            Left::Timeouts => deadlock::deadlocked(waiting, &waits)?,
            _ => waiting,
        };
        // An ask that ends may end a cycle.
        let cycles = match deadlocked.is_empty() {
            true => deadlock::cycles(&waits),
            false => Vec::new(),
        };
        let quiescence_waits = activity.quiescence_waits();
        if deadlocked.is_empty() && cycles.is_empty() && quiescence_waits <= activity.notified() {
            return None;
        }
        let end = Quiescence {
            quiescence_waits,
            deadlocked,
            waits,
            cycles,
        };
        // Acquire pairs with the Release of each removal that was seen, so that the increment
        // before that removal is seen.
        fence(Ordering::Acquire);
        let same = activity.read(Ordering::Relaxed) == before;
        (same || mutant("declared_without_a_second_look")).then_some(end)
    }
}

impl Runtime {
    /// Waits until the runtime is quiescent: a moment when nothing is ready, running or scheduled.
    ///
    /// A runtime is kept from quiescence by:
    ///
    /// - tasks and actors that are ready or running, and the futures of
    ///   [`block_on`](Runtime::block_on) that are not pending;
    /// - armed timers, also on its pinned threads;
    /// - jobs of [`unblock`](crate::unblock()) that were started where this runtime was current;
    /// - every [`Stage`](crate::Stage) of the runtime, and every [`KeepAlive`].
    ///
    /// Actors and tasks that wait for a message, for I/O or for another thread do not prevent
    /// quiescence, and neither does an idle pinned thread. A thread or reactor that will bring work
    /// from outside holds a `KeepAlive`. Otherwise the runtime may be quiescent just before the
    /// work arrives.
    ///
    /// The detection is exact: the future completes only if nothing was in progress at that moment,
    /// and it does not miss such a moment. It also completes when the runtime has shut down.
    ///
    /// The task that waits here does not count while it is pending. A job of `unblock` that blocks
    /// on this future does count, so it never returns.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost.
    ///
    /// # Examples
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

    /// Blocks this thread until the runtime is [quiescent](Runtime::quiescent).
    ///
    /// The runtime keeps running afterwards, and this method may be called again.
    ///
    /// # Panics
    /// As [`block_on`](Runtime::block_on).
    ///
    /// # Examples
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

    /// Returns a guard that keeps the runtime from becoming [quiescent](Runtime::quiescent).
    pub fn keep_alive(&self) -> KeepAlive {
        KeepAlive::new(&self.inner)
    }
}

/// A guard that keeps its runtime from becoming [quiescent](crate::Runtime::quiescent).
///
/// It is created by [`Runtime::keep_alive`](crate::Runtime::keep_alive), and held by code that the
/// runtime cannot see: a thread or an I/O reactor that will bring it work. Each clone counts as
/// well. Drop the guard after the work was handed over.
///
/// A shutdown does not wait for these guards.
///
/// # Examples
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
        self.0.begin_silence();
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
    /// The number of this waiter, from the first poll on.
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
        let number = *this
            .number
            .get_or_insert_with(|| activity.await_quiescence());
        let happened = || activity.notified() >= number || this.runtime.is_over();
        let polled = declared.waiters.poll(&mut this.ticket, cx, happened);
        if first && polled.is_pending() && !mutant("a_watcher_does_not_look") {
            // The runtime may be quiescent already, if the thread that polls this is not counted.
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
