//! Deterministic simulation: runs a program under a seeded schedule and virtual time, for tests.
//!
//! Use it to test orders of events and timeouts. It is not for programs that need sockets, files or
//! other threads, nor for races in plain memory: [loom](https://docs.rs/loom) finds those.
//!
//! [`run`](run()) runs a future on the calling thread, with all tasks, actors, timers, pinned threads and
//! blocking jobs that it starts. They run one at a time, in an order drawn from a seed. [`explore`]
//! does so with many seeds.
//!
//! A run that [fails](#what-is-a-failure) reports what happened. Its seed makes the same happen
//! again, on any machine. Time is virtual: a test that sleeps for an hour takes microseconds.
//!
//! # How to test an actor
//!
//! Suppose that clients pay money in to an account:
//!
//! ```should_panic
//! use greenroom::{Address, Context, Reply, sim, spawn};
//!
//! enum Account {
//!     Balance(Reply<u32>),
//!     Set(u32),
//! }
//!
//! async fn account(mut cx: Context<Account>) -> u32 {
//!     let mut balance = 0;
//!     while let Some(message) = cx.recv().await {
//!         match message {
//!             Account::Balance(reply) => reply.send(balance),
//!             Account::Set(amount) => balance = amount,
//!         }
//!     }
//!     balance
//! }
//!
//! async fn pay_in(account: Address<Account>, amount: u32) {
//!     let balance = account.ask(Account::Balance).await.unwrap();
//!     account.tell(Account::Set(balance + amount)).unwrap();
//! }
//!
//! async fn two_pay_in() {
//!     let account = spawn!(account(_), name = "account");
//!     let clients = [1, 2].map(|amount| spawn(pay_in(account.address(), amount)));
//!     for client in clients {
//!         client.await;
//!     }
//!     assert_eq!(account.join().await.unwrap(), 3);
//! }
//!
//! sim::explore(0..1000, |_| two_pay_in());
//! ```
//!
//! **The bug is found**: with some seeds the account ends with 1 or 2. The panic's text contains
//! the first such seed, what happened in each step, and the call that repeats the run:
//!
//! ```
//! # use greenroom::{Address, Context, Reply, sim, spawn};
//! # enum Account {
//! #     Balance(Reply<u32>),
//! #     Set(u32),
//! # }
//! # async fn account(mut cx: Context<Account>) -> u32 {
//! #     let mut balance = 0;
//! #     while let Some(message) = cx.recv().await {
//! #         match message {
//! #             Account::Balance(reply) => reply.send(balance),
//! #             Account::Set(amount) => balance = amount,
//! #         }
//! #     }
//! #     balance
//! # }
//! # async fn pay_in(account: Address<Account>, amount: u32) {
//! #     let balance = account.ask(Account::Balance).await.unwrap();
//! #     account.tell(Account::Set(balance + amount)).unwrap();
//! # }
//! # async fn two_pay_in() {
//! #     let account = spawn!(account(_), name = "account");
//! #     let clients = [1, 2].map(|amount| spawn(pay_in(account.address(), amount)));
//! #     for client in clients {
//! #         client.await;
//! #     }
//! #     assert_eq!(account.join().await.unwrap(), 3);
//! # }
//! # let failure = greenroom::policy::Simulated::new(3).try_run(two_pay_in()).unwrap_err();
//! # let text = failure.to_string();
//! # let text = text.split_once("3\nin step").unwrap().1;
//! # assert_eq!(text, &r#"
//! in step 11, at 0.000011 s of virtual time
//!   step          time  task: events
//!      1      0.000001  main: spawns "account" #1, spawns task #2, spawns task #3
//!      2      0.000002  task #2: sends #1 Account to "account" #1
//!      3      0.000003  "account" #1: gets #1 Account from task #2, wakes task #2
//!      4      0.000004  task #3: sends #2 Account to "account" #1
//!      5      0.000005  "account" #1: gets #2 Account from task #3, wakes task #3
//!      6      0.000006  task #3: sends #3 Account to "account" #1, ends
//!      7      0.000007  "account" #1: gets #3 Account from task #3
//!      8      0.000008  task #2: sends #4 Account to "account" #1, ends, wakes main
//!      9      0.000009  main runs
//!     10      0.000010  "account" #1: gets #4 Account from task #2, ends, wakes main
//!     11      0.000011  main runs
//! to run it again: greenroom::sim::run(3, ..)
//! # "#["\nin step".len()..]);
//! ```
//!
//! Messages are numbered in the order in which they are sent. Both clients receive the balance, in
//! steps 3 and 5, before either has set it. If a shorter run fails in the same way, with fewer
//! context switches, [`explore`] reports that one and both lengths. Messages are shown by their
//! `Debug` if the actor [enables that](crate::ActorBuilder::show), and [`note`] writes a line to
//! the trace.
//!
//! **The seed is replayed**: `sim::run(3, two_pay_in())` fails in the same way each time, also in a
//! debugger or after a `println!` was added. So does the test itself with `GREENROOM_SEED=3` in the
//! environment.
//!
//! **The bug is fixed** by letting the account do the addition. The same seeds then find nothing:
//!
//! ```
//! use greenroom::{Address, Context, sim, spawn};
//!
//! struct Add(u32);
//!
//! async fn account(mut cx: Context<Add>) -> u32 {
//!     let mut balance = 0;
//!     while let Some(Add(amount)) = cx.recv().await {
//!         balance += amount;
//!     }
//!     balance
//! }
//!
//! async fn pay_in(account: Address<Add>, amount: u32) {
//!     account.tell(Add(amount)).unwrap();
//! }
//!
//! async fn two_pay_in() {
//!     let account = spawn!(account(_), name = "account");
//!     let clients = [1, 2].map(|amount| spawn(pay_in(account.address(), amount)));
//!     for client in clients {
//!         client.await;
//!     }
//!     assert_eq!(account.join().await.unwrap(), 3);
//! }
//!
//! sim::explore(0..1000, |_| two_pay_in());
//! ```
//!
//! A [`TestProbe`] is an actor that the test plays itself, so that no test needs to sleep.
//! [`Simulated`] has options, also to [explore](Simulated::explore), and
//! [`try_run`](Simulated::try_run) returns a failure as a value.
//!
//! # What is a failure
//!
//! - A panic: of the run's own future, of a task or actor that is not joined, or of a source of an
//!   actor. A [`Supervisor`](crate::supervise::Supervisor) joins what it receives. A panic in a drop
//!   or in a waker is contained, as outside a simulation.
//! - A deadlock: nothing is ready and no timer is armed, but the run's own future is not done, or
//!   an [`ask`](crate::Address::ask) or a [`send`](crate::Address::send) waits. The report names
//!   the cycle if there is one. It also says which task or actor waits for the end of another,
//!   which actor does not read, and which holds a reply. A [`KeepAlive`](crate::KeepAlive) makes no
//!   difference. The timeout of an ask is a timer even in a cycle: the clock jumps to it.
//! - An actor that the shutdown after the run has to cancel, because it does not end within the
//!   [`grace`](crate::Builder::grace) of 5 s of virtual time.
//! - More [`steps`](Simulated::steps) than a million: something runs forever, such as a timer,
//!   perhaps while all other tasks wait. The report names the asks and sends that wait meanwhile.
//! - In [`explore`], a run that does something else when it is repeated.
//!
//! The panic hook prints each panic, also one that a restart follows. A test with many of them sets
//! a hook that returns if [`is_contained`](crate::is_contained()): the report has the text of the
//! panic that failed.
//!
//! # What it finds
//!
//! - Bugs that depend on the order in which tasks run.
//! - Bugs between two effects of one turn. In a quarter of all runs, turns are split: each message,
//!   reply, stop and wake-up takes effect in its own step, and other tasks may run in between.
//!   Messages from one sender to one actor keep their order, and the results of `tell` and `send`
//!   are valid from the call on.
//! - Bugs that depend on which of two timers fires first, if they are less than
//!   [`timer_jitter`](Simulated::timer_jitter) (1 ms) apart. A larger jitter simulates a busier
//!   machine. Two timers that are close often fire at the same moment. Each step takes only
//!   a microsecond, so a task that waits for no timer does not lose a race against a timeout.
//!
//! # What it does not find
//!
//! Accesses to plain shared memory between two awaits are one step: another task sees all of them
//! or none. ThreadSanitizer and loom find such races.
//!
//! In a split turn, memory is ahead of messages: a write after a send may be visible before the
//! message arrives. That includes atomics and the channels of other crates. A task that the turn
//! wakes finds the message there, as does one that sees the turn in a state of greenroom, such as a
//! status or a name. If another task polls for such a write, put an `await` before the
//! write, or run with [`whole_turns`](Simulated::whole_turns).
//!
//! A turn that has sent something ends at its next `recv`, like a turn that has handled a
//! [batch](crate::Builder::batch). Effects of other threads and of jobs of
//! [`unblock`](crate::unblock()) are not split.
//!
//! # What it needs
//!
//! The program must do the same with the same seed. So its behaviour must not depend on:
//!
//! - the system clock;
//! - random numbers, except those of [`random`];
//! - the order of a `HashMap`, or of `futures::select!` (use `select_biased!`);
//! - other threads, or files.
//!
//! No part of the program may block this thread to wait for another thread, or for a lock that a
//! task holds across an `await`. Nor may it wait in another executor's `block_on`. Such a turn never
//! ends: after some seconds a line on stderr names its seed, its step and its task.

mod engine;
mod failure;
mod probe;
mod run;
mod seeds;
mod shrink;
mod simulated;

pub use failure::Failure;
pub use probe::TestProbe;
pub use run::{note, random, run};
pub use seeds::explore;

pub use engine::{Run, RunProblem};
#[doc(inline)]
pub use simulated::Simulated;
