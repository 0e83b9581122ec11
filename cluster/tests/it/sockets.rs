//! What belongs to sockets: closing, seeds, certificates.

use greenroom_cluster::{Distance, Node, RemoteEnd};

use crate::support::{Tally, client, counter};

#[test]
fn a_node_that_closes_loses_its_addresses() {
    greenroom::run(async {
        let (shop, _actor) = counter("shop").await;
        let (_desk, far) = client("desk", &shop).await;
        shop.close().await;
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        assert_eq!(far.tell(Tally::Add(1)).unwrap_err().why, Distance::Lost);
    });
}

// Not beside tests that start processes: a child has all sockets until it becomes another program.
#[test]
fn the_address_of_a_node_is_free_when_it_has_closed() {
    greenroom::run(async {
        let first = Node::builder("shop")
            .listen("127.0.9.1:0")
            .open()
            .await
            .unwrap();
        let at = first.listens()[0].clone();
        first.close().await;
        for _ in 0..50 {
            let node = Node::builder("shop").listen(&at).open().await.unwrap();
            node.close().await;
        }
    });
}
