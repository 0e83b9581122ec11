//! The links of a node, and the names that it and its peers have.
//!
//! Each node writes its own names, and the link of a peer has those of the peer. When a link ends,
//! its names go with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::StopSignal;
use crate::error::PublishError;
use crate::link::frame::{ClusterMember, Publication, Window};
use crate::link::{ActorInbox, Link, Target};

/// The bytes of a name or a kind: it is shown to people.
pub(crate) const LONGEST_NAME: usize = 255;

/// Returns whether a node or an actor may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
}

/// The shortest lease: looks at links ten times in it take little processor time. A peer that has
/// a shorter one is looked at as often.
pub(crate) const SHORTEST_LEASE: Duration = Duration::from_millis(500);

/// Returns the target for an actor that a node has published.
pub(crate) fn target(member: &ClusterMember, publication: &Publication) -> Target {
    Target {
        node: member.name.as_str().into(),
        incarnation: member.incarnation,
        actor: publication.actor,
        kind: publication.kind.as_str().into(),
        window: publication.window,
    }
}

/// Returns whether a certificate of one name has the other one too. DNS knows neither case nor a dot
/// at the end.
pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|name| name.trim_end_matches('.'));
    one.eq_ignore_ascii_case(other)
}

pub(crate) struct Peers {
    /// By their names: certificates tell those, and any peer may claim the number of a life.
    peers: BTreeMap<String, Peer>,
    pub(crate) own_link: Option<Arc<Link>>,
    own: Names,
    /// The actors that have a name, or had one and are in use.
    inboxes: BTreeMap<u64, OwnActor>,
    /// The number of the next actor.
    next: u64,
    pub(crate) is_closed: bool,
}

/// An actor of this node.
pub(crate) struct OwnActor {
    inbox: Arc<dyn ActorInbox>,
    /// Stopped when nothing is to be known of it any more.
    pub(crate) forgotten: Arc<StopSignal>,
}

struct Peer {
    link: Arc<Link>,
    names: Names,
    /// The time in which nothing came.
    silent: Duration,
    /// The time in which the link was not used.
    unused: Duration,
}

/// The names of one node.
#[derive(Default)]
struct Names {
    actors: BTreeMap<u64, Publication>,
    by_name: BTreeMap<String, u64>,
}

impl Names {
    /// Adds a name. Returns false if it is taken, or if there are too many.
    fn add(&mut self, publication: Publication, most: usize) -> bool {
        let (name, actor) = (&publication.name, publication.actor);
        let is_new = !self.by_name.contains_key(name) && !self.actors.contains_key(&actor);
        if !is_new || self.actors.len() >= most {
            return false;
        }
        self.by_name.insert(name.clone(), actor);
        self.actors.insert(actor, publication);
        true
    }

    fn remove(&mut self, actor: u64) -> Option<Publication> {
        let removed = self.actors.remove(&actor)?;
        self.by_name.remove(&removed.name);
        Some(removed)
    }

    fn get(&self, name: &str) -> Option<&Publication> {
        self.actors.get(self.by_name.get(name)?)
    }
}

impl Peers {
    pub(crate) fn new() -> Self {
        Peers {
            peers: BTreeMap::new(),
            own_link: None,
            own: Names::default(),
            inboxes: BTreeMap::new(),
            next: 0,
            is_closed: false,
        }
    }

    pub(crate) fn links(&self) -> usize {
        self.peers.len()
    }

    pub(crate) fn add(&mut self, link: Arc<Link>) {
        let peer = Peer {
            link: link.clone(),
            names: Names::default(),
            silent: Duration::ZERO,
            unused: Duration::ZERO,
        };
        self.peers.insert(link.peer.member.name.clone(), peer);
    }

    /// Removes a link. Returns false if it was not here any more.
    pub(crate) fn remove(&mut self, link: &Arc<Link>) -> bool {
        let name = &link.peer.member.name;
        let is_here = self
            .peers
            .get(name)
            .is_some_and(|peer| Arc::ptr_eq(&peer.link, link));
        is_here && self.peers.remove(name).is_some()
    }

    /// Returns all links, with that of the node to itself.
    pub(crate) fn all_links(&self) -> Vec<Arc<Link>> {
        let links = self.peers.values().map(|peer| &peer.link);
        links.chain(&self.own_link).cloned().collect()
    }

    pub(crate) fn link_to(&self, name: &str) -> Option<Arc<Link>> {
        Some(self.peers.get(name)?.link.clone())
    }

    /// Returns the name of a peer that is this one in another spelling.
    pub(crate) fn other_spelling(&self, name: &str) -> Option<&str> {
        let mut others = self.peers.keys().filter(|other| *other != name);
        others
            .find(|other| is_same_name(other, name))
            .map(|other| &**other)
    }

    /// Returns the link to the node of this actor, if it is the same life.
    pub(crate) fn link_of(&self, target: &Target, own: u128) -> Option<Arc<Link>> {
        let link = match target.incarnation == own {
            true => self.own_link.as_ref()?,
            false => &self.peers.get(&*target.node)?.link,
        };
        let ClusterMember {
            name, incarnation, ..
        } = &link.peer.member;
        (**name == *target.node && *incarnation == target.incarnation).then(|| link.clone())
    }

    /// Returns whether a node has a name that begins with `prefix`.
    pub(crate) fn has_name(&self, node: &str, prefix: &str) -> bool {
        let names = self.peers.get(node).map(|peer| &peer.names.by_name);
        let first = names.and_then(|names| names.range(prefix.to_owned()..).next());
        first.is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// Returns the peers at whose actors a stream can begin.
    fn in_use(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values().filter(|peer| !peer.link.is_ending())
    }

    /// Returns what this actor grants to each other node, if its node has published it.
    pub(crate) fn window_of(&self, target: &Target, own: u128) -> Option<Window> {
        let link = self.link_of(target, own)?;
        let names = match target.incarnation == own {
            true => &self.own,
            false => &self.peers.get(&link.peer.member.name)?.names,
        };
        Some(names.actors.get(&target.actor)?.window)
    }

    /// Pushes a frame to each peer.
    pub(crate) fn broadcast(&self, frame: &[u8]) {
        self.peers.values().for_each(|peer| peer.link.push(frame));
    }

    pub(crate) fn members(&self) -> Vec<ClusterMember> {
        self.peers
            .values()
            .map(|peer| peer.link.peer.member.clone())
            .collect()
    }

    pub(crate) fn own_publications(&self) -> Vec<Publication> {
        self.own.actors.values().cloned().collect()
    }

    pub(crate) fn publish(
        &mut self,
        name: &str,
        inbox: Arc<dyn ActorInbox>,
        most: usize,
    ) -> Result<(Publication, Arc<StopSignal>), PublishError> {
        // All is checked first: a refused name changes nothing.
        for text in [name, inbox.kind()] {
            if !is_name(text) {
                let (text, limit) = (text.into(), LONGEST_NAME);
                return Err(PublishError::Length { text, limit });
            }
        }
        if self.is_closed {
            return Err(PublishError::NodeClosed);
        }
        if self.own.by_name.contains_key(name) {
            return Err(PublishError::Taken(name.into()));
        }
        let publication = Publication {
            actor: self.next,
            name: name.into(),
            kind: inbox.kind().into(),
            window: inbox.window(),
        };
        if !self.own.add(publication.clone(), most) {
            return Err(PublishError::TooMany { limit: most });
        }
        // A number is given once, so that old addresses never reach another actor.
        self.next += 1;
        let forgotten = Arc::<StopSignal>::default();
        let actor = OwnActor {
            inbox,
            forgotten: forgotten.clone(),
        };
        self.inboxes.insert(publication.actor, actor);
        Ok((publication, forgotten))
    }

    /// Returns the kind of the own actor that has this name.
    pub(crate) fn own_kind(&self, name: &str) -> Option<String> {
        Some(self.own.get(name)?.kind.clone())
    }

    /// Takes a name away, and returns it. The actor can still be reached.
    pub(crate) fn withdraw(&mut self, actor: u64) -> Option<String> {
        Some(self.own.remove(actor)?.name)
    }

    /// Forgets an actor. No stream to it begins any more.
    pub(crate) fn forget(&mut self, actor: u64) -> Option<OwnActor> {
        self.inboxes.remove(&actor)
    }

    pub(crate) fn forget_own(&mut self) -> BTreeMap<u64, OwnActor> {
        self.own = Names::default();
        std::mem::take(&mut self.inboxes)
    }

    pub(crate) fn inbox(&self, actor: u64) -> Option<Arc<dyn ActorInbox>> {
        Some(self.inboxes.get(&actor)?.inbox.clone())
    }

    /// Adds a name of a peer.
    pub(crate) fn peer_published(
        &mut self,
        link: &Arc<Link>,
        publication: Publication,
        most: usize,
    ) {
        let Some(peer) = self.peers.get_mut(&link.peer.member.name) else {
            return;
        };
        let is_right =
            publication.name.len() <= LONGEST_NAME && publication.kind.len() <= LONGEST_NAME;
        if !is_right || !peer.names.add(publication, most) {
            link.counts().stray.add();
        }
    }

    /// Removes a name of a peer.
    pub(crate) fn peer_withdrew(&mut self, link: &Arc<Link>, actor: u64) {
        if let Some(peer) = self.peers.get_mut(&link.peer.member.name) {
            peer.names.remove(actor);
        }
    }

    /// Returns the actors of this name: that of this node first, then those of nodes by name.
    pub(crate) fn holders(&self, name: &str, me: &ClusterMember) -> Vec<Target> {
        let own = self.own.get(name);
        let own = own.map(|publication| target(me, publication));
        let others = self.in_use().filter_map(|peer| {
            let publication = peer.names.get(name)?;
            Some(target(&peer.link.peer.member, publication))
        });
        let mut others: Vec<Target> = others.collect();
        others.sort_by(|a, b| a.node.cmp(&b.node));
        own.into_iter().chain(others).collect()
    }

    /// Returns all names with their kinds and nodes.
    pub(crate) fn all(&self, me: &str) -> Vec<(String, String, String)> {
        let nodes = self
            .in_use()
            .map(|peer| (&*peer.link.peer.member.name, &peer.names));
        let nodes = nodes.chain([(me, &self.own)]);
        let names = nodes.flat_map(|(node, names)| {
            let actors = names.actors.values();
            actors.map(move |actor| (actor.name.clone(), actor.kind.clone(), node.to_owned()))
        });
        names.collect()
    }

    /// Looks at each link, `elapsed` after the last look. Returns those that are silent for `most`, or
    /// would be before the next look, and those that were not used for `most_unused`.
    pub(crate) fn look(
        &mut self,
        elapsed: Duration,
        most: Duration,
        most_unused: Duration,
    ) -> [Vec<Arc<Link>>; 2] {
        let (mut silent, mut unused) = (Vec::new(), Vec::new());
        for peer in self.peers.values_mut() {
            peer.unused = match peer.link.is_used() {
                true => Duration::ZERO,
                false => peer.unused + elapsed,
            };
            if peer.unused >= most_unused {
                // If the peer uses the link, it has as much time again.
                peer.unused = Duration::ZERO;
                unused.push(peer.link.clone());
            }
            let before = std::mem::take(&mut peer.silent);
            if !peer.link.look() {
                peer.silent = before + elapsed;
            }
            if peer.silent + elapsed >= most {
                silent.push(peer.link.clone());
            }
        }
        [silent, unused]
    }

    /// Returns the shortest lease of this node and its peers.
    pub(crate) fn shortest_lease(&self, own: Duration) -> Duration {
        let leases = self.peers.values().map(|peer| peer.link.peer.lease());
        leases.fold(own, Duration::min).max(SHORTEST_LEASE)
    }
}
