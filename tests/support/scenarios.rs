//! Scenarios: in many simulations, on two workers, or both.
//!
//! All run under the watchdog, and none judges by real time.

use std::pin::Pin;
use std::time::Duration;

use greenroom::Runtime;
use greenroom::policy::Simulated;

use super::{WATCH, keep_bombs_quiet, within};

/// The number of simulations of each scenario.
pub const SEEDS: u64 = 20;

/// Runs a scenario in many simulations, then on two workers.
pub fn everywhere<Fut>(scenario: impl Fn() -> Fut + Send + 'static)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    within(WATCH, move || {
        simulated_here(&scenario);
        for _ in 0..3 {
            on_two_workers(scenario());
        }
    });
}

/// Runs a scenario in many simulations, whose time is virtual.
pub fn simulated<Fut: Future<Output = ()> + 'static>(scenario: impl Fn() -> Fut + Send + 'static) {
    within(WATCH, move || simulated_here(&scenario));
}

fn simulated_here<Fut: Future<Output = ()>>(scenario: &impl Fn() -> Fut) {
    for seed in 0..SEEDS {
        let _named = super::matrix::Named(format!("seed {seed}"));
        let policy = Simulated::new(seed).timer_jitter(Duration::ZERO);
        let runtime = Runtime::builder().policy(policy);
        let runtime = runtime.on_fault(|_| {}).build().unwrap();
        block_on(&runtime, Box::pin(scenario()));
    }
}

/// Runs a scenario on two workers, under the watchdog.
pub fn on_threads<F: Future<Output = ()> + Send + 'static>(scenario: F) {
    within(WATCH, move || on_two_workers(scenario));
}

/// Runs a scenario whose type is erased: most of what it takes to compile a test would be spent on
/// this call.
fn block_on(runtime: &Runtime, scenario: Pin<Box<dyn Future<Output = ()> + '_>>) {
    runtime.block_on(scenario);
}

pub fn on_two_workers<F: Future<Output = ()>>(scenario: F) {
    keep_bombs_quiet();
    let runtime = Runtime::builder().workers(2).on_fault(|_| {});
    block_on(&runtime.build().unwrap(), Box::pin(scenario));
}
