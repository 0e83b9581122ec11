//! `NodeStatus`: what a node does at the moment, for people and for metrics.

use super::NodeState;
use crate::link::{LinkOwner, PeerStatus};

/// What a node does at the moment, and what it has counted since it opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The name of the node.
    pub name: String,
    /// The nodes that are connected, by name.
    pub peers: Vec<PeerStatus>,
    /// Why seeds could not be reached at the last try, each as a text that begins with its address.
    pub unreached: Vec<String>,
    /// The links that were up.
    pub links: u64,
    /// The links that went down again, without those that neither node used.
    pub lost_links: u64,
    /// The links that were refused: another version, a wrong name, too many peers.
    pub refused_links: u64,
    /// Why a link was refused the last time. A connection that ends without a greeting is one too.
    pub last_refusal: Option<String>,
    /// The links that were cut because of a malformed or too large frame.
    pub malformed: u64,
    /// The asks that ended because their node was lost.
    pub lost_asks: u64,
    /// The messages that were no values of their types.
    pub undecodable: u64,
    /// The streams from other nodes that were refused: no such actor, another kind, too many.
    pub refused_streams: u64,
    /// The frames that belong to nothing, and were dropped: those of streams and asks that have
    /// ended, and forged ones.
    pub stray: u64,
}

impl NodeStatus {
    pub(super) fn of(state: &NodeState) -> Self {
        let own = state.hello.member.incarnation;
        let mut links = state.peers().all_links();
        // The link of the node to itself is none to a peer.
        links.retain(|link| link.peer.member.incarnation != own);
        links.sort_by(|a, b| a.peer.member.name.cmp(&b.peer.member.name));
        let peers = links.iter().map(|link| link.status());
        let counts = state.counts();
        NodeStatus {
            name: state.hello.member.name.clone(),
            peers: peers.collect(),
            unreached: state.engine.problems(),
            links: counts.links.get(),
            lost_links: counts.lost_links.get(),
            refused_links: counts.refused_links.get(),
            last_refusal: state.refusal(),
            malformed: counts.malformed.get(),
            lost_asks: counts.lost_asks.get(),
            undecodable: counts.undecodable.get(),
            refused_streams: counts.refused_streams.get(),
            stray: counts.stray.get(),
        }
    }
}
