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
//! An actor is an async task. Its [`Context`] owns the reading side of a mailbox; an [`Address`]
//! sends to it and is cheap to clone. A [`Handle`] is an address that can also be joined.
//! [`handlers!`] turns the methods of a type into messages, with a method of an address for each.
//!
//! # Where to read on
//!
//! - [The guide](docs::guide): asking, several messages, back-pressure, sources, ending, children,
//!   panics, pinned threads, foreign loops, tests, policies.
//! - [With tokio in the same program](docs::with_tokio), [coming from tokio](docs::from_tokio),
//!   [coming from actix, kameo or ractor](docs::from_actors),
//!   [the same programs in each of them][comparison].
//! - [Guarantees](docs::guarantees), [limits](docs::limits), [performance](docs::performance).
//! - Packages beside it: [greenroom-http], actors over HTTP, [greenroom-cluster], actors on other
//!   machines, [greenroom-durable], work that survives its process, and [greenroom-console], a
//!   program that looks at a running system.
//!
//! [comparison]: https://github.com/greenroom-rs/greenroom/blob/main/docs/comparison.md
//! [greenroom-cluster]: https://github.com/greenroom-rs/greenroom/tree/main/cluster
//! [greenroom-console]: https://github.com/greenroom-rs/greenroom/tree/main/console
//! [greenroom-durable]: https://github.com/greenroom-rs/greenroom/tree/main/durable
//! [greenroom-http]: https://github.com/greenroom-rs/greenroom/tree/main/http
//!
//! # Sending
//!
//! | call | waits | returns |
//! |---|---|---|
//! | [`tell`](Address::tell) | never | the message if the mailbox is full or closed |
//! | [`send`](Address::send) | for room, in order of arrival | the message if the mailbox is closed |
//! | [`ask`](Address::ask) | for room, then for the answer | the answer, or why there is none |
//!
//! An actor can also receive from sources: timers ([`send_after`](Context::send_after),
//! [`send_every`](Context::send_every)), streams ([`attach`](Context::attach)), answers
//! ([`on_answer`](Context::on_answer)), results of futures ([`on_return`](Context::on_return)) and
//! ends of other actors ([`adopt`](Context::adopt), [`watch`](Context::watch)) arrive as messages.
//!
//! # Where an actor or a task runs
//!
//! | where | how | choose it for |
//! |---|---|---|
//! | the workers of a [`Runtime`] | `spawn!(f(_))`, [`spawn()`] | nearly everything; the future is `Send` |
//! | a [`Pinned`] thread | `spawn!(f(_), on = &pinned)`, [`Pinned::spawn`] | values that must not leave their thread |
//! | the calling thread | `spawn!(f(_), on = &stage)`, [`Runtime::pinned_here`] | programs with a main loop of a GUI or a game |
//! | a thread of its own | `spawn!(f(_), on = greenroom::Detached)`, [`Detached`] | actors that block |
//! | the pinned thread or stage that it is on | [`spawn_local()`] | plain tasks that are not `Send` |
//! | another executor | [`ActorBuilder::split`] | programs that have one, tests |
//! | a blocking thread | [`unblock`] | a single blocking call |
//!
//! A [`policy`] decides how the workers share their work. It can be replaced.
//!
//! # Modules
//!
//! - [`policy`]: the scheduling policies, and the trait for custom ones.
//! - [`sim`]: runs a program under many schedules, in virtual time, for tests.
//! - [`looper`]: serial queues with priorities, and locks that are granted before a task runs.
//! - [`machine`]: state machines that save messages which come too early.
//! - [`market`]: a board of jobs that may block, with priorities, and one job of a key at a time.
//! - [`registry`]: names for actors and for groups of actors, and an actor for each key.
//! - [`request`]: several requests at once, one after another, or one until it succeeds.
//! - [`spool`]: pools of worker actors, with limits for their load.
//! - [`supervise`]: restarts of one actor, or of several together.
//! - [`trace`]: a readable trace of actors and their messages.
//! - [`time`]: sleep, timeout, interval, intervals for retries.
//! - [`docs`]: the guides.
//!
//! # Panics and errors
//!
//! A function that returns a `Result` panics only where its docs say so: in user code that it
//! calls. Besides, anything may panic in a [child of `fork`](Runtime#in-a-child-of-fork). [`spawn!`]
//! and [`spawn()`] panic if no runtime is current, an option is out of range or a thread does not
//! start; [`ActorBuilder::try_spawn`] returns an error instead. Each operation has an error type of
//! its own. [`TellError`], [`SendError`] and [`SpawnError`] return the value that was not accepted.
//!
//! A panic of a future reaches the caller that joins its actor or awaits its task; without one it
//! reaches [`on_fault`](Builder::on_fault). The panic hook runs for both; it may ask
//! [`is_contained`]. The future is dropped while the panic unwinds, so a
//! [`Mutex`](std::sync::Mutex) guard in it poisons its mutex.
//!
//! # Platforms
//!
//! greenroom needs threads and 64-bit atomic operations. Other targets are refused with a compile
//! error. These parts depend on the system:
//!
//! | what | where | elsewhere |
//! |---|---|---|
//! | [`ctrl_c()`], [`terminate()`] | Unix; on Windows without tests | return an error |
//! | the rules for a child of `fork`, see [`Runtime`] | Unix | no `fork` exists |
//! | `membarrier`, which makes wake-ups cheaper | Linux | each wake-up has a fence |
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `tokio` | off | a `tokio::runtime::Handle` is a place for actors, `on = &handle`: see [beside tokio](docs::with_tokio) |
//! | `tracing` | off | `trace::Tracing`: events and spans for the subscribers of the crate `tracing` |

mod blocks;
mod contain;
mod error;
mod info;
mod instant;
mod lock;
mod stderr;
mod sync;
mod task_local;
mod tracer;

mod outcome;
mod park;
mod task;
mod timers;
mod waiters;

mod directory;
mod scheduler;

mod runtime;

mod pinned;
mod signal;
pub mod time;

mod mailbox;

mod actor;

pub mod request;

mod task_set;

pub mod looper;

pub mod machine;

pub mod market;

pub mod registry;

pub mod spool;

pub mod supervise;

pub mod sim;

#[cfg(all(test, greenroom_loom))]
mod mutants;

/// Scheduling policies: where a runnable goes when its task is woken, and which one runs next.
///
/// Choose or write one if priorities, fairness or a measurement demand it. Otherwise keep the
/// default, [`Stealing`](policy::Stealing), which is the fastest here for most programs.
///
/// A [`Policy`](policy::Policy) is the scheduler of a runtime: data that all workers share, data of
/// each worker, and functions on both. The runtime provides threads, timers, shutdown and pinned
/// threads.
pub mod policy {
    pub use crate::scheduler::policy::*;
    pub use crate::sim::Simulated;
}

/// A readable trace: what actors do, and what happens to their messages, as lines or events.
///
/// Use it to see who sent what to whom, in a test or while looking for a bug. To count and measure,
/// use [`stats`](Runtime::stats) or an [`Observer`], which cost less.
///
/// A runtime has a [`Tracer`](trace::Tracer) if its [builder](Builder::tracer) was given one.
/// [`Lines`](trace::Lines) writes lines. [`run`] obeys the variable `GREENROOM_LOG`, for example
/// `GREENROOM_LOG=debug`. The [guide](docs::guide) reads some lines.
pub mod trace {
    pub use crate::runtime::CarriedSpan;
    #[doc(hidden)]
    pub use crate::runtime::{is_noted, write_note};
    pub use crate::tracer::{
        Event, EventKind, Level, LevelError, Lines, MessageSource, Tracer, forwarding,
    };
    #[doc(hidden)]
    pub use crate::tracer::{NoteKind, text_of};
    #[cfg(feature = "tracing")]
    pub use crate::tracer::{Propagation, Tracing};
    #[doc(inline)]
    pub use crate::{__trace_check as check, __trace_note as note, __trace_sample as sample};
}

#[cfg(any(doc, doctest))]
pub mod docs;

pub use actor::{
    Actor, ActorBuilder, Address, AdoptError, Answer, Ask, Context, Current, Detached, Handle,
    Join, Permit, Reply, Request, SourceGuard, SpawnFrom, SpawnTarget, Unsent, UrgentError,
    WeakAddress, actor,
};
#[doc(hidden)]
pub use actor::{into_actor, mistakes as handler_mistakes, without_context};
pub use error::{
    AskCause, AskDetail, AskError, BuildError, Deadlock, End, Fault, FlatError, HostFault, Panic,
    Refusal, RefusalKind, SendError, SpawnError, SpawnProblem, TellError, UnhandledFault,
};
pub use mailbox::Overflow;
pub use pinned::{Hosted, Pinned, Stage, spawn_local};
pub use request::concurrently::{concurrently, try_concurrently};
pub use request::{retry::retry, sequentially::sequentially};
pub use runtime::{
    ActorStatus, ActorWait, BlockingStats, Builder, Changes, Continues, Driver, KeepAlive,
    LongTurn, Measure, Observer, RecentFault, Runtime, ShutdownReport, Stats, TaskBuilder,
    TaskReport, Warning, Watch, WorkerTurn, note_wait, run, spawn, task, unblock, yield_now,
};
pub use scheduler::WorkerStats;
pub use signal::{ctrl_c, terminate};
pub use task::{SampledTimes, SampledTurns, Task, current_actor, is_contained};
pub use task_local::{LocalScope, LocalUnset, TaskLocal, TaskLocals, inherit};
pub use task_set::TaskSet;

/// Compiles and runs the programs of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
