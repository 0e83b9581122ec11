//! `Stage`: the calling thread as a pinned thread, which a foreign loop drives.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::handle::Pinned;
use super::local::PinnedLocal;
use super::thread::Call;
use super::thread::{PinnedThread, ThreadKind};
use crate::instant::Instant;
use crate::runtime::context;
use crate::runtime::{Builder, HostContext, Inner, Runtime};
use crate::task::{Task, is_large};

/// The calling thread as a pinned thread, for a program that has its own loop there: a GUI, a game,
/// a device.
///
/// A stage dereferences to [`Pinned`], so actors, tasks and values can live on it as on any other
/// pinned thread. They run while the thread is in [`run_ready`](Stage::run_ready), in
/// [`block_on`](Stage::block_on), or in the `block_on` of the stage's runtime. A stage stays on its
/// thread; a clone of its `Pinned` may be sent to any thread.
///
/// While the stage of a runtime lives, that runtime is the [current](Runtime::current) one on its
/// thread and is not [quiescent](Runtime::quiescent). The shutdown of the runtime waits for the
/// stage to run, as for any pinned thread. Tasks that remain are cancelled by the next `run_ready`,
/// or when the stage is dropped. A stage without a runtime has its own timers; `spawn!` in its
/// tasks needs the option `on`.
///
/// A panic of a task ends that task and goes to [`on_fault`](crate::Builder::on_fault) if the task
/// is not joined; the foreign loop is not affected.
///
/// Dropping the stage cancels all tasks that live there, on its thread, and drops the hosted
/// values. From then on the stage accepts nothing. If a task of the stage drops it, that happens
/// when the task's turn ends. A stage that is forgotten instead (`mem::forget`) keeps its tasks and
/// values forever, because they are never dropped on another thread.
///
/// SDL is an example of a library that needs this: its events must be handled on the thread that
/// initialised it.
///
/// ```
/// use greenroom::{Context, Pinned, Runtime, spawn};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// async fn window(mut cx: Context<String>) -> usize {
///     let mut lines = Vec::new(); // values of a GUI library, which stay on this thread
///     while let Some(line) = cx.recv().await {
///         lines.push(line);
///     }
///     lines.len()
/// }
///
/// let runtime = Runtime::new()?;
/// let stage = runtime.pinned_here();
/// let (interrupt, events) = mpsc::channel();
/// stage.on_wake(move || interrupt.send("wake").unwrap());
///
/// let window = spawn!(window(_), on = &stage);
/// let lines = runtime.spawn(async move {
///     for n in 0..3 {
///         window.tell(format!("line {n}")).unwrap();
///     }
///     window.join().await.unwrap()
/// });
/// while !lines.is_finished() {
///     // The foreign loop waits for its events. One of them says that something is ready.
///     let _event = events.recv_timeout(Duration::from_millis(10));
///     stage.run_ready();
/// }
/// assert_eq!(stage.block_on(lines), 3);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
///
/// A stage can be neither sent to another thread nor shared with one:
///
/// ```compile_fail,E0277
/// let stage = greenroom::Pinned::here();
/// std::thread::spawn(move || drop(stage)); // `Stage` cannot be sent between threads safely
/// ```
///
/// ```compile_fail,E0277
/// let stage = greenroom::Pinned::here();
/// std::thread::scope(|scope| {
///     scope.spawn(|| stage.run_ready()); // `Rc<..>` cannot be shared between threads safely
/// });
/// ```
pub struct Stage {
    pinned: Pinned,
    /// Makes this type `!Send` and `!Sync`.
    local: Rc<PinnedLocal>,
}

// As for `PinnedThread`.
impl UnwindSafe for Stage {}
impl RefUnwindSafe for Stage {}

impl Pinned {
    /// Makes the calling thread a pinned thread of the current runtime, or of none.
    ///
    /// # Panics
    /// If the thread has a stage already, or is a thread that a runtime has started.
    ///
    /// ```
    /// use greenroom::Pinned;
    ///
    /// let stage = Pinned::here();
    /// let task = stage.spawn(|| async {
    ///     let number = std::rc::Rc::new(42); // not `Send`, so it stays on this thread
    ///     greenroom::yield_now().await;
    ///     *number
    /// });
    /// assert_eq!(stage.block_on(task), 42);
    /// ```
    #[track_caller]
    pub fn here() -> Stage {
        let runtime = context::runtime();
        Stage::new(&runtime.unwrap_or_else(Builder::hidden))
    }
}

impl Runtime {
    /// Makes the calling thread a pinned thread of this runtime.
    ///
    /// A `main` with its own loop uses this, as the example of [`Stage`] does.
    ///
    /// # Panics
    /// As [`Pinned::here`]; and if the runtime is [simulated](crate::policy::Simulated), because a
    /// simulation has a single thread.
    #[track_caller]
    pub fn pinned_here(&self) -> Stage {
        Stage::new(self.inner())
    }
}

impl Stage {
    #[track_caller]
    fn new(runtime: &Arc<Inner>) -> Stage {
        runtime.check_process();
        if runtime.is_simulated() {
            panic!(
                "cannot create a stage of a simulated runtime, which has one thread: use \
                 `spawn_pinned`"
            );
        }
        if let Some(why) = context::why_no_stage() {
            panic!("cannot create a stage: {why}");
        }
        let name = std::thread::current().name().unwrap_or("stage").to_owned();
        let thread = PinnedThread::start_here(runtime, name, ThreadKind::Stage(Call::new()));
        let local = Rc::new(PinnedLocal::new(&thread));
        // From here on, a `block_on` of the runtime on this thread runs what the stage has, too.
        context::set_stage(Some(local.clone()));
        Stage {
            pinned: Pinned { thread },
            local,
        }
    }

    /// Returns the pinned thread.
    #[track_caller]
    fn thread(&self) -> &PinnedThread {
        self.local.thread.runtime().check_process();
        &self.local.thread
    }

    /// Spawns a plain task on the stage. As the future is made on its thread, it need not be `Send`,
    /// and neither need its value.
    ///
    /// If the stage is ending, the returned task is a cancelled one. Code on other threads uses
    /// [`Pinned::spawn`], which calls a closure there.
    ///
    /// ```
    /// use std::cell::RefCell;
    /// use std::rc::Rc;
    ///
    /// let stage = greenroom::Pinned::here();
    /// let lines = Rc::new(RefCell::new(vec!["first"]));
    /// let own = lines.clone();
    /// let task = stage.spawn_local(async move {
    ///     greenroom::yield_now().await;
    ///     own.borrow_mut().push("second");
    ///     own
    /// });
    /// assert!(Rc::ptr_eq(&stage.block_on(task), &lines));
    /// assert_eq!(*lines.borrow(), ["first", "second"]);
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.local.thread.runtime().check_process();
        if const { is_large::<F>() } {
            return self.local.spawn(Box::pin(future), Location::caller());
        }
        self.local.spawn(future, Location::caller())
    }

    /// Runs every task that is ready now, each once, and returns the number of turns.
    ///
    /// Due timers are fired first. A task that becomes ready during the call is left for the next
    /// one, for which the function set with [`on_wake`](Stage::on_wake) is called.
    #[track_caller]
    pub fn run_ready(&self) -> usize {
        self.thread().call().take_back();
        HostContext::run_ready(&*self.local)
    }

    /// Runs ready tasks until none is left or `budget` has passed; returns the number of turns.
    ///
    /// Tasks that become ready during the call run as well. The clock is read before each turn, and
    /// due timers are fired then. The call therefore takes at most one turn longer than `budget`.
    /// With a budget of zero nothing runs, so grant every frame more than that.
    #[track_caller]
    pub fn run_ready_for(&self, budget: Duration) -> usize {
        let end = Instant::now().checked_add(budget);
        self.thread().call().take_back();
        self.local.run(|_| {
            let now = Instant::now();
            self.thread().timers.fire(now);
            end.is_none_or(|end| now < end)
        })
    }

    /// Sets the function that interrupts the foreign loop when something becomes ready.
    ///
    /// `interrupt` should make the foreign loop call [`run_ready`](Stage::run_ready), for example
    /// by posting an event to it. It is called at most once until the next `run_ready` or
    /// [`block_on`](Stage::block_on), on the thread that made the task ready. If something is ready
    /// already, this method calls it. It must not wait; a panic in it is contained.
    ///
    /// A second call of `on_wake` replaces the first function. The function is dropped with the
    /// stage. A call of it that is then in progress on another thread may end after that.
    #[track_caller]
    pub fn on_wake(&self, interrupt: impl Fn() + Send + Sync + 'static) {
        let call = self.thread().call();
        call.set(Some(Arc::new(interrupt)));
        if self.thread().is_wanted() {
            call.call();
        }
    }

    /// Returns the time at which [`run_ready`](Stage::run_ready) is needed next, even if the
    /// function set with [`on_wake`](Stage::on_wake) is not called.
    ///
    /// That is now if something is ready, or else the earliest deadline of the tasks here. `None`
    /// means that they only wait for other events.
    #[track_caller]
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.thread().is_wanted() {
            true => Some(Instant::now()),
            false => self.thread().timers.next(),
        }
    }

    /// Runs a future to completion on this thread, together with the other tasks of the stage.
    ///
    /// # Blocking
    /// Parks the thread while nothing is ready.
    ///
    /// # Panics
    /// In a task of the stage. A panic of the future is resumed in the caller.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let runtime = Runtime::not_counting(self.thread().runtime().clone());
        let local: Rc<dyn HostContext> = self.local.clone();
        runtime.block_on_at(Some(&local), future)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.local.runtime().is_here() {
            // A child of `fork` must not drop what lives there.
            std::mem::forget(self.local.clone());
            return context::set_stage(None);
        }
        // The function may hold a `Pinned` of this stage.
        self.thread().call().set(None);
        self.local.end();
        context::set_stage(None);
        self.local.thread.leave();
        self.local.runtime().dec_activity();
        self.local.runtime().begin_silence();
    }
}

impl Deref for Stage {
    type Target = Pinned;

    fn deref(&self) -> &Pinned {
        &self.pinned
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("pinned", &self.pinned)
            .finish_non_exhaustive()
    }
}
