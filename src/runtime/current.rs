//! Which runtime, worker or pinned thread this thread is at the moment.
//!
//! A place stands on the stack of whoever drives it; entering one puts the outer one aside and
//! leaving puts it back, so runtimes may be nested and interleaved on one thread.
//!
//! # Invariants
//! - P1: the pointer is null, or to the place of the innermost [`Entered`] of this thread, which is
//!   alive, as is each place's `outer` while it is entered. Places are entered and left in the
//!   order of the stack.
#![expect(unsafe_code, reason = "a thread-local pointer to the stack; see P1")]

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use super::chosen::Local;
use super::inner::Inner;
use super::simulation::Simulation;
use crate::pinned::Local as PinnedLocal;
use crate::sync::{InChildren, mutant};
use crate::task::TaskKey;
use crate::timers::{Clock, Kind};

/// What a thread is, while it drives something.
pub(crate) struct Place<'a> {
    /// The current runtime.
    pub(crate) runtime: &'a Arc<Inner>,
    pub(crate) role: Cell<Role<'a>>,
    /// The runnable under way.
    pub(crate) running: Cell<Option<TaskKey>>,
    /// The place that this one was entered from, or null.
    outer: Cell<*const Place<'static>>,
}

#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// A thread that waits in `block_on`.
    Outside,
    /// A thread that shuts the runtime down.
    Closing,
    /// A thread for blocking calls.
    Blocking,
    /// A worker that has given its place away, until its turn ends: it was this one.
    Displaced(&'a Local<'a>),
    Worker(&'a Local<'a>),
    Pinned(&'a PinnedLocal),
}

impl<'a> Place<'a> {
    pub(crate) fn new(runtime: &'a Arc<Inner>, role: Role<'a>) -> Self {
        Place {
            runtime,
            role: Cell::new(role),
            running: Cell::new(None),
            outer: Cell::new(std::ptr::null()),
        }
    }

    /// Makes this the place of the thread until the guard is dropped.
    pub(crate) fn enter(&self) -> Entered<'_> {
        let this = std::ptr::from_ref(self).cast();
        let outer = PLACE
            .try_with(|place| place.replace(this))
            .unwrap_or(std::ptr::null());
        self.outer.set(outer);
        Entered {
            outer,
            _place: PhantomData,
        }
    }

    /// The worker's own queues, if this thread is a worker of `runtime`.
    pub(crate) fn local_of(&self, runtime: &Inner) -> Option<&'a Local<'a>> {
        match self.role.get() {
            Role::Worker(local) if std::ptr::eq(&raw const **self.runtime, runtime) => Some(local),
            _ => None,
        }
    }

    /// The same, also if another thread goes on as that worker: whose run it is that is under way.
    pub(crate) fn run_of(&self, runtime: &Inner) -> Option<&'a Local<'a>> {
        match self.role.get() {
            Role::Displaced(local) if std::ptr::eq(&raw const **self.runtime, runtime) => {
                Some(local)
            }
            _ => self.local_of(runtime),
        }
    }

    /// Whether another thread goes on as the worker that this one was.
    pub(crate) fn is_displaced(&self) -> bool {
        matches!(self.role.get(), Role::Displaced(_))
    }
}

crate::sync::thread_local! {
    static PLACE: Cell<*const Place<'static>> = const { Cell::new(std::ptr::null()) };
}

/// A place that is entered; dropping it leaves.
pub(crate) struct Entered<'a> {
    outer: *const Place<'static>,
    _place: PhantomData<&'a ()>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let _ = PLACE.try_with(|place| place.set(self.outer));
    }
}

/// Calls `look` with the thread's place, if it has one.
pub(crate) fn with<R>(look: impl FnOnce(Option<&Place<'_>>) -> R) -> R {
    let place = PLACE.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: (P1) the place is alive until its guard is dropped, which is after this call.
    look(unsafe { place.as_ref() })
}

/// Calls `look` with the places of this thread, the innermost first.
pub(crate) fn outward<R>(look: impl FnOnce(&mut dyn Iterator<Item = &Place<'_>>) -> R) -> R {
    let place = PLACE.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: (P1) the place is alive until its guard is dropped, which is after this call.
    let innermost = unsafe { place.as_ref() };
    look(&mut std::iter::successors(innermost, |place| {
        // SAFETY: (P1) what an entered place was entered from is alive.
        unsafe { place.outer.get().as_ref() }
    }))
}

/// From now on a worker that forks is none in the child: what it pushes there is from outside, and its loop ends.
pub(super) fn watch_forks() {
    extern "C" fn leave_workers() {
        outward(|places| {
            for place in places {
                if let Role::Worker(local) = place.role.get() {
                    place.role.set(Role::Displaced(local));
                }
            }
        });
    }
    static LEAVE_WORKERS: InChildren = InChildren::new(leave_workers);
    LEAVE_WORKERS.register();
}

/// Whether this is a thread of `runtime`'s own, or one that shuts it down, perhaps with other
/// runtimes nested in that. One that only waits in `block_on` is not; one that has left its place, and
/// drops its thread-locals, is.
pub(crate) fn is_inside(runtime: &Arc<Inner>) -> bool {
    let is_own = || runtime.blocking.crew.is_here() && !mutant("a_thread_is_inside_by_its_place");
    is_own()
        || outward(|places| {
            places
                .filter(|place| !matches!(place.role.get(), Role::Outside))
                .any(|place| Arc::ptr_eq(place.runtime, runtime))
        })
}

/// Whether this thread is counted as one that runs something of `runtime`, which is about to wait
/// in `block_on`: the count is not held meanwhile.
pub(crate) fn lends_its_count(runtime: &Arc<Inner>) -> bool {
    outward(|places| {
        let runs = |place: &&Place<'_>| match place.role.get() {
            Role::Outside | Role::Displaced(_) => true,
            Role::Pinned(local) => local.is_detached(),
            // Otherwise it is displaced by now.
            Role::Worker(_) => place.runtime.simulation().is_some(),
            Role::Blocking | Role::Closing => false,
        };
        places
            .filter(runs)
            .any(|place| Arc::ptr_eq(place.runtime, runtime))
    })
}

/// The current runtime: that of the place or, where there is none, that of the thread's stage.
pub(crate) fn runtime() -> Option<Arc<Inner>> {
    let runtime = with(|place| place.map(|place| place.runtime.clone()));
    let runtime = runtime.or_else(|| Some(stage()?.runtime().clone()));
    runtime.filter(|runtime| !runtime.is_hidden())
}

/// The simulation that this thread drives, if it drives one.
pub(crate) fn simulated<R>(f: impl FnOnce(&Simulation, &Inner) -> R) -> Option<R> {
    with(|place| {
        let runtime = place?.runtime;
        Some(f(runtime.simulation()?, runtime))
    })
}

/// Whether this thread is a worker for which nothing waits but what it runs.
pub(crate) fn is_alone() -> bool {
    with(|place| match place?.role.get() {
        Role::Worker(local) => Some(local.is_alone()),
        _ => None,
    })
    .unwrap_or(false)
}

crate::sync::thread_local! {
    static STAGE: RefCell<Option<Rc<PinnedLocal>>> = const { RefCell::new(None) };
}

/// What this thread lets run now and then, if it is a stage.
pub(crate) fn stage() -> Option<Rc<PinnedLocal>> {
    STAGE
        .try_with(|stage| stage.borrow().clone())
        .ok()
        .flatten()
}

/// The same, if it is one of `runtime`'s.
pub(crate) fn stage_of(runtime: &Arc<Inner>) -> Option<Rc<PinnedLocal>> {
    stage().filter(|stage| Arc::ptr_eq(stage.runtime(), runtime))
}

pub(crate) fn set_stage(stage: Option<Rc<PinnedLocal>>) {
    let before = STAGE.try_with(|current| current.replace(stage));
    drop(before);
}

/// Why this thread can't be a stage, if it can't.
pub(crate) fn has_no_room() -> Option<&'static str> {
    if stage().is_some() {
        return Some("a thread that has one already");
    }
    let own = outward(|places| {
        let here = places.filter(|place| place.runtime.is_here());
        let mut own = here.filter(|place| !matches!(place.role.get(), Role::Outside));
        own.next().is_some()
    });
    own.then_some("a thread that a runtime has started for its own tasks or jobs")
}

/// The timers of this place for deadlines of that kind: time-outs are with those of the runtime itself also on
/// a pinned thread.
pub(crate) fn clock(kind: Kind) -> Option<Arc<dyn Clock>> {
    with(|place| {
        let place = place?;
        Some(match place.role.get() {
            Role::Pinned(local) if kind == Kind::Event => local.clock(),
            // A stage of none has the only timers that there are.
            _ if place.runtime.is_hidden() => stage()?.clock(),
            _ => place.runtime.clone(),
        })
    })
}
