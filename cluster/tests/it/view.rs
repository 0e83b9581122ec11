//! The section of the console with the nodes that are connected.

use std::net::TcpListener;
use std::time::Duration;

use greenroom_cluster::{Node, nodes_section};
use greenroom_http::SectionCell;

use crate::nodes::{Pair, Tally, pair};
use crate::support::{Net, on_threads};

#[test]
fn the_section_of_nodes_has_those_that_are_connected() {
    on_threads(|net| greenroom::run(shows_peers(net)));
}

async fn shows_peers(net: Net) {
    let Pair { desk, far, .. } = &pair(&net).await;
    assert_eq!(far.ask(Tally::Total).await, Ok(0));
    let section = nodes_section(desk)();
    assert_eq!(section.rows.len(), 1);
    let row = &section.rows[0];
    assert_eq!(row.len(), section.columns.len());
    let expected: [SectionCell; 3] = ["shop".into(), "connected".into(), 1.into()];
    assert_eq!(row[..3], expected);
}

#[test]
fn the_section_of_nodes_says_which_seed_was_not_reached() {
    greenroom::run(async {
        // Nothing listens there any more, nor does another test.
        let seed = TcpListener::bind("127.0.9.4:0").unwrap().local_addr();
        let seed = seed.unwrap().to_string();
        let desk = Node::builder("desk").seeds([&seed]).open().await.unwrap();
        let section = nodes_section(&desk);
        let row = loop {
            match section().rows.pop() {
                Some(row) => break row,
                None => greenroom::time::sleep(Duration::from_millis(5)).await,
            }
        };
        assert_eq!(row.len(), section().columns.len());
        assert_eq!(row[0], SectionCell::Text(seed));
        let SectionCell::Text(why) = &row[1] else {
            panic!("{row:?}");
        };
        assert!(!why.is_empty() && why != "connected", "{why}");
    });
}
