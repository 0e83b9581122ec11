//! rayon, for the cases that suit jobs which never wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
        Case::Steal => Some(steal(&pool(), |_| sizes::STOLEN_WORK)),
        Case::Unequal => Some(steal(&pool(), sizes::unequal_work)),
        _ => None,
    }
}

fn pool() -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(WORKERS).build();
    pool.expect("two threads can be started")
}

/// Spawns two jobs in the scope. A scope waits for its jobs, like a task that awaits the tasks it
/// has spawned.
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

/// Runs the case `steal`; `work` returns the length of the job with an index.
fn steal(pool: &ThreadPool, work: fn(u64) -> Duration) -> Vec<Figure> {
    let done = AtomicU64::new(0);
    let figure = pool.install(|| {
        let begin = Instant::now();
        rayon::scope(|scope| {
            for n in 0..sizes::STOLEN {
                let (time, done) = (work(n), &done);
                scope.spawn(move |_| {
                    figures::work(time);
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        speed_up(begin, work)
    });
    check("tasks", done.into_inner(), sizes::STOLEN);
    vec![figure]
}
