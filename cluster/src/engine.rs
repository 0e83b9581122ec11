//! What carries the frames between nodes: sockets, or a simulated net.
//!
//! An engine connects with nodes and tells the [`State`](crate::node::State) of its node about links
//! that are up or down. All frames of a node come from one thread of its engine.

mod stop;
mod tasks;
pub(crate) mod tcp;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub(crate) use stop::Stop;
pub(crate) use tasks::Tasks;

use crate::link::frame::Member;

/// A task of an engine.
pub(crate) type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The carrier of one node.
pub(crate) trait Engine: Send + Sync {
    /// Runs a task on the thread of the links.
    fn spawn(&self, task: Job);

    fn sleep(&self, duration: Duration) -> Job;

    /// Hears of nodes that could be connected.
    fn learnt(&self, members: &[Member]);

    /// Hears that a node has closed, so that it is not to be connected again.
    fn left(&self, name: &str);

    /// Hears that a link is down.
    fn lost(&self);

    /// Returns why seeds could not be reached, each as a text that begins with its address.
    fn problems(&self) -> Vec<String>;

    /// Ends all tasks. No link is up any more.
    fn stop(&self);

    /// Waits until all tasks have ended, after `stop`. It listens no more then.
    fn stopped(&self) -> Job;
}
