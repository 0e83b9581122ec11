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

/// Returns whether this runtime has nothing to do before a moment of another thread is over.
async fn is_soon_quiescent() -> bool {
    let (over, moment) = futures::channel::oneshot::channel::<()>();
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(over);
    });
    let runtime = Runtime::current();
    let quiescent = std::pin::pin!(runtime.quiescent());
    let first = futures::future::select(quiescent, moment).await;
    matches!(first, futures::future::Either::Left(_))
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
        // A quiescent runtime would end the asks.
        assert!(!is_soon_quiescent().await);
        assert!(!waiting.is_finished());
        actor.kill();
        let lost = waiting.await;
        assert!(
            matches!(lost, Err(greenroom::AskError::NoReply(_))),
            "{lost:?}"
        );
    });
}

#[test]
fn deadlock_detection_leaves_senders_to_other_machines_alone() {
    let here = Runtime::builder().detect_deadlocks(true).build().unwrap();
    here.block_on(async {
        let shop = Node::builder("shop")
            .listen_address("127.0.0.1:0")
            .open()
            .await
            .unwrap();
        let (go, wait) = futures::channel::oneshot::channel::<()>();
        let late = async |cx: Context<Tally>| {
            let _ = wait.await;
            crate::support::tally(cx).await
        };
        let actor = spawn!(late(_), capacity = 1);
        shop.publish("tally", &actor).unwrap().detach();
        let (_desk, far) = client("desk", &shop).await;
        let sender = greenroom::spawn(async move {
            for n in 0..5 {
                far.send(Tally::Add(n)).await.unwrap();
            }
            far.ask(Tally::Total).await
        });
        // One message is taken and one is under way, so the sender waits.
        assert!(!is_soon_quiescent().await);
        go.send(()).unwrap();
        assert_eq!(sender.await, Ok(10));
    });
}
