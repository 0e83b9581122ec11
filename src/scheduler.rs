//! The scheduler: a fixed set of workers, which share ready tasks as a policy decides.
//!
//! Under the default policy each worker has a local queue, and tasks from other threads enter
//! through the injector. A worker whose queue is empty steals half of another worker's queue. One
//! thief searches at a time, and a worker that finds nothing sleeps. The scheduler handles only
//! runnables. It knows neither actors nor runtimes, except through two small interfaces, [`SchedulerOwner`]
//! and [`Employer`]. It has two models. The scheduler of Sophie
//! (<https://github.com/kjosib/sophie>), a language with actors, has one task per actor and one
//! thief at a time. The scheduler of CAF, the C++ Actor Framework, is a policy.

mod activity;

mod counters;
pub(crate) mod duties;
mod injector;
#[cfg(all(test, not(greenroom_loom)))]
mod litmus;
mod local;
#[cfg(all(test, greenroom_loom))]
mod loom;
pub(crate) mod parking;
pub mod policy;
mod policy_impl;
pub(crate) mod queues;
pub(crate) mod ring;
mod shared;
pub(crate) mod sleep;
mod sleepers;
pub(crate) mod slot;
mod thief;
mod worker;

pub(crate) use activity::ActivityCount;
pub use counters::WorkerStats;
pub(crate) use duties::{DriverWait, SchedulerOwner};
pub(crate) use local::WorkerLocal;
pub(crate) use policy_impl::{PolicyImpl, choose};
pub(crate) use queues::runnable;
pub(crate) use ring::Queued;
pub(crate) use shared::Scheduler;
pub(crate) use worker::{ClockPace, Employer, ShutdownStep, TurnContext, WorkerEnd, WorkerLoop};
