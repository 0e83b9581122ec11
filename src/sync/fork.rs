//! The identity of a process among those that `fork` created from one another.
//!
//! A child has a copy of the memory and of the thread that forked, and no other thread. Locks that
//! the other threads held stay locked in the child, and a wait for those threads never ends. So
//! everything that belongs to threads records its process, which is checked before a lock is taken
//! and before a wait.
//!
//! # Invariants
//! - FORK-1: a node that other threads can see is never freed.
#![expect(
    unsafe_code,
    reason = "a handler for the system to call, and nodes that are never freed; see FORK-1"
)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use super::OnceLock;
use crate::stderr::print_line_at_once;

/// The panic text for the use of something whose threads are in another process.
pub(crate) const LEFT_BEHIND: &str = "the runtime belongs to the parent process, since `fork` does \
     not copy its threads: build another one in this process";

/// The number of forks from the first process that called [`Process::current`] to this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process, distinct from those that it was forked from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// Returns the current process. From now on, children are counted as other processes.
    pub(crate) fn current() -> Self {
        extern "C" fn count() {
            // Relaxed: a child has one thread at first. Counting twice still distinguishes it from
            // its parent.
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        static COUNT: InChildren = InChildren::new(count);
        COUNT.register();
        // Relaxed: only a child writes it, with one thread.
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Returns whether this is the first process, so that there are no others.
    #[inline(always)]
    pub(crate) fn is_first() -> bool {
        // Relaxed: only a child writes it, with one thread.
        FORKS.load(Ordering::Relaxed) == 0
    }

    /// Returns the process that `find` returns, which is called only if there may be others.
    #[inline(always)]
    pub(crate) fn of(find: impl FnOnce() -> Process) -> Self {
        if Process::is_first() {
            Process(0)
        } else {
            find()
        }
    }

    /// Returns whether this is the current process.
    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        // Relaxed: only a child writes it, with one thread.
        Process::is_first() || self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// Checks that this is the current process.
    ///
    /// # Panics
    /// If it is another process.
    #[inline]
    #[track_caller]
    pub(crate) fn check(self) {
        if !self.is_current() {
            left_behind();
        }
    }

    /// Aborts if this is another process: the thread is a copy, and cannot continue the runtime.
    #[inline(always)]
    pub(crate) fn end_copy(self) {
        if !self.is_current() {
            end();
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn left_behind() -> ! {
    panic!("{LEFT_BEHIND}")
}

#[cold]
#[inline(never)]
fn end() -> ! {
    // No capture: a thread of the parent may have held its lock.
    print_line_at_once(format_args!(
        "a process forked inside a task reached the end of the task's turn, but its runtime \
         belongs to the parent process: call `exec` or `_exit` before that"
    ));
    std::process::abort()
}

/// A function that is called in each child, on its one thread, before `fork` returns there. It may
/// be called more than once.
pub(crate) struct InChildren {
    is_registered: AtomicBool,
    #[cfg_attr(
        any(not(unix), miri, greenroom_loom),
        expect(dead_code, reason = "nothing forks")
    )]
    act: extern "C" fn(),
}

impl InChildren {
    /// Creates a registration of `act`, which must not take a lock or allocate.
    pub(crate) const fn new(act: extern "C" fn()) -> Self {
        InChildren {
            is_registered: AtomicBool::new(false),
            act,
        }
    }

    /// Registers the function, unless it is registered already.
    pub(crate) fn register(&self) {
        // Relaxed: another thread that gets here meanwhile registers it, too.
        if !self.is_registered.load(Ordering::Relaxed) {
            #[cfg(all(unix, not(any(miri, greenroom_loom))))]
            // SAFETY: the function lives as long as the process.
            let refused = unsafe { libc::pthread_atfork(None, None, Some(self.act)) };
            #[cfg(all(unix, not(any(miri, greenroom_loom))))]
            assert!(
                refused == 0,
                "out of memory: cannot register a `fork` handler"
            );
            self.is_registered.store(true, Ordering::Relaxed);
        }
    }
}

/// A static value that each process creates for itself.
pub(crate) struct PerProcess<T: 'static>(AtomicPtr<ProcessValue<T>>);

struct ProcessValue<T> {
    process: Process,
    value: OnceLock<T>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess(AtomicPtr::new(null_mut()))
    }

    /// Returns the value of this process, created by `make` at the first call. The parent's value
    /// is leaked.
    pub(crate) fn get_or_init(&'static self, make: impl FnOnce() -> T) -> &'static T {
        let process = Process::current();
        // Acquire pairs with the Release of the exchange: the node is initialised.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: (FORK-1) this thread has seen the node, so it is never freed.
            if let Some(node) = unsafe { seen.as_ref() }
                && node.process == process
            {
                return node.value.get_or_init(make);
            }
            let fresh = Box::into_raw(Box::new(ProcessValue {
                process,
                value: OnceLock::new(),
            }));
            let put = self
                .0
                .compare_exchange(seen, fresh, Ordering::AcqRel, Ordering::Acquire);
            seen = match put {
                Ok(_) => fresh,
                Err(other) => {
                    // SAFETY: no other thread has seen the node.
                    drop(unsafe { Box::from_raw(fresh) });
                    other
                }
            };
        }
    }
}
