//! `Node`: a program's part in the net of those that it can reach.
//!
//! A node writes only its own names. Its last clone closes it.

mod builder;
mod looks;
mod lookup;
mod loopback;
mod names;
mod published;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::or;
use greenroom::Address;
use greenroom::time::Instant;

pub use builder::NodeBuilder;
pub use lookup::Lookup;
pub use published::Published;
pub use status::NodeStatus;
pub use watch::{NameChange, NameWatch};

#[cfg(test)]
#[cfg(test)]
pub(crate) use names::LONGEST_NAME;
pub(crate) use names::is_name;
pub(crate) use state::NodeState;

use crate::address::RemoteAddress;
use crate::engine::OpenNode;
use crate::error::{PublishError, RenewError};
use crate::link::frame::Window;
use crate::link::{LinkOwner, TypedInbox};
use crate::remote::Remote;

/// The time that [`Node::close`] gives to frames that wait to be written.
const LAST_FRAMES: Duration = Duration::from_millis(850);

/// The time between two looks whether they are written. A writer needs some milliseconds.
const STEP: Duration = Duration::from_millis(2);

/// The time that it gives to the tasks of the node, besides what the frames leave.
const LAST_TASKS: Duration = Duration::from_millis(100);

/// A program's part in the net of those that it can reach: publishes actors, and finds those of others.
///
/// A clone is another handle of the same node. When the last one is dropped, the node closes as
/// [`close`](Node::close) does, without waiting.
///
/// # What distance changes
/// Nodes that are connected know all names of each other. There is no leader: a name may have
/// several holders, and none is preferred. In a partition both sides go on, and each finds the
/// actors of its own side. So a name is no singleton, and it is no lock.
#[derive(Clone)]
#[must_use = "a node closes when its last handle is dropped"]
pub struct Node {
    inner: Arc<OpenNode>,
}

impl Node {
    /// Returns a builder of a node with this name.
    ///
    /// No two nodes that reach each other have the same name: the later one replaces the links of
    /// the earlier one. At NATS servers neither keeps a link, and the
    /// [status](Node::status) of the earlier one says so. Programs that come and go, such as clients, need names of their own. Names
    /// that differ in upper and lower case, or in a dot at the end, are one name: while one of them
    /// is connected, the other is refused.
    ///
    /// With certificates, the name is to be one of the DNS names in the certificate of the node. A
    /// name such as `*.desk` there stands for `1.desk` and all others.
    pub fn builder(name: impl Into<String>) -> NodeBuilder {
        NodeBuilder::new(name.into())
    }

    fn new(open: OpenNode) -> Node {
        Node {
            inner: Arc::new(open),
        }
    }

    fn state(&self) -> &Arc<NodeState> {
        &self.inner.state
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        &self.state().hello.member.name
    }

    /// Returns the addresses at which the node listens, such as `127.0.0.1:7447`. A port 0 of
    /// [`listen_address`](NodeBuilder::listen_address) has become the real one.
    pub fn listen_addresses(&self) -> &[String] {
        &self.inner.addresses
    }

    /// Gives an actor a name, under which all connected nodes find it.
    ///
    /// It has the name until it ends, a message finds it closed, or the guard is dropped. Neither the
    /// guard nor the node keeps the actor open: it ends with its last address here, so the program
    /// has to hold one. An actor without a capacity takes all that comes, as from senders here: give
    /// it one, so that memory is bounded.
    ///
    /// # Errors
    /// - [`Taken`](PublishError::Taken) if an actor of this node has the name.
    /// - [`Length`](PublishError::Length) if the name or the kind is empty, or longer than 255 bytes.
    /// - [`TooMany`](PublishError::TooMany) if the node has as many [names](crate::Limits::names) as
    ///   it may.
    /// - [`Closed`](PublishError::Closed) and [`NodeClosed`](PublishError::NodeClosed).
    pub fn publish<M: Remote>(
        &self,
        name: &str,
        actor: &Address<M>,
    ) -> Result<Published<M>, PublishError> {
        if actor.is_closed() {
            return Err(PublishError::Closed);
        }
        let limits = self.state().limits();
        let capacity = actor.capacity().map_or(u32::MAX, |capacity| {
            u32::try_from(capacity).unwrap_or(u32::MAX)
        });
        // A sender has no more under way than the mailbox takes: the rest would wait in this node.
        let window = Window {
            messages: limits.messages.min(capacity).max(1),
            bytes: limits.bytes,
        };
        let actor = actor.downgrade();
        let inbox = TypedInbox {
            actor: actor.clone(),
            window,
        };
        let (number, forgotten) = self.state().publish(name, Arc::new(inbox))?;
        let state = Arc::downgrade(self.state());
        // It keeps neither the actor nor the node. It ends with the actor, or once the name was
        // withdrawn and no stream is left.
        self.state().engine.spawn(Box::pin(async move {
            or(actor.closed(), forgotten.wait()).await;
            if let Some(state) = state.upgrade() {
                state.actor_ended(number);
            }
        }));
        Ok(Published::new(self.state(), number, name, window))
    }

    /// Finds an actor by its name, and waits until there is one.
    ///
    /// An actor of this node comes first. Otherwise one of the holders is drawn that are connected.
    /// With `nats`, one that answers is connected if none is.
    pub fn lookup<M: Remote>(&self, name: impl Into<String>) -> Lookup<M> {
        Lookup::new(self.clone(), name.into())
    }

    /// Returns all actors that have the name and this kind now: that of this node first, then those
    /// of connected nodes in the order of the names of the nodes.
    ///
    /// With `nats`, only nodes that talk are connected: while a [watch](Node::watch_names) of the name
    /// exists, all that hold it are, as far as the [limit](crate::Limits::peers) allows.
    pub fn all<M: Remote>(&self, name: &str) -> Vec<RemoteAddress<M>> {
        let holders = self.state().holders(name);
        let right = holders
            .into_iter()
            .filter(|holder| &*holder.kind == M::KIND);
        let streams = right.map(|holder| self.state().stream_to(holder));
        streams.map(RemoteAddress::new).collect()
    }

    /// Watches the names that begin with `prefix`, of all nodes. It begins with those that exist.
    ///
    /// ```
    /// # use greenroom::{Context, spawn};
    /// # use greenroom_cluster::{NameChange, Node, Remote};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Line(String);
    /// # impl Remote for Line {
    /// #     const KIND: &'static str = "line/1";
    /// # }
    /// # async fn log(mut cx: Context<Line>) {
    /// #     while cx.recv().await.is_some() {}
    /// # }
    /// # greenroom::run(async {
    /// let node = Node::builder("shop").open().await?;
    /// let mut watch = node.watch_names("log/");
    /// let log = spawn!(log(_));
    /// let published = node.publish("log/1", &log)?;
    /// assert!(matches!(watch.next().await, Some(NameChange::Come { name, .. }) if name == "log/1"));
    /// drop(published);
    /// assert!(matches!(watch.next().await, Some(NameChange::Gone { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn watch_names(&self, prefix: impl Into<String>) -> NameWatch {
        NameWatch::new(Arc::downgrade(self.state()), prefix.into())
    }

    /// Reads certificate, key and authority anew, from the files that
    /// [`identity`](NodeBuilder::identity) names. Links from now on use them. Others go on.
    ///
    /// # Errors
    /// If a file cannot be used, all stays as it was. A node without certificates has none to renew. A
    /// node at NATS servers reads its files for each connection, and this only tells whether they are
    /// there.
    pub fn renew_identity(&self) -> Result<(), RenewError> {
        (self.inner.renew)()
    }

    /// Returns what the node does at the moment, and what it has counted.
    pub fn status(&self) -> NodeStatus {
        NodeStatus::of(self.state())
    }

    /// Closes the node: notifies all others, and waits until that is written, at most a second.
    ///
    /// It listens no more then, so that another node can have its addresses.
    /// All addresses of other nodes are then [lost](crate::Distance::Lost). Actors go on.
    ///
    /// # Cancel safety
    /// Dropping the future closes the node without waiting when its last clone is dropped.
    pub async fn close(self) {
        let state = self.state();
        let links = state.send_bye();
        // A dead link takes all the time.
        let start = Instant::now();
        while start.elapsed() < LAST_FRAMES && links.iter().any(|link| link.status().backlog > 0) {
            greenroom::time::sleep(STEP).await;
        }
        state.shut();
        let left = (LAST_FRAMES + LAST_TASKS).saturating_sub(start.elapsed());
        let _ = greenroom::time::timeout(left, state.engine.stop()).await;
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        f.debug_struct("Node")
            .field("name", &name)
            .finish_non_exhaustive()
    }
}
