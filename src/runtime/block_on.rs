//! `block_on`: a thread that waits for a future while the workers run all other tasks.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::context::{self, Role, ThreadContext};
use super::engine::BlockingCall;
use super::handle::Runtime;
use super::host::HostContext;
use super::inner::Inner;
use super::nested;
use super::waiting::Waiting;
use crate::contain::{Panic, Step, attempt_or_clear};
use crate::instant::RealTime;
use crate::task::loss;

impl Runtime {
    /// Runs a future to completion on the calling thread, while the workers run all other tasks.
    ///
    /// Within the future this runtime is the [current](Runtime::current) one. The future need not
    /// be `Send`. The thread parks whenever the future is pending.
    ///
    /// # In a task
    ///
    /// `block_on` may be called in a task of a worker. The worker then gives its queues and its
    /// place to a spare thread, and waits. A spare thread is an idle thread of
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
    /// - In a child of a `fork`, if the runtime belongs to the parent.
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
        loss::settle_caught();
        // No closure, so that the panic has the caller's location.
        let clock = match nested::make_way() {
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
        let waiting = Waiting::new(&self.inner, clock);
        let waker = waiting.waker();
        let context = ThreadContext::new(&self.inner, Role::Outside);
        let context = context.with_timers(&waker, waiting.clock());
        let _entered = context.enter();
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(value) => return value,
                Poll::Pending => match stage() {
                    Some(stage) => waiting.park_on(&*stage),
                    None => waiting.park(),
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
        outcome: None,
    };
    let stuck = runtime.engine().block_on(runtime, &mut call);
    // No closure, so that the panic has the caller's location.
    match (stuck, call.outcome) {
        (Ok(()), Some(Ok(value))) => value,
        (Ok(()), Some(Err(panic))) => resume_unwind(panic.into_payload()),
        (Err(Some(why)), _) => panic!("{why}"),
        (Err(None), _) | (Ok(()), None) => resume_unwind(Box::new(Stopped)),
    }
}

/// The panic payload of a simulated run that has failed; the failure is reported elsewhere.
struct Stopped;

/// A `block_on` call in a simulation.
struct WaitingCall<'a, F: Future> {
    future: Pin<&'a mut Option<F>>,
    outcome: Option<Result<F::Output, Panic>>,
}

impl<F: Future> BlockingCall for WaitingCall<'_, F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        // The loop of another call may be polling here, so a panic is kept for this call.
        let mut polled = None;
        let attempted = attempt_or_clear(&mut |step| match step {
            Step::Run => {
                polled = self
                    .future
                    .as_mut()
                    .as_pin_mut()
                    .map(|future| future.poll(cx))
            }
            Step::Clear => self.future.set(None),
        });
        match (attempted, polled) {
            (Ok(()), Some(Poll::Pending)) => return false,
            (Ok(()), Some(Poll::Ready(value))) => self.outcome = Some(Ok(value)),
            (Ok(()), None) => {}
            (Err(panic), _) => self.outcome = Some(Err(panic)),
        }
        true
    }

    fn discard(&mut self) {
        self.future.set(None);
    }
}
