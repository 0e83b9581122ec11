//! Bytes of a connection, between the socket and hyper.
//!
//! hyper sees only heads and bodies whose framing is strict: [`Framing`] looks at each byte
//! first. [`Wire`] and [`Clock`] keep the times within which a head must come and an answer go.

mod chunks;
mod clock;
mod framing;
mod head;
mod scan;
mod shared;
mod stream;

pub(crate) use clock::Clock;
pub(crate) use framing::{Framing, HeadLimits};
pub(crate) use shared::{Shared, Times};
pub(crate) use stream::Wire;
