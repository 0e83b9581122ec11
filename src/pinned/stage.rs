//! The calling thread as a pinned thread: a foreign loop lets it run now and then.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::call::Call;
use super::handle::Pinned;
use super::local::PinnedLocal;
use super::thread::{PinnedThread, ThreadKind};
use crate::instant::Instant;
use crate::runtime::context;
use crate::runtime::{Builder, HostContext, Inner, Runtime};

/// The calling thread as a pinned thread, for a program that has a loop of its own there: a GUI, a game,
/// a device.
///
/// It dereferences to [`Pinned`], so it takes actors, tasks and values like any other. They run while the
/// thread is in [`run_ready`](Stage::run_ready), in [`block_on`](Stage::block_on), or in the `block_on` of
/// the stage's runtime. A stage stays on its thread; a clone of its `Pinned` may go anywhere.
///
/// While the stage of a runtime lives, that is the [current](Runtime::current) one on its thread, and does
/// not [run out of work](Runtime::quiescent). Its shutdown waits for the stage to run, as for any pinned
/// thread: what is left there is cancelled by the next `run_ready`, or when the stage is dropped. A stage of
/// none has timers of its own; `spawn!` in its tasks needs `on`.
///
/// A panic of a task ends that task, and goes to [`on_fault`](crate::Builder::on_fault) if nobody joins it;
/// the loop does not notice. Dropping the stage cancels all that lives there, on its thread, and drops what
/// is hosted; from then on it takes nothing. In one of its own tasks, that is done when its turn ends. A stage
/// that is never dropped, but forgotten, keeps all that for ever: nothing is dropped on another thread.
///
/// In a child of `fork` the methods of a stage of the parent's panic, and its drop leaves what lives there alone.
///
/// Document 1: SDL's events must be handled on the thread that initialised it.
///
/// ```
/// use greenroom::{Context, Pinned, Runtime, spawn};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// async fn window(mut cx: Context<String>) -> usize {
///     let mut lines = Vec::new(); // a GUI library's things, which stay on this thread
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
///     // The foreign loop: it waits for its events, of which one is that there is something to run.
///     let _event = events.recv_timeout(Duration::from_millis(10));
///     stage.run_ready();
/// }
/// assert_eq!(stage.block_on(lines), 3);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
///
/// Only its own thread has it, and lets it run:
///
/// ```compile_fail,E0277
/// let stage = greenroom::Pinned::here();
/// std::thread::spawn(move || drop(stage)); // `Stage` cannot be sent between threads safely
/// ```
///
/// ```compile_fail,E0277
/// let stage = greenroom::Pinned::here();
/// std::thread::scope(|scope| {
///     scope.spawn(|| stage.run_ready()); // nor shared between them
/// });
/// ```
pub struct Stage {
    pinned: Pinned,
    /// It makes this `!Send`.
    local: Rc<PinnedLocal>,
}

// As for `PinnedThread`.
impl UnwindSafe for Stage {}
impl RefUnwindSafe for Stage {}

impl Pinned {
    /// Makes the calling thread a pinned thread of the current runtime, or of none.
    ///
    /// # Panics
    /// If the thread has a stage already, or is one that a runtime has started.
    ///
    /// ```
    /// use greenroom::Pinned;
    ///
    /// let stage = Pinned::here();
    /// let task = stage.spawn(|| async {
    ///     let number = std::rc::Rc::new(42); // what is not `Send` stays there
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
    /// Makes the calling thread a pinned thread of this runtime: what a `main` with a loop of its own
    /// uses, as the example of [`Stage`] does.
    ///
    /// # Panics
    /// As [`Pinned::here`]; and if the runtime is [simulated](crate::policy::Simulated), which has one
    /// thread for all.
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
                "a stage of a simulated runtime, which has one thread for all: use `spawn_pinned`"
            );
        }
        if let Some(why) = context::has_no_room() {
            panic!("a stage on {why}");
        }
        let name = std::thread::current().name().unwrap_or("stage").to_owned();
        let thread = PinnedThread::start_here(runtime, name, ThreadKind::Stage(Call::new()));
        let local = Rc::new(PinnedLocal::new(&thread));
        context::set_stage(Some(local.clone()));
        Stage {
            pinned: Pinned { thread },
            local,
        }
    }

    /// # Panics
    /// In a child of a `fork`, if it is a stage of the parent's.
    #[track_caller]
    fn thread(&self) -> &PinnedThread {
        self.local.thread.runtime().check_process();
        &self.local.thread
    }

    /// Runs what is ready now, each once, and returns how much that was.
    ///
    /// What becomes ready meanwhile is left for the next call, for which [`on_wake`](Stage::on_wake) is
    /// called. Timers that are over are fired first.
    #[track_caller]
    pub fn run_ready(&self) -> usize {
        self.thread().call().take_back();
        HostContext::run_ready(&*self.local)
    }

    /// Runs what is ready, also what becomes so meanwhile, for as long as `budget`; returns how much that
    /// was.
    ///
    /// It looks at the clock after each turn, so it takes longer than that by at most one turn; timers that
    /// are over are fired then. With a budget of zero nothing runs, so leave some to each frame.
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

    /// Has `interrupt` called when there is something to run: at most once until the next
    /// [`run_ready`](Stage::run_ready) or [`block_on`](Stage::block_on), on whatever thread that comes from.
    ///
    /// It is to have the foreign loop come back, by an event of its own for example, and must not wait. A
    /// second call replaces the first. A panic in it is contained. It is dropped with the stage; a call that is
    /// under way on another thread just then may end after that.
    #[track_caller]
    pub fn on_wake(&self, interrupt: impl Fn() + Send + Sync + 'static) {
        let call = self.thread().call();
        call.set(Some(Arc::new(interrupt)));
        if self.thread().is_wanted() {
            call.call();
        }
    }

    /// When [`run_ready`](Stage::run_ready) is wanted next, also if nothing calls for it: now, or at the
    /// earliest deadline of the tasks here. `None` if they wait for others only.
    #[track_caller]
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.thread().is_wanted() {
            true => Some(Instant::now()),
            false => self.thread().timers.next(),
        }
    }

    /// Runs a future on this thread to its end, and whatever else is on the stage meanwhile. It parks
    /// whenever there is nothing to run.
    ///
    /// # Panics
    /// In a task of the stage. A panic of the future goes through.
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
            // What lives there is left as it is.
            std::mem::forget(self.local.clone());
            return context::set_stage(None);
        }
        // It may hold the stage's own `Pinned`.
        self.thread().call().set(None);
        self.local.end();
        context::set_stage(None);
        self.local.thread.leave();
        self.local.runtime().dec_activity();
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
