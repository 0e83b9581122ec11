//! Plain tasks: their values, their panics, and the ways to drop them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use greenroom::Runtime;

use crate::support::{
    Bomb, Drops, Gate, Home, OpenOnDrop, WATCH, drive, in_every_home, on_threads, panic_of,
    poll_here, within,
};

// A task blocks its thread until it is cancelled.
on_threads!(a_task_in_a_turn_is_cancelled_when_it_suspends);

in_every_home!(
    awaiting_a_task_returns_its_value,
    awaiting_a_task_resumes_its_panic,
    a_panic_keeps_its_payload,
    a_fallible_task_returns_its_value_and_resumes_its_panic,
    a_dropped_task_is_cancelled,
    a_task_dropped_before_its_first_turn_is_never_polled,
    a_detached_task_continues_to_its_end,
    cancel_waits_until_the_future_is_dropped,
    cancel_returns_a_value_that_was_ready,
    cancel_resumes_a_panic,
    a_task_is_finished_when_its_future_is_done,
    a_task_polled_after_it_was_ready_panics,
    awaiting_a_task_that_a_shutdown_cancelled_panics_with_the_reason,
    a_task_wakes_once_for_many_wakes_before_its_turn,
    tasks_spawn_tasks,
    a_task_may_cancel_itself,
    a_panic_in_the_drop_of_a_tasks_value_is_contained,
    a_panic_in_the_drop_of_a_future_is_contained,
);

fn awaiting_a_task_returns_its_value(home: &Home) {
    let task = home.spawn_task(async { String::from("value") });
    assert_eq!(home.block_on(task), "value");
    // Also where no runtime is current, and long after the task is done.
    let task = home.spawn_task(async { 42 });
    home.block_on(home.spawn_task(async {}));
    assert_eq!(drive(task), 42);
}

fn awaiting_a_task_resumes_its_panic(home: &Home) {
    let task = home.spawn_task(async { panic!("bomb in a task") });
    assert_eq!(
        panic_text(|| drive::<greenroom::Task<()>>(task)),
        "bomb in a task"
    );
    assert_eq!(drive(home.spawn_task(async { 42 })), 42);
}

/// Returns the text of a resumed panic, which the panic hook does not see.
fn panic_text<R>(call: impl FnOnce() -> R) -> String {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
    let payload = outcome.err().expect("the call must panic");
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .expect("a panic with a text")
}

fn a_panic_keeps_its_payload(home: &Home) {
    let task = home.spawn_task(async {
        if true {
            std::panic::resume_unwind(Box::new(42_u8));
        }
    });
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drive(task)));
    assert_eq!(outcome.unwrap_err().downcast_ref::<u8>(), Some(&42));
}

fn a_fallible_task_returns_its_value_and_resumes_its_panic(home: &Home) {
    assert_eq!(drive(home.spawn_task(async { 42 }).fallible()), Some(42));
    let task: greenroom::Task<()> = home.spawn_task(async { panic!("bomb in a task") });
    assert_eq!(panic_text(|| drive(task.fallible())), "bomb in a task");
}

/// Spawns a task that has begun and never ends. The gate opens when the task is dropped.
fn endless(home: &Home) -> (greenroom::Task<()>, Gate) {
    let (begun, gone) = (Gate::default(), Gate::default());
    let (here, opens) = (begun.clone(), OpenOnDrop(gone.clone()));
    let task = home.spawn_task(async move {
        let _opens = opens;
        here.open();
        std::future::pending::<()>().await;
    });
    begun.pass();
    (task, gone)
}

fn a_dropped_task_is_cancelled(home: &Home) {
    let (task, gone) = endless(home);
    assert!(!gone.is_open() && !task.is_finished());
    drop(task);
    gone.pass();
    let (task, gone) = endless(home);
    drop(task.fallible());
    gone.pass();
}

fn a_task_dropped_before_its_first_turn_is_never_polled(home: &Home) {
    let polled = Arc::new(AtomicUsize::new(0));
    let gone = Gate::default();
    let held = home.hold();
    let (count, opens) = (polled.clone(), OpenOnDrop(gone.clone()));
    let task = home.spawn_task(async move {
        let _opens = opens;
        count.fetch_add(1, Ordering::SeqCst);
    });
    drop(task);
    drop(held);
    gone.pass();
    assert_eq!(polled.load(Ordering::SeqCst), 0);
}

fn a_detached_task_continues_to_its_end(home: &Home) {
    let (go, done) = (Gate::default(), Gate::default());
    let (waits, opens) = (go.clone(), done.clone());
    let task = home.spawn_task(async move {
        waits.wait().await;
        opens.open();
    });
    task.detach();
    go.open();
    done.pass();
}

fn cancel_waits_until_the_future_is_dropped(home: &Home) {
    let (task, gone) = endless(home);
    assert_eq!(drive(task.cancel()), None);
    assert!(gone.is_open());
}

fn a_task_in_a_turn_is_cancelled_when_it_suspends(home: &Home) {
    let (begun, go) = (Gate::default(), Gate::default());
    let (here, waits) = (begun.clone(), go.clone());
    let gone = Gate::default();
    let opens = OpenOnDrop(gone.clone());
    let task = home.spawn_task(async move {
        let _opens = opens;
        here.open();
        waits.pass();
        std::future::pending::<()>().await;
    });
    begun.pass();
    let mut cancel = Box::pin(task.cancel());
    assert!(crate::support::poll_once(&mut cancel).is_pending());
    assert!(!gone.is_open());
    go.open();
    assert_eq!(drive(cancel), None);
    assert!(gone.is_open());
}

fn cancel_returns_a_value_that_was_ready(home: &Home) {
    let task = home.spawn_task(async { 42 });
    crate::support::until(|| task.is_finished());
    assert_eq!(drive(task.cancel()), Some(42));
}

fn cancel_resumes_a_panic(home: &Home) {
    let task: greenroom::Task<()> = home.spawn_task(async { panic!("bomb in a task") });
    crate::support::until(|| task.is_finished());
    assert_eq!(panic_text(|| drive(task.cancel())), "bomb in a task");
}

fn a_task_is_finished_when_its_future_is_done(home: &Home) {
    let go = Gate::default();
    let waits = go.clone();
    let mut task = home.spawn_task(async move { waits.wait().await });
    assert!(!task.is_finished());
    home.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
    go.open();
    drive(&mut task);
    assert!(task.is_finished());
}

fn a_task_polled_after_it_was_ready_panics(home: &Home) {
    let mut task = home.spawn_task(async { 42 });
    assert_eq!(drive(&mut task), 42);
    assert!(task.is_finished());
    let (text, ..) = panic_of(|| drive(&mut task));
    assert!(text.ends_with("or polled after it was ready"), "{text}");
    let mut task = home.spawn_task(async { 42 }).fallible();
    assert_eq!(drive(&mut task), Some(42));
    assert_eq!(drive(&mut task), None);
}

fn awaiting_a_task_that_a_shutdown_cancelled_panics_with_the_reason(home: &Home) {
    let (task, gone) = endless(home);
    let (other, _) = endless(home);
    home.block_on(home.runtime.shutdown());
    assert!(gone.is_open());
    assert!(task.is_finished());
    let (text, ..) = panic_of(|| drive(task));
    assert_eq!(
        text,
        "the task was cancelled by the shutdown of its runtime"
    );
    assert_eq!(drive(other.fallible()), None);
}

fn a_task_wakes_once_for_many_wakes_before_its_turn(home: &Home) {
    let polls = Arc::new(AtomicUsize::new(0));
    let waker = Arc::new(std::sync::Mutex::new(None));
    let (leaves, go) = (waker.clone(), Gate::default());
    let may_end = go.clone();
    let future = std::future::poll_fn(move |cx| {
        if may_end.is_open() {
            return std::task::Poll::Ready(());
        }
        *leaves.lock().unwrap() = Some(cx.waker().clone());
        std::task::Poll::Pending
    });
    let task = home.spawn_task(crate::support::counted(polls.clone(), future));
    crate::support::until(|| waker.lock().unwrap().is_some());
    let waker = waker.lock().unwrap().clone().unwrap();
    let held = home.hold();
    let before = polls.load(Ordering::SeqCst);
    go.open();
    (0..100).for_each(|_| waker.wake_by_ref());
    drop(held);
    drive(task);
    assert_eq!(polls.load(Ordering::SeqCst), before + 1);
    // A wake after the end does nothing.
    waker.wake();
}

fn tasks_spawn_tasks(home: &Home) {
    fn tree(depth: u32) -> BoxFuture<'static, u32> {
        Box::pin(async move {
            if depth == 0 {
                return 1;
            }
            let left = greenroom::spawn(tree(depth - 1));
            let right = greenroom::spawn(tree(depth - 1));
            left.await + right.await
        })
    }
    assert_eq!(drive(home.spawn_task(tree(9))), 512);
}

fn a_task_may_cancel_itself(home: &Home) {
    let slot = Arc::new(std::sync::Mutex::new(None));
    let (mine, go, gone) = (slot.clone(), Gate::default(), Gate::default());
    let (waits, opens) = (go.clone(), OpenOnDrop(gone.clone()));
    let task = home.spawn_task(async move {
        let _opens = opens;
        waits.wait().await;
        drop(mine.lock().unwrap().take());
        std::future::pending::<()>().await;
    });
    *slot.lock().unwrap() = Some(task);
    go.open();
    gone.pass();
}

fn a_panic_in_the_drop_of_a_tasks_value_is_contained(home: &Home) {
    let drops = Drops::default();
    let bomb = || {
        let bomb = Bomb::new(true, &drops);
        async move { bomb }
    };
    home.spawn_task(bomb()).detach();
    let done = home.spawn_task(bomb());
    crate::support::until(|| done.is_finished());
    drop(done);
    drive(home.spawn_task(async {}));
    crate::support::until(|| drops.count() == 2);
    // An awaited value belongs to the user, so its panic is not contained.
    let awaited = drive(home.spawn_task(bomb()));
    assert_eq!(drops.count(), 2);
    assert_eq!(panic_of(|| drop(awaited)).0, "bomb in a drop");
}

fn a_panic_in_the_drop_of_a_future_is_contained(home: &Home) {
    let drops = Drops::default();
    let bomb = |ends: bool| {
        let bomb = Bomb::new(true, &drops);
        async move {
            let _bomb = bomb;
            if !ends {
                std::future::pending::<()>().await;
            }
        }
    };
    // Dropped at its end; its panic is the outcome of the task.
    assert_eq!(
        panic_text(|| drive(home.spawn_task(bomb(true)))),
        "bomb in a drop"
    );
    // Cancelled after its first turn, before its first turn, and by the shutdown.
    let mut task = home.spawn_task(bomb(false));
    home.block_on(async { assert!(poll_here(&mut task).await.is_pending()) });
    assert_eq!(drive(task.cancel()), None);
    home.spawn_task(bomb(false)).detach();
    drive(home.spawn_task(async {}));
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 3);
}

#[test]
fn spawn_after_the_shutdown_returns_a_cancelled_task() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let drops = Drops::default();
        runtime.block_on(async {
            runtime.shutdown().await;
            let dropped = drops.one();
            let task = greenroom::spawn(async move { drop(dropped) });
            assert!(task.is_finished());
            assert_eq!(drops.count(), 1);
            assert_eq!(task.fallible().await, None);
            assert_eq!(greenroom::spawn(async {}).cancel().await, None);
            greenroom::spawn(async {}).detach();
            drop(greenroom::spawn(async {}));
        });
        let (text, ..) = panic_of(|| drive(runtime.spawn(async {})));
        assert!(
            text.starts_with(
                "the task was cancelled by the shutdown of its runtime before it began"
            ),
            "{text}"
        );
    });
}

#[test]
fn a_hundred_thousand_tasks_all_run_and_are_dropped() {
    within(WATCH, || {
        let drops = Drops::default();
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let sum: usize = runtime.block_on(async {
            let tasks: Vec<_> = (0..100_000_usize)
                .map(|n| {
                    let dropped = drops.one();
                    greenroom::spawn(async move {
                        let _dropped = dropped;
                        if n % 3 == 0 {
                            greenroom::yield_now().await;
                        }
                        n
                    })
                })
                .collect();
            let mut sum = 0;
            for task in tasks {
                sum += task.await;
            }
            sum
        });
        assert_eq!(sum, 99_999 * 50_000);
        assert_eq!(drops.count(), 100_000);
    });
}
