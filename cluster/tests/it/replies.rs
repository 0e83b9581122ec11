//! What becomes of replies when an asker is gone, or when a value has several of them.

use std::cell::Cell;
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::{Either, FutureExt, Shared, join_all, select};
use greenroom::{AskError, Context, Handle, Overflow, RefusalKind, Reply, spawn, time};
use greenroom_cluster::{Node, Remote, RemoteAddress, RemoteAskError};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::nodes::{Tally, found, published, until};
use crate::support::{Net, everywhere};

const LONG: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
pub enum Work {
    /// The first reply is answered at once, and the second one at `Second`.
    Both(
        #[serde(with = "greenroom_cluster::reply")] Reply<u8>,
        #[serde(with = "greenroom_cluster::reply")] Reply<u8>,
    ),
    Second,
    /// Answered when it is handled, which takes until the gate is open.
    Block(#[serde(with = "greenroom_cluster::reply")] Reply<()>),
    /// Takes room in the mailbox.
    Fill,
    /// Returns whether the reply is wanted.
    Look(#[serde(with = "greenroom_cluster::reply")] Reply<u8>),
    /// Answered with a value that asks back.
    Begin(
        IsGood,
        #[serde(with = "greenroom_cluster::reply")] Reply<Session>,
    ),
}

impl Remote for Work {
    const KIND: &'static str = "work/1";
}

type IsGood = bool;

/// An answer with a reply. It can be decoded if it is good.
#[derive(Debug, Serialize, Deserialize)]
pub struct Session(
    #[serde(with = "greenroom_cluster::reply")] Reply<u8>,
    #[serde(deserialize_with = "good")] IsGood,
);

fn good<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IsGood, D::Error> {
    match bool::deserialize(deserializer)? {
        true => Ok(true),
        false => Err(D::Error::custom("it is not good")),
    }
}

/// What keeps a worker busy until it is opened.
type Gate = Shared<oneshot::Receiver<()>>;

fn gate() -> (oneshot::Sender<()>, Gate) {
    let (opener, gate) = oneshot::channel();
    (opener, gate.shared())
}

/// Returns what it has seen: whether replies were wanted, and how its own asks ended.
async fn worker(mut cx: Context<Work>, gate: Gate) -> Vec<bool> {
    let (mut seen, mut second_replies) = (Vec::new(), Vec::new());
    while let Some(message) = cx.recv().await {
        match message {
            Work::Both(first, second) => {
                first.send(1);
                second_replies.push(second);
            }
            Work::Second => second_replies.drain(..).for_each(|reply| reply.send(2)),
            Work::Block(reply) => {
                reply.send(());
                let _ = gate.clone().await;
            }
            Work::Fill => {}
            Work::Look(reply) => seen.push(reply.is_wanted()),
            Work::Begin(is_good, reply) => {
                let (back, answer) = Reply::pair();
                reply.send(Session(back, is_good));
                let ended = time::timeout(LONG, answer).await;
                seen.push(matches!(ended, Ok(Err(AskError::NoReply(_)))));
            }
        }
    }
    seen
}

pub type Worker = Handle<Work, Vec<bool>>;

/// Opens two nodes of a net: one with this worker, and one with its address.
async fn nodes_with(net: &Net, actor: &Worker) -> ([Node; 2], RemoteAddress<Work>) {
    let shop = net.node("shop").await;
    shop.publish("worker", actor).unwrap().detach();
    let desk = net.node("desk").await;
    let far = found(&desk, "worker").await;
    ([shop, desk], far)
}

/// Opens two nodes: one with a worker that has a mailbox of this capacity.
pub async fn workshop(
    net: impl Into<Net>,
    capacity: usize,
) -> (Worker, oneshot::Sender<()>, [Node; 2], RemoteAddress<Work>) {
    let (opener, gate) = gate();
    let actor = spawn!(worker(_, gate), capacity = capacity);
    let (nodes, far) = nodes_with(&net.into(), &actor).await;
    (actor, opener, nodes, far)
}

#[test]
fn a_reply_beside_that_of_an_ask_goes_on_when_the_ask_has_ended() {
    everywhere(|net| async move {
        let (_actor, _gate, _nodes, far) = workshop(&net, 16).await;
        let (reply, answer) = Reply::pair();
        assert_eq!(far.ask(|own| Work::Both(own, reply)).await, Ok(1));
        far.send(Work::Second).await.unwrap();
        assert_eq!(answer.await, Ok(2));

        let (reply, answer) = Reply::pair();
        let asked = far.ask(|own| Work::Both(reply, own));
        let asked = asked.timeout(Duration::from_millis(100)).await;
        assert_eq!(asked, Err(RemoteAskError::TimedOut));
        assert_eq!(answer.await, Ok(1));
    });
}

#[test]
fn a_reply_beside_that_of_an_ask_tells_the_cause_of_its_own_loss() {
    for is_first in [true, false] {
        everywhere(move |net| async move {
            let (actor, _gate, [shop, _desk], far) = workshop(&net, 2).await;
            // The actor is busy when its node ends.
            far.ask(Work::Block).await.unwrap();
            let (reply, answer) = Reply::pair();
            let asked = far.ask(|own| match is_first {
                true => Work::Both(own, reply),
                false => Work::Both(reply, own),
            });
            let end = async {
                let has_both = || shop.status().peers.iter().any(|peer| peer.answering == 2);
                until(has_both).await;
                net.end(&shop).await;
            };
            let (asked, ()) = futures::join!(asked.into_future(), end);
            assert_eq!(asked, Err(RemoteAskError::Lost));
            let Err(AskError::Refused(why)) = answer.await else {
                panic!("it was not refused");
            };
            let lost = RemoteAskError::Lost.to_string();
            assert_eq!(
                (why.kind(), why.explanation()),
                (RefusalKind::Unavailable, &*lost)
            );
            actor.kill();
            drop(actor.join().await);
        });
    }
}

#[test]
fn a_question_behind_a_full_mailbox_is_not_wanted_when_its_asker_is_gone() {
    everywhere(|net| async move {
        let (actor, gate, [shop, desk], far) = workshop(&net, 2).await;
        let _counter = published(&shop);
        let counter = found::<Tally>(&desk, "tally").await;
        // One is handled, two are in the mailbox, one waits for room, and the question is behind it.
        far.ask(Work::Block).await.unwrap();
        for _ in 0..3 {
            far.send(Work::Fill).await.unwrap();
        }
        let look = far.ask(Work::Look).into_future();
        let is_sent = Box::pin(until(|| desk.status().peers[0].asks == 1));
        match select(look, is_sent).await {
            Either::Left((answer, _)) => panic!("{answer:?}"),
            Either::Right(((), look)) => drop(look),
        }
        // All that was sent before this has come.
        assert_eq!(counter.ask(Tally::Total).await, Ok(0));
        assert_eq!(actor.len(), 2);
        gate.send(()).unwrap();
        let look = far.ask(Work::Look).await;
        assert!(matches!(look, Err(RemoteAskError::NoReply(_))), "{look:?}");
        actor.stop();
        assert_eq!(actor.join().await.unwrap(), [false, true]);
        counter.tell(Tally::Stop).unwrap();
    });
}

#[test]
fn an_ask_within_an_answer_ends_when_the_answer_makes_no_sense() {
    everywhere(|net| async move {
        let (actor, _gate, _nodes, far) = workshop(&net, 2).await;
        let bad = far.ask(|reply| Work::Begin(false, reply)).await;
        assert!(
            matches!(bad, Err(RemoteAskError::Undecodable(_))),
            "{bad:?}"
        );
        actor.stop();
        assert_eq!(actor.join().await.unwrap(), [true]);
    });
}

#[test]
fn questions_that_a_mailbox_has_not_taken_are_told_as_closed() {
    everywhere(|net| async move {
        let (actor, _gate, _nodes, far) = workshop(&net, 2).await;
        far.ask(Work::Block).await.unwrap();
        // Two are in the mailbox, one waits for room, and one is behind it.
        let asks = (0..4).map(|_| far.ask(Work::Look).into_future());
        let end = async {
            until(|| actor.len() == 2).await;
            net.settle().await;
            actor.kill();
        };
        let (asked, ()) = futures::join!(join_all(asks), end);
        let [first, second, third, fourth] = &asked[..] else {
            unreachable!()
        };
        for taken in [first, second] {
            assert!(
                matches!(taken, Err(RemoteAskError::NoReply(_))),
                "{taken:?}"
            );
        }
        assert_eq!([third, fourth], [&Err(RemoteAskError::Closed); 2]);
    });
}

#[test]
fn questions_that_a_full_mailbox_refuses_or_displaces_are_told_as_overloaded() {
    for overflow in [Overflow::Newest, Overflow::Oldest] {
        everywhere(move |net| async move {
            let (opener, gate) = gate();
            let actor = spawn!(worker(_, gate), capacity = 2, overflow = overflow);
            let (_nodes, far) = nodes_with(&net, &actor).await;
            far.ask(Work::Block).await.unwrap();
            // Two find room. With `Oldest` the last two do.
            let ended = Cell::new(0);
            let mut besides = Vec::new();
            let asks = (0..4).map(|_| {
                let (beside, answer) = Reply::pair();
                besides.push(answer);
                let asked = far.ask(|own| Work::Both(own, beside)).into_future();
                asked.inspect(|_| ended.set(ended.get() + 1))
            });
            let asks: Vec<_> = asks.collect();
            let open = async {
                until(|| ended.get() == 2).await;
                opener.send(()).unwrap();
            };
            let (asked, ()) = futures::join!(join_all(asks), open);
            far.send(Work::Second).await.unwrap();
            let refused = match overflow {
                Overflow::Newest => [2, 3],
                _ => [0, 1],
            };
            for (n, (asked, beside)) in asked.into_iter().zip(besides).enumerate() {
                if !refused.contains(&n) {
                    assert_eq!((asked, beside.await), (Ok(1), Ok(2)));
                    continue;
                }
                let (Err(RemoteAskError::Refused(own)), Err(AskError::Refused(other))) =
                    (asked, beside.await)
                else {
                    panic!("question {n} was not refused");
                };
                let kinds = [own.kind(), other.kind()];
                assert_eq!(kinds, [RefusalKind::Overloaded; 2]);
                if overflow == Overflow::Newest {
                    assert!(own.explanation().ends_with("is full"), "{own}");
                }
            }
            // The stream goes on.
            let seen = far.ask(Work::Look).await;
            assert!(matches!(seen, Err(RemoteAskError::NoReply(_))), "{seen:?}");
        });
    }
}
