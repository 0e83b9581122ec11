//! `model_28`, of the table: a deadline fires once or is cancelled, never both, and is never lost.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use ::loom::thread::spawn;

use super::{Armed, DeadlineKind, TimerClock, Timers};
use crate::instant::Instant;
use crate::sync::global::{AtomicU64, Ordering};

impl TimerClock for Timers {
    fn timers(&self) -> &Timers {
        self
    }

    fn armed(&self, _earliest: bool, _waker: &Waker) {}
}

/// A waker that counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicU64);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Bell {
    fn new() -> (Arc<Bell>, Waker) {
        let bell = Arc::new(Bell::default());
        (bell.clone(), Waker::from(bell))
    }

    fn rings(&self) -> usize {
        usize::try_from(self.0.load(Ordering::Relaxed)).expect("a few")
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(1)
}

/// Checks that one of two threads fires a deadline once, or that it is cancelled. Its waker is
/// dropped, and was woken only if it fired.
#[test]
fn model_28_a_deadline_is_fired_once_or_cancelled() {
    ::loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (bell, waker) = Bell::new();
        let firing = spawn({
            let timers = timers.clone();
            move || timers.fire(soon())
        });
        let cancelled =
            Armed::new(timers.clone(), soon(), DeadlineKind::Event, &waker).expect("open");
        let other = timers.fire(soon());
        drop((cancelled, waker));
        let fired = firing.join().unwrap() + other;
        assert!(fired <= 1, "fired twice");
        assert_eq!(bell.rings(), fired, "woken as often as fired");
        assert_eq!(Arc::strong_count(&bell), 1, "the waker was dropped");
        assert!(timers.is_empty(), "nothing is left in the table");
    });
}

/// Checks that two deadlines that are armed while a thread fires both fire, then or the next time.
#[test]
fn model_28_no_deadline_is_lost() {
    ::loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (bell, waker) = Bell::new();
        let arming = spawn({
            let (timers, waker) = (timers.clone(), waker.clone());
            move || Armed::new(timers, soon(), DeadlineKind::Event, &waker).expect("open")
        });
        let firing = spawn({
            let timers = timers.clone();
            move || timers.fire(soon())
        });
        let armed = Armed::new(timers.clone(), soon(), DeadlineKind::Event, &waker).expect("open");
        let other = arming.join().unwrap();
        let fired = firing.join().unwrap() + timers.fire(soon());
        assert_eq!((fired, bell.rings()), (2, 2), "each fired once");
        drop((armed, other));
    });
}

/// Checks that a deadline whose waker is looked at while it fires is still there, or was fired.
#[test]
fn model_28_a_deadline_that_has_fired_wakes_nothing_more() {
    ::loom::model(|| {
        let timers = Arc::new(Timers::new());
        let ((bell, waker), (_, another)) = (Bell::new(), Bell::new());
        let armed = Armed::new(timers.clone(), soon(), DeadlineKind::Event, &waker).expect("open");
        let firing = spawn({
            let timers = timers.clone();
            move || timers.fire(soon())
        });
        assert!(!armed.wakes(&another), "it wakes another task");
        let wakes = armed.wakes(&waker);
        assert!(wakes || timers.is_empty(), "it is lost");
        assert_eq!(firing.join().unwrap(), 1, "fired once");
        assert_eq!(bell.rings(), 1, "woken once");
        assert!(!armed.wakes(&waker), "it has fired");
    });
}

/// Checks that a closing table either refuses a deadline or wakes it.
#[test]
fn model_28_a_closed_table_refuses_or_wakes() {
    ::loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (bell, waker) = Bell::new();
        let closing = spawn({
            let timers = timers.clone();
            move || timers.close()
        });
        let taken = Armed::new(timers, soon(), DeadlineKind::Event, &waker);
        closing.join().unwrap();
        assert_eq!(
            bell.rings(),
            usize::from(taken.is_some()),
            "refused or woken"
        );
    });
}
