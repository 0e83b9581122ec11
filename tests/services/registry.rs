//! Names and groups: who has them, for how long, and who finds them.

mod groups;
mod load;
mod looks;
mod model;
mod names;
mod order;
mod replay;
mod runtimes;
mod waits;
mod watch;

use std::future::Future;

use fastrand::Rng;
use greenroom::policy::Simulated;
use greenroom::registry::Name;
use greenroom::{Context, Handle, Reply, Runtime, actor};

use crate::support::matrix::Named;
use crate::support::{Gate, Home, WATCH, within};

const STORE: Name<Job> = Name::new("store");

/// What the actors of these tests are told to do.
enum Job {
    /// Answer with the number of the incarnation.
    Number(Reply<u64>),
    /// Open the first gate, then wait for the other one.
    Hold(Gate, Gate),
    Return,
    Panic,
}

/// Does what it is told.
async fn work(mut cx: Context<Job>) {
    while let Some(job) = cx.recv().await {
        match job {
            Job::Number(reply) => reply.send(cx.incarnation_number()),
            Job::Hold(begun, end) => {
                begun.open();
                end.wait().await;
            }
            Job::Return => return,
            Job::Panic => panic!("bomb"),
        }
    }
}

fn worker(home: &Home) -> Handle<Job, ()> {
    home.spawn(actor(work))
}

/// An actor that receives any type of message and ends when it is stopped.
async fn idle<M>(mut cx: Context<M>) {
    while cx.recv().await.is_some() {}
}

/// Drives a future outside any runtime.
fn outside<F: Future>(future: F) -> F::Output {
    futures::executor::block_on(future)
}

/// Runs these steps in a simulation of each seed, with random numbers of that seed.
fn in_simulations<F: Future<Output = ()> + 'static>(seeds: u64, steps: fn(Rng) -> F) {
    within(WATCH, move || {
        for seed in 0..seeds {
            let _named = Named(format!("seed {seed}"));
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let runtime = runtime.build().unwrap();
            runtime.block_on(steps(Rng::with_seed(seed)));
        }
    });
}
