//! The numbers of a node on the page `/metrics` of greenroom-http.

use std::io::{Read, Write};
use std::net::TcpStream;

use greenroom_cluster::metrics;
use greenroom_http::Server;

use crate::nodes::{Pair, Tally, pair};
use crate::support::{Net, on_threads};

/// Reads a page of a local server.
fn read(address: std::net::SocketAddr) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn the_page_of_greenroom_http_shows_peers_streams_credit_and_losses() {
    on_threads(|net| {
        greenroom::run(shows_numbers(net));
    });
}

async fn shows_numbers(net: Net) {
    let Pair { desk, far, .. } = &pair(&net).await;
    assert_eq!(far.ask(Tally::Total).await, Ok(0));
    let page = greenroom_http::metrics().collector(metrics(desk));
    let server = Server::bind("127.0.0.1:0")
        .mount(page)
        .listen()
        .await
        .unwrap();
    let address = server.local_addr();
    let page = greenroom::unblock(move || read(address)).await;
    for line in [
        "greenroom_cluster_peers 1",
        "greenroom_cluster_outgoing_streams{peer=\"shop\"} 1",
        "greenroom_cluster_credit_messages{peer=\"shop\"} 1023",
        "greenroom_cluster_links_total 1",
        "greenroom_cluster_lost_links_total 0",
    ] {
        assert!(
            page.lines().any(|found| found == line),
            "{line} is not in:\n{page}"
        );
    }
    server.stop().await;
}
