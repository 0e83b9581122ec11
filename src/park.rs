//! A thread's parking place: one token, left by whoever wakes the thread.
//!
//! `unpark` before `park` is not lost: the token stays until it is taken. Tokens do not add up.
//!
//! To put a core to sleep and to rouse it takes longer than most of what two threads do for each other.
//! So a thread that others wait for, and whose last wait was short, looks for its token, or for work, a while
//! before it sleeps, and gives way to other threads meanwhile. One that waits for long does that once.
//!
//! # Invariants
//! - PARK-1: `state` is [`PARKED`] only while its thread holds the lock or waits on `left`. So whoever
//!   replaces that by a token and then takes the lock finds the thread waiting, or gone with the token.

#[cfg(all(test, greenroom_loom))]
mod loom;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use crate::contain::contain;
use crate::instant::Instant;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{Condvar, MODEL, Mutex, Process, mutant, yield_now};

/// Where one thread parks; anybody may unpark it.
pub(crate) struct Parker {
    /// [`NOTHING`], [`TOKEN`] or [`PARKED`].
    state: AtomicU32,
    /// Its thread's own: its last wait was short, so the next one may be.
    was_short: AtomicBool,
    /// The same: for so many waits it does not look, since another thread took its core when it did.
    wary: AtomicU32,
    place: Mutex<ParkPlace>,
    left: Condvar,
}

const NOTHING: u32 = 0;
const TOKEN: u32 = 1;
/// There is no token, and the thread has to be roused for one.
const PARKED: u32 = 2;

#[derive(Default)]
struct ParkPlace {
    /// What wakes the thread, if that waits elsewhere.
    waker: Option<Waker>,
    /// How many more parks end by themselves in this model, and of what length they are at most.
    #[cfg(greenroom_loom)]
    ending: (u32, Duration),
}

crate::sync::thread_local! {
    /// With the process that it is of: another thread may have had its lock at a `fork`.
    static OWN: RefCell<Option<(Process, Arc<Parker>)>> = const { RefCell::new(None) };
}

/// Where this thread parks when it waits for anything that it drives: a future, a foreign loop.
///
/// Whoever wakes it says elsewhere what for, since a token may be left of something that is over.
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
    /// A wait that is no longer than this is short. About what it takes to sleep and to be roused on
    /// another core, so that looking costs at most as much again.
    const SHORT: Duration = Duration::from_micros(50);
    /// Whoever has a core for as long as this does not give way, as those do that look.
    const SLICE: Duration = Duration::from_millis(1);
    /// A thread that looks and has no core finds its work late by such a slice or two. With this that is one
    /// in so many waits.
    const WARY: u32 = 256;

    pub(crate) fn new() -> Self {
        Parker {
            state: AtomicU32::new(NOTHING),
            was_short: AtomicBool::new(false),
            wary: AtomicU32::new(0),
            place: Mutex::new(ParkPlace::default()),
            left: Condvar::new(),
        }
    }

    /// Waits for the token and takes it, at most `wait` long; says whether there was one.
    pub(crate) fn park(&self, wait: Option<Duration>) -> bool {
        self.take() || self.sleep(wait)
    }

    /// The same, for a thread that others wait for.
    pub(crate) fn park_eagerly(&self, wait: Option<Duration>) -> bool {
        // Relaxed: a hint.
        let left = || self.state.load(Ordering::Relaxed) == TOKEN;
        self.take()
            || self.is_eager() && self.look(wait, left) && self.take()
            || self.park_timed(wait)
    }

    /// Waits for the token as `park` does, and remembers whether that was short.
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

    /// Whether its thread, whose last wait was short, may look a while before the next; asked once a wait.
    pub(crate) fn is_eager(&self) -> bool {
        // Relaxed, as all of it: no other thread uses it.
        let wary = self.wary.load(Ordering::Relaxed);
        if wary > 0 {
            self.wary.store(wary - 1, Ordering::Relaxed);
        }
        !MODEL && wary == 0 && self.was_short.load(Ordering::Relaxed)
    }

    /// Looks for something a while, at most `wait` long; whether it is there.
    pub(crate) fn look(&self, wait: Option<Duration>, is_there: impl Fn() -> bool) -> bool {
        let most = wait.map_or(Self::SHORT, |wait| wait.min(Self::SHORT));
        let begun = Instant::now();
        while begun.elapsed() < most {
            if is_there() {
                return true;
            }
            yield_now();
        }
        let took = begun.elapsed();
        if took > 2 * Self::SHORT {
            // Another thread had the core, perhaps the one that this waits for. Asleep, this one is
            // roused on a core that is free. Relaxed: no other thread uses it.
            self.was_short.store(false, Ordering::Relaxed);
        }
        if took > Self::SLICE {
            // Relaxed: as above.
            self.wary.store(Self::WARY, Ordering::Relaxed);
        }
        false
    }

    pub(crate) fn unpark(&self) {
        // AcqRel: what was done before is seen by whoever takes the token.
        if self.state.swap(TOKEN, Ordering::AcqRel) == PARKED {
            self.rouse();
        }
    }

    /// Wakes the thread, which has to be roused for the token.
    // A part of each wake-up otherwise, since nearly all of them end before this.
    #[cold]
    #[inline(never)]
    fn rouse(&self) {
        let mut waker = None;
        if !mutant("unpark_without_the_lock") {
            // (PARK-1) It waits from here on.
            waker = self.place.lock().waker.take();
        }
        self.left.notify_one();
        if let Some(waker) = waker.filter(|_| !mutant("unpark_wakes_no_driver")) {
            contain(|| waker.wake());
        }
    }

    /// Takes the token. If there is none, leaves `waker` for the next one, until [`stop_waiting`](Parker::stop_waiting):
    /// the thread waits elsewhere.
    pub(crate) fn poll(&self, waker: Waker) -> bool {
        let mut place = self.place.lock();
        // (PARK-1) Before the exchange: who replaces PARKED finds it.
        let before = place.waker.replace(waker);
        // AcqRel: as in `take`, if there is a token.
        let parks =
            self.state
                .compare_exchange(NOTHING, PARKED, Ordering::AcqRel, Ordering::Acquire);
        let had_one = parks == Err(TOKEN) && self.take();
        let unwanted = if had_one { place.waker.take() } else { None };
        drop(place);
        contain(|| drop((before, unwanted)));
        had_one
    }

    /// Ends a wait that began in [`poll`](Parker::poll), and takes the token.
    pub(crate) fn stop_waiting(&self) -> bool {
        let unwanted = self.place.lock().waker.take();
        contain(|| drop(unwanted));
        // AcqRel pairs with that of `unpark`.
        self.state.swap(NOTHING, Ordering::AcqRel) == TOKEN
    }

    fn take(&self) -> bool {
        // AcqRel pairs with that of `unpark`.
        self.state
            .compare_exchange(TOKEN, NOTHING, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Waits without running.
    fn sleep(&self, wait: Option<Duration>) -> bool {
        let mut place = self.place.lock();
        // AcqRel: as in `take`, if there is a token.
        let before =
            self.state
                .compare_exchange(NOTHING, PARKED, Ordering::AcqRel, Ordering::Acquire);
        while before.is_ok() && !place.is_over(wait) {
            place = self.left.wait(place, wait);
            // Relaxed: the exchange below is what takes it. Without a time-out a wake-up without a
            // token is one without a reason.
            if self.state.load(Ordering::Relaxed) == TOKEN || wait.is_some() && !MODEL {
                break;
            }
        }
        // AcqRel pairs with that of `unpark`.
        self.state.swap(NOTHING, Ordering::AcqRel) == TOKEN
    }

    /// In a model no time passes but by this: as many parks as that, of this or the next threads
    /// that park here with a time-out of at most `longest`, are over.
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn let_time_pass(&self, parks: u32, longest: Duration) {
        self.place.lock().ending = (parks, longest);
        self.left.notify_one();
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}

impl ParkPlace {
    /// Whether a park of this length need not begin, or not go on.
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
