//! The options of a runtime: units, defaults, limits and their reasons.

mod threads;
mod warnings;

use std::sync::Arc;
use std::time::Duration;

use super::blocking_pool::BlockingLimits;
use super::context;
use super::driver::Driver;
use super::engine::RuntimeEngine;
use super::handle::Runtime;
use super::inner::Inner;
use super::observer::Observer;
use super::options::{RuntimeOptions, print_fault};
use super::thread_set::{Around, ThreadStart};
use super::warning::OnWarning;
use super::worker_thread::work;
use crate::error::{BuildError, UnhandledFault};
use crate::scheduler::policy::{Policy, Stealing};
use crate::scheduler::{self, PolicyImpl, Scheduler};
use crate::sync::Process;
use crate::task::run::BATCH;
use crate::tracer::{EventKind, Tracer};

/// The largest number of workers of one runtime. It exceeds the cores of any machine, so a larger
/// number is a mistake, and one that would cost hundreds of megabytes of stacks.
pub(crate) const WORKERS_MAX: usize = 1024;
/// The default highest priority of an actor: eight levels are as many as programs use.
const PRIORITIES: u8 = 7;
/// The default time that `shutdown` waits for actors.
const GRACE: Duration = Duration::from_secs(5);

/// The options of a [`Runtime`].
///
/// A builder is created by [`Runtime::builder`]. Setting an option never fails:
/// [`build`](Builder::build) checks all options and starts the workers.
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
    stack_size: Option<usize>,
    around: Option<Around>,
    blocking: BlockingLimits,
    grace: Duration,
    on_fault: Arc<dyn Fn(&UnhandledFault<'_>) + Send + Sync>,
    policy: PolicyImpl,
    observer: Option<Arc<dyn Observer>>,
    tracer: Option<Arc<dyn Tracer>>,
    driver: Option<Arc<dyn Driver>>,
    detect_deadlocks: bool,
    endless_waits: bool,
    counting: bool,
    long_turns: Option<Duration>,
    on_warning: Option<OnWarning>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Builder {
            workers: None,
            batch: None,
            priorities: PRIORITIES,
            thread_name: "greenroom".into(),
            stack_size: None,
            around: None,
            blocking: BlockingLimits::default(),
            grace: GRACE,
            on_fault: Arc::new(print_fault),
            policy: PolicyImpl::Stealing(Stealing::default()),
            observer: None,
            tracer: None,
            driver: None,
            detect_deadlocks: false,
            endless_waits: cfg!(debug_assertions),
            counting: true,
            long_turns: warnings::LONG_TURN,
            on_warning: None,
        }
    }

    /// Sets the policy that distributes runnable tasks over the workers. The default is
    /// [`policy::Stealing`](crate::policy::Stealing).
    ///
    /// [`policy::Simulated`](crate::policy::Simulated) makes a runtime without workers, for tests.
    /// A custom policy implements [`Policy`].
    pub fn policy(mut self, policy: impl Policy) -> Self {
        self.policy = scheduler::choose(policy);
        self
    }

    /// Sets an observer, which is called before and after every poll of every task and actor. By
    /// default there is none, and polls are not measured. [`Measure`](crate::Measure) only measures them.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Sets a tracer, which receives what actors do and what happens to their messages.
    ///
    /// By default there is none, and tracing has no cost. [`trace::Lines`](crate::trace::Lines)
    /// writes lines. Pinned and detached actors are traced by the tracer of their runtime,
    /// [split](crate::ActorBuilder::split) ones are not traced. A
    /// [simulated](crate::policy::Simulated) runtime may have a tracer, too.
    pub fn tracer(mut self, tracer: impl Tracer) -> Self {
        self.tracer = Some(Arc::new(tracer));
        self
    }

    /// Makes the workers wait in a reactor instead of parking. By default there is no driver.
    ///
    /// With a [`Driver`], an idle worker runs the reactor instead of parking. A busy worker yields
    /// to the reactor about every 50 µs. A task that a socket wakes therefore runs on the thread
    /// that waited for the socket, without a switch to another thread. Pinned threads, the threads
    /// of [`unblock`](crate::unblock()) and threads that wait in [`block_on`](Runtime::block_on)
    /// park as they do without a driver.
    ///
    /// A custom [`Policy`] learns from [`must_return`](crate::policy::Duties::must_return) that it
    /// must not park. In the moderate phase of [`Polling`](crate::policy::Polling) a worker waits
    /// in the reactor, as it does in the relaxed phase.
    ///
    /// A [simulated](crate::policy::Simulated) runtime cannot have a driver.
    pub fn driver(mut self, driver: impl Driver) -> Self {
        self.driver = Some(Arc::new(driver));
        self
    }

    /// Sets the number of worker threads: 1 to 1024.
    ///
    /// The default is the number of cores that the process may use
    /// ([`available_parallelism`](std::thread::available_parallelism)).
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Sets the number of messages that an actor handles in one poll before it yields: 1 to 2³²−1.
    /// The default is 32, adapted to the cost of the messages.
    ///
    /// A batch that is set here is exact. With the default, an actor handles fewer messages if 32
    /// of them took more than 40 µs. If 128 of them take less than that, the actor handles up to
    /// 128 when no other task waits for its worker.
    ///
    /// Outside a turn of its own actor, a [`Context`](crate::Context) always yields after 32
    /// messages.
    pub fn batch(mut self, messages: usize) -> Self {
        self.batch = Some(messages);
        self
    }

    /// Sets the highest [`priority`](crate::ActorBuilder::priority) that an actor may have: 0 to
    /// 255. The default is 7.
    pub fn priorities(mut self, highest: u8) -> Self {
        self.priorities = highest;
        self
    }

    /// Sets the prefix of the names of the runtime's threads. The default is `greenroom`.
    ///
    /// The workers are named `PREFIX-0`, `PREFIX-1` and so on; the threads of
    /// [`unblock`](crate::unblock()) are named `PREFIX-blocking`. The prefix must not contain a
    /// NUL. Linux shows the first 15 bytes of a name.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.thread_name = name.into();
        self
    }

    /// Sets the largest number of threads for [`unblock`](crate::unblock()), at least 1. The default
    /// is 512.
    ///
    /// While all of them are busy, further jobs wait.
    pub fn max_blocking_workers(mut self, workers: usize) -> Self {
        self.blocking.threads = workers;
        self
    }

    /// Sets how long a thread for [`unblock`](crate::unblock()) waits for a job before it ends. The
    /// default is 10 s.
    ///
    /// One of them stays, and never wakes without a job.
    pub fn blocking_idle(mut self, idle: Duration) -> Self {
        self.blocking.idle = idle;
        self
    }

    /// Sets how long [`shutdown`](Runtime::shutdown) waits for actors to handle the messages that
    /// they accepted. The default is 5 s.
    ///
    /// A thread that is still in the middle of a turn when the grace ends gets about one more
    /// second to finish it. This also holds when the last clone of the runtime is dropped, which is
    /// a shutdown with a grace of zero.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the function that receives panics that no join receives. By default the runtime prints
    /// one line to stderr, after what the panic hook of `std` has printed.
    ///
    /// These are the panics of actors and tasks that are not joined, and the panics of sources: of
    /// an [attached](crate::Context::attach) stream, or of a closure given to
    /// [`send_every`](crate::Context::send_every) or [`on_return`](crate::Context::on_return).
    ///
    /// The function is called on the thread that drops the unjoined panic or, for a source, on the
    /// thread that polled the source. A panic of the function itself is caught and dropped.
    pub fn on_fault(
        mut self,
        report: impl Fn(&UnhandledFault<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.on_fault = Arc::new(report);
        self
    }

    /// Sets whether an [`ask`](crate::Address::ask) that can never be answered ends with
    /// [`AskError::Deadlock`](crate::AskError::Deadlock), and whether other waits that never end are
    /// reported. The default is `false`; a [simulated](crate::policy::Simulated) runtime always
    /// detects deadlocks.
    ///
    /// Deadlocks are detected when the runtime is [quiescent](Runtime::quiescent): nothing can run
    /// on its workers or pinned threads, no timer is armed, no blocking call is in progress, and no
    /// [`KeepAlive`](crate::KeepAlive) exists. Every ask that is then waiting ends, with an error
    /// that names the actors that wait for each other.
    ///
    /// The runtime does not see what happens outside it. An actor looks deadlocked if it waits for
    /// I/O, for another runtime, or for a foreign thread or executor. So does one that waits for a
    /// timer or blocking call outside any runtime. Hold a `KeepAlive` during such a wait.
    ///
    /// # Other waits
    ///
    /// An actor may also wait for room in a mailbox ([`send`](crate::Address::send),
    /// [`reserve`](crate::Address::reserve)) or for an end ([`join`](crate::Handle::join),
    /// [`closed`](crate::Address::closed), [`ended`](crate::Address::ended)). An error names such
    /// waits as well: `"a" #1 → "b" #2 (for its end) → "a" #1`. A cycle without an ask has no
    /// error, so its waits go on, and it is reported once as
    /// [`Warning::Deadlock`](crate::Warning::Deadlock). An actor that receives messages meanwhile
    /// is in no cycle, and neither is a plain task.
    ///
    /// When a wait for quiescence ends, the dormant actors whose handle was dropped are reported as
    /// [`Warning::LeftAlone`](crate::Warning::LeftAlone), each once. That needs the locations of
    /// spawns, so it is done in debug builds, and where [`long_turns`](Builder::long_turns) is set.
    ///
    /// # Timeouts
    ///
    /// The [`timeout`](crate::Ask::timeout) of an ask that leads to a cycle of actors that wait for
    /// each other does not delay the detection. If no other timer is armed, the asks that lead to a
    /// cycle end at once, and not when their timeouts expire. An actor that relies on its timeout
    /// to leave a cycle needs a `KeepAlive`.
    ///
    /// Every other timer delays the detection until it expires: a sleep, an interval, a timer
    /// source, and [`time::timeout`](crate::time::timeout), also around an ask. So does the timeout
    /// of an ask that leads to no cycle, because its asker may then answer other actors. In a
    /// simulation every timeout delays the detection, since waiting takes no time there.
    ///
    /// # Handlers
    ///
    /// A request that was delivered is still handled after its ask has ended.
    /// [`is_wanted`](crate::Reply::is_wanted) tells the handler that the reply is no longer wanted.
    /// It then need not ask other actors and run into the same deadlock again.
    ///
    /// # Cost
    ///
    /// Each ask that waits is recorded, with asker and actor, in a list that all threads of the
    /// runtime share. This takes about 200 ns, where an ask takes 240 ns without it. While only
    /// timeouts are armed, each time the runtime becomes idle costs about 250 ns for each waiting
    /// ask. Other waits of actors are recorded and looked at in the same way.
    ///
    /// # Examples
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
    ///         Err(AskError::Deadlock(path)) => {
    ///             let text = format!(r#""a" #{0} → "b" #{1} → "a" #{0}"#, a.id(), b.id());
    ///             assert_eq!(path.as_str(), text); // "a" #1 → "b" #2 → "a" #1
    ///         }
    ///         other => panic!("{other:?}"),
    ///     }
    /// });
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    pub fn detect_deadlocks(mut self, detect: bool) -> Self {
        self.detect_deadlocks = detect;
        self
    }

    /// Checks the options and starts the workers.
    ///
    /// # Errors
    /// - [`BuildError::Impossible`] if an option has an invalid value. The text names the option,
    ///   its value and the limit.
    /// - [`BuildError::Thread`] if a thread did not start: the system refused it, or the function
    ///   of [`around_threads`](Builder::around_threads) did not call `run`. The threads that had
    ///   been started are ended again.
    pub fn build(self) -> Result<Runtime, BuildError> {
        let inner = Arc::new(self.judge()?);
        let runtime = Runtime::counting(inner.clone());
        // The thread that builds a simulated runtime is its only thread.
        let threads = if inner.is_simulated() {
            0
        } else {
            inner.options().workers
        };
        for index in 0..threads {
            let own = inner.clone();
            let name = format!("{}-{index}", inner.options().thread_name);
            let thread = inner.start_thread(name, move || work(&own, index));
            if let Err(source) = thread.and_then(ThreadStart::wait) {
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
        let workers = inner.options().workers;
        inner.trace_own(EventKind::Started { workers });
        Ok(runtime)
    }

    /// Creates the runtime behind a stage without a runtime. It has no threads and is never
    /// current.
    pub(crate) fn hidden() -> Arc<Inner> {
        let Ok(mut inner) = Builder::new().workers(1).judge() else {
            unreachable!("the default options are valid")
        };
        inner.options.hidden = true;
        Arc::new(inner)
    }

    /// Checks the options and creates a runtime whose workers are not started yet.
    fn judge(self) -> Result<Inner, BuildError> {
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
        self.judge_thread_name()?;
        self.judge_stack_size()?;
        self.blocking.judge()?;
        let Builder {
            priorities,
            thread_name,
            blocking,
            grace,
            on_fault,
            policy,
            observer,
            tracer,
            detect_deadlocks,
            ..
        } = self;
        let scheduler = Scheduler::new(policy, workers, priorities);
        let mut scheduler = scheduler.map_err(|reason| impossible("policy", reason))?;
        let engine = scheduler.take_engine().map(|engine| {
            let engine = engine.downcast::<Box<dyn RuntimeEngine>>();
            *engine.expect("the engine of a policy is one of the runtime")
        });
        if self.driver.is_some() && engine.is_some() {
            let reason = "was set, but a simulated runtime has no workers".into();
            return Err(impossible("driver", reason));
        }
        let options = RuntimeOptions {
            // A simulation has no workers, so any number would do.
            workers: if engine.is_some() { 1 } else { workers },
            batch,
            is_batch_chosen,
            priorities,
            thread_name,
            stack_size: self.stack_size,
            around: self.around,
            blocking,
            grace,
            on_fault,
            on_warning: self.on_warning,
            long_turns: self.long_turns.filter(|_| engine.is_none()),
            hidden: false,
            process: Process::current(),
            detect_deadlocks: detect_deadlocks || engine.is_some(),
            endless_waits: self.endless_waits,
            counting: self.counting,
            lists_asks: detect_deadlocks || engine.is_some() || tracer.is_some(),
            is_watched: observer.is_some() || tracer.is_some() || self.long_turns.is_some(),
            is_traced: engine.is_some() || tracer.is_some(),
            observer,
            tracer,
            driver: self.driver,
        };
        Ok(Inner::new(options, scheduler, engine))
    }

    fn judge_thread_name(&self) -> Result<(), BuildError> {
        let Some(at) = self.thread_name.find('\0') else {
            return Ok(());
        };
        Err(BuildError::Impossible {
            option: "thread_name",
            reason: format!("contains a NUL at byte {at}, which thread names do not allow"),
        })
    }
}

impl Runtime {
    /// Returns a builder with the default options.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Creates a runtime with the default options.
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
            .field("stack_size", &self.stack_size)
            .field("max_blocking_workers", &self.blocking.threads)
            .field("blocking_idle", &self.blocking.idle)
            .field("grace", &self.grace)
            .field("detect_deadlocks", &self.detect_deadlocks)
            .field("endless_waits", &self.endless_waits)
            .field("counting", &self.counting)
            .field("long_turns", &self.long_turns)
            .finish_non_exhaustive()
    }
}
