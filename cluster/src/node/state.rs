//! What a node knows: its links, its names and those of other nodes, and its streams.
//!
//! - `STATE-1`: a peer receives all names of this node, then each change, in order: both happen under
//!   the lock of the peers.
//! - `STATE-2`: a node has one link to each other node, by its name. A new one ends the old one first.
//! - `STATE-3`: no code of users runs under a lock, and no stream is dropped under one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use event_listener::Event;
use futures_lite::future::{Boxed, or};

use super::looks;
use super::loopback::Loopback;
use super::names::{Peers, is_same_name};
use crate::counts::NodeCounts;
use crate::engine::{LinkEngine, NodeEvent, StopSignal};
use crate::error::{Distance, PublishError};
use crate::limits::Limits;
use crate::link::frame::{ClusterMember, Hello, LARGEST_MEMBER, LinkFrame, Publication};
use crate::link::{ActorInbox, Link, LinkOwner, LinkWire, Outgoing, OutgoingHandle, Target, lock};

pub(crate) struct NodeState {
    /// The hello that this node sends.
    pub(crate) hello: Hello,
    limits: Limits,
    counts: NodeCounts,
    pub(crate) engine: Arc<dyn LinkEngine>,
    peers: Mutex<Peers>,
    /// Why a link was refused the last time.
    refusal: Mutex<Option<String>>,
    targets: Mutex<BTreeMap<Target, Weak<Outgoing>>>,
    /// Notified when a name or a link has come or gone.
    pub(crate) changed: Event,
    /// This state, for streams and links.
    this: Weak<NodeState>,
}

impl NodeState {
    pub(crate) fn new(hello: Hello, limits: Limits, engine: Arc<dyn LinkEngine>) -> Arc<NodeState> {
        Arc::new_cyclic(|this| NodeState {
            hello,
            limits,
            counts: NodeCounts::default(),
            engine,
            peers: Mutex::new(Peers::new()),
            refusal: Mutex::default(),
            targets: Mutex::new(BTreeMap::new()),
            changed: Event::new(),
            this: this.clone(),
        })
    }

    pub(crate) fn peers(&self) -> std::sync::MutexGuard<'_, Peers> {
        lock(&self.peers)
    }

    /// Connects this node with itself, and begins to look at the links.
    pub(crate) fn start(self: &Arc<Self>) {
        let owner: Arc<dyn LinkOwner> = self.clone();
        let wire = Arc::new(Loopback::default());
        let link = Link::new(self.hello.clone(), owner, wire.clone());
        self.peers().own_link = Some(link.clone());
        self.engine.spawn(Box::pin(wire.pass_on(link)));
        let this = Arc::downgrade(self);
        self.engine.spawn(Box::pin(looks::look(this)));
    }

    /// Returns why a node is not to be connected with this one, if that is so.
    pub(crate) fn check_member(&self, member: &ClusterMember) -> Result<(), String> {
        let me = &self.hello.member;
        if member.incarnation == me.incarnation {
            return Err("the address is that of this node".into());
        }
        if is_same_name(&member.name, &me.name) {
            return Err(format!("another node has the name {:?} as well", me.name));
        }
        if !member.fits() {
            let text = "the name and the addresses of the node have more than";
            return Err(format!("{text} {LARGEST_MEMBER} bytes"));
        }
        let peers = self.peers();
        if peers.is_closed {
            return Err("the node is closed".into());
        }
        // One certificate stands for one peer.
        if let Some(other) = peers.other_spelling(&member.name) {
            return Err(format!("the node is connected as {other:?}"));
        }
        drop(peers);
        self.check_room(&member.name)
    }

    /// Returns why there is no room for a link to this node, if that is so.
    pub(crate) fn check_room(&self, node: &str) -> Result<(), String> {
        let peers = self.peers();
        let is_new = peers.link_to(node).is_none();
        if is_new && peers.links() >= self.limits.peers {
            return Err(format!("the node has {} peers already", self.limits.peers));
        }
        Ok(())
    }

    /// Notes that a link was refused.
    pub(crate) fn refused(&self, why: String) {
        *lock(&self.refusal) = Some(why);
        self.counts.refused_links.add();
    }

    pub(crate) fn refusal(&self) -> Option<String> {
        lock(&self.refusal).clone()
    }

    /// Adds a link whose peer has sent its hello. Returns why it is refused otherwise.
    pub(crate) fn up(
        self: &Arc<Self>,
        hello: Hello,
        wire: Arc<dyn LinkWire>,
    ) -> Result<Arc<Link>, String> {
        let member = hello.member.clone();
        self.check_member(&member)?;
        // STATE-2
        if let Some(old) = self.link_to(&member.name) {
            self.down(&old);
        }
        let link = Link::new(hello, self.clone(), wire);
        {
            let mut peers = self.peers();
            if peers.is_closed {
                return Err("the node is closed".into());
            }
            // STATE-1
            for publication in peers.own_publications() {
                link.push(&LinkFrame::Publish(publication).encode());
            }
            peers.add(link.clone());
        }
        self.counts.links.add();
        for stream in self.streams_to(&member) {
            stream.bind(&link);
        }
        self.changed.notify(usize::MAX);
        Ok(link)
    }

    /// Sends all peers what this node knows of each other, so that each can connect with all.
    pub(crate) fn spread_members(&self) {
        let peers = self.peers();
        // A frame for each, so that none is too large for a peer.
        for member in peers.members() {
            peers.broadcast(&LinkFrame::Members(vec![member]).encode());
        }
    }

    /// Ends a link, its streams and its names. Later calls do nothing.
    pub(crate) fn down(&self, link: &Arc<Link>) {
        let removed = self.peers().remove(link);
        link.down();
        if removed {
            // Nothing was lost with a link that both have ended.
            if !link.is_ending() {
                self.counts.lost_links.add();
            }
            self.changed.notify(usize::MAX);
            self.engine.note(NodeEvent::Lost);
        }
    }

    /// Returns the link to a node of this name.
    pub(crate) fn link_to(&self, name: &str) -> Option<Arc<Link>> {
        self.peers().link_to(name)
    }

    /// Returns the streams to this life of a node.
    fn streams_to(&self, member: &ClusterMember) -> Vec<Arc<Outgoing>> {
        let targets = lock(&self.targets);
        let to = targets.iter().filter(|(target, _)| {
            target.incarnation == member.incarnation && *target.node == *member.name
        });
        to.filter_map(|(_, stream)| stream.upgrade()).collect()
    }

    /// Gives an actor a name. Returns its number, and what is stopped when it is forgotten.
    pub(crate) fn publish(
        &self,
        name: &str,
        inbox: Arc<dyn ActorInbox>,
    ) -> Result<(u64, Arc<StopSignal>), PublishError> {
        let published = {
            let mut peers = self.peers();
            let (publication, forgotten) = peers.publish(name, inbox, self.limits.names)?;
            let actor = publication.actor;
            // STATE-1
            peers.broadcast(&LinkFrame::Publish(publication).encode());
            (actor, forgotten)
        };
        self.engine.note(NodeEvent::Named(name));
        self.changed.notify(usize::MAX);
        Ok(published)
    }

    /// Takes the name of an actor away. Streams to it go on, and addresses that are under way may
    /// still open one for a while.
    pub(crate) fn withdraw(&self, actor: u64) {
        if !self.take_name(actor) {
            return;
        }
        let this = self.this.clone();
        self.engine.spawn(Box::pin(async move {
            // Addresses that are under way may open a stream for as long as a silent link lives.
            loop {
                let Some(sleep) = this
                    .upgrade()
                    .map(|this| this.engine.sleep(this.patience()))
                else {
                    return;
                };
                sleep.await;
                if this
                    .upgrade()
                    .is_none_or(|this| this.forget_unless_used(actor))
                {
                    return;
                }
            }
        }));
    }

    /// Takes a name away and notifies all peers. Returns false if it was taken before.
    fn take_name(&self, actor: u64) -> bool {
        let taken = {
            let mut peers = self.peers();
            let taken = peers.withdraw(actor);
            if taken.is_some() {
                peers.broadcast(&LinkFrame::Withdraw { actor }.encode());
            }
            taken
        };
        let Some(name) = taken else { return false };
        self.engine.note(NodeEvent::Named(&name));
        self.changed.notify(usize::MAX);
        true
    }

    /// Forgets an actor, unless a stream to it exists.
    fn forget_unless_used(&self, actor: u64) -> bool {
        let links = self.peers().all_links();
        if links.iter().any(|link| link.has_stream_to(actor)) {
            return false;
        }
        self.forget(actor);
        true
    }

    fn forget(&self, actor: u64) {
        let own = self.peers().forget(actor);
        own.inspect(|own| own.forgotten.stop());
    }

    /// Ends the streams to an actor that has ended, and takes its name away.
    pub(crate) fn actor_ended(&self, actor: u64) {
        self.take_name(actor);
        let links = self.peers().all_links();
        links.iter().for_each(|link| link.actor_ended(actor));
        self.forget(actor);
    }

    /// Returns the kind of the actor of this node that has this name.
    pub(crate) fn own_kind(&self, name: &str) -> Option<String> {
        self.peers().own_kind(name)
    }

    /// Returns the actors that have this name: that of this node first.
    pub(crate) fn holders(&self, name: &str) -> Vec<Target> {
        self.peers().holders(name, &self.hello.member)
    }

    /// Returns a handle of the stream to an actor.
    pub(crate) fn stream_to(&self, mut target: Target) -> OutgoingHandle {
        let own = self.hello.member.incarnation;
        // The address may come from a third node, and the word of its own node counts.
        if let Some(window) = self.peers().window_of(&target, own) {
            target.window = window;
        }
        // The old stream is dropped without the lock (STATE-3).
        let (handle, _old) = {
            let mut targets = lock(&self.targets);
            let old = targets.get(&target).and_then(Weak::upgrade);
            if let Some(handle) = old.as_ref().and_then(Outgoing::handle) {
                return handle;
            }
            let owner: Weak<dyn LinkOwner> = self.this.clone();
            // Another node does not decide how much is kept here.
            let handle = Outgoing::open(target.clone(), self.limits.bytes, owner);
            targets.insert(target, Arc::downgrade(&handle));
            (handle, old)
        };
        let (link, is_closed) = {
            let peers = self.peers();
            (peers.link_of(&handle.target, own), peers.is_closed)
        };
        link.inspect(|link| handle.bind(link));
        // There is no link, or it takes no stream since it is ending.
        if !handle.is_bound() && handle.end_now().is_none() {
            match is_closed {
                true => handle.end(Distance::Lost),
                false => {
                    self.engine.note(NodeEvent::Wanted(&handle.target.node));
                    self.expire(&handle);
                }
            }
        }
        handle
    }

    /// Ends a stream that finds no link to its node for as long as a silent one is not lost.
    fn expire(&self, stream: &Arc<Outgoing>) {
        // Messages may bring many addresses that are dropped at once.
        let ended = stream.end_listener();
        let stream = Arc::downgrade(stream);
        let time = self.engine.sleep(self.patience());
        self.engine.spawn(Box::pin(async move {
            or(ended, time).await;
            if let Some(stream) = stream.upgrade().filter(|stream| !stream.is_bound()) {
                stream.end(Distance::Lost);
            }
        }));
    }

    pub(super) fn lease(&self) -> Duration {
        self.hello.lease()
    }

    /// Sends the goodbye on all links. Nothing comes up any more.
    pub(crate) fn send_bye(&self) -> Vec<Arc<Link>> {
        let mut peers = self.peers();
        peers.is_closed = true;
        let bye = LinkFrame::Bye.encode();
        peers.broadcast(&bye);
        peers.all_links()
    }

    /// Ends all links, and the engine.
    pub(crate) fn shut(&self) {
        let links = self.send_bye();
        links.iter().for_each(|link| self.down(link));
        let own = self.peers().own_link.take();
        own.inspect(|link| link.down());
        // Streams that had no link yet.
        let streams: Vec<_> = {
            let targets = lock(&self.targets);
            targets.values().filter_map(Weak::upgrade).collect()
        };
        streams.iter().for_each(|stream| stream.end(Distance::Lost));
        let own = self.peers().forget_own();
        drop(own);
        self.changed.notify(usize::MAX);
        drop(self.engine.stop());
    }
}

impl std::fmt::Debug for NodeState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeState")
            .field("hello", &self.hello)
            .finish_non_exhaustive()
    }
}

impl LinkOwner for NodeState {
    fn inbox(&self, actor: u64) -> Option<Arc<dyn ActorInbox>> {
        self.peers().inbox(actor)
    }

    fn closed(&self, actor: u64) {
        self.take_name(actor);
    }

    fn peer_published(&self, link: &Arc<Link>, publication: Publication) {
        let most = self.limits.names;
        self.peers().peer_published(link, publication, most);
        self.changed.notify(usize::MAX);
    }

    fn peer_withdrew(&self, link: &Arc<Link>, actor: u64) {
        self.peers().peer_withdrew(link, actor);
        self.changed.notify(usize::MAX);
    }

    fn peer_named(&self, link: &Arc<Link>, members: Vec<ClusterMember>) {
        let most = self.limits.peers;
        let me = &self.hello.member;
        let others = members
            .into_iter()
            .filter(|member| member.name != me.name && member.fits());
        let others: Vec<ClusterMember> = others.take(most).collect();
        let by = &link.peer.member.name;
        let members = &others;
        self.engine.note(NodeEvent::Learnt { by, members });
    }

    fn peer_closed(&self, link: &Arc<Link>) {
        self.down(link);
        let left = NodeEvent::Left(&link.peer.member.name);
        self.engine.note(left);
    }

    fn peer_is_done(&self, link: &Arc<Link>) {
        self.end_unused(link);
    }

    fn peer_goes_on(&self, link: &Arc<Link>) {
        link.go_on();
        let waiting = self.streams_to(&link.peer.member);
        waiting.iter().for_each(|stream| stream.bind(link));
        self.changed.notify(usize::MAX);
    }

    fn outgoing(&self, target: Target) -> OutgoingHandle {
        self.stream_to(target)
    }

    fn forget_target(&self, target: &Target) {
        let mut targets = lock(&self.targets);
        // Another stream may have replaced it meanwhile.
        if targets
            .get(target)
            .is_some_and(|stream| stream.strong_count() == 0)
        {
            targets.remove(target);
        }
    }

    fn spawn(&self, task: Boxed<()>) {
        self.engine.spawn(task);
    }

    fn has_traces(&self) -> bool {
        self.hello.has_traces()
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn counts(&self) -> &NodeCounts {
        &self.counts
    }
}
