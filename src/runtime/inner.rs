//! The state that all threads of a runtime share.
//!
//! Tasks hold the runtime and its queues hold tasks. The shutdown breaks this cycle: it drops every
//! task that is left.

use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::ask_times::AskTimes;
use super::blocking_pool::BlockingPool;
use super::deadlock::{ActorWaits, AskList, detect_waits};
use super::declared::DeclaredEnds;
use super::engine::{RuntimeEngine, Threads};
use super::faults::FaultLog;
use super::host::HostThreads;
use super::live_cells::LiveCells;
use super::locations::SpawnLocations;
use super::long_turns::LongTurns;
use super::observer::Busy;
use super::options::RuntimeOptions;
use super::shutdown_state::ShutdownState;
use super::silence_state::Silence;
use super::thread_set::ThreadSet;
use super::thread_set::ThreadStart;
use super::viewers::Viewers;
use super::warning::WarningReceiver;
use crate::directory::Directory;
use crate::scheduler::{PolicyImpl, Scheduler};
use crate::sync::atomic::AtomicUsize;
use crate::sync::{OnceLock, Process};
use crate::task::{Label, run};
use crate::timers::Timers;

/// Aligned so that no field shares a cache line with the reference count of the `Arc`. Every spawn
/// and every end of a task changes that count, and all workers read the fields.
#[repr(align(128))]
pub struct Inner {
    pub(crate) options: RuntimeOptions,
    pub(crate) scheduler: Scheduler,
    /// Runs everything: the threads, or a simulation.
    engine: Box<dyn RuntimeEngine>,
    pub(crate) declared: DeclaredEnds,
    pub(crate) timers: Timers,
    /// The actors and tasks on the workers.
    pub(crate) live: LiveCells,
    pub(super) busy: Busy,
    /// `None` if no warning needs them.
    pub(super) locations: Option<Arc<SpawnLocations>>,
    pub(super) long_turns: Option<Arc<LongTurns>>,
    pub(super) warnings: WarningReceiver,
    /// The marks of the runtime's cells.
    pub(super) marks: u8,
    pub(super) blocking: BlockingPool,
    /// The runtime's own threads, which the shutdown joins.
    pub(crate) threads: Arc<ThreadSet>,
    pub(crate) hosts: HostThreads,
    pub(crate) shutdown: ShutdownState,
    /// Empty unless deadlocks are detected.
    pub(crate) asks: AskList,
    /// Empty unless deadlocks are detected.
    pub(crate) waits: ActorWaits,
    pub(super) ask_times: Arc<AskTimes>,
    pub(crate) silence: Silence,
    pub(super) viewers: Arc<Viewers>,
    pub(super) faults: FaultLog,
    /// The number of counting clones of [`Runtime`](super::Runtime).
    pub(super) counting: AtomicUsize,
    /// The names and groups, made at the first use.
    directory: OnceLock<Box<Directory>>,
}

// No user code runs in the middle of a change to it, so no panic leaves it inconsistent.
impl UnwindSafe for Inner {}
impl RefUnwindSafe for Inner {}

impl Inner {
    /// Creates a runtime whose workers are not started yet.
    pub(super) fn new(
        options: RuntimeOptions,
        scheduler: Scheduler,
        engine: Option<Box<dyn RuntimeEngine>>,
    ) -> Self {
        let workers = options.workers;
        let warnings = WarningReceiver {
            on_warning: options.on_warning.clone(),
            tracer: options.tracer.clone(),
            called: options.thread_name.clone(),
            is_simulated: engine.is_some(),
            process: options.process,
        };
        let limit = options.long_turns;
        let keeps_locations =
            limit.is_some() || options.endless_waits || engine.is_some() && cfg!(debug_assertions);
        let traced = u8::from(options.is_traced) * Label::TRACED;
        if options.detect_deadlocks {
            detect_waits();
        }
        if options.endless_waits {
            run::note_waits();
        }
        let reports_waits = options.endless_waits && options.driver.is_none() && engine.is_none();
        let noted = u8::from(options.endless_waits) * Label::NOTED;
        let uncounted = u8::from(!options.counting) * Label::UNCOUNTED;
        let locations = keeps_locations.then(|| Arc::new(SpawnLocations::new()));
        let long_turns = limit.zip(locations.as_ref());
        let threads = ThreadSet::new(options.stack_size);
        Inner {
            long_turns: long_turns.map(|(limit, locations)| {
                LongTurns::new(limit, workers, locations, warnings.clone())
            }),
            marks: traced | noted | uncounted | (u8::from(keeps_locations) * Label::LOCATED),
            locations,
            warnings,
            blocking: BlockingPool::new(options.thread_name.clone(), options.blocking),
            silence: Silence::new(reports_waits),
            viewers: Arc::new(Viewers::new()),
            faults: FaultLog::new(),
            options,
            asks: AskList::new(&scheduler.activity),
            waits: ActorWaits::new(&scheduler.activity),
            ask_times: Arc::default(),
            scheduler,
            engine: engine.unwrap_or_else(|| Box::new(Threads)),
            declared: DeclaredEnds::new(),
            timers: Timers::new(),
            // One shard for each worker, and one for all other threads.
            live: LiveCells::new(workers + 1),
            busy: Busy::new(),
            threads,
            hosts: HostThreads::new(),
            shutdown: ShutdownState::new(workers),
            counting: AtomicUsize::new(1),
            directory: OnceLock::new(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.shutdown.is_over()
    }

    /// Returns whether the runtime's threads are in this process. If not, no lock of the runtime
    /// may be taken, and nothing may be waited for.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.process().is_current()
    }

    /// Returns the process that has the runtime's threads.
    #[inline]
    pub(crate) fn process(&self) -> Process {
        self.options.process
    }

    /// Checks that this is the process that has the runtime's threads.
    ///
    /// # Panics
    /// If it is another process.
    #[inline]
    #[track_caller]
    pub(crate) fn check_process(&self) {
        self.process().check();
    }

    /// Returns what runs everything: the threads, or a simulation.
    pub(crate) fn engine(&self) -> &dyn RuntimeEngine {
        &*self.engine
    }

    #[inline]
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.scheduler.policy, PolicyImpl::Elsewhere(_))
    }

    /// Returns the names and groups, or `None` if there never were any.
    #[inline]
    pub(crate) fn directory(&self) -> Option<&Directory> {
        self.directory.get().map(|directory| &**directory)
    }

    /// Returns the names and groups, which are made if there never were any.
    pub(crate) fn directory_made(&self) -> &Directory {
        self.directory.get_or_init(|| Box::new(Directory::new()))
    }

    /// Starts a thread of this runtime, which its shutdown joins.
    pub(crate) fn start_thread(
        &self,
        name: String,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<ThreadStart>> {
        self.threads.start(name, self.options.around.clone(), body)
    }

    pub(crate) fn options(&self) -> &RuntimeOptions {
        &self.options
    }

    /// Returns whether runs on pinned threads are observed. Policies observe none of these.
    pub(crate) fn is_watching(&self) -> bool {
        self.options.is_watched || self.is_simulated()
    }

    pub(crate) fn has_observer(&self) -> bool {
        self.options.observer.is_some()
    }

    /// Counts a thread that runs a task after it has given its worker away.
    pub(super) fn inc_activity_apart(&self) {
        if let PolicyImpl::Stealing(_) = self.scheduler.policy {
            self.inc_activity();
        }
    }

    /// Releases the count of [`inc_activity_apart`](Inner::inc_activity_apart). Policies other than
    /// the default count runnables and not threads.
    pub(super) fn dec_activity_apart(&self) {
        if let PolicyImpl::Stealing(_) = self.scheduler.policy {
            self.dec_activity();
        }
    }
}
