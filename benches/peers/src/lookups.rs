//! The common parts of `lookup`: the names, and tasks that look them up.

use std::sync::Arc;
use std::time::Instant;

use crate::executors::Executor;
use crate::figures::{Figure, LOOKUP, LOOKUP_OF_ONE, check, nanoseconds};
use crate::sizes::{LOOKUPS, NAMED, WORKERS};

/// Returns the names of the actors.
pub fn names() -> Vec<String> {
    (0..NAMED).map(|n| format!("actor {n}")).collect()
}

/// Measures the figures of `lookup`: `finds` returns whether a name is found.
pub async fn lookups<E: Executor, N: Send + Sync + 'static>(
    names: Vec<N>,
    finds: fn(&N) -> bool,
) -> Vec<Figure> {
    let names = Arc::new(names);
    let mut figures = Vec::new();
    for (what, different) in [(LOOKUP, NAMED), (LOOKUP_OF_ONE, 1)] {
        let begin = Instant::now();
        let tasks = (0..WORKERS).map(|task| {
            let names = names.clone();
            E::spawn(async move {
                // The tasks begin at different names, and go on by a number without a factor in
                // common with that of the names.
                let places = (0..LOOKUPS as usize).map(|n| (n * 7 + task * NAMED / 2) % different);
                places.filter(|&place| finds(&names[place])).count() as u64
            })
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            check("found", task.await, LOOKUPS);
        }
        figures.push(nanoseconds(what, LOOKUPS, begin));
    }
    figures
}
