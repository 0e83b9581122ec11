//! The reactor: what is registered, and the threads that wait.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mio::event::Events;
use mio::{Poll, Registry, Token};

use super::deadlines::{Deadline, Deadlines};
use super::place::Place;
use super::seat::{Seat, Taken};
use super::sources::Sources;
use super::watch::{TICK, Watch};

/// How long a busy worker runs before it looks for events.
const RUN: Duration = Duration::from_micros(200);

/// The number of no socket: its event only ends a wait.
const KICK: Token = Token(usize::MAX);

static REACTOR: OnceLock<Reactor> = OnceLock::new();

/// The reactor of the process.
#[derive(Debug)]
pub(crate) struct Reactor {
    pub(super) registry: Registry,
    pub(super) sources: Sources,
    deadlines: Deadlines,
    seat: Seat,
    watch: Watch,
    /// The workers that are driven.
    driven: AtomicUsize,
    /// Ends the wait of the sitter.
    kick: Arc<mio::Waker>,
}

impl Reactor {
    /// Returns the reactor, which the first call starts.
    pub(crate) fn get() -> io::Result<&'static Reactor> {
        static STARTS: Mutex<()> = Mutex::new(());
        if let Some(reactor) = REACTOR.get() {
            return Ok(reactor);
        }
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
            sources: Sources::default(),
            deadlines: Deadlines::new(kick.clone()),
            seat: Seat::new(poll),
            watch: Watch::new(thread.thread().clone()),
            driven: AtomicUsize::new(0),
            kick,
        }))
    }

    /// Returns a future that completes at an instant, or up to a millisecond later.
    pub(crate) fn sleep_until(&'static self, at: Instant) -> Deadline {
        Deadline::new(at, &self.deadlines)
    }

    /// Runs a worker on the calling thread until it completes. While it is pending, the thread waits
    /// for events if no other one does.
    pub(crate) fn drive(&'static self, mut worker: Pin<&mut dyn Future<Output = ()>>) {
        let _driven = Driven::new(self);
        let place = Arc::new(Place::new(self.kick.clone()));
        let waker = Waker::from(place.clone());
        let (mut looked, mut woken) = (Instant::now(), Vec::new());
        loop {
            place.run();
            let polled = worker.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                return;
            }
            if !place.is_woken() {
                self.wait(&place, &mut woken);
                looked = Instant::now();
            } else if looked.elapsed() >= RUN {
                if let Some(taken) = self.seat.take() {
                    self.look(taken, &mut woken);
                }
                looked = Instant::now();
            }
        }
    }

    /// Waits until the worker is woken, in the seat if it is free.
    fn wait(&self, place: &Arc<Place>, woken: &mut Vec<Waker>) {
        while !place.is_woken() {
            match self.seat.take_or_note(place) {
                Some(taken) => self.gather(taken, woken, |taken| {
                    let time = self.deadlines.begin_wait();
                    let mut events = Err(io::ErrorKind::Interrupted.into());
                    place.sit(|| events = taken.wait(time));
                    events
                }),
                None => {
                    place.park();
                    self.seat.forget(place);
                }
            }
        }
    }

    /// Looks for events without waiting.
    fn look(&self, taken: Taken<'_>, woken: &mut Vec<Waker>) {
        self.gather(taken, woken, |taken| taken.wait(Some(Duration::ZERO)));
    }

    /// Wakes what waits for the events that come, and for the deadlines that are over. `woken` is
    /// room for it, which is empty before and after.
    fn gather(
        &self,
        mut taken: Taken<'_>,
        woken: &mut Vec<Waker>,
        wait: impl for<'t> FnOnce(&'t mut Taken<'_>) -> io::Result<&'t Events>,
    ) {
        // A wait that was interrupted has no events.
        if let Ok(events) = wait(&mut taken) {
            self.sources.note(events, woken);
        }
        self.deadlines.end_wait(woken);
        drop(taken);
        self.watch.notice();
        for waker in woken.drain(..) {
            // A panic belongs to the waker, and the others are called all the same.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    /// Keeps watch as long as the process runs.
    fn keep_watch(&self) {
        loop {
            let before = self.seat.taken();
            thread::sleep(TICK);
            if !self.seat.is_free() {
                self.watch.rest(&self.seat);
            } else if self.seat.taken() == before {
                self.attend();
            }
        }
    }

    /// Attends to sockets to which no thread attends.
    fn attend(&self) {
        // A worker that waits is the better sitter.
        while !self.seat.call_idle()
            && let Some(taken) = self.seat.take()
        {
            // Relaxed: only the number counts.
            if self.driven.load(Ordering::Relaxed) > 0 {
                // All workers are busy, and the first one that is not takes the seat.
                return self.look(taken, &mut Vec::new());
            }
            self.gather(taken, &mut Vec::new(), |taken| {
                taken.wait(self.deadlines.begin_wait())
            });
        }
    }
}

/// A worker that is driven, until it ends or panics.
struct Driven(&'static Reactor);

impl Driven {
    fn new(reactor: &'static Reactor) -> Self {
        // Relaxed: only the number counts.
        reactor.driven.fetch_add(1, Ordering::Relaxed);
        Driven(reactor)
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        // Relaxed: only the number counts.
        self.0.driven.fetch_sub(1, Ordering::Relaxed);
    }
}
