//! `model_49`: plain tasks, in the real table of live cells, while a shutdown cancels everything.

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};

use ::loom::explore;
use ::loom::thread::{spawn, yield_now};

use super::super::inner::Inner;
use super::{Gate, asleep, end, join, model_from_explore, runtime, start};
use crate::sync::Mutex;
use crate::task::{self, Task};

/// Does what a shutdown does with tasks when it waits for no thread.
fn end_without_waiting(inner: &Inner) {
    end(inner);
    inner.cancel_all();
    inner.complete_shutdown();
}

/// Checks that a task that waits forever is dropped. Its worker may return from the first poll
/// after the shutdown has stopped waiting for that worker.
#[test]
fn model_49_a_task_of_a_late_worker_is_dropped() {
    model_from_explore(|| {
        let inner = runtime(1);
        let workers = start(&inner);
        let (begun, gate) = (Gate::new(), Gate::new());
        let (begins, goes_on) = (begun.clone(), gate.clone());
        let task = task::spawn::<(), _, _>(inner.clone(), async move {
            begins.open();
            goes_on.wait();
            pending::<()>().await;
        });
        begun.wait();
        explore();
        gate.open();
        end_without_waiting(&inner);
        join(workers);
        assert!(task.is_finished(), "the task was not dropped");
    });
}

/// Checks that a task is dropped that is first run by a thread that takes no part in this runtime's
/// shutdown. A policy may have given it to another runtime.
#[test]
fn model_49_a_task_that_another_runtime_runs_is_dropped() {
    ::loom::model(|| {
        let inner = runtime(1);
        let task = task::spawn::<(), _, _>(inner.clone(), pending::<()>());
        let runnable = inner
            .scheduler
            .take_left(&*inner, true)
            .expect("it is scheduled");
        let runs = spawn(move || runnable.run());
        end_without_waiting(&inner);
        runs.join().unwrap();
        assert!(task.is_finished(), "the task was not dropped");
    });
}

/// Spawns a task that waits forever and leaves its waker in `left`.
fn waiting(inner: &Arc<Inner>, left: &Arc<Mutex<Option<Waker>>>) -> Task<()> {
    let leaves = left.clone();
    task::spawn::<(), _, _>(
        inner.clone(),
        poll_fn(move |cx| {
            *leaves.lock() = Some(cx.waker().clone());
            Poll::Pending
        }),
    )
}

/// Checks that a waiting task that is woken meanwhile is dropped, by the shutdown or by the waking
/// thread.
#[test]
fn model_49_a_task_that_is_woken_late_is_dropped() {
    ::loom::model(|| {
        let inner = runtime(1);
        let left = Arc::new(Mutex::new(None));
        let task = waiting(&inner, &left);
        let runnable = inner
            .scheduler
            .take_left(&*inner, true)
            .expect("it is scheduled");
        runnable.run();
        let waker = left.lock().take().expect("it was polled");
        let wakes = spawn(move || waker.wake());
        end_without_waiting(&inner);
        wakes.join().unwrap();
        assert!(task.is_finished(), "the task was not dropped");
    });
}

/// Checks the same with a worker, which may run the task once more instead.
#[test]
fn model_49_a_task_that_is_run_late_is_dropped() {
    model_from_explore(|| {
        let (inner, workers) = asleep(1);
        let left = Arc::new(Mutex::new(None));
        let task = waiting(&inner, &left);
        let waker = loop {
            if let Some(waker) = left.lock().take() {
                break waker;
            }
            yield_now();
        };
        explore();
        waker.wake();
        end_without_waiting(&inner);
        join(workers);
        assert!(task.is_finished(), "the task was not dropped");
    });
}
