//! The function around the whole life of each thread of a runtime: `Builder::around_threads`.
//!
//! A thread that has such a function has started when the function calls `run`. Its starter waits
//! for that, without a lock, and learns why a thread did not start.

use std::io;
use std::sync::Arc;

use crate::contain::{attempt, contain};
use crate::sync::{Condvar, Mutex};

type Function = dyn Fn(&mut dyn FnMut()) + Send + Sync;

/// The function of the user, which calls its argument once.
#[derive(Clone)]
pub(super) struct Around(Arc<Function>);

impl Around {
    pub(super) fn new(function: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Around(Arc::new(function))
    }

    /// Runs `body` within the function, which is dropped afterwards. A panic of the function is
    /// contained.
    ///
    /// # Errors
    /// Says why `body` did not run.
    pub(super) fn run(self, body: impl FnOnce()) -> io::Result<()> {
        let mut body = Some(body);
        let mut run = || {
            if let Some(body) = body.take() {
                body();
            }
        };
        let outcome = attempt(|| (self.0)(&mut run));
        contain(|| drop(self));
        match (body, outcome) {
            (None, _) => Ok(()),
            (Some(_), Ok(())) => Err(io::Error::other("`around_threads` did not call `run`")),
            (Some(_), Err(panic)) => Err(io::Error::other(format!(
                "`around_threads` panicked before it called `run`: {panic}"
            ))),
        }
    }
}

/// A thread that the system has started, and that may be before the call of `run`.
#[must_use = "the thread may not start"]
pub(crate) struct Starting(Option<Arc<Started>>);

impl Starting {
    /// Creates the start of a thread without a function around it.
    pub(super) const DONE: Starting = Starting(None);

    /// Creates the start of a thread, and what tells how it went.
    pub(super) fn new() -> (Starting, Arc<Started>) {
        let started = Arc::new(Started {
            result: Mutex::new(None),
            told: Condvar::new(),
        });
        (Starting(Some(started.clone())), started)
    }

    /// Waits until the thread has started.
    ///
    /// # Errors
    /// Says why the thread did not start.
    pub(crate) fn wait(self) -> io::Result<()> {
        let Some(started) = self.0 else {
            return Ok(());
        };
        let mut result = started.result.lock();
        loop {
            if let Some(result) = result.take() {
                return result;
            }
            result = started.told.wait(result, None);
        }
    }
}

pub(super) struct Started {
    result: Mutex<Option<io::Result<()>>>,
    told: Condvar,
}

impl Started {
    pub(super) fn tell(&self, result: io::Result<()>) {
        *self.result.lock() = Some(result);
        self.told.notify_all();
    }
}
