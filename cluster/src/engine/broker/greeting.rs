//! How a link over a broker begins: by a hello and its answer.
//!
//! The node that greets draws the epoch. Of two nodes that greet each other, both take the epoch of
//! the one with the lower name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::BrokerEngine;
use super::flow::Flow;
use super::links::{PeerLink, UpLink};
use super::packet::{Greeting, Packet};
use super::subject::Token;
use super::wire::BrokerWire;
use crate::link::{LinkOwner, lock};
use crate::node::NodeState;

/// The nodes that may be greeted at the same time.
const MOST_GREETINGS: usize = 1 << 10;

impl BrokerEngine {
    /// Begins to connect with a node, unless that has begun. If the link to it is ending, that begins
    /// afterwards.
    pub(super) fn connect(&self, node: &str) {
        let peer = Token::new(node);
        let epoch = greenroom::sim::random();
        {
            let mut links = lock(&self.links);
            let is_full = links.0.len() >= MOST_GREETINGS && links.0.len() > self.most_peers;
            match links.0.get_mut(&peer) {
                Some(PeerLink::Up(up)) => return up.is_wanted = up.link.is_ending(),
                Some(PeerLink::Greeted { .. }) => return,
                None if peer == self.me || is_full => return,
                None => {}
            }
            let greeted = PeerLink::Greeted { epoch, ticks: 0 };
            links.0.insert(peer.clone(), greeted);
        }
        self.send_hello(&peer, epoch);
        self.work.notify(usize::MAX);
    }

    /// Ends the greeting of a node.
    pub(super) fn forget(&self, node: &str) {
        lock(&self.links).end_greeting(&Token::new(node));
    }

    pub(super) fn send_hello(&self, to: &Token, epoch: u64) {
        if let Some(greeting) = self.greeting() {
            self.send(to, &Packet::Hello { epoch, greeting });
        }
    }

    /// Returns the greeting of this node, or `None` if the node is closed.
    fn greeting(&self) -> Option<Greeting> {
        let state = self.state()?;
        let mut hello = state.hello.clone();
        hello.frame = hello.frame.min(self.largest_frame());
        // The broker tells only of a connection that is there.
        let connection = match self.is_down.load(Ordering::Relaxed) {
            true => String::new(),
            false => self.broker.connection(),
        };
        Some(Greeting { hello, connection })
    }

    /// Takes a hello: the link comes up, unless the own hello counts.
    pub(super) fn greeted(
        self: &Arc<Self>,
        state: &Arc<NodeState>,
        from: &str,
        epoch: u64,
        greeting: Greeting,
    ) {
        let peer = Token::new(from);
        {
            let mut links = lock(&self.links);
            match links.0.get(&peer) {
                // The other node takes the epoch of this one.
                Some(PeerLink::Greeted { .. }) if state.hello.member.name.as_str() < from => return,
                // The welcome was lost, or the hello came twice.
                Some(PeerLink::Up(up)) if up.wire.epoch == epoch => {
                    drop(links);
                    if let Some(greeting) = self.greeting() {
                        self.send(&peer, &Packet::Welcome { epoch, greeting });
                    }
                    return;
                }
                Some(PeerLink::Greeted { .. }) => drop(links.0.remove(&peer)),
                _ => {}
            }
        }
        let welcomed = self
            .greeting()
            .ok_or_else(|| "the node is closed".to_owned());
        let up = welcomed.and_then(|own| Ok((own, self.begin(state, from, epoch, greeting)?)));
        match up {
            Ok((greeting, wire)) => {
                self.send(&peer, &Packet::Welcome { epoch, greeting });
                self.release(&wire);
            }
            Err(why) => {
                state.refused(why.clone());
                self.send(&peer, &Packet::Refused { epoch, why });
            }
        }
    }

    /// Takes the answer to a hello: the link comes up.
    pub(super) fn welcome(
        self: &Arc<Self>,
        state: &Arc<NodeState>,
        from: &str,
        epoch: u64,
        greeting: Greeting,
    ) {
        let peer = Token::new(from);
        match lock(&self.links).0.get(&peer) {
            Some(PeerLink::Greeted { epoch: own, .. }) if *own == epoch => {}
            Some(PeerLink::Up(up)) if up.wire.epoch == epoch => return,
            _ => return self.send(&peer, &Packet::Cut { epoch }),
        }
        match self.begin(state, from, epoch, greeting) {
            Ok(wire) => self.release(&wire),
            Err(why) => {
                lock(&self.links).0.remove(&peer);
                state.refused(why);
                self.send(&peer, &Packet::Cut { epoch });
            }
        }
    }

    /// Brings a link up, whose frames wait until its wire is released.
    fn begin(
        self: &Arc<Self>,
        state: &Arc<NodeState>,
        from: &str,
        epoch: u64,
        greeting: Greeting,
    ) -> Result<Arc<BrokerWire>, String> {
        let Greeting {
            mut hello,
            connection,
        } = greeting;
        // The broker vouches for the subject alone, and not for what a hello says.
        let name = &hello.member.name;
        if name != from {
            return Err(format!("the node {from:?} says that its name is {name:?}"));
        }
        hello.frame = hello.frame.min(self.largest_frame());
        let (peer, largest) = (Token::new(from), state.limits().frame);
        let wire = BrokerWire::new(self, peer.clone(), epoch, largest);
        let link = state.up(hello, wire.clone())?;
        let up = UpLink {
            link,
            wire: wire.clone(),
            flow: Flow::new(),
            connection,
            is_due: false,
            is_blocked: false,
            is_wanted: false,
        };
        self.solve(from);
        let mut links = lock(&self.links);
        links.0.insert(peer.clone(), PeerLink::Up(up));
        if links.grant(&peer) {
            self.posts.queue(&peer);
        }
        Ok(wire)
    }

    fn release(&self, wire: &BrokerWire) {
        if wire.release() {
            self.posts.queue(&wire.peer);
        }
        // It may have been cut before it was in the table.
        if wire.is_cut() {
            self.remove(wire);
        }
    }

    pub(super) fn refused(&self, state: &NodeState, peer: &Token, epoch: u64, why: String) {
        {
            let mut links = lock(&self.links);
            match links.0.get(peer) {
                Some(PeerLink::Greeted { epoch: own, .. }) if epoch == *own || epoch == 0 => {
                    links.0.remove(peer);
                }
                // It has no room for a node that has asked for names.
                None if epoch == 0 => {}
                _ => return,
            }
        }
        self.fail(peer, format!("refused: {why}"));
        state.refused(why);
    }
}
