//! When captures, values, results and wakers are dropped, on which thread, and what a panic of
//! such a drop does.

use super::*;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::ThreadId;

use crate::support::{Bomb, Drops};

#[test]
fn a_value_whose_last_pointer_is_in_a_task_may_panic_when_dropped() {
    everywhere(|| async {
        let (controller, drops) = (controller(1), Drops::default());
        let looper = controller.looper();
        let bomb = controller.guarded(Bomb::new(true, &drops));
        let posted = looper.with(bomb.exclusive()).post(|_| ());
        drop((posted, bomb));
        looper.post(|| ()).unwrap().await.unwrap();
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn values_that_a_looper_kept_may_panic_when_they_are_dropped_together() {
    everywhere(|| async {
        let (controller, drops) = (controller(1), Drops::default());
        let looper = controller.looper();
        for _ in 0..3 {
            let bomb = controller.guarded(Bomb::new(true, &drops));
            assert_eq!(looper.attempt(bomb.shared()), Ok(true));
        }
        drop(looper);
        assert_eq!(drops.count(), 3);
    });
}

#[test]
fn the_values_of_a_set_may_panic_when_they_are_dropped_together() {
    everywhere(|| async {
        let (controller, drops) = (controller(1), Drops::default());
        let looper = controller.looper();
        let held = hold(&looper).await;
        let bombs = [(); 3].map(|()| controller.guarded(Bomb::new(true, &drops)));
        let claims: Vec<_> = bombs.iter().map(Guarded::exclusive).collect();
        let posted = looper.with(claims).post(|_| ());
        drop((posted, bombs));
        held.end().await;
        looper.post(|| ()).unwrap().await.unwrap();
        assert_eq!(drops.count(), 3);
    });
}

/// A waker that uses the controller whenever it is cloned, woken or dropped.
struct Curious(Controller);

impl Curious {
    fn look(&self) {
        assert!(self.0.status().loopers < 10);
    }
}

impl Wake for Curious {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

impl Drop for Curious {
    fn drop(&mut self) {
        self.look();
    }
}

/// Polls with a waker, and returns whether the future is ready.
fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> bool {
    let mut cx = std::task::Context::from_waker(waker);
    Pin::new(future).poll(&mut cx).is_ready()
}

/// Polls with a new waker, which is dropped afterwards unless it was kept.
fn poll_curiously<F: Future + Unpin>(future: &mut F, controller: &Controller) -> bool {
    poll_with(future, &Waker::from(Arc::new(Curious(controller.clone()))))
}

#[test]
fn a_waker_may_use_the_controller_when_it_is_woken_or_dropped() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let value = controller.guarded(5);
        let held = hold_with(&looper, &value).await;
        let mut closes = Box::pin(value.close());
        let mut ends = Box::pin(looper.close());
        let mut shuts = Box::pin(controller.shutdown());
        let mut result = held.posted;
        for _ in 0..3 {
            assert!(!poll_curiously(&mut closes, &controller));
            assert!(!poll_curiously(&mut ends, &controller));
            assert!(!poll_curiously(&mut shuts, &controller));
            assert!(!poll_curiously(&mut result, &controller));
        }
        held.until.open();
        shuts.await;
        ends.await;
        assert_eq!((closes.await, result.await.unwrap()), (Ok(5), ()));
    });
}

#[test]
fn a_future_that_waits_for_the_end_keeps_one_waker_of_a_task() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let held = hold(&looper).await;
        let mut shuts = Box::pin(controller.shutdown());
        let (counting, waker) = crate::support::CountingWaker::new();
        for _ in 0..50 {
            assert!(!poll_with(&mut shuts, &waker));
        }
        // The test has a pointer and the waker another one.
        assert_eq!(Arc::strong_count(&counting), 3);
        held.end().await;
        wait_for(|| counting.count() > 0).await;
        shuts.await;
    });
}

/// A value that notes the thread on which it is dropped.
struct Traced(Log<ThreadId>);

impl Drop for Traced {
    fn drop(&mut self) {
        self.0.add(std::thread::current().id());
    }
}

#[test]
fn captures_are_dropped_by_the_thread_that_ran_the_task_before_its_result_is_seen() {
    on_threads(async {
        let (controller, log) = (controller(2), Log::default());
        let looper = controller.looper();
        let value = controller.guarded(1);
        for turn in 0..50 {
            let traced = Traced(log.clone());
            let task = looper.post(move || {
                let _traced = &traced;
                std::thread::current().id()
            });
            let ran = task.unwrap().await.unwrap();
            assert_eq!(log.take(), [ran], "turn {turn}");
            let traced = Traced(log.clone());
            let task = looper.spawn(async move {
                let _traced = &traced;
                yield_now().await;
                std::thread::current().id()
            });
            let ran = task.unwrap().await.unwrap();
            assert_eq!(log.take(), [ran], "turn {turn}");
            let traced = Traced(log.clone());
            let task = looper.with(value.exclusive()).post(move |_| {
                let _traced = &traced;
                std::thread::current().id()
            });
            let ran = task.unwrap().await.unwrap();
            assert_eq!(log.take(), [ran], "turn {turn}");
        }
    });
}

#[test]
fn captures_of_a_task_that_does_not_end_well_are_dropped_before_its_result_is_seen() {
    everywhere(|| async {
        let (controller, drops) = (controller(1), Drops::default());
        let (looper, keeps) = (controller.looper(), controller.looper());
        let lock = controller.lock();
        let task = || {
            let captured = drops.one();
            move |()| drop(captured)
        };
        let captured = drops.one();
        let panics = looper.post(move || {
            let _captured = &captured;
            panic!("bomb in a task");
        });
        let outcome: Result<(), _> = panics.unwrap().await;
        assert!(outcome.is_err());
        assert_eq!(drops.count(), 1);
        assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
        // Refused, when it is the next one.
        let refused = looper.with(lock.held_shared()).post(task()).unwrap();
        lock_error(refused.await);
        assert_eq!(drops.count(), 2);
        // Cancelled, as the next one and behind it.
        let waits = [(); 2].map(|()| looper.with(lock.shared()).post(task()).unwrap());
        assert!(waits[1].cancel());
        assert_eq!(drops.count(), 3);
        assert!(waits[0].cancel());
        assert_eq!(drops.count(), 4);
        // Not granted in time.
        let late = looper.with(lock.shared()).lock_timeout(Duration::ZERO);
        lock_error(late.post(task()).unwrap().await);
        assert_eq!(drops.count(), 5);
        // Not accepted.
        looper.close().await;
        drop(looper.with(lock.shared()).post(task()));
        assert_eq!(drops.count(), 6);
    });
}

#[test]
fn a_task_goes_on_when_its_result_is_dropped_and_the_result_is_dropped_with_it() {
    everywhere(|| async {
        let (controller, drops) = (controller(1), Drops::default());
        let looper = controller.looper();
        let held = hold(&looper).await;
        let value = drops.one();
        drop(looper.post(move || value));
        held.end().await;
        looper.post(|| ()).unwrap().await.unwrap();
        assert_eq!(drops.count(), 1);
        let value = drops.one();
        let unseen = looper.post(move || value).unwrap();
        looper.post(|| ()).unwrap().await.unwrap();
        assert_eq!((unseen.is_finished(), drops.count()), (true, 1));
        drop(unseen);
        assert_eq!(drops.count(), 2);
    });
}

#[test]
fn captures_and_results_that_panic_when_dropped_end_no_lane() {
    everywhere(|| async {
        let (controller, drops) = (controller(1), Drops::default());
        let looper = controller.looper();
        let bomb = || Bomb::new(true, &drops);
        // A result that is not wanted, and captures of a task, of a future and of a panic.
        let result = bomb();
        drop(looper.post(move || result));
        let captured = bomb();
        drop(looper.post(move || {
            let _captured = &captured;
        }));
        let captured = bomb();
        let future = looper.spawn(async move {
            let _captured = &captured;
            yield_now().await;
        });
        drop(future);
        drop(looper.post(|| std::panic::panic_any(Bomb::new(true, &Drops::default()))));
        assert_eq!(looper.post(|| 5).unwrap().await.unwrap(), 5);
        assert_eq!(drops.count(), 3);
        // Of a task that is cancelled, and of one that is refused.
        let held = hold(&looper).await;
        let captured = bomb();
        let cancelled = looper.post(move || drop(captured)).unwrap();
        assert!(cancelled.cancel());
        held.end().await;
        let (captured, lock) = (bomb(), controller.lock());
        let refused = looper
            .with(lock.held_shared())
            .post(move |()| drop(captured));
        lock_error(refused.unwrap().await);
        assert_eq!(drops.count(), 5);
        assert_eq!(looper.post(|| 5).unwrap().await.unwrap(), 5);
    });
}

#[test]
fn captures_may_post_when_they_are_dropped() {
    everywhere(|| async {
        /// Posts a task when it is dropped.
        struct Posts(Looper, Log<u32>);
        impl Drop for Posts {
            fn drop(&mut self) {
                drop(note(&self.0, &self.1, 1));
            }
        }
        let (controller, log) = (controller(1), Log::default());
        let looper = controller.looper();
        let posts = Posts(looper.clone(), log.clone());
        looper.post(move || drop(posts)).unwrap().await.unwrap();
        let posts = Posts(looper.clone(), log.clone());
        let held = hold(&looper).await;
        assert!(looper.post(move || drop(posts)).unwrap().cancel());
        held.end().await;
        wait_for(|| log.len() == 2).await;
    });
}

/// A waker that panics, or posts and then panics.
struct Bad(Option<(Looper, Log<u32>)>);

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        if let Some((looper, log)) = &self.0 {
            drop(note(looper, log, 1));
        }
        panic!("bomb in a waker");
    }
}

#[test]
fn a_waker_that_panics_or_posts_ends_no_lane_and_hinders_no_other_wake() {
    everywhere(|| async {
        let (controller, log) = (controller(1), Log::default());
        let looper = controller.looper();
        let other = controller.looper();
        let posts = (other.clone(), log.clone());
        for bad in [Bad(None), Bad(Some(posts))] {
            let waker = Waker::from(Arc::new(bad));
            let mut held = hold(&looper).await;
            assert!(!poll_with(&mut held.posted, &waker));
            held.until.open();
            let next = looper.post(|| 5).unwrap();
            assert_eq!(next.await.unwrap(), 5);
            assert!(held.posted.is_finished());
        }
        wait_for(|| log.len() == 1).await;
        let waker = Waker::from(Arc::new(Bad(None)));
        let held = hold(&looper).await;
        let mut closes = Box::pin(looper.close());
        assert!(!poll_with(&mut closes, &waker));
        held.end().await;
        closes.await;
    });
}

#[test]
fn a_cancelled_task_whose_captures_are_being_dropped_is_out_of_the_queue() {
    /// A value whose drop takes until the second gate is open.
    struct Slow(Gate, Gate);
    impl Drop for Slow {
        fn drop(&mut self) {
            self.0.open();
            self.1.pass();
        }
    }
    on_threads(async {
        let controller = controller(1);
        let looper = controller.looper();
        let lock = controller.lock();
        assert_eq!(looper.attempt(lock.shared()), Ok(true));
        let held = hold(&looper).await;
        let (drops, until) = (Gate::default(), Gate::default());
        let slow = Slow(drops.clone(), until.clone());
        let posted = looper.post(move || drop(slow)).unwrap();
        let cancels = std::thread::spawn(move || (posted.cancel(), posted));
        drops.wait().await;
        assert_eq!(looper.len(), 1);
        held.end().await;
        assert_eq!(looper.len(), 0);
        assert_eq!(looper.post(|| 5).unwrap().await.unwrap(), 5);
        until.open();
        let (was_cancelled, posted) = cancels.join().unwrap();
        assert!(was_cancelled);
        let outcome = posted.await;
        assert!(matches!(outcome, Err(TaskError::Cancelled)), "{outcome:?}");
    });
}
