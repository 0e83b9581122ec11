//! Replies in messages: `#[serde(with = "greenroom_cluster::reply")]`.
//!
//! The right to answer leaves the message when it is encoded. It is taken once, so a message that
//! is encoded twice asks once.
//!
//! A [`Reply`] that came from elsewhere travels on, also one of an actor here or of another
//! package, and in a question beside that of the ask. It is refused as
//! [`Unavailable`](greenroom::RefusalKind::Unavailable), with the cause, if its own holder cannot
//! answer: its node is lost, or the message does not come.

use std::sync::Arc;

use greenroom::Reply;
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::link::{Answerer, PendingReply, Scope};

/// Encodes a reply, whose right to answer goes to the other node.
///
/// A reply that was [taken](Reply::take) before is encoded as one without an asker.
///
/// # Errors
/// If it is called outside of a message to another node.
pub fn serialize<T, S>(reply: &Reply<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    T: DeserializeOwned + Send + 'static,
    S: Serializer,
{
    let ask = Scope::with(|scope| {
        let Some(Scope::Encoding { link, cause, asks }) = scope else {
            return None;
        };
        let cause = cause.clone().filter(|cause| cause.is_for(reply));
        // A reply that was taken has no asker, which is the number 0.
        let Some(reply) = reply.take() else {
            return Some(0);
        };
        let ask = link.next_ask();
        asks.push((ask, Box::new(PendingReply { reply, cause })));
        Some(ask)
    });
    ask.ok_or_else(|| S::Error::custom("a reply travels only within a message to another node"))?
        .serialize(serializer)
}

/// Decodes a reply, whose answer goes back to the node that sent it.
///
/// # Errors
/// If it is called outside of a message from another node.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Reply<T>, D::Error>
where
    T: Serialize + Send + 'static,
    D: Deserializer<'de>,
{
    let ask = u64::deserialize(deserializer)?;
    let (reply, answer) = Reply::pair();
    Scope::with(|scope| {
        let Some(Scope::Decoding { link, replies }) = scope else {
            return Err(D::Error::custom(
                "a reply comes only within a message of another node",
            ));
        };
        if ask != 0 {
            // It is armed when all of the message is decoded.
            let answerer = Answerer::new(link.clone(), ask, answer);
            replies.push(Arc::new(answerer));
        }
        Ok(reply)
    })
}
