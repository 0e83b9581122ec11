//! A thread that waits for a future, while the workers run everything else.

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
use crate::contain::{Panic, attempt_on};
use crate::instant::RealTime;

impl Runtime {
    /// Runs a future on this thread to its end, while the workers run everything else.
    ///
    /// Inside, this runtime is the [current](Runtime::current) one. It waits, parked, whenever the
    /// future does.
    ///
    /// It works in a task, too: there the worker first gives its queues and its place to a spare
    /// thread, one of those of [`unblock`](crate::unblock()) or a new one, and then simply waits. The task goes on on
    /// its thread until its turn ends; then the thread joins those of `unblock`. So each task that
    /// waits like this holds a thread, where one that awaits holds none. A shutdown leaves such a
    /// thread behind if it does not come back in time. A [`Detached`](crate::Detached) actor has its
    /// thread to itself, and simply waits.
    ///
    /// # Panics
    /// - In a task of a pinned thread, whose other tasks could run nowhere else meanwhile.
    /// - In a task, if no spare thread can be started: with the system's error, before the future is
    ///   polled. The worker goes on.
    /// - In a [simulated](crate::policy::Simulated) runtime on another thread than its own, at a deadlock, and
    ///   after too many steps.
    ///
    /// A panic of the future goes through.
    ///
    /// ```
    /// use greenroom::Runtime;
    ///
    /// fn area(side: u32) -> u32 {
    ///     // Not `async`, and called in a task.
    ///     Runtime::current().block_on(async move { greenroom::spawn(async move { side * side }).await })
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

    /// Does the same on the thread of this stage, which it need not find in a thread-local.
    #[track_caller]
    pub(crate) fn block_on_at<F: Future>(
        &self,
        stage: Option<&Rc<dyn HostContext>>,
        future: F,
    ) -> F::Output {
        self.inner.check_process();
        // No closure: the panic is the caller's.
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
        let context = ThreadContext::new(&self.inner, Role::Outside);
        let _entered = context.enter();
        let waker = waiting.waker();
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

/// Has a simulation run the future.
#[track_caller]
fn simulated<F: Future>(runtime: &Arc<Inner>, future: F) -> F::Output {
    let mut future = pin!(Some(future));
    let mut call = WaitingCall {
        future: future.as_mut(),
        outcome: None,
    };
    let stuck = runtime.engine().block_on(runtime, &mut call);
    // No closure: the panic is the caller's.
    match (stuck, call.outcome) {
        (Ok(()), Some(Ok(value))) => value,
        (Ok(()), Some(Err(panic))) => resume_unwind(panic.into_payload()),
        (Err(Some(why)), _) => panic!("{why}"),
        (Err(None), _) | (Ok(()), None) => resume_unwind(Box::new(Stopped)),
    }
}

/// The payload of a judged run that has failed; it is told elsewhere.
struct Stopped;

/// A call in a simulation.
struct WaitingCall<'a, F: Future> {
    future: Pin<&'a mut Option<F>>,
    outcome: Option<Result<F::Output, Panic>>,
}

impl<F: Future> BlockingCall for WaitingCall<'_, F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        // Another call's loop may be the one that polls: the panic is not for that.
        let polled = attempt_on(
            &mut self.future,
            |future| Some(future.as_mut().as_pin_mut()?.poll(cx)),
            |future| future.set(None),
        );
        match polled {
            Ok(Some(Poll::Pending)) => return false,
            Ok(Some(Poll::Ready(value))) => self.outcome = Some(Ok(value)),
            Ok(None) => {}
            Err(panic) => self.outcome = Some(Err(panic)),
        }
        true
    }

    fn discard(&mut self) {
        self.future.set(None);
    }
}
