//! A mailbox: many senders, one reader, first in first out; unbounded, or bounded with a line.
//!
//! A mailbox that is empty owns no buffer. It knows nothing of executors: a step says whom it has woken
//! ([`Wake`]) and the caller passes that on.

mod closing;
mod contents;
mod extras;
mod line;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod queue;
mod receive;
mod reserve;
mod send;
mod senders;
mod state;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

pub(crate) use contents::Mailbox;
pub(crate) use line::PlaceInLine;
pub(crate) use queue::Batch;
pub(crate) use receive::Received;
pub(crate) use reserve::Refused;
pub(crate) use send::wake_foreign;
pub(crate) use state::{Flags, RunOutcome, Termination, Wake};
