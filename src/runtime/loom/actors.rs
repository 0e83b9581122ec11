//! `model_05`: two workers and one actor, with the real cell and the real mailbox.

use ::loom::explore;

use super::super::handle::Runtime;
use super::{Gate, asleep, end, join, model_from_explore};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The state that an actor keeps from one message to the next.
struct State {
    /// Fails the model if a handler does not see the writes of the handler before it.
    handled: UnsafeCell<usize>,
    busy: AtomicBool,
}

impl State {
    /// Handles a message, which only one thread may do at a time. Returns the number of messages so
    /// far.
    fn handle(&self) -> usize {
        // Relaxed: the flag detects an overlap, and must not order anything itself.
        let busy = self.busy.swap(true, Ordering::Relaxed);
        assert!(!busy, "two handlers at once");
        // SAFETY: only the running handler gets here.
        let handled = self.handled.with_mut(|handled| unsafe {
            *handled += 1;
            *handled
        });
        self.busy.store(false, Ordering::Relaxed);
        handled
    }
}

/// Checks that two workers run an actor one after the other for two messages, and that the second
/// handler sees the writes of the first.
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
        inner.shutdown.complete();
        inner.cancel_all();
        inner.drain();
        drop(actor);
    });
}
