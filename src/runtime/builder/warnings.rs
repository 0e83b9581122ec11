//! The options for warnings of mistakes in the program.

use std::sync::Arc;
use std::time::Duration;

use super::Builder;
use crate::runtime::warning::Warning;

/// The default limit of a turn in debug builds. A pause of this length is one that users notice.
pub(super) const LONG_TURN: Option<Duration> = if cfg!(debug_assertions) {
    Some(Duration::from_millis(100))
} else {
    None
};

impl Builder {
    /// Sets how long a turn may hold its thread before the runtime [warns](Builder::on_warning), or
    /// `None`: never.
    ///
    /// The default is 100 ms if greenroom is built with debug assertions, as `cargo build` and
    /// `cargo test` do, and `None` otherwise.
    ///
    /// A turn is one poll of a task, or of an actor, which handles up to a [batch](Builder::batch)
    /// of messages. It holds its worker for as long as it lasts, so a blocking call in it delays
    /// all other tasks. Such a call belongs in [`unblock`](crate::unblock()). The warning names the
    /// actor or task, and where it was spawned.
    ///
    /// Turns on pinned threads and stages count as well. These do not:
    ///
    /// - turns of [`Detached`](crate::Detached) actors, and of an actor that is alone on its
    ///   [`Pinned`](crate::Pinned) thread, with no other actor, task or hosted value,
    /// - turns of an actor with the option
    ///   [`allow_long_turns`](crate::ActorBuilder::allow_long_turns),
    /// - calls of [`Hosted`](crate::Hosted) values,
    /// - turns that have called [`block_on`](crate::Runtime::block_on), which makes way for others.
    ///
    /// In a [simulation](crate::policy::Simulated) turns take no time.
    ///
    /// In debug builds on Linux and macOS the warning has the processor time of the turn beside its
    /// time. If that is much less, the turn was blocked, or the system ran other threads meanwhile.
    /// The time of a panic hook counts, too: a first backtrace takes about 100 ms in a debug build.
    ///
    /// # Cost
    ///
    /// Each turn reads the clock twice, and the runtime keeps the location of each spawn. While its
    /// workers are busy, the timer thread of the process looks at them once in this time. In debug
    /// builds, each turn also asks the system for its processor time twice, which takes 1 to 2 µs.
    /// With `None` nothing is added.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// async fn crawl(mut cx: Context<Duration>) {
    ///     while let Some(pause) = cx.recv().await {
    ///         std::thread::sleep(pause); // blocks the worker
    ///     }
    /// }
    ///
    /// let (warn, warnings) = mpsc::channel();
    /// let runtime = Runtime::builder()
    ///     .workers(2)
    ///     .long_turns(Duration::from_millis(10))
    ///     .on_warning(move |warning| warn.send(warning.to_string()).unwrap())
    ///     .build()?;
    /// runtime.block_on(async {
    ///     let crawl = spawn!(crawl(_));
    ///     crawl.tell(Duration::from_millis(12)).unwrap();
    ///     crawl.join().await.unwrap();
    /// });
    /// let warning = warnings.recv().unwrap();
    /// // crawl #1 (src/main.rs:27) held a worker for 12 ms, of which 0 ms of processor time;
    /// // blocking calls belong in `unblock`
    /// assert!(warning.starts_with("crawl #1 ("));
    /// assert!(warning.ends_with("; blocking calls belong in `unblock`"));
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    pub fn long_turns(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.long_turns = limit.into();
        self
    }

    /// Sets the function that receives [warnings](Warning) of mistakes in the program.
    ///
    /// By default a warning goes to the [tracer](Builder::tracer), at the level warning. Without a
    /// tracer the runtime prints one line to stderr, but nothing in a
    /// [simulation](crate::policy::Simulated). In a test, the test harness captures the line: it is
    /// shown if the test fails, or with `--nocapture`. [`Warning::WorkersHeld`] comes from a thread
    /// that all runtimes share, so its line may be captured for another test.
    ///
    /// The function is called on the thread that notices the mistake, which may be a worker, so it
    /// must not wait for other tasks. A panic of it is caught and dropped.
    pub fn on_warning(mut self, report: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        self.on_warning = Some(Arc::new(report));
        self
    }

    /// Sets whether waits that never end are reported, as [`Warning::EndlessWait`]. The default is
    /// `true` in debug builds and `false` in release builds.
    ///
    /// When nothing has run for 2 s, one thread wakes up once and looks for:
    ///
    /// - actors that wait for each other, or for themselves: for an answer, for room in a mailbox,
    ///   or for an end;
    /// - a [`join`](crate::Handle::join) or another wait for the end of an actor that waits for a
    ///   message, and all of whose addresses its own [`Context`](crate::Context) has made. It may
    ///   keep one of them, and then never ends.
    ///
    /// These actors and calls are polled once more, to see that they still wait. Then each wait is
    /// reported once, with the names of the actors and where they were spawned. The waits go on;
    /// [`detect_deadlocks`](Builder::detect_deadlocks) ends asks. An actor that asks itself, in a
    /// turn that has received a message, is reported at the end of the next turn. It should not give
    /// its context to a task in that turn: the task may be late.
    ///
    /// Nothing is reported that something else may end. An actor with another waker is left out,
    /// for example one that awaits a socket, a signal, a timer or a foreign channel as well. So is
    /// one with a [`WeakAddress`](crate::WeakAddress), with children or with sources, and one that
    /// waits in [`concurrently`](crate::concurrently()), or that was stopped. While a timer is
    /// armed, a job of [`unblock`](crate::unblock()) runs, or a [`KeepAlive`](crate::KeepAlive) or
    /// [`Stage`](crate::Stage) exists, nothing is reported at all. The same holds with a
    /// [`driver`](Builder::driver), with [polling](crate::policy::Stealing::polling) workers, which
    /// never rest for that long, and in a simulation, which has its own report.
    ///
    /// An address that a context has made may be elsewhere. So a wait for an end is reported only
    /// while no task waits, and no actor or call of [`block_on`](crate::Runtime::block_on) has such
    /// another waker. What other threads have is not known: hold a `KeepAlive` there.
    ///
    /// An actor is taken to have the requests that it has received. If it gives one to something
    /// that the runtime does not see, and asks the asker meanwhile, it looks as if it waited for
    /// itself: hold a `KeepAlive`. With [`around_threads`](Builder::around_threads), where another
    /// runtime may have a request, cycles of asks are not reported, except for an ask of an actor
    /// to itself.
    ///
    /// # Cost
    ///
    /// The runtime keeps the location of each spawn. A turn that ends while its actor does not
    /// receive takes a lock that few threads share, and notes in about 150 bytes what the actor
    /// waits for. An address that a context makes, and its drop, take a lock that all threads of
    /// the runtime share.
    ///
    /// With a driver, and in a simulation, waits are noted for [`report`](crate::Runtime::report).
    /// With a driver, an actor that asks itself is still reported at the end of that turn.
    ///
    /// # Examples
    ///
    /// ```
    /// use greenroom::{Address, Context, Runtime, spawn};
    ///
    /// /// Keeps its own address, so it never ends.
    /// async fn keeper(mut cx: Context<u32>) {
    ///     let own: Address<u32> = cx.address();
    ///     while cx.recv().await.is_some() {}
    ///     drop(own);
    /// }
    ///
    /// let (send, warned) = std::sync::mpsc::channel();
    /// let runtime = Runtime::builder()
    ///     .endless_waits(true)
    ///     .on_warning(move |warning| send.send(warning.to_string()).unwrap())
    ///     .build()?;
    /// let keeper = spawn!(keeper(_), on = &runtime);
    /// let waits = std::thread::spawn(move || runtime.block_on(keeper.join()));
    /// let text = warned.recv().unwrap();
    /// assert!(text.contains("keeper"), "{text}");
    /// # drop(waits);
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    pub fn endless_waits(mut self, report: bool) -> Self {
        self.endless_waits = report;
        self
    }

    /// Sets whether turns and messages of actors are counted, and some turns timed. The default is
    /// true.
    ///
    /// The counts are in [`ActorStatus`](crate::ActorStatus). They cost a few instructions a turn.
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// async fn sink(mut cx: Context<u32>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// for counting in [true, false] {
    ///     let runtime = Runtime::builder().counting(counting).build()?;
    ///     let sink = spawn!(sink(_), on = &runtime);
    ///     sink.tell(7).unwrap();
    ///     runtime.run_until_quiescent();
    ///     assert_eq!(runtime.stats().actors[0].messages, u64::from(counting));
    /// }
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    pub fn counting(mut self, count: bool) -> Self {
        self.counting = count;
        self
    }
}
