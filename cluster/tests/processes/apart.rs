//! A node on another host, which is out of reach again and again.

use futures::future::join_all;
use greenroom::spawn;
use greenroom_cluster::{Node, RemoteAskError, RemoteEnd, RemoteLookupError};

use crate::ledger::{Session, compare};
use crate::network::Host;
use crate::notes::{Note, notes};
use crate::process::Process;
use crate::support::{LONG, SHORT_LEASE};

/// Lets `desk` and the node of the process be apart in this way, twice. Each time both lose the other
/// one, and find it again.
pub async fn loses_and_finds(desk: Node, mut shop: Process, host: Host, silence: impl Fn(&Host)) {
    let actor = spawn!(notes(_, |_, _| {}));
    desk.publish("desk", &actor).unwrap().detach();
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
        shop.wait_for("come desk").await;
        let flood = greenroom::spawn(Session::run(far.clone(), u64::MAX));
        let kept = (0..16).map(|_| far.ask(Note::Keep).into_future());
        let kept = join_all(kept);
        let apart = async {
            shop.handles(sessions.len() * 500 + 500).await;
            silence(&host);
            // The other side notices as well.
            shop.wait_for("gone desk").await;
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
    let handled = shop.kill().await;
    let order: Vec<u64> = handled.iter().map(|(session, _)| *session).collect();
    assert!(order.is_sorted(), "a note of an old address came late");
    compare(&sessions, &handled);
}
