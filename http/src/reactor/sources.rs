//! The sockets that are registered, by the numbers that events bear.
//!
//! No waker is called or dropped while the lock is held, since a waker may drop a socket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use mio::event::{Event, Events};

use super::source::Source;

#[derive(Debug, Default)]
pub(super) struct Sources(Mutex<Slots>);

/// A number is used again. An event of the socket that had it wakes the next one for nothing.
#[derive(Debug, Default)]
struct Slots {
    all: Vec<Option<Arc<Source>>>,
    free: Vec<usize>,
}

impl Sources {
    /// Adds a socket. Returns its number.
    pub(super) fn add(&self, source: Arc<Source>) -> usize {
        let mut slots = self.slots();
        let number = slots.free.pop();
        let number = number.unwrap_or(slots.all.len());
        match slots.all.get_mut(number) {
            Some(slot) => *slot = Some(source),
            None => slots.all.push(Some(source)),
        }
        number
    }

    pub(super) fn remove(&self, number: usize) {
        let mut slots = self.slots();
        let removed = slots.all.get_mut(number).and_then(Option::take);
        slots.free.push(number);
        drop(slots);
        drop(removed);
    }

    /// Notes events, and adds to `woken` what waits for them.
    pub(super) fn note(&self, events: &Events, woken: &mut Vec<Waker>) {
        let slots = self.slots();
        for event in events {
            if let Some(Some(source)) = slots.all.get(event.token().0) {
                note(source, event, woken);
            }
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let slots = self.slots();
        slots.all.len() - slots.free.len()
    }
}

fn note(source: &Source, event: &Event, woken: &mut Vec<Waker>) {
    let is_over = event.is_error();
    if event.is_readable() || event.is_read_closed() || is_over {
        woken.extend(source.read.note(event.is_read_closed() || is_over));
    }
    if event.is_writable() || event.is_write_closed() || is_over {
        woken.extend(source.write.note(event.is_write_closed() || is_over));
    }
}
