//! `RemoteAddress`: sends messages to an actor of another node.
//!
//! An address and its clones share one stream, so their messages arrive in the order in which they
//! were accepted.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use greenroom::{Reply, Runtime};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ask::RemoteAsk;
use crate::error::{Distance, NotSent};
use crate::link::frame::Window;
use crate::link::{Outgoing, OutgoingHandle, Scope, Target};
use crate::node::is_name;
use crate::remote::Remote;

/// Sends messages to an actor of another node.
///
/// It comes from [`Node::lookup`](crate::Node::lookup), or within a message: it can be encoded and
/// decoded. Two addresses are equal if they lead to the same [publication](crate::Node::publish).
/// It keeps the actor neither open nor alive.
///
/// # What is promised
/// - The actor handles a prefix of the messages that this address has accepted, in order, and each
///   at most once. Its clones and all other addresses here that are equal count as the same.
/// - `Ok` of [`tell`](Self::tell) and [`send`](Self::send): the message was accepted here. Whether
///   it was handled, only an answer shows.
/// - When the node is lost, the address is [lost](crate::Distance::Lost) for ever, also if the node
///   comes back. A new lookup begins anew. Nothing that was sent before is handled after the first
///   message of the new address.
/// - At most the [capacity](greenroom::Address::capacity) of a bounded actor is under way from each
///   node, for each of its names. Other limits are in [`Limits`](crate::Limits).
///
/// # After a loss
/// A client that goes on looks the actor up again:
///
/// ```
/// # use greenroom_cluster::{RemoteLookupError, Node, Remote, RemoteAddress};
/// /// Returns the address that is known, or a new one if it is of no use any more.
/// async fn fresh<M: Remote>(
///     node: &Node,
///     known: Option<RemoteAddress<M>>,
/// ) -> Result<RemoteAddress<M>, RemoteLookupError> {
///     match known.filter(|far| far.end_now().is_none()) {
///         Some(far) => Ok(far),
///         None => node.lookup("tally").await,
///     }
/// }
/// ```
///
/// An actor that must not wait takes `node.all::<M>("tally").into_iter().next()` for each message.
/// [`all`](crate::Node::all) looks only at names that are known here: once at each connected node,
/// and under a lock. The actor keeps the address until the next one is here. Otherwise each message
/// opens a stream and closes it.
pub struct RemoteAddress<M> {
    stream: OutgoingHandle,
    message: PhantomData<fn(M)>,
}

/// What has become of an actor on another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemoteEnd {
    /// Its node says that it has ended, or that there is no such actor: its name may have been taken
    /// away before the address came. That is final for the address.
    Ended,
    /// The address is of no use any more, and the actor may live: its node is out of reach, or did
    /// not understand a message.
    Lost,
}

impl RemoteEnd {
    /// Returns what has become of an actor to which nothing more can be sent for this reason.
    fn of(why: &Distance) -> Self {
        match why {
            Distance::Closed | Distance::Unknown => RemoteEnd::Ended,
            _ => RemoteEnd::Lost,
        }
    }
}

impl<M: Remote> RemoteAddress<M> {
    pub(crate) fn new(stream: OutgoingHandle) -> Self {
        RemoteAddress {
            stream,
            message: PhantomData,
        }
    }

    /// Sends a message without waiting.
    ///
    /// # Errors
    /// Returns the message, with the reason why it was not sent.
    /// [`Full`](crate::Distance::Full) means that as much as the actor grants is under way.
    ///
    /// # Panics
    /// As the `Serialize` of the message. Its replies are then dropped.
    pub fn tell(&self, message: M) -> Result<(), NotSent<M>> {
        let permit = match self.stream.try_permit() {
            Ok(permit) => permit,
            Err(why) => return Err(NotSent { message, why }),
        };
        match Outgoing::send(permit, &message, None) {
            Ok(_) => Ok(()),
            Err(why) => Err(NotSent { message, why }),
        }
    }

    /// Sends a message, and waits until it is accepted here. Senders wait in order.
    ///
    /// # Errors
    /// Returns the message, with the reason why it was not sent.
    ///
    /// # Panics
    /// As [`tell`](Self::tell).
    ///
    /// # Cancel safety
    /// Dropping the future drops the message if it was not accepted, and leaves the line.
    pub async fn send(&self, message: M) -> Result<(), NotSent<M>> {
        // As in an ask: the credit comes from another machine.
        let _hold = Runtime::try_current().map(|runtime| runtime.keep_alive());
        let permit = match self.stream.permit().await {
            Ok(permit) => permit,
            Err(why) => return Err(NotSent { message, why }),
        };
        match Outgoing::send(permit, &message, None) {
            Ok(_) => Ok(()),
            Err(why) => Err(NotSent { message, why }),
        }
    }

    /// Asks the actor, and waits for the answer.
    ///
    /// `question` makes the message from a reply. It is called when the message can be sent. The
    /// field of the reply needs `#[serde(with = "greenroom_cluster::reply")]`.
    ///
    /// ```
    /// # use greenroom::{Context, Reply, spawn};
    /// # use greenroom_cluster::{Node, Remote};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Double(u32, #[serde(with = "greenroom_cluster::reply")] Reply<u32>);
    ///
    /// impl Remote for Double {
    ///     const KIND: &'static str = "double/1";
    /// }
    ///
    /// async fn doubler(mut cx: Context<Double>) {
    ///     while let Some(Double(number, reply)) = cx.recv().await {
    ///         reply.send(2 * number);
    ///     }
    /// }
    ///
    /// # greenroom::run(async {
    /// let node = Node::builder("here").open().await?;
    /// let doubler = spawn!(doubler(_));
    /// let _published = node.publish("doubler", &doubler)?;
    ///
    /// let far = node.lookup("doubler").await?;
    /// assert_eq!(far.ask(|reply| Double(21, reply)).await?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn ask<T, F>(&self, question: F) -> RemoteAsk<'_, M, T, F>
    where
        F: FnOnce(Reply<T>) -> M,
    {
        RemoteAsk::new(&self.stream, question)
    }

    /// Returns what has become of the actor, if [`ended`](Self::ended) would return at once.
    pub fn end_now(&self) -> Option<RemoteEnd> {
        self.stream.end_now().map(|why| RemoteEnd::of(&why))
    }

    /// Waits until the actor has ended, or its node is lost.
    ///
    /// A killed process is noticed at once, since its sockets are closed. At NATS servers that is so if
    /// the account of the nodes receives which connections end. A node that is silent is lost after
    /// 1.5 times its [lease](crate::NodeBuilder::lease).
    ///
    /// The wait does not keep its runtime busy, so it does not count for
    /// [deadlock detection](greenroom::Builder::detect_deadlocks). If others ask an actor that waits
    /// here, it should have a [`KeepAlive`](greenroom::KeepAlive) meanwhile.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost.
    ///
    /// # In an actor
    /// [`on_return`](greenroom::Context::on_return) delivers the end as a message, and keeps the
    /// actor open until then:
    ///
    /// ```
    /// use greenroom::{Context, Fault};
    /// use greenroom_cluster::{Remote, RemoteAddress, RemoteEnd};
    ///
    /// enum Message {
    ///     Ended(Result<RemoteEnd, Fault>),
    /// }
    ///
    /// async fn front<M: Remote>(mut cx: Context<Message>, far: RemoteAddress<M>) {
    ///     let watched = far.clone();
    ///     cx.on_return(async move { watched.ended().await }, Message::Ended);
    ///     while let Some(Message::Ended(end)) = cx.recv().await {
    ///         println!("the actor on {}: {end:?}", far.node());
    ///     }
    /// }
    /// ```
    pub async fn ended(&self) -> RemoteEnd {
        RemoteEnd::of(&self.stream.ended().await)
    }

    /// Returns the name of the actor's node.
    pub fn node(&self) -> &str {
        &self.stream.target.node
    }
}

impl<M> RemoteAddress<M> {
    /// Returns what identifies the actor: its node and the life of that, and its number there.
    fn key(&self) -> (&str, u128, u64) {
        let target = &self.stream.target;
        (&target.node, target.incarnation, target.actor)
    }
}

impl<M> Clone for RemoteAddress<M> {
    fn clone(&self) -> Self {
        RemoteAddress {
            stream: self.stream.clone(),
            message: PhantomData,
        }
    }
}

impl<M> PartialEq for RemoteAddress<M> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<M> Eq for RemoteAddress<M> {}

impl<M> Hash for RemoteAddress<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl<M> fmt::Debug for RemoteAddress<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target {
            node, actor, kind, ..
        } = &self.stream.target;
        f.debug_struct("RemoteAddress")
            .field("node", node)
            .field("actor", actor)
            .field("kind", kind)
            .finish_non_exhaustive()
    }
}

/// An address as it travels.
#[derive(Serialize, Deserialize)]
struct WireAddress {
    node: String,
    incarnation: u128,
    actor: u64,
    window: Window,
}

impl<M> Serialize for RemoteAddress<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let target = &self.stream.target;
        let wire = WireAddress {
            node: target.node.to_string(),
            incarnation: target.incarnation,
            actor: target.actor,
            window: target.window,
        };
        wire.serialize(serializer)
    }
}

/// Decodes an address within a message from another node. It fails elsewhere.
impl<'de, M: Remote> Deserialize<'de> for RemoteAddress<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = WireAddress::deserialize(deserializer)?;
        let owner = Scope::with(|scope| match scope {
            Some(Scope::Decoding { link, .. }) => Some(link.owner().clone()),
            _ => None,
        });
        let outside = "an address comes only within a message of another node";
        let owner = owner.ok_or_else(|| D::Error::custom(outside))?;
        if !is_name(&wire.node) {
            return Err(D::Error::custom("no node has a name of this length"));
        }
        let target = Target {
            node: wire.node.into(),
            incarnation: wire.incarnation,
            actor: wire.actor,
            kind: M::KIND.into(),
            window: wire.window,
        };
        Ok(RemoteAddress::new(owner.outgoing(target)))
    }
}
