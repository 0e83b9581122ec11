//! The actors of the model, and the nodes that serve them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom::{Context, Handle, sim, spawn};
use greenroom_cluster::{Node, SimNet};

use super::far::{ModelNode, number_of};
use super::ledger::Ledger;
use super::messages::{Note, Numbered, Slip};

/// The number of an actor, which it has once it is published.
type Own = Arc<OnceLock<u64>>;

/// Works for a while, now and then. Rarely it takes so long that links are lost meanwhile.
async fn work() {
    let most = match sim::random() % 100 {
        0 => 3_000_000,
        1..25 => 3000,
        _ => return,
    };
    greenroom::time::sleep(Duration::from_micros(sim::random() % most)).await;
}

async fn recorder(mut cx: Context<Note>, model: ModelNode, own: Own) {
    let ledger = model.ledger.clone();
    let received = |id| ledger.received(id, own.get().copied().unwrap());
    while let Some(note) = cx.recv().await {
        match note {
            Note::Told(id) => received(id),
            Note::Asked(id, reply) => {
                received(id);
                work().await;
                match sim::random() % 8 {
                    0 => drop(reply),
                    _ => reply.send(id.number),
                }
            }
            Note::Passed(id, clerk, reply) => {
                received(id);
                let clerk = model.far(clerk);
                let passed = |own| Slip::Passed(own, id.number, reply);
                let _: Result<bool, _> = match sim::random() % 2 {
                    0 => clerk.tell(passed),
                    _ => clerk.send(passed).await,
                };
            }
            Note::Lent(id, other) => {
                received(id);
                let other = model.far(other);
                // Two recorders that wait for each other would never end.
                for _ in 0..1 + sim::random() % 3 {
                    if other.tell(Note::Told).is_err() {
                        break;
                    }
                    work().await;
                }
            }
        }
        work().await;
    }
}

async fn clerk(mut cx: Context<Slip>, model: ModelNode, own: Own) {
    let ledger = model.ledger;
    let received = |id| ledger.received(id, own.get().copied().unwrap());
    while let Some(slip) = cx.recv().await {
        match slip {
            Slip::Told(id) => received(id),
            Slip::Asked(id, reply) => {
                received(id);
                reply.send(id.number);
            }
            Slip::Passed(id, question, reply) => {
                received(id);
                ledger.passed(question);
                work().await;
                match sim::random() % 8 {
                    0 => drop(reply),
                    _ => reply.send(question),
                }
            }
        }
        work().await;
    }
}

/// Gives an actor its name. Some end soon, and the others with the simulation.
fn publish<M: Numbered>(model: &ModelNode, name: &str, actor: Handle<M, ()>, own: &Own) {
    let published = model.node.publish(name, &actor).unwrap();
    let number = number_of(&published.address());
    own.set(number).unwrap();
    model.ledger.add_actor(number, actor.capacity());
    published.detach();
    let (ledger, ends) = (model.ledger.clone(), sim::random().is_multiple_of(8));
    greenroom::spawn(async move {
        if ends {
            greenroom::time::sleep(Duration::from_millis(sim::random() % 200)).await;
            ledger.stopped(number);
            actor.stop();
        }
        // Longer than all of the test.
        greenroom::time::sleep(Duration::from_secs(6000)).await;
        drop(actor);
    })
    .detach();
}

/// Opens a node with a recorder and a clerk. An older one of its name crashes; its actors go on here,
/// though not in a real crash.
pub async fn serve(net: &SimNet, name: &str, ledger: Ledger) {
    let node = Node::builder(name).net(net);
    let node = node.lease(Duration::from_secs(1 + sim::random() % 5));
    let model = ModelNode::new(node.open().await.unwrap(), ledger);
    let capacity = || [1, 2, 7, 100][sim::random() as usize % 4];
    let own = Own::default();
    // A clerk may have the name of recorders.
    if sim::random().is_multiple_of(6) {
        let actor = spawn!(clerk(_, model.clone(), own.clone()), capacity = capacity());
        publish(&model, Note::NAME, actor, &own);
    } else {
        let actor = match sim::random() % 3 {
            0 => spawn!(recorder(_, model.clone(), own.clone())),
            _ => spawn!(
                recorder(_, model.clone(), own.clone()),
                capacity = capacity()
            ),
        };
        publish(&model, Note::NAME, actor, &own);
    }
    let own = Own::default();
    let actor = spawn!(clerk(_, model.clone(), own.clone()), capacity = capacity());
    publish(&model, Slip::NAME, actor, &own);
}
