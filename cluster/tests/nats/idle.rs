//! What nodes that do not talk cost each other: the server counts the messages.

use std::io::{Read, Write};
use std::net::TcpStream;

use greenroom_cluster::Node;

use crate::certificates::NAMES;
use crate::counter::publishes;
use crate::server::Server;
use crate::support::{SHORT_LEASE, run, until};

/// The pings of a node that are waited for, one each second: more than a lease.
const PINGS: usize = 4;

/// What the server has counted since it began.
struct ServerCounts {
    connections: u64,
    /// The messages that nodes have published.
    taken: u64,
    /// The messages that nodes have received.
    given: u64,
}

fn counted(monitor: &str) -> ServerCounts {
    let mut stream = TcpStream::connect(monitor).unwrap();
    stream.write_all(b"GET /varz HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let counts: serde_json::Value = serde_json::from_str(body).unwrap();
    let count = |name: &str| counts[name].as_u64().unwrap();
    ServerCounts {
        connections: count("total_connections"),
        taken: count("in_msgs"),
        given: count("out_msgs"),
    }
}

/// Waits until each of these nodes has sent so many more pings.
async fn pings(server: &Server, nodes: &[&str]) {
    let counts = || {
        let log = server.log();
        let of = |name: &&str| {
            let of = |line: &&str| {
                line.contains(&format!("/user:{name}\"")) && line.ends_with("<<- [PING]")
            };
            log.lines().filter(of).count()
        };
        nodes.iter().map(of).collect::<Vec<_>>()
    };
    let before = counts();
    until(async || {
        let now = counts();
        now.iter()
            .zip(&before)
            .all(|(now, before)| *now >= before + PINGS)
    })
    .await;
}

/// Returns how many messages two idle nodes have sent and received, and how many one of them has
/// received when the other one has ended. `None` if one has connected anew meanwhile: a machine that
/// is too slow to answer pings loses connections.
async fn messages(server: &Server, monitor: &str) -> Option<(u64, u64)> {
    let open = async |name: &str| {
        let node = Node::builder(name).nats(server.known(name));
        let node = node.lease(SHORT_LEASE).open().await.unwrap();
        let actor = publishes(&node);
        (node, actor)
    };
    let (_shop, _actor) = open("shop").await;
    let (desk, _other) = open("desk").await;
    let open = counted(monitor);
    // By then what they publish when they open is with the server.
    pings(server, &["shop", "desk"]).await;
    let before = counted(monitor);
    pings(server, &["shop", "desk"]).await;
    let after = counted(monitor);
    desk.close().await;
    until(async || counted(monitor).given > after.given).await;
    pings(server, &["shop"]).await;
    let end = counted(monitor);
    let idle = (after.taken - before.taken) + (after.given - before.given);
    (open.connections == end.connections).then_some((idle, end.given - after.given))
}

#[test]
fn nodes_that_do_not_talk_receive_one_message_when_one_of_them_ends_and_no_other() {
    run(async {
        let (server, monitor) = Server::monitored(&Server::secure_config(&NAMES));
        let messages = loop {
            if let Some(messages) = messages(&server, &monitor).await {
                break messages;
            }
        };
        assert_eq!(messages, (0, 1));
    });
}
