//! A market of jobs that may block: a full board makes producers wait, and a key excludes.
//!
//! Use a market for many jobs that block, of which only some may wait or run at a time. Not for a
//! few of them, which [`unblock`](crate::unblock()) runs, nor for jobs that await: spawn those.
//!
//! `unblock` takes any number of calls, in the order of their arrival. A [`Market`] has a board of
//! limited size, priorities, and keys: two jobs of one key never run at the same time. A job may be
//! [delayed](Job::after) or [tried again](Job::retries). A market may limit the starts of a key by a
//! [rate](MarketBuilder::rate), and let jobs [age](MarketBuilder::aging). It may [reserve
//! workers](MarketBuilder::reserved) for urgent ones.
//!
//! The workers are calls on the threads of the blocking pool. A worker comes when a job may run and
//! no other worker is on its way, and gives its thread back when there is no job.
//!
//! A job is a closure. So different kinds of jobs, each with its data, are an enum of the program,
//! as in the example `job_market`. A kind for which nothing is done must say so:
//!
//! ```compile_fail,E0004
//! # use greenroom::market::Job;
//! enum Kind {
//!     DoNothing,
//!     Print(u16),
//!     CreateAccount(Vec<u8>),
//! }
//! fn job(kind: Kind) -> Job<u64, impl FnOnce() + Send> {
//!     Job::new(move || match kind {
//!         Kind::DoNothing => {}
//!         Kind::Print(counter) => println!("job {counter}"),
//!         // Kind::CreateAccount is missing
//!     })
//! }
//! ```
//!
//! # Other things that block
//! - an actor whose messages block: [`Detached`](crate::Detached);
//! - a value that must not leave its thread: [`Pinned`](crate::Pinned).

mod board;
mod builder;
mod cell;
mod core;
mod error;
mod handle;
mod job;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod offer;
mod serving;
mod state;
mod status;
mod worker;

pub use builder::MarketBuilder;
pub use error::{JobError, OfferError, TryOfferError};
pub use handle::Market;
pub use job::{Job, JobHandle};
pub use status::MarketStatus;
pub use worker::is_cancelled;
