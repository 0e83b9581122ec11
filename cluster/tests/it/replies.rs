//! What becomes of replies when an asker is gone, or when a value has several of them.

use std::time::Duration;

use greenroom::{Context, Reply, sim, spawn, time};
use greenroom_cluster::{Node, Remote, RemoteAddress, RemoteAskError, SimNet};
use serde::{Deserialize, Serialize};

use crate::support::{node, seeds};

#[derive(Serialize, Deserialize)]
enum Work {
    /// The first reply is answered at once, and the second one a second later.
    Both(
        #[serde(with = "greenroom_cluster::reply")] Reply<u8>,
        #[serde(with = "greenroom_cluster::reply")] Reply<u8>,
    ),
}

impl Remote for Work {
    const KIND: &'static str = "work/1";
}

async fn worker(mut cx: Context<Work>) {
    while let Some(Work::Both(first, second)) = cx.recv().await {
        first.send(1);
        time::sleep(Duration::from_secs(1)).await;
        second.send(2);
    }
}

type Worker = greenroom::Handle<Work, ()>;

/// Two nodes of a net: one with a published worker, and one with its address.
async fn pair() -> (SimNet, Worker, [Node; 2], RemoteAddress<Work>) {
    let net = SimNet::new();
    let shop = node("shop", &net).await;
    let actor = spawn!(worker(_), capacity = 2);
    shop.publish("worker", &actor).unwrap().detach();
    let desk = node("desk", &net).await;
    let far = desk.lookup("worker").await.unwrap();
    (net, actor, [shop, desk], far)
}

#[test]
fn a_reply_beside_that_of_an_ask_goes_on_when_the_ask_has_ended() {
    sim::explore(seeds(20), || async {
        let (_net, _actor, _nodes, far) = pair().await;
        let (reply, answer) = greenroom::reply();
        assert_eq!(far.ask(|own| Work::Both(own, reply)).await, Ok(1));
        assert_eq!(answer.await, Ok(2));

        let (reply, answer) = greenroom::reply();
        let asked = far.ask(|own| Work::Both(reply, own));
        let asked = asked.timeout(Duration::from_millis(500)).await;
        assert_eq!(asked, Err(RemoteAskError::TimedOut));
        assert_eq!(answer.await, Ok(1));
    });
}
