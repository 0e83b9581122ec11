//! Which process this is, of those that come from each other by `fork`.
//!
//! A child has a copy of the memory and of the thread that forked, and no other thread. What those had locked
//! stays locked there, and what waits for them waits for ever. So whatever belongs to threads knows its process,
//! which is looked at before a lock is taken or something is waited for.
//!
//! # Invariants
//! - FORK-1: a node that others can see is never freed.
#![expect(
    unsafe_code,
    reason = "a handler for the system to call, and nodes that are never freed; see FORK-1"
)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use super::OnceLock;

/// What a use of something says that another process has the threads of.
pub(crate) const LEFT_BEHIND: &str = "the runtime belongs to the parent process, since `fork` does not copy \
     its threads: build another one in this process";

/// How many forks led to this process from the first one that asked for itself.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process, told from those that it was forked from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one. From now on its children know that they are others.
    pub(crate) fn current() -> Self {
        extern "C" fn count() {
            // Relaxed: a child has one thread at first. One that counts twice is told from its parent as well.
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        static COUNT: InChildren = InChildren::new(count);
        COUNT.register();
        // Relaxed: as above.
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is the first one, so that there are no others.
    #[inline(always)]
    pub(crate) fn is_first() -> bool {
        // Relaxed: as above.
        FORKS.load(Ordering::Relaxed) == 0
    }

    /// What `find` says, which is asked only if there are others.
    #[inline(always)]
    pub(crate) fn of(find: impl FnOnce() -> Process) -> Self {
        if Process::is_first() {
            Process(0)
        } else {
            find()
        }
    }

    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        // Relaxed: as above.
        Process::is_first() || self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// # Panics
    /// If it is another one.
    #[inline]
    #[track_caller]
    pub(crate) fn check(self) {
        if !self.is_current() {
            left_behind();
        }
    }

    /// Aborts if it is another one, whose thread this is a copy of: it has nothing to go on with.
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
    // Not `eprintln!`, which panics where stderr is closed.
    let _ = std::io::Write::write_all(
        &mut std::io::stderr(),
        b"greenroom: a process that was forked in a task has come to the end of the task's turn, but its \
        runtime belongs to the parent process: end it by `exec` or `_exit` before that\n",
    );
    std::process::abort()
}

/// What is called in each child, on its one thread, before `fork` returns there: perhaps more than once.
pub(crate) struct InChildren {
    is_registered: AtomicBool,
    #[cfg_attr(
        any(not(unix), miri, greenroom_loom),
        expect(dead_code, reason = "nothing forks")
    )]
    act: extern "C" fn(),
}

impl InChildren {
    /// `act` takes no lock and allocates nothing.
    pub(crate) const fn new(act: extern "C" fn()) -> Self {
        InChildren {
            is_registered: AtomicBool::new(false),
            act,
        }
    }

    pub(crate) fn register(&self) {
        // Relaxed: whoever comes here meanwhile registers it, too.
        if !self.is_registered.load(Ordering::Relaxed) {
            #[cfg(all(unix, not(any(miri, greenroom_loom))))]
            // SAFETY: the function is there for as long as the process is.
            let refused = unsafe { libc::pthread_atfork(None, None, Some(self.act)) };
            #[cfg(all(unix, not(any(miri, greenroom_loom))))]
            assert!(refused == 0, "no memory to hear of a `fork` with");
            self.is_registered.store(true, Ordering::Relaxed);
        }
    }
}

/// A static value that each process makes for itself.
pub(crate) struct PerProcess<T: 'static>(AtomicPtr<Node<T>>);

struct Node<T> {
    process: Process,
    value: OnceLock<T>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess(AtomicPtr::new(null_mut()))
    }

    /// That of this process, made by `make` at first; what the parent process made is left where it is.
    pub(crate) fn get_or_init(&'static self, make: impl FnOnce() -> T) -> &'static T {
        let process = Process::current();
        // Acquire pairs with the Release of the exchange: the node is seen as it was made.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: (FORK-1) it was seen here.
            if let Some(node) = unsafe { seen.as_ref() }
                && node.process == process
            {
                return node.value.get_or_init(make);
            }
            let fresh = Box::into_raw(Box::new(Node {
                process,
                value: OnceLock::new(),
            }));
            let put = self
                .0
                .compare_exchange(seen, fresh, Ordering::AcqRel, Ordering::Acquire);
            seen = match put {
                Ok(_) => fresh,
                Err(other) => {
                    // SAFETY: nobody has seen it.
                    drop(unsafe { Box::from_raw(fresh) });
                    other
                }
            };
        }
    }
}
