//! Every option of a runtime: its unit, its default, its limit, and why.

use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::inner::Inner;
use super::worker::work;
use crate::error::{BuildError, Unjoined};

/// The most workers of one runtime: far more than machines have cores, so that a larger number is
/// a mistake, and one that would cost hundreds of megabytes of stacks.
pub(crate) const WORKERS_MAX: usize = 1024;
/// How many messages an actor handles in one poll by default: long enough to be worth a turn,
/// 64 µs at a microsecond a message.
pub(crate) const BATCH: usize = 64;
/// How long `shutdown` waits for actors by default.
const GRACE: Duration = Duration::from_secs(5);

type OnFault = Arc<dyn Fn(&Unjoined<'_>) + Send + Sync>;

/// What a runtime was built with.
pub(crate) struct Options {
    pub(crate) workers: usize,
    pub(crate) batch: u32,
    pub(crate) thread_name: String,
    pub(crate) grace: Duration,
    pub(crate) on_fault: OnFault,
}

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
    batch: usize,
    thread_name: String,
    grace: Duration,
    on_fault: OnFault,
}

impl Builder {
    pub(super) fn new() -> Self {
        Builder {
            workers: None,
            batch: BATCH,
            thread_name: "greenroom".into(),
            grace: GRACE,
            on_fault: Arc::new(print_fault),
        }
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
    /// by default 64.
    pub fn batch(mut self, messages: usize) -> Self {
        self.batch = messages;
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

    /// What to do about a panic that nobody joins, by default to print one line on stderr.
    ///
    /// It is called on the thread where the panic was dropped; a panic of its own is contained.
    pub fn on_fault(mut self, tell: impl Fn(&Unjoined<'_>) + Send + Sync + 'static) -> Self {
        self.on_fault = Arc::new(tell);
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// [`BuildError::Impossible`] names an option, its value and its limit;
    /// [`BuildError::Thread`] says that the system did not start a thread. Then no thread is left.
    pub fn build(self) -> Result<Runtime, BuildError> {
        let inner = Arc::new(Inner::new(self.judge()?));
        let runtime = Runtime::counting(inner.clone());
        for index in 0..inner.options().workers {
            let own = inner.clone();
            let name = format!("{}-{index}", inner.options().thread_name);
            match std::thread::Builder::new()
                .name(name)
                .spawn(move || work(&own, index))
            {
                Ok(thread) => inner.blocking.crew.keep(thread),
                Err(source) => {
                    let (workers, started) = (inner.options().workers, index);
                    inner.closing.expect_workers(started);
                    drop(runtime);
                    return Err(BuildError::Thread {
                        workers,
                        started,
                        source,
                    });
                }
            }
        }
        inner.closing.expect_workers(inner.options().workers);
        Ok(runtime)
    }

    fn judge(self) -> Result<Options, BuildError> {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let workers = self.workers.unwrap_or_else(|| cores().min(WORKERS_MAX));
        let impossible = |option, reason| Err(BuildError::Impossible { option, reason });
        if !(1..=WORKERS_MAX).contains(&workers) {
            let reason = format!("is {workers}, but must be from 1 to {WORKERS_MAX}");
            return impossible("workers", reason);
        }
        let batch = match u32::try_from(self.batch) {
            Ok(batch) if batch > 0 => batch,
            _ => {
                let reason = format!("is {}, but must be from 1 to {}", self.batch, u32::MAX);
                return impossible("batch", reason);
            }
        };
        if let Some(at) = self.thread_name.find('\0') {
            let reason = format!("has a NUL at byte {at}, which a thread's name cannot have");
            return impossible("thread_name", reason);
        }
        let Builder {
            thread_name,
            grace,
            on_fault,
            ..
        } = self;
        Ok(Options {
            workers,
            batch,
            thread_name,
            grace,
            on_fault,
        })
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("batch", &self.batch)
            .field("thread_name", &self.thread_name)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// The default of [`Builder::on_fault`].
pub(super) fn print_fault(unjoined: &Unjoined<'_>) {
    // Not `eprintln!`, which panics where stderr is closed.
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("greenroom: {unjoined}, and nobody joined it\n"),
    );
}
