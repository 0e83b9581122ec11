//! The poller: it waits for the events of the system, for the one thread at a time that has locked it.
//!
//! A worker that has work unlocks the poller, and mostly comes back soon. To wake another thread each
//! time would cost more than a request. So a watchdog checks every few milliseconds whether the
//! poller was locked meanwhile. While it is locked, the watchdog rests.

use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::Duration;

use mio::{Events, Poll};

use super::worker::WorkerWaker;

/// The events that one wait gives at most.
const EVENTS: usize = 256;

/// The time after which a poller that was not locked at all is locked.
pub(super) const TICK: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Poller {
    poll: Poll,
    events: Events,
}

/// The lock of the poller. Threads that do not get it are woken to try again, in no order.
#[derive(Debug)]
pub(super) struct PollerLock(Mutex<PollerState>);

#[derive(Debug)]
struct PollerState {
    /// `None` while a thread has it.
    poller: Option<Box<Poller>>,
    /// How often the poller was locked.
    times_locked: u64,
    /// The workers that wait because another thread has the poller.
    idle: Vec<Arc<WorkerWaker>>,
}

/// The poller while a thread has it. Dropping it unlocks the poller.
pub(super) struct PollerGuard<'a> {
    poller: Option<Box<Poller>>,
    lock: &'a PollerLock,
}

impl PollerLock {
    pub(super) fn new(poll: Poll) -> Self {
        let events = Events::with_capacity(EVENTS);
        PollerLock(Mutex::new(PollerState {
            poller: Some(Box::new(Poller { poll, events })),
            times_locked: 0,
            idle: Vec::new(),
        }))
    }

    /// Locks the poller if it is free.
    pub(super) fn try_lock(&self) -> Option<PollerGuard<'_>> {
        self.state().try_lock(self)
    }

    /// Locks the poller if it is free. Otherwise notes that this worker waits for it.
    pub(super) fn try_lock_or_note(&self, worker: &Arc<WorkerWaker>) -> Option<PollerGuard<'_>> {
        let mut state = self.state();
        let guard = state.try_lock(self);
        if guard.is_none() {
            state.idle.push(worker.clone());
        }
        guard
    }

    /// Notes that this worker leaves the poller alone, if it is free and not all of the other `driven`
    /// workers wait. Returns whether it did.
    pub(super) fn note_if_others_run(&self, worker: &Arc<WorkerWaker>, driven: usize) -> bool {
        let mut state = self.state();
        let others_run = state.poller.is_some() && state.idle.len() + 1 < driven;
        if others_run {
            state.idle.push(worker.clone());
        }
        others_run
    }

    /// Notes that this worker does not wait for the poller any more.
    pub(super) fn forget(&self, worker: &Arc<WorkerWaker>) {
        self.state().idle.retain(|idle| !Arc::ptr_eq(idle, worker));
    }

    /// Wakes a worker that waits for the poller, so that it locks it. Returns whether there is one.
    pub(super) fn wake_idle(&self) -> bool {
        let idle = self.state().idle.pop();
        if let Some(worker) = &idle {
            worker.wake_by_ref();
        }
        idle.is_some()
    }

    pub(super) fn is_free(&self) -> bool {
        self.state().poller.is_some()
    }

    /// Returns how often the poller was locked.
    pub(super) fn times_locked(&self) -> u64 {
        self.state().times_locked
    }

    fn state(&self) -> MutexGuard<'_, PollerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PollerState {
    fn try_lock<'a>(&mut self, lock: &'a PollerLock) -> Option<PollerGuard<'a>> {
        let poller = self.poller.take()?;
        self.times_locked += 1;
        Some(PollerGuard {
            poller: Some(poller),
            lock,
        })
    }
}

impl PollerGuard<'_> {
    /// Waits for events, so long at most.
    pub(super) fn wait(&mut self, time: Option<Duration>) -> io::Result<&Events> {
        let poller = self.poller.as_mut().expect("it is there until the drop");
        poller.poll.poll(&mut poller.events, time)?;
        Ok(&poller.events)
    }
}

impl Drop for PollerGuard<'_> {
    fn drop(&mut self) {
        self.lock.state().poller = mem::take(&mut self.poller);
    }
}

/// The thread that sees to it that the poller is not free for long.
#[derive(Debug)]
pub(super) struct Watchdog {
    rests: AtomicBool,
    thread: Thread,
}

impl Watchdog {
    pub(super) fn new(thread: Thread) -> Self {
        Watchdog {
            rests: AtomicBool::new(false),
            thread,
        }
    }

    /// Notes that the poller was unlocked.
    pub(super) fn note_unlocked(&self) {
        // Relaxed: the lock of the poller orders this after a rest that has seen it locked.
        if self.rests.load(Ordering::Relaxed) && self.rests.swap(false, Ordering::Relaxed) {
            self.thread.unpark();
        }
    }

    /// Rests until the poller is unlocked, unless it is free.
    pub(super) fn rest(&self, poller: &PollerLock) {
        // Relaxed: the poller is looked at later, and unlocked before `note_unlocked`, under its lock.
        self.rests.store(true, Ordering::Relaxed);
        if poller.is_free() {
            self.rests.store(false, Ordering::Relaxed);
        }
        while self.rests.load(Ordering::Relaxed) {
            thread::park();
        }
    }
}
