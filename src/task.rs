//! Tasks: everything that an executor can run, and the handle of a plain task.
//!
//! An executor handles [`Runnable`]s and nothing else. An actor is a cell with a [`Header`]. A
//! plain task is a smaller cell without one. A call of a hosted value is a [`HostedJob`].

mod cell;
mod executor;
mod handle;
mod header;
mod hooks;
mod job;
mod key;
mod large;
pub(crate) mod loss;
mod named;
mod plain;
pub(crate) mod quota;
pub(crate) mod run;
mod runnable;
mod sampled;
mod state;
mod task_header;
mod unordered;
mod waits;

pub(crate) use executor::{ActorExecutor, Executor, TaskName};
pub(crate) use header::{Delivery, Ending, Header, Label, Look, SenderAction, VTable, look_at};
pub(crate) use hooks::{MessageEvent, MessageInfo, TaskHooks};
pub(crate) use job::{HostedJob, JobEnd};
pub(crate) use key::{LiveIndex, TaskKey};
pub(crate) use large::is_large;
pub(crate) use named::Named;
pub use plain::Task;
pub(crate) use plain::{cancelled, spawn, spawn_own, spawn_unchecked};
pub use run::{current_actor, is_contained};
pub use runnable::Runnable;
pub(crate) use runnable::{RunnableSlot, as_run};
pub use sampled::{SampledTimes, SampledTurns};
pub(crate) use task_header::{info_of, is_own_waker};
pub(crate) use unordered::Unordered;
pub(crate) use waits::{NotedWait, NotedWaits, WaitsFor, take_waits};

pub use crate::info::TaskInfo;
