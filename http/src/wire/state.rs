//! What the two sides of hyper know of a connection.
//!
//! One task polls both sides, so each value is read by the task that has written it. It is atomic
//! only since the task may move to another thread, and no order of memory counts.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::gauge::StreamGauge;
use super::head::HttpRefusal;
use super::idle::IdleSince;
use crate::limits::Limits;

/// The state of a connection that both sides of hyper share.
pub(crate) struct ConnectionState<'a> {
    limits: &'a Limits,
    waits: AtomicU8,
    awaited: AtomicU8,
    /// How often the connection has begun to wait for something else.
    changes: AtomicU32,
    /// What is awaited of the client has not come in time.
    is_late: AtomicBool,
    /// The number of the request that was refused, or 0.
    refused: AtomicU64,
    end: Mutex<ConnectionEnd>,
    /// The bytes of answers that the client has not taken. Those of heads are not counted.
    unsent: AtomicUsize,
    /// Those of all connections.
    all_unsent: &'a AtomicUsize,
    idle: Arc<IdleSince>,
    /// The client is on this machine, and is no proxy.
    is_local: bool,
}

/// Why a connection ends.
#[derive(Default)]
struct ConnectionEnd {
    /// Why a head or a body may not pass. The answer to it comes in its turn.
    refused: Option<HttpRefusal>,
    /// The status with which a request was refused.
    answered: Option<u16>,
    /// The server has ended it, whatever the client still sends.
    is_done: bool,
    /// The limit for which it was closed without an answer.
    limit: Option<&'static str>,
    /// The server stops.
    is_stopped: bool,
    /// The stream that is being sent.
    stream: Option<Arc<StreamGauge>>,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionWait(u8);

impl ConnectionWait {
    /// For what is awaited of the client.
    pub(super) const CLIENT: ConnectionWait = ConnectionWait(0);
    /// For a request to be complete, or for an answer that takes what it takes.
    pub(super) const SERVER: ConnectionWait = ConnectionWait(1);
    pub(super) const ACTOR: ConnectionWait = ConnectionWait(2);
    /// For an actor that has not answered in time.
    pub(super) const LATE_ACTOR: ConnectionWait = ConnectionWait(3);
    /// For the client to take more of an answer. The time of that belongs to the write.
    pub(super) const TAKER: ConnectionWait = ConnectionWait(5);
    /// For a stream to have more.
    pub(super) const STREAM: ConnectionWait = ConnectionWait(4);
}

/// What a client must send within some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AwaitedPart(u8);

impl AwaitedPart {
    /// The first head, from the begin of the connection on.
    pub(super) const FIRST: AwaitedPart = AwaitedPart(0);
    /// The first byte of another head.
    pub(super) const HEAD: AwaitedPart = AwaitedPart(1);
    /// The rest of a head.
    pub(super) const REST: AwaitedPart = AwaitedPart(2);
    /// A body, whose time belongs to the service.
    pub(super) const BODY: AwaitedPart = AwaitedPart(3);
}

impl<'a> ConnectionState<'a> {
    /// Creates what is known of a connection that begins now.
    pub(crate) fn new(
        limits: &'a Limits,
        all_unsent: &'a AtomicUsize,
        idle: Arc<IdleSince>,
        is_local: bool,
    ) -> Self {
        ConnectionState {
            limits,
            waits: AtomicU8::new(ConnectionWait::CLIENT.0),
            awaited: AtomicU8::new(AwaitedPart::FIRST.0),
            changes: AtomicU32::new(0),
            is_late: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            end: Mutex::default(),
            unsent: AtomicUsize::new(0),
            all_unsent,
            idle,
            is_local,
        }
    }

    fn end(&self) -> MutexGuard<'_, ConnectionEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn limits(&self) -> &Limits {
        self.limits
    }

    /// Notes that the head of a request is complete, so that no other one need come. Returns why it was
    /// refused, if it was. The first one has number 1.
    pub(crate) fn begin(&self, request: u64) -> Option<HttpRefusal> {
        self.idle.set(false);
        self.wait_for(ConnectionWait::SERVER);
        match self.refused.load(Relaxed) == request {
            true => self.end().refused.clone(),
            false => None,
        }
    }

    /// Notes that an actor begins to work on the request.
    pub(crate) fn ask(&self) {
        self.wait_for(ConnectionWait::ACTOR);
    }

    /// Returns whether the actor has not answered in time.
    pub(crate) fn is_actor_late(&self) -> bool {
        self.waits() == ConnectionWait::LATE_ACTOR
    }

    /// Returns whether a request is being answered. Then nothing of the client is awaited.
    pub(crate) fn is_answering(&self) -> bool {
        matches!(
            self.waits(),
            ConnectionWait::SERVER
                | ConnectionWait::ACTOR
                | ConnectionWait::LATE_ACTOR
                | ConnectionWait::STREAM
        )
    }

    /// Returns whether the client is on this machine, and is no proxy.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Notes that the answer is a stream. The connection is not idle until that has ended.
    pub(crate) fn begin_stream(&self, all_unsent: Arc<AtomicUsize>) -> Arc<StreamGauge> {
        let mut end = self.end();
        let gauge = Arc::new(StreamGauge::new(all_unsent, end.is_stopped));
        end.stream = Some(gauge.clone());
        self.wait_for(ConnectionWait::STREAM);
        gauge
    }

    /// Lets a stream end, also one that begins later.
    pub(crate) fn stop_streams(&self) {
        let mut end = self.end();
        end.is_stopped = true;
        if let Some(stream) = &end.stream {
            stream.stop();
        }
    }

    /// Notes whether the stream has ended. Returns whether it has.
    pub(super) fn end_stream(&self) -> bool {
        let mut end = self.end();
        let has_ended = end.stream.as_ref().is_none_or(|it| it.has_ended());
        if has_ended {
            end.stream = None;
            self.idle.set(true);
            self.wait_for(ConnectionWait::CLIENT);
        }
        has_ended
    }

    /// Notes that the request is answered, or is not wanted any more.
    pub(crate) fn finish(&self) {
        // The body of a stream is still to come.
        if self.waits() == ConnectionWait::STREAM {
            return;
        }
        // One whose answer is being sent is not idle.
        self.idle.set(self.unsent.load(Relaxed) == 0);
        self.wait_for(ConnectionWait::CLIENT);
    }

    /// Notes that an answer with a body of so many bytes is to be sent. No other one is being sent:
    /// hyper begins with a request when all of the answer before it was taken.
    pub(crate) fn note_answer(&self, bytes: usize) {
        if bytes > 0 {
            self.unsent.fetch_add(bytes, Relaxed);
            self.all_unsent.fetch_add(bytes, Relaxed);
        }
    }

    /// Notes that the client has taken so many bytes.
    pub(super) fn note_sent(&self, bytes: usize) {
        // Bytes of a head may be among them.
        let unsent = self.unsent.load(Relaxed);
        let sent = bytes.min(unsent);
        if sent == 0 {
            // The answer before a stream was taken, so that has nothing here.
            if self.waits() == ConnectionWait::STREAM {
                let end = self.end();
                end.stream.as_ref().inspect(|it| it.note_sent(bytes));
            }
            return;
        }
        self.unsent.store(unsent - sent, Relaxed);
        self.all_unsent.fetch_sub(sent, Relaxed);
        if sent == unsent && !self.is_answering() {
            self.idle.set(true);
        }
    }

    /// Notes that the client takes no more of an answer for now. Nothing is awaited of it meanwhile.
    pub(super) fn note_full(&self) {
        if self.waits() == ConnectionWait::CLIENT {
            self.wait_for(ConnectionWait::TAKER);
        }
    }

    /// Notes that the client has taken more of an answer.
    pub(super) fn note_taken(&self) {
        if self.waits() == ConnectionWait::TAKER {
            self.wait_for(ConnectionWait::CLIENT);
        }
    }

    /// Returns the status of the refusal that has ended the connection.
    pub(crate) fn last_refused(&self) -> Option<u16> {
        self.end().answered
    }

    /// Notes that a request was answered with a refusal, so that no other one can be found.
    pub(crate) fn note_answered(&self, status: u16) {
        self.end().answered = Some(status);
    }

    /// Notes that the server ends the connection before the client does.
    pub(crate) fn note_end(&self) {
        self.end().is_done = true;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end().is_done
    }

    /// Returns the limit for which the connection was closed without an answer.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        self.end().limit
    }

    pub(super) fn note_limit(&self, limit: &'static str) {
        self.end().limit = Some(limit);
    }

    pub(super) fn note_refused(&self, request: u64, why: HttpRefusal) {
        self.refused.store(request, Relaxed);
        self.end().refused = Some(why);
    }

    pub(super) fn waits(&self) -> ConnectionWait {
        ConnectionWait(self.waits.load(Relaxed))
    }

    pub(super) fn awaited(&self) -> AwaitedPart {
        AwaitedPart(self.awaited.load(Relaxed))
    }

    /// Returns a number that changes when the connection begins to wait for something else.
    pub(super) fn changes(&self) -> u32 {
        self.changes.load(Relaxed)
    }

    fn wait_for(&self, waits: ConnectionWait) {
        self.waits.store(waits.0, Relaxed);
        self.change();
    }

    fn change(&self) {
        let changes = self.changes.load(Relaxed);
        self.changes.store(changes.wrapping_add(1), Relaxed);
    }

    /// Returns whether the client is late, and that was not handled yet.
    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Relaxed)
    }

    /// Notes that what the connection waits for has not come in time.
    pub(super) fn note_late(&self) {
        match self.waits() {
            ConnectionWait::ACTOR => self.waits.store(ConnectionWait::LATE_ACTOR.0, Relaxed),
            _ => self.is_late.store(true, Relaxed),
        }
    }

    /// Notes that some bytes have come.
    pub(super) fn note_some(&self) {
        self.is_late.store(false, Relaxed);
    }

    /// Notes that nothing has come, and what must come. Returns whether the client is late with it.
    /// If `is_idle`, it has sent no part of it.
    pub(super) fn note_awaited(&self, awaited: AwaitedPart, is_idle: bool) -> bool {
        let is_same = self.awaited() == awaited;
        let is_late = self.is_late() && is_same;
        self.is_late.store(false, Relaxed);
        if !is_same {
            self.awaited.store(awaited.0, Relaxed);
            // The time of an actor goes on.
            if self.waits() == ConnectionWait::CLIENT {
                self.change();
            }
        }
        if is_late && is_idle {
            self.note_limit(match awaited {
                AwaitedPart::HEAD => "idle_time",
                _ => "head_time",
            });
        }
        is_late
    }
}

impl Drop for ConnectionState<'_> {
    fn drop(&mut self) {
        self.all_unsent.fetch_sub(*self.unsent.get_mut(), Relaxed);
    }
}
