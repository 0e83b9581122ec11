//! The outcome of a job: a value for the one task that awaits it.
//!
//! The value is put once. It may be seen from when it is shown, so that in between whatever the job
//! had is dropped. An outcome has no lock: it is a part of what the lock of its job guards.

use std::task::{Context, Poll};

use crate::sync::mutant;
use crate::waker::KeptWaker;

pub(crate) struct Outcome<T> {
    value: Option<T>,
    /// The waker of the task that awaits the value.
    waker: Option<KeptWaker>,
    /// The value may be seen.
    is_shown: bool,
    /// The value is not awaited any more.
    is_abandoned: bool,
}

impl<T> Outcome<T> {
    /// Creates an outcome without a value. `waker` is that of the task that awaits it, if there is
    /// one already.
    pub(crate) fn new(waker: Option<KeptWaker>) -> Self {
        Outcome {
            value: None,
            waker,
            is_shown: false,
            is_abandoned: false,
        }
    }

    /// Puts the value, which is shown later.
    pub(crate) fn put(&mut self, value: T) {
        self.value = Some(value);
    }

    /// Returns the value, whether it may be seen or not.
    pub(crate) fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    /// Lets the value be seen. Returns the waker of the task that awaits it.
    pub(crate) fn show(&mut self) -> Option<KeptWaker> {
        self.is_shown = true;
        self.waker.take()
    }

    /// Takes the value, if it may be seen.
    pub(crate) fn take(&mut self) -> Option<T> {
        self.value.take_if(|_| self.is_shown)
    }

    /// Takes the value, if it may be seen. Otherwise swaps `waker`, if there is one, for the one that
    /// was left before.
    pub(crate) fn take_or_leave(&mut self, waker: &mut Option<KeptWaker>) -> Option<T> {
        if waker.is_some() {
            if !self.is_shown {
                std::mem::swap(&mut self.waker, waker);
            }
            if mutant("a_task_awaits_without_a_second_look") {
                return None;
            }
        }
        self.take()
    }

    /// Gives up the value. Returns it if it may be seen, and the waker that was left.
    pub(crate) fn abandon(&mut self) -> (Option<T>, Option<KeptWaker>) {
        self.is_abandoned = true;
        (self.take(), self.waker.take())
    }
}

/// Polls an outcome. `look` calls [`Outcome::take_or_leave`] under the lock of the job.
pub(crate) fn poll<T>(
    cx: &Context<'_>,
    look: impl Fn(&mut Option<KeptWaker>) -> Option<T>,
) -> Poll<T> {
    // A task that polls again was most likely woken by the end, so the first look clones no waker.
    let value = look(&mut None).or_else(|| {
        let mut waker = Some(KeptWaker::new(cx.waker()));
        let value = look(&mut waker);
        drop(waker);
        value
    });
    value.map_or(Poll::Pending, Poll::Ready)
}
