//! Work that survives its process: job queues, journals and leases in a SQLite file.
//!
//! Use it for work that must not be lost when a program ends: mails to send, images to resize, orders to
//! fulfil. For work that may be lost, use a [spool](greenroom::spool) or a [market](greenroom::market):
//! they need no disk.
//!
//! A [`Store`] is a file. It has:
//! - [queues](Queue) of jobs, which workers do at least once each;
//! - [journals](Journal) of events, of which a state is made again after a restart;
//! - [leases](Lease), which one process of several holds at a time.
//!
//! # What is promised
//! - A job is stored when [`put`](Queue::put) returns `Ok`: it survives kill -9 and a power failure, if the
//!   disk does what a sync asks for.
//! - Each job is done at least once. It is done again only after a crash, or after its lease was over.
//! - One job of a key runs at a time, while leases hold. They run in the order of their due times, and
//!   then in that in which they were put.
//! - Whose lease is over can change nothing of the job any more: each take has a token that is greater
//!   than all before, and what comes with another token is refused.
//!
//! # What is not promised
//! - Exactly once. A worker that has done its work and dies before that is stored leaves a job that runs
//!   again. So a handler has to be idempotent.
//! - That a worker which outlives its lease stops. What it does outside of the store can be fenced by its
//!   [token](TakenJob::token).

#![cfg_attr(not(test), forbid(unsafe_code))]
#![warn(missing_debug_implementations)]

mod dead;
mod engine;
mod error;
mod fence;
mod journal;
mod lease;
mod limits;
mod queue;
mod records;
mod status;
mod store;
mod stored;
#[cfg(feature = "http")]
mod view;

pub use dead::DeadJob;
pub use engine::sim_file::SimFile;
pub use error::{StoreError, StoreOpenError, StoreOpenProblem, StoreProblem};
pub use fence::Fence;
pub use journal::{AppendError, Journal, JournalBuilder, JournalState};
pub use lease::{Lease, LeaseBuilder};
pub use limits::Limits;
pub use queue::{FinalOutcome, Job, PutError, Queue, QueueBuilder, QueueWorkers, Serve, TakenJob};
pub use records::check::CheckReport;
pub use status::QueueStatus;
pub use store::{Store, StoreBuilder};
pub use stored::Stored;
#[cfg(feature = "http")]
pub use view::{jobs_section, with_jobs};

/// Compiles and runs the programs of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
