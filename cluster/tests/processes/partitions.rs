//! Hosts that cannot reach each other, both ways and one way.

use futures::future::join_all;
use greenroom::spawn;
use greenroom_cluster::{RemoteAskError, RemoteEnd, RemoteLookupError};

use crate::ledger::{Session, compare};
use crate::network::{HERE, Host, THERE, is_apart};
use crate::notes::{Note, notes};
use crate::process::Options;
use crate::support::{LONG, SHORT_LEASE, builder, run};

/// Lets the hosts be apart in this way, again and again. Each time both sides lose the other one,
/// and find it again.
fn loses_and_finds(silence: impl Fn(&Host), listens: bool) {
    run(async {
        let mut options = Options::new("shop");
        options.lease = SHORT_LEASE;
        options.listen = "0.0.0.0:7447".into();
        options.advertise = format!("{THERE}:7447");
        let mut host = Host::start(&options).await;
        let mut desk = builder("desk")
            .seeds([&options.advertise])
            .lease(SHORT_LEASE);
        if listens {
            desk = desk.listen_address(format!("{HERE}:7447"));
        }
        let desk = desk.open().await.unwrap();
        let actor = spawn!(notes(_, |_, _| {}));
        desk.publish("desk", &actor).unwrap().detach();
        let mut sessions = Vec::new();
        for _ in 0..2 {
            let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
            host.process.wait_for("come desk").await;
            let flood = greenroom::spawn(Session::run(far.clone(), u64::MAX));
            let kept = (0..16).map(|_| far.ask(Note::Keep).into_future());
            let kept = join_all(kept);
            let apart = async {
                host.process.handles(sessions.len() * 500 + 500).await;
                silence(&host);
                // The other side notices as well.
                host.process.wait_for("gone desk").await;
            };
            let (kept, ()) = futures::join!(kept, apart);
            assert_eq!(kept, vec![Err(RemoteAskError::Lost); 16]);
            assert_eq!(far.ended().await, RemoteEnd::Lost);
            sessions.push(flood.await);
            let unknown = desk.lookup::<Note>("notes").timeout(SHORT_LEASE).await;
            let nodes = Vec::<String>::new();
            assert!(
                matches!(&unknown, Err(RemoteLookupError::Unknown { nodes: n, .. }) if *n == nodes),
                "{unknown:?}"
            );
            host.heal();
            let again = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
            assert_eq!(again, far);
            sessions.push(Session::run(again, 100).await);
        }
        let handled = host.process.kill().await;
        let order: Vec<u64> = handled.iter().map(|(session, _)| *session).collect();
        assert!(order.is_sorted(), "a note of an old address came late");
        compare(&sessions, &handled);
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
