//! The memory of a node at a NATS server: the slope from few nodes to many, in one process.

use std::thread::sleep;
use std::time::Duration;

use greenroom::Runtime;
use greenroom_cluster::{Nats, Node};

use crate::Outcome;
use crate::nats_server::NatsServer;
use crate::process::resident;

const FEW: usize = 10;
const MANY: usize = 300;
/// How long all are left alone before the memory is read.
const SETTLED: Duration = Duration::from_secs(3);

/// Returns the bytes that a node takes, with its thread and its client, beside those that were there.
pub fn slope() -> Outcome<f64> {
    let server = NatsServer::start_all(1, "")?;
    let runtime = Runtime::builder().workers(1).build()?;
    let mut nodes = Vec::new();
    let mut open = |many: usize| -> Outcome<u64> {
        while nodes.len() < many {
            let nats = Nats::servers([&server.addresses[0]]).insecure();
            let node = Node::builder(format!("node-{}", nodes.len())).nats(nats);
            nodes.push(runtime.block_on(node.open())?);
        }
        sleep(SETTLED);
        resident(std::process::id())
    };
    let (few, many) = (open(FEW)?, open(MANY)?);
    Ok((many as f64 - few as f64) / (MANY - FEW) as f64)
}
