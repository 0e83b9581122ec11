//! A task that yields lets others run. A bug that needs such a task to be fast is found
//! nevertheless.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom::policy::Simulated;
use greenroom::sim::RunProblem;
use greenroom::{Address, Context, spawn, yield_now};

use crate::hunt::{Version, hunts};

/// The number of actors that a number passes through.
const STATIONS: usize = 4;
const LAST: u32 = 9;

async fn station(mut cx: Context<u32>, next: Address<u32>) {
    while let Some(number) = cx.recv().await {
        let _ = next.tell(number);
    }
}

/// Collects the numbers until the last one arrives.
async fn terminus(mut cx: Context<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(number) = cx.recv().await {
        all.push(number);
        if number == LAST {
            break;
        }
    }
    all
}

/// Runs the program. The last number overtakes the first only if its sender is always chosen to
/// run.
async fn railway(version: Version) {
    let terminus = spawn!(terminus(_));
    let mut first = terminus.address();
    for _ in 0..STATIONS {
        first = spawn!(station(_, first)).address();
    }
    let short = match version {
        Version::Buggy => terminus.address(),
        Version::Mended => first.clone(),
    };
    let sender = greenroom::spawn(async move {
        first.tell(1).unwrap();
        for _ in 0..8 * STATIONS {
            yield_now().await;
        }
        short.tell(LAST).unwrap();
    });
    sender.await;
    let all = terminus.join().await.unwrap();
    assert!(all == [1, LAST], "zoo: received {all:?}");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    *problem == RunProblem::Panicked("main panicked: zoo: received [9]".to_owned())
}

hunts!(railway, is_the_bug);

/// Yields until the flag is set.
async fn spin(flag: Arc<AtomicBool>) {
    while !flag.load(Ordering::Relaxed) {
        yield_now().await;
    }
}

/// Runs a future that waits for a flag, which a task sets, under priorities that never end.
fn with_flag<F: Future>(make: fn(Arc<AtomicBool>) -> F) {
    for seed in 0..50 {
        let flag = Arc::new(AtomicBool::new(false));
        let sets = flag.clone();
        let waits = make(flag);
        let run = Simulated::new(seed).priorities(0, u64::MAX).try_run(async {
            greenroom::spawn(async move { sets.store(true, Ordering::Relaxed) }).detach();
            waits.await
        });
        if let Err(failure) = run {
            panic!("{failure}");
        }
    }
}

#[test]
fn spinning_task_lets_other_tasks_run_whatever_its_priority() {
    with_flag(|flag| async { greenroom::spawn(spin(flag)).await });
}

#[test]
fn spinning_block_on_future_lets_other_tasks_run() {
    with_flag(spin);
}
