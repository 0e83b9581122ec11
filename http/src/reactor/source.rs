//! What is known of a socket: which directions may be tried, and which tasks wait.
//!
//! A task waits for a direction only if it was tried after its readiness was taken. So an event during
//! the try is kept.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A try may succeed.
const READY: u8 = 1;
/// The other side sends no more. Whatever is read, another read has a result.
const ENDED: u8 = 2;
/// A task has waited. Few tasks ever wait to write.
const WAITED: u8 = 4;

#[derive(Debug, Default)]
pub(super) struct Source {
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
    /// Waits until a try may succeed.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_ready() {
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
        match self.is_ready() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn is_ready(&self) -> bool {
        // Acquire pairs with the Release of `note`: the try comes after what the event tells.
        self.state.load(Ordering::Acquire) & READY != 0
    }

    /// Takes the readiness, before a try. Only a later event or `give_back` brings it back.
    pub(super) fn take(&self) {
        // Acquire pairs with the Release of `note`.
        self.state.fetch_and(!READY, Ordering::Acquire);
    }

    /// Brings the readiness back after a try that may be repeated at once.
    pub(super) fn give_back(&self) {
        // Relaxed: the task tells only itself.
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
    pub(super) fn note(&self, has_ended: bool) -> Option<Waker> {
        let state = if has_ended { READY | ENDED } else { READY };
        // Release pairs with the Acquire of `take` and `is_ready`.
        match self.state.fetch_or(state, Ordering::Release) & WAITED {
            0 => None,
            _ => self.waiting().take(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use futures_lite::future::{block_on, poll_once};

    use super::Direction;

    #[test]
    fn a_readiness_is_there_until_it_is_taken() {
        let direction = Direction::default();
        let is_ready = || block_on(poll_once(poll_fn(|cx| direction.poll_ready(cx)))).is_some();
        assert!(!is_ready());
        assert!(direction.note(false).is_some(), "the wait left its waker");
        assert!(direction.note(false).is_none());
        assert!(is_ready() && is_ready());
        direction.take();
        direction.give_back_end();
        assert!(!is_ready(), "nothing has ended");
        direction.give_back();
        assert!(is_ready());
        direction.take();
        direction.note(true);
        direction.take();
        direction.give_back_end();
        assert!(is_ready(), "an end stays");
    }

    /// Checks that a task which waits for the next event has seen all before it.
    #[test]
    fn no_event_between_a_try_and_a_wait_is_lost() {
        const EVENTS: u32 = 200_000;
        let direction = Arc::new(Direction::default());
        let told = Arc::new(AtomicU32::new(0));
        let (own, tells) = (direction.clone(), told.clone());
        let teller = thread::spawn(move || {
            for _ in 0..EVENTS {
                tells.fetch_add(1, Ordering::Relaxed);
                if let Some(waker) = own.note(false) {
                    waker.wake();
                }
            }
        });
        block_on(async {
            let mut seen = 0;
            while seen < EVENTS {
                poll_fn(|cx| direction.poll_ready(cx)).await;
                direction.take();
                seen = told.load(Ordering::Relaxed);
            }
        });
        teller.join().unwrap();
    }
}
