//! What carries the frames between nodes: sockets, or a simulated net.
//!
//! An engine connects with nodes and reports links that are up or down to the
//! [`NodeState`](crate::node::NodeState) of its node. All frames of a node come from one thread of
//! its engine.

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

    /// Takes what the node has found out about its peers.
    fn note(&self, news: PeerNews<'_>);

    /// Returns why seeds could not be reached, each as a text that begins with its address.
    fn problems(&self) -> Vec<String>;

    /// Reads the certificate anew. Links from now on use it.
    fn renew_identity(&self) -> Result<(), RenewError>;

    /// Ends all tasks, since no link is up any more. The future waits until they have ended. The
    /// engine listens no more then.
    fn stop(&self) -> Boxed<()>;
}

/// What a node has found out about its peers.
pub(crate) enum PeerNews<'a> {
    /// These nodes could be connected.
    Learnt(&'a [ClusterMember]),
    /// The node has closed, and is not to be connected again.
    Left(&'a str),
    /// A link is down.
    Lost,
}

/// A node that is open.
pub(crate) struct OpenNode {
    pub(crate) state: Arc<NodeState>,
    /// Where it listens.
    pub(crate) addresses: Vec<String>,
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
