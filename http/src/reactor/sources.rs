//! The sockets that are registered: which directions may be tried, and which tasks wait.
//!
//! A task waits for a direction only if it was tried after its readiness was taken. So an event during
//! the try is kept. No waker is called or dropped while the table is locked, since a waker may drop a
//! socket.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mio::event::{Event, Events};

/// The socket may be ready.
const READY: u8 = 1;
/// The other side sends no more. Whatever is read, another read has a result.
const ENDED: u8 = 2;
/// A task has waited. Few tasks ever wait to write.
const WAITED: u8 = 4;
/// The other side has reset the connection, or takes nothing more.
const RESET: u8 = 8;

/// The directions of a socket that may be tried.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    pub(super) read: Direction,
    pub(super) write: Direction,
}

/// One direction of a socket. One task at a time uses it.
#[derive(Debug, Default)]
pub(super) struct Direction {
    state: AtomicU8,
    waiting: Mutex<Option<Waker>>,
}

impl Direction {
    /// Waits until the socket may be ready.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_for(READY, cx)
    }

    /// Waits until the other side has reset the connection.
    pub(super) fn poll_reset(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_for(RESET, cx)
    }

    fn poll_for(&self, state: u8, cx: &mut Context<'_>) -> Poll<()> {
        if self.has(state) {
            return Poll::Ready(());
        }
        // Relaxed: an event that does not see it was noted before, and is seen below.
        if self.state.load(Ordering::Relaxed) & WAITED == 0 {
            self.state.fetch_or(WAITED, Ordering::Relaxed);
        }
        let mut waiting = self.waiting();
        match &mut *waiting {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        // An event is noted before it takes the waker. Either it finds this one, or it is seen here.
        match self.has(state) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn has(&self, state: u8) -> bool {
        // Acquire pairs with the Release of `note`: the try comes after what the event reports.
        self.state.load(Ordering::Acquire) & state != 0
    }

    /// Takes the readiness, before a try. Only a later event or `give_back` brings it back.
    pub(super) fn take(&self) {
        // Acquire pairs with the Release of `note`.
        self.state.fetch_and(!READY, Ordering::Acquire);
    }

    /// Brings the readiness back after a try that may be repeated at once.
    pub(super) fn give_back(&self) {
        // Relaxed: only the task itself reads it.
        self.state.fetch_or(READY, Ordering::Relaxed);
    }

    /// Brings the readiness back after a try that has left nothing but the end, if it has come.
    pub(super) fn give_back_end(&self) {
        // Relaxed: an end that is not seen here brings the readiness itself.
        if self.state.load(Ordering::Relaxed) & ENDED != 0 {
            self.give_back();
        }
    }

    /// Notes an event. Returns what waits for it.
    pub(super) fn note(&self, has_ended: bool, is_reset: bool) -> Option<Waker> {
        let ended = if has_ended { ENDED } else { 0 };
        let reset = if is_reset { RESET } else { 0 };
        // Release pairs with the Acquire of `take` and `has`.
        match self
            .state
            .fetch_or(READY | ended | reset, Ordering::Release)
            & WAITED
        {
            0 => None,
            _ => self.waiting().take(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registered sockets, by the numbers that events bear.
///
/// A number is the index of a slot and how often that was used before. A thread may have an event whose
/// socket was removed since. It must not reach the next socket in the slot, which it might reset.
#[derive(Debug, Default)]
pub(super) struct SocketTable {
    slots: Vec<SocketSlot>,
    free: Vec<usize>,
}

#[derive(Debug, Default)]
struct SocketSlot {
    /// The number that its next or present socket has.
    number: usize,
    socket: Option<Arc<Readiness>>,
}

/// The bits of a number that are the index: enough for all descriptors, also with 32 bits. Those
/// above count, and may overflow: by then no thread has the event of so long ago.
const INDEX_BITS: u32 = usize::BITS / 4 * 3;
const INDEX: usize = (1 << INDEX_BITS) - 1;

impl SocketTable {
    /// Adds a socket. Returns its number.
    pub(super) fn add(&mut self, socket: Arc<Readiness>) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            let number = self.slots.len();
            let socket = None;
            self.slots.push(SocketSlot { number, socket });
            number
        });
        let slot = &mut self.slots[index];
        slot.socket = Some(socket);
        slot.number
    }

    /// Removes a socket, which is to be dropped when the table is not locked any more.
    pub(super) fn remove(&mut self, number: usize) -> Option<Arc<Readiness>> {
        let slot = self.slots.get_mut(number & INDEX)?;
        slot.number = slot.number.wrapping_add(1 << INDEX_BITS);
        self.free.push(number & INDEX);
        slot.socket.take()
    }

    fn get(&self, number: usize) -> Option<&Readiness> {
        let slot = self.slots.get(number & INDEX)?;
        slot.socket.as_deref().filter(|_| slot.number == number)
    }

    /// Notes events, and adds to `woken` what waits for them.
    pub(super) fn note(&self, events: &Events, woken: &mut Vec<Waker>) {
        for event in events {
            if let Some(socket) = self.get(event.token().0) {
                note(socket, event, woken);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

fn note(socket: &Readiness, event: &Event, woken: &mut Vec<Waker>) {
    // A close ends what the other side sends, and a reset also what it takes.
    let is_reset = event.is_error() || event.is_write_closed();
    if event.is_readable() || event.is_read_closed() || is_reset {
        let has_ended = event.is_read_closed() || event.is_error();
        woken.extend(socket.read.note(has_ended, is_reset));
    }
    if event.is_writable() || is_reset {
        woken.extend(socket.write.note(is_reset, is_reset));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use futures_lite::future::{block_on, poll_once};

    use super::{Direction, INDEX, SocketTable};

    #[test]
    fn a_readiness_is_there_until_it_is_taken() {
        let direction = Direction::default();
        let is_ready = || block_on(poll_once(poll_fn(|cx| direction.poll_ready(cx)))).is_some();
        assert!(!is_ready());
        assert!(
            direction.note(false, false).is_some(),
            "the wait left its waker"
        );
        // The next one finds no task that waits, and adds nothing to the readiness.
        assert!(direction.note(false, false).is_none());
        assert!(is_ready() && is_ready());
        direction.take();
        direction.give_back_end();
        assert!(!is_ready(), "nothing has ended");
        direction.give_back();
        assert!(is_ready());
        direction.take();
        direction.note(true, false);
        direction.take();
        direction.give_back_end();
        assert!(is_ready(), "an end stays");
    }

    #[test]
    fn a_reset_is_noticed_beside_bytes_that_nobody_reads() {
        let direction = Direction::default();
        let is_reset = || block_on(poll_once(poll_fn(|cx| direction.poll_reset(cx)))).is_some();
        direction.note(false, false);
        assert!(!is_reset());
        assert!(
            direction.note(true, false).is_some(),
            "the end of what is sent"
        );
        assert!(!is_reset());
        assert!(
            direction.note(true, true).is_some(),
            "the wait left its waker"
        );
        assert!(is_reset());
    }

    #[test]
    fn an_event_of_a_socket_that_is_gone_does_not_reach_the_next_one() {
        let mut table = SocketTable::default();
        let first = table.add(Arc::default());
        let other = table.add(Arc::default());
        table.remove(first).unwrap();
        let next = table.add(Arc::default());
        assert_eq!(next & INDEX, first & INDEX, "the slot is used again");
        assert!(table.get(first).is_none());
        assert!(table.get(next).is_some() && table.get(other).is_some());
        assert_eq!(table.len(), 2);
    }

    /// Checks that a task which waits for the next event has seen all before it.
    #[test]
    fn no_event_between_a_try_and_a_wait_is_lost() {
        const EVENTS: u32 = 200_000;
        let direction = Arc::new(Direction::default());
        let reported = Arc::new(AtomicU32::new(0));
        let (own, reports) = (direction.clone(), reported.clone());
        let reporter = thread::spawn(move || {
            // In this order, as the system does: an event reports what has happened before.
            for _ in 0..EVENTS {
                reports.fetch_add(1, Ordering::Relaxed);
                if let Some(waker) = own.note(false, false) {
                    waker.wake();
                }
            }
        });
        block_on(async {
            let mut seen = 0;
            while seen < EVENTS {
                poll_fn(|cx| direction.poll_ready(cx)).await;
                // What comes after the load brings the readiness back, since that was taken before.
                direction.take();
                seen = reported.load(Ordering::Relaxed);
            }
        });
        reporter.join().unwrap();
    }
}
