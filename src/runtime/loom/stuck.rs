//! Model 12: a handler that pushes something and then blocks its worker until that has run.
//!
//! The other worker must get it, wherever it waits: in the ring, or in the slot, where one of the
//! sleepers finds it by the time.

use super::super::sleep::WATCH;
use super::{Gate, end, join, push, queues, runtime, start};

/// An entry in the ring of a worker that user code blocks is taken by the other one.
#[test]
fn model_12_what_a_blocked_handler_pushed_to_the_ring_is_run_by_another_worker() {
    ::loom::model(|| {
        let inner = runtime(2);
        let workers = start(&inner);
        let (own, gate) = (inner.clone(), Gate::new());
        let fate = push(&inner, move || {
            let opener = gate.clone();
            push(&own, move || opener.open());
            // Displaces the first one from the slot.
            push(&own, || ());
            gate.wait();
            end(&own);
        });
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
        queues(&inner).sleep.audit();
    });
}

/// An entry in the slot of a worker that user code blocks is taken by the other one after at most
/// two looks, and one more if a turn began between them.
#[test]
fn model_12_what_a_blocked_handler_left_in_its_slot_is_run_by_the_watcher() {
    ::loom::model(|| {
        let inner = runtime(2);
        let workers = start(&inner);
        let (own, gate) = (inner.clone(), Gate::new());
        let fate = push(&inner, move || {
            let opener = gate.clone();
            push(&own, move || opener.open());
            queues(&own).sleep.let_time_pass(3, WATCH);
            gate.wait();
            end(&own);
        });
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
        queues(&inner).sleep.audit();
    });
}
