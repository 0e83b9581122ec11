//! How a foreign loop is interrupted: a function that is called when there is something for it to run.
//!
//! # Invariants
//! - W1: whoever has put something into the inbox calls after that, unless it is called for already;
//!   whoever takes from the inbox takes the call back before he looks. The exchanges of both are on one
//!   word, so either the call is made again or the look sees what was put there.

use std::sync::Arc;

use crate::contain::contain;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, mutant};

type Function = Arc<dyn Fn() + Send + Sync>;

/// Called at most once until it is taken back.
pub(super) struct Call {
    is_called: AtomicBool,
    function: Mutex<Option<Function>>,
}

impl Call {
    pub(super) fn new() -> Self {
        Call {
            is_called: AtomicBool::new(false),
            function: Mutex::new(None),
        }
    }

    pub(super) fn set(&self, function: Function) {
        let before = self.function.lock().replace(function);
        contain(|| drop(before));
    }

    /// Calls, on this thread, unless that was done already.
    pub(super) fn call(&self) {
        // AcqRel: what was put into the inbox is seen by whoever takes this back (W1).
        if self.is_called.swap(true, Ordering::AcqRel) {
            return;
        }
        let function = self.function.lock().clone();
        if let Some(function) = function {
            contain(|| function());
        }
    }

    /// From now on it is called again.
    pub(super) fn take_back(&self) {
        if !mutant("a_call_is_not_taken_back") {
            // AcqRel: as above.
            self.is_called.swap(false, Ordering::AcqRel);
        }
    }
}
