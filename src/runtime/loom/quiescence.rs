//! `model_18`: quiescence is declared only when nothing is in flight, and then it is declared.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ::loom::explore;
use ::loom::thread::{JoinHandle, spawn};

use super::super::deadlock::{Edge, Listing, Who};
use super::super::inner::Inner;
use super::super::quiescence::{KeepAlive, Quiescent};
use super::{Gate, end, join, lain_down, model_from_explore, push, queues, runtime_with};
use crate::info::{TaskInfo, TypeNames};
use crate::instant::{Instant, clock};
use crate::scheduler::choose;
use crate::scheduler::policy::Stealing;
use crate::timers::{Armed, DeadlineKind, TimerClock};

/// Returns a runtime whose only worker is counted, and sleeps.
fn asleep() -> (Arc<Inner>, Vec<JoinHandle<()>>) {
    lain_down(runtime_with(1, choose(Stealing::default())))
}

struct Opens(Arc<Gate>);

impl Wake for Opens {
    fn wake(self: Arc<Self>) {
        self.0.open();
    }
}

/// A task that waits for quiescence, with the gate that its waker opens.
pub(super) struct Watcher(Quiescent, Arc<Gate>);

impl Watcher {
    pub(super) fn new(inner: &Arc<Inner>) -> Watcher {
        Watcher(Quiescent::new(inner), Gate::new())
    }

    /// Waits until quiescence was declared.
    pub(super) fn wait(&mut self) {
        while self.poll().is_pending() {
            self.1.wait();
        }
    }

    fn poll(&mut self) -> Poll<()> {
        let waker = Waker::from(Arc::new(Opens(self.1.clone())));
        Pin::new(&mut self.0).poll(&mut Context::from_waker(&waker))
    }
}

/// Checks that quiescence follows the entries that a thread pushes before it drops its hold, and
/// the entries that these push.
#[test]
fn model_18_quiescence_is_declared_after_the_work_of_a_keep_alive() {
    model_from_explore(|| {
        let (inner, workers) = asleep();
        let mut watcher = Watcher::new(&inner);
        let hold = KeepAlive::new(&inner);
        assert!(watcher.poll().is_pending(), "it is held");
        explore();
        let bringer = spawn({
            let inner = inner.clone();
            move || {
                let own = inner.clone();
                let fate = push(&inner, move || drop(push(&own, || ())));
                drop(hold);
                fate
            }
        });
        watcher.wait();
        assert!(!queues(&inner).has_work(), "something is in flight");
        assert!(
            !queues(&inner).has_any(usize::MAX),
            "something is in flight"
        );
        let fate = bringer.join().unwrap();
        assert_eq!(fate.of(), (1, 0), "something is in flight");
        end(&inner);
        join(workers);
    });
}

/// Checks that a thread that drops the last hold while all workers sleep declares quiescence.
#[test]
fn model_18_quiescence_comes_with_the_last_keep_alive() {
    model_from_explore(|| {
        let (inner, workers) = asleep();
        let hold = KeepAlive::new(&inner);
        explore();
        let holder = spawn(move || drop(hold));
        Watcher::new(&inner).wait();
        holder.join().unwrap();
        end(&inner);
        join(workers);
    });
}

/// Checks that a watcher that arrives when the runtime is idle is woken, even if a worker parks
/// just then.
#[test]
fn model_18_a_late_watcher_observes_quiescence() {
    model_from_explore(|| {
        let (inner, workers) = asleep();
        explore();
        let fate = push(&inner, || ());
        Watcher::new(&inner).wait();
        // A push from outside, without a hold, may come after the end.
        end(&inner);
        join(workers);
        let (runs, drops) = fate.of();
        assert!(runs + drops <= 1, "run or dropped, once");
    });
}

/// A waker that pushes an entry, which opens the gate and completes the ask that has timed out.
struct Pushes(Arc<Inner>, Arc<Gate>, Option<Arc<Listing>>);

impl Wake for Pushes {
    fn wake(self: Arc<Self>) {
        let (ran, asked) = (self.1.clone(), self.2.clone());
        push(&self.0, move || {
            let is_ended = asked.is_some_and(|asked| asked.finish().is_none());
            assert!(!is_ended, "something is in flight");
            ran.open();
        });
    }
}

const SOON: Duration = Duration::from_secs(1);

fn arm(inner: &Arc<Inner>, kind: DeadlineKind, waker: &Waker) -> Armed {
    let clock: Arc<dyn TimerClock> = inner.clone();
    Armed::new(clock, Instant::now() + SOON, kind, waker).expect("they are open")
}

/// Lists an ask with a timeout, of one actor by another, which may be the same.
fn ask(inner: &Arc<Inner>, [asker, asked]: [u64; 2]) -> Listing {
    let of = |id| TaskInfo::of_actor(id, None, TypeNames::of::<(), ()>, 0);
    let (from, to) = (Who::Task(of(asker)), of(asked));
    inner.asks.list(Edge::of_ask(from, to), None, true)
}

/// Checks that a deadline that expires just now is in the table, or held by a worker that is
/// counted.
#[test]
fn model_18_quiescence_is_declared_after_the_work_of_a_deadline() {
    the_end_is_declared_after_what_comes_soon(DeadlineKind::Event);
}

/// Checks the same for the timeout of an ask that is in no deadlock and is not ended as one.
#[test]
fn model_18_quiescence_is_declared_after_the_work_of_a_timeout() {
    the_end_is_declared_after_what_comes_soon(DeadlineKind::Timeout);
}

fn the_end_is_declared_after_what_comes_soon(kind: DeadlineKind) {
    model_from_explore(move || {
        let (inner, workers) = asleep();
        let ran = Gate::new();
        let asked = (kind == DeadlineKind::Timeout).then(|| Arc::new(ask(&inner, [1, 2])));
        let pushes = Pushes(inner.clone(), ran.clone(), asked);
        let waker = Waker::from(Arc::new(pushes));
        let armed = arm(&inner, kind, &waker);
        explore();
        clock::advance(SOON);
        queues(&inner).sleep.let_time_pass(3, SOON);
        Watcher::new(&inner).wait();
        assert!(ran.is_open(), "something is in flight");
        drop(armed);
        end(&inner);
        join(workers);
    });
}

/// Checks that a deadlock is found when the timeout of an ask becomes the last deadline. Another
/// deadline is cancelled just as the worker parks, and one of the two threads sees the deadlock.
#[test]
fn model_18_a_deadlock_is_found_when_only_its_timeouts_are_left() {
    model_from_explore(|| {
        let (inner, workers) = asleep();
        let notified = Gate::new();
        let listing = ask(&inner, [1, 1]);
        let waker = Waker::from(Arc::new(Opens(notified.clone())));
        assert!(listing.swap_waker(&mut Some(waker.into())).is_none());
        let [timeout, event] = [DeadlineKind::Timeout, DeadlineKind::Event]
            .map(|kind| arm(&inner, kind, Waker::noop()));
        explore();
        let fate = push(&inner, || ());
        drop(event);
        notified.wait();
        assert!(listing.swap_waker(&mut None).is_some(), "it is a deadlock");
        drop((listing, timeout));
        end(&inner);
        join(workers);
        let (runs, drops) = fate.of();
        assert!(runs + drops <= 1, "run or dropped, once");
    });
}

/// Checks the same for the quiescence of a runtime without such an ask.
#[test]
fn model_18_quiescence_comes_when_the_last_deadline_is_cancelled() {
    model_from_explore(|| {
        let (inner, workers) = asleep();
        let mut watcher = Watcher::new(&inner);
        let event = arm(&inner, DeadlineKind::Event, Waker::noop());
        assert!(watcher.poll().is_pending(), "something is to come");
        explore();
        let fate = push(&inner, || ());
        drop(event);
        watcher.wait();
        end(&inner);
        join(workers);
        let (runs, drops) = fate.of();
        assert!(runs + drops <= 1, "run or dropped, once");
    });
}
