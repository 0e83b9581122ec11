//! How a foreign loop is interrupted: a function that is called when there is something for it to run.
//!
//! # Invariants
//! - CALL-1: whoever has put something into the inbox calls after that, unless it is called for already;
//!   whoever takes from the inbox takes the call back before he looks. Both are under one lock, so
//!   either the call is made again or the look sees what was put there.

use std::sync::Arc;

use crate::contain::contain;
use crate::sync::{Mutex, mutant};

type Function = Arc<dyn Fn() + Send + Sync>;

/// Called at most once until it is taken back.
pub(super) struct Call(Mutex<CallState>);

struct CallState {
    is_called: bool,
    function: Option<Function>,
}

impl Call {
    pub(super) fn new() -> Self {
        Call(Mutex::new(CallState {
            is_called: false,
            function: None,
        }))
    }

    /// From now on it is this one, which was not called yet; or none.
    pub(super) fn set(&self, function: Option<Function>) {
        let mut state = self.0.lock();
        state.is_called = false;
        let before = std::mem::replace(&mut state.function, function);
        drop(state);
        contain(|| drop(before));
    }

    /// Calls, on this thread, unless that was done already.
    pub(super) fn call(&self) {
        let mut state = self.0.lock();
        if std::mem::replace(&mut state.is_called, true) {
            return;
        }
        let function = state.function.clone();
        drop(state);
        if let Some(function) = function {
            contain(|| function());
            // It may be the last one that has it.
            contain(|| drop(function));
        }
    }

    /// From now on it is called again.
    pub(super) fn take_back(&self) {
        if !mutant("a_call_is_not_taken_back") {
            self.0.lock().is_called = false;
        }
    }
}
