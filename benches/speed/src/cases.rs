//! The cases: small programs on two workers, each of which takes about 0.2 s and checks its result.
//!
//! A case has a process for itself. Its figure is operations a second.

mod asks;
mod crowds;
mod streams;
mod tasks;

use std::time::Instant;

use crate::names::{Context, Runtime};

/// A program and its name.
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// Runs it, and returns its operations a second.
    pub run: fn() -> f64,
}

/// All cases. Those with `_reply` send an enum that may hold a `Reply`, the others a `u64`.
pub const CASES: [Case; 14] = [
    case("bounded", || inside(streams::bounded::<u64>())),
    case("bounded_reply", || {
        inside(streams::bounded::<streams::Tally>())
    }),
    case("counting", || inside(streams::counting::<u64>())),
    case("counting_reply", || {
        inside(streams::counting::<streams::Tally>())
    }),
    case("stages", || inside(streams::stages::<u64>())),
    case("stages_reply", || {
        inside(streams::stages::<streams::Tally>())
    }),
    case("fan_in", || inside(streams::fan_in())),
    case("ping_pong", || inside(asks::ping_pong())),
    case("ask", || inside(asks::ask())),
    case("ring", || inside(crowds::ring())),
    case("meetings", || inside(crowds::meetings())),
    case("spawn", || inside(crowds::spawning())),
    case("task_spawn", || inside(tasks::spawning())),
    case("timer", || inside(tasks::timer())),
];

const fn case(name: &'static str, run: fn() -> f64) -> Case {
    Case { name, run }
}

/// Runs `driver` as a task of a new runtime, and returns its result.
fn inside(driver: impl Future<Output = f64> + Send + 'static) -> f64 {
    let runtime = Runtime::builder().workers(2).build();
    let runtime = runtime.expect("two threads can be started");
    runtime.block_on(runtime.spawn(driver))
}

/// Returns how many of `count` there were each second since `begin`.
fn rate(count: u64, begin: Instant) -> f64 {
    count as f64 / begin.elapsed().as_secs_f64()
}

/// Returns the sum of `0..count`.
fn sum_below(count: u64) -> u64 {
    count * (count - 1) / 2
}

/// Sums up `count` numbers.
async fn collect(mut cx: Context<u64>, count: u64) -> u64 {
    let mut total = 0;
    for _ in 0..count {
        total += cx.recv().await.expect("all are told");
    }
    total
}
