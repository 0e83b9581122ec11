//! Model 5: two workers and one actor, the real cell and the real mailbox.

use ::loom::explore;

use super::super::handle::Runtime;
use super::{Gate, asleep, end, join, model_from_explore};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicBool, Ordering};

/// What an actor keeps from one message to the next.
struct State {
    /// Fails the model if a handler does not see what the one before did.
    handled: UnsafeCell<usize>,
    busy: AtomicBool,
}

impl State {
    /// A handler, which must be alone; says how many messages that makes.
    fn handle(&self) -> usize {
        // Relaxed: it is to be found wrong, and must order nothing.
        let busy = self.busy.swap(true, Ordering::Relaxed);
        assert!(!busy, "two handlers at once");
        // SAFETY: only the handler that is under way comes here.
        let handled = self.handled.with_mut(|handled| unsafe {
            *handled += 1;
            *handled
        });
        self.busy.store(false, Ordering::Relaxed);
        handled
    }
}

/// Whichever workers run it for two messages: one after the other, and the second
/// one sees what the first one did.
#[test]
fn model_05_two_workers_run_an_actor_one_after_the_other() {
    model_from_explore(|| {
        let (inner, workers) = asleep(2);
        let runtime = Runtime::not_counting(inner.clone());
        let (own, begun) = (inner.clone(), Gate::new());
        let here = begun.clone();
        let actor = crate::actor(move |mut cx: crate::Context<()>| async move {
            let state = State {
                handled: UnsafeCell::new(0),
                busy: AtomicBool::new(false),
            };
            here.open();
            while let Some(()) = cx.recv().await {
                if state.handle() == 2 {
                    end(&own);
                }
            }
        });
        let actor = actor.on(&runtime).spawn();
        begun.wait();
        explore();
        actor.tell(()).expect("it is open");
        actor.tell(()).expect("it is open");
        join(workers);
        inner.shutdown.settle();
        inner.cancel_all();
        inner.drain();
        drop(actor);
    });
}
