//! Sockets, and the one place of the process in which threads wait for them.
//!
//! A socket is registered once, for as long as it lives. The system tells each change of it once,
//! and the change is noted with the socket. So waiting for a socket is no call of the system.
//!
//! One thread at a time waits for the system: the sitter. It is a worker with nothing else to do
//! if there is one, and otherwise the thread that keeps [watch](watch::Watch).

mod acceptor;
mod core;
mod deadlines;
mod names;
mod place;
mod registered;
mod seat;
mod socket;
mod source;
mod sources;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use acceptor::Acceptor;
pub(crate) use core::Reactor;
pub(crate) use names::resolve;
pub(crate) use socket::Socket;
