//! Tasks: anything that an executor can run, and the handle of a plain one.
//!
//! An executor handles [`Runnable`]s and nothing else. A plain task is an async-task future; an actor
//! is a cell of its own (see [`Header`]); a call of a hosted value is a [`Job`]. async-task aborts the
//! process when a future's or a result's drop panics, so both are wrapped before they are given to it.

mod header;
mod home;
mod info;
mod job;
mod plain;
mod runnable;

pub(crate) use header::{COUNT_MAX, Header, VTable};
pub(crate) use home::{CellHome, Home, Passage, Ticket};
pub use info::TaskInfo;
pub(crate) use job::{Job, JobEnd};
pub use plain::{FallibleTask, Task};
pub(crate) use plain::{cancelled, spawn, spawn_unchecked};
pub(crate) use runnable::Key;
pub use runnable::Runnable;
