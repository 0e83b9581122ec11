//! The error of a lookup.

use std::fmt;
use std::time::Duration;

/// The reason why a name leads to no actor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// No known node has an actor of this name.
    Unknown {
        /// The name.
        name: String,
        /// How long the lookup has waited.
        waited: Duration,
        /// The names of the nodes that were connected at the end.
        nodes: Vec<String>,
        /// Why seeds could not be reached, each as a text that begins with its address.
        seeds: Vec<String>,
    },
    /// Each actor of this name that is known now has messages of another kind. During an upgrade,
    /// one of the right kind may come later.
    WrongKind {
        /// The kind of the lookup.
        ours: String,
        /// The kind of an actor.
        theirs: String,
    },
    /// The node here was closed.
    NodeClosed,
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupError::Unknown {
                name,
                waited,
                nodes,
                seeds,
            } => {
                write!(
                    f,
                    "no actor has the name {name:?}: waited {waited:?}, connected with "
                )?;
                match &nodes[..] {
                    [] => f.write_str("no node")?,
                    nodes => f.write_str(&nodes.join(", "))?,
                }
                seeds.iter().try_for_each(|seed| write!(f, "; {seed}"))
            }
            LookupError::WrongKind { ours, theirs } => {
                write!(
                    f,
                    "the kinds differ: ours is {ours:?}, theirs is {theirs:?}"
                )
            }
            LookupError::NodeClosed => f.write_str("the node is closed"),
        }
    }
}

impl std::error::Error for LookupError {}
