//! rayon, where a case makes sense for jobs that never wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

use super::WORKERS;
use crate::cases::Case;
use crate::figures::{self, Figure, check, nanoseconds};
use crate::sizes;
use crate::tasks::speed_up;

/// Runs one case.
pub fn run(case: Case) -> Option<Vec<Figure>> {
    match case {
        Case::TaskRecursive => Some(task_recursive(&pool())),
        Case::Steal => Some(steal(&pool())),
        _ => None,
    }
}

fn pool() -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(WORKERS).build();
    pool.expect("two threads can be started")
}

/// A scope waits for its jobs, as a task that awaits what it has spawned.
fn node<'a>(scope: &Scope<'a>, depth: u32, nodes: &'a AtomicU64) {
    nodes.fetch_add(1, Ordering::Relaxed);
    if depth > 0 {
        scope.spawn(move |scope| node(scope, depth - 1, nodes));
        scope.spawn(move |scope| node(scope, depth - 1, nodes));
    }
}

fn task_recursive(pool: &ThreadPool) -> Vec<Figure> {
    let nodes = AtomicU64::new(0);
    let figure = pool.install(|| {
        let begin = Instant::now();
        rayon::scope(|scope| node(scope, sizes::DEPTH, &nodes));
        nanoseconds(figures::TREE, sizes::TREE, begin)
    });
    check("tasks", nodes.into_inner(), sizes::TREE);
    vec![figure]
}

fn steal(pool: &ThreadPool) -> Vec<Figure> {
    let done = AtomicU64::new(0);
    let figure = pool.install(|| {
        let begin = Instant::now();
        rayon::scope(|scope| {
            for _ in 0..sizes::STOLEN {
                scope.spawn(|_| {
                    figures::work(sizes::STOLEN_WORK);
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        speed_up(begin)
    });
    check("tasks", done.into_inner(), sizes::STOLEN);
    vec![figure]
}
