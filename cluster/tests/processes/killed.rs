//! Processes that are killed, as `kill -9` does.

use futures::FutureExt;
use futures::future::join_all;
use greenroom::spawn;
use greenroom_cluster::{Distance, Node, RemoteAddress, RemoteAskError, RemoteEnd};

use crate::ledger::{Session, compare};
use crate::notes::{Note, notes};
use crate::process::{Options, Process};
use crate::support::{LONG, at, listener, opens, process_builder, run, until};

/// Finds the actor of a process, which is perhaps not the first one with this name.
pub async fn finds(node: &Node, name: &str, process: &Process) -> RemoteAddress<Note> {
    loop {
        let far = node.lookup::<Note>(name).timeout(LONG).await.unwrap();
        if far.ask(Note::Life).await == Ok(process.id()) {
            return far;
        }
        assert_eq!(far.ended().await, RemoteEnd::Lost);
    }
}

#[test]
fn a_node_that_is_killed_ends_asks_and_floods_and_is_found_after_a_restart() {
    run(async {
        let mut options = Options::new("shop");
        let mut shop = Process::start(&options).await;
        options.listen.clone_from(&shop.address);
        let desk = opens("desk", &shop.address, options.lease).await;
        for _ in 0..3 {
            let far = finds(&desk, "notes", &shop).await;
            let kept = (0..64).map(|_| {
                let far = far.clone();
                greenroom::spawn(async move { far.ask(Note::Keep).await })
            });
            let kept: Vec<_> = kept.collect();
            let flood = (0..4).map(|_| greenroom::spawn(Session::run(far.clone(), u64::MAX)));
            let flood: Vec<_> = flood.collect();
            shop.handles(2000).await;
            until(async || far.ask(Note::Kept).await == Ok(64)).await;
            let handled = shop.kill().await;
            assert_eq!(join_all(kept).await, vec![Err(RemoteAskError::Lost); 64]);
            compare(&join_all(flood).await, &handled);
            assert_eq!(far.ended().await, RemoteEnd::Lost);
            let late = far.tell(Note::Told(0, 0)).unwrap_err();
            assert_eq!(late.why, Distance::Lost);
            shop = Process::start(&options).await;
            let again = finds(&desk, "notes", &shop).await;
            assert_ne!(again, far);
            assert_eq!(again.ask(Note::Kept).await, Ok(0));
            // The old one stays lost.
            assert_eq!(far.ended().now_or_never(), Some(RemoteEnd::Lost));
        }
    });
}

#[test]
fn replies_to_a_node_that_is_killed_are_not_wanted_any_more() {
    run(async {
        let shop = process_builder("shop", &listener(), "", "");
        let shop = shop.open().await.unwrap();
        let actor = spawn!(notes(_, |_, _| {}));
        let published = shop.publish("shop", &actor).unwrap();
        let mut options = Options::new("desk");
        options.seed = at(&shop);
        let mut desk = Process::start(&options).await;
        for _ in 0..20 {
            desk.command("ask shop");
        }
        let kept = async || published.address().ask(Note::Kept).await.unwrap();
        until(async || kept().await == 20).await;
        desk.kill().await;
        until(async || kept().await == 0).await;
        until(async || shop.status().peers.is_empty()).await;
    });
}
