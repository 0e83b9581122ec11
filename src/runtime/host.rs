//! Threads with an executor of their own, as the runtime sees them that they belong to.
//!
//! Pinned threads and stages are such threads. The runtime knows them by these two traits alone: what lives on one,
//! and how it is asked to end.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::inner::Inner;
use super::live_cells::LiveCells;
use crate::sync::Mutex;
use crate::task::{Look, Runnable, TaskInfo, TaskKey};
use crate::timers::Clock;

/// How far the thread of a host is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostPhase {
    /// It runs what there is.
    Running,
    /// All is dropped but a task that awaits the shutdown of the runtime.
    Lingering,
    /// All is dropped.
    Ended,
}

/// A host, as any thread sees it.
pub(crate) trait HostThread: Send + Sync {
    /// Returns what lives there.
    fn live(&self) -> &LiveCells;

    /// Lets nothing new begin.
    fn close(&self);

    /// Asks all actors to end. What is queued by then has its run before the thread ends.
    fn stop_cells(&self);

    /// Returns how many runnables that were queued before the shutdown have not been taken yet.
    fn before(&self) -> usize;

    /// Tells the thread to end.
    fn finish(&self);

    fn phase(&self) -> HostPhase;

    /// Runs this on the calling thread, which is that of the simulation.
    fn run_simulated(self: Arc<Self>, runnable: Runnable);

    /// Drops this on the calling thread, which is that of the simulation.
    fn drop_simulated(self: Arc<Self>, runnable: Runnable);

    /// Cancels all that lives there but what is exempt, on the thread of the simulation; returns how much is left.
    fn clear_simulated(self: Arc<Self>, exempt: &[TaskKey]) -> usize;
}

/// Returns what tells a host from all others that live.
pub(crate) fn key_of(host: &Arc<dyn HostThread>) -> usize {
    Arc::as_ptr(host).addr()
}

/// A host, as its own thread sees it.
pub(crate) trait HostContext: Any {
    fn runtime(&self) -> &Arc<Inner>;

    /// Returns the timers of what runs here.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Returns whether one actor lives here and nothing else, so that it may wait as it likes.
    fn is_detached(&self) -> bool;

    /// Returns whether a foreign loop drives the thread, which asks for its next deadline.
    fn is_stage(&self) -> bool;

    // -- of a stage -----------------------------------------------------------------------------

    /// Runs what is ready; returns how many turns that were.
    fn run_ready(&self) -> usize;

    /// Returns how long it is until the next deadline.
    fn until_next(&self) -> Option<Duration>;

    /// Has the foreign loop called again for what comes from now on.
    fn take_call_back(&self);

    /// Drops all that is here.
    fn end(&self);
}

/// All hosts of a runtime.
pub(crate) struct HostThreads(Mutex<All>);

#[derive(Default)]
struct All {
    hosts: Vec<Arc<dyn HostThread>>,
    closed: bool,
}

impl HostThreads {
    pub(super) fn new() -> Self {
        HostThreads(Mutex::new(All::default()))
    }

    /// Adds a host if `start` starts it; `None` if the runtime is shutting down.
    pub(crate) fn enter(
        &self,
        host: Arc<dyn HostThread>,
        start: impl FnOnce() -> io::Result<()>,
    ) -> Option<io::Result<()>> {
        let mut all = self.0.lock();
        if all.closed {
            return None;
        }
        let started = start();
        if started.is_ok() {
            all.hosts.push(host);
        }
        Some(started)
    }

    /// Removes a host that has ended by itself. While the runtime is closing it stays, to be asked how far it is.
    pub(crate) fn leave(&self, host: &Arc<dyn HostThread>) {
        let mut all = self.0.lock();
        if !all.closed {
            all.hosts.retain(|other| key_of(other) != key_of(host));
        }
    }

    fn all(&self) -> Vec<Arc<dyn HostThread>> {
        self.0.lock().hosts.clone()
    }

    /// How many actors live on all of them.
    pub(crate) fn cells(&self) -> usize {
        self.all().iter().map(|host| host.live().cells()).sum()
    }

    /// How many plain tasks that have waited live on all of them.
    pub(super) fn tasks(&self) -> usize {
        self.all().iter().map(|host| host.live().tasks()).sum()
    }

    /// Tells of the actors on all of them.
    pub(super) fn describe_cells(&self, mut each: impl FnMut(TaskInfo, Look)) {
        for host in self.all() {
            host.live().describe_cells(&mut each);
        }
    }

    /// Lets nothing new begin.
    pub(super) fn close_to_cells(&self) {
        self.0.lock().closed = true;
        self.all().iter().for_each(|host| host.close());
    }

    /// Asks all actors to end; what is queued by then has its run before the threads end.
    pub(super) fn stop_cells(&self) {
        self.all().iter().for_each(|host| host.stop_cells());
    }

    /// How many that were queued before the shutdown have not been taken yet.
    pub(super) fn before(&self) -> usize {
        self.all().iter().map(|host| host.before()).sum()
    }

    /// In a simulation: cancels all that lives here but what is exempt; says how much is left.
    pub(crate) fn clear_simulated(&self, exempt: &[TaskKey]) -> usize {
        let hosts = self.all().into_iter();
        hosts.map(|host| host.clear_simulated(exempt)).sum()
    }

    /// All that there are, of which none is looked at any more.
    pub(crate) fn take(&self) -> Vec<Arc<dyn HostThread>> {
        std::mem::take(&mut self.0.lock().hosts)
    }

    /// Tells all threads to end.
    pub(crate) fn finish(&self) {
        self.all().iter().for_each(|host| host.finish());
    }

    /// Whether no thread has anything left but what awaits the shutdown.
    pub(super) fn all_ended(&self) -> bool {
        let is_running = |host: &Arc<dyn HostThread>| host.phase() == HostPhase::Running;
        !self.all().iter().any(is_running)
    }

    /// Lets go of all; says how many are left behind, and on which something may still live.
    pub(super) fn let_go(&self) -> (usize, Vec<Arc<dyn HostThread>>) {
        let (mut left_behind, mut staying) = (0, self.take());
        staying.retain(|host| {
            let phase = host.phase();
            left_behind += usize::from(phase == HostPhase::Running);
            phase != HostPhase::Ended
        });
        (left_behind, staying)
    }
}
