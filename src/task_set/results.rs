//! The results of a set of tasks that were not taken yet, and the waker of the wait for them.

use std::collections::VecDeque;
use std::task::Waker;

use crate::contain::KeptWaker;
use crate::sync::Mutex;

/// A task by its key, and its value; no value if the task ended without one.
pub(super) type SetResult<T> = (usize, Option<T>);

pub(super) struct SetResults<T>(Mutex<ResultList<T>>);

struct ResultList<T> {
    results: VecDeque<SetResult<T>>,
    waker: Option<KeptWaker>,
    /// The set takes no further results.
    closed: bool,
}

impl<T> SetResults<T> {
    pub(super) fn new() -> Self {
        SetResults(Mutex::new(ResultList {
            results: VecDeque::new(),
            waker: None,
            closed: false,
        }))
    }

    /// Adds a result, and wakes what waits for one.
    pub(super) fn put(&self, result: SetResult<T>) {
        let mut list = self.0.lock();
        if list.closed {
            drop(list);
            // Its drop may be user code.
            return drop(result);
        }
        list.results.push_back(result);
        let waker = list.waker.take();
        drop(list);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes all results, in exchange for an empty list. Without any it leaves the waker, and
    /// returns false.
    pub(super) fn take_or_wait(&self, taken: &mut VecDeque<SetResult<T>>, waker: &Waker) -> bool {
        let mut kept = None;
        loop {
            let mut list = self.0.lock();
            if !list.results.is_empty() {
                std::mem::swap(&mut list.results, taken);
                let unneeded = list.waker.take();
                drop(list);
                drop(unneeded);
                return true;
            }
            if list.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
                return false;
            }
            if kept.is_some() {
                let old = std::mem::replace(&mut list.waker, kept);
                drop(list);
                drop(old);
                return false;
            }
            // Not under the lock, since the clone of a waker may be user code.
            drop(list);
            kept = Some(KeptWaker::new(waker));
        }
    }

    /// Drops the waker, if there is one.
    pub(super) fn await_no_more(&self) {
        let unneeded = self.0.lock().waker.take();
        drop(unneeded);
    }

    /// Drops all results, now and from now on.
    pub(super) fn close(&self) {
        let mut list = self.0.lock();
        list.closed = true;
        let unneeded = (std::mem::take(&mut list.results), list.waker.take());
        drop(list);
        drop(unneeded);
    }
}
