//! Queues of jobs.

mod blocking;
mod handle;
mod job;
mod serve;
mod taken;
mod worker;

pub use handle::{FinalOutcome, Queue, QueueBuilder};
pub use job::{Job, PutError};
pub use serve::{QueueWorkers, Serve};
pub use taken::TakenJob;
