//! The tasks that are woken, and those that have left.

use std::future::Future;
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use super::{Ticket, Waiters};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A waiting task, with a counter of its wake-ups.
#[derive(Default)]
struct Waiting {
    ticket: Ticket,
    bell: Arc<Bell>,
}

impl Waiting {
    fn poll(&mut self, waiters: &Waiters) {
        let waker = Waker::from(self.bell.clone());
        let mut cx = Context::from_waker(&waker);
        let polled = waiters.poll(&mut self.ticket, &mut cx, || false);
        assert_eq!(polled, Poll::Pending);
    }

    fn wakes(&self) -> usize {
        self.bell.0.load(Ordering::Relaxed)
    }
}

#[test]
fn wake_all_wakes_each_waiter_once_however_often_it_was_polled() {
    let waiters = Waiters::new();
    let mut all: [Waiting; 5] = Default::default();
    for waiting in &mut all {
        waiting.poll(&waiters);
        waiting.poll(&waiters);
    }
    waiters.wake_all();
    waiters.wake_all();
    assert_eq!(all.map(|waiting| waiting.wakes()), [1; 5]);
}

#[test]
fn a_waiter_that_left_is_not_woken_and_its_place_is_reused() {
    let waiters = Waiters::new();
    let mut all: [Waiting; 3] = Default::default();
    all.iter_mut().for_each(|waiting| waiting.poll(&waiters));
    waiters.leave(&mut all[0].ticket);
    waiters.leave(&mut all[1].ticket);
    let mut late: [Waiting; 2] = Default::default();
    late.iter_mut().for_each(|waiting| waiting.poll(&waiters));
    waiters.wake_all();
    assert_eq!(all.map(|waiting| waiting.wakes()), [0, 0, 1]);
    assert_eq!(late.map(|waiting| waiting.wakes()), [1, 1]);
}

#[test]
fn a_late_leave_removes_no_waiter_of_the_next_round() {
    let waiters = Waiters::new();
    let mut early: [Waiting; 2] = Default::default();
    early.iter_mut().for_each(|waiting| waiting.poll(&waiters));
    waiters.wake_all();
    let mut later: [Waiting; 2] = Default::default();
    later.iter_mut().for_each(|waiting| waiting.poll(&waiters));
    early
        .iter_mut()
        .for_each(|waiting| waiters.leave(&mut waiting.ticket));
    waiters.wake_all();
    assert_eq!(later.map(|waiting| waiting.wakes()), [1, 1]);
}

#[test]
fn a_waiter_that_polls_again_after_a_wake_is_woken_again() {
    let waiters = Waiters::new();
    let mut all: [Waiting; 3] = Default::default();
    for _ in 0..3 {
        all.iter_mut().for_each(|waiting| waiting.poll(&waiters));
        waiters.wake_all();
    }
    assert_eq!(all.map(|waiting| waiting.wakes()), [3; 3]);
}

/// A waker that calls a closure once.
struct SenderAction(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl SenderAction {
    fn new() -> Arc<Self> {
        Arc::new(SenderAction(Mutex::new(None)))
    }

    fn set(&self, action: impl FnOnce() + Send + 'static) {
        *self.0.lock() = Some(Box::new(action));
    }
}

impl Wake for SenderAction {
    fn wake(self: Arc<Self>) {
        let action = self.0.lock().take();
        if let Some(action) = action {
            action();
        }
    }
}

#[test]
fn a_waker_may_drop_the_future_that_it_wakes() {
    let (sender, receiver) = mpsc::channel();
    static WAITERS: OnceLock<Waiters> = OnceLock::new();
    // On a thread that is not joined, since it would hang on failure.
    thread::spawn(move || {
        let waiters = WAITERS.get_or_init(Waiters::new);
        let mut future = Box::pin(waiters.until(|| false));
        let action = SenderAction::new();
        let waker = Waker::from(action.clone());
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        assert_eq!(polled, Poll::Pending);
        action.set(move || drop(future));
        waiters.wake_all();
        sender.send(()).expect("the test waits");
    });
    let received = receiver.recv_timeout(Duration::from_secs(120));
    assert_eq!(received, Ok(()), "the waker must not hang");
}

#[test]
fn a_waker_that_panics_does_not_stop_the_other_wake_ups() {
    let waiters = Waiters::new();
    let action = SenderAction::new();
    action.set(|| panic!("a waker panics, on purpose"));
    let waker = Waker::from(action);
    let mut ticket = Ticket::default();
    let polled = waiters.poll(&mut ticket, &mut Context::from_waker(&waker), || false);
    assert_eq!(polled, Poll::Pending);
    let mut next = Waiting::default();
    next.poll(&waiters);
    waiters.wake_all();
    assert_eq!(next.wakes(), 1);
}
