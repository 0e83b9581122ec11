//! What servers do to links: they end, restart, drop, and take no more than they say.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use futures::FutureExt;
use greenroom::time::Instant;
use greenroom_cluster::{
    Distance, NameChange, Nats, Node, OpenError, RemoteAddress, RemoteAskError, RemoteEnd,
};

use crate::counter::{counter, finds, opens};
use crate::ledger::{Session, compare};
use crate::nodes::Tally;
use crate::notes::Note;
use crate::process::{Options, Process};
use crate::server::Server;
use crate::support::{LONG, run, until};

#[test]
fn a_server_that_restarts_ends_all_links_and_a_lookup_finds_the_actors_again() {
    run(async {
        let mut server = Server::open();
        let (shop, _actor) = counter("shop", &server).await;
        let desk = opens("desk", &server).await;
        let mut watch = desk.watch_names("tal");
        for _ in 0..3 {
            let far = finds(&desk).await;
            let Some(NameChange::Come { node, .. }) = watch.next().await else {
                panic!("the name has not come");
            };
            assert_eq!(node, "shop");
            server.kill();
            assert_eq!(far.ended().await, RemoteEnd::Lost);
            let gone = watch.next().await;
            assert!(matches!(gone, Some(NameChange::Gone { .. })), "{gone:?}");
            until(async || !desk.status().unreached.is_empty()).await;
            server.start();
            let again = finds(&desk).await;
            assert_eq!(again.ask(Tally::Total).await, Ok(0));
            assert_eq!(far.tell(Tally::Add(1)).unwrap_err().why, Distance::Lost);
            assert_eq!(desk.status().unreached, [""; 0]);
        }
        drop(shop);
    });
}

#[test]
fn a_message_that_the_server_does_not_take_is_too_large() {
    run(async {
        let server = Server::with("max_payload: 64KB");
        let (_shop, _actor) = counter("shop", &server).await;
        let desk = opens("desk", &server).await;
        let far = finds(&desk).await;
        let ask = async |bytes| {
            let echo = far.ask(|reply| Tally::Echo(vec![7; bytes], reply));
            echo.await.map(|echo| echo.len())
        };
        assert_eq!(ask(65_000).await, Ok(65_000));
        let error = ask(70_000).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("more than 654"), "{text}");
        // The link goes on.
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        assert_eq!(desk.status().lost_links, 0);
    });
}

/// Asks for 100 000 bytes, and returns how many came.
async fn echoed(far: &RemoteAddress<Tally>) -> Result<usize, RemoteAskError> {
    let echo = far.ask(|reply| Tally::Echo(vec![7; 100_000], reply));
    echo.await.map(|echo| echo.len())
}

#[test]
fn the_largest_message_is_that_of_the_server_that_is_there_now() {
    run(async {
        let mut server = Server::open();
        let (_shop, _actor) = counter("shop", &server).await;
        let desk = opens("desk", &server).await;
        let far = finds(&desk).await;
        assert_eq!(echoed(&far).await, Ok(100_000));
        server.replace("max_payload: 64KB");
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        let far = finds(&desk).await;
        let large = echoed(&far).await;
        let is_refused =
            matches!(large, Err(RemoteAskError::TooLarge { limit, .. }) if limit < 65_536);
        assert!(is_refused, "{large:?}");
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
    });
}

#[test]
fn a_message_that_a_reload_has_made_too_large_is_lost_once_and_then_too_large() {
    run(async {
        let mut server = Server::open();
        let (_shop, _actor) = counter("shop", &server).await;
        let desk = opens("desk", &server).await;
        assert_eq!(echoed(&finds(&desk).await).await, Ok(100_000));
        server.reload("max_payload: 64KB");
        // The server tells the limit to new connections, and ends one that exceeds it.
        loop {
            match echoed(&finds(&desk).await).await {
                Ok(100_000) | Err(RemoteAskError::Lost) => {}
                Err(RemoteAskError::TooLarge { limit, .. }) if limit < 65_536 => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(finds(&desk).await.ask(Tally::Total).await, Ok(0));
    });
}

#[test]
fn a_connection_that_does_not_answer_its_server_ends_after_two_pings() {
    run(async {
        let config = Nats::server_config(["shop"]);
        let pings = config.lines().filter(|line| line.starts_with("ping_"));
        let server = Server::with(&pings.collect::<Vec<_>>().join("\n"));
        let address = server.address();
        let received = greenroom::unblock(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream
                .write_all(b"CONNECT {\"verbose\":false}\r\n")
                .unwrap();
            let lines = BufReader::new(stream).lines().map_while(Result::ok);
            lines.take(10).collect::<Vec<_>>()
        });
        let received = received.await;
        assert!(received[0].starts_with("INFO {"), "{received:?}");
        assert_eq!(received[1..], ["PING", "PING", "-ERR 'Stale Connection'"]);
    });
}

#[test]
fn an_open_that_is_dropped_leaves_no_node() {
    run(async {
        let server = Server::with("debug: true");
        let connections = |what: &str| {
            let line = format!("Client connection {what}");
            server.log().matches(&line).count()
        };
        let opened = connections("created");
        for round in 1..=10 {
            let before = connections("created");
            let mut open = Box::pin(Node::builder("shop").nats(server.insecure()).open());
            assert!((&mut open).now_or_never().is_none());
            // Its thread goes on alone. In half of the rounds the server has accepted it before.
            until(async || round % 2 == 0 || connections("created") > before).await;
            drop(open);
        }
        until(async || connections("created") >= opened + 10).await;
        until(async || connections("closed") == connections("created")).await;
        // No other node has the name.
        let (shop, _actor) = counter("shop", &server).await;
        let desk = opens("desk", &server).await;
        let far = finds(&desk).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        assert_eq!(shop.status().unreached, [""; 0]);
    });
}

#[test]
fn nodes_that_do_not_talk_have_no_link() {
    run(async {
        let server = Server::open();
        let (shop, _actor) = counter("shop", &server).await;
        let (other, _other) = counter("a", &server).await;
        let desk = opens("desk", &server).await;
        let far = finds(&desk).await;
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        let peers = |node: &greenroom_cluster::Node| node.status().peers.len();
        assert_eq!((peers(&desk), peers(&shop) + peers(&other)), (1, 1));
    });
}

#[test]
fn a_server_that_is_not_there_is_an_error_of_open() {
    run(async {
        let mut server = Server::open();
        server.kill();
        let node = Node::builder("desk").nats(server.insecure());
        let start = Instant::now();
        let error = node.open().await.unwrap_err();
        assert!(matches!(error, OpenError::Server(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(&server.address()),
            "{text} after {:?}",
            start.elapsed()
        );
    });
}

#[test]
fn a_process_that_closes_has_handled_what_was_answered() {
    run(async {
        let shop = Process::start(&Options::new("shop")).await;
        let lease = Duration::from_secs(5);
        let desk = crate::support::opens("desk", &shop.address, lease).await;
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        let session = Session::run(far.clone(), 1000).await;
        assert!(!session.is_lost);
        compare(&[session], &shop.close().await);
        assert_eq!(far.ended().await, RemoteEnd::Lost);
    });
}
