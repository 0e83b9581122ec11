//! Loopers: serial queues with priorities, locks that are granted before a task runs, and a
//! world that stops.
//!
//! Take loopers for many serial queues that share values under locks. Take an
//! [actor](crate::ActorBuilder) instead for state with one owner.
//!
//! A [`Looper`] runs closures and futures one at a time, in the order in which they were posted.
//! Different loopers run at the same time, on the *lanes* of their [`Controller`]: ordinary tasks
//! of a runtime. A task names the locks that it needs, and begins when its looper has them. While
//! it waits for them it takes no lane. A task of the [`World`] runs alone.
//!
//! ```
//! use greenroom::looper::Controller;
//!
//! greenroom::run(async {
//!     let controller = Controller::builder().priorities(3).build().unwrap();
//!     let accounts = controller.guarded(vec![100, 200]); // a value behind a lock
//!     let log = controller.guarded(Vec::new());
//!     let teller = controller.looper();
//!
//!     let both = (accounts.exclusive(), log.exclusive());
//!     let moved = teller.priority(3).with(both).post(|(accounts, log)| {
//!         accounts[0] -= 10;
//!         accounts[1] += 10;
//!         log.push("moved");
//!     });
//!     moved.unwrap().await.unwrap();
//!
//!     let interest = teller.with(accounts.exclusive()).spawn(|mut accounts| async move {
//!         greenroom::yield_now().await; // the lock is held, the lane is free
//!         accounts[0] += 1;
//!     });
//!     interest.unwrap().await.unwrap();
//!
//!     let sum = controller.stop_the_world(move |world| {
//!         world.get(&accounts).map(|accounts| accounts.iter().sum::<i32>())
//!     });
//!     assert_eq!(sum.unwrap().await.unwrap(), Ok(301));
//! });
//! ```
//!
//! # Which one
//!
//! | you have | take |
//! |---|---|
//! | state with one owner, which handles messages | an [actor](crate::ActorBuilder) |
//! | many serial queues of closures, which share values | loopers |
//! | a value that is used for less than a microsecond, never across an `await` | a [`Mutex`](std::sync::Mutex) |
//! | closures that block | [`unblock`](crate::unblock()) |
//!
//! # Order
//!
//! - A looper runs its tasks in order, whatever their priorities. The priority of its next task
//!   counts among loopers.
//! - Of the loopers that are ready, one of the highest priority goes first, also between two tasks
//!   of a busy lane. Equal ones take turns, one task each. A task that has begun is not
//!   interrupted.
//! - Priorities order loopers among themselves, not against actors and other tasks.
//!
//! # Locks
//!
//! A request enters the line of its lock when its task is the next one of its looper. If all locks
//! of the task are free then, it enters when the task begins and finds one of them taken. A set of
//! locks is taken one after the other, in the order in which the locks were made. The line is
//! ordered by priority, then exclusive before shared, then time. No request is granted before
//! one of a higher rank that waits, even if readers hold the lock. So high priorities starve
//! low ones, and exclusive requests starve shared ones, unless there is
//! [`aging`](ControllerBuilder::aging). A task does not lend its priority to the holder of the
//! lock for which it waits.
//!
//! The lock is given back when the task ends or panics. With [`keep`](Claim::keep) it stays
//! with the looper until [`unlock`](Looper::unlock).
//!
//! A wait that would never end is refused with a [`Deadlock`](crate::Deadlock) that names the
//! cycle: in builds with debug assertions, or with
//! [`detect_deadlocks`](ControllerBuilder::detect_deadlocks).

mod cell;
mod claim;
mod controller;
mod error;
mod handle;
mod job;
mod lane;
mod lock;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod monitor;
mod table;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;
mod work;
mod world;

pub use claim::{Access, Claim, Exclusive, Shared};
pub use controller::{Controller, ControllerBuilder, CurrentTask, current};
pub use error::{LockDetail, LockError, PostError, PostProblem, TaskError};
pub use handle::{Looper, Posting, WeakLooper};
pub use job::Posted;
pub use lock::{Guarded, Lock};
pub use table::LooperStatus;
pub use world::World;
