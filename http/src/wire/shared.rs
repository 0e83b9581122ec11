//! What the two sides of hyper know of a connection, and the time that runs for it.
//!
//! One task polls both sides. A timer is not touched for each request: it may fire too early, and
//! then runs on to the instant that counts.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use greenroom::time::{Sleep, sleep};

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
    known: Mutex<Known>,
}

struct Known {
    /// The number of the request that was refused, and why.
    refused: Option<(u64, Refused)>,
    /// The server has ended the connection, whatever the client still sends.
    has_ended: bool,
    /// The limit for which the connection was closed without an answer.
    limit: Option<&'static str>,
    /// What the client must send next, unless a request is being answered.
    awaited: Option<Awaited>,
    waits: Waits,
    /// It has not come in time.
    is_late: bool,
    /// The timer for what is awaited of the client.
    client_timer: Option<(Awaited, Timer)>,
    actor_timer: Option<Timer>,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// For what is awaited of the client: since when it is.
    Client(Option<Instant>),
    /// For a request to be complete, or for an answer that takes what it takes.
    Server,
    /// For an actor: since when.
    Actor(Option<Instant>),
    /// The actor has not answered in time.
    LateActor,
}

/// What a client must send within some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The first head, from the begin of the connection on.
    First,
    /// The first byte of another head.
    Head,
    /// The rest of a head.
    Rest,
}

/// A timer that wakes the task of the connection.
struct Timer {
    fires: Instant,
    /// Wakes the task while it exists.
    _sleep: Sleep,
    wakes: Waker,
}

impl Shared {
    /// Creates what is known of a connection that begins now.
    pub(crate) fn new(times: Times) -> Self {
        Shared {
            times,
            known: Mutex::new(Known {
                refused: None,
                has_ended: false,
                limit: None,
                awaited: Some(Awaited::First),
                waits: Waits::Client(Some(Instant::now())),
                is_late: false,
                client_timer: None,
                actor_timer: None,
            }),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn times(&self) -> &Times {
        &self.times
    }

    /// Notes that a request is complete, so that no other one need come. Returns why it was refused,
    /// if it was. The first one has number 1.
    pub(crate) fn begin(&self, request: u64) -> Option<Refused> {
        let mut known = self.known();
        known.waits = Waits::Server;
        let refused = known.refused.as_ref();
        let refused = refused.filter(|(number, _)| *number == request);
        refused.map(|(_, why)| why.clone())
    }

    /// Notes that an actor begins to work on the request.
    pub(crate) fn ask(&self) {
        self.known().waits = Waits::Actor(None);
    }

    /// Returns whether the actor has not answered in time.
    pub(crate) fn is_actor_late(&self) -> bool {
        self.known().waits == Waits::LateActor
    }

    /// Notes that the request is answered, or is not wanted any more.
    pub(crate) fn finish(&self) {
        self.known().waits = Waits::Client(None);
    }

    /// Returns the status of a refusal.
    pub(crate) fn last_refused(&self) -> Option<u16> {
        self.known().refused.as_ref().map(|(_, why)| why.status)
    }

    /// Notes that the server ends the connection before the client does.
    pub(crate) fn end(&self) {
        self.known().has_ended = true;
    }

    /// Returns the limit for which the connection was closed without an answer.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        self.known().limit
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.known().has_ended
    }

    pub(super) fn note_refused(&self, request: u64, why: Refused) {
        self.known().refused = Some((request, why));
    }

    pub(super) fn note_limit(&self, limit: &'static str) {
        self.known().limit = Some(limit);
    }

    /// Notes that some bytes have come.
    pub(super) fn note_some(&self) {
        self.known().is_late = false;
    }

    /// Notes that nothing has come, and what must come. Returns whether the client is late with it.
    /// If `is_idle`, it has sent no part of it.
    pub(super) fn awaits(&self, awaited: Option<Awaited>, is_idle: bool) -> bool {
        let mut known = self.known();
        let is_late = std::mem::take(&mut known.is_late) && known.awaited == awaited;
        if known.awaited != awaited {
            known.awaited = awaited;
            if let Waits::Client(since) = &mut known.waits {
                *since = None;
            }
        }
        if is_late && is_idle {
            known.limit = Some(match awaited {
                Some(Awaited::Head) => "idle_time",
                _ => "head_time",
            });
        }
        is_late
    }

    /// Returns whether the client or the actor has just become late, so that hyper must go on. Must
    /// be called after each poll of hyper, which does not read while it knows that nothing has come.
    pub(crate) fn poll_late(&self, cx: &mut Context<'_>) -> bool {
        let known = &mut *self.known();
        let now = Instant::now();
        let until = match (&mut known.waits, known.awaited) {
            (Waits::Actor(since), _) => since.get_or_insert(now).checked_add(self.times.answer),
            (Waits::Client(since), Some(awaited)) if !known.is_late => {
                let time = match awaited {
                    Awaited::First | Awaited::Rest => self.times.head,
                    Awaited::Head => self.times.idle,
                };
                since.get_or_insert(now).checked_add(time)
            }
            _ => None,
        };
        let Some(until) = until else {
            return false;
        };
        let is_late = until <= now;
        match (&mut known.waits, known.awaited) {
            (Waits::Client(_), _) if is_late => known.is_late = true,
            (waits, _) if is_late => *waits = Waits::LateActor,
            (Waits::Client(_), Some(awaited)) => {
                let timer = known.client_timer.take().filter(|(of, _)| *of == awaited);
                let timer = Timer::until(until, now, timer.map(|(_, timer)| timer), cx);
                known.client_timer = Some((awaited, timer));
            }
            _ => {
                let timer = known.actor_timer.take();
                known.actor_timer = Some(Timer::until(until, now, timer, cx));
            }
        }
        is_late
    }
}

impl Timer {
    /// Returns a timer that fires at `until` or earlier: `own` if it does.
    fn until(until: Instant, now: Instant, own: Option<Timer>, cx: &mut Context<'_>) -> Timer {
        let is_set = |timer: &Timer| {
            now < timer.fires && timer.fires <= until && timer.wakes.will_wake(cx.waker())
        };
        match own {
            Some(timer) if is_set(&timer) => timer,
            _ => Timer::new(until, now, cx),
        }
    }

    fn new(fires: Instant, now: Instant, cx: &mut Context<'_>) -> Self {
        let mut sleep = sleep(fires - now);
        if Pin::new(&mut sleep).poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Timer {
            fires,
            _sleep: sleep,
            wakes: cx.waker().clone(),
        }
    }
}
