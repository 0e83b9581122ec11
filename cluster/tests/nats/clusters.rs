//! Three servers that know each other, with nodes on each.

use greenroom_cluster::{Nats, Node, RemoteEnd};

use crate::counter::{Tally, finds, publishes};
use crate::server::Server;
use crate::support::{SHORT_LEASE, run, until};

/// Opens a node whose first server is this one. It stays there as long as it can.
async fn opens_at(name: &str, servers: &[Server], first: usize) -> Node {
    let addresses = (0..servers.len()).map(|at| servers[(first + at) % servers.len()].address());
    let nats = Nats::servers(addresses).insecure();
    let node = Node::builder(name).nats(nats).lease(SHORT_LEASE);
    node.open().await.unwrap()
}

#[test]
fn nodes_of_three_servers_talk_and_lose_only_what_a_killed_server_carried() {
    run(async {
        let mut servers = Server::cluster();
        let shop = Node::builder("shop").nats(servers[0].insecure());
        let shop = shop.lease(SHORT_LEASE).open().await.unwrap();
        let _actor = publishes(&shop);
        let desk = Node::builder("desk").nats(servers[1].insecure());
        let desk = desk.lease(SHORT_LEASE).open().await.unwrap();
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
        let mut servers = Server::cluster();
        let shop = opens_at("shop", &servers, 0).await;
        let _actor = publishes(&shop);
        let desk = opens_at("desk", &servers, 1).await;
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
fn a_node_that_dies_with_its_server_is_lost_after_its_lease() {
    run(async {
        let mut servers = Server::cluster();
        let shop = Node::builder("shop").nats(servers[0].insecure());
        let shop = shop.lease(SHORT_LEASE).open().await.unwrap();
        let _actor = publishes(&shop);
        let desk = Node::builder("desk").nats(servers[1].insecure());
        let desk = desk.lease(SHORT_LEASE).open().await.unwrap();
        let far = finds(&desk).await;
        servers[0].kill();
        assert_eq!(far.ended().await, RemoteEnd::Lost);
    });
}
