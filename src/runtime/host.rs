//! Threads with an executor of their own, as their runtime sees them.
//!
//! Pinned threads and stages are such hosts. The runtime knows them only through two traits: what
//! lives on one, and how it is asked to end.

use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::inner::Inner;
use super::live_cells::LiveCells;
use crate::sync::Mutex;
use crate::task::{Look, NotedWaits, Runnable, TaskInfo, TaskKey};
use crate::timers::TimerClock;

/// The phase of the thread of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostPhase {
    /// The thread runs its tasks.
    Running,
    /// Everything is dropped but a task that awaits the shutdown of the runtime.
    Lingering,
    /// Everything is dropped.
    Ended,
}

/// A host, as any thread sees it.
pub(crate) trait HostThread: Send + Sync {
    /// Returns the actors and tasks of the host.
    fn live(&self) -> &LiveCells;

    /// Returns the number of its timers that wait.
    fn timers(&self) -> usize;

    /// Refuses new tasks and actors.
    fn close(&self);

    /// Asks all actors to end. Whatever is queued by then runs before the thread ends.
    fn stop_cells(&self);

    /// Returns how many runnables that were queued before the shutdown have not been taken yet.
    fn before(&self) -> usize;

    /// Makes the thread end.
    fn finish(&self);

    fn phase(&self) -> HostPhase;

    /// Runs a runnable on the calling thread, which is the thread of the simulation.
    fn run_simulated(self: Arc<Self>, runnable: Runnable);

    /// Drops a runnable on the calling thread, which is the thread of the simulation.
    fn drop_simulated(self: Arc<Self>, runnable: Runnable);

    /// Cancels everything on the host that is not exempt, on the thread of the simulation. Returns
    /// how many actors and tasks are left.
    fn clear_simulated(self: Arc<Self>, exempt: &[TaskKey]) -> usize;
}

/// Returns a key that differs from the keys of all other live hosts.
pub(crate) fn key_of(host: &Arc<dyn HostThread>) -> usize {
    Arc::as_ptr(host).addr()
}

/// A host, as its own thread sees it.
pub(crate) trait HostContext: Any {
    fn runtime(&self) -> &Arc<Inner>;

    /// Returns the timers of the host's tasks.
    fn clock(&self) -> Arc<dyn TimerClock>;

    /// Returns whether exactly one actor lives here and nothing else, so that it may block its
    /// thread.
    fn is_detached(&self) -> bool;

    /// Returns how many actors, tasks and hosted values live here.
    fn living(&self) -> usize;

    /// Returns whether a foreign loop drives the thread, and asks for its next deadline.
    fn is_stage(&self) -> bool;

    // -- of a stage -----------------------------------------------------------------------------

    /// Runs the tasks that are ready, and returns the number of turns.
    fn run_ready(&self) -> usize;

    /// Returns the time until the next deadline.
    fn until_next(&self) -> Option<Duration>;

    /// Makes the foreign loop be called again for work that arrives from now on.
    fn take_call_back(&self);

    /// Drops everything that lives here.
    fn end(&self);
}

/// All hosts of a runtime.
pub(crate) struct HostThreads(Mutex<HostList>);

#[derive(Default)]
struct HostList {
    hosts: Vec<Arc<dyn HostThread>>,
    closed: bool,
}

impl HostThreads {
    pub(super) fn new() -> Self {
        HostThreads(Mutex::new(HostList::default()))
    }

    /// Adds a host if `start` starts it. Returns `None` if the runtime is shutting down.
    pub(crate) fn enter<T>(
        &self,
        host: Arc<dyn HostThread>,
        start: impl FnOnce() -> io::Result<T>,
    ) -> Option<io::Result<T>> {
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

    /// Removes a host that has ended by itself. During a shutdown it stays, because the shutdown
    /// asks for its phase.
    pub(crate) fn leave(&self, host: &Arc<dyn HostThread>) {
        let mut all = self.0.lock();
        if !all.closed {
            all.hosts.retain(|other| key_of(other) != key_of(host));
        }
    }

    fn all(&self) -> Vec<Arc<dyn HostThread>> {
        self.0.lock().hosts.clone()
    }

    /// Returns the number of actors on all hosts.
    pub(crate) fn cells(&self) -> usize {
        self.all().iter().map(|host| host.live().cells()).sum()
    }

    /// Returns the number of plain tasks on all hosts that have gone pending.
    pub(super) fn tasks(&self) -> usize {
        self.all().iter().map(|host| host.live().tasks()).sum()
    }

    /// Returns the number of timers on all hosts that wait.
    pub(super) fn timers(&self) -> usize {
        self.all().iter().map(|host| host.timers()).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().hosts.len()
    }

    /// Describes the plain tasks on all hosts that have gone pending.
    pub(super) fn describe_tasks(&self, each: &mut dyn FnMut(TaskInfo)) {
        for host in self.all() {
            host.live().describe_tasks(each);
        }
    }

    /// Describes the actors on all hosts that are not in `spare`.
    pub(super) fn describe_cells(&self, spare: &[TaskKey], mut each: impl FnMut(TaskInfo, Look)) {
        for host in self.all() {
            host.live().describe_cells(spare, &mut each);
        }
    }

    /// Calls `each` with the key of each host and with its actors.
    pub(super) fn for_each_live(&self, mut each: impl FnMut(usize, &LiveCells)) {
        for host in self.all() {
            each(key_of(&host), host.live());
        }
    }

    /// Returns what the cells of the hosts wait for, as [`LiveCells::noted_waits`] does.
    pub(super) fn noted_waits(&self) -> Vec<(u64, NotedWaits)> {
        let hosts = self.all().into_iter();
        hosts.flat_map(|host| host.live().noted_waits()).collect()
    }

    /// Wakes the actors with these numbers.
    pub(super) fn wake_cells(&self, numbers: &BTreeSet<u64>) {
        let hosts = self.all();
        hosts
            .iter()
            .for_each(|host| host.live().wake_cells(numbers));
    }

    /// Refuses new hosts, tasks and actors.
    pub(super) fn close_to_cells(&self) {
        self.0.lock().closed = true;
        self.all().iter().for_each(|host| host.close());
    }

    /// Asks all actors to end. Whatever is queued by then runs before the threads end.
    pub(super) fn stop_cells(&self) {
        self.all().iter().for_each(|host| host.stop_cells());
    }

    /// Returns how many runnables that were queued before the shutdown have not been taken yet.
    pub(super) fn before(&self) -> usize {
        self.all().iter().map(|host| host.before()).sum()
    }

    /// Cancels, in a simulation, everything on the hosts that is not exempt. Returns how many
    /// actors and tasks are left.
    pub(crate) fn clear_simulated(&self, exempt: &[TaskKey]) -> usize {
        let hosts = self.all().into_iter();
        hosts.map(|host| host.clear_simulated(exempt)).sum()
    }

    /// Takes all hosts out, after which none of them is asked any more.
    pub(crate) fn take(&self) -> Vec<Arc<dyn HostThread>> {
        std::mem::take(&mut self.0.lock().hosts)
    }

    /// Makes all threads end.
    pub(crate) fn finish(&self) {
        self.all().iter().for_each(|host| host.finish());
    }

    /// Returns whether every host has ended or holds only tasks that await the shutdown.
    pub(super) fn all_ended(&self) -> bool {
        let is_running = |host: &Arc<dyn HostThread>| host.phase() == HostPhase::Running;
        !self.all().iter().any(is_running)
    }

    /// Releases all hosts. Returns how many threads are left behind, and the hosts on which
    /// something may still live.
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
