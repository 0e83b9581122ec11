//! Two replicas that receive the same messages from two writers in different orders.
//!
//! Each writer sends to both replicas in one turn. As long as turns are not interrupted, both
//! replicas see the same order.

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, spawn};

use crate::hunt::{Version, hunts_within_a_turn};

/// Keeps the last value that was written.
async fn replica(mut cx: Context<u32>) -> u32 {
    let mut value = 0;
    while let Some(written) = cx.recv().await {
        value = written;
    }
    value
}

/// Forwards each value to both replicas, so that there is one order.
async fn sequencer(mut cx: Context<u32>, replicas: [Address<u32>; 2]) {
    while let Some(written) = cx.recv().await {
        for replica in &replicas {
            replica.tell(written).unwrap();
        }
    }
}

pub async fn store(version: Version) {
    let replicas = ["left", "right"].map(|name| spawn!(replica(_), name = name));
    let both = || replicas.each_ref().map(|replica| replica.address());
    let sequencer = spawn!(sequencer(_, both()), name = "sequencer");
    let writers = [1, 2].map(|value| {
        let to = match version {
            Version::Buggy => both().to_vec(),
            Version::Mended => vec![sequencer.address()],
        };
        greenroom::spawn(async move { to.iter().for_each(|to| to.tell(value).unwrap()) })
    });
    for writer in writers {
        writer.await;
    }
    sequencer.join().await.unwrap();
    let [left, right] = replicas;
    let values = [left.join().await.unwrap(), right.join().await.unwrap()];
    assert!(values[0] == values[1], "zoo: the replicas differ");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    *problem == RunProblem::Panicked("main panicked: zoo: the replicas differ".to_owned())
}

hunts_within_a_turn!(store, is_the_bug);
