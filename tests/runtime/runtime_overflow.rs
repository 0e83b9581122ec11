//! More runnable tasks than a worker's ring holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use greenroom::{Runtime, spawn, yield_now};

use crate::support::{WATCH, drive, within};

#[test]
fn an_injected_task_does_not_wait_behind_overflowed_tasks() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let turns = Arc::new(AtomicUsize::new(0));
        let (queued, is_queued) = channel();
        let (go, may_go) = channel();
        let counter = turns.clone();
        let filling = runtime.spawn(async move {
            for _ in 0..2000 {
                let turns = counter.clone();
                spawn(async move {
                    turns.fetch_add(1, Ordering::SeqCst);
                })
                .detach();
            }
            queued.send(()).unwrap();
            // The task blocks the worker until another task was injected.
            may_go.recv().unwrap();
        });
        is_queued.recv().unwrap();
        let outside = runtime.spawn(async move { turns.load(Ordering::SeqCst) });
        go.send(()).unwrap();
        let before = drive(outside);
        assert!(
            before <= 2,
            "{before} overflowed tasks had their turn first"
        );
        drive(filling);
    });
}

#[test]
fn overflowed_tasks_run_beside_a_ring_that_is_never_empty() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let done = drive(runtime.spawn(async {
            let tasks: Vec<_> = (0..1000_usize)
                .map(|n| {
                    spawn(async move {
                        for _ in 0..20 {
                            yield_now().await;
                        }
                        n
                    })
                })
                .collect();
            let mut sum = 0;
            for task in tasks {
                sum += task.await;
            }
            sum
        }));
        assert_eq!(done, 999 * 1000 / 2);
    });
}
