//! Two timeouts of different length that fire at the same moment, one step apart.
//!
//! Each node waits for a message from a leader, the second a little longer than the first, and then
//! leads. Both lead if the first is so late that its message does not reach the second in time. The
//! message takes a step.

use std::time::Duration;

use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Reply, spawn, time};

use crate::hunt::{Version, hunts};
use crate::two_leaders::referee;

enum Node {
    Begin(Address<Node>),
    OtherLeads,
}

/// Forwards each message, so that a message takes a step.
async fn network(mut cx: Context<Address<Node>>) {
    while let Some(to) = cx.recv().await {
        // The receiver may have ended.
        let _ = to.tell(Node::OtherLeads);
    }
}

/// Returns whether this node leads.
async fn node(
    mut cx: Context<Node>,
    patience: Duration,
    (network, referee): (Address<Address<Node>>, Address<Reply<bool>>),
    version: Version,
) -> bool {
    let Some(Node::Begin(other)) = cx.recv().await else {
        return false;
    };
    if let Ok(Some(Node::OtherLeads)) = time::timeout(patience, cx.recv()).await {
        return false;
    }
    let leads = version == Version::Buggy || referee.ask(|reply| reply).await.unwrap();
    if leads {
        network.tell(other).unwrap();
    }
    leads
}

pub async fn cluster(version: Version) {
    let referee = spawn!(referee(_), name = "referee");
    let network = spawn!(network(_), name = "network");
    let nodes = [("one", 10_000), ("two", 10_700)].map(|(name, micros)| {
        let (others, patience) = (
            (network.address(), referee.address()),
            Duration::from_micros(micros),
        );
        spawn!(node(_, patience, others, version), name = name)
    });
    let [one, two] = nodes;
    one.tell(Node::Begin(two.address())).unwrap();
    two.tell(Node::Begin(one.address())).unwrap();
    let leaders = [one.join().await.unwrap(), two.join().await.unwrap()];
    assert!(leaders != [true, true], "zoo: both lead");
}

fn is_the_bug(problem: &RunProblem) -> bool {
    *problem == RunProblem::Panicked("main panicked: zoo: both lead".to_owned())
}

hunts!(cluster, is_the_bug);
