//! The same program under a seeded schedule and virtual time: for tests.
//!
//! [`run`] runs a future, with all the tasks, actors, timers, pinned threads and blocking jobs that come
//! of it, on the calling thread, one at a time, in an order drawn from a seed; [`explore`] does so with
//! many seeds. A run that [fails](#what-is-a-failure) tells what happened, and its seed makes the same
//! happen again, on any machine. Time is virtual: a test that sleeps an hour takes microseconds.
//!
//! # How to test an actor with it
//!
//! An account, and clients that pay in to it:
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
//! sim::explore(0..1000, two_pay_in);
//! ```
//!
//! **The bug is found**: with some seeds the account ends with 1 or 2. The panic's text has the first such seed,
//! what happened in each step, and the call that makes it happen again:
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
//! # assert_eq!(text, &"
//! in step 11, at 0.000011 s of virtual time
//!   step          time  who: what
//!      1      0.000001  main: spawns account, spawns task #2, spawns task #3
//!      2      0.000002  task #2: sends #1 Account to account
//!      3      0.000003  account: gets #1 Account from task #2, wakes task #2
//!      4      0.000004  task #3: sends #2 Account to account
//!      5      0.000005  account: gets #2 Account from task #3, wakes task #3
//!      6      0.000006  task #3: sends #3 Account to account, ends
//!      7      0.000007  account: gets #3 Account from task #3
//!      8      0.000008  task #2: sends #4 Account to account, ends, wakes main
//!      9      0.000009  main runs
//!     10      0.000010  account: gets #4 Account from task #2, ends, wakes main
//!     11      0.000011  main runs
//! to run it again: greenroom::sim::run(3, ..)
//! # "["\nin step".len()..]);
//! ```
//!
//! Messages are numbered in the order in which they are sent. Both clients are told the balance, in
//! steps 3 and 5, before either has set it. [`explore`] tells of a shorter run that fails alike, if there is one:
//! with fewer context switches, and says how many there were. Messages are shown by their `Debug` where the actor
//! [says so](crate::ActorBuilder::show), and [`note`] writes a line into the trace.
//!
//! **The seed is replayed**: `sim::run(3, two_pay_in())` fails in the same way each time, also with more
//! `println!` in it, or in a debugger. So does the test itself with `GREENROOM_SEED=3` in the environment.
//! **The bug is mended** when the account adds by itself, and then the same seeds find nothing:
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
//! sim::explore(0..1000, two_pay_in);
//! ```
//!
//! A [`TestProbe`] stands for an actor that the test plays itself, so that no test needs a sleep.
//! [`Simulated`] has the options, for [`explore_with`] too, and [`try_run`](Simulated::try_run) gives a failure as
//! a value.
//!
//! # What is a failure
//!
//! - A panic: of the run's own future, of a task or actor that no join receives, or of a source of an actor. A
//!   panic in a drop or in a waker is contained here as anywhere.
//! - A deadlock: nothing is ready and no timer armed, but the run's own future is not done, or an
//!   [`ask`](crate::Address::ask) or a [`send`](crate::Address::send) waits. Who waits for whom is named,
//!   the cycle if there is one; also whose end is waited for, which actor does not read, and who holds a reply. A [`KeepAlive`](crate::KeepAlive) makes no difference. The time-out of an
//!   ask is a timer also in a cycle: the clock jumps to it.
//! - An actor that the shutdown after the run has to cancel, since it does not end within the
//!   [`grace`](crate::Builder::grace) of 5 s, in virtual time.
//! - More [`steps`](Simulated::steps) than a million: something goes on for ever, such as a timer, beside which
//!   nothing else might. Who waits for whom meanwhile is named.
//! - In [`explore`], a run that does something else when it is repeated.
//!
//! # What it finds
//!
//! - Bugs that depend on the order in which tasks run.
//! - Bugs between two things that one turn does to others. In a quarter of all runs turns are split: each message,
//!   answer, stop and wake-up takes effect in a step of its own, and others may run between. Messages of one
//!   sender to one actor stay in their order, and what `tell` and `send` return holds from the call on.
//! - Bugs that depend on which of two times is over first if they are less than [`timer_jitter`](Simulated::timer_jitter) apart, a
//!   millisecond; a larger one tries what a busier machine does. Two that are close are often over at the same
//!   moment. Each step takes a microsecond, so what takes no time otherwise does not lose against a time-out.
//!
//! # What it does not find
//!
//! What a program does with plain shared memory between two awaits is one step: another task sees all of it or
//! nothing. ThreadSanitizer and [loom](https://docs.rs/loom) look there.
//!
//! In a split turn memory is ahead of messages: what a turn writes after a send may be seen before the message
//! arrives. Memory includes atomics and the channels of other crates. A task that is woken by the turn finds the
//! message there. A program in which another task polls for such a write has an `await` before it, or runs with
//! [`whole_turns`](Simulated::whole_turns).
//!
//! A turn that has sent something ends at its next `recv`, as one that has handled a
//! [batch](crate::Builder::batch). What another thread does, or a job of [`unblock`](crate::unblock()), is not split.
//!
//! # What it needs
//!
//! The program does the same with the same seed if nothing else decides what it does: not the system's
//! clock, random numbers but [`random`], the order of a `HashMap` or of `futures::select!` (but that of
//! `select_biased!`), another thread, or a file. Nothing of it may wait for another thread in a way that
//! blocks this one, for a lock that a task holds across an `await`, or in another executor's `block_on`.

mod engine;
mod failure;
mod inside;
mod judged;
mod probe;
mod seeds;
mod shrink;
mod simulated;

pub use failure::{Failure, Run};
pub use inside::{note, random};
pub use judged::run;
pub use probe::TestProbe;
pub use seeds::{Program, explore, explore_with};

pub use engine::Problem;
#[doc(inline)]
pub use simulated::Simulated;
