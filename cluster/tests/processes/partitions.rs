//! Hosts that cannot reach each other, both ways and one way.

use crate::apart;
use crate::network::{HERE, Host, THERE, is_apart};
use crate::process::{Options, Process};
use crate::support::{SHORT_LEASE, builder, run};

/// Lets two nodes be apart in this way. The one here listens, or dials alone.
fn loses_and_finds(silence: impl Fn(&Host), listens: bool) {
    run(async {
        let host = Host::new();
        let mut options = Options::new("shop");
        options.lease = SHORT_LEASE;
        options.listen = "0.0.0.0:7447".into();
        options.advertise = format!("{THERE}:7447");
        let shop = Process::start_by(host.command(), &options).await;
        let mut desk = builder("desk")
            .seeds([&options.advertise])
            .lease(SHORT_LEASE);
        if listens {
            desk = desk.listen_address(format!("{HERE}:7447"));
        }
        let desk = desk.open().await.unwrap();
        apart::loses_and_finds(desk, shop, host, silence).await;
    });
}

#[test]
fn a_partition_loses_both_sides_and_its_end_finds_the_same_actor() {
    if is_apart("partitions::a_partition_loses_both_sides_and_its_end_finds_the_same_actor") {
        let both = |host: &Host| {
            host.hears_nothing();
            host.says_nothing();
        };
        loses_and_finds(both, true);
    }
}

#[test]
fn a_node_that_is_not_heard_is_lost_on_both_sides() {
    if is_apart("partitions::a_node_that_is_not_heard_is_lost_on_both_sides") {
        loses_and_finds(Host::says_nothing, false);
    }
}

#[test]
fn a_node_that_hears_nothing_is_lost_on_both_sides() {
    if is_apart("partitions::a_node_that_hears_nothing_is_lost_on_both_sides") {
        loses_and_finds(Host::hears_nothing, false);
    }
}
