//! Three servers that know each other, with nodes on each.

use greenroom::Handle;
use greenroom_cluster::{Node, RemoteEnd};

use crate::certificates::NAMES;
use crate::counter::{finds, publishes};
use crate::nodes::Tally;
use crate::notes::Note;
use crate::process::{Options, Process};
use crate::server::Server;
use crate::support::{LONG, SHORT_LEASE, run, until};

/// Opens a node at this server. If it ends, the node goes to one that the server has named.
async fn opens_at(name: &str, server: &Server) -> Node {
    let node = Node::builder(name).nats(server.insecure());
    node.lease(SHORT_LEASE).open().await.unwrap()
}

/// Opens a node with a counter at the first server, and another one at the second.
async fn opens_two(servers: &[Server]) -> (Node, Handle<Tally, Vec<u64>>, Node) {
    let shop = opens_at("shop", &servers[0]).await;
    let actor = publishes(&shop);
    (shop, actor, opens_at("desk", &servers[1]).await)
}

#[test]
fn nodes_of_three_servers_talk_and_lose_only_what_a_killed_server_carried() {
    run(async {
        let mut servers: [_; 3] = Server::cluster("");
        let (_shop, _actor, desk) = opens_two(&servers).await;
        let far = finds(&desk).await;
        for n in 0..1000 {
            far.send(Tally::Add(n)).await.unwrap();
        }
        assert_eq!(far.ask(Tally::Total).await, Ok(499_500));
        // The third server carries nothing of them.
        servers[2].kill();
        assert_eq!(far.ask(Tally::Total).await, Ok(499_500));
        assert_eq!((far.end_now(), desk.status().lost_links), (None, 0));
        servers[1].kill();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
    });
}

#[test]
fn nodes_whose_server_is_killed_go_to_another_one_and_are_found_again() {
    run(async {
        let mut servers: [_; 3] = Server::cluster("");
        let (_shop, _actor, desk) = opens_two(&servers).await;
        for at in [0, 1] {
            let far = finds(&desk).await;
            assert_eq!(far.ask(Tally::Total).await, Ok(0));
            servers[at].kill();
            servers[at].start();
            until(async || finds(&desk).await.ask(Tally::Total).await == Ok(0)).await;
        }
    });
}

#[test]
fn nodes_of_a_server_that_is_drained_go_to_another_one() {
    run(async {
        let lame = "lame_duck_duration: 30s\nlame_duck_grace_period: 1s\n";
        let servers: [_; 2] = Server::cluster(lame);
        let (_shop, _actor, desk) = opens_two(&servers).await;
        let far = finds(&desk).await;
        servers[0].signal("USR2");
        // All goes on until the server closes the connection.
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        assert_eq!(finds(&desk).await.ask(Tally::Total).await, Ok(0));
    });
}

#[test]
fn a_node_that_dies_with_its_server_is_lost_after_its_lease() {
    run(async {
        let mut servers: [_; 2] = Server::cluster(&Server::secure_config(&NAMES));
        let mut options = Options::new("shop");
        options.listen = servers[0].address();
        options.lease = SHORT_LEASE;
        let shop = Process::start(&options).await;
        let desk = Node::builder("desk").nats(servers[1].known("desk"));
        let desk = desk.lease(SHORT_LEASE).open().await.unwrap();
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        assert_eq!(far.ask(Note::Life).await, Ok(shop.id()));
        // A server that is stopped reports no end of a connection.
        servers[0].signal("STOP");
        shop.kill().await;
        servers[0].kill();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        until(async || desk.status().peers.is_empty()).await;
    });
}
