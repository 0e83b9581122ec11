//! What carries the frames between nodes: sockets, a broker, or a simulated net.
//!
//! An engine connects with nodes and reports links that are up or down to the
//! [`NodeState`](crate::node::NodeState) of its node. All frames of a node come from one thread of
//! its engine.

pub(crate) mod broker;
#[cfg(feature = "nats")]
pub(crate) mod nats;
#[cfg(feature = "sockets")]
pub(crate) mod tcp;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_executor::Executor;
use event_listener::Event;
use futures_lite::future::{Boxed, or};

use crate::error::RenewError;
use crate::link::frame::ClusterMember;
use crate::node::NodeState;

/// The carrier of one node.
pub(crate) trait LinkEngine: Send + Sync {
    /// Runs a task on the thread of the links.
    fn spawn(&self, task: Boxed<()>);

    fn sleep(&self, duration: Duration) -> Boxed<()>;

    /// Takes what the node has found out, or looks for. Returns whether the engine asks nodes that are
    /// not connected, and of a link that is unused, whether it may end.
    fn note(&self, event: NodeEvent<'_>) -> bool;

    /// Returns why nodes could not be reached, each as a text that begins with where that was tried.
    fn problems(&self) -> Vec<String>;

    /// Ends all tasks, since no link is up any more. The future waits until they have ended. The
    /// engine listens no more then.
    fn stop(&self) -> Boxed<()>;
}

/// What a node has found out, or looks for.
pub(crate) enum NodeEvent<'a> {
    /// A peer says that these nodes can be connected.
    #[cfg_attr(
        not(feature = "sockets"),
        expect(dead_code, reason = "nodes at a broker are connected when they talk")
    )]
    Learnt {
        by: &'a str,
        members: &'a [ClusterMember],
    },
    /// The node has closed, and is not to be connected again.
    Left(&'a str),
    /// A link is down.
    Lost,
    /// Neither addresses nor asks use the link to this node.
    Unused(&'a str),
    /// There is an address of an actor on this node, and no link to it.
    Wanted(&'a str),
    /// A lookup waits for an actor of this name and kind, which an actor may have. It says so each
    /// [`LOOKUP_STEP`].
    Sought { name: &'a str, kind: &'a str },
    /// The names with this prefix are watched once more, or once less.
    Watched { prefix: &'a str, is_begin: bool },
    /// This node has given a name, or taken it away.
    Named(&'a str),
}

/// The time after which a lookup says again what it waits for.
pub(crate) const LOOKUP_STEP: Duration = Duration::from_secs(1);

/// A node that is open.
pub(crate) struct OpenNode {
    pub(crate) state: Arc<NodeState>,
    /// Where it listens.
    pub(crate) addresses: Vec<String>,
    /// Reads the certificate anew. Links from now on use it.
    pub(crate) renew: Renew,
}

impl Drop for OpenNode {
    /// Closes the node, also if the call that has opened it was dropped.
    fn drop(&mut self) {
        self.state.shut();
    }
}

pub(crate) type Renew = Box<dyn Fn() -> Result<(), RenewError> + Send + Sync>;

/// Returns what a node without a certificate does to renew it.
pub(crate) fn no_certificate() -> Renew {
    Box::new(|| Err(RenewError::new("", "the node has no certificate")))
}

/// A state that begins once and stays: a task that waits for it afterwards goes on at once.
#[derive(Default)]
pub(crate) struct StopSignal {
    is_stopped: AtomicBool,
    event: Event,
}

impl StopSignal {
    pub(crate) fn stop(&self) {
        // Pairs with the load in `is_stopped`: a waiter that finds it false is notified.
        self.is_stopped.store(true, Ordering::SeqCst);
        self.event.notify(usize::MAX);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Waits until it is stopped.
    pub(crate) async fn wait(&self) {
        loop {
            let listener = self.event.listen();
            if self.is_stopped() {
                return;
            }
            listener.await;
        }
    }
}

/// What runs on the thread of the links, until the engine is stopped.
///
/// One thread or one task of a simulation runs all of them, so none runs during another one.
#[derive(Default)]
pub(crate) struct Tasks {
    executor: Executor<'static>,
    pub(crate) stop: Arc<StopSignal>,
    ended: Arc<StopSignal>,
}

impl Tasks {
    /// Adds a task, which ends when the engine is stopped.
    pub(crate) fn spawn(&self, task: Boxed<()>) {
        let stop = self.stop.clone();
        self.executor
            .spawn(async move { or(stop.wait(), task).await })
            .detach();
    }

    /// Adds a task that ends by itself when the engine is stopped.
    pub(crate) fn spawn_last(&self, task: Boxed<()>) {
        self.executor.spawn(task).detach();
    }

    /// Runs all tasks until the engine is stopped, and then until each of them has ended.
    pub(crate) async fn run(&self) {
        self.executor.run(self.stop.wait()).await;
        while !self.executor.is_empty() {
            self.executor.tick().await;
        }
        self.ended.stop();
    }

    /// Waits until all tasks have ended.
    pub(crate) fn ended(&self) -> Boxed<()> {
        let ended = self.ended.clone();
        Box::pin(async move { ended.wait().await })
    }
}
