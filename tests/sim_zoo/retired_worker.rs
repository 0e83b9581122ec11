//! A worker is stopped after its retirement was reported, so a job sent in between is accepted.
//!
//! A manager replies that a worker is retired and then stops it, in one turn. The client relies on
//! being refused.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn};

use crate::hunt::{Version, hunts_within_a_turn};

async fn worker(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

async fn manager(mut cx: Context<Reply<()>>, worker: Address<u32>, version: Version) {
    while let Some(reply) = cx.recv().await {
        match version {
            Version::Buggy => {
                reply.send(());
                worker.stop();
            }
            Version::Mended => {
                worker.stop();
                reply.send(());
            }
        }
    }
}

pub async fn pool(version: Version) {
    let worker = spawn!(worker(_), name = "worker");
    let to = worker.address();
    let manager = spawn!(manager(_, to, version), name = "manager");
    manager.ask(|reply| reply).await.unwrap();
    assert!(worker.tell(1).is_err(), "zoo: a retired worker takes a job");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    *problem == RunProblem::Panicked("main panicked: zoo: a retired worker takes a job".to_owned())
}

hunts_within_a_turn!(pool, is_the_bug);
