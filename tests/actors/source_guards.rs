//! Clones of the guard of a source: which of them keeps the source, and which cancels it.

use std::time::Duration;

use futures::channel::oneshot;
use futures::stream;
use greenroom::{Context, actor};

use crate::support::{Drops, Home, in_every_home};

const SOON: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::MAX;

in_every_home!(
    a_source_ends_with_the_last_clone_of_its_guard,
    a_clone_that_is_detached_keeps_the_source_for_good,
    a_clone_puts_the_source_into_the_background_for_all,
    clones_that_other_tasks_drop_cancel_the_source_once_all_are_gone,
);

fn a_source_ends_with_the_last_clone_of_its_guard(home: &Home) {
    let drops = Drops::default();
    let (counted, one) = (drops.clone(), drops.one());
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        let guard = cx.attach(stream::repeat_with(move || {
            let _one = &one;
            1
        }));
        let clone = guard.clone();
        drop(guard);
        assert_eq!(cx.recv().await, Some(1));
        drop(clone.clone());
        assert_eq!((cx.recv().await, counted.count()), (Some(1), 0));
        drop(clone);
        assert_eq!((cx.recv().await, counted.count()), (None, 1));
    }));
    home.block_on(handle.join()).unwrap();
    assert_eq!(drops.count(), 1);
}

fn a_clone_that_is_detached_keeps_the_source_for_good(home: &Home) {
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        let guard = cx.send_after(SOON, 1);
        let before = guard.clone();
        guard.clone().detach();
        let after = guard.clone();
        drop((guard, before, after));
        cx.recv().await
    }));
    assert_eq!(home.block_on(handle.join()).unwrap(), Some(1));
}

fn a_clone_puts_the_source_into_the_background_for_all(home: &Home) {
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        let guard = cx.send_after(NEVER, 1);
        drop(guard.clone().background());
        // Neither an address nor a source in the foreground is left.
        let received = cx.recv().await;
        drop(guard);
        received
    }));
    assert_eq!(home.block_on(handle.join()).unwrap(), None);
}

fn clones_that_other_tasks_drop_cancel_the_source_once_all_are_gone(home: &Home) {
    for _ in 0..home.many(200) {
        let (give, given) = oneshot::channel();
        let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
            assert!(give.send(cx.attach(stream::pending())).is_ok());
            cx.recv().await
        }));
        let weak = handle.downgrade();
        let join = handle.join();
        home.block_on(async {
            let guard = given.await.unwrap();
            let tasks = [0; 4].map(|_| {
                let clone = guard.clone();
                home.spawn_task(async move { drop(clone.clone()) })
            });
            for task in tasks {
                task.await;
            }
            // One clone is left, so the source keeps the actor open.
            assert!(weak.upgrade().is_some());
            let last = guard.clone();
            let drops_last = home.spawn_task(async move { drop(last) });
            drop(guard);
            drops_last.await;
            assert_eq!(join.await.unwrap(), None);
        });
    }
}
