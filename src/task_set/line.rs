//! The line of a set with a limit: how many of its tasks run, and which ones wait.
//!
//! # Invariants
//! - SET-LINE-1: while a task waits, as many run as may. A task that ends gives its turn to the
//!   first one that waits, which is not in the line any more when it is woken.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::contain::KeptWaker;
use crate::sync::Mutex;

pub(super) struct TaskLine {
    limit: usize,
    state: Mutex<LineState>,
}

#[derive(Default)]
struct LineState {
    running: usize,
    /// By their numbers, which increase with each spawn.
    waiting: BTreeMap<u64, KeptWaker>,
}

impl TaskLine {
    pub(super) fn new(limit: usize) -> Self {
        TaskLine {
            limit,
            state: Mutex::new(LineState::default()),
        }
    }

    /// Gives a turn to the first task that waits, or back.
    fn pass_on(&self) {
        let mut state = self.state.lock();
        let next = state.waiting.pop_first();
        state.running -= usize::from(next.is_none());
        drop(state);
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

/// The part of a task in the line of its set.
pub(super) struct LinePart {
    line: Arc<TaskLine>,
    number: u64,
    state: PartState,
}

#[derive(PartialEq, Eq)]
enum PartState {
    Outside,
    /// It is in the line, or was given a turn.
    Waiting,
    Running,
}

impl LinePart {
    pub(super) fn new(line: &Arc<TaskLine>, number: u64) -> Self {
        LinePart {
            line: line.clone(),
            number,
            state: PartState::Outside,
        }
    }

    /// Waits until the task may run.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.state == PartState::Running {
            return Poll::Ready(());
        }
        let kept = KeptWaker::new(cx.waker());
        let mut state = self.line.state.lock();
        let may_run = match self.state {
            PartState::Outside => state.running < self.line.limit,
            // (SET-LINE-1) It was given a turn, which is counted.
            _ => !state.waiting.contains_key(&self.number),
        };
        if may_run {
            state.running += usize::from(self.state == PartState::Outside);
            drop(state);
            self.state = PartState::Running;
            return Poll::Ready(());
        }
        let old = state.waiting.insert(self.number, kept);
        drop(state);
        drop(old);
        self.state = PartState::Waiting;
        Poll::Pending
    }
}

impl Drop for LinePart {
    fn drop(&mut self) {
        let has_turn = match self.state {
            PartState::Outside => false,
            PartState::Waiting => {
                let left = self.line.state.lock().waiting.remove(&self.number);
                left.is_none()
            }
            PartState::Running => true,
        };
        if has_turn {
            self.line.pass_on();
        }
    }
}
