//! Waiting until a name is registered.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use greenroom::Runtime;
use greenroom::registry::{LookupError, Name};
use greenroom::time::sleep;

use super::{Job, STORE, outside, worker};
use crate::support::{
    CountingWaker, Gate, Home, WATCH, in_every_home, panic_of, poll_once, within,
};

const LONG: Duration = Duration::from_secs(100_000);

in_every_home!(
    a_wait_returns_when_the_name_is_registered,
    a_wait_for_a_registered_name_is_ready_at_once,
    a_wait_outlasts_an_actor_that_closes,
    all_waits_for_a_name_end,
    a_wait_ends_after_its_timeout,
    a_wait_that_is_dropped_leaves_its_waker,
    a_wait_is_not_polled_after_it_was_ready,
    a_wait_until_a_name_is_free_lasts_until_its_actor_has_ended,
    a_wait_until_a_name_is_free_ends_when_it_is_unregistered,
    a_name_that_nobody_has_is_free_at_once,
    all_that_wait_for_a_free_name_get_it_in_turn,
);

fn a_wait_returns_when_the_name_is_registered(home: &Home) {
    let store = worker(home);
    let begun = Gate::default();
    let waits = begun.clone();
    let found = home.spawn_task(async move {
        let mut wait = STORE.wait_timeout(LONG);
        assert!(poll_in_turn(&mut wait).await.is_pending());
        waits.open();
        wait.await
    });
    home.block_on(async {
        begun.wait().await;
        STORE.register(&store).unwrap();
        assert_eq!(found.await.unwrap(), *store);
    });
}

/// Polls a future once, with the waker of the task.
async fn poll_in_turn<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(pin!(&mut *future).poll(cx))).await
}

fn a_wait_for_a_registered_name_is_ready_at_once(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        STORE.register(&store).unwrap();
        assert_eq!(
            poll_in_turn(&mut STORE.wait()).await,
            Poll::Ready(Ok(store.address()))
        );
    });
}

fn a_wait_outlasts_an_actor_that_closes(home: &Home) {
    let (first, second) = (worker(home), worker(home));
    home.block_on(async {
        STORE.register(&first).unwrap();
        first.stop();
        let mut wait = STORE.wait();
        assert!(poll_in_turn(&mut wait).await.is_pending());
        first.closed().await;
        STORE.register(&second).unwrap();
        assert!(STORE.unregister());
        // It looks when it is polled, so a name that is gone again was not seen.
        assert!(poll_in_turn(&mut wait).await.is_pending());
        STORE.register(&second).unwrap();
        assert_eq!(wait.await.unwrap(), *second);
    });
}

fn all_waits_for_a_name_end(home: &Home) {
    let store = worker(home);
    let waits: Vec<_> = (0..20).map(|_| home.spawn_task(STORE.wait())).collect();
    let other = home.spawn_task(Name::<Job>::new("other").wait());
    home.block_on(async {
        STORE.register(&store).unwrap();
        for wait in waits {
            assert_eq!(wait.await.unwrap(), *store);
        }
        assert!(!other.is_finished());
    });
}

fn a_wait_ends_after_its_timeout(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        let limit = Duration::from_millis(5);
        let error = STORE.wait_timeout(limit).await.unwrap_err();
        let says = r#"the name "store" was not registered within 5ms"#;
        assert_eq!(error.to_string(), says);
        assert!(matches!(error, LookupError::TimedOut { after, .. } if after == limit));
        // A limit of zero allows one look.
        let zero = || STORE.wait_timeout(Duration::ZERO);
        assert!(matches!(zero().await, Err(LookupError::TimedOut { .. })));
        STORE.register(&store).unwrap();
        assert_eq!(zero().await.unwrap(), *store);
    });
}

fn a_wait_that_is_dropped_leaves_its_waker(home: &Home) {
    home.block_on(async {
        let (counts, waker) = CountingWaker::new();
        let before = Arc::strong_count(&counts);
        let mut wait = STORE.wait();
        let polled = pin!(&mut wait).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        assert!(Arc::strong_count(&counts) > before);
        drop(wait);
        assert_eq!(Arc::strong_count(&counts), before);
    });
}

fn a_wait_is_not_polled_after_it_was_ready(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        STORE.register(&store).unwrap();
        let mut wait = STORE.wait();
        let _found = poll_in_turn(&mut wait).await;
        let (text, ..) = panic_of(|| poll_once(&mut wait));
        assert_eq!(text, "`wait` polled after it was ready");
    });
}

fn a_wait_until_a_name_is_free_lasts_until_its_actor_has_ended(home: &Home) {
    let store = worker(home);
    home.block_on(async {
        STORE.register(&store).unwrap();
        let (begun, end) = (Gate::default(), Gate::default());
        store.tell(Job::Hold(begun.clone(), end.clone())).unwrap();
        let mut free = STORE.wait_until_free();
        assert!(poll_in_turn(&mut free).await.is_pending());
        store.stop();
        begun.wait().await;
        assert!(poll_in_turn(&mut free).await.is_pending());
        end.open();
        free.await.unwrap();
        assert!(poll_once(&mut Box::pin(store.closed())).is_ready());
    });
}

fn a_wait_until_a_name_is_free_ends_when_it_is_unregistered(home: &Home) {
    // Of another type, which does not matter.
    const OTHER: Name<u32> = Name::new("store");
    let store = worker(home);
    home.block_on(async {
        STORE.register(&store).unwrap();
        let mut free = OTHER.wait_until_free();
        assert!(poll_in_turn(&mut free).await.is_pending());
        assert!(STORE.unregister());
        free.await.unwrap();
        assert!(!store.is_closed());
    });
}

fn a_name_that_nobody_has_is_free_at_once(home: &Home) {
    home.block_on(async {
        let polled = poll_in_turn(&mut STORE.wait_until_free()).await;
        assert_eq!(polled, Poll::Ready(Ok(())));
    });
}

fn all_that_wait_for_a_free_name_get_it_in_turn(home: &Home) {
    let store = worker(home);
    let tries = Arc::new(AtomicUsize::new(0));
    home.block_on(async {
        STORE.register(&store).unwrap();
        let others: Vec<_> = (0..10)
            .map(|_| {
                let (next, tries) = (worker(home), tries.clone());
                home.spawn_task(async move {
                    while STORE.register(&next).is_err() {
                        tries.fetch_add(1, Ordering::SeqCst);
                        STORE.wait_until_free().await.unwrap();
                    }
                    next.kill();
                })
            })
            .collect();
        store.kill();
        for other in others {
            other.await;
        }
    });
    // Each actor that has the name makes each of the others try at most once, not without end.
    assert!(tries.load(Ordering::SeqCst) <= 10 * 11);
}

#[test]
fn a_wait_until_a_name_is_free_ends_with_the_runtime() {
    within(WATCH, || {
        let (home, other) = (Home::workers(1), Home::workers(1));
        let store = worker(&other);
        STORE.on(&home.runtime).register(&store).unwrap();
        let free = STORE.on(&home.runtime).wait_until_free();
        let waits = std::thread::spawn(|| outside(free));
        home.block_on(sleep(Duration::from_millis(1)));
        drop(home);
        assert_eq!(waits.join().unwrap(), Err(LookupError::NoRuntime));
    });
}

#[test]
fn a_wait_begins_on_the_runtime_that_polls_it_first() {
    within(WATCH, || {
        let wait = STORE.wait();
        let home = Home::workers(1);
        let store = worker(&home);
        home.block_on(async {
            STORE.register(&store).unwrap();
            assert_eq!(wait.await.unwrap(), *store);
        });
    });
}

#[test]
fn a_wait_elsewhere_ends_with_the_runtime() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let wait = STORE.on(&runtime).wait();
        let waits = std::thread::spawn(|| outside(wait));
        runtime.block_on(sleep(Duration::from_millis(1)));
        drop(runtime);
        assert_eq!(waits.join().unwrap(), Err(LookupError::NoRuntime));
    });
}

#[test]
fn a_wait_that_begins_after_the_shutdown_ends_at_once() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let wait = STORE.on(&runtime).wait();
        drop(runtime);
        assert_eq!(outside(wait), Err(LookupError::NoRuntime));
    });
}
