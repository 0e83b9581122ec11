//! A thread that waits in `block_on`: its future counts as activity while it is ready or polled.
//!
//! # Invariants
//! - WAIT-1: a wait may take an unpark token that was left for a surrounding wait, or for the loop
//!   of its thread. Therefore these check what they wait for before they park, or find the token
//!   that each wait leaves when it is over.
//! - WAIT-2: an idle wait is counted before it is woken. It may be over at once; if it were counted
//!   later, it would be released before it is counted, and no thread would check for quiescence.

use std::sync::Arc;
use std::task::{Wake, Waker};

use super::context;
use super::host::HostContext;
use super::inner::Inner;
use crate::instant::Instant;
use crate::park::{self, Parker};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::mutant;
use crate::timers::Clock;

/// The future is being polled.
const POLLED: u32 = 0;
/// The future was woken, and will be polled again.
const WOKEN: u32 = 1;
/// The wait is idle, and not counted.
const IDLE: u32 = 2;

/// The state that the waker of the future and the polling thread share.
struct SharedWait {
    runtime: Arc<Inner>,
    state: AtomicU32,
    /// The timers that only this thread fires.
    clock: Option<Arc<dyn Clock>>,
    parker: Arc<Parker>,
}

impl SharedWait {
    /// Returns the clock's parker if it has one, so that a wake-up for a deadline reaches the
    /// thread.
    fn parker(&self) -> &Parker {
        let clock = self.clock.as_ref();
        clock
            .and_then(|clock| clock.parker())
            .unwrap_or(&self.parker)
    }
}

/// The polling thread's side of a wait. Until the future completes, it is counted while it is not
/// idle.
pub(super) struct Waiting {
    shared: Arc<SharedWait>,
    /// The count is that of the task that waits here, which releases it only while the wait is
    /// idle.
    lent: bool,
}

impl Waiting {
    pub(super) fn new(runtime: &Arc<Inner>, clock: Option<Arc<dyn Clock>>) -> Waiting {
        let lent = context::lends_its_count(runtime);
        if !lent {
            runtime.inc_activity();
        }
        let shared = Arc::new(SharedWait {
            runtime: runtime.clone(),
            state: AtomicU32::new(POLLED),
            clock,
            parker: park::own(),
        });
        Waiting { shared, lent }
    }

    pub(super) fn waker(&self) -> Waker {
        Waker::from(self.shared.clone())
    }

    /// Returns the timers that only this thread fires.
    pub(super) fn clock(&self) -> Option<&Arc<dyn Clock>> {
        self.shared.clock.as_ref()
    }

    /// Parks until a wake-up, unless there was one during the poll. Fires the timers that only this
    /// thread fires.
    ///
    /// # Panics
    /// In a process that was forked during the poll.
    #[track_caller]
    pub(super) fn park(&self) {
        self.shared.runtime.check_process();
        let SharedWait {
            runtime,
            state,
            clock,
            ..
        } = &*self.shared;
        let parker = self.shared.parker();
        let timers = clock.as_ref().map(|clock| clock.timers());
        if let Some(timers) = timers.filter(|timers| !timers.is_empty()) {
            // An armed deadline counts as activity, so this wait stays counted.
            if timers.fire(Instant::now()) == 0 {
                parker.park_eagerly(timers.until_next());
            }
            return self.begin_poll();
        }
        // AcqRel, and Acquire on failure, pair with the exchange of the waker in `try_wake`.
        let rests = if mutant("idle_without_exchange") {
            state.store(IDLE, Ordering::Release);
            Ok(POLLED)
        } else {
            state.compare_exchange(POLLED, IDLE, Ordering::AcqRel, Ordering::Acquire)
        };
        if rests.is_ok() {
            runtime.dec_activity();
        }
        while !self.is_woken() {
            parker.park_eagerly(None);
            // A token of the thread's own parker may be left over from something else, so the loop
            // checks. A token of a clock's parker may be for its deadlines, so the future is
            // polled.
            if clock.is_some() {
                break;
            }
        }
        self.begin_poll();
    }

    /// Returns whether the future is to be polled again.
    fn is_woken(&self) -> bool {
        // Acquire pairs with the exchange in `try_wake`.
        self.shared.state.load(Ordering::Acquire) == WOKEN
    }

    fn begin_poll(&self) {
        // AcqRel: as above.
        if self.shared.state.swap(POLLED, Ordering::AcqRel) == IDLE {
            // No waker has counted this wait, so it counts itself.
            self.shared.runtime.inc_activity();
        }
    }

    /// Waits on the thread of a stage, whose tasks run meanwhile. A stage counts as activity as
    /// long as it exists, so this wait stays counted.
    #[track_caller]
    pub(super) fn park_on(&self, stage: &dyn HostContext) {
        self.shared.runtime.check_process();
        while !self.is_woken() {
            if stage.run_ready() == 0 && !self.is_woken() {
                self.shared.parker().park_eagerly(stage.until_next());
            }
        }
        self.begin_poll();
    }
}

impl SharedWait {
    /// Tries to mark the wait as woken. Returns false if its state changed meanwhile and the caller
    /// must retry.
    fn try_wake(&self) -> bool {
        // Relaxed: the exchange decides.
        let seen = self.state.load(Ordering::Relaxed);
        let is_late = mutant("counted_after_the_wake_up");
        if seen == IDLE && !is_late {
            // (WAIT-2)
            self.runtime.inc_activity();
        }
        // AcqRel: the next poll sees what the waking thread wrote. Relaxed on failure, after which
        // the caller retries.
        let woken = self
            .state
            .compare_exchange(seen, WOKEN, Ordering::AcqRel, Ordering::Relaxed);
        match woken {
            Ok(IDLE) if is_late => self.runtime.inc_activity(),
            // Another waker has counted it, or the waiting thread itself.
            Err(_) if seen == IDLE && !is_late => self.runtime.dec_activity(),
            _ => {}
        }
        woken.is_ok()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.shared.runtime.is_here() {
            return;
        }
        // A waker that still exists wakes and counts nothing from now on. Release: as above.
        self.shared.state.store(WOKEN, Ordering::Release);
        if self.shared.clock.is_some() && !mutant("a_wait_keeps_the_token") {
            // (WAIT-1)
            self.shared.parker().unpark();
        }
        if !self.lent {
            self.shared.runtime.dec_activity();
        }
    }
}

impl Wake for SharedWait {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.runtime.is_here() {
            return;
        }
        while !self.try_wake() {}
        self.parker().unpark();
    }
}
