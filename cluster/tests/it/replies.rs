//! What becomes of replies when an asker is gone, or when a value has several of them.

use std::time::Duration;

use greenroom::{AskError, Context, Overflow, RefusalKind, Reply, actor, spawn, time};
use greenroom_cluster::{Node, Remote, RemoteAddress, RemoteAskError, SimNet};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::support::{node, simulated};

const LONG: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
enum Work {
    /// The first reply is answered at once, and the second one a second later.
    Both(
        #[serde(with = "greenroom_cluster::reply")] Reply<u8>,
        #[serde(with = "greenroom_cluster::reply")] Reply<u8>,
    ),
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
struct Session(
    #[serde(with = "greenroom_cluster::reply")] Reply<u8>,
    #[serde(deserialize_with = "good")] IsGood,
);

fn good<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IsGood, D::Error> {
    match bool::deserialize(deserializer)? {
        true => Ok(true),
        false => Err(D::Error::custom("it is not good")),
    }
}

/// Returns what it has seen: whether replies were wanted, and how its own asks ended.
async fn worker(mut cx: Context<Work>) -> Vec<bool> {
    let mut seen = Vec::new();
    while let Some(message) = cx.recv().await {
        match message {
            Work::Both(first, second) => {
                first.send(1);
                time::sleep(Duration::from_secs(1)).await;
                second.send(2);
            }
            Work::Fill => time::sleep(Duration::from_secs(5)).await,
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

type Worker = greenroom::Handle<Work, Vec<bool>>;

/// Opens two nodes of a net: one with a published worker, and one with its address.
async fn pair(net: &SimNet) -> (Worker, [Node; 2], RemoteAddress<Work>) {
    let shop = node("shop", net).await;
    let actor = spawn!(worker(_), capacity = 2);
    shop.publish("worker", &actor).unwrap().detach();
    let desk = node("desk", net).await;
    let far = desk.lookup("worker").await.unwrap();
    (actor, [shop, desk], far)
}

#[test]
fn a_reply_beside_that_of_an_ask_goes_on_when_the_ask_has_ended() {
    simulated(|net| async move {
        let (_actor, _nodes, far) = pair(&net).await;
        let (reply, answer) = Reply::pair();
        assert_eq!(far.ask(|own| Work::Both(own, reply)).await, Ok(1));
        assert_eq!(answer.await, Ok(2));

        let (reply, answer) = Reply::pair();
        let asked = far.ask(|own| Work::Both(reply, own));
        let asked = asked.timeout(Duration::from_millis(500)).await;
        assert_eq!(asked, Err(RemoteAskError::TimedOut));
        assert_eq!(answer.await, Ok(1));
    });
}

#[test]
fn a_reply_beside_that_of_an_ask_tells_the_cause_of_its_own_loss() {
    simulated(|net| async move {
        for is_first in [true, false] {
            let (actor, _nodes, far) = pair(&net).await;
            // The actor is busy when its node dies.
            far.send(Work::Fill).await.unwrap();
            let (reply, answer) = Reply::pair();
            let asked = far.ask(|own| match is_first {
                true => Work::Both(own, reply),
                false => Work::Both(reply, own),
            });
            let crash = async {
                time::sleep(Duration::from_secs(1)).await;
                net.crash("shop");
            };
            let (asked, ()) = futures::join!(asked.into_future(), crash);
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
        }
    });
}

#[test]
fn a_question_behind_a_full_mailbox_is_not_wanted_when_its_asker_is_gone() {
    simulated(|net| async move {
        let (actor, _nodes, far) = pair(&net).await;
        // One is handled, two are in the mailbox, and one waits for room.
        for _ in 0..4 {
            far.send(Work::Fill).await.unwrap();
            time::sleep(Duration::from_millis(100)).await;
        }
        let look = far.ask(Work::Look).timeout(Duration::from_secs(1)).await;
        assert_eq!(look, Err(RemoteAskError::TimedOut));
        time::sleep(LONG).await;
        actor.stop();
        assert_eq!(actor.join().await.unwrap(), [false]);
    });
}

#[test]
fn an_ask_within_an_answer_ends_when_the_answer_comes_too_late_or_makes_no_sense() {
    simulated(|net| async move {
        let (actor, _nodes, far) = pair(&net).await;
        let second = Duration::from_secs(1);
        net.delay(second..second);
        // The answer is under way when the asker goes.
        let late = far.ask(|reply| Work::Begin(true, reply));
        let late = late.timeout(second * 3 / 2).await;
        assert_eq!(late.unwrap_err(), RemoteAskError::TimedOut);
        let bad = far.ask(|reply| Work::Begin(false, reply)).await;
        assert!(
            matches!(bad, Err(RemoteAskError::Undecodable(_))),
            "{bad:?}"
        );
        time::sleep(LONG).await;
        actor.stop();
        assert_eq!(actor.join().await.unwrap(), [true, true]);
    });
}

#[test]
fn questions_that_a_mailbox_has_not_taken_are_told_as_closed() {
    simulated(|net| async move {
        let (actor, _nodes, far) = pair(&net).await;
        far.send(Work::Fill).await.unwrap();
        time::sleep(Duration::from_millis(100)).await;
        // Two are in the mailbox, one waits for room, and one is behind it.
        let asks = (0..4).map(|n| {
            let far = &far;
            async move {
                time::sleep(Duration::from_millis(100 * n)).await;
                far.ask(Work::Look).await
            }
        });
        let end = async {
            time::sleep(Duration::from_secs(2)).await;
            actor.kill();
        };
        let (asked, ()) = futures::join!(futures::future::join_all(asks), end);
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
        simulated(move |net| async move {
            let shop = node("shop", &net).await;
            let actor = actor(worker).capacity(2).overflow(overflow).spawn();
            shop.publish("worker", &actor).unwrap().detach();
            let desk = node("desk", &net).await;
            let far = desk.lookup("worker").await.unwrap();
            far.send(Work::Fill).await.unwrap();
            time::sleep(Duration::from_millis(100)).await;
            // Two find room. With `Oldest` the last two do.
            let mut besides = Vec::new();
            let asks = (0..4).map(|n| {
                let (beside, answer) = Reply::pair();
                besides.push(answer);
                let far = &far;
                async move {
                    time::sleep(Duration::from_millis(100 * n)).await;
                    far.ask(|own| Work::Both(own, beside)).await
                }
            });
            let asked = futures::future::join_all(asks.collect::<Vec<_>>()).await;
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
