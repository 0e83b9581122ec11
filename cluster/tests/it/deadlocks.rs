//! The detection of deadlocks, which knows nothing of other machines.

use greenroom::{AskError, Context, Reply, Runtime, spawn};
use greenroom_cluster::RemoteAddress;

use crate::nodes::{Tally, found, tally};
use crate::support::on_threads;

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

/// Creates a runtime that looks for deadlocks.
fn detecting() -> Runtime {
    let builder = Runtime::builder().detect_deadlocks(true);
    builder.build().unwrap()
}

#[test]
fn deadlock_detection_leaves_asks_of_other_machines_alone() {
    on_threads(|net| {
        let here = detecting();
        let (shop, actor) = here.block_on(async {
            let shop = net.node("shop").await;
            let actor = spawn!(tally(_));
            shop.publish("tally", &actor).unwrap().detach();
            (shop, actor)
        });
        detecting().block_on(async {
            let desk = net.node("desk").await;
            let far = found(&desk, "tally").await;
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
            assert!(matches!(lost, Err(AskError::NoReply(_))), "{lost:?}");
        });
        drop(shop);
    });
}

#[test]
fn deadlock_detection_leaves_senders_to_other_machines_alone() {
    on_threads(|net| {
        detecting().block_on(async {
            let shop = net.node("shop").await;
            let (go, wait) = futures::channel::oneshot::channel::<()>();
            let late = async |cx: Context<Tally>| {
                let _ = wait.await;
                tally(cx).await
            };
            let actor = spawn!(late(_), capacity = 1);
            shop.publish("tally", &actor).unwrap().detach();
            let desk = net.node("desk").await;
            let far = found::<Tally>(&desk, "tally").await;
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
    });
}
