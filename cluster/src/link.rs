//! A link: what two nodes that are connected know of each other.
//!
//! It has the streams of messages in both directions, and the asks. Frames come in order, from one
//! thread, and go out in the order in which they are pushed. A link is up once, and then stays
//! down: its streams end, and so do its asks. No code of users runs under a lock.

mod answering;
mod codec;
pub(crate) mod frame;
mod inbox;
mod incoming;
mod outgoing;
mod owner;
mod pending;
mod target;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use answering::GivenUp;
pub(crate) use answering::{Answerer, Answering};
use codec::Encoded;
#[cfg(any(test, fuzzing))]
pub(crate) use codec::decode;
pub(crate) use codec::{Decoding, Encoding, Scope};
use frame::{Frame, FrameError, Hello, StreamEnd, Window};
#[cfg(any(test, fuzzing))]
pub(crate) use inbox::Delivered;
pub(crate) use inbox::{Inbox, TypedInbox};
use incoming::Incoming;
pub(crate) use outgoing::{Outgoing, OutgoingEnd, OutgoingHandle, Sent};
pub(crate) use owner::{News, Owner, Wire};
use pending::{Asks, Pending, PendingAsks, Within, not_taken};
pub(crate) use pending::{Cause, PendingReply};
pub(crate) use target::Target;

use crate::counts::Counts;
use crate::error::RemoteAskError;

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
    owner: Arc<dyn Owner>,
    wire: Arc<dyn Wire>,
    is_up: AtomicBool,
    /// Whether a frame was pushed, and whether bytes came, since the last look.
    has_said: AtomicBool,
    has_heard: AtomicBool,
    /// Whether the last frame came without others.
    came_alone: AtomicBool,
    /// The looks since a frame was pushed.
    quiet: AtomicU32,
    /// Whether a sender found the backlog full.
    is_clogged: AtomicBool,
    asks: Mutex<Asks>,
    outgoing: Mutex<Streams<Arc<Outgoing>>>,
    incoming: Mutex<Streams<Arc<Incoming>>>,
    answering: Mutex<Option<BTreeMap<u64, Arc<dyn Answering>>>>,
    given_up: Mutex<GivenUp>,
}

/// Streams by their numbers. The table is `None` once the link is down.
struct Streams<T> {
    next: u64,
    table: Option<BTreeMap<u64, T>>,
}

impl<T> Streams<T> {
    fn new() -> Mutex<Self> {
        Mutex::new(Streams {
            next: 0,
            table: Some(BTreeMap::new()),
        })
    }
}

/// What a link does at the moment.
pub(crate) struct LinkLoad {
    pub(crate) outgoing: usize,
    pub(crate) incoming: usize,
    pub(crate) asks: usize,
    pub(crate) answering: usize,
    pub(crate) backlog: usize,
    pub(crate) credit: u64,
}

/// Locks a mutex. Its data is consistent also after a panic, since no code of users runs under it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn new(peer: Hello, owner: Arc<dyn Owner>, wire: Arc<dyn Wire>) -> Arc<Link> {
        Arc::new(Link {
            peer,
            owner,
            wire,
            is_up: AtomicBool::new(true),
            has_said: AtomicBool::new(true),
            came_alone: AtomicBool::new(false),
            quiet: AtomicU32::new(0),
            has_heard: AtomicBool::new(true),
            is_clogged: AtomicBool::new(false),
            asks: Mutex::new(Asks::new()),
            outgoing: Streams::new(),
            incoming: Streams::new(),
            answering: Mutex::new(Some(BTreeMap::new())),
            given_up: Mutex::default(),
        })
    }

    pub(crate) fn counts(&self) -> &Counts {
        self.owner.counts()
    }

    pub(crate) fn owner(&self) -> &Arc<dyn Owner> {
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

    /// Hears that the backlog was written.
    pub(crate) fn drained(&self) {
        // Pairs with the store in `has_room`.
        if self.is_clogged.load(Ordering::SeqCst) && self.is_clogged.swap(false, Ordering::SeqCst) {
            self.all_outgoing().iter().for_each(|stream| stream.retry());
            let incoming = self.all_incoming();
            incoming.iter().for_each(|stream| stream.gives_credit(self));
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
        if !self.has_said.load(Ordering::Relaxed) {
            self.has_said.store(true, Ordering::Relaxed);
        }
        if self.is_up.load(Ordering::Relaxed) {
            self.wire.push(frame, is_alone);
        }
    }

    /// Pushes a frame whose asks wait from now on. Returns them if the link is down.
    fn commit(&self, encoded: Encoded, of: Within) -> PendingAsks {
        let mut waiting = 0;
        if !encoded.asks.is_empty() {
            match lock(&self.asks).keep(encoded.asks, of) {
                Ok(all) => waiting = all,
                Err(lost) => return lost,
            }
        }
        let is_alone = match of {
            Within::Message { .. } => waiting == 1,
            Within::Answer { .. } => self.answers_alone(),
        };
        self.push_as(&encoded.bytes, is_alone);
        Vec::new()
    }

    /// Returns whether an answer that is sent now is probably the only frame for a while.
    fn answers_alone(&self) -> bool {
        let is_last = lock(&self.answering)
            .as_ref()
            .is_some_and(BTreeMap::is_empty);
        is_last && self.came_alone.load(Ordering::Relaxed)
    }

    pub(crate) fn next_ask(&self) -> u64 {
        lock(&self.asks).number()
    }

    /// Forgets an ask if its asker is gone, and tells the peer.
    pub(crate) fn unwanted(&self, ask: u64) {
        let forgotten = lock(&self.asks).take_unwanted(ask);
        if forgotten.is_some() {
            self.push(&Frame::Unwanted { ask }.encode());
        }
    }

    /// Adds a stream. Returns its number, or `None` if the link is down.
    fn adds_outgoing(&self, stream: &Arc<Outgoing>) -> Option<u64> {
        let mut streams = lock(&self.outgoing);
        streams.next += 1;
        let number = streams.next;
        streams.table.as_mut()?.insert(number, stream.clone());
        Some(number)
    }

    fn forgets_outgoing(&self, stream: u64) {
        let forgotten =
            (lock(&self.outgoing).table.as_mut()).and_then(|table| table.remove(&stream));
        drop(forgotten);
    }

    fn forgets_incoming(&self, stream: u64) {
        let forgotten =
            (lock(&self.incoming).table.as_mut()).and_then(|table| table.remove(&stream));
        drop(forgotten);
    }

    fn all_outgoing(&self) -> Vec<Arc<Outgoing>> {
        let streams = lock(&self.outgoing);
        let table = streams.table.iter().flat_map(BTreeMap::values);
        table.cloned().collect()
    }

    fn outgoing(&self, stream: u64) -> Option<Arc<Outgoing>> {
        lock(&self.outgoing).table.as_ref()?.get(&stream).cloned()
    }

    fn incoming(&self, stream: u64) -> Option<Arc<Incoming>> {
        lock(&self.incoming).table.as_ref()?.get(&stream).cloned()
    }

    /// Notes that the peer lives: bytes of a frame came, and perhaps not all of it.
    pub(crate) fn heard(&self) {
        // As in `push`.
        if !self.has_heard.load(Ordering::Relaxed) {
            self.has_heard.store(true, Ordering::Relaxed);
        }
    }

    /// Takes a frame without its length. After an error the link is to be cut.
    pub(crate) fn frame(self: &Arc<Self>, bytes: &[u8]) -> Result<(), FrameError> {
        let (frame, payload) = Frame::decode(bytes)?;
        self.heard();
        if !self.is_up.load(Ordering::Relaxed) {
            return Ok(());
        }
        match frame {
            Frame::Message { stream } => match self.incoming(stream) {
                Some(incoming) => incoming.message(self, payload),
                // The stream has ended, and the sender does not know yet.
                None => self.counts().stray.add(),
            },
            Frame::Open {
                stream,
                actor,
                kind,
                window,
            } => self.open(stream, actor, &kind, window),
            Frame::Credit {
                stream,
                messages,
                bytes,
            } => match self.outgoing(stream) {
                Some(outgoing) => outgoing.credit(messages, bytes),
                None => self.counts().stray.add(),
            },
            Frame::Settle { stream } => match self.incoming(stream) {
                Some(incoming) => incoming.settle(self),
                None => self.counts().stray.add(),
            },
            Frame::Close { stream } => match self.incoming(stream) {
                Some(incoming) => incoming.close(self),
                None => self.counts().stray.add(),
            },
            Frame::Ended { stream, taken, why } => self.stream_ended(stream, taken, why),
            Frame::Answer { ask } => match self.take_ask(ask) {
                Some(pending) => {
                    if !pending.answer(self, payload) {
                        // The peer is to give up the asks in the answer.
                        self.push(&Frame::Unwanted { ask }.encode());
                    }
                }
                None => self.counts().stray.add(),
            },
            Frame::Unanswered { ask, why } => match self.take_ask(ask) {
                Some(pending) => pending.lose(why.into()),
                None => self.counts().stray.add(),
            },
            Frame::Unwanted { ask } => self.asker_is_gone(ask),
            Frame::Publish(publication) => self.owner.heard(self, News::Publish(publication)),
            Frame::Withdraw { actor } => self.owner.heard(self, News::Withdraw(actor)),
            Frame::Members(members) => self.owner.heard(self, News::Members(members)),
            Frame::Bye => self.owner.heard(self, News::Bye),
            Frame::Ping => {}
        }
        Ok(())
    }

    fn take_ask(&self, ask: u64) -> Option<Box<dyn Pending>> {
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
                let Some(table) = streams.table.as_mut() else {
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
            &Frame::Ended {
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
        outgoing.end(OutgoingEnd::Ended(why.clone()));
        self.forgets_outgoing(stream);
        let asks = lock(&self.asks).take_untaken(stream, taken);
        let kind = &outgoing.target.kind;
        asks.into_iter()
            .for_each(|ask| ask.lose(not_taken(&why, kind)));
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
        let mut streams = self.all_incoming();
        streams.retain(|stream| stream.actor == actor);
        streams
    }

    fn all_incoming(&self) -> Vec<Arc<Incoming>> {
        let streams = lock(&self.incoming);
        let table = streams.table.iter().flat_map(BTreeMap::values);
        table.cloned().collect()
    }

    /// Returns whether anything came since the last look, and pings if nothing was pushed for some
    /// looks.
    pub(crate) fn look(&self) -> bool {
        // Only one task looks, so the order with other memory does not matter.
        let quiet = match self.has_said.swap(false, Ordering::Relaxed) {
            true => 0,
            false => self.quiet.load(Ordering::Relaxed) + 1,
        };
        if quiet >= QUIET_LOOKS {
            self.push(&Frame::Ping.encode());
        }
        self.quiet.store(quiet % QUIET_LOOKS, Ordering::Relaxed);
        self.has_heard.swap(false, Ordering::Relaxed)
    }

    /// Ends the link, its streams and its asks. Later calls do nothing.
    pub(crate) fn down(&self) {
        if !self.is_up.swap(false, Ordering::SeqCst) {
            return;
        }
        self.wire.cut();
        let incoming = lock(&self.incoming).table.take();
        for stream in incoming.into_iter().flat_map(BTreeMap::into_values) {
            stream.end();
        }
        // Taken at once, so that no stream is added in between.
        let outgoing = lock(&self.outgoing).table.take();
        for stream in outgoing.into_iter().flat_map(BTreeMap::into_values) {
            stream.end(OutgoingEnd::Lost);
        }
        let answering = lock(&self.answering).take();
        for answering in answering.into_iter().flat_map(BTreeMap::into_values) {
            answering.abandon();
        }
        let asks = lock(&self.asks).close();
        self.counts().lost_asks.add_many(asks.len() as u64);
        for ask in asks {
            ask.lose(RemoteAskError::Lost);
        }
    }

    pub(crate) fn load(&self) -> LinkLoad {
        let streams = self.all_outgoing();
        // One statement a lock, so that no two are held.
        let incoming = lock(&self.incoming).table.as_ref().map_or(0, BTreeMap::len);
        let asks = lock(&self.asks).len();
        let answering = lock(&self.answering).as_ref().map_or(0, BTreeMap::len);
        LinkLoad {
            outgoing: streams.len(),
            incoming,
            asks,
            answering,
            backlog: self.wire.backlog(),
            credit: streams.iter().map(|stream| stream.messages()).sum(),
        }
    }
}
