//! The threads of a runtime that its shutdown joins: workers, pinned threads, and blocking threads.
//!
//! One set holds all of them, because a worker may become a blocking thread and the reverse. Only
//! threads that have reported that they run nothing any more are joined. Such a thread still drops
//! the user's thread-locals, which may never return. The shutdown waits for that no longer than for
//! a turn.
//!
//! `Builder::around_threads` sets a function around the whole life of each thread. A thread that has
//! such a function has started when the function calls `run`. Its starter waits for that, without a
//! lock, and learns why a thread did not start.
//!
//! # Invariants
//! - THREADS-1: a thread reports that it is gone in the drop of its first thread-local. `std` drops
//!   that one last, so joining the thread then waits for no user code. Until then the thread keeps
//!   its set alive.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle, ThreadId};

use crate::contain::{attempt, contain, count_thread};
use crate::instant::Instant;
use crate::sync::{Condvar, Mutex, Process, mutant};

pub(crate) struct ThreadSet {
    state: Mutex<ThreadLists>,
    /// Signalled when a thread is gone, and by `interrupt`.
    changed: Condvar,
    stack_size: Option<usize>,
}

#[derive(Default)]
struct ThreadLists {
    threads: Vec<JoinHandle<()>>,
    /// Those that run nothing any more and drop their thread-locals.
    leaving: Vec<ThreadId>,
    /// Those that have dropped their thread-locals.
    gone: Vec<ThreadId>,
    /// `interrupt` was called, and `join` has not seen to it.
    interrupted: bool,
}

crate::sync::thread_local! {
    /// The set of this thread, or null. It needs no drop, so other thread-locals can read it in
    /// their drops.
    static OWN_SET: Cell<*const ThreadSet> = const { Cell::new(std::ptr::null()) };
}
crate::sync::thread_local! {
    static MEMBER: RefCell<Option<SetMember>> = const { RefCell::new(None) };
}

/// (THREADS-1) The thread-local that a thread of a set creates first and drops last.
struct SetMember {
    set: Arc<ThreadSet>,
    thread: ThreadId,
    process: Process,
}

impl Drop for SetMember {
    fn drop(&mut self) {
        // A copy of the thread in a forked child does not belong to the set.
        if !self.process.is_current() {
            return;
        }
        let mut state = self.set.state.lock();
        state.leaving.retain(|&leaving| leaving != self.thread);
        state.gone.push(self.thread);
        drop(state);
        if !mutant("a_thread_that_is_gone_notifies_nobody") {
            self.set.changed.notify_all();
        }
    }
}

impl ThreadSet {
    /// Creates a set of threads with stacks of this size, in bytes; `None` is that of `std`.
    pub(crate) fn new(stack_size: Option<usize>) -> Arc<Self> {
        Arc::new(ThreadSet {
            state: Mutex::new(ThreadLists::default()),
            changed: Condvar::new(),
            stack_size,
        })
    }

    /// Sets the size of the thread's stack, if there is an option for it.
    pub(super) fn with_stack(&self, thread: thread::Builder) -> thread::Builder {
        match self.stack_size {
            Some(bytes) => thread.stack_size(bytes),
            None => thread,
        }
    }

    /// Starts a thread that belongs to this set until its very end, and that runs within `around`.
    pub(super) fn start(
        self: &Arc<Self>,
        name: String,
        around: Option<Around>,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<Arc<ThreadStart>> {
        let set = self.clone();
        // Without a function around it, the thread has started once the system has started it.
        let start = Arc::new(ThreadStart {
            result: Mutex::new(around.is_none().then_some(Ok(()))),
            changed: Condvar::new(),
        });
        let own = start.clone();
        let body = move || {
            count_thread();
            set.enter();
            let Some(around) = around else {
                return body();
            };
            let ran = around.run(|| {
                own.report(Ok(()));
                body();
            });
            if ran.is_err() {
                set.leave();
                own.report(ran);
            }
        };
        let thread = self
            .with_stack(thread::Builder::new().name(name))
            .spawn(body)?;
        let mut state = self.state.lock();
        // Threads that are already gone need no join.
        drop(state.extract_gone());
        state.threads.push(thread);
        Ok(start)
    }

    /// Adds the calling thread, which has just started, to this set.
    pub(crate) fn enter(self: &Arc<Self>) {
        let member = SetMember {
            set: self.clone(),
            thread: thread::current().id(),
            process: Process::current(),
        };
        MEMBER.with(|own| own.replace(Some(member)));
        OWN_SET.with(|set| set.set(Arc::as_ptr(self)));
    }

    /// Returns whether the calling thread belongs to this set, also while it drops its
    /// thread-locals.
    pub(crate) fn is_here(&self) -> bool {
        matches!(
            OWN_SET.try_with(|set| std::ptr::eq(set.get(), self)),
            Ok(true)
        )
    }

    /// Reports that the calling thread, if it belongs to this set, runs nothing any more.
    pub(crate) fn leave(&self) {
        if self.is_here() {
            let thread = thread::current().id();
            self.state.lock().leaving.push(thread);
        }
    }

    /// Makes a thread that waits in `join` call its `drain`.
    pub(super) fn interrupt(&self) {
        self.state.lock().interrupted = true;
        self.changed.notify_all();
    }

    /// Joins the threads that have left, and detaches the rest. Returns how many threads that have
    /// left are not gone by the deadline.
    ///
    /// Calls `drain` after each `interrupt`: a thread-local may wait for the drop of what it pushed.
    pub(crate) fn join(&self, deadline: Option<Instant>, drain: impl Fn()) -> usize {
        let mut state = self.state.lock();
        while !state.leaving.is_empty() {
            if std::mem::take(&mut state.interrupted) {
                drop(state);
                drain();
                state = self.state.lock();
                continue;
            }
            let wait = deadline.map(|deadline| deadline.duration_since(Instant::now()));
            if wait.is_some_and(|wait| wait.is_zero()) {
                break;
            }
            state = self.changed.wait(state, wait);
        }
        let (gone, late) = (state.extract_gone(), state.leaving.len());
        state.threads.clear();
        drop(state);
        for thread in gone {
            // (THREADS-1) The panic of the thread itself was already reported.
            let _ = thread.join();
        }
        late
    }
}

impl ThreadLists {
    fn extract_gone(&mut self) -> Vec<JoinHandle<()>> {
        let ThreadLists { threads, gone, .. } = self;
        let mut extracted = Vec::new();
        gone.retain(|&id| {
            let at = threads.iter().position(|thread| thread.thread().id() == id);
            extracted.extend(at.map(|at| threads.swap_remove(at)));
            // Such a thread is gone before its handle was added.
            at.is_none()
        });
        extracted
    }
}

/// The function of the user, which calls its argument once.
#[derive(Clone)]
#[expect(clippy::type_complexity, reason = "this is the name of the type")]
pub(super) struct Around(Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>);

impl Around {
    pub(super) fn new(function: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Around(Arc::new(function))
    }

    /// Runs `body` within the function, which is dropped afterwards. A panic of the function is
    /// contained.
    ///
    /// # Errors
    /// Says why `body` did not run.
    pub(super) fn run(self, body: impl FnOnce()) -> io::Result<()> {
        let mut body = Some(body);
        let mut run = || {
            if let Some(body) = body.take() {
                body();
            }
        };
        let outcome = attempt(|| (self.0)(&mut run));
        contain(|| drop(self));
        match (body, outcome) {
            (None, _) => Ok(()),
            (Some(_), Ok(())) => Err(io::Error::other("`around_threads` did not call `run`")),
            (Some(_), Err(panic)) => Err(io::Error::other(format!(
                "`around_threads` panicked before it called `run`: {panic}"
            ))),
        }
    }
}

/// The start of a thread that the system has started, and that may be before the call of `run`.
pub(crate) struct ThreadStart {
    /// `None` until the thread has called `run`, or never will.
    result: Mutex<Option<io::Result<()>>>,
    changed: Condvar,
}

impl ThreadStart {
    /// Waits until the thread has started.
    ///
    /// # Errors
    /// Says why the thread did not start.
    pub(crate) fn wait(self: Arc<Self>) -> io::Result<()> {
        let mut result = self.result.lock();
        loop {
            if let Some(result) = result.take() {
                return result;
            }
            result = self.changed.wait(result, None);
        }
    }

    fn report(&self, result: io::Result<()>) {
        *self.result.lock() = Some(result);
        self.changed.notify_all();
    }
}
