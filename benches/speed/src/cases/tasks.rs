//! Tasks without a mailbox, and timers.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::{rate, sum_below};
use crate::names::{sleep, spawn};

/// Spawns tasks, one by one and then many at once.
pub async fn spawning() -> f64 {
    const ONE_BY_ONE: u64 = 1_000_000;
    const AT_ONCE: u64 = 500_000;
    let (begin, mut sum) = (Instant::now(), 0);
    for n in 0..ONE_BY_ONE {
        sum += spawn(async move { n }).await;
    }
    assert_eq!(sum, sum_below(ONE_BY_ONE));
    let tasks: Vec<_> = (0..AT_ONCE).map(|n| spawn(async move { n })).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await;
    }
    assert_eq!(sum, sum_below(AT_ONCE));
    rate(ONE_BY_ONE + AT_ONCE, begin)
}

/// Arms and cancels a timer that never fires, then waits for one that does, in many tasks.
pub async fn timer() -> f64 {
    const TASKS: u64 = 100_000;
    const NEVER: Duration = Duration::from_secs(3600);
    /// The deadlines are this far from the spawn, so that they pass while others are spawned.
    const DEADLINES: u64 = 8;
    let (begin, mut sum) = (Instant::now(), 0);
    let wait = |n| async move {
        {
            let mut never = pin!(sleep(NEVER));
            let poll = poll_fn(|cx| Poll::Ready(never.as_mut().poll(cx)));
            assert!(poll.await.is_pending(), "an hour has not passed");
        }
        sleep(Duration::from_millis(1 + n % DEADLINES)).await;
        n
    };
    let tasks: Vec<_> = (0..TASKS).map(|n| spawn(wait(n))).collect();
    for task in tasks {
        sum += task.await;
    }
    assert_eq!(sum, sum_below(TASKS));
    rate(2 * TASKS, begin)
}
