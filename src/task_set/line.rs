//! The line of a set with a limit: how many of its tasks run, and which ones wait.
//!
//! # Invariants
//! - SET-LINE-1: while a task waits, as many run as may. A task that ends gives its turn to the first
//!   one that waits, which is not in the line any more when it is woken. One that was given up gets no
//!   turn, and stays in the line until it is dropped.

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
    /// By their numbers, which increase with each spawn. A task that was not polled has no waker.
    waiting: BTreeMap<u64, Option<KeptWaker>>,
    /// The number of the last task that was given up, with all before it.
    given_up: u64,
}

impl TaskLine {
    pub(super) fn new(limit: usize) -> Self {
        TaskLine {
            limit,
            state: Mutex::new(LineState::default()),
        }
    }

    /// Lets no task begin any more that waits now. This is the number of the last one.
    pub(super) fn give_up(&self, last: u64) {
        self.state.lock().given_up = last;
    }

    /// Gives a turn to the first task that waits, or back.
    fn pass_on(&self) {
        let mut state = self.state.lock();
        let mut waiting = state.waiting.range(state.given_up + 1..);
        let first = waiting.next().map(|(number, _)| *number);
        let next = first.and_then(|number| state.waiting.remove(&number));
        state.running -= usize::from(next.is_none());
        drop(state);
        if let Some(Some(waker)) = next {
            waker.wake();
        }
    }
}

/// The part of a task in the line of its set.
pub(super) struct LinePart {
    line: Arc<TaskLine>,
    number: u64,
    /// It has a turn, and not only a place in the line.
    has_turn: bool,
}

impl LinePart {
    /// Gives a turn to a task that is to be spawned, or adds it to the end of the line.
    pub(super) fn new(line: &Arc<TaskLine>, number: u64) -> Self {
        let mut state = line.state.lock();
        let has_turn = state.running < line.limit;
        match has_turn {
            true => state.running += 1,
            false => drop(state.waiting.insert(number, None)),
        }
        drop(state);
        LinePart {
            line: line.clone(),
            number,
            has_turn,
        }
    }

    /// Waits until the task may run.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.has_turn {
            return Poll::Ready(());
        }
        let mut kept = Some(KeptWaker::new(cx.waker()));
        let mut state = self.line.state.lock();
        // (SET-LINE-1) It was given a turn if it is not in the line any more.
        match state.waiting.get_mut(&self.number) {
            Some(waker) => std::mem::swap(waker, &mut kept),
            None => self.has_turn = true,
        }
        drop(state);
        // Not under the lock, since the drop of a waker may be user code.
        drop(kept);
        match self.has_turn {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Drop for LinePart {
    fn drop(&mut self) {
        let left = match self.has_turn {
            true => None,
            false => self.line.state.lock().waiting.remove(&self.number),
        };
        if left.is_none() {
            self.line.pass_on();
        }
    }
}
