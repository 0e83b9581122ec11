//! The cases with timers and without actors, on any executor that has timers.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::cases::Case;
use crate::executors::async_executor::AsyncExecutor;
#[cfg(feature = "greenroom")]
use crate::executors::greenroom::Greenroom;
use crate::executors::{Executor, inside, tokio::Tokio};
use crate::figures::{self, Figure, check, nanoseconds, percentiles, sum_below};
use crate::process::Stopwatch;
use crate::sizes;

/// An executor with timers.
pub trait Timed: Executor {
    /// Waits for this time, from the first poll on or from before.
    fn sleep(time: Duration) -> impl Future<Output = ()> + Send + 'static;
}

#[cfg(feature = "greenroom")]
impl Timed for Greenroom {
    fn sleep(time: Duration) -> impl Future<Output = ()> + Send + 'static {
        greenroom::time::sleep(time)
    }
}

impl Timed for Tokio {
    fn sleep(time: Duration) -> impl Future<Output = ()> + Send + 'static {
        // Without this, the budget of a task allows it 128 polls, and then none arms a timer.
        tokio::task::coop::unconstrained(tokio::time::sleep(time))
    }
}

impl Timed for AsyncExecutor {
    async fn sleep(time: Duration) {
        async_io::Timer::after(time).await;
    }
}

/// Runs one case.
pub fn run<E: Timed>(case: Case) -> Option<Vec<Figure>> {
    Some(match case {
        Case::TimersDue => inside::<E, _>(due::<E>()),
        Case::TimersCancelled => inside::<E, _>(cancelled::<E>()),
        _ => return None,
    })
}

async fn due<E: Timed>() -> Vec<Figure> {
    let watch = Stopwatch::start();
    let first = Instant::now() + sizes::ARMED_IN;
    let sleeper = |n| {
        let until = first + sizes::irregular_time(n, sizes::DUE_WITHIN);
        E::spawn(async move {
            E::sleep(until - Instant::now()).await;
            let late = Instant::now().checked_duration_since(until);
            (n, late.expect("no timer is early"))
        })
    };
    let sleepers: Vec<_> = (0..sizes::SLEEPERS).map(sleeper).collect();
    let (mut sum, mut late) = (0, Vec::with_capacity(sleepers.len()));
    for sleeper in sleepers {
        let (n, by) = sleeper.await;
        sum += n;
        late.push(by);
    }
    let cpu = watch.stop();
    check("sleepers", sum, sum_below(sizes::SLEEPERS));
    let mut figures = vec![cpu.cpu_of_each(figures::CPU_OF_SLEEPER, sizes::SLEEPERS)];
    figures.extend(percentiles(late));
    figures
}

async fn cancelled<E: Timed>() -> Vec<Figure> {
    let all = arm::<E>(figures::CANCELLED, sizes::CANCELLED).await;
    let few = arm::<E>(figures::CANCELLED_OF_FEW, sizes::CANCELLED_AT_ONCE).await;
    vec![all, few]
}

/// Arms the timers, this many at once, and drops them.
async fn arm<E: Timed>(what: &'static str, at_once: u64) -> Figure {
    let (begin, mut waiting) = (Instant::now(), 0);
    let mut timers = Vec::with_capacity(at_once as usize);
    for _ in 0..sizes::CANCELLED / at_once {
        for n in 0..at_once {
            let length = sizes::ASK_LIMIT + sizes::irregular_time(n, sizes::ASK_LIMIT);
            timers.push(Box::pin(E::sleep(length)));
        }
        for timer in &mut timers {
            let polled = poll_fn(|cx| Poll::Ready(timer.as_mut().poll(cx))).await;
            waiting += u64::from(polled.is_pending());
        }
        timers.clear();
    }
    let figure = nanoseconds(what, sizes::CANCELLED, begin);
    check("waiting timers", waiting, sizes::CANCELLED);
    figure
}
