//! The reactor of `async-io` as a driver: workers wait for sockets instead of parking.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use greenroom::Driver;

/// How long a busy worker runs before it looks for events. A look costs five calls of the system.
const RUN: Duration = Duration::from_micros(200);

struct AsyncIo;

impl Driver for AsyncIo {
    fn drive(&self, worker: Pin<&mut dyn Future<Output = ()>>) {
        async_io::block_on(Busy {
            worker,
            state: None,
        });
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            async_io::Timer::at(at).await;
        })
    }
}

/// A worker that goes on for a while when it has work, although it yields sooner.
struct Busy<'w> {
    worker: Pin<&'w mut dyn Future<Output = ()>>,
    /// Made by the first poll, with the waker that it gives to the worker.
    state: Option<(Arc<State>, Waker)>,
}

struct State {
    place: AtomicU8,
    reactor: Waker,
}

const OUTSIDE: u8 = 0;
/// The worker is being polled.
const INSIDE: u8 = 1;
/// It is being polled, and must be polled again.
const WOKEN: u8 = 2;

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release pairs with the Acquire after the poll: the next poll sees what was done before.
        let inside = |place| (place != OUTSIDE).then_some(WOKEN);
        let noted = self
            .place
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, inside);
        if noted.is_err() {
            self.reactor.wake_by_ref();
        }
    }
}

impl Future for Busy<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let begun = Instant::now();
        let Busy { worker, state } = &mut *self;
        let stale = state.take_if(|(state, _)| !state.reactor.will_wake(cx.waker()));
        drop(stale);
        let (state, waker) = state.get_or_insert_with(|| {
            let state = Arc::new(State {
                place: AtomicU8::new(OUTSIDE),
                reactor: cx.waker().clone(),
            });
            (state.clone(), state.into())
        });
        loop {
            // Release pairs with the Acquire of `wake_by_ref`.
            state.place.store(INSIDE, Ordering::Release);
            let polled = worker.as_mut().poll(&mut Context::from_waker(waker));
            // AcqRel pairs with that of `wake_by_ref`.
            let place = state.place.swap(OUTSIDE, Ordering::AcqRel);
            if polled.is_ready() || place != WOKEN {
                return polled;
            }
            if begun.elapsed() >= RUN {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

/// Returns a driver with which the workers of a runtime wait in the reactor of `async-io`.
///
/// A server works on any runtime. On one with this driver, a request costs less, since no other
/// thread wakes the worker for it.
///
/// ```
/// let runtime = greenroom::Runtime::builder().driver(greenroom_http::driver()).build();
/// assert!(runtime.is_ok());
/// ```
pub fn driver() -> impl Driver {
    AsyncIo
}
