//! The context of the current thread: its runtime, and its role as worker or pinned thread.
//!
//! A context lives on the stack of the function that drives it. Entering a context saves the outer
//! one, and leaving restores it, so runtimes may be nested and interleaved on one thread.
//!
//! # Invariants
//! - THREAD-CONTEXT-1: the pointer is null, or points to the innermost context that is entered
//!   of this thread. That context is alive, and so is the `outer` of each context while it is
//!   entered. Contexts are entered and left in stack order.
#![expect(
    unsafe_code,
    reason = "a thread-local pointer to the stack; see THREAD-CONTEXT-1"
)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use super::ask_times::listed_first;
#[cfg(feature = "tokio")]
use super::bound::bound_here;
use super::engine::{DueEffects, RuntimeEngine};
use super::host::HostContext;
use super::inner::Inner;
use crate::contain::OnDrop;
use crate::instant;
use crate::scheduler::{self, WorkerLocal};
use crate::sync::{InChildren, mutant};
use crate::task::{self, TaskKey};
use crate::timers::{DeadlineKind, TimerClock};

/// The runtime and the role of a thread while it drives something.
pub(crate) struct ThreadContext<'a> {
    /// The current runtime.
    pub(crate) runtime: &'a Arc<Inner>,
    pub(crate) role: Cell<Role<'a>>,
    /// The task that is being polled.
    pub(crate) running: Cell<Option<TaskKey>>,
    /// The number of asks from now on to the next one that is listed.
    pub(super) asks_left: Cell<u32>,
    /// While it waits: what ends the wait, and the timers that only this thread fires.
    waits: Option<(&'a Waker, &'a Arc<dyn TimerClock>)>,
    /// The tokio runtime on which actors without a place run.
    #[cfg(feature = "tokio")]
    tokio: Option<&'a tokio::runtime::Handle>,
    /// The context that this one was entered from, or null.
    outer: Cell<*const ThreadContext<'static>>,
}

#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// A thread that waits in `block_on`.
    Outside,
    /// A thread that shuts the runtime down.
    Closing,
    /// A thread for blocking calls.
    Blocking,
    /// A thread that was this worker and has given it away, until its turn ends.
    Displaced(&'a WorkerLocal<'a>),
    Worker(&'a WorkerLocal<'a>),
    /// A worker's thread that runs the driver while the worker waits.
    Reacting,
    Pinned(&'a dyn HostContext),
}

impl<'a> ThreadContext<'a> {
    pub(crate) fn new(runtime: &'a Arc<Inner>, role: Role<'a>) -> Self {
        ThreadContext {
            runtime,
            role: Cell::new(role),
            running: Cell::new(None),
            asks_left: Cell::new(listed_first(&runtime.options)),
            waits: None,
            #[cfg(feature = "tokio")]
            tokio: None,
            outer: Cell::new(std::ptr::null()),
        }
    }

    /// Sets the tokio runtime on which actors without a place run.
    #[cfg(feature = "tokio")]
    pub(super) fn on_tokio(mut self, tokio: Option<&'a tokio::runtime::Handle>) -> Self {
        self.tokio = tokio;
        self
    }

    /// Makes this the context of the thread until the guard is dropped, which borrows it.
    pub(crate) fn enter(&self) -> OnDrop<impl FnMut()> {
        let this = std::ptr::from_ref(self).cast();
        let outer = CONTEXT
            .try_with(|context| context.replace(this))
            .unwrap_or(std::ptr::null());
        self.outer.set(outer);
        OnDrop(move || {
            let _ = CONTEXT.try_with(|context| context.set(outer));
        })
    }

    /// Returns the worker's own queues if this thread is a worker of `runtime`.
    pub(crate) fn local_of(&self, runtime: &Inner) -> Option<&'a WorkerLocal<'a>> {
        match self.role.get() {
            Role::Worker(local) if std::ptr::eq(&raw const **self.runtime, runtime) => Some(local),
            _ => None,
        }
    }

    /// Adds the timers that only this thread fires, in a wait that `waker` ends.
    pub(crate) fn with_timers(
        self,
        waker: &'a Waker,
        clock: Option<&'a Arc<dyn TimerClock>>,
    ) -> Self {
        ThreadContext {
            waits: clock.map(|clock| (waker, clock)),
            ..self
        }
    }

    /// Returns the timers that only this thread fires, if `waker` wakes what it runs or waits for.
    fn own_clock(&self, waker: &Waker) -> Option<Arc<dyn TimerClock>> {
        match (self.role.get(), self.waits) {
            (Role::Pinned(local), _) => task::is_own_waker(waker).then(|| local.clock()),
            (_, Some((own, clock))) => own.will_wake(waker).then(|| clock.clone()),
            _ => None,
        }
    }

    /// Returns whether this thread runs a stage.
    pub(super) fn is_on_a_stage(&self) -> bool {
        matches!(self.role.get(), Role::Pinned(local) if local.is_stage())
    }

    /// Returns the worker in whose run this thread is. Unlike `local_of`, it also does so if
    /// another thread continues as that worker.
    pub(crate) fn run_of(&self, runtime: &Inner) -> Option<&'a WorkerLocal<'a>> {
        match self.role.get() {
            Role::Displaced(local) if std::ptr::eq(&raw const **self.runtime, runtime) => {
                Some(local)
            }
            _ => self.local_of(runtime),
        }
    }

    /// Returns whether another thread continues as the worker that this thread was.
    pub(crate) fn is_displaced(&self) -> bool {
        matches!(self.role.get(), Role::Displaced(_))
    }
}

impl scheduler::TurnContext for ThreadContext<'_> {
    fn set_running(&self, key: Option<TaskKey>) {
        self.running.set(key);
    }

    fn is_displaced(&self) -> bool {
        ThreadContext::is_displaced(self)
    }
}

crate::sync::thread_local! {
    static CONTEXT: Cell<*const ThreadContext<'static>> = const { Cell::new(std::ptr::null()) };
}

/// Calls `look` with the thread's context, if it has one.
pub(crate) fn with<R>(look: impl FnOnce(Option<&ThreadContext<'_>>) -> R) -> R {
    let context = CONTEXT.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: (THREAD-CONTEXT-1) the context is alive until its guard is dropped, which is after
    // this call.
    look(unsafe { context.as_ref() })
}

/// Calls `look` with the contexts of this thread, the innermost first.
pub(crate) fn outward<R>(
    look: impl FnOnce(&mut dyn Iterator<Item = &ThreadContext<'_>>) -> R,
) -> R {
    let context = CONTEXT.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: (THREAD-CONTEXT-1) the context is alive until its guard is dropped, which is after
    // this call.
    let innermost = unsafe { context.as_ref() };
    look(&mut std::iter::successors(innermost, |context| {
        // SAFETY: (THREAD-CONTEXT-1) the `outer` of an entered context is alive.
        unsafe { context.outer.get().as_ref() }
    }))
}

/// Registers a handler for forks: in the child a worker that forked is no longer a worker. What it
/// pushes there is pushed from outside, and its loop ends.
pub(super) fn watch_forks() {
    extern "C" fn leave_workers() {
        outward(|contexts| {
            for context in contexts {
                if let Role::Worker(local) = context.role.get() {
                    context.role.set(Role::Displaced(local));
                }
            }
        });
    }
    static LEAVE_WORKERS: InChildren = InChildren::new(leave_workers);
    LEAVE_WORKERS.register();
}

/// Returns whether this thread is one of `runtime`'s own, or shuts it down, perhaps with other
/// runtimes nested inside. A thread that only waits in `block_on` is not one. A thread that has
/// left its worker and drops its thread-locals is one.
pub(crate) fn is_inside(runtime: &Arc<Inner>) -> bool {
    let is_own = || runtime.threads.is_here() && !mutant("a_thread_is_inside_by_its_role");
    is_own()
        || outward(|contexts| {
            contexts
                .filter(|context| !matches!(context.role.get(), Role::Outside))
                .any(|context| Arc::ptr_eq(context.runtime, runtime))
        })
}

/// Returns whether this thread, which is about to wait in `block_on`, is counted as running
/// something of `runtime`. That count is not held during the wait.
pub(crate) fn lends_its_count(runtime: &Arc<Inner>) -> bool {
    outward(|contexts| {
        let runs = |context: &&ThreadContext<'_>| match context.role.get() {
            Role::Outside | Role::Displaced(_) => true,
            Role::Pinned(local) => local.is_detached(),
            // A worker with threads is displaced by now.
            Role::Worker(_) => context.runtime.is_simulated(),
            Role::Reacting | Role::Blocking | Role::Closing => false,
        };
        contexts
            .filter(runs)
            .any(|context| Arc::ptr_eq(context.runtime, runtime))
    })
}

/// Returns the current runtime: that of the context or, without a context, that of the stage or of
/// the tokio runtime of this thread.
pub(crate) fn runtime() -> Option<Arc<Inner>> {
    with_runtime(|runtime| runtime.map(Arc::clone))
}

/// Calls `look` with the current runtime, if there is one.
pub(crate) fn with_runtime<R>(look: impl FnOnce(Option<&Arc<Inner>>) -> R) -> R {
    let shown = |runtime: &&Arc<Inner>| !runtime.options.hidden;
    with(|context| match context {
        Some(context) => look(Some(context.runtime).filter(shown)),
        None => match stage() {
            Some(stage) => look(Some(stage.runtime()).filter(shown)),
            None => look(bound().as_ref()),
        },
    })
}

#[cfg(feature = "tokio")]
fn bound() -> Option<Arc<Inner>> {
    bound_here().map(|(runtime, _)| runtime)
}

#[cfg(not(feature = "tokio"))]
fn bound() -> Option<Arc<Inner>> {
    None
}

/// Returns the current runtime and the tokio runtime of this thread, if that is why it is current.
#[cfg(feature = "tokio")]
pub(super) fn tokio_place() -> Option<(Arc<Inner>, tokio::runtime::Handle)> {
    with(|context| match context {
        Some(context) => Some((context.runtime.clone(), context.tokio?.clone())),
        None => bound_here().filter(|_| stage().is_none()),
    })
}

/// Calls `f` with the simulation that this thread drives, if it drives one.
pub(crate) fn simulated<R>(f: impl FnOnce(&dyn RuntimeEngine, &Inner) -> R) -> Option<R> {
    with(|context| {
        let runtime = context?.runtime;
        runtime.is_simulated().then(|| f(runtime.engine(), runtime))
    })
}

/// Applies the pending effects of this thread's turn. A turn calls this before it looks at, or
/// changes, a state of greenroom that other tasks can see. Only a simulation has such effects.
#[inline]
pub(crate) fn apply_effects() {
    if instant::is_simulated() {
        apply_own_effects();
    }
}

#[cold]
#[inline(never)]
fn apply_own_effects() {
    let _ = simulated(|engine, runtime| engine.apply(runtime, DueEffects::Own));
}

/// Returns whether this thread's turn has pending effects. Only a simulation has such effects.
pub(crate) fn has_effects() -> bool {
    instant::is_simulated() && simulated(|engine, _| engine.has_own()) == Some(true)
}

/// Returns whether the ask that begins on this thread is listed: all are in some runtimes, and one of
/// many in others.
pub(crate) fn lists_ask() -> bool {
    with(|context| {
        context.is_some_and(|context| {
            let left = context.asks_left.get().wrapping_sub(1);
            context.asks_left.set(left);
            left == 0
        })
    })
}

/// Returns whether this thread is a worker whose queues and the injector are empty.
pub(crate) fn is_alone() -> bool {
    with(|context| match context?.role.get() {
        Role::Worker(local) => Some(local.is_alone()),
        _ => None,
    })
    .unwrap_or(false)
}

crate::sync::thread_local! {
    static STAGE: RefCell<Option<Rc<dyn HostContext>>> = const { RefCell::new(None) };
}

/// Returns the stage of this thread, if it has one.
pub(crate) fn stage() -> Option<Rc<dyn HostContext>> {
    STAGE
        .try_with(|stage| stage.borrow().clone())
        .ok()
        .flatten()
}

/// Returns the stage of this thread if it belongs to `runtime`.
pub(crate) fn stage_of(runtime: &Arc<Inner>) -> Option<Rc<dyn HostContext>> {
    stage().filter(|stage| Arc::ptr_eq(stage.runtime(), runtime))
}

pub(crate) fn set_stage(stage: Option<Rc<dyn HostContext>>) {
    let before = STAGE.try_with(|current| current.replace(stage));
    drop(before);
}

/// Returns why this thread cannot be a stage, or `None` if it can.
pub(crate) fn why_no_stage() -> Option<&'static str> {
    if stage().is_some() {
        return Some("this thread already has one");
    }
    let own = outward(|contexts| {
        let here = contexts.filter(|context| context.runtime.is_here());
        let mut own = here.filter(|context| !matches!(context.role.get(), Role::Outside));
        own.next().is_some()
    });
    own.then_some("this is a thread that a runtime started for its own tasks or jobs")
}

/// Returns the timers of this context for a deadline of a kind that wakes what `waker` wakes.
///
/// A thread with timers of its own fires the deadlines that wake what it runs or waits for. It may
/// block before it fires any other, so another thread does. The timeouts of listed asks are in the
/// timers of the runtime, but for those of a stage: its foreign loop asks for its next deadline.
pub(crate) fn clock(kind: DeadlineKind, waker: &Waker) -> Option<Arc<dyn TimerClock>> {
    with(|context| {
        let context = context?;
        let is_hidden = context.runtime.options.hidden;
        let own = if kind == DeadlineKind::Event || is_hidden || context.is_on_a_stage() {
            context.own_clock(waker)
        } else {
            None
        };
        // Hidden, so of a stage without a runtime: only the thread of the process can fire other
        // deadlines.
        own.or_else(|| (!is_hidden).then(|| context.runtime.clone() as Arc<dyn TimerClock>))
    })
}
