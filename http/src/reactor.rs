//! Sockets, and the one poller of the process with which threads wait for them.
//!
//! A socket is registered once, for as long as it lives. The system reports each change of it once,
//! and the change is noted with the socket. So waiting for a socket is no call of the system.
//!
//! One thread at a time polls, that is, waits for the system. It is a worker with nothing else to do
//! if there is one, and otherwise the thread of the [watchdog](poller::Watchdog).

mod acceptor;
mod core;
mod deadlines;
mod poller;
mod socket;
#[cfg(unix)]
mod socket_file;
mod sources;
#[cfg(test)]
mod tests;
mod worker;

use std::pin::Pin;
use std::time::Instant;

use greenroom::Driver;

pub(crate) use acceptor::Acceptor;
pub use acceptor::GivenListener;
pub(crate) use core::Reactor;
pub(crate) use socket::{Socket, resolve};

/// The reactor as a driver: workers wait for sockets instead of parking.
struct ReactorDriver;

impl Driver for ReactorDriver {
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
/// thread wakes the worker for it. A worker that has nothing to do waits for the connections of all
/// servers and clients of the process. Deadlines are up to a millisecond late then, and never early.
///
/// ```
/// let runtime = greenroom::Runtime::builder().driver(greenroom_http::driver()).build();
/// assert!(runtime.is_ok());
/// ```
pub fn driver() -> impl Driver {
    ReactorDriver
}
