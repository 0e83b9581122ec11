//! The threads of a runtime that its shutdown joins: workers, and those for blocking calls.
//!
//! They are kept together because a thread may become the one from the other. Only threads that
//! have said that they run nothing any more are joined, so that joining waits for nobody's code but
//! that of the thread-locals.

use std::thread::{JoinHandle, ThreadId};

use crate::sync::Mutex;

pub(super) struct Crew(Mutex<State>);

#[derive(Default)]
struct State {
    threads: Vec<JoinHandle<()>>,
    /// Those of them that run nothing any more.
    out: Vec<ThreadId>,
}

impl Crew {
    pub(super) fn new() -> Self {
        Crew(Mutex::new(State::default()))
    }

    pub(super) fn keep(&self, thread: JoinHandle<()>) {
        let mut state = self.0.lock();
        // Whoever left before the end need not be joined.
        drop(state.extract_out());
        state.threads.push(thread);
    }

    /// This thread runs nothing any more.
    pub(super) fn leave(&self) {
        self.0.lock().out.push(std::thread::current().id());
    }

    /// Joins those that have left, and lets go of the others.
    pub(super) fn join(&self) {
        let mut state = self.0.lock();
        let out = state.extract_out();
        state.threads.clear();
        drop(state);
        for thread in out {
            // Only the thread-locals of the user can hold it up now; a panic of theirs is told.
            let _ = thread.join();
        }
    }
}

impl State {
    fn extract_out(&mut self) -> Vec<JoinHandle<()>> {
        let State { threads, out } = self;
        let mut left = Vec::new();
        out.retain(|&id| {
            let at = threads.iter().position(|thread| thread.thread().id() == id);
            left.extend(at.map(|at| threads.swap_remove(at)));
            // One that has left before its handle came here.
            at.is_none()
        });
        left
    }
}
