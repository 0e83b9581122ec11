//! A link: what two nodes that are connected know of each other.
//!
//! It has the streams of messages in both directions, and the asks. Frames come in order, from one
//! thread, and go out in the order in which they are pushed. A link is up once, and then stays
//! down: its streams end, and so do its asks. No code of users runs under a lock.

mod answering;
mod codec;
#[cfg(test)]
mod formats;
pub(crate) mod frame;
mod inbox;
mod incoming;
mod outgoing;
mod owner;
mod pending;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod unused;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use answering::{Answerer, ReceivedAsk};
pub(crate) use codec::Scope;
#[cfg(any(test, fuzzing))]
pub(crate) use codec::decode;
use frame::{FrameError, Hello, LinkFrame, StreamEnd, Window};
#[cfg(any(test, fuzzing))]
pub(crate) use inbox::Delivered;
pub(crate) use inbox::{ActorInbox, TypedInbox};
use incoming::Incoming;
use outgoing::distance;
pub(crate) use outgoing::{Outgoing, OutgoingHandle};
pub(crate) use owner::{LinkOwner, LinkWire};
use pending::{AskEntry, ReplyCarrier, SentAsk, SentAsks};
pub(crate) use pending::{LossCause, PendingReply};
use table::LinkTable;
pub(crate) use target::Target;

use greenroom::trace::CarriedSpan;

use crate::counts::NodeCounts;
use crate::error::{Distance, RemoteAskError};

/// The number of senders that may encode a message of a stream at the same time. Each may exceed the
/// bytes of the window by a frame, and a machine has few cores that send to one actor.
const SENDERS_AT_ONCE: u32 = 8;

/// The looks at a link without a frame to it, after which it gets a ping. There are 14 looks until a
/// silent link is lost.
const QUIET_LOOKS: u32 = 3;

/// The bytes that may wait to be written: four of the largest frames. Beyond them senders wait.
const BACKLOG: usize = 4 << 20;

pub(crate) struct Link {
    pub(crate) peer: Hello,
    owner: Arc<dyn LinkOwner>,
    wire: Arc<dyn LinkWire>,
    is_up: AtomicBool,
    /// Whether a frame was pushed, and whether bytes came, since the last look.
    has_pushed: AtomicBool,
    has_received: AtomicBool,
    /// Whether the last frame came without others.
    came_alone: AtomicBool,
    /// The looks since a frame was pushed.
    quiet: AtomicU32,
    /// Whether a sender found the backlog full.
    is_clogged: AtomicBool,
    /// Whether no stream begins. It changes under the lock of those.
    is_ending: AtomicBool,
    asks: Mutex<LinkTable<AskEntry>>,
    outgoing: Mutex<LinkTable<Arc<Outgoing>>>,
    incoming: Mutex<LinkTable<Arc<Incoming>>>,
    answering: Mutex<LinkTable<Arc<dyn ReceivedAsk>>>,
    /// The asks of the peer that were given up, and that no reply was found for.
    given_up: Mutex<BTreeSet<u64>>,
}

/// A node that is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatus {
    /// The name of the node.
    pub name: String,
    /// The actors there for which an address is here, or messages are under way.
    pub outgoing: usize,
    /// The actors here for which an address is there, or messages are under way.
    pub incoming: usize,
    /// The asks that wait for an answer from there.
    pub asks: usize,
    /// The asks from there that were not answered yet.
    pub answering: usize,
    /// The bytes that wait to be written.
    pub backlog: usize,
    /// The messages that may be sent there at once, of all addresses together.
    pub credit: u64,
}

/// Locks a mutex. Its data is consistent also after a panic, since no code of users runs under it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn new(
        peer: Hello,
        owner: Arc<dyn LinkOwner>,
        wire: Arc<dyn LinkWire>,
    ) -> Arc<Link> {
        Arc::new(Link {
            peer,
            owner,
            wire,
            is_up: AtomicBool::new(true),
            // The greeting went both ways just now: it counts for the first look.
            has_pushed: AtomicBool::new(true),
            came_alone: AtomicBool::new(false),
            quiet: AtomicU32::new(0),
            has_received: AtomicBool::new(true),
            is_clogged: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            asks: LinkTable::new(),
            outgoing: LinkTable::new(),
            incoming: LinkTable::new(),
            answering: LinkTable::new(),
            given_up: Mutex::default(),
        })
    }

    pub(crate) fn counts(&self) -> &NodeCounts {
        self.owner.counts()
    }

    pub(crate) fn owner(&self) -> &Arc<dyn LinkOwner> {
        &self.owner
    }

    /// Returns the size of the largest frame that both nodes take, without its length.
    pub(crate) fn largest_frame(&self) -> usize {
        self.owner.limits().frame.min(self.peer.frame as usize)
    }

    /// Returns what a message with a payload of this size takes on the wire.
    fn frame_length(&self, stream: u64, payload: usize) -> u32 {
        // The variant, then the stream as a varint of seven bits a byte.
        let varint = (64 - stream.leading_zeros()).div_ceil(7).max(1);
        u32::try_from(frame::LENGTH + 1 + payload).map_or(u32::MAX, |rest| rest + varint)
    }

    /// Returns whether senders may push, and remembers if not.
    fn has_room(&self) -> bool {
        let has_room = self.wire.backlog() < BACKLOG;
        if !has_room {
            // Pairs with the swap in `drained`, which follows the change of the backlog.
            self.is_clogged.store(true, Ordering::SeqCst);
            return self.wire.backlog() < BACKLOG;
        }
        has_room
    }

    /// Lets those go on that wait for the backlog, after it was written.
    pub(crate) fn drained(&self) {
        // Pairs with the store in `has_room`.
        if self.is_clogged.load(Ordering::SeqCst) && self.is_clogged.swap(false, Ordering::SeqCst) {
            let outgoing = lock(&self.outgoing).all();
            outgoing.iter().for_each(|stream| stream.grant_credit());
            let incoming = lock(&self.incoming).all();
            incoming.iter().for_each(|stream| stream.give_credit(self));
        }
    }

    /// Remembers whether the frame that comes next is without others.
    pub(crate) fn set_alone(&self, is_alone: bool) {
        // A hint, as in `push_as`.
        self.came_alone.store(is_alone, Ordering::Relaxed);
    }

    /// Pushes a frame with its length in front.
    pub(crate) fn push(&self, frame: &[u8]) {
        self.push_as(frame, false);
    }

    fn push_as(&self, frame: &[u8], is_alone: bool) {
        // A hint for the next look at the link: no other data depends on it.
        if !self.has_pushed.load(Ordering::Relaxed) {
            self.has_pushed.store(true, Ordering::Relaxed);
        }
        if self.is_up.load(Ordering::Relaxed) {
            self.wire.push(frame, is_alone);
        }
    }

    /// Pushes a frame whose asks wait from now on. Returns them if the link is down.
    fn commit(&self, frame: &[u8], asks: SentAsks, carrier: ReplyCarrier) -> SentAsks {
        let mut waiting = 0;
        if !asks.is_empty() {
            match lock(&self.asks).keep(asks, carrier) {
                Ok(all) => waiting = all,
                Err(lost) => return lost,
            }
        }
        let is_alone = match carrier {
            ReplyCarrier::Message { .. } => waiting == 1,
            ReplyCarrier::Answer { .. } => self.answers_alone(),
        };
        self.push_as(frame, is_alone);
        Vec::new()
    }

    /// Returns whether an answer that is sent now is probably the only frame for a while.
    fn answers_alone(&self) -> bool {
        let is_last = (lock(&self.answering).entries.as_ref()).is_some_and(BTreeMap::is_empty);
        is_last && self.came_alone.load(Ordering::Relaxed)
    }

    pub(crate) fn next_ask(&self) -> u64 {
        lock(&self.asks).next_number()
    }

    /// Forgets an ask if its asker is gone, and notifies the peer.
    pub(crate) fn unwanted(&self, ask: u64) {
        let forgotten = lock(&self.asks).take_unwanted(ask);
        if forgotten.is_some() {
            self.push(&LinkFrame::Unwanted { ask }.encode());
        }
    }

    /// Adds a stream. Returns its number, `None` if the link is ending, and an error if it is down.
    fn add_outgoing(&self, stream: &Arc<Outgoing>) -> Result<Option<u64>, ()> {
        let mut streams = lock(&self.outgoing);
        if self.is_ending() {
            return Ok(None);
        }
        let number = streams.next_number();
        streams.insert(number, stream.clone())?;
        Ok(Some(number))
    }

    fn forget_outgoing(&self, stream: u64) {
        let forgotten = lock(&self.outgoing).remove(stream);
        drop(forgotten);
    }

    fn forget_incoming(&self, stream: u64) {
        let forgotten = lock(&self.incoming).remove(stream);
        drop(forgotten);
    }

    fn outgoing(&self, stream: u64) -> Option<Arc<Outgoing>> {
        lock(&self.outgoing).get(stream)
    }

    fn incoming(&self, stream: u64) -> Option<Arc<Incoming>> {
        lock(&self.incoming).get(stream)
    }

    /// Notes that the peer lives: bytes of a frame came, and perhaps not all of it.
    pub(crate) fn note_received(&self) {
        // As in `push`.
        if !self.has_received.load(Ordering::Relaxed) {
            self.has_received.store(true, Ordering::Relaxed);
        }
    }

    /// Takes a frame without its length. After an error the link is to be cut.
    pub(crate) fn frame(self: &Arc<Self>, bytes: &[u8]) -> Result<(), FrameError> {
        let (frame, payload) = LinkFrame::decode(bytes)?;
        self.note_received();
        if !self.is_up.load(Ordering::Relaxed) {
            return Ok(());
        }
        match frame {
            LinkFrame::Message { stream } => self.message(stream, payload, false),
            LinkFrame::TracedMessage { stream } => self.message(stream, payload, true),
            LinkFrame::Open {
                stream,
                actor,
                kind,
                window,
            } => self.open(stream, actor, &kind, window),
            LinkFrame::Credit {
                stream,
                messages,
                bytes,
            } => match self.outgoing(stream) {
                Some(outgoing) => outgoing.credit(messages, bytes),
                None => self.counts().stray.add(),
            },
            LinkFrame::ReturnCredit { stream } => match self.incoming(stream) {
                Some(incoming) => incoming.return_credit(self),
                None => self.counts().stray.add(),
            },
            LinkFrame::Close { stream } => match self.incoming(stream) {
                Some(incoming) => incoming.close(self),
                None => self.counts().stray.add(),
            },
            LinkFrame::Ended { stream, taken, why } => self.stream_ended(stream, taken, why),
            LinkFrame::Answer { ask } => match self.take_ask(ask) {
                Some(pending) => {
                    if !pending.answer(self, payload) {
                        // The peer is to give up the asks in the answer.
                        self.push(&LinkFrame::Unwanted { ask }.encode());
                    }
                }
                None => self.counts().stray.add(),
            },
            LinkFrame::Unanswered { ask, why } => match self.take_ask(ask) {
                Some(pending) => pending.lose(why.into()),
                None => self.counts().stray.add(),
            },
            LinkFrame::Unwanted { ask } => self.asker_is_gone(ask),
            LinkFrame::Publish(publication) => self.owner.peer_published(self, publication),
            LinkFrame::Withdraw { actor } => self.owner.peer_withdrew(self, actor),
            LinkFrame::Members(members) => self.owner.peer_named(self, members),
            LinkFrame::Bye => self.owner.peer_closed(self),
            LinkFrame::Unused => self.owner.peer_is_done(self),
            LinkFrame::Used => self.owner.peer_goes_on(self),
            LinkFrame::Ping => {}
        }
        Ok(())
    }

    /// Takes a message of a stream. If it is traced, the context of the trace is before it.
    fn message(self: &Arc<Self>, stream: u64, payload: &[u8], is_traced: bool) {
        match self.incoming(stream) {
            Some(incoming) => incoming.message(self, payload, is_traced),
            // The stream has ended, and the sender does not know yet.
            None => self.counts().stray.add(),
        }
    }

    /// Returns the context of the span in which this thread sends, if both nodes have traces.
    fn trace_context(&self) -> Option<String> {
        if !self.owner.has_traces() || !self.peer.has_traces() {
            return None;
        }
        CarriedSpan::current_context().filter(|context| context.len() <= frame::LONGEST_TEXT)
    }

    fn take_ask(&self, ask: u64) -> Option<Box<dyn SentAsk>> {
        lock(&self.asks).take(ask)
    }

    /// Begins a stream of the peer.
    fn open(self: &Arc<Self>, stream: u64, actor: u64, kind: &str, window: Window) {
        let refused = match self.owner.inbox(actor) {
            None => StreamEnd::Unknown,
            Some(inbox) if inbox.kind() != kind => StreamEnd::WrongKind(inbox.kind().into()),
            Some(inbox) => {
                let most = self.owner.limits().streams;
                let mut streams = lock(&self.incoming);
                let Some(table) = streams.entries.as_mut() else {
                    return;
                };
                if table.contains_key(&stream) {
                    StreamEnd::Excess(format!("the stream {stream} is open already"))
                } else if table.values().any(|other| other.actor == actor) {
                    // Each would have a window of its own.
                    StreamEnd::Excess("a stream to this actor is open already".into())
                } else if table.len() >= most {
                    StreamEnd::TooMany { limit: most as u64 }
                } else {
                    table.insert(stream, Incoming::new(stream, actor, inbox, window));
                    return;
                }
            }
        };
        self.counts().refused_streams.add();
        self.push(
            &LinkFrame::Ended {
                stream,
                taken: 0,
                why: refused,
            }
            .encode(),
        );
    }

    /// Ends a stream to the peer, and the asks whose questions were not taken.
    fn stream_ended(&self, stream: u64, taken: u64, why: StreamEnd) {
        let Some(outgoing) = self.outgoing(stream) else {
            // It was closed, so all of its messages were taken.
            return self.counts().stray.add();
        };
        let why = distance(why, &outgoing.target.kind);
        outgoing.end(why.clone());
        self.forget_outgoing(stream);
        let asks = lock(&self.asks).take_untaken(stream, taken);
        asks.into_iter()
            .for_each(|ask| ask.lose(why.clone().into()));
    }

    /// Ends the streams of the peer to an actor that has ended.
    pub(crate) fn actor_ended(&self, actor: u64) {
        let streams = self.streams_to(actor);
        streams
            .iter()
            .for_each(|stream| stream.finish(self, StreamEnd::Closed));
    }

    /// Returns whether the peer has a stream to this actor.
    pub(crate) fn has_stream_to(&self, actor: u64) -> bool {
        !self.streams_to(actor).is_empty()
    }

    fn streams_to(&self, actor: u64) -> Vec<Arc<Incoming>> {
        let mut streams = lock(&self.incoming).all();
        streams.retain(|stream| stream.actor == actor);
        streams
    }

    /// Returns whether anything came since the last look, and pings if nothing was pushed for some
    /// looks.
    pub(crate) fn look(&self) -> bool {
        // Only one task looks, so the order with other memory does not matter.
        let quiet = match self.has_pushed.swap(false, Ordering::Relaxed) {
            true => 0,
            false => self.quiet.load(Ordering::Relaxed) + 1,
        };
        if quiet >= QUIET_LOOKS {
            self.push(&LinkFrame::Ping.encode());
        }
        self.quiet.store(quiet % QUIET_LOOKS, Ordering::Relaxed);
        self.has_received.swap(false, Ordering::Relaxed)
    }

    /// Ends the link, its streams and its asks. Later calls do nothing.
    pub(crate) fn down(&self) {
        if !self.is_up.swap(false, Ordering::SeqCst) {
            return;
        }
        self.wire.cut();
        // Each table is closed first, so that nothing is added in between. No lock is held meanwhile.
        let incoming = lock(&self.incoming).close();
        for stream in incoming.into_values() {
            stream.end(|_| {});
        }
        let outgoing = lock(&self.outgoing).close();
        for stream in outgoing.into_values() {
            stream.end(Distance::Lost);
        }
        let answering = lock(&self.answering).close();
        for answering in answering.into_values() {
            answering.abandon();
        }
        let asks = lock(&self.asks).take_rest();
        self.counts().lost_asks.add_many(asks.len() as u64);
        for ask in asks {
            ask.lose(RemoteAskError::Lost);
        }
    }

    pub(crate) fn status(&self) -> PeerStatus {
        // One statement a lock, so that no two are held.
        let streams = lock(&self.outgoing).all();
        let incoming = lock(&self.incoming).len();
        let asks = lock(&self.asks).len();
        let answering = lock(&self.answering).len();
        PeerStatus {
            name: self.peer.member.name.clone(),
            outgoing: streams.len(),
            incoming,
            asks,
            answering,
            backlog: self.wire.backlog(),
            credit: streams.iter().map(|stream| stream.messages()).sum(),
        }
    }
}
