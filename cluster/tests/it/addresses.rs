//! What a remote address promises, over each net.

use futures::FutureExt;
use greenroom::spawn;
use greenroom_cluster::{Distance, RemoteAskError, RemoteEnd};

use crate::nodes::{Pair, Tally, found, pair, published, tally};
use crate::support::everywhere;

#[test]
fn messages_arrive_in_order_and_asks_are_answered() {
    everywhere(|net| async move {
        let Pair { far, .. } = &pair(&net).await;
        for n in 0..1000 {
            far.send(Tally::Add(n)).await.unwrap();
        }
        assert_eq!(far.ask(Tally::Total).await, Ok(499_500));
        let all = far.ask(Tally::All).await.unwrap();
        assert_eq!(all, (0..1000).collect::<Vec<u64>>());
    });
}

#[test]
fn an_actor_that_ends_is_told_as_ended() {
    everywhere(|net| async move {
        let Pair { far, .. } = &pair(&net).await;
        let mut kept = far.ask(Tally::Keep).into_future();
        assert!((&mut kept).now_or_never().is_none());
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        far.tell(Tally::Stop).unwrap();
        assert!(matches!(kept.await, Err(RemoteAskError::NoReply(_))));
        assert_eq!(far.ended().await, RemoteEnd::Ended);
        assert_eq!(far.ask(Tally::Total).await, Err(RemoteAskError::Closed));
        assert_eq!(far.tell(Tally::Add(1)).unwrap_err().why, Distance::Closed);
    });
}

#[test]
fn a_node_finds_its_own_actors() {
    everywhere(|net| async move {
        let node = net.node("alone").await;
        let actor = spawn!(tally(_));
        let _published = node.publish("tally", &actor).unwrap();
        let far = found::<Tally>(&node, "tally").await;
        far.tell(Tally::Add(42)).unwrap();
        assert_eq!(far.ask(Tally::Total).await, Ok(42));
    });
}

#[test]
fn a_node_that_closes_loses_its_addresses() {
    everywhere(|net| async move {
        let Pair {
            shop, desk, far, ..
        } = &pair(&net).await;
        let kept = async { far.ask(Tally::Keep).await };
        let close = async {
            assert_eq!(far.ask(Tally::Total).await, Ok(0));
            shop.clone().close().await;
        };
        let (kept, ()) = futures::join!(kept, close);
        assert_eq!(kept, Err(RemoteAskError::Lost));
        assert_eq!(far.ended().await, RemoteEnd::Lost);
        assert_eq!(far.end_now(), Some(RemoteEnd::Lost));
        assert_eq!(far.tell(Tally::Add(1)).unwrap_err().why, Distance::Lost);
        // The name is free, and the new actor is another one.
        let again = net.node("shop").await;
        let published = published(&again);
        let new = found::<Tally>(desk, "tally").await;
        assert_ne!(new, *far);
        assert_eq!(new, published.address());
        assert_eq!(new.ask(Tally::Total).await, Ok(0));
        assert_eq!(far.tell(Tally::Add(1)).unwrap_err().why, Distance::Lost);
        new.tell(Tally::Stop).unwrap();
    });
}

#[test]
fn an_ask_ends_when_its_reply_is_dropped_or_its_actor_ends() {
    everywhere(|net| async move {
        let Pair { far, .. } = &pair(&net).await;
        let forgotten = far.ask(Tally::Forget).await;
        assert!(
            matches!(forgotten, Err(RemoteAskError::NoReply(_))),
            "{forgotten:?}"
        );
        let kept = async { far.ask(Tally::Keep).await };
        let stop = async { far.send(Tally::Stop).await.unwrap() };
        let (kept, ()) = futures::join!(kept, stop);
        // The question may arrive before the end of the actor, or after it.
        assert!(
            matches!(
                kept,
                Err(RemoteAskError::NoReply(_) | RemoteAskError::Closed)
            ),
            "{kept:?}"
        );
    });
}
