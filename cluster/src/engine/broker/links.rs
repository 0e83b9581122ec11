//! The links of a node over a broker: what comes over them, and how they end.
//!
//! A link has an epoch, a number that the node which greets draws. Packets of another epoch are
//! answered with [`Packet::Cut`], so an end that still has an old link loses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::flow::{BUDGET, Flow, FlowError};
use super::packet::{BatchNumbers, HEAD, Packet, PacketError};
use super::posts::Post;
use super::subject::{PacketSubject, Token, is_question, sender};
use super::wire::{BrokerWire, whole_frames};
use super::{BrokerEngine, TICK};
use crate::engine::NodeEvent;
use crate::link::frame::{LENGTH, VERSION, first};
use crate::link::{Link, LinkOwner, lock};
use crate::node::NodeState;

/// The ticks after which a node that has not answered is given up: 3 s, less than a lookup waits.
const PATIENCE: u32 = 30;

#[derive(Default)]
pub(super) struct Links(pub(super) BTreeMap<Token, PeerLink>);

pub(super) enum PeerLink {
    /// This node has sent a hello, so many ticks ago.
    Greeted {
        epoch: u64,
        ticks: u32,
    },
    Up(UpLink),
}

pub(super) struct UpLink {
    pub(super) link: Arc<Link>,
    pub(super) wire: Arc<BrokerWire>,
    pub(super) flow: Flow,
    pub(super) connection: String,
    /// Whether the numbers are to be sent although there are no frames.
    pub(super) is_due: bool,
    /// Whether frames wait for a grant.
    pub(super) is_blocked: bool,
    /// Whether there is to be another link once this one has ended.
    pub(super) is_wanted: bool,
}

impl UpLink {
    /// Returns whether numbers are to be sent at the next tick.
    fn has_work(&self) -> bool {
        self.flow.is_under_way() || self.is_blocked
    }
}

impl Links {
    /// Returns the link of this epoch.
    pub(super) fn up(&mut self, peer: &Token, epoch: u64) -> Option<&mut UpLink> {
        match self.0.get_mut(peer)? {
            PeerLink::Up(up) if up.wire.epoch == epoch => Some(up),
            _ => None,
        }
    }

    fn all_up(&self) -> impl Iterator<Item = &UpLink> {
        self.0.values().filter_map(|link| match link {
            PeerLink::Up(up) => Some(up),
            PeerLink::Greeted { .. } => None,
        })
    }

    pub(super) fn has_work(&self) -> bool {
        self.0.values().any(|link| match link {
            PeerLink::Up(up) => up.has_work(),
            PeerLink::Greeted { .. } => true,
        })
    }

    /// Takes the link of this wire out, if it is there.
    fn take(&mut self, wire: &BrokerWire) -> Option<PeerLink> {
        self.up(&wire.peer, wire.epoch)?;
        self.0.remove(&wire.peer)
    }

    /// Ends the greeting of a node.
    pub(super) fn end_greeting(&mut self, peer: &Token) {
        if matches!(self.0.get(peer), Some(PeerLink::Greeted { .. })) {
            self.0.remove(peer);
        }
    }

    /// Grants the peer of this link its share. Returns whether the numbers are due.
    pub(super) fn grant(&mut self, peer: &Token) -> bool {
        let (mut links, mut total) = (0, 0);
        for up in self.all_up() {
            links += 1;
            total += up.flow.outstanding();
        }
        match self.0.get_mut(peer) {
            Some(PeerLink::Up(up)) => {
                let others = total - up.flow.outstanding();
                let is_due = up.flow.grant(BUDGET / links, others);
                up.is_due |= is_due;
                is_due
            }
            _ => false,
        }
    }
}

impl BrokerEngine {
    pub(super) fn send(&self, to: &Token, packet: &Packet) {
        let subject = PacketSubject::To { to, from: &self.me };
        self.posts.push(subject.text(), packet.encode(0));
    }

    /// Returns the bytes of the largest frame that the server takes in a batch, without its length.
    pub(super) fn largest_frame(&self) -> u32 {
        let bytes = self.broker.max_payload().saturating_sub(HEAD + LENGTH);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Takes a packet. The server vouches for the sender, who is in the subject.
    pub(crate) fn arrived(self: &Arc<Self>, subject: &str, payload: &[u8]) {
        let (Some(from), Some(state)) = (sender(subject), self.state()) else {
            return;
        };
        let peer = Token::new(&from);
        if peer == self.me {
            // A node does not receive what it publishes itself.
            let why = "another node of this name is at the broker".to_owned();
            self.fail(&peer, why.clone());
            return state.refused(why);
        }
        match Packet::decode(payload) {
            Ok((Packet::Hello { epoch, greeting }, _)) => {
                self.greeted(&state, &from, epoch, greeting);
            }
            Ok((Packet::Welcome { epoch, greeting }, _)) => {
                self.welcome(&state, &from, epoch, greeting);
            }
            Ok((Packet::Refused { epoch, why }, _)) => self.refused(&state, &peer, epoch, why),
            Ok((Packet::Batch { epoch, numbers }, frames)) => {
                self.batch(&state, &peer, epoch, numbers, frames);
            }
            Ok((Packet::Numbers { epoch, numbers }, _)) => {
                self.numbers(&state, &peer, epoch, numbers);
            }
            Ok((Packet::Cut { epoch }, _)) => {
                let link = lock(&self.links).up(&peer, epoch).map(|up| up.link.clone());
                link.inspect(|link| state.down(link));
            }
            Ok((Packet::Find { name }, _)) => self.answer_find(&state, &peer, &name),
            Ok((Packet::Watch { prefix }, _)) => self.answer_watch(&state, &peer, &prefix),
            Ok((Packet::Holds { name, kind }, _)) => self.found(&from, &name, &kind),
            Err(PacketError::Version { theirs, is_hello }) => {
                self.other_version(&state, &peer, theirs, is_hello, is_question(subject));
            }
            Err(PacketError::OfServer) => {}
            Err(PacketError::Malformed) => state.counts().malformed.add(),
        }
    }

    /// Takes a packet of another version. A node that has greeted or asked learns of this one.
    fn other_version(
        &self,
        state: &NodeState,
        peer: &Token,
        theirs: u16,
        is_hello: bool,
        is_question: bool,
    ) {
        let why = format!("the versions differ: ours is {VERSION}, theirs is {theirs}");
        lock(&self.links).end_greeting(peer);
        self.fail(peer, why.clone());
        if is_hello {
            state.refused(why.clone());
        }
        if is_hello || is_question {
            self.send(peer, &Packet::Refused { epoch: 0, why });
        }
    }

    /// Sends a packet to a node that has asked for names.
    pub(super) fn answer(&self, to: &Token, name: &str, kind: &str) {
        let (name, kind) = (name.into(), kind.into());
        self.send(to, &Packet::Holds { name, kind });
    }

    pub(super) fn remove(&self, wire: &BrokerWire) {
        let removed = lock(&self.links).take(wire);
        drop(removed);
    }

    /// Takes frames, if all before them have come.
    fn batch(
        &self,
        state: &NodeState,
        peer: &Token,
        epoch: u64,
        numbers: BatchNumbers,
        frames: &[u8],
    ) {
        let taken = self.change(peer, epoch, |up| up.flow.take(numbers, frames.len()));
        let Some((link, Ok(()))) = self.check(state, peer, epoch, taken) else {
            return;
        };
        // The numbers were taken for the whole batch, so a frame that cannot be read ends the link.
        let largest = state.limits().frame;
        let mut used = 0;
        while used < frames.len() {
            let Ok(Some(frame)) = first(&frames[used..], largest) else {
                return malformed(state, &link);
            };
            let is_first = used == 0;
            used += LENGTH + frame.len();
            link.set_alone(is_first && used == frames.len());
            if link.frame(frame).is_err() {
                return malformed(state, &link);
            }
        }
        if lock(&self.links).grant(peer) {
            self.posts.queue(peer);
        }
        link.drained();
        self.work.notify(usize::MAX);
    }

    fn numbers(&self, state: &NodeState, peer: &Token, epoch: u64, numbers: BatchNumbers) {
        let compared = self.change(peer, epoch, |up| up.flow.compare(numbers));
        if let Some((link, Ok(()))) = self.check(state, peer, epoch, compared) {
            link.note_received();
            link.drained();
            // What this end has said may be lost: nothing but the next frame would say it again.
            if numbers.awaits
                && let Some(up) = lock(&self.links).up(peer, epoch)
            {
                up.is_due = true;
                self.posts.queue(peer);
            }
        }
    }

    /// Changes the state of a link, and lets it publish what has waited for a grant.
    fn change(
        &self,
        peer: &Token,
        epoch: u64,
        change: impl FnOnce(&mut UpLink) -> Result<(), FlowError>,
    ) -> Option<(Arc<Link>, Result<(), FlowError>)> {
        let mut links = lock(&self.links);
        let up = links.up(peer, epoch)?;
        let changed = change(up);
        up.wire.set_under_way(up.flow.weight_under_way());
        if up.is_blocked && up.flow.may_send() {
            up.is_blocked = false;
            self.posts.queue(peer);
        }
        Some((up.link.clone(), changed))
    }

    /// Ends the link if its numbers are wrong. A link that is not up here has no other end.
    fn check(
        &self,
        state: &NodeState,
        peer: &Token,
        epoch: u64,
        changed: Option<(Arc<Link>, Result<(), FlowError>)>,
    ) -> Option<(Arc<Link>, Result<(), FlowError>)> {
        match &changed {
            None => {
                let mut links = lock(&self.links);
                // The welcome was lost, and what came with it.
                if matches!(links.0.get(peer), Some(PeerLink::Greeted { epoch: own, .. }) if *own == epoch)
                {
                    links.0.remove(peer);
                }
                drop(links);
                self.send(peer, &Packet::Cut { epoch });
            }
            Some((link, Err(FlowError::Gap))) => state.down(link),
            Some((link, Err(FlowError::Broken))) => malformed(state, link),
            Some((_, Ok(()))) => {}
        }
        changed
    }

    /// Returns what the link to a node is to publish now.
    pub(super) fn turn_of(&self, peer: &Token) -> Option<Post> {
        let most = self.largest_frame() as usize + LENGTH;
        let mut links = lock(&self.links);
        let Some(PeerLink::Up(up)) = links.0.get_mut(peer) else {
            return None;
        };
        let epoch = up.wire.epoch;
        let mut frames = Vec::new();
        match up.flow.may_send() {
            true => {
                let room = usize::try_from(up.flow.room()).unwrap_or(usize::MAX);
                if up.wire.take(room.min(most), &mut frames) {
                    self.posts.queue(peer);
                }
            }
            false => up.is_blocked = true,
        }
        // A batch has the numbers with it. They go alone only if they are due.
        let packet = match frames.is_empty() {
            true if !up.is_due => return None,
            true => {
                let numbers = up.flow.numbers();
                Packet::Numbers { epoch, numbers }
            }
            false => {
                let numbers = up.flow.send(frames.len());
                up.wire.set_under_way(up.flow.weight_under_way());
                Packet::Batch { epoch, numbers }
            }
        };
        up.is_due = false;
        drop(links);
        self.work.notify(usize::MAX);
        let mut packet = packet.encode(frames.len());
        packet.append(&mut frames);
        let subject = PacketSubject::To {
            to: peer,
            from: &self.me,
        }
        .text();
        Some(Post { subject, packet })
    }

    /// Publishes the last frames of a link that is cut, as far as they are granted, and its end.
    pub(super) fn is_cut(&self, wire: &BrokerWire, mut rest: &[u8]) {
        let most = self.largest_frame() as usize + LENGTH;
        let (peer, epoch) = (&wire.peer, wire.epoch);
        let subject = PacketSubject::To {
            to: peer,
            from: &self.me,
        }
        .text();
        let mut links = lock(&self.links);
        if let Some(up) = links.up(peer, epoch) {
            while !rest.is_empty() && up.flow.may_send() {
                let (batch, others) = rest.split_at(whole_frames(rest, most));
                rest = others;
                let numbers = up.flow.send(batch.len());
                let mut packet = Packet::Batch { epoch, numbers }.encode(batch.len());
                packet.extend_from_slice(batch);
                self.posts.push(subject.clone(), packet);
            }
        }
        // In one step: a task that opens another link meanwhile finds this one, or none.
        let cut = links.take(wire);
        drop(links);
        self.send(peer, &Packet::Cut { epoch });
        // Of a link that was cut for its backlog. Not here, where a sender may have any lock.
        if let (Some(PeerLink::Up(up)), Some(state)) = (cut, self.state.get().cloned()) {
            self.tasks.spawn(Box::pin(async move {
                let Some(state) = state.upgrade() else { return };
                state.down(&up.link);
                if up.is_wanted {
                    let node = &up.link.peer.member.name;
                    state.engine.note(NodeEvent::Wanted(node));
                }
            }));
        }
    }

    /// Ends the links whose peers have lost this connection, or all links.
    pub(super) fn lose(&self, connection: Option<&str>) {
        let Some(state) = self.state() else { return };
        let lost: Vec<_> = {
            let links = lock(&self.links);
            let lost = links.all_up().filter(|up| {
                connection.is_none_or(|gone| !gone.is_empty() && up.connection == gone)
            });
            lost.map(|up| up.link.clone()).collect()
        };
        lost.iter().for_each(|link| state.down(link));
    }

    /// Sends hellos again, gives nodes up that have not answered, and sends numbers that differ.
    pub(super) fn tick_links(&self) {
        let (mut again, mut failed) = (Vec::new(), Vec::new());
        let mut links = lock(&self.links);
        for (peer, link) in &mut links.0 {
            match link {
                PeerLink::Up(up) if up.has_work() => {
                    up.is_due = true;
                    self.posts.queue(peer);
                }
                PeerLink::Up(_) => {}
                PeerLink::Greeted { epoch, ticks } => {
                    *ticks += 1;
                    if *ticks >= PATIENCE {
                        failed.push(peer.clone());
                    // A hello may be lost, but a node that is away is not to be flooded.
                    } else if ticks.is_power_of_two() {
                        again.push((peer.clone(), *epoch));
                    }
                }
            }
        }
        for peer in &failed {
            links.0.remove(peer);
        }
        drop(links);
        for peer in failed {
            let waited = TICK * PATIENCE;
            self.fail(&peer, format!("no answer within {waited:?}"));
        }
        for (peer, epoch) in again {
            self.send_hello(&peer, epoch);
        }
    }
}

fn malformed(state: &NodeState, link: &Arc<Link>) {
    state.counts().malformed.add();
    state.down(link);
}
