//! The reactor as a driver: workers wait for sockets instead of parking.

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use greenroom::Driver;

use crate::reactor::Reactor;

struct Drives;

impl Driver for Drives {
    fn drive(&self, worker: Pin<&mut dyn Future<Output = ()>>) {
        // Without a reactor, the worker continues without a driver.
        if let Ok(reactor) = Reactor::get() {
            reactor.drive(worker);
        }
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let reactor = Reactor::get().expect("the reactor drives the worker");
        Box::pin(reactor.sleep_until(at))
    }
}

/// Returns a driver with which the workers of a runtime wait for sockets.
///
/// A server works on any runtime. On one with this driver, a request costs less, since no other
/// thread wakes the worker for it. A worker that has nothing to do waits for the sockets of the
/// whole process. Deadlines are up to a millisecond late then, and never early.
///
/// ```
/// let runtime = greenroom::Runtime::builder().driver(greenroom_http::driver()).build();
/// assert!(runtime.is_ok());
/// ```
pub fn driver() -> impl Driver {
    Drives
}
