//! The engine of a simulated runtime: everything on one thread, in a seeded order, in virtual time.
//!
//! The thread that built the runtime runs tasks, tasks of pinned threads and blocking jobs while it
//! waits in `block_on`. Each such call is a *frame*. One *step* is one turn of a ready entry, one
//! poll of a frame's future, or one effect of a split turn.
//!
//! # Invariants
//! - SIM-1: Only the thread that built the runtime takes entries out to run them. Only that thread
//!   drops the futures and values of its pinned threads (PINNED-1).
//! - SIM-2: No user code runs under the lock: wakers, runnables and futures are used outside.
//! - SIM-3: Each ready runnable counts as activity from before it is ready until its turn has ended
//!   or it is dropped. Each frame counts while its future does not wait (ACTIVITY-1).

mod closing;
mod effects;
mod entry;
mod frame;
mod frames;
mod judging;
mod messages;
mod mirror;
mod plan;
mod problem;
mod ready;
mod script;
mod simulation;
mod state;
mod step;
mod trace;
mod watch;

pub(super) use plan::Plan;
pub(super) use problem::Failed;
pub use problem::{Run, RunProblem};
pub(super) use ready::{Draw, Ready, Schedule};
pub(super) use script::TurnScript;
pub(super) use simulation::Simulation;
