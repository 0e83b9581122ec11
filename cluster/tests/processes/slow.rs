//! A link that passes few bytes a second.

use std::net::TcpListener;

use futures::future::join_all;
use greenroom_cluster::{Distance, Node};

use crate::ledger::{Session, compare};
use crate::notes::Note;
use crate::process::{Options, Process};
use crate::proxy::relay;
use crate::support::{LONG, SHORT_LEASE, is_long, opens, run};

/// Connects a node with a process by a slow link.
async fn slow(bytes_a_second: usize) -> (Process, Node) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let seed = listener.local_addr().unwrap().to_string();
    let mut options = Options::new("shop");
    options.lease = SHORT_LEASE;
    let shop = Process::start(&options).await;
    relay(listener, shop.address.clone(), bytes_a_second);
    let desk = opens("desk", &seed, SHORT_LEASE).await;
    (shop, desk)
}

#[test]
fn a_message_that_takes_longer_than_the_lease_does_not_end_the_link() {
    run(async {
        let (_shop, desk) = slow(64 << 10).await;
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        // Six seconds in each direction, and a node is lost after three.
        let bytes = vec![7; 384 << 10];
        let large = async { far.ask(|reply| Note::Echo(bytes.clone(), reply)).await };
        let small = Session::run(far.clone(), 20);
        let (large, small) = futures::join!(large, small);
        assert!(large.as_ref() == Ok(&bytes), "{:?}", large.err());
        assert!(!small.is_lost);
        assert_eq!(desk.status().lost_links, 0);
    });
}

#[test]
fn a_flood_of_a_slow_link_is_held_back_and_arrives_in_order() {
    if !is_long("a_flood_of_a_slow_link_is_held_back_and_arrives_in_order") {
        return;
    }
    run(async {
        let (shop, desk) = slow(512 << 10).await;
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        let bytes = vec![7; 64 << 10];
        let mut accepted = 0;
        // The reply is dropped, and the answer with it.
        let full = loop {
            let (reply, _) = greenroom::Reply::pair();
            match far.tell(Note::Echo(bytes.clone(), reply)) {
                Ok(()) => accepted += 1,
                Err(error) => break error.why,
            }
        };
        assert_eq!(full, Distance::Full);
        // As many bytes as the actor grants, and a frame for each sender.
        assert!(accepted <= 24, "{accepted} messages were accepted");
        let sessions = (0..4).map(|_| greenroom::spawn(Session::run(far.clone(), 2000)));
        let sessions = join_all(sessions.collect::<Vec<_>>()).await;
        assert!(sessions.iter().all(|session| !session.is_lost));
        assert_eq!(desk.status().lost_links, 0);
        compare(&sessions, &shop.kill().await);
    });
}
