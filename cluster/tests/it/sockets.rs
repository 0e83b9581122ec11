//! What belongs to sockets: closing, seeds, certificates.

use greenroom_cluster::{Distance, RemoteEnd};

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
