//! Who runs next: a fixed set of workers that share what is ready as a policy says.
//!
//! By the default policy each worker has a local queue, and what comes from outside comes through the injector. A
//! worker whose own queue is empty steals half of another's, one thief at a time, and sleeps when there is nothing.
//! The scheduler handles runnables. It knows neither actors nor runtimes, but for the two small interfaces
//! [`Owner`] and [`Employer`]. Behaviour comes from document 1 (Sophie's scheduler),
//! with its tasks that are whole actors and its kinder stealing, and from document 3 (CAF), with its policies.

mod activity;

mod counters;
mod driven;
pub(crate) mod duties;
mod injector;
#[cfg(all(test, not(greenroom_loom)))]
mod litmus;
mod local;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod loot;
mod owner;
pub(crate) mod parking;
pub mod policy;
mod policy_impl;
pub(crate) mod queues;
pub(crate) mod ring;
mod shared;
pub(crate) mod sleep;
mod sleepers;
pub(crate) mod slot;
mod worker;

pub(crate) use activity::ActivityCount;
pub use counters::WorkerStats;
pub(crate) use driven::Driven;
pub(crate) use local::WorkerLocal;
pub(crate) use owner::Owner;
pub(crate) use policy_impl::{Choice, PolicyImpl, choose};
pub(crate) use queues::runnable;
pub(crate) use ring::Entry;
pub(crate) use shared::Scheduler;
pub(crate) use worker::{Employer, ShutdownStep, TurnContext, Worker, WorkerEnd};
