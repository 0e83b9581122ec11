//! The time that runs for a connection, beside hyper.
//!
//! A timer is not touched for each request: it may fire too early, and then runs on to the instant
//! that counts.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Instant;

use greenroom::time::{Sleep, sleep};

use super::state::{AwaitedPart, ConnectionState, ConnectionWait};

pub(crate) struct ConnectionClock<'a> {
    shared: &'a ConnectionState<'a>,
    /// Since when the connection waits for the same, and the number of that change.
    since: (u32, Instant),
    /// The timer for what is awaited of the client.
    client: (AwaitedPart, Option<Timer>),
    actor: Option<Timer>,
}

/// A timer that wakes the task of the connection.
struct Timer {
    fires: Instant,
    /// Wakes the task while it exists.
    _sleep: Sleep,
    wakes: Waker,
}

impl<'a> ConnectionClock<'a> {
    /// Creates the clock of a connection that begins now.
    pub(crate) fn new(shared: &'a ConnectionState<'a>) -> Self {
        ConnectionClock {
            shared,
            since: (shared.changes(), Instant::now()),
            client: (shared.awaited(), None),
            actor: None,
        }
    }

    /// Returns whether the client or the actor has just become late, so that hyper must go on. Must
    /// be called after each poll of hyper, which does not read while it knows that nothing has come.
    pub(crate) fn poll_late(&mut self, cx: &mut Context<'_>) -> bool {
        let (waits, awaited) = (self.shared.waits(), self.shared.awaited());
        let limits = self.shared.limits();
        let time = match (waits, awaited) {
            (ConnectionWait::ACTOR, _) => limits.answer_time,
            (ConnectionWait::CLIENT, _) if self.shared.is_late() => return false,
            (ConnectionWait::CLIENT, AwaitedPart::FIRST | AwaitedPart::REST) => limits.head_time,
            (ConnectionWait::CLIENT, AwaitedPart::HEAD) => limits.idle_time,
            // It hands over to the client when it has ended.
            (ConnectionWait::STREAM, _) => return self.shared.end_stream(),
            _ => return false,
        };
        let (now, changes) = (Instant::now(), self.shared.changes());
        // The time begins anew whenever the connection waits for something else.
        if self.since.0 != changes {
            self.since = (changes, now);
        }
        let Some(until) = self.since.1.checked_add(time) else {
            return false;
        };
        if until <= now {
            self.shared.note_late();
            return true;
        }
        if waits == ConnectionWait::ACTOR {
            set(&mut self.actor, until, now, cx);
            return false;
        }
        if self.client.0 != awaited {
            self.client = (awaited, None);
        }
        set(&mut self.client.1, until, now, cx);
        false
    }
}

/// Lets a timer fire at `until` or earlier.
fn set(timer: &mut Option<Timer>, until: Instant, now: Instant, cx: &mut Context<'_>) {
    let is_set = |timer: &Timer| {
        now < timer.fires && timer.fires <= until && timer.wakes.will_wake(cx.waker())
    };
    if timer.as_ref().is_some_and(is_set) {
        return;
    }
    let mut sleep = sleep(until - now);
    if Pin::new(&mut sleep).poll(cx).is_ready() {
        cx.waker().wake_by_ref();
    }
    *timer = Some(Timer {
        fires: until,
        _sleep: sleep,
        wakes: cx.waker().clone(),
    });
}
