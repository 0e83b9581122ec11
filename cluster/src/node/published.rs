//! `Published`: the guard of a name.
//!
//! It keeps neither the actor nor the node.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use super::NodeState;
use super::names::target;
use crate::address::RemoteAddress;
use crate::link::OutgoingHandle;
use crate::link::frame::{Publication, Window};
use crate::remote::Remote;

/// A name that an actor has: dropping this takes it away.
///
/// Addresses that exist elsewhere go on, since the actor does.
#[must_use = "dropping it takes the name away; `detach` keeps the name"]
pub struct Published<M> {
    state: Weak<NodeState>,
    /// The stream of this node to its own actor.
    stream: OutgoingHandle,
    message: PhantomData<fn(M)>,
    keeps: bool,
}

impl<M: Remote> Published<M> {
    pub(super) fn new(state: &Arc<NodeState>, actor: u64, name: &str, window: Window) -> Self {
        let publication = Publication {
            actor,
            name: name.into(),
            kind: M::KIND.into(),
            window,
        };
        let target = target(&state.hello.member, &publication);
        Published {
            state: Arc::downgrade(state),
            stream: state.stream_to(target),
            message: PhantomData,
            keeps: false,
        }
    }

    /// Returns the address under which other nodes reach the actor, to be sent in a message.
    pub fn address(&self) -> RemoteAddress<M> {
        RemoteAddress::new(self.stream.clone())
    }

    /// Keeps the name until the actor ends or the node closes.
    pub fn detach(mut self) {
        self.keeps = true;
    }
}

impl<M> Drop for Published<M> {
    fn drop(&mut self) {
        if let Some(state) = self.state.upgrade().filter(|_| !self.keeps) {
            state.withdraw(self.stream.target.actor);
        }
    }
}

impl<M> fmt::Debug for Published<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").finish_non_exhaustive()
    }
}
