//! A simulated runtime: everything on one thread, in an order drawn from a seed, in virtual time.
//!
//! The thread that built it runs tasks, pinned threads' tasks and blocking jobs while it waits in
//! `block_on`, each such call a *frame*: one *step* is the run of one thing that is ready, or a poll of
//! a frame's future.
//!
//! # Invariants
//! - SIM-1: only the thread that built the runtime takes anything out to run it, and only there is
//!   dropped what lives on its pinned threads (PINNED-1).
//! - SIM-2: no user code runs under the lock: wakers, runnables and futures are used outside.
//! - SIM-3: each runnable that is ready is counted as activity from before it is until its turn has
//!   ended or it is dropped, and each frame while its future does not wait (ACTIVITY-1).

mod closing;
mod effect;
mod effects;
mod entry;
mod face;
mod frame;
mod frames;
mod judging;
mod lane;
mod messages;
mod pending;
mod plan;
mod problem;
mod ready;
mod script;
mod simulation;
mod state;
mod step;
mod trace;
mod waits;

pub(super) use plan::Plan;
pub use problem::Problem;
pub(super) use problem::{Failed, Lines, Ran};
pub(super) use ready::{Draw, Ready, Schedule};
pub(super) use script::TurnScript;
pub(super) use simulation::Simulation;
