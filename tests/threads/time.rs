//! Sleeps and timeouts: never early, in order, and cancelled when dropped, wherever they are
//! polled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use greenroom::Runtime;
use greenroom::time::{Instant, TimedOut, sleep, sleep_until, timeout, timeout_at};

use crate::support::{
    CountingWaker, Drops, Gate, Home, Log, WATCH, drive, in_every_home, inside, on_threads,
    poll_here, poll_once, received, within,
};

const MILLI: Duration = Duration::from_millis(1);

// Uses the system's clock.
on_threads!(a_sleep_is_never_early_by_any_clock);

in_every_home!(
    a_sleep_is_never_early,
    a_sleep_of_zero_is_ready_at_once,
    an_endless_sleep_never_ends_and_does_not_delay_other_tasks,
    many_sleeps_all_end,
    a_sleep_counts_from_its_creation,
    a_sleep_may_be_polled_by_one_task_after_another,
    timeout_returns_the_value_of_a_future_that_is_done_in_time,
    timeout_drops_a_future_that_is_not_done_in_time,
    an_outer_timeout_may_be_shorter_than_an_inner_one,
    a_sleep_until_a_moment_ends_at_that_moment,
    waits_may_have_one_deadline_in_common,
);

fn a_sleep_is_never_early(home: &Home) {
    home.block_on(home.spawn_task(async {
        for micros in [1, 50, 999, 1000, 1001, 5000] {
            let length = Duration::from_micros(micros);
            let start = Instant::now();
            sleep(length).await;
            assert!(start.elapsed() >= length, "{length:?}");
        }
    }));
}

fn a_sleep_is_never_early_by_any_clock(home: &Home) {
    home.block_on(home.spawn_task(async {
        for micros in [1, 50, 999, 1000, 1001, 5000] {
            let length = Duration::from_micros(micros);
            let start = std::time::Instant::now();
            sleep(length).await;
            assert!(start.elapsed() >= length, "{length:?}");
        }
    }));
}

fn a_sleep_until_a_moment_ends_at_that_moment(home: &Home) {
    home.block_on(home.spawn_task(async {
        let now = Instant::now();
        assert!(poll_here(&mut sleep_until(now)).await.is_ready());
        greenroom::concurrently([3, 1, 2].map(async |n| {
            let deadline = now + MILLI * n;
            sleep_until(deadline).await;
            assert!(Instant::now() >= deadline);
        }))
        .await;
    }));
}

fn waits_may_have_one_deadline_in_common(home: &Home) {
    home.block_on(home.spawn_task(async {
        let start = Instant::now();
        let deadline = start + MILLI * 4;
        for _ in 0..100 {
            let never = std::future::pending::<()>();
            assert_eq!(timeout_at(deadline, never).await, Err(TimedOut));
        }
        assert!(Instant::now() >= deadline);
        // What is ready at once has its value, although the deadline is over.
        assert_eq!(timeout_at(start, async { 42 }).await, Ok(42));
    }));
}

fn a_sleep_of_zero_is_ready_at_once(home: &Home) {
    home.block_on(home.spawn_task(async {
        assert!(poll_here(&mut sleep(Duration::ZERO)).await.is_ready());
        sleep(Duration::from_nanos(1)).await;
    }));
}

fn an_endless_sleep_never_ends_and_does_not_delay_other_tasks(home: &Home) {
    let drops = Drops::default();
    for long in [
        Duration::MAX,
        Duration::from_secs(u64::MAX),
        Duration::from_secs(18_000_000_000),
    ] {
        let dropped = drops.one();
        let mut task = home.spawn_task(async move {
            let _dropped = dropped;
            sleep(long).await;
        });
        home.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
        task.detach();
    }
    home.block_on(home.spawn_task(async { sleep(MILLI).await }));
    assert_eq!(drops.count(), 0);
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 3);
}

/// A waker that records in a log that it was woken.
struct Noting<T>(Log<T>, T);

impl<T: Copy + Send + Sync + 'static> Wake for Noting<T> {
    fn wake(self: Arc<Self>) {
        self.0.add(self.1);
    }
}

fn deadlines_fire_in_order(home: &Home) {
    home.block_on(home.spawn_task(async {
        loop {
            let woken = Log::default();
            let mut sleeps = [30, 10, 20, 10, 25, 5].map(|millis| (millis, sleep(MILLI * millis)));
            let mut all_in_time = true;
            for (millis, sleep) in &mut sleeps {
                let waker = Waker::from(Arc::new(Noting(woken.clone(), *millis)));
                let polled = Pin::new(sleep).poll(&mut Context::from_waker(&waker));
                all_in_time = all_in_time && polled.is_pending();
            }
            // Sleeps that were over before they were armed say nothing about the order.
            if !all_in_time {
                continue;
            }
            sleep(MILLI * 31).await;
            let order = woken.take();
            assert_eq!(order, [5, 10, 10, 20, 25, 30]);
            return;
        }
    }));
}

#[test]
fn deadlines_fire_in_order_on_one_worker() {
    Home::watch(|| Home::workers(1), deadlines_fire_in_order);
}

#[test]
fn pinned_deadlines_fire_in_order() {
    Home::watch(Home::pinned, deadlines_fire_in_order);
}

fn many_sleeps_all_end(home: &Home) {
    let sleeps = (0..home.many(2000) as u64).map(|n| {
        let length = Duration::from_micros(n * 7919 % 5000);
        home.spawn_task(async move { sleep(length).await })
    });
    let tasks: Vec<_> = sleeps.collect();
    home.block_on(futures::future::join_all(tasks));
}

fn a_sleep_counts_from_its_creation(home: &Home) {
    home.block_on(home.spawn_task(async {
        let early = sleep(MILLI);
        sleep(MILLI * 2).await;
        // The time is over although the sleep was not polled before.
        let mut early = early;
        assert!(poll_here(&mut early).await.is_ready());
    }));
}

fn a_sleep_may_be_polled_by_one_task_after_another(home: &Home) {
    let (wakes, waker) = CountingWaker::new();
    let start = inside(&home.runtime, Instant::now);
    let (send, receive) = std::sync::mpsc::channel();
    home.block_on(home.spawn_task(async move {
        // Polled once with a waker that the waker of the next task replaces.
        let mut moved = sleep(MILLI * 3);
        let polled = Pin::new(&mut moved).poll(&mut Context::from_waker(&waker));
        send.send(if polled.is_ready() {
            sleep(MILLI)
        } else {
            moved
        })
        .unwrap();
    }));
    let moved = received(&receive);
    home.block_on(home.spawn_task(moved));
    assert!(inside(&home.runtime, || start.elapsed()) >= MILLI);
    assert!(wakes.count() <= 1);
}

fn timeout_returns_the_value_of_a_future_that_is_done_in_time(home: &Home) {
    home.block_on(home.spawn_task(async {
        assert_eq!(timeout(Duration::MAX, async { 42 }).await, Ok(42));
        assert_eq!(timeout(Duration::ZERO, async { 42 }).await, Ok(42));
        let later = async {
            greenroom::yield_now().await;
            42
        };
        assert_eq!(timeout(Duration::from_secs(1_000_000), later).await, Ok(42));
        let task = greenroom::spawn(async { 42 });
        assert_eq!(timeout(Duration::MAX, task).await, Ok(42));
    }));
}

fn timeout_drops_a_future_that_is_not_done_in_time(home: &Home) {
    let drops = Drops::default();
    let dropped = drops.one();
    home.block_on(home.spawn_task(async move {
        let start = Instant::now();
        let never = async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        };
        let outcome = timeout(MILLI * 2, never).await;
        assert_eq!(outcome, Err(TimedOut));
        assert!(start.elapsed() >= MILLI * 2);
        assert_eq!(TimedOut.to_string(), "the timeout elapsed");
        assert_eq!(
            timeout(Duration::ZERO, std::future::pending::<()>()).await,
            Err(TimedOut)
        );
    }));
    assert_eq!(drops.count(), 1);
}

fn an_outer_timeout_may_be_shorter_than_an_inner_one(home: &Home) {
    home.block_on(home.spawn_task(async {
        let never = std::future::pending::<()>();
        let nested = timeout(MILLI, timeout(Duration::MAX, never)).await;
        assert_eq!(nested, Err(TimedOut));
        let never = std::future::pending::<()>();
        let nested = timeout(Duration::MAX, timeout(MILLI, never)).await;
        assert_eq!(nested, Ok(Err(TimedOut)));
    }));
}

/// Sleeps briefly and returns whether it was long enough.
async fn nap() -> bool {
    let start = Instant::now();
    sleep(MILLI * 2).await;
    let outcome = timeout(MILLI, std::future::pending::<()>()).await;
    outcome == Err(TimedOut) && start.elapsed() >= MILLI * 3
}

#[test]
fn timers_work_in_block_on_on_bare_threads_and_on_other_executors() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        assert!(runtime.block_on(nap()));
        assert!(drive(nap()));
        assert!(futures::executor::block_on(nap()));
        assert!(futures::executor::LocalPool::new().run_until(nap()));
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| drive(nap())))
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
}

#[test]
fn timers_work_in_a_blocking_call() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        assert!(runtime.block_on(async { greenroom::unblock(|| drive(nap())).await }));
    });
}

fn a_dropped_sleep_wakes_no_task_and_keeps_no_waker(home: &Home) {
    home.block_on(home.spawn_task(async {
        loop {
            let (wakes, waker) = CountingWaker::new();
            let begun = Instant::now();
            let mut dropped = Box::pin(sleep(MILLI * 5));
            let polled = dropped.as_mut().poll(&mut Context::from_waker(&waker));
            let kept = Arc::strong_count(&wakes);
            drop(dropped);
            drop(waker);
            let left = Arc::strong_count(&wakes);
            // A sleep that was over before its drop says nothing: another thread may wake it.
            if begun.elapsed() >= MILLI * 5 {
                continue;
            }
            assert!(polled.is_pending());
            assert!(kept > 1 + 1, "the sleep keeps its waker");
            // At once, not when the time is over.
            assert_eq!(left, 1);
            sleep(MILLI * 7).await;
            assert_eq!(wakes.count(), 0);
            break;
        }
    }));
}

#[test]
fn a_dropped_sleep_wakes_no_task_one_worker() {
    Home::watch(
        || Home::workers(1),
        a_dropped_sleep_wakes_no_task_and_keeps_no_waker,
    );
}

#[test]
fn a_dropped_sleep_wakes_no_task_pinned() {
    Home::watch(
        Home::pinned,
        a_dropped_sleep_wakes_no_task_and_keeps_no_waker,
    );
}

#[test]
fn a_sleep_may_outlive_its_runtime() {
    within(WATCH, || {
        for pinned in [false, true] {
            let home = if pinned {
                Home::pinned()
            } else {
                Home::workers(1)
            };
            let (wakes, waker) = CountingWaker::new();
            let start = Instant::now();
            let (send, receive) = std::sync::mpsc::channel();
            drive(home.spawn_task(async move {
                let mut long = sleep(MILLI * 10);
                let polled = Pin::new(&mut long).poll(&mut Context::from_waker(&waker));
                send.send((long, polled)).unwrap();
            }));
            let (long, polled) = received(&receive);
            drop(home);
            if polled.is_pending() {
                assert_eq!(
                    wakes.count(),
                    1,
                    "the sleep is woken once, so that it can be armed elsewhere"
                );
                drive(long);
            }
            assert!(start.elapsed() >= MILLI * 10);
        }
    });
}

#[test]
fn a_sleep_may_move_to_another_runtime_and_outlive_the_first() {
    within(WATCH, || {
        let first = Runtime::builder().workers(1).build().unwrap();
        let second = Runtime::builder().workers(1).build().unwrap();
        let start = Instant::now();
        let mut moved = sleep(MILLI * 10);
        let armed = first.block_on(poll_here(&mut moved)).is_pending();
        let task = second.spawn(moved);
        drop(first);
        drive(task);
        assert!(!armed || start.elapsed() >= MILLI * 10);
    });
}

#[test]
fn a_timeout_fires_even_if_its_runtime_has_ended() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let outcome = runtime.block_on(async {
            let bounded = timeout(MILLI * 5, std::future::pending::<()>());
            let mut bounded = Box::pin(bounded);
            let _ = poll_here(&mut bounded).await;
            runtime.shutdown().await;
            bounded.await
        });
        assert_eq!(outcome, Err(TimedOut));
    });
}

#[test]
fn a_deadline_armed_by_another_thread_wakes_a_sleeping_worker() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            drive(runtime.spawn(async {}));
            for _ in 0..10 {
                // Polled on this thread; an otherwise idle worker fires it.
                runtime.block_on(sleep(MILLI));
            }
        }
    });
}

#[test]
fn a_nearer_deadline_fires_although_a_farther_one_was_armed_before() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let far = runtime.spawn(sleep(Duration::from_secs(1_000_000)));
            drive(runtime.spawn(async {}));
            runtime.block_on(sleep(MILLI));
            drive(runtime.spawn(sleep(MILLI)));
            drop(far);
            drive(runtime.spawn(sleep(MILLI)));
        }
    });
}

#[test]
fn a_sleeping_task_may_be_dropped_by_a_task_that_a_timer_woke() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let gate = Gate::default();
        let (sleeper, waits) = (
            runtime.spawn(sleep(Duration::from_secs(1_000_000))),
            gate.clone(),
        );
        let task = runtime.spawn(async move {
            sleep(MILLI).await;
            drop(sleeper);
            waits.open();
        });
        gate.pass();
        drive(task);
    });
}

#[test]
fn instants_are_ordered_and_do_not_overflow() {
    let now = Instant::now();
    assert!(Instant::now() >= now);
    assert_eq!(now - now, Duration::ZERO);
    assert_eq!(
        now - (now + MILLI),
        Duration::ZERO,
        "the duration since a future instant is zero"
    );
    assert_eq!((now + MILLI) - now, MILLI);
    assert_eq!((now + MILLI).duration_since(now), MILLI);
    assert_eq!(now.checked_add(MILLI), Some(now + MILLI));
    assert_eq!(now.checked_add(Duration::MAX), None);
    assert!(now + Duration::MAX >= now + Duration::from_secs(1_000_000));
    assert_eq!((now + Duration::MAX) + Duration::MAX, now + Duration::MAX);
    let mut never = sleep(Duration::MAX);
    assert!(matches!(poll_once(&mut never), Poll::Pending));
    assert!(format!("{never:?}").starts_with("Sleep"));
}

#[test]
fn moments_of_the_system_are_converted_without_loss() {
    let now = Instant::now();
    let of_std = now.to_std().unwrap();
    assert_eq!(Instant::from_std(of_std), Some(now));
    let later = std::time::Instant::now();
    let ours = Instant::from_std(later).unwrap();
    assert!(now <= ours && ours <= Instant::now());
    assert_eq!(ours.to_std(), Some(later));
    let second = Duration::from_secs(1);
    assert_eq!(Instant::from_std(of_std + second), Some(now + second));
    // Before the process has read the clock, which it has done now.
    if let Some(early) = of_std.checked_sub(second * 3600) {
        assert_eq!(Instant::from_std(early), None);
    }
}

#[test]
fn no_moment_crosses_the_border_of_a_simulation() {
    let before = std::time::Instant::now();
    let inside = greenroom::sim::run(1, async move {
        assert_eq!(Instant::from_std(before), None);
        let inside = Instant::now();
        assert_eq!(inside.to_std(), None);
        inside
    });
    assert_eq!(inside.to_std(), None);
}
