//! nexosim's executor, as far as it is usable without a simulation.
//!
//! Tasks are spawned from outside and cannot be awaited. The executor stops as soon as all of them
//! wait.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures_lite::future::yield_now;
use nexosim::dev_hooks::Executor;

use super::WORKERS;
use crate::cases::Case;
use crate::figures::{self, Figure, check, nanoseconds};
use crate::process::LiveTasks;
use crate::sizes::{PENDING, YIELDS};

static DONE: AtomicU64 = AtomicU64::new(0);

/// Runs one case.
pub fn run(case: Case) -> Option<Vec<Figure>> {
    match case {
        Case::TaskYield => Some(task_yield()),
        Case::TaskBytes => Some(task_bytes()),
        _ => None,
    }
}

fn task_yield() -> Vec<Figure> {
    let mut executor = Executor::new(WORKERS);
    executor.spawn_and_forget(async {
        for _ in 0..YIELDS {
            yield_now().await;
            DONE.fetch_add(1, Ordering::Relaxed);
        }
    });
    let begin = Instant::now();
    executor.run();
    let figure = nanoseconds(figures::YIELD, YIELDS, begin);
    check("yields", DONE.load(Ordering::Relaxed), YIELDS);
    vec![figure]
}

fn task_bytes() -> Vec<Figure> {
    let mut executor = Executor::new(WORKERS);
    let live = LiveTasks::now();
    for _ in 0..PENDING {
        executor.spawn_and_forget(async {
            DONE.fetch_add(1, Ordering::Relaxed);
            pending::<()>().await;
        });
    }
    executor.run();
    let figure = live.growth(PENDING);
    check("tasks that wait", DONE.load(Ordering::Relaxed), PENDING);
    vec![figure]
}
