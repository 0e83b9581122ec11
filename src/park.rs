//! A thread's parking place: one token, left by whoever wakes the thread.
//!
//! `unpark` before `park` is not lost: the token stays until it is taken. Tokens do not add up.

use std::time::Duration;

use crate::sync::{Condvar, Mutex};

/// Where one thread parks; anybody may unpark it.
pub(crate) struct Parker {
    token: Mutex<bool>,
    left: Condvar,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Parker {
            token: Mutex::new(false),
            left: Condvar::new(),
        }
    }

    /// Waits for the token and takes it, at most `wait` long; says whether there was one.
    pub(crate) fn park(&self, wait: Option<Duration>) -> bool {
        let mut token = self.token.lock();
        if !*token && wait != Some(Duration::ZERO) {
            token = self.left.wait(token, wait);
            // Without a time-out a wake-up without a token is one without a reason.
            while !*token && wait.is_none() {
                token = self.left.wait(token, wait);
            }
        }
        std::mem::take(&mut *token)
    }

    pub(crate) fn unpark(&self) {
        let had_one = std::mem::replace(&mut *self.token.lock(), true);
        if !had_one {
            self.left.notify_one();
        }
    }
}
