//! The run queue that all ways share: single-threaded, with a LIFO slot.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many times in a row the LIFO slot goes before the queue.
const SLOT_TURNS: u32 = 3;

thread_local! {
    /// Whether this thread runs actors. Wake-ups from other threads go to the [`Injector`].
    static RUNS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread run actors.
pub fn run_here() {
    RUNS_HERE.set(true);
}

/// Returns whether the calling thread runs actors.
pub fn runs_here() -> bool {
    RUNS_HERE.get()
}

/// The ready actors of this thread. `R` is one pointer.
pub struct RunQueue<R> {
    newest: Cell<Option<R>>,
    turns: Cell<u32>,
    rest: RefCell<VecDeque<R>>,
}

impl<R> RunQueue<R> {
    pub const fn new() -> Self {
        Self {
            newest: Cell::new(None),
            turns: Cell::new(0),
            rest: RefCell::new(VecDeque::new()),
        }
    }

    /// Puts `ready` into the slot; the displaced entry goes to the end of the queue.
    pub fn push(&self, ready: R) {
        if let Some(displaced) = self.newest.replace(Some(ready)) {
            self.push_back(displaced);
        }
    }

    /// Puts `ready` at the end of the queue.
    pub fn push_back(&self, ready: R) {
        self.rest.borrow_mut().push_back(ready);
    }

    /// Takes the entry that runs next.
    pub fn pop(&self) -> Option<R> {
        if self.turns.get() < SLOT_TURNS
            && let Some(newest) = self.newest.take()
        {
            self.turns.set(self.turns.get() + 1);
            return Some(newest);
        }
        self.turns.set(0);
        let oldest = self.rest.borrow_mut().pop_front();
        oldest.or_else(|| self.newest.take())
    }
}

/// The actors that other threads made ready.
pub struct Injector<R> {
    length: AtomicUsize,
    queue: Mutex<VecDeque<R>>,
}

impl<R> Injector<R> {
    pub const fn new() -> Self {
        Self {
            length: AtomicUsize::new(0),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    pub fn push(&self, ready: R) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(ready);
        self.length.store(queue.len(), Ordering::Release);
    }

    pub fn pop(&self) -> Option<R> {
        if self.length.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = queue.pop_front();
        self.length.store(queue.len(), Ordering::Release);
        ready
    }
}
