//! `model_29`: a worker that is given to another thread, before it waits or after a panic.

use std::sync::Arc;

use ::loom::explore;
use ::loom::thread::{JoinHandle, spawn, yield_now};

use super::super::block_on::make_way;
use super::super::blocking::serve;
use super::super::inner::Inner;
use super::super::tests::arm;
use super::{Fate, Gate, OnDrop, end, join, model_from_explore, push, runtime, start};
use crate::sync::Mutex;

/// Returns a runtime with one worker, and an idle thread for blocking calls.
fn with_a_spare_thread() -> (Arc<Inner>, Vec<JoinHandle<()>>) {
    let inner = runtime(1);
    inner.shutdown.expect_workers(1);
    inner.blocking.expect_thread();
    let own = inner.clone();
    let spare = spawn(move || serve(&own, false));
    while inner.blocking.idle() == 0 {
        yield_now();
    }
    let mut threads = start(&inner);
    threads.push(spare);
    (inner, threads)
}

/// Ends the runtime and all its threads, without waiting for the workers first.
fn end_all(inner: &Arc<Inner>, threads: Vec<JoinHandle<()>>) {
    end(inner);
    drop(inner.blocking.close());
    inner.drain_until(None, |state| {
        state.all_out() && inner.blocking.threads() == 0
    });
    join(threads);
}

/// Checks that the thread that takes a worker over runs its queue, and whatever either
/// thread pushes meanwhile.
#[test]
fn model_29_a_worker_has_one_thread_at_a_time() {
    model_from_explore(|| {
        let (inner, threads) = with_a_spare_thread();
        let (own, done) = (inner.clone(), Gate::new());
        let ends = done.clone();
        let waits = push(&inner, move || {
            explore();
            let (before, inside, after) = (Gate::new(), Gate::new(), Gate::new());
            let (also, opens, within) = (own.clone(), before.clone(), inside.clone());
            push(&own, move || {
                push(&also, move || within.open());
                opens.open();
            });
            make_way().expect("a spare thread is idle");
            let opens = after.clone();
            push(&own, move || opens.open());
            [before, inside, after].iter().for_each(|gate| gate.wait());
            ends.open();
        });
        done.wait();
        end_all(&inner, threads);
        assert_eq!(waits.of(), (1, 0), "run once");
    });
}

/// Checks that a worker that is given away while the runtime ends is still taken and cleared.
#[test]
fn model_29_a_shutdown_clears_a_worker_that_is_being_given_away() {
    model_from_explore(|| {
        let (inner, threads) = with_a_spare_thread();
        let (own, begun) = (inner.clone(), Gate::new());
        let (opens, left) = (begun.clone(), Arc::new(Mutex::new(None::<Arc<Fate>>)));
        let queued = left.clone();
        push(&inner, move || {
            explore();
            *queued.lock() = Some(push(&own, || ()));
            opens.open();
            make_way().expect("a spare thread is idle");
        });
        begun.wait();
        end_all(&inner, threads);
        let fate = left.lock().take().expect("it was pushed");
        let (runs, drops) = fate.of();
        assert_eq!(runs + drops, 1, "run or dropped, once");
    });
}

/// Checks that a wait in a turn ends if it is for the drop of what the worker has queued, also when
/// the shutdown is over and the worker is not given away any more.
#[test]
fn model_29_a_wait_is_not_for_what_its_own_worker_has_queued() {
    model_from_explore(|| {
        let (inner, threads) = with_a_spare_thread();
        let (own, begun) = (inner.clone(), Gate::new());
        let begins = begun.clone();
        push(&inner, move || {
            explore();
            let done = Gate::new();
            let opens = OnDrop({
                let done = done.clone();
                move || done.open()
            });
            push(&own, move || drop(opens));
            begins.open();
            make_way().expect("a spare thread is idle");
            done.wait();
        });
        begun.wait();
        end_all(&inner, threads);
    });
}

/// Checks that the thread that takes over a worker whose loop panics, for example while it
/// searches, is woken for what is pushed meanwhile.
#[test]
fn model_29_a_worker_whose_loop_panics_is_taken_over() {
    model_from_explore(|| {
        let (inner, threads) = with_a_spare_thread();
        let begun = Gate::new();
        let opens = begun.clone();
        push(&inner, move || {
            explore();
            // At the top of the loop is the first look, in a search the second.
            arm(2);
            opens.open();
        });
        begun.wait();
        let done = Gate::new();
        let opens = done.clone();
        let fate = push(&inner, move || opens.open());
        done.wait();
        end_all(&inner, threads);
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}
