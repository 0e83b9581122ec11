//! Bytes of a connection, between the socket and hyper.
//!
//! hyper sees only heads and bodies whose framing is strict: [`Framing`] looks at each byte first.
//! [`CheckedSocket`] and [`ConnectionClock`] keep the times within which a head must come and an
//! answer go.

mod authority;
mod chunks;
mod clock;
mod framing;
mod gauge;
mod head;
mod idle;
mod scan;
mod state;
mod stream;
mod traceparent;

pub(crate) use authority::Authority;
pub(crate) use clock::ConnectionClock;
pub(crate) use framing::{Framing, HostRule};
pub(crate) use gauge::StreamGauge;
pub(crate) use head::HttpRefusal;
pub(crate) use idle::IdleSince;
pub(crate) use state::ConnectionState;
pub(crate) use stream::CheckedSocket;
pub(crate) use traceparent::{TRACEPARENT, context_of, parse as parse_context};
