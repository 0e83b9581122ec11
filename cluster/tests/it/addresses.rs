//! What a remote address promises, over sockets.

use greenroom_cluster::{Distance, Node, RemoteAskError, RemoteEnd};

use crate::support::{Tally, client, counter};

#[test]
fn messages_arrive_in_order_and_asks_are_answered() {
    greenroom::run(async {
        let (shop, _actor) = counter("shop").await;
        let (_desk, far) = client("desk", &shop).await;
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
    greenroom::run(async {
        let (shop, _actor) = counter("shop").await;
        let (_desk, far) = client("desk", &shop).await;
        let kept = far
            .ask(Tally::Keep)
            .timeout(std::time::Duration::from_secs(60));
        let kept = greenroom::spawn({
            let far = far.clone();
            drop(kept);
            async move { far.ask(Tally::Keep).await }
        });
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
    greenroom::run(async {
        let node = Node::builder("alone").open().await.unwrap();
        let actor = greenroom::spawn!(crate::support::tally(_));
        let _published = node.publish("tally", &actor).unwrap();
        let far = node.lookup::<Tally>("tally").await.unwrap();
        far.tell(Tally::Add(42)).unwrap();
        assert_eq!(far.ask(Tally::Total).await, Ok(42));
    });
}
