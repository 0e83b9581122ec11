//! `Lookup`: the search for an actor by its name.
//!
//! It looks again whenever a name or a link has come or gone.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use greenroom::time::Instant;

use super::{Node, NodeState, is_name};
use crate::address::RemoteAddress;
use crate::engine::{LOOKUP_STEP, NodeEvent};
use crate::error::RemoteLookupError;
use crate::remote::Remote;

/// The time that a lookup waits if no other one is set.
const PATIENCE: Duration = Duration::from_secs(5);

/// The search for an actor by its name, from [`Node::lookup`].
///
/// # Errors
/// - [`RemoteLookupError::Unknown`] if no actor of this name is found within 5 s, or within the
///   [time-out](Lookup::timeout). The error names the nodes that were asked and the seeds that could not be
///   reached.
/// - [`RemoteLookupError::WrongKind`] if there are actors of this name and all have another kind: at
///   once, or after a second if nodes that are not connected are asked as well.
/// - [`RemoteLookupError::NodeClosed`] if the node here is closed.
///
/// # Cancel safety
/// Cancel safe: nothing is lost.
#[must_use = "a lookup does nothing unless it is awaited"]
pub struct Lookup<M> {
    node: Node,
    name: String,
    timeout: Duration,
    message: PhantomData<fn(M)>,
}

impl<M> fmt::Debug for Lookup<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl<M: Remote> Lookup<M> {
    pub(super) fn new(node: Node, name: String) -> Self {
        Lookup {
            node,
            name,
            timeout: PATIENCE,
            message: PhantomData,
        }
    }

    /// Sets how long the lookup waits for an actor of this name. The default is 5 s, and zero does
    /// not wait.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn find(self) -> Result<RemoteAddress<M>, RemoteLookupError> {
        let state = self.node.state();
        match look::<M>(state, &self.name) {
            Some(Err(RemoteLookupError::WrongKind { .. })) | None => {}
            Some(found) => return found,
        }
        // Nothing is asked about a name that no actor can have.
        if !is_name(&self.name) {
            return Err(self.timeout(Duration::ZERO).unknown());
        }
        let start = Instant::now();
        let found = greenroom::time::timeout(self.timeout, async {
            loop {
                // Listens before it looks, so that no change in between is missed.
                let listener = state.changed.listen();
                let (name, kind) = (&*self.name, M::KIND);
                let sought = NodeEvent::Sought { name, kind };
                match look::<M>(state, name) {
                    // A node that is not connected may have one of the right kind.
                    Some(Err(wrong @ RemoteLookupError::WrongKind { .. })) => {
                        if start.elapsed() >= LOOKUP_STEP || !state.engine.note(sought) {
                            return Err(wrong);
                        }
                    }
                    Some(found) => return found,
                    None => drop(state.engine.note(sought)),
                }
                let _ = greenroom::time::timeout(LOOKUP_STEP, listener).await;
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => Err(self.unknown()),
        }
    }

    fn unknown(self) -> RemoteLookupError {
        let state = self.node.state();
        let members = state.peers().members();
        let mut nodes: Vec<String> = members.into_iter().map(|member| member.name).collect();
        nodes.sort();
        RemoteLookupError::Unknown {
            name: self.name,
            waited: self.timeout,
            nodes,
            seeds: state.engine.problems(),
        }
    }
}

/// Returns an actor of this name, or why there is none, or `None` if one may come. That of this
/// node counts first, and otherwise one is drawn.
fn look<M: Remote>(
    state: &NodeState,
    name: &str,
) -> Option<Result<RemoteAddress<M>, RemoteLookupError>> {
    if state.peers().is_closed {
        return Some(Err(RemoteLookupError::NodeClosed));
    }
    let holders = state.holders(name);
    let right = holders.iter().filter(|holder| &*holder.kind == M::KIND);
    let right: Vec<_> = right.collect();
    let own = right
        .first()
        .filter(|first| first.incarnation == state.hello.member.incarnation);
    // Turns would need a number for each name.
    let drawn = greenroom::sim::random() as usize % right.len().max(1);
    let chosen = own.or_else(|| right.get(drawn));
    match (chosen, holders.first()) {
        (Some(holder), _) => {
            let stream = state.stream_to((*holder).clone());
            Some(Ok(RemoteAddress::new(stream)))
        }
        (None, Some(other)) => Some(Err(RemoteLookupError::WrongKind {
            ours: M::KIND.into(),
            theirs: other.kind.to_string(),
        })),
        (None, None) => None,
    }
}

impl<M: Remote> IntoFuture for Lookup<M> {
    type Output = Result<RemoteAddress<M>, RemoteLookupError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.find())
    }
}
