//! How a thread sleeps: one token, which other threads leave to wake the thread.
//!
//! An `unpark` before `park` is not lost: the token stays until it is taken. Tokens do not
//! accumulate.
//!
//! Putting a core to sleep and waking it takes longer than most work that two threads do for each
//! other. So a thread whose last wait was short, and that other threads wait for, does not sleep
//! again at once. It first checks for its token or for work for a while. It yields to other threads
//! between the checks. A thread whose waits are long does not check.
//!
//! # Invariants
//! - PARK-1: `state` is [`PARKED`] only while its thread holds the lock, waits on `left`, or waits
//!   elsewhere (from `poll` to `stop_waiting`). So a thread that replaces `PARKED` by a token and then
//!   takes the lock finds the thread waiting, its waker, or the token as good as taken.

#[cfg(all(test, greenroom_loom))]
mod loom;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::cell::RefCell;
use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

use crate::contain::KeptWaker;
use crate::instant::Instant;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{Condvar, MODEL, Mutex, Process, mutant, yield_now};

/// The parker of one thread, which any thread may unpark.
pub(crate) struct Parker {
    /// [`NOTHING`], [`TOKEN`] or [`PARKED`].
    state: AtomicU32,
    /// Only its thread uses it: its last wait was short, so the next one may be.
    was_short: AtomicBool,
    /// Only its thread uses it: for this many waits it does not check before it sleeps, since
    /// another thread took its core when it did.
    wary: AtomicU32,
    parked: Mutex<ParkState>,
    /// Notified when a token was left for a parked thread.
    left: Condvar,
}

const NOTHING: u32 = 0;
const TOKEN: u32 = 1;
/// There is no token, and a thread that leaves one must wake the thread.
const PARKED: u32 = 2;

#[derive(Default)]
struct ParkState {
    /// The waker for the thread, if it waits elsewhere.
    waker: Option<KeptWaker>,
    /// How many more parks time out in this model, and how long they may be at most.
    #[cfg(greenroom_loom)]
    ending: (u32, Duration),
}

crate::sync::thread_local! {
    /// Stored with its process: at a `fork`, another thread may have held its lock.
    static OWN: RefCell<Option<(Process, Arc<Parker>)>> = const { RefCell::new(None) };
}

/// Returns the parker of this thread, for any wait for something that it drives: a future, a
/// foreign loop.
///
/// A thread that unparks it records the reason elsewhere: a token may be stale.
pub(crate) fn own() -> Arc<Parker> {
    let new = || (Process::current(), Arc::new(Parker::new()));
    let own = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        let old = own.take().filter(|(process, _)| process.is_current());
        own.insert(old.unwrap_or_else(new)).1.clone()
    });
    own.unwrap_or_else(|_| new().1)
}

impl Parker {
    /// The longest wait that counts as short: about the time to go to sleep and to be woken on
    /// another core, so that checking costs at most as much again.
    const SHORT: Duration = Duration::from_micros(50);
    /// A time slice: a thread that holds a core this long does not yield, as a checking thread
    /// would.
    const SLICE: Duration = Duration::from_millis(1);
    /// The number of waits without a check, after another thread took the core. A thread that
    /// checks without a core finds its work a slice or two late; with this, one wait in so many
    /// does.
    const WARY: u32 = 256;

    pub(crate) fn new() -> Self {
        Parker {
            state: AtomicU32::new(NOTHING),
            was_short: AtomicBool::new(false),
            wary: AtomicU32::new(0),
            parked: Mutex::new(ParkState::default()),
            left: Condvar::new(),
        }
    }

    /// Waits for the token and takes it, for at most `wait`; returns whether there was one.
    pub(crate) fn park(&self, wait: Option<Duration>) -> bool {
        self.take() || self.sleep(wait)
    }

    /// Does what `park` does, for a thread that other threads wait for.
    pub(crate) fn park_eagerly(&self, wait: Option<Duration>) -> bool {
        // Relaxed: a hint.
        let left = || self.state.load(Ordering::Relaxed) == TOKEN;
        self.take()
            || self.is_eager() && self.look(wait, left) && self.take()
            || self.park_timed(wait)
    }

    /// Does what `park` does, and records whether the wait was short.
    pub(crate) fn park_timed(&self, wait: Option<Duration>) -> bool {
        if MODEL {
            return self.park(wait);
        }
        if self.take() {
            return true;
        }
        let begun = Instant::now();
        let had_one = self.sleep(wait);
        // Relaxed: no other thread uses it.
        self.was_short
            .store(begun.elapsed() <= Self::SHORT, Ordering::Relaxed);
        had_one
    }

    /// Returns whether its thread may check for a while before it sleeps. Called once for each
    /// wait.
    pub(crate) fn is_eager(&self) -> bool {
        // Relaxed, as are all of these: no other thread uses it.
        let wary = self.wary.load(Ordering::Relaxed);
        if wary > 0 {
            self.wary.store(wary - 1, Ordering::Relaxed);
        }
        !MODEL && wary == 0 && self.was_short.load(Ordering::Relaxed)
    }

    /// Checks `is_there` at least once, and for at most `wait`; returns whether it became true.
    pub(crate) fn look(&self, wait: Option<Duration>, is_there: impl Fn() -> bool) -> bool {
        let most = wait.map_or(Self::SHORT, |wait| wait.min(Self::SHORT));
        let begun = Instant::now();
        let took = loop {
            if is_there() {
                return true;
            }
            yield_now();
            let took = begun.elapsed();
            if took >= most {
                break took;
            }
        };
        if took > 2 * Self::SHORT {
            // Another thread had the core, perhaps the awaited one. A thread that sleeps is woken
            // on a core that is free. Relaxed: no other thread uses it.
            self.was_short.store(false, Ordering::Relaxed);
        }
        if took > Self::SLICE {
            // Relaxed: no other thread uses it.
            self.wary.store(Self::WARY, Ordering::Relaxed);
        }
        false
    }

    /// Leaves the token, and wakes the thread if it sleeps.
    pub(crate) fn unpark(&self) {
        // AcqRel: all writes before this are visible to the thread that takes the token.
        if self.state.swap(TOKEN, Ordering::AcqRel) == PARKED {
            self.rouse();
        }
    }

    /// Wakes the thread, which sleeps.
    // Out of line, since nearly all calls of `unpark` end before this.
    #[cold]
    #[inline(never)]
    fn rouse(&self) {
        let mut waker = None;
        if !mutant("unpark_without_the_lock") {
            // (PARK-1) The thread waits from here on.
            waker = self.parked.lock().waker.take();
        }
        self.left.notify_one();
        if let Some(waker) = waker.filter(|_| !mutant("unpark_wakes_no_driver")) {
            waker.wake();
        }
    }

    /// Takes the token; returns whether there was one. If not, stores `waker` for the next one,
    /// until [`stop_waiting`](Parker::stop_waiting), since the thread waits elsewhere.
    pub(crate) fn poll(&self, waker: KeptWaker) -> bool {
        let mut parked = self.parked.lock();
        // (PARK-1) Before the exchange: a thread that replaces `PARKED` finds it.
        let before = parked.waker.replace(waker);
        // AcqRel pairs with that of `unpark`, if there is a token.
        let parks =
            self.state
                .compare_exchange(NOTHING, PARKED, Ordering::AcqRel, Ordering::Acquire);
        let had_one = parks == Err(TOKEN) && self.take();
        let unwanted = if had_one { parked.waker.take() } else { None };
        drop(parked);
        drop((before, unwanted));
        had_one
    }

    /// Ends a wait that began in [`poll`](Parker::poll), and takes the token; returns whether there
    /// was one.
    pub(crate) fn stop_waiting(&self) -> bool {
        let unwanted = self.parked.lock().waker.take();
        drop(unwanted);
        // AcqRel pairs with that of `unpark`.
        self.state.swap(NOTHING, Ordering::AcqRel) == TOKEN
    }

    /// Takes the token; returns whether there was one.
    fn take(&self) -> bool {
        // AcqRel pairs with that of `unpark`.
        self.state
            .compare_exchange(TOKEN, NOTHING, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Blocks the thread until there is a token, for at most `wait`; returns whether there was one.
    fn sleep(&self, wait: Option<Duration>) -> bool {
        let mut parked = self.parked.lock();
        // AcqRel pairs with that of `unpark`, if there is a token.
        let before =
            self.state
                .compare_exchange(NOTHING, PARKED, Ordering::AcqRel, Ordering::Acquire);
        while before.is_ok() && !parked.is_over(wait) {
            parked = self.left.wait(parked, wait);
            // Relaxed: the swap below takes the token. Without a timeout, a wake-up without a token
            // is spurious.
            if self.state.load(Ordering::Relaxed) == TOKEN || wait.is_some() && !MODEL {
                break;
            }
        }
        // AcqRel pairs with that of `unpark`.
        self.state.swap(NOTHING, Ordering::AcqRel) == TOKEN
    }

    /// Lets this many parks time out that have a timeout of at most `longest`, by this or the next
    /// threads that park here. No other time passes in a model.
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn let_time_pass(&self, parks: u32, longest: Duration) {
        self.parked.lock().ending = (parks, longest);
        self.left.notify_one();
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}

impl ParkState {
    /// Returns whether a park with this timeout must end, or not begin.
    #[cfg(not(greenroom_loom))]
    fn is_over(&self, wait: Option<Duration>) -> bool {
        wait == Some(Duration::ZERO)
    }

    #[cfg(greenroom_loom)]
    fn is_over(&mut self, wait: Option<Duration>) -> bool {
        let (parks, longest) = &mut self.ending;
        let over = *parks > 0 && wait.is_some_and(|wait| wait <= *longest);
        *parks -= u32::from(over);
        over || wait == Some(Duration::ZERO)
    }
}
