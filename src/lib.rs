//! Actors as async tasks, on a work-stealing executor made for them.
//!
//! ```
//! use greenroom::{Context, Reply, spawn};
//!
//! enum Tally {
//!     Add(u64),
//!     Total(Reply<u64>),
//! }
//!
//! async fn tally(mut cx: Context<Tally>, start: u64) -> u64 {
//!     let mut total = start;
//!     while let Some(message) = cx.recv().await {
//!         match message {
//!             Tally::Add(n) => total += n,
//!             Tally::Total(reply) => reply.send(total),
//!         }
//!     }
//!     total // what the actor returns when it ends
//! }
//!
//! greenroom::run(async {
//!     let tally = spawn!(tally(_, 40)); // `_` is where the context goes
//!     tally.tell(Tally::Add(2)).unwrap();
//!     assert_eq!(tally.ask(Tally::Total).await.unwrap(), 42);
//!     tally.stop();
//!     assert_eq!(tally.join().await.unwrap(), 42);
//! });
//! ```
//!
//! An actor is an async task. Its [`Context`] owns the reading end of its mailbox; an [`Address`] is
//! a cheap, cloneable writing end. Nothing else is needed to begin.
//!
//! # Sending
//!
//! | call | waits | gives |
//! |---|---|---|
//! | [`tell`](Address::tell) | never | the message back if the mailbox is full or closed |
//! | [`send`](Address::send) | for room, in order of arrival | the message back if it is closed |
//! | [`ask`](Address::ask) | for room, then for the answer | the answer, or why there is none |
//!
//! Inside, a [`Context`] also has sources: timers ([`send_after`](Context::send_after),
//! [`send_every`](Context::send_every)), streams ([`attach`](Context::attach)) and what others
//! return ([`on_return`](Context::on_return)) arrive as messages.
//!
//! # Where an actor or a task runs
//!
//! | where | how | choose it for |
//! |---|---|---|
//! | the workers of a [`Runtime`] | `spawn!(f(_))`, [`spawn()`] | nearly everything; the future is `Send` |
//! | a [`Pinned`] thread | `spawn!(f(_), on = &pinned)`, [`Pinned::spawn`] | what must not leave its thread |
//! | the calling thread | `spawn!(f(_), on = &stage)`, [`Runtime::pinned_here`] | a loop of somebody else's is there |
//! | a thread of its own | `spawn!(f(_), on = greenroom::Detached)`, [`Detached`] | an actor that blocks |
//! | another executor | [`ActorBuilder::split`] | programs that have one, tests |
//! | a blocking thread | [`unblock`] | a call that blocks |
//!
//! How the workers share their work is a [`policy`]: greenroom's own, or one that you write.
//! [`Runtime::quiescent`] waits until there is no work left.
//!
//! Tests run the same program under many schedules, in virtual time, with [`sim`].
//!
//! What is guaranteed, with the tests that show it, and what is only a habit of this version, is
//! listed in the README.
//!
//! # Panics and errors
//!
//! What returns a `Result` does not panic. [`spawn!`] and [`spawn()`] panic where no runtime is
//! current, an option is impossible or the system starts no thread; [`ActorBuilder::try_spawn`] gives an error. Each operation
//! has an error type of its own, and gives back what it did not take.
//!
//! A panic of a future goes to the one that joins its actor or awaits its task, or to
//! [`on_fault`](Builder::on_fault). The future is dropped while the panic unwinds, so a [`Mutex`](std::sync::Mutex)
//! that it has locked is poisoned.
//!
//! # Platforms
//!
//! greenroom needs threads, and atomic operations on 64 bits: other targets are refused by a compile error. These parts
//! depend on the system:
//!
//! | what | where | elsewhere |
//! |---|---|---|
//! | [`ctrl_c`] | Unix | gives an error |
//! | a child of `fork`, as [`Runtime`] says | Unix | there is none |
//! | `membarrier`, which makes a wake-up cheaper | Linux | each wake-up has a fence |

mod blocks;
mod contain;
mod error;
mod instant;
mod lock;
mod sync;

mod park;
mod task;
mod timers;
mod waiters;

mod scheduler;

mod runtime;

mod pinned;
mod signal;
pub mod time;

mod mailbox;

mod actor;

pub mod sim;

#[cfg(all(test, greenroom_loom))]
mod mutants;

/// Policies: where a runnable goes when its task is woken, and which one a worker runs next.
///
/// Document 3 describes a scheduler as two structures of data and eight functions, and [`Policy`](policy::Policy) is
/// these. The runtime does all else: threads, timers, shutdown, pinned threads, what keeps it alive.
pub mod policy {
    pub use crate::scheduler::policy::*;
    pub use crate::sim::Simulated;
}

#[doc(hidden)]
pub use actor::into_actor;
pub use actor::{
    Actor, ActorBuilder, Address, Ask, Context, Current, Detached, Handle, Join, Recv, Reply,
    Returned, Returns, SendFuture, SourceGuard, SpawnTarget, Split, WeakAddress, actor, actor_from,
};
pub use error::{
    AskError, BuildError, Deadlock, Fault, HostFault, Panic, SendError, SpawnError, SpawnProblem,
    TellError, TryHostError, UnhandledFault,
};
pub use pinned::{Hosted, Pinned, Stage};
pub use runtime::{
    ActorStats, Builder, Driver, KeepAlive, Observer, Runtime, ShutdownReport, Stats, run, spawn,
    unblock, yield_now,
};
pub use scheduler::WorkerStats;
pub use signal::ctrl_c;
pub use task::{FallibleTask, Task};

/// Compiles and runs the README's programs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
