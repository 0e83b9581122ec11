//! A process that is stopped for longer than its lease, and goes on.

use futures::future::join_all;
use greenroom_cluster::{Distance, RemoteAskError, RemoteEnd};

use crate::ledger::{Session, compare};
use crate::notes::Note;
use crate::process::{Options, Process};
use crate::support::{LONG, SHORT_LEASE, opens, run};

#[test]
fn a_node_that_is_stopped_is_lost_and_found_again_when_it_goes_on() {
    run(async {
        let mut options = Options::new("shop");
        options.lease = SHORT_LEASE;
        let mut shop = Process::start(&options).await;
        let desk = opens("desk", &shop.address, SHORT_LEASE).await;
        let mut sessions = Vec::new();
        for _ in 0..3 {
            let far = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
            let flood = greenroom::spawn(Session::run(far.clone(), u64::MAX));
            let kept = (0..16).map(|_| far.ask(Note::Keep));
            let kept = join_all(kept.map(IntoFuture::into_future));
            let stop = async {
                shop.handles(sessions.len() * 500 + 500).await;
                shop.signal("STOP");
            };
            let (kept, ()) = futures::join!(kept, stop);
            assert_eq!(kept, vec![Err(RemoteAskError::Lost); 16]);
            assert_eq!(far.ended().await, RemoteEnd::Lost);
            sessions.push(flood.await);
            shop.signal("CONT");
            let again = desk.lookup::<Note>("notes").timeout(LONG).await.unwrap();
            assert_eq!(again, far);
            // What was under way is handled before its first message, or never.
            sessions.push(Session::run(again, 100).await);
            assert_eq!(far.tell(Note::Told(0, 0)).unwrap_err().why, Distance::Lost);
        }
        let handled = shop.kill().await;
        for pair in sessions.chunks(2) {
            assert!(pair[0].is_lost && !pair[1].is_lost);
        }
        let order: Vec<u64> = handled.iter().map(|(session, _)| *session).collect();
        assert!(order.is_sorted(), "a note of an old address came late");
        compare(&sessions, &handled);
    });
}
