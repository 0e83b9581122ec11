//! What a remote address promises, over sockets.

use greenroom::{Context, Reply, Runtime, spawn};
use greenroom_cluster::{Distance, Node, RemoteAddress, RemoteAskError, RemoteEnd};

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
        let actor = spawn!(crate::support::tally(_));
        let _published = node.publish("tally", &actor).unwrap();
        let far = node.lookup::<Tally>("tally").await.unwrap();
        far.tell(Tally::Add(42)).unwrap();
        assert_eq!(far.ask(Tally::Total).await, Ok(42));
    });
}

/// Passes each question on to a far actor, which keeps it.
async fn relay(mut cx: Context<Reply<u64>>, far: RemoteAddress<Tally>) {
    while let Some(reply) = cx.recv().await {
        if let Ok(total) = far.ask(Tally::Keep).await {
            reply.send(total);
        }
    }
}

#[test]
fn deadlock_detection_leaves_asks_of_other_machines_alone() {
    let runtime = greenroom::Runtime::builder()
        .detect_deadlocks(true)
        .build()
        .unwrap();
    let (shop, actor) = runtime.block_on(counter("shop"));
    let there = greenroom::Runtime::builder()
        .detect_deadlocks(true)
        .build()
        .unwrap();
    there.block_on(async {
        let (desk, far) = client("desk", &shop).await;
        let relay = spawn!(relay(_, far));
        let asked = relay.address();
        let waiting = greenroom::spawn(async move { asked.ask(|reply| reply).await });
        while desk.status().peers[0].asks == 0 {
            greenroom::yield_now().await;
        }
        // The runtime would be quiescent here, and would end the asks.
        let quiescent = Runtime::current();
        let mut quiescent = std::pin::pin!(quiescent.quiescent());
        assert!(futures::poll!(&mut quiescent).is_pending());
        assert!(!waiting.is_finished());
        actor.kill();
        let lost = waiting.await;
        assert!(
            matches!(lost, Err(greenroom::AskError::NoReply(_))),
            "{lost:?}"
        );
    });
}
