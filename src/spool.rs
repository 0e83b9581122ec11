//! Spools: pools of worker actors that share the requests of many clients.
//!
//! Use a spool for asynchronous work with state, such as connections, that many clients ask for. For
//! a call that blocks, such as a read of a file, use [`unblock`](crate::unblock()).
//!
//! A [`Spool`] gives each request to the worker that has been idle longest, and queues requests
//! while all are busy. It refuses requests when it is overloaded or busy, and replaces workers that
//! die. A worker is an actor of messages `(Q, Reply<R>)` and knows nothing of the spool. Workers
//! never see each other.
//!
//! # Refusals
//!
//! A request that the spool refuses ends with [`AskError::Refused`](crate::AskError::Refused). The
//! [kind](crate::RefusalKind) tells why:
//!
//! | kind | text | meaning for the client |
//! |---|---|---|
//! | `Overloaded` | `message rejected by spool (overloaded, 40 pending)` | The queue is full. Try again much later. |
//! | `Busy` | `message rejected by spool (average response time 5.21)` | Answers take too long. Try again soon. |
//! | `TimedOut` | `timed out (no answer within 25 s)` | The worker did not answer in 5 × responsiveness, or the [queue timeout](SpoolBuilder::queue_timeout) passed. It may still do the work. |
//! | `Unavailable` | `Service temporarily unavailable (no worker and no immediate prospects of one)` | A spool of [joined](Spool::join_worker) workers has none. |
//! | `Aborted` | `aborted (user or software interrupt)` | The spool stops or has ended, or the worker has [left](Spool::leave). |
//!
//! A worker that dies with a request leaves it with
//! [`AskError::NoReply`](crate::AskError::NoReply), at once, unless there are
//! [retries](SpoolBuilder::retries).

mod arrival;
mod builder;
mod dispatch;
mod handle;
mod limits;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod manager;
mod outbox;
mod pool;
mod refusals;
mod slots;
mod spans;
mod worker;

pub use builder::SpoolBuilder;
pub use handle::Spool;
pub use limits::SpoolError;
pub use refusals::SpoolStatus;
