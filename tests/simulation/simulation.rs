//! The simulation: one thread, an order drawn from a seed, virtual time, and the kinds of failure.
//!
//! Its promises about actors and policies are tested with those; the bugs that it finds are in
//! `tests/sim_zoo`.

mod ending;
mod exploring;
mod failures;
mod hangs;
mod panics;
mod probe;
mod schedules;
mod threads;
mod timing;
mod turns;
mod views;

use std::future::Future;

use greenroom::policy::Simulated;
use greenroom::sim::{Failure, Run, RunProblem};
use greenroom::{Address, Context, Reply};

/// Enough seeds that both kinds of schedule occur several times.
const SEEDS: std::ops::Range<u64> = 0..40;

/// Returns the run with this seed, which must succeed.
#[track_caller]
fn run_of<F: Future>(seed: u64, future: F) -> Run<F::Output> {
    match Simulated::new(seed).try_run(future) {
        Ok(run) => run,
        Err(failure) => panic!("{failure}"),
    }
}

/// Returns the failure of the runs of this future, which must be the same with every seed.
#[track_caller]
fn failure_of<F: Future>(make: impl Fn() -> F) -> Failure {
    crate::support::keep_bombs_quiet();
    let failures = SEEDS.map(|seed| Simulated::new(seed).try_run(make()).err().unwrap());
    let mut failures: Vec<Failure> = failures.collect();
    let last = failures.pop().unwrap();
    for failure in failures {
        assert_eq!(failure.problem(), last.problem());
    }
    last
}

#[track_caller]
fn deadlock_of<F: Future>(make: impl Fn() -> F) -> String {
    match failure_of(make).problem() {
        RunProblem::Deadlock(who) => who.clone(),
        other => panic!("{other}"),
    }
}

/// Receives and drops messages.
async fn reads(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

/// Keeps its context, and never receives a message.
async fn deaf(cx: Context<u32>) {
    std::future::pending::<()>().await;
    drop(cx);
}

enum Friend {
    Is(Address<Friend>),
    Ask(Reply<u32>),
}

/// Asks its friend before it answers.
async fn shy(mut cx: Context<Friend>) {
    let mut friend = None;
    while let Some(message) = cx.recv().await {
        match message {
            Friend::Is(address) => friend = Some(address),
            Friend::Ask(reply) => {
                let asked = friend.as_ref().unwrap().ask(Friend::Ask).await;
                if let Ok(answer) = asked {
                    reply.send(answer);
                }
            }
        }
    }
}
