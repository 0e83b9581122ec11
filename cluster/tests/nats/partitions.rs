//! Hosts that cannot reach each other: a node and its server, and two servers.

use std::process::Command;

use greenroom_cluster::Node;

use crate::apart;
use crate::certificates::NAMES;
use crate::network::{HERE, Host, THERE, is_apart};
use crate::process::{Options, Process};
use crate::server::Server;
use crate::support::{SHORT_LEASE, run};

/// Lets a node be apart from its server in this way. The other node is beside the server.
fn node_loses_its_server(silence: impl Fn(&Host)) {
    run(async {
        let (host, server) = (Host::new(), Server::secure_at(HERE));
        loses_and_finds(host, &server, &server, silence).await;
    });
}

/// Lets two servers be apart in this way. Each has a node beside it.
fn servers_lose_each_other(silence: impl Fn(&Host)) {
    run(async {
        let host = Host::new();
        let hosts = [(HERE, Command::new("env")), (THERE, host.command())];
        let [here, there] = Server::cluster_at(hosts, &Server::secure_config(&NAMES));
        loses_and_finds(host, &here, &there, silence).await;
    });
}

async fn loses_and_finds(host: Host, desk: &Server, shop: &Server, silence: impl Fn(&Host)) {
    let mut options = Options::new("shop");
    options.lease = SHORT_LEASE;
    options.listen = shop.address();
    let process = Process::start_by(host.command(), &options).await;
    let desk = Node::builder("desk").nats(desk.known("desk"));
    let desk = desk.lease(SHORT_LEASE).open().await.unwrap();
    apart::loses_and_finds(desk, process, host, silence).await;
}

fn both_ways(host: &Host) {
    host.hears_nothing();
    host.says_nothing();
}

#[test]
fn a_node_apart_from_its_server_is_lost_and_found_again() {
    if is_apart("partitions::a_node_apart_from_its_server_is_lost_and_found_again") {
        node_loses_its_server(both_ways);
    }
}

#[test]
fn a_node_whose_server_does_not_receive_it_is_lost_and_found_again() {
    if is_apart("partitions::a_node_whose_server_does_not_receive_it_is_lost_and_found_again") {
        node_loses_its_server(Host::says_nothing);
    }
}

#[test]
fn a_node_that_receives_nothing_of_its_server_is_lost_and_found_again() {
    if is_apart("partitions::a_node_that_receives_nothing_of_its_server_is_lost_and_found_again") {
        node_loses_its_server(Host::hears_nothing);
    }
}

#[test]
fn nodes_of_servers_that_are_apart_are_lost_and_found_again() {
    if is_apart("partitions::nodes_of_servers_that_are_apart_are_lost_and_found_again") {
        servers_lose_each_other(both_ways);
    }
}

#[test]
fn nodes_of_servers_of_which_one_receives_nothing_are_lost_and_found_again() {
    let test =
        "partitions::nodes_of_servers_of_which_one_receives_nothing_are_lost_and_found_again";
    if is_apart(test) {
        servers_lose_each_other(Host::hears_nothing);
    }
}

#[test]
fn nodes_of_servers_of_which_one_is_not_received_are_lost_and_found_again() {
    let test = "partitions::nodes_of_servers_of_which_one_is_not_received_are_lost_and_found_again";
    if is_apart(test) {
        servers_lose_each_other(Host::says_nothing);
    }
}
