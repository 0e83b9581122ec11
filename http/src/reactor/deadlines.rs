//! The deadlines of workers that wait: the thread that polls waits no longer than to the earliest one.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Deadlines {
    set: Mutex<DeadlineSet>,
    /// Ends the wait of the thread that polls.
    kick: Arc<mio::Waker>,
}

#[derive(Debug, Default)]
struct DeadlineSet {
    /// By the time and a number that no other deadline has.
    waiting: BTreeMap<(Instant, u64), Waker>,
    last: u64,
    /// Whether a thread polls, and until when if there is a limit.
    is_polling: bool,
    polls_until: Option<Instant>,
}

impl Deadlines {
    pub(super) fn new(kick: Arc<mio::Waker>) -> Self {
        Deadlines {
            set: Mutex::default(),
            kick,
        }
    }

    /// Returns how long the thread that polls may wait from now on.
    pub(super) fn begin_wait(&self) -> Option<Duration> {
        let mut set = self.set();
        let first = set.waiting.first_key_value().map(|((at, _), _)| *at);
        (set.is_polling, set.polls_until) = (true, first);
        first.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Notes that no thread polls any more, and adds to `woken` what is due.
    pub(super) fn end_wait(&self, woken: &mut Vec<Waker>) {
        let mut set = self.set();
        set.is_polling = false;
        if set.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(first) = set.waiting.first_entry().filter(|it| it.key().0 <= now) {
            woken.push(first.remove());
        }
    }

    fn set(&self) -> MutexGuard<'_, DeadlineSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future that completes at an instant, or up to a millisecond later.
pub(crate) struct Deadline {
    at: Instant,
    /// The number under which a waker waits, since the first poll.
    number: Option<u64>,
    all: &'static Deadlines,
}

impl Deadline {
    pub(super) fn new(at: Instant, all: &'static Deadlines) -> Self {
        Deadline {
            at,
            number: None,
            all,
        }
    }
}

impl Future for Deadline {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.at <= Instant::now() {
            return Poll::Ready(());
        }
        let mut set = self.all.set();
        let number = match self.number {
            Some(number) => number,
            None => {
                set.last += 1;
                set.last
            }
        };
        let before = set.waiting.insert((self.at, number), cx.waker().clone());
        // A thread that polls would wait longer than to this deadline.
        let must_wake = set.is_polling && set.polls_until.is_none_or(|until| self.at < until);
        drop(set);
        drop(before);
        self.number = Some(number);
        if must_wake {
            // Without it, this deadline is late. Nothing better can be done.
            let _ = self.all.kick.wake();
        }
        Poll::Pending
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.all.set().waiting.remove(&(self.at, number));
            drop(waker);
        }
    }
}
