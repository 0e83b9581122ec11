//! Calls at a later moment, in a program without a runtime.
//!
//! No task can run there, so the timer's thread polls the sleep itself.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::sync::Mutex;
use crate::time::{Sleep, sleep};

/// Calls a function after this time, on the timer's thread or on this one.
pub(super) fn call_after(delay: Duration, call: impl FnOnce() + Send + 'static) {
    let later = LaterCall(Mutex::new(Some((sleep(delay), Box::new(call)))));
    Arc::new(later).poll();
}

/// A call that is due when its sleep ends, until it is made.
struct LaterCall(Mutex<Option<(Sleep, BoxedCall)>>);

type BoxedCall = Box<dyn FnOnce() + Send>;

impl LaterCall {
    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut slot = self.0.lock();
        let is_due = slot.as_mut().is_some_and(|(sleep, _)| {
            let mut cx = Context::from_waker(&waker);
            pin!(sleep).poll(&mut cx).is_ready()
        });
        let due = if is_due { slot.take() } else { None };
        drop(slot);
        if let Some((_, call)) = due {
            call();
        }
    }
}

impl Wake for LaterCall {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}
