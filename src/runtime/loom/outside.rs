//! `model_10` and `model_11`: an entry that is pushed from outside reaches a worker about to sleep.

use super::{Gate, end, join, push, queues, runtime, start};

/// Checks that an entry that arrives while the only worker parks is run.
#[test]
fn model_10_a_push_from_outside_is_not_missed_by_a_worker_that_parks() {
    ::loom::model(|| {
        let inner = runtime(1);
        let workers = start(&inner);
        let ending = inner.clone();
        let fate = push(&inner, move || end(&ending));
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}

/// Checks the same for two entries, the second of which arrives at any moment of the first one.
#[test]
fn model_10_two_pushes_from_outside_are_not_missed() {
    ::loom::model(|| {
        let inner = runtime(1);
        let workers = start(&inner);
        let first = push(&inner, || ());
        let ending = inner.clone();
        let second = push(&inner, move || end(&ending));
        join(workers);
        assert_eq!((first.of(), second.of()), ((1, 0), (1, 0)), "run once each");
    });
}

/// Checks that an entry reaches the second of two workers while the first is blocked until then.
/// There is one thief, so there is at most one searcher, and none when all workers sleep.
#[test]
fn model_11_a_push_from_outside_finds_the_worker_that_is_not_blocked() {
    ::loom::model(|| {
        let inner = runtime(2);
        let workers = start(&inner);
        let gate = Gate::new();
        let (ending, waited) = (inner.clone(), gate.clone());
        let first = push(&inner, move || {
            waited.wait();
            end(&ending);
        });
        queues(&inner).sleep.audit();
        let second = push(&inner, move || gate.open());
        join(workers);
        assert_eq!((first.of(), second.of()), ((1, 0), (1, 0)), "run once each");
        queues(&inner).sleep.audit();
    });
}
