//! What the two sides of hyper know of a connection.
//!
//! One task polls both sides, so each value is read by the task that has written it. It is atomic
//! only since the task may move to another thread, and no order of memory counts.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::head::Refused;

/// For how long a connection may make no progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// From the first byte of a head, or from the begin of the connection, to its end.
    pub(crate) head: Duration,
    /// Between two requests.
    pub(crate) idle: Duration,
    /// While the client takes no byte of an answer.
    pub(crate) write: Duration,
    /// While an actor answers.
    pub(crate) answer: Duration,
}

pub(crate) struct Shared {
    times: Times,
    waits: AtomicU8,
    awaited: AtomicU8,
    /// How often the connection has begun to wait for something else.
    changes: AtomicU32,
    /// What is awaited of the client has not come in time.
    is_late: AtomicBool,
    /// The number of the request that was refused, or 0.
    refused: AtomicU64,
    end: Mutex<End>,
}

/// Why a connection ends.
#[derive(Default)]
struct End {
    /// Why a head or a body may not pass. The answer to it comes in its turn.
    refused: Option<Refused>,
    /// The status with which a request was refused.
    answered: Option<u16>,
    /// The server has ended it, whatever the client still sends.
    is_done: bool,
    /// The limit for which it was closed without an answer.
    limit: Option<&'static str>,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waits(u8);

impl Waits {
    /// For what is awaited of the client.
    pub(super) const CLIENT: Waits = Waits(0);
    /// For a request to be complete, or for an answer that takes what it takes.
    pub(super) const SERVER: Waits = Waits(1);
    pub(super) const ACTOR: Waits = Waits(2);
    /// For an actor that has not answered in time.
    pub(super) const LATE_ACTOR: Waits = Waits(3);
    /// For the client to take more of an answer. The time of that belongs to the write.
    pub(super) const TAKER: Waits = Waits(4);
}

/// What a client must send within some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Awaited(u8);

impl Awaited {
    /// The first head, from the begin of the connection on.
    pub(super) const FIRST: Awaited = Awaited(0);
    /// The first byte of another head.
    pub(super) const HEAD: Awaited = Awaited(1);
    /// The rest of a head.
    pub(super) const REST: Awaited = Awaited(2);
    /// A body, whose time belongs to the service.
    pub(super) const BODY: Awaited = Awaited(3);
}

impl Shared {
    /// Creates what is known of a connection that begins now.
    pub(crate) fn new(times: Times) -> Self {
        Shared {
            times,
            waits: AtomicU8::new(Waits::CLIENT.0),
            awaited: AtomicU8::new(Awaited::FIRST.0),
            changes: AtomicU32::new(0),
            is_late: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            end: Mutex::default(),
        }
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn times(&self) -> &Times {
        &self.times
    }

    /// Notes that a request is complete, so that no other one need come. Returns why it was refused,
    /// if it was. The first one has number 1.
    pub(crate) fn begin(&self, request: u64) -> Option<Refused> {
        self.wait_for(Waits::SERVER);
        match self.refused.load(Relaxed) == request {
            true => self.end().refused.clone(),
            false => None,
        }
    }

    /// Notes that an actor begins to work on the request.
    pub(crate) fn ask(&self) {
        self.wait_for(Waits::ACTOR);
    }

    /// Returns whether the actor has not answered in time.
    pub(crate) fn is_actor_late(&self) -> bool {
        self.waits() == Waits::LATE_ACTOR
    }

    /// Notes that the request is answered, or is not wanted any more.
    pub(crate) fn finish(&self) {
        self.wait_for(Waits::CLIENT);
    }

    /// Notes that the client takes no more of an answer for now. Nothing is awaited of it meanwhile.
    pub(super) fn note_full(&self) {
        if self.waits() == Waits::CLIENT {
            self.wait_for(Waits::TAKER);
        }
    }

    /// Notes that the client has taken more of an answer.
    pub(super) fn note_taken(&self) {
        if self.waits() == Waits::TAKER {
            self.wait_for(Waits::CLIENT);
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

    pub(super) fn note_refused(&self, request: u64, why: Refused) {
        self.refused.store(request, Relaxed);
        self.end().refused = Some(why);
    }

    pub(super) fn waits(&self) -> Waits {
        Waits(self.waits.load(Relaxed))
    }

    pub(super) fn awaited(&self) -> Awaited {
        Awaited(self.awaited.load(Relaxed))
    }

    /// Returns a number that changes when the connection begins to wait for something else.
    pub(super) fn changes(&self) -> u32 {
        self.changes.load(Relaxed)
    }

    fn wait_for(&self, waits: Waits) {
        self.waits.store(waits.0, Relaxed);
        self.change();
    }

    fn change(&self) {
        let changes = self.changes.load(Relaxed);
        self.changes.store(changes.wrapping_add(1), Relaxed);
    }

    /// Returns whether the client is late, and was not told so yet.
    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Relaxed)
    }

    /// Notes that what the connection waits for has not come in time.
    pub(super) fn note_late(&self) {
        match self.waits() {
            Waits::ACTOR => self.waits.store(Waits::LATE_ACTOR.0, Relaxed),
            _ => self.is_late.store(true, Relaxed),
        }
    }

    /// Notes that some bytes have come.
    pub(super) fn note_some(&self) {
        self.is_late.store(false, Relaxed);
    }

    /// Notes that nothing has come, and what must come. Returns whether the client is late with it.
    /// If `is_idle`, it has sent no part of it.
    pub(super) fn awaits(&self, awaited: Awaited, is_idle: bool) -> bool {
        let is_same = self.awaited() == awaited;
        let is_late = self.is_late() && is_same;
        self.is_late.store(false, Relaxed);
        if !is_same {
            self.awaited.store(awaited.0, Relaxed);
            // The time of an actor goes on.
            if self.waits() == Waits::CLIENT {
                self.change();
            }
        }
        if is_late && is_idle {
            self.note_limit(match awaited {
                Awaited::HEAD => "idle_time",
                _ => "head_time",
            });
        }
        is_late
    }
}
