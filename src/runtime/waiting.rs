//! A thread that waits in `block_on`: its future counts as work while it is ready to run.
//!
//! # Invariants
//! - WAIT-1: a wait may take a token that was left for a wait around it, or for the loop of its thread. So
//!   either of these looks at what it waits for before it parks, or finds the token that each wait leaves
//!   when it is over.
//! - WAIT-2: an idle wait is counted before it is woken. It may be over at once, and would else be counted no more
//!   before it is counted; then nobody would look for the end.

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
/// It was woken, and is polled again.
const WOKEN: u32 = 1;
/// It waits, and is not counted.
const IDLE: u32 = 2;

/// What the waker of the future and the thread that polls it share.
struct SharedWait {
    runtime: Arc<Inner>,
    state: AtomicU32,
    /// The timers that only this thread looks at.
    clock: Option<Arc<dyn Clock>>,
    parker: Arc<Parker>,
}

impl SharedWait {
    /// That of the clock, if that has one: whoever wakes the thread for a deadline finds it there.
    fn parker(&self) -> &Parker {
        let clock = self.clock.as_ref();
        clock
            .and_then(|clock| clock.parker())
            .unwrap_or(&self.parker)
    }
}

/// The thread's own side: as long as the future is not done, it is counted while it does not wait.
pub(super) struct Waiting {
    shared: Arc<SharedWait>,
    /// A task that waits like this is counted already, and not while it waits.
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

    /// Waits for a wake-up, unless there was one in the poll; fires the timers that only this thread
    /// looks at.
    ///
    /// # Panics
    /// In a process that was forked in the poll.
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
            // A deadline counts, so this one goes on being counted.
            if timers.fire(Instant::now()) == 0 {
                parker.park_eagerly(timers.until_next());
            }
            return self.begin_poll();
        }
        // AcqRel, and Acquire on failure, pair with the exchange of whoever wakes.
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
            // A token of this thread's own parker may be left of something else; that of a clock is
            // also for its deadlines.
            if clock.is_some() {
                break;
            }
        }
        self.begin_poll();
    }

    /// Whether the future is to be polled again.
    fn is_woken(&self) -> bool {
        // Acquire pairs with the exchange of whoever wakes.
        self.shared.state.load(Ordering::Acquire) == WOKEN
    }

    fn begin_poll(&self) {
        // AcqRel: as above.
        if self.shared.state.swap(POLLED, Ordering::AcqRel) == IDLE {
            // Nobody has woken it, so this one counts itself.
            self.shared.runtime.inc_activity();
        }
    }

    /// The same on the thread of a stage, whose tasks run meanwhile. That is work of the runtime as long
    /// as there is the stage, so this one goes on being counted.
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
    /// False if the state was changed meanwhile, so that this is to be tried again.
    fn try_wake(&self) -> bool {
        // Relaxed: the exchange decides.
        let seen = self.state.load(Ordering::Relaxed);
        let is_late = mutant("counted_after_the_wake_up");
        if seen == IDLE && !is_late {
            // (WAIT-2)
            self.runtime.inc_activity();
        }
        // AcqRel: what the one who wakes wrote is seen by the poll that follows. Relaxed on failure: it is tried
        // again.
        let woken = self
            .state
            .compare_exchange(seen, WOKEN, Ordering::AcqRel, Ordering::Relaxed);
        match woken {
            Ok(IDLE) if is_late => self.runtime.inc_activity(),
            // Somebody else has, or its own thread.
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
        // Whoever still has the waker wakes nobody, and counts nobody. Release: as above.
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
