//! The records of a store, and the transactions on them.
//!
//! Every step takes as long with a million waiting jobs as with a thousand, but for the depth of the
//! indexes. Nothing here knows where the file is, or who waits.

pub(crate) mod check;
pub(crate) mod command;
pub(crate) mod db;
mod jobs;
mod journals;
mod leases;
mod queues;
pub(crate) mod schema;
mod step;
pub(crate) mod tx;
