//! Extreme durations, and calls at the wrong time or place. Each behaves as documented or is
//! refused with a text; none hangs, overflows, or ends a thread.

use std::time::Duration;

use futures::future::{Either, select};
use greenroom::time::{Interval, sleep, timeout};
use greenroom::{AskError, Context, HostFault, Reply, Runtime, unblock, yield_now};

use crate::support::{Home, WATCH, drive, panic_of, within};

/// Durations that are over at once, and durations that never end.
const SHORT: [Duration; 2] = [Duration::ZERO, Duration::from_nanos(1)];
const LONG: [Duration; 4] = [
    Duration::MAX,
    Duration::from_secs(u64::MAX),
    Duration::from_nanos(u64::MAX),
    Duration::from_secs(400 * 366 * 24 * 3600),
];

/// Keeps the replies and never answers.
async fn silent(mut cx: Context<Reply<()>>) {
    let mut kept = Vec::new();
    while let Some(reply) = cx.recv().await {
        kept.push(reply);
    }
}

async fn durations_at_their_edges(silent: greenroom::Address<Reply<()>>) {
    for short in SHORT {
        sleep(short).await;
        assert!(timeout(short, std::future::pending::<()>()).await.is_err());
        let asked = silent.ask(|reply| reply).timeout(short).await;
        assert_eq!(asked, Err(AskError::TimedOut));
    }
    let mut soon = Interval::new(SHORT[1]);
    for _ in 0..3 {
        soon.tick().await;
    }
    for long in LONG {
        // A ready future wins, however long the other one takes.
        let first = select(Box::pin(yield_now()), sleep(long)).await;
        assert!(matches!(first, Either::Left(_)));
        assert_eq!(timeout(long, async { 42 }).await, Ok(42));
        assert_eq!(timeout(long, async { yield_now().await }).await, Ok(()));
        let ask = silent.ask(|reply| reply).timeout(long);
        assert!(timeout(SHORT[1], ask).await.is_err());
        let mut never = Interval::new(long);
        never.tick().await;
        assert!(timeout(SHORT[1], never.tick()).await.is_err());
    }
}

#[test]
fn extreme_durations_work_in_timers_timeouts_and_intervals() {
    for make in [|| Home::workers(1), || Home::workers(2), Home::pinned] {
        within(WATCH, move || {
            let home = make();
            let silent = home.spawn(greenroom::actor(silent));
            let edges = || durations_at_their_edges(silent.address());
            drive(home.spawn_task(edges()));
            home.block_on(edges());
            // On the timer thread of the process.
            drive(edges());
        });
    }
}

#[test]
fn worker_counts_around_the_bits_of_a_word_are_accepted() {
    within(WATCH, || {
        for workers in [63, 64, 65, 128] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let tasks: Vec<_> = (0..2 * workers)
                .map(|number| runtime.spawn(async move { number }))
                .collect();
            let sum: usize = tasks.into_iter().map(drive).sum();
            assert_eq!(sum, workers * (2 * workers - 1));
            assert_eq!(drive(runtime.shutdown()).left_behind, 0);
        }
    });
}

#[test]
fn timers_and_calls_in_a_runtime_that_has_ended_still_resolve() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        drive(runtime.shutdown());
        runtime.block_on(async {
            // The runtime's own timers no longer exist.
            sleep(Duration::from_millis(1)).await;
            let never = std::future::pending::<()>();
            assert!(timeout(Duration::from_millis(1), never).await.is_err());
            Interval::new(Duration::from_millis(1)).tick().await;
            yield_now().await;
            assert!(unblock(|| ()).fallible().await.is_none());
            assert!(greenroom::spawn(async {}).cancel().await.is_none());
        });
        let again = drive(runtime.shutdown());
        assert_eq!((again.ended, again.cancelled, again.left_behind), (0, 0, 0));
        drop(runtime.clone());
        drop(runtime);
    });
}

#[test]
fn calls_to_a_hosted_value_fail_after_its_thread_has_ended() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("ends").unwrap();
        let hosted = drive(pinned.host(|| 42)).unwrap();
        drive(runtime.shutdown());
        for gone in [
            drive(hosted.with(|_| ())),
            drive(hosted.with_mut(|_| ())),
            drive(hosted.clone().with(|_| ())),
        ] {
            assert!(matches!(gone, Err(HostFault::Gone)));
        }
        let failed = drive(pinned.try_host(|| Err::<(), _>("never called")));
        let text = failed.map(drop).unwrap_err().to_string();
        assert!(!text.is_empty() && !text.contains("never called"), "{text}");
        assert!(drive(pinned.spawn(|| async {}).cancel()).is_none());
    });
}

#[test]
fn pinned_threads_and_runtimes_can_be_created_in_a_task() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let refused = runtime.spawn(async {
            let zero = Runtime::builder().workers(0).build().unwrap_err();
            let nul = Runtime::current().spawn_pinned("a\0b").unwrap_err();
            (zero.to_string(), nul.to_string())
        });
        let (zero, nul) = drive(refused);
        assert!(zero.contains("workers is 0") && nul.contains("byte 1"));
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let made = pinned.spawn(|| async {
            let runtime = Runtime::current();
            let another = runtime.spawn_pinned("another").unwrap();
            let own = Runtime::builder().workers(1).build().unwrap();
            own.spawn(another.spawn(|| async { 42 })).await
        });
        assert_eq!(drive(made), 42);
        // `block_on` is refused there before it polls anything, whatever the runtime.
        let (text, file, _) = drive(pinned.spawn(|| async {
            panic_of(|| greenroom::run(async { unreachable!("the future is never polled") }))
        }));
        assert!(text.contains("pinned thread"), "{text}");
        assert_eq!(file, file!());
        assert_eq!(
            drive(pinned.spawn(|| async { 42 })),
            42,
            "the pinned thread still runs tasks"
        );
    });
}
