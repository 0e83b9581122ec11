//! Every option of a runtime: its unit, its default, its limit, and why.

use std::sync::Arc;
use std::time::Duration;

use super::context;
use super::driver::Driver;
use super::engine::Engine;
use super::handle::Runtime;
use super::inner::Inner;
use super::observer::Observer;
use super::options::{OnFault, Options, print_fault};
use super::worker_thread::work;
use crate::error::{BuildError, UnhandledFault};
use crate::scheduler::policy::{Policy, Stealing};
use crate::scheduler::{self, Choice, Scheduler};
use crate::sync::Process;
use crate::task::run::BATCH;

/// The most workers of one runtime: far more than machines have cores, so that a larger number is
/// a mistake, and one that would cost hundreds of megabytes of stacks.
pub(crate) const WORKERS_MAX: usize = 1024;
/// The highest priority of an actor by default: as many steps as anybody tells apart.
const PRIORITIES: u8 = 7;
/// How long `shutdown` waits for actors by default.
const GRACE: Duration = Duration::from_secs(5);

/// The options of a [`Runtime`]; all are judged by [`build`](Builder::build).
///
/// ```
/// use greenroom::Runtime;
///
/// let runtime = Runtime::builder().workers(2).thread_name("pool").build()?;
/// assert_eq!(runtime.block_on(async { 40 + 2 }), 42);
///
/// let none = Runtime::builder().workers(0).build().unwrap_err();
/// assert_eq!(none.to_string(), "workers is 0, but must be from 1 to 1024");
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    workers: Option<usize>,
    batch: Option<usize>,
    priorities: u8,
    thread_name: String,
    grace: Duration,
    on_fault: OnFault,
    policy: Box<dyn Choice>,
    observer: Option<Arc<dyn Observer>>,
    driver: Option<Arc<dyn Driver>>,
    detect_deadlocks: bool,
}

impl Builder {
    pub(super) fn new() -> Self {
        Builder {
            workers: None,
            batch: None,
            priorities: PRIORITIES,
            thread_name: "greenroom".into(),
            grace: GRACE,
            on_fault: Arc::new(print_fault),
            policy: Box::new(Stealing::default()),
            observer: None,
            driver: None,
            detect_deadlocks: false,
        }
    }

    /// How workers share their work, by default [`policy::Stealing`](crate::policy::Stealing).
    /// [`policy::Simulated`](crate::policy::Simulated) makes a runtime without workers, for tests.
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.policy = scheduler::choose(policy);
        self
    }

    /// Who is told of each run of each task and actor; nobody by default.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Has the workers wait in a reactor, by default none.
    ///
    /// With a [`Driver`] a worker that has nothing to do runs the reactor instead of parking, and one that is busy
    /// lets it have a look about every 50 µs. So what a socket wakes is run by the thread that waited for it, without
    /// a switch to another one. Pinned threads, those of [`unblock`](crate::unblock()) and those that wait in
    /// [`block_on`](Runtime::block_on) park as they do without.
    ///
    /// A [`Policy`] of one's own is told by [`must_return`](crate::policy::Duties::must_return) that it must not park. In
    /// the moderate phase of [`Polling`](crate::policy::Polling) a worker waits in the reactor, as in the relaxed one.
    ///
    /// A [simulated](crate::policy::Simulated) runtime can't have a driver.
    pub fn driver(mut self, driver: impl Driver) -> Self {
        self.driver = Some(Arc::new(driver));
        self
    }

    /// How many worker threads run the tasks: 1 to 1024.
    ///
    /// By default as many as the process may use cores
    /// ([`available_parallelism`](std::thread::available_parallelism)).
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// How many messages an actor handles in one poll before others get their turn: 1 to 2³²−1,
    /// by default 32.
    ///
    /// By default an actor handles fewer if 32 of its messages took more than 40 µs. If 128 take less, it handles up
    /// to 128 when nothing else waits for its worker. A batch that is set here is exact.
    ///
    /// For a context that is read elsewhere than by its actor it is always 32.
    pub fn batch(mut self, messages: usize) -> Self {
        self.batch = Some(messages);
        self
    }

    /// The highest [`priority`](crate::ActorBuilder::priority) that an actor may have: 0 to 255, by
    /// default 7.
    pub fn priorities(mut self, highest: u8) -> Self {
        self.priorities = highest;
        self
    }

    /// What the threads are called: `NAME-0`, `NAME-1` and so on, by default `greenroom-0`.
    ///
    /// A name with a NUL in it cannot be. Linux shows the first 15 bytes.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.thread_name = name.into();
        self
    }

    /// How long [`shutdown`](Runtime::shutdown) waits for actors to finish what they accepted, by
    /// default 5 s.
    ///
    /// A thread that is in the middle of a turn then has one second more to come back from it,
    /// also when the last clone is dropped, which is a grace of zero.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets what to do about a panic that no join receives; by default it prints one line on stderr.
    ///
    /// That is the panic of an actor or task that is not joined, and one of a source: of an
    /// [attached](crate::Context::attach) stream, or of a closure given to
    /// [`send_every`](crate::Context::send_every) or [`on_return`](crate::Context::on_return). The function is
    /// called on the thread where the panic was dropped or, for a source, where it was polled; a panic of its
    /// own is contained.
    pub fn on_fault(mut self, tell: impl Fn(&UnhandledFault<'_>) + Send + Sync + 'static) -> Self {
        self.on_fault = Arc::new(tell);
        self
    }

    /// Whether an [`ask`](crate::Address::ask) that nobody is left to answer ends with
    /// [`AskError::Deadlock`](crate::AskError::Deadlock), by default not; in a
    /// [simulated](crate::policy::Simulated) runtime always.
    ///
    /// The moment for it is when nothing on this runtime and its pinned threads can run, no timer
    /// is armed, no blocking call is under way and nobody holds a [`KeepAlive`](crate::KeepAlive), as
    /// [`quiescent`](Runtime::quiescent) says: then every ask that waits ends, and says which actors
    /// wait for each other. What waits for I/O, for a thread or an executor that is not greenroom's,
    /// for a timer or a blocking call of none, or for another runtime is taken for dead, unless a
    /// `KeepAlive` is held meanwhile.
    ///
    /// One timer does not count: the [`timeout`](crate::Ask::timeout) of an ask that leads to a cycle of
    /// actors that wait for each other. If no other timer is armed, the asks that lead to a cycle end at
    /// that moment, not when their time-outs are over. An actor that is to get out of a cycle by its
    /// time-out needs a `KeepAlive`.
    ///
    /// Each other timer delays the detection until it is over: a sleep, an interval, a source,
    /// [`time::timeout`](crate::time::timeout) also around an ask, and the time-out of an ask that leads to
    /// no cycle, whose asker may answer others then. In a simulation every time-out does; to wait takes no
    /// time there.
    ///
    /// A question that was delivered is still handled; [`is_wanted`](crate::Reply::is_wanted) tells
    /// the handler that it need not ask others for it, and be in the same deadlock again.
    ///
    /// What it costs is that each ask that waits is written down, with who asks whom, in a list of
    /// the runtime that all its threads share: about 200 ns, where an ask takes 240 ns without. While
    /// only time-outs are armed, each rest of the runtime takes about 250 ns for each ask that waits.
    ///
    /// ```
    /// use greenroom::{Address, AskError, Context, Reply, Runtime, spawn};
    ///
    /// enum Friend {
    ///     Is(Address<Friend>),
    ///     Ask(Reply<()>),
    /// }
    ///
    /// /// Asks its friend before it answers.
    /// async fn shy(mut cx: Context<Friend>) {
    ///     let mut friend = None;
    ///     while let Some(message) = cx.recv().await {
    ///         match message {
    ///             Friend::Is(address) => friend = Some(address),
    ///             Friend::Ask(reply) if reply.is_wanted() => {
    ///                 if let Some(friend) = &friend {
    ///                     let _ = friend.ask(Friend::Ask).await;
    ///                 }
    ///                 reply.send(());
    ///             }
    ///             Friend::Ask(_) => {}
    ///         }
    ///     }
    /// }
    ///
    /// let runtime = Runtime::builder().detect_deadlocks(true).build()?;
    /// runtime.block_on(async {
    ///     let (a, b) = (spawn!(shy(_), name = "a"), spawn!(shy(_), name = "b"));
    ///     a.tell(Friend::Is(b.address())).unwrap();
    ///     b.tell(Friend::Is(a.address())).unwrap();
    ///     match a.ask(Friend::Ask).await {
    ///         Err(AskError::Deadlock(who)) => assert_eq!(who.as_str(), "a → b → a"),
    ///         other => panic!("{other:?}"),
    ///     }
    /// });
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    pub fn detect_deadlocks(mut self, detect: bool) -> Self {
        self.detect_deadlocks = detect;
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// [`BuildError::Impossible`] names an option, its value and its limit;
    /// [`BuildError::Thread`] says that the system did not start a thread. Then no thread is left.
    pub fn build(self) -> Result<Runtime, BuildError> {
        let inner = Arc::new(self.judge()?);
        let runtime = Runtime::counting(inner.clone());
        // The thread that builds a simulated runtime is its only one.
        let threads = if inner.is_simulated() {
            0
        } else {
            inner.options().workers
        };
        for index in 0..threads {
            let own = inner.clone();
            let name = format!("{}-{index}", inner.options().thread_name);
            let thread = inner.threads.start(name, move || work(&own, index));
            if let Err(source) = thread {
                let (workers, started) = (inner.options().workers, index);
                inner.shutdown.expect_workers(started);
                drop(runtime);
                return Err(BuildError::Thread {
                    workers,
                    started,
                    source,
                });
            }
        }
        inner.shutdown.expect_workers(threads);
        Ok(runtime)
    }

    /// A runtime that is nobody's, for a stage of none: without threads, and never the current one.
    pub(crate) fn hidden() -> Arc<Inner> {
        let Ok(mut inner) = Builder::new().workers(1).judge() else {
            unreachable!("the defaults are possible")
        };
        inner.options.hidden = true;
        Arc::new(inner)
    }

    /// Makes a runtime whose workers have yet to be started.
    fn judge(mut self) -> Result<Inner, BuildError> {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let workers = self.workers.unwrap_or_else(|| cores().min(WORKERS_MAX));
        let impossible = |option, reason| BuildError::Impossible { option, reason };
        if !(1..=WORKERS_MAX).contains(&workers) {
            let reason = format!("is {workers}, but must be from 1 to {WORKERS_MAX}");
            return Err(impossible("workers", reason));
        }
        context::watch_forks();
        let is_batch_chosen = self.batch.is_some();
        let batch = match self.batch.map_or(Ok(BATCH), u32::try_from) {
            Ok(batch) if batch > 0 => batch,
            _ => {
                let wanted = self.batch.unwrap_or_default();
                let reason = format!("is {wanted}, but must be from 1 to {}", u32::MAX);
                return Err(impossible("batch", reason));
            }
        };
        if let Some(at) = self.thread_name.find('\0') {
            let reason = format!("has a NUL at byte {at}, which a thread's name cannot have");
            return Err(impossible("thread_name", reason));
        }
        let engine = self.policy.elsewhere().map(|engine| {
            let engine = engine.downcast::<Box<dyn Engine>>();
            *engine.expect("what runs everything elsewhere is an engine")
        });
        let Builder {
            priorities,
            thread_name,
            grace,
            on_fault,
            policy,
            observer,
            driver,
            detect_deadlocks,
            ..
        } = self;
        if driver.is_some() && engine.is_some() {
            let reason = "was set, but nothing waits in a simulation".into();
            return Err(impossible("driver", reason));
        }
        let scheduler = match engine {
            Some(_) => Ok(Scheduler::elsewhere()),
            None => Scheduler::new(policy, workers, priorities),
        };
        let scheduler = scheduler.map_err(|reason| impossible("policy", reason))?;
        let options = Options {
            // Any number is one.
            workers: if engine.is_some() { 1 } else { workers },
            batch,
            is_batch_chosen,
            priorities,
            thread_name,
            grace,
            on_fault,
            hidden: false,
            process: Process::current(),
            detect_deadlocks: detect_deadlocks || engine.is_some(),
            observer,
            driver,
        };
        Ok(Inner::new(options, scheduler, engine))
    }
}

impl Runtime {
    /// The options of a new runtime.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A runtime with the default options.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Runtime, BuildError> {
        Runtime::builder().build()
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("batch", &self.batch)
            .field("priorities", &self.priorities)
            .field("thread_name", &self.thread_name)
            .field("grace", &self.grace)
            .field("detect_deadlocks", &self.detect_deadlocks)
            .finish_non_exhaustive()
    }
}
