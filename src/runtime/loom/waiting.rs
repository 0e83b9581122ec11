//! `model_46`: a thread that waits in `block_on`, and another thread that wakes it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use ::loom::thread::{JoinHandle, spawn};

use super::super::handle::Runtime;
use super::super::inner::Inner;
use super::quiescence::Watcher;
use super::runtime;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Waits until another thread, which starts with the first poll, has set a flag and called the
/// waker.
fn wait_for_another(inner: &Arc<Inner>) -> JoinHandle<()> {
    let flag = Arc::new(AtomicBool::new(false));
    let mut other = None;
    Runtime::not_counting(inner.clone()).block_on(poll_fn(|cx| {
        if other.is_none() {
            let (flag, waker) = (flag.clone(), cx.waker().clone());
            other = Some(spawn(move || {
                // Relaxed: the waker is to publish it.
                flag.store(true, Ordering::Relaxed);
                waker.wake();
            }));
            return Poll::Pending;
        }
        // Relaxed: as above.
        match flag.load(Ordering::Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }));
    other.expect("it was polled")
}

/// Checks that the thread sees the wake-up, and the writes before it, at whatever point of parking.
#[test]
fn model_46_a_wait_is_woken_while_it_is_about_to_park() {
    ::loom::model(|| {
        let inner = runtime(1);
        wait_for_another(&inner).join().unwrap();
    });
}

/// Checks that the wait is counted before it is over, so that a later watcher observes quiescence.
#[test]
fn model_46_quiescence_is_observed_after_a_wait() {
    ::loom::model(|| {
        let inner = runtime(1);
        let other = wait_for_another(&inner);
        Watcher::new(&inner).wait();
        other.join().unwrap();
    });
}
