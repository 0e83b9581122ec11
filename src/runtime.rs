//! The life of a runtime: how it is built, what it consists of, and how it shuts down.
//!
//! A runtime owns a scheduler, whose workers run its tasks. It knows its pinned threads and its
//! simulation only through small traits, and does not know actors at all.

pub(crate) mod ask_times;
#[cfg(feature = "tokio")]
mod bind;
mod block_on;
mod blocking;
mod blocking_pool;
#[cfg(feature = "tokio")]
mod bound;
mod builder;
mod carried_span;
pub(crate) mod context;
pub(crate) mod deadlock;
mod declared;
mod draining;
mod driver;
mod engine;
mod executor;
mod faults;
mod handle;
mod host;
mod inner;
mod listing;
mod live_cells;
mod locations;
mod long_turns;
#[cfg(all(test, greenroom_loom))]
pub(crate) mod loom;
mod observed;
mod observer;
mod options;
mod place;
mod quiescence;
mod report;
mod shutdown;
mod shutdown_state;
mod silence;
mod silence_state;
mod start_retry;
mod stats;
mod status;
#[cfg(test)]
mod tests;
mod thread_set;
mod viewers;
mod warning;
mod watch;
mod worker_thread;

pub(crate) use block_on::may_wait;
pub use blocking::unblock;
pub(crate) use blocking::{
    borrow_thread, bring_thread, forget_borrower, is_lent, max_blocking_workers, register_borrower,
};
pub use blocking_pool::BlockingStats;
pub(crate) use blocking_pool::Borrower;
pub use builder::Builder;
pub use carried_span::CarriedSpan;
pub use driver::Driver;
pub(crate) use engine::{BlockingCall, Deferred, DueEffects, RunsOn, RuntimeEngine, WaitSource};
pub use faults::RecentFault;
pub(crate) use handle::spawn_named;
pub use handle::{Runtime, TaskBuilder, run, spawn, task, yield_now};
pub(crate) use host::{HostContext, HostPhase, HostThread, key_of};
pub(crate) use inner::Inner;
pub(crate) use listing::{list_ask, list_join, list_wait, unlist_join};
pub(crate) use live_cells::LiveCells;
pub use observed::{is_noted, write_note};
pub(crate) use observed::{sender_of_current, span_of_current, trace_answer};
pub use observer::{Measure, Observer};
pub(crate) use options::print_fault;
pub(crate) use place::CurrentPlace;
pub use quiescence::KeepAlive;
pub use report::note_wait;
pub use shutdown_state::ShutdownReport;
pub(crate) use start_retry::StartRetry;
pub use status::{ActorStatus, ActorWait, Stats, TaskReport, WorkerTurn};
pub(crate) use thread_set::ThreadStart;
pub use viewers::Changes;
pub use warning::{Continues, LongTurn, Warning};
pub use watch::Watch;
