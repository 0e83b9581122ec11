//! The outcome of a job: its work and, when that is gone, a value for the one task that awaits it.
//!
//! The work is taken, and then the value is put once. It may be seen from when it is shown, so
//! that in between whatever the job had is dropped. An outcome has no lock: it is a part of what the
//! lock of its job guards.

use std::task::{Context, Poll};

use crate::contain::KeptWaker;
use crate::sync::mutant;

pub(crate) struct Outcome<W, T> {
    stage: OutcomeStage<W, T>,
    /// The waker of the task that awaits the value.
    waker: Option<KeptWaker>,
    /// The value may be seen.
    is_shown: bool,
    /// The value is not awaited any more.
    is_abandoned: bool,
}

enum OutcomeStage<W, T> {
    Work(W),
    /// The work was taken, or the value was.
    Taken,
    Value(T),
}

impl<W, T> Outcome<W, T> {
    /// Creates an outcome without a value. `waker` is that of the task that awaits it, if there is
    /// one already.
    pub(crate) fn new(work: W, waker: Option<KeptWaker>) -> Self {
        Outcome {
            stage: OutcomeStage::Work(work),
            waker,
            is_shown: false,
            is_abandoned: false,
        }
    }

    /// Takes the work, unless it was taken.
    pub(crate) fn take_work(&mut self) -> Option<W> {
        self.take_work_if(|_| true)
    }

    /// Does the same if `may` says so.
    pub(crate) fn take_work_if(&mut self, may: impl FnOnce(&W) -> bool) -> Option<W> {
        match std::mem::replace(&mut self.stage, OutcomeStage::Taken) {
            OutcomeStage::Work(work) if may(&work) => Some(work),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Puts back work that was taken and goes on later.
    pub(crate) fn put_back(&mut self, work: W) {
        self.stage = OutcomeStage::Work(work);
    }

    /// Puts the value, which is shown later. The work was taken.
    pub(crate) fn put(&mut self, value: T) {
        self.stage = OutcomeStage::Value(value);
    }

    /// Returns the value, whether it may be seen or not.
    pub(crate) fn value(&self) -> Option<&T> {
        match &self.stage {
            OutcomeStage::Value(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn value_mut(&mut self) -> Option<&mut T> {
        match &mut self.stage {
            OutcomeStage::Value(value) => Some(value),
            _ => None,
        }
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
        if !self.is_shown || self.value().is_none() {
            return None;
        }
        match std::mem::replace(&mut self.stage, OutcomeStage::Taken) {
            OutcomeStage::Value(value) => Some(value),
            _ => None,
        }
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
