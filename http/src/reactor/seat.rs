//! The seat: the right to wait for the system, which one thread at a time has.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::time::Duration;

use mio::{Events, Poll};

use super::place::Place;

/// The events that one wait gives at most.
const EVENTS: usize = 256;

#[derive(Debug)]
pub(super) struct Seat(Mutex<State>);

#[derive(Debug)]
struct State {
    /// What waits for the system. A thread that sits has taken it.
    poller: Option<Box<Poller>>,
    /// How often the seat was taken.
    taken: u64,
    /// The workers that wait because another thread has the seat.
    idle: Vec<Arc<Place>>,
}

#[derive(Debug)]
pub(super) struct Poller {
    poll: Poll,
    pub(super) events: Events,
}

/// The seat while a thread has it. Dropping it leaves the seat.
pub(super) struct Taken<'a> {
    poller: Option<Box<Poller>>,
    seat: &'a Seat,
}

impl Seat {
    pub(super) fn new(poll: Poll) -> Self {
        let events = Events::with_capacity(EVENTS);
        Seat(Mutex::new(State {
            poller: Some(Box::new(Poller { poll, events })),
            taken: 0,
            idle: Vec::new(),
        }))
    }

    /// Takes the seat if it is free.
    pub(super) fn take(&self) -> Option<Taken<'_>> {
        self.state().take(self)
    }

    /// Takes the seat if it is free. Otherwise notes that this worker waits beside it.
    pub(super) fn take_or_note(&self, place: &Arc<Place>) -> Option<Taken<'_>> {
        let mut state = self.state();
        let taken = state.take(self);
        if taken.is_none() {
            state.idle.push(place.clone());
        }
        taken
    }

    /// Notes that this worker does not wait beside the seat any more.
    pub(super) fn forget(&self, place: &Arc<Place>) {
        self.state().idle.retain(|idle| !Arc::ptr_eq(idle, place));
    }

    /// Wakes a worker that waits beside the seat, so that it takes it. Returns whether there is one.
    pub(super) fn call_idle(&self) -> bool {
        let idle = self.state().idle.pop();
        if let Some(place) = &idle {
            place.wake_by_ref();
        }
        idle.is_some()
    }

    pub(super) fn is_free(&self) -> bool {
        self.state().poller.is_some()
    }

    /// Returns how often the seat was taken.
    pub(super) fn taken(&self) -> u64 {
        self.state().taken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take<'a>(&mut self, seat: &'a Seat) -> Option<Taken<'a>> {
        let poller = self.poller.take()?;
        self.taken += 1;
        Some(Taken {
            poller: Some(poller),
            seat,
        })
    }
}

impl Taken<'_> {
    /// Waits for events, so long at most.
    pub(super) fn wait(&mut self, time: Option<Duration>) -> io::Result<&Events> {
        let poller = self.poller.as_mut().expect("it is there until the drop");
        poller.poll.poll(&mut poller.events, time)?;
        Ok(&poller.events)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.seat.state().poller = mem::take(&mut self.poller);
    }
}
