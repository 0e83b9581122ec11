//! What may be in messages and answers, and what is refused.

use greenroom::{AskError, Context, Refusal, Reply, spawn};
use greenroom_cluster::{Distance, Limits, Node, Remote, RemoteAddress, RemoteAskError, RemoteEnd};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::nodes::{Pair, Tally, found, limited_pair, pair, tally};
use crate::support::{Net, everywhere};

#[test]
fn a_refusal_comes_back_as_it_was() {
    everywhere(|net| async move {
        let Pair { far, .. } = &pair(&net).await;
        let refused = Refusal::new("out of paper", "tray 2").with_error_code(503);
        assert_eq!(
            far.ask(Tally::Refuse).await,
            Err(RemoteAskError::Refused(refused))
        );
    });
}

#[test]
fn what_is_too_large_is_told_with_its_size() {
    everywhere(|net| async move {
        let of_shop = Limits {
            frame: 10_000,
            ..Limits::default()
        };
        let Pair { far, .. } = &limited_pair(&net, of_shop, Limits::default()).await;
        let echo = async |size| {
            far.ask(|reply| Tally::Echo(vec![7; size], reply))
                .await
                .map(|echo| echo.len())
        };
        assert_eq!(echo(9_900).await, Ok(9_900));
        let large = echo(20_000).await.unwrap_err();
        let RemoteAskError::TooLarge { bytes, limit } = large else {
            panic!("{large:?}")
        };
        assert!((20_000..20_020).contains(&bytes), "{bytes}");
        assert_eq!(limit, 10_000);
        // The address goes on.
        assert_eq!(echo(100).await, Ok(100));

        // An answer that is too large is reported to the asker.
        for _ in 0..3000 {
            far.send(Tally::Add(1 << 60)).await.unwrap();
        }
        let large = far.ask(Tally::All).await.unwrap_err();
        assert!(
            matches!(large, RemoteAskError::TooLarge { limit: 10_000, .. }),
            "{large:?}"
        );

        // A message comes back, and its reply is refused.
        let (reply, answer) = Reply::pair();
        let not_sent = far.tell(Tally::Echo(vec![7; 20_000], reply)).unwrap_err();
        assert!(matches!(not_sent.why, Distance::TooLarge { .. }));
        assert!(matches!(not_sent.message, Tally::Echo(bytes, _) if bytes.len() == 20_000));
        assert!(matches!(answer.await, Err(AskError::Refused(_))));
    });
}

/// A message whose decoding can fail, panic or take the wrong answer.
#[derive(Serialize, Deserialize)]
enum Odd {
    Fine(#[serde(with = "greenroom_cluster::reply")] Reply<u8>),
    Bad(Fails, #[serde(with = "greenroom_cluster::reply")] Reply<u8>),
    Answer(#[serde(with = "greenroom_cluster::reply")] Reply<Fails>),
    Unencodable(Never),
}

impl Remote for Odd {
    const KIND: &'static str = "odd/1";
}

/// Encoded as what it does when it is decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fails {
    Error,
    Panic,
}

impl Serialize for Fails {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (*self == Fails::Panic).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fails {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match bool::deserialize(deserializer)? {
            true => panic!("broken"),
            false => Err(D::Error::custom("it always fails")),
        }
    }
}

/// A value without bytes.
#[derive(Debug, PartialEq, Deserialize)]
struct Never;

impl Serialize for Never {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it has no bytes"))
    }
}

async fn odd(mut cx: Context<Odd>) {
    while let Some(message) = cx.recv().await {
        match message {
            Odd::Fine(reply) | Odd::Bad(_, reply) => reply.send(42),
            Odd::Answer(reply) => reply.send(Fails::Error),
            Odd::Unencodable(_) => {}
        }
    }
}

async fn odd_pair(net: &Net) -> (Node, Node, greenroom::Handle<Odd, ()>, RemoteAddress<Odd>) {
    let shop = net.node("shop").await;
    let actor = spawn!(odd(_));
    shop.publish("odd", &actor).unwrap().detach();
    let desk = net.node("desk").await;
    let far = found(&desk, "odd").await;
    (shop, desk, actor, far)
}

#[test]
fn a_message_that_cannot_be_decoded_ends_only_its_own_stream() {
    everywhere(|net| async move {
        let (shop, desk, _actor, far) = odd_pair(&net).await;
        let tallies = spawn!(tally(_));
        let _published = shop.publish("tally", &tallies).unwrap();
        let other = found::<Tally>(&desk, "tally").await;
        for fails in [Fails::Error, Fails::Panic] {
            let far = found::<Odd>(&desk, "odd").await;
            let bad = async { far.ask(|reply| Odd::Bad(fails, reply)).await };
            let behind = async { far.ask(Odd::Fine).await };
            let (bad, behind) = futures::join!(bad, behind);
            let text = match fails {
                Fails::Error => "the bytes have no meaning: ",
                Fails::Panic => "the bytes have no meaning: it panicked: broken",
            };
            let bad = bad.unwrap_err();
            assert!(bad.to_string().starts_with(text), "{bad}");
            assert!(
                matches!(behind, Err(RemoteAskError::Undecodable(_))),
                "{behind:?}"
            );
            // The actor may live.
            assert_eq!(far.ended().await, RemoteEnd::Lost);
        }
        drop(far);
        assert_eq!(shop.status().undecodable, 2);
        assert_eq!(other.ask(Tally::Total).await, Ok(0));
        let again = found::<Odd>(&desk, "odd").await;
        assert_eq!(again.ask(Odd::Fine).await, Ok(42));
    });
}

#[test]
fn an_answer_that_cannot_be_decoded_ends_its_ask() {
    everywhere(|net| async move {
        let (_shop, _desk, _actor, far) = odd_pair(&net).await;
        let bad = far.ask(Odd::Answer).await;
        assert!(
            matches!(bad, Err(RemoteAskError::Undecodable(_))),
            "{bad:?}"
        );
        assert_eq!(far.ask(Odd::Fine).await, Ok(42));
    });
}

#[test]
fn a_message_without_bytes_comes_back() {
    everywhere(|net| async move {
        let (_shop, _desk, _actor, far) = odd_pair(&net).await;
        let not_sent = far.tell(Odd::Unencodable(Never)).unwrap_err();
        assert!(
            matches!(not_sent.why, Distance::Unencodable(_)),
            "{not_sent}"
        );
        assert!(matches!(not_sent.message, Odd::Unencodable(Never)));
        assert_eq!(far.ask(Odd::Fine).await, Ok(42));
    });
}

#[test]
fn a_panic_of_a_map_ends_only_its_own_stream() {
    everywhere(|net| async move {
        let Pair {
            shop, desk, far, ..
        } = &pair(&net).await;
        let odd = spawn!(odd(_));
        let mapped = odd.map(|message: Tally| -> Odd {
            match message {
                Tally::Total(_) => panic!("broken"),
                _ => Odd::Fine(Reply::pair().0),
            }
        });
        let _published = shop.publish("mapped", &mapped).unwrap();
        let broken = found::<Tally>(desk, "mapped").await;
        let lost = broken.ask(Tally::Total).await.unwrap_err();
        assert!(matches!(
            lost,
            RemoteAskError::Undecodable(_) | RemoteAskError::NoReply(_)
        ));
        assert_eq!(broken.ended().await, RemoteEnd::Lost);
        assert_eq!(far.ask(Tally::Total).await, Ok(0));
        let again = found::<Tally>(desk, "mapped").await;
        again.send(Tally::Add(1)).await.unwrap();
    });
}

#[test]
fn a_long_refusal_is_cut_off_and_keeps_the_link() {
    everywhere(|net| async move {
        let limits = Limits {
            frame: 5000,
            ..Limits::default()
        };
        let shop = net.node("shop").await;
        let refuse = async |mut cx: Context<Tally>| {
            while let Some(message) = cx.recv().await {
                if let Tally::Total(reply) = message {
                    reply.refuse(Refusal::new("x", "\u{e4}".repeat(1 << 20)));
                }
            }
        };
        let actor = spawn!(refuse(_));
        let _published = shop.publish("tally", &actor).unwrap();
        let desk = net.limited_node("desk", limits).await;
        let far = found::<Tally>(&desk, "tally").await;
        let Err(RemoteAskError::Refused(refusal)) = far.ask(Tally::Total).await else {
            panic!("it refuses");
        };
        assert_eq!(refusal.explanation(), "\u{e4}".repeat(512));
        assert_eq!(desk.status().lost_links, 0);
    });
}
