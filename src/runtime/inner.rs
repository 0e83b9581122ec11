//! What all threads of a runtime share.
//!
//! Tasks hold the runtime and its queues hold tasks; the cycle is broken by the shutdown, which
//! drops every task that is left.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::blocking_pool::BlockingPool;
use super::deadlock::Asks;
use super::declared::DeclaredEnds;
use super::engine::{Engine, Threads};
use super::host::HostThreads;
use super::live_cells::LiveCells;
use super::observer::Busy;
use super::options::Options;
use super::shutdown_state::ShutdownState;
use super::thread_set::ThreadSet;
use crate::scheduler::{PolicyImpl, Scheduler};
use crate::sync::Process;
use crate::sync::atomic::AtomicUsize;
use crate::timers::Timers;

/// Aligned, so that what all workers read is on no line with the count of the `Arc`, which each spawn
/// and each end changes.
#[repr(align(128))]
pub struct Inner {
    pub(crate) options: Options,
    pub(crate) scheduler: Scheduler,
    /// What runs everything.
    engine: Box<dyn Engine>,
    pub(crate) declared: DeclaredEnds,
    pub(crate) timers: Timers,
    /// What lives on the workers.
    pub(crate) live: LiveCells,
    pub(super) busy: Busy,
    pub(super) blocking: BlockingPool,
    /// All threads of its own, to be joined at the end.
    pub(crate) threads: Arc<ThreadSet>,
    pub(crate) hosts: HostThreads,
    pub(crate) shutdown: ShutdownState,
    /// Empty unless deadlocks are detected.
    pub(crate) asks: Asks,
    /// How many clones of [`Runtime`](super::Runtime) keep it going.
    pub(super) counting: AtomicUsize,
}

// No user code runs in the middle of a change of it, so no panic leaves it half changed.
impl UnwindSafe for Inner {}
impl RefUnwindSafe for Inner {}

impl Inner {
    /// A runtime whose workers have yet to be started.
    pub(super) fn new(
        options: Options,
        scheduler: Scheduler,
        engine: Option<Box<dyn Engine>>,
    ) -> Self {
        let workers = options.workers;
        Inner {
            blocking: BlockingPool::new(options.thread_name.clone()),
            options,
            asks: Asks::new(&scheduler.activity),
            scheduler,
            engine: engine.unwrap_or_else(|| Box::new(Threads)),
            declared: DeclaredEnds::new(),
            timers: Timers::new(),
            // One more than workers, for all other threads.
            live: LiveCells::new(workers + 1),
            busy: Busy::new(),
            threads: ThreadSet::new(),
            hosts: HostThreads::new(),
            shutdown: ShutdownState::new(workers),
            counting: AtomicUsize::new(1),
        }
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.options.hidden
    }

    pub(super) fn is_over(&self) -> bool {
        self.shutdown.is_over()
    }

    /// Whether its threads are in this process; if not, no lock of it may be taken, and nothing waited for.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.process().is_current()
    }

    /// The process that has its threads.
    #[inline]
    pub(crate) fn process(&self) -> Process {
        self.options.process
    }

    /// # Panics
    /// If that is another one.
    #[inline]
    #[track_caller]
    pub(crate) fn check_process(&self) {
        self.process().check();
    }

    /// What runs everything: threads, or a simulation.
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    #[inline]
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.scheduler.policy, PolicyImpl::Elsewhere)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Whether each run on a pinned thread is told: policies are told of none of these.
    pub(crate) fn is_watching(&self) -> bool {
        self.has_observer() || self.is_simulated()
    }

    pub(crate) fn has_observer(&self) -> bool {
        self.options.observer.is_some()
    }

    /// Counts a thread that runs a task apart from the worker it was.
    pub(super) fn inc_activity_apart(&self) {
        if let PolicyImpl::Stealing(_) = self.scheduler.policy {
            self.inc_activity();
        }
    }

    /// Counts it no more. With another policy it is the runnable that is counted, not the thread.
    pub(super) fn dec_activity_apart(&self) {
        if let PolicyImpl::Stealing(_) = self.scheduler.policy {
            self.dec_activity();
        }
    }
}
