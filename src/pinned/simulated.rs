//! How the thread of a simulation acts as each pinned thread in turn.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::local::PinnedLocal;
use super::thread::PinnedThread;
use crate::contain::contain;
use crate::runtime::RunsOn;
use crate::runtime::context::{Role, ThreadContext};
use crate::task::{Runnable, TaskKey};

std::thread_local! {
    /// The locals of the pinned threads of the simulations that this thread drives. Only those that
    /// host something, or are being visited, are here. The key is the address of the
    /// `PinnedThread`, which its local keeps alive.
    static LOCALS: RefCell<HashMap<usize, Rc<PinnedLocal>>> = RefCell::new(HashMap::new());
}

impl PinnedThread {
    /// Makes the calling thread, which drives the simulation, act as this pinned thread during
    /// `visit`.
    fn visit<R>(self: &Arc<Self>, visit: impl FnOnce(&PinnedLocal, &ThreadContext<'_>) -> R) -> R {
        let key = Arc::as_ptr(self).addr();
        let new = || Rc::new(PinnedLocal::new(self));
        // While the thread ends, the thread-local may be destroyed, and all values with it.
        let local = LOCALS.try_with(|locals| {
            let mut locals = locals.borrow_mut();
            locals.entry(key).or_insert_with(new).clone()
        });
        let local = local.unwrap_or_else(|_| new());
        let context = ThreadContext::new(self.runtime(), Role::Pinned(&*local));
        let entered = context.enter();
        let result = visit(&local, &context);
        drop(entered);
        if local.hosted.borrow().is_empty() {
            let gone = LOCALS.try_with(|locals| locals.borrow_mut().remove(&key));
            drop(gone);
        }
        result
    }

    pub(super) fn schedule_simulated(self: &Arc<Self>, runnable: Runnable, again: bool) {
        let runs_on = RunsOn::Host(self.clone());
        let engine = self.runtime().engine();
        if let Err(refused) = engine.take(self.runtime(), runnable, again, &runs_on) {
            // (PINNED-1) It was never polled.
            contain(|| drop(refused));
        }
    }

    pub(super) fn run_here(self: &Arc<Self>, runnable: Runnable) {
        self.visit(|_, context| self.turn(context, runnable));
    }

    pub(super) fn drop_here(self: &Arc<Self>, runnable: Runnable) {
        self.visit(|_, _| contain(|| drop(runnable)));
    }

    /// Cancels all that lives here except exempt tasks, drops all hosted values; returns how much
    /// is left.
    pub(super) fn clear_here(self: &Arc<Self>, exempt: &[TaskKey]) -> usize {
        self.live.cancel_cells(exempt);
        self.live.wake_tasks(exempt);
        self.visit(|local, _| {
            for (_, value) in local.take_hosted() {
                contain(|| drop(value));
            }
        });
        self.live.others(exempt)
    }
}
