//! A mailbox: a FIFO queue with many senders and one reader, unbounded or bounded.
//!
//! In a bounded mailbox, senders wait for room in a line, in order of arrival. An empty mailbox
//! owns no buffer. The mailbox knows nothing of executors: an operation returns which task it has
//! woken ([`Wake`]), and the caller schedules that task.

mod bound;
mod closing;
mod conflating;
mod conflation;
mod contents;
mod displacing;
mod extras;
mod line;
mod loans;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod overflow;
mod queue;
mod receive;
mod reserve;
mod send;
mod state;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;
mod traced;
mod undelivered;
mod urgent;
mod urgent_queue;

pub(crate) use conflating::Conflated;
pub(crate) use conflation::Conflation;
pub(crate) use contents::{Mailbox, Refused};
pub(crate) use extras::{AnyBond, HookOptions, Hooks, LabelFn, MailboxOptions};
pub(crate) use line::LineEntry;
pub use overflow::Overflow;
pub(crate) use overflow::{DisplacedMessage, Displacing};
pub(crate) use queue::{Batch, TakenMessage};
pub(crate) use send::wake_foreign;
pub(crate) use state::{Flags, RunOutcome, RunStart, Termination, Wake};
pub(crate) use traced::SOURCE;
