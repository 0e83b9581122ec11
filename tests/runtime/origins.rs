//! Tests of the promises of the systems that greenroom comes from. `docs/origins.md` lists the
//! promises, each with its tests.

mod caf;
mod layer_cake;
mod sophie_actors;
mod sophie_rest;
mod sophie_workers;

use std::future::Future;
use std::sync::{Arc, Barrier};

use greenroom::{Runtime, Task};

use crate::support::drive;

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

/// Runs a task on each of `workers` workers, all at the same time. Each task gets its number and a
/// barrier; no task ends its first turn before all have begun theirs.
fn on_each_worker<F>(
    runtime: &Runtime,
    workers: usize,
    task: impl Fn(usize, Arc<Barrier>) -> F,
) -> Vec<Task<F::Output>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let meeting = Arc::new(Barrier::new(workers));
    let spawn = |number| {
        let (task, meeting) = (task(number, meeting.clone()), meeting.clone());
        runtime.spawn(async move {
            meeting.wait();
            task.await
        })
    };
    (0..workers).map(spawn).collect()
}

fn join<T>(tasks: Vec<Task<T>>) -> Vec<T> {
    tasks.into_iter().map(drive).collect()
}

/// Searches for each test that a list of promises names.
#[test]
fn every_test_named_in_a_list_of_promises_exists() {
    assert!(tests_named_in("docs/origins.md") > 20);
    assert!(tests_named_in("docs/guarantees.md") > 40);
}

/// Returns the number of tests that a document names, and panics if one of them does not exist.
fn tests_named_in(paper: &str) -> usize {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(root.join(paper)).unwrap();
    let code = list.split('`').skip(1).step_by(2);
    let mut named = 0;
    for (file, test) in code.filter_map(|code| code.split_once(".rs::")) {
        let file = root.join(format!("{file}.rs"));
        let source = std::fs::read_to_string(&file);
        let source = source.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        // Searches for the last part only: a scenario in every home makes a module of that name.
        let found = [format!("fn {test}("), format!("    {test},")];
        assert!(
            found.iter().any(|text| source.contains(text)),
            "{paper} names {test}, which is not in {}",
            file.display()
        );
        named += 1;
    }
    named
}
