//! The cases of blocking calls, made by tasks on workers.

use std::thread;
use std::time::Instant;

use ::blocking::unblock;
use peers::linux::threads;

use crate::cases::Case;
use crate::executors::async_executor::AsyncExecutor;
#[cfg(feature = "greenroom")]
use crate::executors::greenroom::Greenroom;
use crate::executors::tokio::Tokio;
use crate::executors::{Executor, inside};
use crate::figures::{self, Figure, check, nanoseconds, sum_below};
use crate::sizes;

/// An executor with threads for blocking calls.
pub trait Blocking: Executor {
    /// Runs a call on a thread that may block.
    fn unblock<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Self::Task<T>;
}

#[cfg(feature = "greenroom")]
impl Blocking for Greenroom {
    fn unblock<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Self::Task<T> {
        greenroom::unblock(call)
    }
}

impl Blocking for Tokio {
    fn unblock<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Self::Task<T> {
        Self::task(tokio::task::spawn_blocking(call))
    }
}

impl Blocking for AsyncExecutor {
    fn unblock<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Self::Task<T> {
        unblock(call)
    }
}

/// Runs one case.
pub fn run<E: Blocking>(case: Case) -> Option<Vec<Figure>> {
    Some(match case {
        Case::Unblock => inside::<E, _>(round_trips::<E>()),
        Case::UnblockWindows => inside::<E, _>(windows::<E>()),
        Case::UnblockSleeping => inside::<E, _>(sleeping::<E>()),
        _ => return None,
    })
}

async fn round_trips<E: Blocking>() -> Vec<Figure> {
    let (begin, mut sum) = (Instant::now(), 0);
    for n in 0..sizes::BLOCKING_CALLS {
        sum += E::unblock(move || n).await;
    }
    let figure = nanoseconds(figures::CALL, sizes::BLOCKING_CALLS, begin);
    check("sum", sum, sum_below(sizes::BLOCKING_CALLS));
    vec![figure]
}

/// Starts this many calls, and awaits them all.
async fn window<E: Blocking>(calls: u64, call: impl Fn(u64) -> u64 + Copy + Send + 'static) {
    let tasks = (0..calls).map(|n| E::unblock(move || call(n)));
    let mut sum = 0;
    for task in tasks.collect::<Vec<_>>() {
        sum += task.await;
    }
    check("sum", sum, sum_below(calls));
}

async fn windows<E: Blocking>() -> Vec<Figure> {
    let before = threads();
    let begin = Instant::now();
    for _ in 0..sizes::WINDOWS {
        window::<E>(sizes::WINDOW, |n| n).await;
    }
    let calls = sizes::WINDOWS * sizes::WINDOW;
    let time = nanoseconds(figures::CALL_OF_WINDOW, calls, begin);
    let value = (threads() - before) as f64;
    let what = figures::THREADS_AFTER;
    vec![time, Figure { what, value }]
}

async fn sleeping<E: Blocking>() -> Vec<Figure> {
    let begin = Instant::now();
    window::<E>(sizes::SLEEPING, |n| {
        thread::sleep(sizes::SLEEPING_FOR);
        n
    })
    .await;
    let value = begin.elapsed().as_secs_f64() * 1e3;
    let what = figures::ALL_SLEPT;
    vec![Figure { what, value }]
}
