//! What only a pinned thread itself can reach.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use slab::Slab;

use super::thread::PinnedThread;
use crate::runtime::context::{self, Role, ThreadContext};
use crate::task::Runnable;

/// What only the thread itself can reach.
pub(crate) struct PinnedLocal {
    pub(super) thread: Arc<PinnedThread>,
    /// What the thread has taken out of its inbox, to be run next.
    pub(super) hand: RefCell<VecDeque<Runnable>>,
    pub(super) hosted: RefCell<Slab<Rc<dyn Any>>>,
    /// What is on a stage is dropped, or was: that may drop the stage itself.
    pub(super) is_ending: Cell<bool>,
}

impl PinnedLocal {
    pub(super) fn new(thread: &Arc<PinnedThread>) -> Self {
        PinnedLocal {
            thread: thread.clone(),
            hand: RefCell::new(VecDeque::new()),
            hosted: RefCell::new(Slab::new()),
            is_ending: Cell::new(false),
        }
    }

    /// Returns that of the thread whose context this is, if it is a pinned one.
    pub(super) fn of<'a>(context: &ThreadContext<'a>) -> Option<&'a PinnedLocal> {
        match context.role.get() {
            Role::Pinned(host) => (host as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// Calls `job` with that of this thread, which is a pinned one.
    pub(super) fn with<R>(job: impl FnOnce(&PinnedLocal) -> R) -> R {
        context::with(|context| match context.and_then(PinnedLocal::of) {
            Some(local) => job(local),
            None => unreachable!("jobs of a pinned thread run on it"),
        })
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
