//! Wakers and handles of plain tasks: used at any time, on any thread and any number of times.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};

use greenroom::{Runtime, Task};

use crate::support::{
    CountingWaker, Drops, Gate, Home, WATCH, drive, drive_elsewhere, in_every_home, poll_here,
    poll_once, received, until, within,
};

in_every_home!(
    a_task_may_drop_or_detach_its_own_handle,
    a_task_that_awaits_itself_waits,
    a_wake_in_the_last_turn_has_no_effect,
    cancel_returns_the_value_of_a_turn_in_progress,
    a_waker_outlives_its_task_and_its_runtime,
    a_task_that_wakes_itself_by_several_wakers_runs_once_more,
    the_end_wakes_the_waker_that_polled_last,
    a_detached_task_that_nothing_can_wake_lives_until_the_shutdown,
);

/// A slot for a task's own handle.
type Own = Arc<Mutex<Option<Task<()>>>>;

fn a_task_may_drop_or_detach_its_own_handle(home: &Home) {
    for detaches in [false, true] {
        let (drops, own) = (Drops::default(), Own::default());
        let held = home.hold();
        let task = home.spawn_task({
            let (dropped, own) = (drops.one(), own.clone());
            async move {
                let _dropped = dropped;
                let task = own
                    .lock()
                    .unwrap()
                    .take()
                    .expect("the handle is in the slot");
                if detaches {
                    task.detach();
                } else {
                    drop(task);
                }
                greenroom::yield_now().await;
                assert!(detaches, "a cancelled task must not continue");
            }
        });
        *own.lock().unwrap() = Some(task);
        drop(held);
        // At the end of the scenario the task was dropped.
        until(|| drops.count() == 1);
    }
}

fn a_detached_task_that_nothing_can_wake_lives_until_the_shutdown(home: &Home) {
    let drops = Drops::default();
    let dropped = drops.one();
    let waits = poll_fn(move |cx| {
        let _ = &dropped;
        drop(cx.waker().clone());
        Poll::<()>::Pending
    });
    home.spawn_task(waits).detach();
    home.block_on(home.runtime.quiescent());
    assert_eq!(drops.count(), 0);
    home.block_on(home.runtime.shutdown());
    assert_eq!(drops.count(), 1);
}

fn a_task_that_awaits_itself_waits(home: &Home) {
    let own = Own::default();
    let held = home.hold();
    let asked = Gate::default();
    let task = home.spawn_task({
        let (own, asked) = (own.clone(), asked.clone());
        async move {
            let mut task = own
                .lock()
                .unwrap()
                .take()
                .expect("the handle is in the slot");
            assert!(poll_here(&mut task).await.is_pending());
            // Polled with the same waker again.
            assert!(poll_here(&mut task).await.is_pending());
            task.detach();
            asked.open();
        }
    });
    *own.lock().unwrap() = Some(task);
    drop(held);
    drive(asked.wait());
}

fn a_wake_in_the_last_turn_has_no_effect(home: &Home) {
    let task = home.spawn_task(poll_fn(|cx| {
        cx.waker().wake_by_ref();
        let waker = cx.waker().clone();
        waker.wake();
        Poll::Ready(5)
    }));
    assert_eq!(drive(task), 5);
}

fn cancel_returns_the_value_of_a_turn_in_progress(home: &Home) {
    let (tell, told) = mpsc::channel();
    let (begun, go_on) = (Gate::default(), Gate::default());
    let (begins, goes_on) = (begun.clone(), go_on.clone());
    let task = home.spawn_task(async move {
        // In one turn, so that no cancellation can take effect in between.
        begins.open();
        goes_on.pass();
        tell.send(()).unwrap();
        5
    });
    if home.is_simulated() {
        go_on.open();
    }
    drive(begun.wait());
    let mut cancel = Box::pin(task.cancel());
    let early = poll_once(&mut cancel);
    go_on.open();
    received(&told);
    let value = match early {
        Poll::Ready(value) => value,
        Poll::Pending => drive(cancel),
    };
    assert_eq!(value, Some(5));
}

fn a_waker_outlives_its_task_and_its_runtime(home: &Home) {
    let (tell, told) = mpsc::channel();
    let task = home.spawn_task(poll_fn(move |cx| {
        tell.send(cx.waker().clone()).unwrap();
        Poll::<()>::Pending
    }));
    let waker = received(&told);
    assert_eq!(drive(task.cancel()), None);
    waker.wake_by_ref();
    home.block_on(home.runtime.shutdown());
    waker.wake_by_ref();
    waker.wake();
}

fn a_task_that_wakes_itself_by_several_wakers_runs_once_more(home: &Home) {
    let mut runs = 0;
    let task = home.spawn_task(poll_fn(move |cx| {
        runs += 1;
        if runs == 1 {
            cx.waker().wake_by_ref();
            let (by_value, waker) = (cx.waker().clone(), cx.waker().clone());
            by_value.wake();
            std::thread::spawn(move || waker.wake()).join().unwrap();
            return Poll::Pending;
        }
        Poll::Ready(runs)
    }));
    assert_eq!(drive(task), 2);
}

fn the_end_wakes_the_waker_that_polled_last(home: &Home) {
    let go_on = Gate::default();
    let goes_on = go_on.clone();
    let mut task = home.spawn_task(async move { goes_on.wait().await });
    let (early, early_waker) = CountingWaker::new();
    let mut cx = std::task::Context::from_waker(&early_waker);
    for _ in 0..2 {
        assert!(Future::poll(Pin::new(&mut task), &mut cx).is_pending());
    }
    let awaited = drive_elsewhere(async move {
        let mut opens = Some(go_on);
        poll_fn(|cx| {
            let polled = Future::poll(Pin::new(&mut task), cx);
            opens.take().inspect(Gate::open);
            polled
        })
        .await;
    });
    awaited.join();
    assert_eq!(early.count(), 0);
}

/// A value that wakes a task and drops its handle at the very end of a thread.
struct AtTheEnd(Waker, Option<Task<()>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.wake_by_ref();
        drop(self.1.take());
        self.0.wake_by_ref();
    }
}

thread_local! {
    static LAST: RefCell<Vec<AtTheEnd>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn a_thread_that_ends_may_wake_and_cancel() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let drops = Drops::default();
        let (tell, told) = mpsc::channel();
        let dropped = drops.one();
        let waits = runtime.spawn(poll_fn(move |cx| {
            let _ = &dropped;
            let _ = tell.send(cx.waker().clone());
            Poll::Pending
        }));
        let waker = received(&told);
        let ends = move || LAST.with_borrow_mut(|last| last.push(AtTheEnd(waker, Some(waits))));
        std::thread::spawn(ends).join().unwrap();
        until(|| drops.count() == 1);
        // In a thread-local of the worker, which ends with the runtime.
        let own = runtime.spawn(poll_fn(|cx| {
            let end = AtTheEnd(cx.waker().clone(), None);
            LAST.with_borrow_mut(|last| last.push(end));
            Poll::Ready(())
        }));
        runtime.block_on(own);
    });
}
