//! `NameWatch`: the names that come and go.
//!
//! It compares what it has reported with what there is, so a slow watcher takes no memory.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Weak;

use super::NodeState;
use crate::engine::NodeEvent;

/// A name that has come or gone, from [`NameWatch::next`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameChange {
    /// The node has an actor of this name.
    Come {
        /// The name.
        name: String,
        /// The kind of its messages.
        kind: String,
        /// The name of the node.
        node: String,
    },
    /// The node has it no more, or is lost.
    Gone {
        /// The name.
        name: String,
        /// The kind of its messages.
        kind: String,
        /// The name of the node.
        node: String,
    },
}

/// Watches names, from [`Node::watch_names`](super::Node::watch_names).
///
/// A name that comes and goes between two calls of [`next`](NameWatch::next) may not be reported.
#[derive(Debug)]
#[must_use = "a watch that is dropped sees nothing"]
pub struct NameWatch {
    state: Weak<NodeState>,
    prefix: String,
    reported: BTreeSet<(String, String, String)>,
    pending: VecDeque<NameChange>,
}

impl NameWatch {
    pub(super) fn new(state: Weak<NodeState>, prefix: String) -> Self {
        let watch = NameWatch {
            state,
            prefix,
            reported: BTreeSet::new(),
            pending: VecDeque::new(),
        };
        watch.note(true);
        watch
    }

    fn note(&self, is_begin: bool) {
        let prefix = &*self.prefix;
        if let Some(state) = self.state.upgrade() {
            state.engine.note(NodeEvent::Watched { prefix, is_begin });
        }
    }

    /// Waits for the next change. Returns `None` when the node is closed.
    ///
    /// The wait does not keep its runtime busy, so it does not count for
    /// [deadlock detection](greenroom::Builder::detect_deadlocks). If others ask an actor that waits
    /// here, it should have a [`KeepAlive`](greenroom::KeepAlive) meanwhile.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost.
    pub async fn next(&mut self) -> Option<NameChange> {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return Some(change);
            }
            let listener = self.state.upgrade()?.changed.listen();
            self.compare()?;
            if self.pending.is_empty() {
                listener.await;
            }
        }
    }

    fn compare(&mut self) -> Option<()> {
        let state = self.state.upgrade()?;
        let names = {
            let peers = state.peers();
            if peers.is_closed {
                return None;
            }
            peers.all(&state.hello.member.name)
        };
        let names = names
            .into_iter()
            .filter(|(name, ..)| name.starts_with(&self.prefix));
        let names: BTreeSet<_> = names.collect();
        // What is gone comes first, so a name that has moved is reported as gone and then as come.
        for (name, kind, node) in self.reported.difference(&names).cloned() {
            self.pending
                .push_back(NameChange::Gone { name, kind, node });
        }
        for (name, kind, node) in names.difference(&self.reported).cloned() {
            self.pending
                .push_back(NameChange::Come { name, kind, node });
        }
        self.reported = names;
        Some(())
    }
}

impl Drop for NameWatch {
    fn drop(&mut self) {
        self.note(false);
    }
}
