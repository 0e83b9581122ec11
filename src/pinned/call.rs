//! How a foreign loop is interrupted: a function that is called when the stage has something to
//! run.
//!
//! # Invariants
//! - CALL-1: A thread that has pushed to the inbox makes the call after that, unless a call is
//!   already pending. The stage's thread takes the call back before it looks into the inbox. Both
//!   hold the same lock, so either the call is made again or the look finds what was pushed.

use std::sync::Arc;

use crate::contain::contain;
use crate::sync::{Mutex, mutant};

type Function = Arc<dyn Fn() + Send + Sync>;

/// A function that is called at most once until the call is taken back.
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

    /// Sets the function and marks it as not called; `None` removes it.
    pub(super) fn set(&self, function: Option<Function>) {
        let mut state = self.0.lock();
        state.is_called = false;
        let before = std::mem::replace(&mut state.function, function);
        drop(state);
        contain(|| drop(before));
    }

    /// Calls the function on this thread, unless a call is already pending.
    pub(super) fn call(&self) {
        let mut state = self.0.lock();
        if std::mem::replace(&mut state.is_called, true) {
            return;
        }
        let function = state.function.clone();
        drop(state);
        if let Some(function) = function {
            contain(|| function());
            // This may be the last reference, so the drop may run user code.
            contain(|| drop(function));
        }
    }

    /// Takes the call back: the next `call` calls the function again.
    pub(super) fn take_back(&self) {
        if !mutant("a_call_is_not_taken_back") {
            self.0.lock().is_called = false;
        }
    }
}
