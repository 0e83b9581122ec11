//! `block_on`: a thread that waits for a future while the workers run all other tasks.
//!
//! The future counts as activity while it is ready or polled. A thread that is a
//! worker gives the worker away before it waits.
//!
//! # Invariants
//! - WORKER-1: a worker (the queues and the parker of one index) has one thread at a time. A thread
//!   that gives the worker away touches nothing of it from the moment when another thread may have
//!   it. Whatever the former worker wakes from then on is pushed from outside, as by any other
//!   thread.
//! - WORKER-2: exactly one thread takes a worker that is given away, also during a shutdown.
//! - WAIT-1: a wait may take an unpark token that was left for a surrounding wait, or for the loop
//!   of its thread. Therefore these check what they wait for before they park, or find the token
//!   that each wait leaves when it is over.
//! - WAIT-2: an idle wait is counted before it is woken. It may be over at once; if it were counted
//!   later, it would be released before it is counted, and no thread would check for quiescence.

use std::cell::Cell;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::blocking;
use super::context::{self, Role, ThreadContext};
use super::draining::DrainingWait;
use super::engine::BlockingCall;
use super::handle::Runtime;
use super::host::HostContext;
use super::inner::Inner;
use super::silence_state::IdleCall;
use crate::contain::{Panic, Step, attempt_or_clear_uncounted};
use crate::error::is_on_tokio;
use crate::instant::{Instant, RealTime};
use crate::park::{self, Parker};
use crate::scheduler::WorkerLocal;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, mutant};
use crate::task::{NotedWaits, loss, take_waits};
use crate::task_local::TaskLocals;
use crate::timers::TimerClock;

impl Runtime {
    /// Runs a future to completion on the calling thread, while the workers run all other tasks.
    ///
    /// Within the future this runtime is the [current](Runtime::current) one. The future need not
    /// be `Send`. The thread parks whenever the future is pending.
    ///
    /// # In a task
    ///
    /// `block_on` may be called in a task of a worker. The worker then gives its queues to
    /// a spare thread, and waits. A spare thread is an idle thread of
    /// [`unblock`](crate::unblock()) or a new one. The task continues on its thread until it
    /// suspends or completes; then that thread joins the pool of `unblock`. Each task that waits
    /// like this occupies a thread, whereas a task that awaits occupies none. A shutdown leaves
    /// such a thread behind if it does not return in time.
    ///
    /// A [`Detached`](crate::Detached) actor has a thread to itself, and simply waits.
    ///
    /// # Panics
    /// - In a task of a pinned thread, because the other tasks of that thread could not run
    ///   meanwhile.
    /// - In a task, if no spare thread can be started. The text contains the system's error. The
    ///   future has not been polled, and the worker continues.
    /// - In a waker that a [`Driver`](crate::Driver) calls on a worker thread.
    /// - In a [simulated](crate::policy::Simulated) runtime: on a thread other than its own, at a
    ///   deadlock, and after too many steps.
    ///
    /// A panic of the future is propagated.
    ///
    /// # Examples
    ///
    /// ```
    /// use greenroom::Runtime;
    ///
    /// fn area(side: u32) -> u32 {
    ///     // Not `async`, and called in a task.
    ///     let area = greenroom::spawn(async move { side * side });
    ///     Runtime::current().block_on(area)
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(greenroom::spawn(async { area(6) + 6 }).await, 42);
    /// });
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.block_on_at(None, future)
    }

    /// Waits as [`block_on`](Runtime::block_on) does, on the thread of `stage` if one is given. It
    /// need not be found in a thread-local then.
    #[track_caller]
    pub(crate) fn block_on_at<F: Future>(
        &self,
        stage: Option<&Rc<dyn HostContext>>,
        future: F,
    ) -> F::Output {
        self.inner.check_process();
        loss::complete_unless_unwinding();
        // No closure, so that the panic has the caller's location.
        let clock = match make_way() {
            Ok(clock) => clock,
            Err(why) => panic!("{why}"),
        };
        if self.inner.is_simulated() {
            return simulated(&self.inner, future);
        }
        let _time = RealTime::enter();
        let stage = || stage.cloned().or_else(|| context::stage_of(&self.inner));
        let clock = clock.or_else(|| {
            let stage = stage()?;
            stage.take_call_back();
            Some(stage.clock())
        });
        let waiting = BlockOnWait::new(&self.inner, clock);
        let waker = waiting.waker();
        let context = ThreadContext::new(&self.inner, Role::Outside);
        let context = context.with_timers(&waker, waiting.clock());
        let _entered = context.enter();
        let mut draining = DrainingWait::here(&self.inner);
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => match (stage(), &mut draining) {
                    (Some(stage), _) => waiting.park_on(&*stage),
                    (None, Some(draining)) => draining.go_on(&waker, || waiting.park()),
                    (None, None) => waiting.park(),
                },
            }
        }
    }
}

/// Runs the future in a simulation.
#[track_caller]
fn simulated<F: Future>(runtime: &Arc<Inner>, future: F) -> F::Output {
    let mut future = pin!(Some(future));
    let mut call = WaitingCall {
        future: future.as_mut(),
        values: TaskLocals::current(),
        outcome: None,
    };
    // The tasks that run meanwhile have values of their own.
    let wait = || runtime.engine().block_on(runtime, &mut call);
    let stuck = TaskLocals::default().run(wait);
    // No closure, so that the panic has the caller's location.
    match (stuck, call.outcome) {
        (Ok(()), Some(Ok(value))) => value,
        (Ok(()), Some(Err(panic))) => resume_unwind(panic.into_payload()),
        (Err(Some(why)), _) => panic!("{why}"),
        // The failure of the run is reported elsewhere.
        (Err(None), _) | (Ok(()), None) => resume_unwind(Box::new(())),
    }
}

/// A `block_on` call in a simulation.
struct WaitingCall<'a, F: Future> {
    future: Pin<&'a mut Option<F>>,
    /// The values of the task that waits.
    values: TaskLocals,
    outcome: Option<Result<F::Output, Panic>>,
}

impl<F: Future> BlockingCall for WaitingCall<'_, F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        // The loop of another call may be polling here, so a panic is kept for this call. It is not
        // counted as contained, since it goes on from there.
        let mut polled = None;
        let mut attempt = || {
            attempt_or_clear_uncounted(&mut |step| match step {
                Step::Run => {
                    polled = self
                        .future
                        .as_mut()
                        .as_pin_mut()
                        .map(|future| future.poll(cx))
                }
                Step::Clear => self.future.set(None),
            })
        };
        let attempted = self.values.clone().run(&mut attempt);
        match (attempted, polled) {
            (Ok(()), Some(Poll::Pending)) => return false,
            (Ok(()), Some(Poll::Ready(value))) => self.outcome = Some(Ok(value)),
            (Ok(()), None) => {}
            (Err(panic), _) => self.outcome = Some(Err(panic)),
        }
        true
    }

    fn discard(&mut self) {
        let values = self.values.clone();
        values.run(|| self.future.set(None));
    }
}

/// Prepares this thread to wait, and returns the timers that only this thread would fire.
///
/// # Errors
/// The reason why this thread must not wait.
pub(super) fn make_way() -> Result<Option<Arc<dyn TimerClock>>, String> {
    let is_displaced = Cell::new(false);
    let made = context::outward(|contexts| {
        let contexts = contexts.filter(|context| context.runtime.is_here());
        let mut judged = contexts.filter_map(|context| match context.role.get() {
            Role::Worker(local) => Some(make_way_of(context, local).map(|()| None)),
            Role::Pinned(local) if local.is_detached() => Some(Ok(Some(local.clock()))),
            Role::Pinned(_) => Some(Err(
                "`block_on` was called in a task of a pinned thread, whose other tasks can run \
                 nowhere else: await the future instead"
                    .into(),
            )),
            // A reactor may wait if it is driven by a turn that has given its worker away.
            Role::Reacting if !is_displaced.get() => Some(Err(
                "`block_on` was called in a waker that a driver called on a worker thread, which \
                 would wait for itself"
                    .into(),
            )),
            Role::Displaced(_) => {
                is_displaced.set(true);
                None
            }
            Role::Reacting | Role::Outside | Role::Blocking | Role::Closing => None,
        });
        judged.next()
    });
    made.unwrap_or(Ok(None))
}

/// Returns whether this thread may wait: whether it is neither a stage, nor a pinned thread with other
/// tasks, nor one of tokio, and no driver calls it.
pub(crate) fn may_wait() -> bool {
    let must_not = |context: &ThreadContext<'_>| match context.role.get() {
        Role::Pinned(local) => !local.is_detached(),
        role => matches!(role, Role::Reacting),
    };
    let is_pinned = context::outward(|contexts| {
        let mut here = contexts.filter(|context| context.runtime.is_here());
        here.any(must_not)
    });
    let is_outside = context::with(|context| context.is_none());
    !is_pinned && context::stage().is_none() && !(is_outside && is_on_tokio())
}

/// Gives a worker away, unless no thread needs it.
fn make_way_of<'a>(context: &ThreadContext<'a>, local: &'a WorkerLocal<'a>) -> Result<(), String> {
    let runtime = context.runtime;
    // In a simulation this is the only thread.
    let is_given = runtime.is_simulated() || !runtime.is_over() && give_away(context, local)?;
    if !is_given {
        // The runtime has ended. This thread may wait for the drop of what its worker has.
        runtime.leave_queued(local);
    }
    Ok(())
}

fn give_away<'a>(context: &ThreadContext<'a>, local: &'a WorkerLocal<'a>) -> Result<bool, String> {
    blocking::give_away(context, local).map_err(|error| {
        format!(
            "`block_on` was called in a task, and no spare thread could be started to replace the \
             worker: {error}"
        )
    })
}

/// The future is being polled.
const POLLED: u32 = 0;
/// The future was woken, and will be polled again.
const WOKEN: u32 = 1;
/// The wait is idle, and not counted.
const IDLE: u32 = 2;

/// The state that the waker of the future and the polling thread share.
struct SharedWait {
    runtime: Arc<Inner>,
    state: AtomicU32,
    /// The timers that only this thread fires.
    clock: Option<Arc<dyn TimerClock>>,
    parker: Arc<Parker>,
    /// What the future waits for, once that is noted.
    waits: Mutex<Option<NotedWaits>>,
}

impl SharedWait {
    /// Returns the clock's parker if it has one, so that a wake-up for a deadline reaches the
    /// thread.
    fn parker(&self) -> &Parker {
        let clock = self.clock.as_ref();
        clock
            .and_then(|clock| clock.parker())
            .unwrap_or(&self.parker)
    }
}

/// The polling thread's side of a wait. Until the future completes, it is counted while it is not
/// idle.
pub(super) struct BlockOnWait {
    shared: Arc<SharedWait>,
    /// The count is that of the task that waits here, which releases it only while the wait is
    /// idle.
    lent: bool,
}

impl BlockOnWait {
    pub(super) fn new(runtime: &Arc<Inner>, clock: Option<Arc<dyn TimerClock>>) -> BlockOnWait {
        let lent = context::lends_its_count(runtime);
        if !lent {
            runtime.inc_activity();
        }
        let shared = Arc::new(SharedWait {
            runtime: runtime.clone(),
            state: AtomicU32::new(POLLED),
            clock,
            parker: park::own(),
            waits: Mutex::new(None),
        });
        // What an earlier call has left on this thread may be of the same memory.
        take_waits(Arc::as_ptr(&shared).addr());
        BlockOnWait { shared, lent }
    }

    pub(super) fn waker(&self) -> Waker {
        Waker::from(self.shared.clone())
    }

    /// Returns the timers that only this thread fires.
    pub(super) fn clock(&self) -> Option<&Arc<dyn TimerClock>> {
        self.shared.clock.as_ref()
    }

    /// Parks until a wake-up, unless there was one during the poll. Fires the timers that only this
    /// thread fires.
    ///
    /// # Panics
    /// In a process that was forked during the poll.
    #[track_caller]
    pub(super) fn park(&self) {
        self.shared.runtime.check_process();
        let SharedWait {
            runtime,
            state,
            clock,
            ..
        } = &*self.shared;
        let parker = self.shared.parker();
        let timers = clock.as_ref().map(|clock| clock.timers());
        if let Some(timers) = timers.filter(|timers| !timers.is_empty()) {
            // An armed deadline counts as activity, so this wait stays counted.
            if timers.fire(Instant::now()) == 0 {
                parker.park_eagerly(timers.until_next());
            }
            return self.begin_poll();
        }
        self.note_waits();
        // AcqRel, and Acquire on failure, pair with the exchange of the waker in `try_wake`.
        let rests = if mutant("idle_without_exchange") {
            state.store(IDLE, Ordering::Release);
            Ok(POLLED)
        } else {
            state.compare_exchange(POLLED, IDLE, Ordering::AcqRel, Ordering::Acquire)
        };
        if rests.is_ok() {
            runtime.dec_activity();
        }
        while !self.is_woken() {
            let silence = runtime.until_silence();
            if !parker.park_eagerly(silence) && silence.is_some() {
                runtime.report_silence();
                continue;
            }
            // A token of the thread's own parker may be left over from something else, so the loop
            // checks. A token of a clock's parker may be for its deadlines, so the future is
            // polled.
            if clock.is_some() {
                break;
            }
        }
        self.begin_poll();
    }

    /// Notes what the future waits for, if waits that never end are reported.
    fn note_waits(&self) {
        let silence = &self.shared.runtime.silence;
        if silence.is_reported {
            let shared = &self.shared;
            let before = shared
                .waits
                .lock()
                .replace(take_waits(Arc::as_ptr(shared).addr()));
            if before.is_none() {
                let call = Arc::downgrade(shared);
                silence.enter(call);
            }
        }
    }

    /// Returns whether the future is to be polled again.
    fn is_woken(&self) -> bool {
        // Acquire pairs with the exchange in `try_wake`.
        self.shared.state.load(Ordering::Acquire) == WOKEN
    }

    fn begin_poll(&self) {
        // AcqRel: as above.
        if self.shared.state.swap(POLLED, Ordering::AcqRel) == IDLE {
            // No waker has counted this wait, so it counts itself.
            self.shared.runtime.inc_activity();
        }
    }

    /// Waits on the thread of a stage, whose tasks run meanwhile. A stage counts as activity as
    /// long as it exists, so this wait stays counted.
    #[track_caller]
    pub(super) fn park_on(&self, stage: &dyn HostContext) {
        self.shared.runtime.check_process();
        while !self.is_woken() {
            if stage.run_ready() == 0 && !self.is_woken() {
                self.shared.parker().park_eagerly(stage.until_next());
            }
        }
        self.begin_poll();
    }
}

impl SharedWait {
    /// Tries to mark the wait as woken. Returns false if its state changed meanwhile and the caller
    /// must retry.
    fn try_wake(&self) -> bool {
        // Relaxed: the exchange decides.
        let seen = self.state.load(Ordering::Relaxed);
        let is_late = mutant("counted_after_the_wake_up");
        if seen == IDLE && !is_late {
            // (WAIT-2)
            self.runtime.inc_activity();
        }
        // AcqRel: the next poll sees what the waking thread wrote. Relaxed on failure, after which
        // the caller retries.
        let woken = self
            .state
            .compare_exchange(seen, WOKEN, Ordering::AcqRel, Ordering::Relaxed);
        match woken {
            Ok(IDLE) if is_late => self.runtime.inc_activity(),
            // Another waker has counted it, or the waiting thread itself.
            Err(_) if seen == IDLE && !is_late => self.runtime.dec_activity(),
            _ => {}
        }
        woken.is_ok()
    }
}

impl IdleCall for SharedWait {
    fn waits(self: Arc<Self>) -> Option<NotedWaits> {
        let waits = (*self.waits.lock())?;
        // Acquire pairs with the exchange in `park`.
        let is_idle = self.state.load(Ordering::Acquire) == IDLE;
        // This one, that of the waiting thread, the waker of its polls, and those it has left.
        let known = 3 + waits.as_slice().len();
        (is_idle && Arc::strong_count(&self) == known).then_some(waits)
    }

    fn poll_again(self: Arc<Self>) {
        self.wake();
    }
}

impl Drop for BlockOnWait {
    fn drop(&mut self) {
        if !self.shared.runtime.is_here() {
            return;
        }
        // A waker that still exists wakes and counts nothing from now on. Release: as above.
        self.shared.state.store(WOKEN, Ordering::Release);
        if self.shared.clock.is_some() && !mutant("a_wait_keeps_the_token") {
            // (WAIT-1)
            self.shared.parker().unpark();
        }
        if !self.lent {
            self.shared.runtime.dec_activity();
        }
    }
}

impl Wake for SharedWait {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.runtime.is_here() {
            return;
        }
        while !self.try_wake() {}
        self.parker().unpark();
    }
}
