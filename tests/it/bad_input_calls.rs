//! Durations at their edges, and calls at the wrong time or place: each does what is documented for
//! it or is refused with a text; none hangs, overflows, or ends a thread.

use std::time::Duration;

use futures::future::{Either, select};
use greenroom::time::{interval, sleep, timeout};
use greenroom::{AskError, Context, HostFault, Reply, Runtime, unblock, yield_now};

use crate::support::{Home, WATCH, drive, panic_of, within};

/// So short that it is over, or so long that it never is.
const SHORT: [Duration; 2] = [Duration::ZERO, Duration::from_nanos(1)];
const LONG: [Duration; 4] = [
    Duration::MAX,
    Duration::from_secs(u64::MAX),
    Duration::from_nanos(u64::MAX),
    Duration::from_secs(400 * 366 * 24 * 3600),
];

/// Keeps what it is asked, and answers nothing.
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
    let mut soon = interval(SHORT[1]);
    for _ in 0..3 {
        soon.tick().await;
    }
    for long in LONG {
        // Whatever is ready goes first, however long the other one would be.
        let first = select(Box::pin(yield_now()), sleep(long)).await;
        assert!(matches!(first, Either::Left(_)));
        assert_eq!(timeout(long, async { 42 }).await, Ok(42));
        assert_eq!(timeout(long, async { yield_now().await }).await, Ok(()));
        let ask = silent.ask(|reply| reply).timeout(long);
        assert!(timeout(SHORT[1], ask).await.is_err());
        let mut never = interval(long);
        never.tick().await;
        assert!(timeout(SHORT[1], never.tick()).await.is_err());
    }
}

#[test]
fn durations_may_be_anything_wherever_they_are_waited_for() {
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
fn numbers_of_workers_around_a_words_bits_are_taken() {
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
fn what_is_waited_for_in_a_runtime_that_has_ended_is_not_missed() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        drive(runtime.shutdown());
        runtime.block_on(async {
            // Its own timers are gone with it.
            sleep(Duration::from_millis(1)).await;
            let never = std::future::pending::<()>();
            assert!(timeout(Duration::from_millis(1), never).await.is_err());
            interval(Duration::from_millis(1)).tick().await;
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
fn a_hosted_value_whose_thread_has_ended_says_so() {
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
fn in_a_task_threads_and_runtimes_are_made_as_anywhere() {
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
        // To wait there is refused, before anything is polled, whatever the runtime is.
        let (text, file, _) = drive(pinned.spawn(|| async {
            panic_of(|| greenroom::run(async { unreachable!("it is not polled") }))
        }));
        assert!(text.contains("pinned thread"), "{text}");
        assert_eq!(file, file!());
        assert_eq!(drive(pinned.spawn(|| async { 42 })), 42, "it goes on");
    });
}
