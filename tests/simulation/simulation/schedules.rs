//! The order: equal for equal seeds, any order for some seed, and fair in the long run.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use greenroom::policy::{Duties, Policy, Runnable, Simulated};
use greenroom::{Runtime, spawn, yield_now};

use super::{SEEDS, run_of};

/// Returns the order in which three tasks have their turns, `turns` turns each.
fn order(simulated: Simulated, turns: usize) -> String {
    let run = simulated.try_run(async move {
        let order = Arc::new(Mutex::new(String::new()));
        let tasks: Vec<_> = ['a', 'b', 'c']
            .into_iter()
            .map(|name| {
                let order = order.clone();
                spawn(async move {
                    for turn in 0..turns {
                        if turn > 0 {
                            yield_now().await;
                        }
                        order.lock().unwrap().push(name);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        order.lock().unwrap().clone()
    });
    run.unwrap().value
}

fn counts(make: impl Fn(u64) -> Simulated, turns: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for seed in 0..600 {
        *counts.entry(order(make(seed), turns)).or_default() += 1;
    }
    counts
}

#[test]
fn every_order_is_about_equally_frequent() {
    for make in [
        |seed| Simulated::new(seed).random(),
        |seed| Simulated::new(seed).priorities(0, 100),
        Simulated::new as fn(u64) -> Simulated,
    ] {
        let counts = counts(make, 1);
        assert_eq!(counts.len(), 6, "{counts:?}");
        // 100 of each order are expected.
        assert!(
            counts.values().all(|count| (60..=140).contains(count)),
            "{counts:?}"
        );
    }
}

#[test]
fn equal_seeds_give_equal_runs_and_other_seeds_other_runs() {
    let mut fingerprints = HashSet::new();
    for seed in 0..100 {
        let orders: HashSet<_> = (0..3).map(|_| order(Simulated::new(seed), 5)).collect();
        assert_eq!(orders.len(), 1);
        let program = || async {
            let tasks: Vec<_> = (0..5).map(|_| spawn(yield_now())).collect();
            for task in tasks {
                task.await;
            }
        };
        let runs: HashSet<_> = (0..3)
            .map(|_| run_of(seed, program()).fingerprint)
            .collect();
        assert_eq!(runs.len(), 1);
        fingerprints.extend(runs);
    }
    assert!(fingerprints.len() > 50, "{}", fingerprints.len());
}

#[test]
fn in_the_long_run_no_task_starves() {
    for seed in SEEDS {
        let run = Simulated::new(seed)
            .priorities(3, 4096)
            .steps(50_000)
            .try_run(async {
                let stop = Arc::new(Mutex::new(false));
                let stopped = stop.clone();
                let spins = spawn(async move {
                    // Without yielding, which lowers a task's priority.
                    while !*stopped.lock().unwrap() {
                        spawn(async {}).await;
                    }
                });
                let stops = spawn(async move { *stop.lock().unwrap() = true });
                stops.await;
                spins.await;
            });
        run.unwrap();
    }
}

/// A policy that forwards to a simulation.
struct Passes(Simulated);

impl Policy for Passes {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.central_enqueue(runnable);
    }

    fn dequeue(&self, worker: &(), duties: &Duties<'_>) -> Option<Runnable> {
        self.0.dequeue(worker, duties)
    }
}

#[test]
fn inside_another_policy_a_simulation_is_a_random_order_on_threads() {
    let policy = Passes(Simulated::new(1));
    let runtime = Runtime::builder()
        .workers(2)
        .policy(policy)
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..100).map(|n| spawn(async move { n })).collect();
        for (n, task) in (0..100).zip(tasks) {
            assert_eq!(task.await, n);
        }
    });
}
