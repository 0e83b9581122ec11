//! The reactor: what is registered, and the threads that wait.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mio::event::Events;
use mio::{Poll, Registry, Token};

use super::deadlines::{Deadline, Deadlines};
use super::poller::{PollerGuard, PollerLock, TICK, Watchdog};
use super::sources::SocketTable;
use super::worker::WorkerWaker;

/// How long a busy worker runs before it looks for events. So its queue mostly becomes empty before, and
/// it takes the tasks of a worker that the system has preempted before it finds more of its own.
const RUN: Duration = Duration::from_millis(1);

/// How long an idle worker leaves the poller alone while another worker runs, which may come back for
/// it. Meanwhile the sockets gather events, so that fewer waits and wake-ups bring them.
const NAP: Duration = Duration::from_micros(100);

/// The events of a wait that was hardly worth its system calls.
const FEW: usize = 2;

/// After as many such waits in a row a worker naps.
const FEW_IN_A_ROW: u8 = 3;

/// The number of no socket: its event only ends a wait.
const KICK: Token = Token(usize::MAX);

static REACTOR: OnceLock<Reactor> = OnceLock::new();

/// The reactor of the process.
#[derive(Debug)]
pub(crate) struct Reactor {
    pub(super) registry: Registry,
    sockets: Mutex<SocketTable>,
    deadlines: Deadlines,
    poller: PollerLock,
    watchdog: Watchdog,
    /// The workers that are driven.
    driven: AtomicUsize,
    /// Ends the wait of the thread that polls.
    kick: Arc<mio::Waker>,
}

impl Reactor {
    /// Returns the reactor, which the first call starts.
    pub(crate) fn get() -> io::Result<&'static Reactor> {
        static STARTS: Mutex<()> = Mutex::new(());
        if let Some(reactor) = REACTOR.get() {
            return Ok(reactor);
        }
        // One call starts it. An error leaves it to the next call.
        let _one = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reactor) = REACTOR.get() {
            return Ok(reactor);
        }
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let kick = Arc::new(mio::Waker::new(&registry, KICK)?);
        let thread = thread::Builder::new().name("greenroom-http".to_owned());
        let thread = thread.spawn(|| REACTOR.wait().keep_watch())?;
        Ok(REACTOR.get_or_init(|| Reactor {
            registry,
            sockets: Mutex::default(),
            deadlines: Deadlines::new(kick.clone()),
            poller: PollerLock::new(poll),
            watchdog: Watchdog::new(thread.thread().clone()),
            driven: AtomicUsize::new(0),
            kick,
        }))
    }

    /// Locks the sockets that are registered. No waker is called or dropped meanwhile.
    pub(super) fn sockets(&self) -> MutexGuard<'_, SocketTable> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a future that completes at an instant, or up to a millisecond later.
    pub(crate) fn sleep_until(&'static self, at: Instant) -> Deadline {
        Deadline::new(at, &self.deadlines)
    }

    /// Runs a worker on the calling thread until it completes. While it is pending, the thread waits
    /// for events if no other one does.
    pub(crate) fn drive(&'static self, mut worker: Pin<&mut dyn Future<Output = ()>>) {
        let _driven = DrivenGuard::new(self);
        let state = Arc::new(WorkerWaker::new(self.kick.clone()));
        let waker = Waker::from(state.clone());
        let (mut looked, mut woken, mut few) = (Instant::now(), Vec::new(), 0);
        loop {
            state.run();
            let polled = worker.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                return;
            }
            if !state.is_woken() {
                self.wait(&state, &mut woken, &mut few);
                looked = Instant::now();
            } else if looked.elapsed() >= RUN {
                // A busy worker looks now and then, in case no other thread polls.
                if let Some(poller) = self.poller.try_lock() {
                    self.look(poller, &mut woken);
                }
                looked = Instant::now();
            }
        }
    }

    /// Waits until the worker is woken: for the system if the poller is free, and otherwise for it.
    /// `few` is the number of its last waits that brought few events.
    fn wait(&self, worker: &Arc<WorkerWaker>, woken: &mut Vec<Waker>, few: &mut u8) {
        while !worker.is_woken() {
            let naps = *few >= FEW_IN_A_ROW && self.nap(worker);
            if worker.is_woken() {
                return;
            }
            match self.poller.try_lock_or_note(worker) {
                Some(poller) => {
                    let came = self.gather(poller, woken, |poller| {
                        let time = self.deadlines.begin_wait();
                        let mut events = Err(io::ErrorKind::Interrupted.into());
                        worker.poll_system(|| events = poller.wait(time));
                        events
                    });
                    *few = match came <= FEW {
                        // A nap that gathers nothing only delays.
                        true if naps => 0,
                        true => few.saturating_add(1),
                        // It is the nap that has made them many.
                        false if naps => *few,
                        false => 0,
                    };
                }
                None => {
                    worker.park(None);
                    self.poller.forget(worker);
                }
            }
        }
    }

    /// Naps if another worker runs. Returns whether it did.
    fn nap(&self, worker: &Arc<WorkerWaker>) -> bool {
        // Relaxed: only the number counts.
        let others_run = self
            .poller
            .note_if_others_run(worker, self.driven.load(Ordering::Relaxed));
        if others_run {
            worker.park(Some(NAP));
            self.poller.forget(worker);
        }
        others_run
    }

    /// Looks for events without waiting.
    fn look(&self, poller: PollerGuard<'_>, woken: &mut Vec<Waker>) {
        self.gather(poller, woken, |poller| poller.wait(Some(Duration::ZERO)));
    }

    /// Wakes what waits for the events that come, and for the deadlines that are over. `woken` is
    /// room for it, which is empty before and after. Returns how many were woken.
    fn gather(
        &self,
        mut poller: PollerGuard<'_>,
        woken: &mut Vec<Waker>,
        wait: impl for<'t> FnOnce(&'t mut PollerGuard<'_>) -> io::Result<&'t Events>,
    ) -> usize {
        // A wait that was interrupted has no events.
        if let Ok(events) = wait(&mut poller) {
            self.sockets().note(events, woken);
        }
        self.deadlines.end_wait(woken);
        // Unlocked before any waker is called: another thread can poll meanwhile.
        drop(poller);
        self.watchdog.note_unlocked();
        let came = woken.len();
        for waker in woken.drain(..) {
            // A panic belongs to the waker, and the others are called all the same.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        came
    }

    /// Keeps watch as long as the process runs.
    fn keep_watch(&self) {
        loop {
            let before = self.poller.times_locked();
            thread::sleep(TICK);
            if !self.poller.is_free() {
                self.watchdog.rest(&self.poller);
            } else if self.poller.times_locked() == before {
                self.attend();
            }
        }
    }

    /// Attends to sockets to which no thread attends.
    fn attend(&self) {
        // A worker that waits polls at less cost than this thread.
        while !self.poller.wake_idle()
            && let Some(poller) = self.poller.try_lock()
        {
            // Relaxed: only the number counts.
            if self.driven.load(Ordering::Relaxed) > 0 {
                // All workers are busy, and the first one that is not locks the poller.
                return self.look(poller, &mut Vec::new());
            }
            self.gather(poller, &mut Vec::new(), |poller| {
                poller.wait(self.deadlines.begin_wait())
            });
        }
    }
}

/// Counts a worker that is driven, until it ends or panics.
struct DrivenGuard(&'static Reactor);

impl DrivenGuard {
    fn new(reactor: &'static Reactor) -> Self {
        // Relaxed: only the number counts.
        reactor.driven.fetch_add(1, Ordering::Relaxed);
        DrivenGuard(reactor)
    }
}

impl Drop for DrivenGuard {
    fn drop(&mut self) {
        // Relaxed: only the number counts.
        self.0.driven.fetch_sub(1, Ordering::Relaxed);
    }
}
