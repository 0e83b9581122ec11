//! Loopers: in which order tasks run, who gets a lock, when the world stops, and how all of it ends.

mod deadlocks;
mod drops;
mod ends;
mod guards;
mod locks;
mod order;
mod patience;
mod places;
mod shutdown;
mod world;
mod wrong;

use std::time::Duration;

use greenroom::looper::{
    self, Claim, Controller, Guarded, Lock, LockError, Looper, PostProblem, Posted, TaskError,
};
use greenroom::policy::Simulated;
use greenroom::{Runtime, yield_now};

use crate::support::scenarios::{SEEDS, everywhere, on_threads, simulated};
use crate::support::{Gate, Log, WATCH, within};

/// Starts a controller that runs as many tasks at the same time, with priorities up to 3. It detects
/// deadlocks in each build.
fn controller(lanes: usize) -> Controller {
    let builder = Controller::builder().lanes(lanes).priorities(3);
    builder.detect_deadlocks(true).build().unwrap()
}

/// An async task that has begun and waits until it is told to end.
struct Held {
    until: Gate,
    posted: Posted<()>,
}

impl Held {
    /// Lets the task end, and waits until it has.
    async fn end(self) {
        self.until.open();
        self.posted.await.unwrap();
    }
}

/// Lets a task of the looper begin, which takes no lane while it waits.
async fn hold(looper: &Looper) -> Held {
    let (begun, until) = (Gate::default(), Gate::default());
    let (begins, ends) = (begun.clone(), until.clone());
    let posted = looper.spawn(async move {
        begins.open();
        ends.wait().await;
    });
    let posted = posted.unwrap();
    begun.wait().await;
    Held { until, posted }
}

/// As [`hold`], with the value for itself.
async fn hold_with<T: Send + Sync>(looper: &Looper, guarded: &Guarded<T>) -> Held {
    let (begun, until) = (Gate::default(), Gate::default());
    let (begins, ends) = (begun.clone(), until.clone());
    let posted = looper.with(guarded.exclusive()).spawn(|own| async move {
        begins.open();
        ends.wait().await;
        drop(own);
    });
    let posted = posted.unwrap();
    begun.wait().await;
    Held { until, posted }
}

/// Posts a task that adds the number to the log.
fn note(looper: &Looper, log: &Log<u32>, number: u32) -> Posted<()> {
    let log = log.clone();
    looper.post(move || log.add(number)).unwrap()
}

/// Waits until the condition holds. A change that needs a timer is not noticed.
async fn wait_for(is_so: impl Fn() -> bool) {
    while !is_so() {
        yield_now().await;
    }
}

/// Returns the text of the deadlock with which a task was refused.
#[track_caller]
fn deadlock<R>(outcome: Result<R, TaskError>) -> String {
    match outcome {
        Err(TaskError::Deadlock(deadlock)) => deadlock.to_string(),
        Err(other) => panic!("no deadlock: {other:?}"),
        Ok(_) => panic!("no deadlock: it has a result"),
    }
}

/// Returns the error of a lock with which a task was refused.
#[track_caller]
fn lock_error<R>(outcome: Result<R, TaskError>) -> LockError {
    match outcome {
        Err(TaskError::Lock(error)) => error,
        Err(other) => panic!("no error of a lock: {other:?}"),
        Ok(_) => panic!("no error: it has a result"),
    }
}
