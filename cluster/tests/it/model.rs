//! Random histories in simulated nets, against what is promised of each address.
//!
//! Clients send numbered messages to actors on three nodes, while links break and nodes die. A
//! broker restarts, and loses and reorders packets, also exactly the last ones. Actors pass replies
//! on to a third node, and send to addresses that came in messages. The [ledger](ledger::Ledger)
//! compares each event with those before. `GREENROOM_SEEDS=10000` runs as many histories.

mod actors;
mod clients;
mod far;
mod ledger;
mod messages;

use std::time::Duration;

use actors::serve;
use clients::{Last, client};
use far::ModelNode;
use futures::future::join_all;
use greenroom::sim;
use greenroom_cluster::{Node, SimNet};
use ledger::Ledger;

use crate::support::seeds;

const CLIENTS: [&str; 2] = ["a", "n"];
const SERVERS: [&str; 3] = ["b", "m", "z"];

fn one_of(names: &[&'static str]) -> &'static str {
    names[sim::random() as usize % names.len()]
}

/// Breaks and mends the net.
async fn faults(net: SimNet, ledger: Ledger) {
    let names = [CLIENTS.as_slice(), &SERVERS].concat();
    for _ in 0..sim::random() % 8 {
        pause(40).await;
        match sim::random() % 10 {
            0 => net.partition([one_of(&SERVERS)], CLIENTS),
            1 => net.partition([one_of(&names)], [one_of(&names)]),
            2 | 3 => net.silence(one_of(&names), one_of(&names)),
            // At a broker some are lost, and others are overtaken, perhaps by those of a new link.
            4 => net.loss(
                0.2,
                Duration::from_millis([20, 2000][sim::random() as usize % 2]),
            ),
            5 => net.delay(Duration::ZERO..Duration::from_millis(20)),
            6 => serve(&net, one_of(&SERVERS), ledger.clone()).await,
            7 => {
                for name in SERVERS {
                    serve(&net, name, ledger.clone()).await;
                    pause(200).await;
                }
            }
            8 => net.restart_broker(),
            _ => net.heal(),
        }
        pause([5, 50, 1000, 10_000][sim::random() as usize % 4]).await;
    }
    net.heal();
}

/// Waits for less than so many milliseconds.
async fn pause(most: u64) {
    greenroom::time::sleep(Duration::from_millis(sim::random() % most)).await;
}

/// Loses exactly what clients send last.
async fn lose_the_last(net: &SimNet, last: &[Last]) {
    net.loss(1.0, Duration::from_secs(3600));
    last.iter().for_each(Last::tell);
    pause(20).await;
    net.loss(0.0, Duration::ZERO);
}

async fn history(net: SimNet, is_at_broker: bool) {
    let ledger = Ledger::default();
    for name in SERVERS {
        serve(&net, name, ledger.clone()).await;
    }
    let mut clients = Vec::new();
    for name in CLIENTS {
        let node = Node::builder(name).net(&net);
        let node = node.lease(Duration::from_millis(500)).open().await.unwrap();
        clients.push(greenroom::spawn(client(ModelNode::new(
            node,
            ledger.clone(),
        ))));
    }
    let faults = greenroom::spawn(faults(net.clone(), ledger));
    let last = join_all(clients).await;
    faults.await;
    if is_at_broker && sim::random().is_multiple_of(2) {
        // No other batch is under way, and no loss is to come.
        net.loss(0.0, Duration::ZERO);
        greenroom::time::sleep(Duration::from_secs(60)).await;
        lose_the_last(&net, &last).await;
    }
    // What is under way comes, or its node is lost.
    greenroom::time::sleep(Duration::from_secs(60)).await;
    last.iter().for_each(|last| last.check());
}

#[test]
fn random_histories_keep_what_is_promised() {
    sim::explore(seeds(40), |_| history(SimNet::new(), false));
}

#[test]
fn random_histories_over_a_broker_keep_what_is_promised() {
    sim::explore(seeds(200), |_| history(SimNet::with_broker(), true));
}
