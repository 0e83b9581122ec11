//! What only a pinned thread itself can reach, and how a simulation's thread is one after the other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use slab::Slab;

use super::seat::{Kind, Seat};
use crate::contain::contain;
use crate::runtime::Inner;
use crate::runtime::current::{Place, Role};
use crate::task::{Runnable, TaskKey};
use crate::timers::Clock;

/// What only the thread itself can reach.
pub(crate) struct Local {
    pub(super) seat: Arc<Seat>,
    /// What the thread has taken out of the seat's inbox, to be run next.
    pub(super) hand: RefCell<VecDeque<Runnable>>,
    hosted: RefCell<Slab<Rc<dyn Any>>>,
    /// What is on a stage is dropped, or was: that may drop the stage itself.
    pub(super) is_ending: Cell<bool>,
}

std::thread_local! {
    /// What is local to the pinned threads of the simulations that this thread drives, by their
    /// addresses, which they keep; only of those that host something, or are visited.
    static LOCALS: RefCell<HashMap<usize, Rc<Local>>> = RefCell::new(HashMap::new());
}

impl Local {
    pub(super) fn new(seat: &Arc<Seat>) -> Self {
        Local {
            seat: seat.clone(),
            hand: RefCell::new(VecDeque::new()),
            hosted: RefCell::new(Slab::new()),
            is_ending: Cell::new(false),
        }
    }

    pub(crate) fn runtime(&self) -> &Arc<Inner> {
        self.seat.runtime()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match self.runtime().simulation() {
            None => self.seat.clone(),
            Some(_) => self.runtime().clone(),
        }
    }

    /// Whether nothing but one actor lives here, so that nobody is held up if that waits.
    pub(crate) fn is_detached(&self) -> bool {
        matches!(self.seat.kind, Kind::Detached)
    }

    /// Whether a foreign loop drives the thread, which asks for its next deadline.
    pub(crate) fn is_stage(&self) -> bool {
        matches!(self.seat.kind, Kind::Stage(_))
    }

    pub(super) fn insert(&self, value: Rc<dyn Any>) -> usize {
        self.hosted.borrow_mut().insert(value)
    }

    pub(super) fn get(&self, key: usize) -> Option<Rc<dyn Any>> {
        self.hosted.borrow().get(key).cloned()
    }

    /// All that is hosted here, which is no more.
    pub(super) fn take_hosted(&self) -> Slab<Rc<dyn Any>> {
        std::mem::take(&mut *self.hosted.borrow_mut())
    }

    pub(super) fn remove(&self, key: usize) -> Option<Rc<dyn Any>> {
        self.hosted.borrow_mut().try_remove(key)
    }
}

impl Seat {
    /// What tells it from all others that live.
    pub(crate) fn key(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }

    /// Makes this the seat of the calling thread, which is the simulation's, for one visit.
    pub(crate) fn visit<R>(self: &Arc<Self>, visit: impl FnOnce(&Place<'_>) -> R) -> R {
        let key = self.key();
        let new = || Rc::new(Local::new(self));
        // At the end of the thread there may be none any more, and nothing that was there.
        let local = LOCALS.try_with(|locals| {
            let mut locals = locals.borrow_mut();
            locals.entry(key).or_insert_with(new).clone()
        });
        let local = local.unwrap_or_else(|_| new());
        let place = Place::new(self.runtime(), Role::Pinned(&local));
        let entered = place.enter();
        let result = visit(&place);
        drop(entered);
        if local.hosted.borrow().is_empty() {
            let gone = LOCALS.try_with(|locals| locals.borrow_mut().remove(&key));
            drop(gone);
        }
        result
    }

    /// Cancels all that lives here but what is exempt, and drops what is hosted; says how much is left.
    pub(super) fn clear_simulated(self: &Arc<Self>, exempt: &[TaskKey]) -> usize {
        self.registry.cancel_cells(exempt);
        self.registry.wake_tasks(exempt);
        self.visit(|place| {
            if let Role::Pinned(local) = place.role.get() {
                for (_, value) in local.take_hosted() {
                    contain(|| drop(value));
                }
            }
        });
        self.registry.others(exempt)
    }
}
