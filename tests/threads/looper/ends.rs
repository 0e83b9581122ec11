//! How loopers, locks and controllers end, and what becomes of the tasks.

use super::*;

use greenroom::looper::WeakLooper;

use crate::support::poll_here;

#[test]
fn a_shutdown_refuses_the_lock_that_an_ending_looper_gives_to_a_closed_one() {
    everywhere(|| async {
        let controller = controller(1);
        let (keeps, waits) = (controller.looper(), controller.looper());
        let (lock, closed) = (controller.lock(), controller.lock());
        assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
        let refused = waits.with((lock.shared(), closed.shared())).post(|_| ());
        drop(waits);
        closed.close().await;
        controller.shutdown().await;
        let error = lock_error(refused.unwrap().await);
        assert!(matches!(error, LockError::Closed(_)), "{error}");
        assert!(keeps.is_closed());
    });
}

#[test]
fn a_closed_looper_runs_what_is_queued_and_then_releases_its_locks() {
    everywhere(|| async {
        let (controller, log) = (controller(1), Log::default());
        let (looper, other) = (controller.looper(), controller.looper());
        let lock = controller.lock();
        assert_eq!(looper.attempt(lock.exclusive()), Ok(true));
        let held = hold(&looper).await;
        let queued = [1, 2].map(|number| note(&looper, &log, number));
        let mut closes = Box::pin(looper.close());
        assert!(poll_here(&mut closes).await.is_pending());
        assert!(looper.is_closed());
        let refused = looper.post(|| ()).unwrap_err();
        assert_eq!(refused.problem(), PostProblem::Closed);
        assert_eq!(other.attempt(lock.shared()), Ok(false));
        held.until.open();
        closes.await;
        assert!(queued.iter().all(Posted::is_finished));
        assert_eq!((log.take(), looper.len()), (vec![1, 2], 0));
        assert_eq!(other.attempt(lock.exclusive()), Ok(true));
        looper.close().await;
        assert_eq!(controller.status().loopers, 1);
    });
}

#[test]
fn a_close_that_is_given_up_leaves_the_looper_closed() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let held = hold(&looper).await;
        let mut closes = Box::pin(looper.close());
        assert!(poll_here(&mut closes).await.is_pending());
        drop(closes);
        assert!(looper.is_closed());
        held.end().await;
        looper.close().await;
    });
}

#[test]
fn the_last_handle_of_a_looper_closes_it_and_not_an_earlier_one() {
    everywhere(|| async {
        let (controller, log) = (controller(1), Log::default());
        let looper = controller.looper();
        let weak = looper.downgrade();
        let other = looper.clone();
        assert!(other == looper && weak.upgrade() == Some(looper.clone()));
        drop(looper);
        note(&other, &log, 1).await.unwrap();
        let (id, name) = (other.id(), other.name().map(str::to_owned));
        assert_eq!((weak.id(), weak.name().map(str::to_owned)), (id, name));
        let held = hold(&other).await;
        let last = note(&other, &log, 2);
        drop(other);
        assert!(weak.upgrade().is_none());
        held.end().await;
        last.await.unwrap();
        wait_for(|| controller.status().loopers == 0).await;
        assert_eq!(log.take(), [1, 2]);
    });
}

#[test]
fn a_looper_may_be_closed_and_dropped_in_its_own_tasks() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let own = looper.clone();
        let drops = looper.post(move || drop(own)).unwrap();
        drop(looper);
        drops.await.unwrap();
        let looper = controller.looper();
        let own = looper.clone();
        let closes = looper.spawn(async move {
            own.close().await;
            own.is_closed()
        });
        let behind = looper.post(|| 5);
        assert!(closes.unwrap().await.unwrap());
        if let Ok(behind) = behind {
            assert_eq!(behind.await.unwrap(), 5);
        }
        looper.close().await;
        assert_eq!(controller.status().loopers, 0);
    });
}

#[test]
fn a_task_reaches_its_looper_weakly() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper_named("own");
        let own = || looper::current().and_then(|current| current.looper());
        let seen: WeakLooper = looper.post(own).unwrap().await.unwrap().unwrap();
        assert_eq!((seen.id(), seen.name()), (looper.id(), Some("own")));
        let posts = looper.post(move || own().unwrap().upgrade().unwrap().post(|| 5));
        let posted = posts.unwrap().await.unwrap().unwrap();
        assert_eq!(posted.await.unwrap(), 5);
        drop(looper);
        assert!(seen.upgrade().is_none());
        assert!(looper::current().is_none());
    });
}

#[test]
fn a_closed_lock_serves_its_waiters_and_then_gives_its_value_back() {
    everywhere(|| async {
        let controller = controller(1);
        let (keeps, reads, writes) = (
            controller.looper(),
            controller.looper(),
            controller.looper(),
        );
        let value = controller.guarded_named("value", vec![0]);
        let add = |number| move |value: &mut Vec<i32>| value.push(number);
        let keep = keeps.with(value.exclusive().keep());
        keep.post(add(1)).unwrap().await.unwrap();
        let read = reads.with(value.shared()).post(|value| value.clone());
        let write = writes.with(value.exclusive()).post(add(2)).unwrap();
        let mut closes = Box::pin(value.close());
        assert!(poll_here(&mut closes).await.is_pending());
        let late = controller.looper_named("late");
        let error = lock_error(late.with(value.shared()).post(|_| ()).unwrap().await);
        assert_eq!(error.to_string(), "late did not get value: closed");
        let error = value.close().await.unwrap_err();
        assert_eq!(error.to_string(), "the caller did not get value: closed");
        // Its keeper may use it on.
        let held = keeps.with(value.held_exclusive()).post(add(3)).unwrap();
        held.await.unwrap();
        keeps.unlock(&value).unwrap();
        assert_eq!(closes.await, Ok(vec![0, 1, 3, 2]));
        assert_eq!(read.unwrap().await.unwrap(), [0, 1, 3, 2]);
        write.await.unwrap();
        assert!(value.close().await.is_err());
    });
}

#[test]
fn a_lock_without_a_value_is_closed_once_it_is_free() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let lock = controller.lock();
        assert_eq!(looper.attempt(lock.shared()), Ok(true));
        let mut closes = Box::pin(lock.close());
        assert!(poll_here(&mut closes).await.is_pending());
        lock.close().await;
        looper.unlock(&lock).unwrap();
        closes.await;
        let error = looper.attempt(lock.shared()).unwrap_err();
        assert!(matches!(error, LockError::Closed(_)), "{error}");
    });
}

#[test]
fn a_task_that_holds_a_lock_does_not_wait_for_its_close() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper_named("teller");
        let (value, lock) = (controller.guarded_named("value", 5), controller.lock());
        let (own, door) = (value.clone(), lock.clone());
        let set = looper.with((value.shared(), lock.shared()));
        let closes = set.spawn(|(guard, ())| async move {
            let error = own.close().await.unwrap_err();
            door.close().await;
            (*guard, error.to_string())
        });
        let text = "teller already holds or requests value".to_owned();
        assert_eq!(closes.unwrap().await.unwrap(), (5, text));
        let error = looper.attempt(lock.shared()).unwrap_err();
        assert!(matches!(error, LockError::Closed(_)), "{error}");
        assert_eq!(value.close().await, Ok(5));
    });
}

#[test]
fn a_close_waits_for_a_world_that_may_have_the_value() {
    on_threads(async {
        let controller = controller(1);
        let value = controller.guarded(1);
        let (begun, ends) = (Gate::default(), Gate::default());
        let (begins, waits, seen) = (begun.clone(), ends.clone(), value.clone());
        let world = controller.stop_the_world(move |world| {
            let value = world.get_mut(&seen).unwrap();
            begins.open();
            waits.pass();
            *value += 1;
        });
        begun.wait().await;
        let mut closes = Box::pin(value.close());
        assert!(poll_here(&mut closes).await.is_pending());
        ends.open();
        assert_eq!(closes.await, Ok(2));
        world.unwrap().await.unwrap();
    });
}

#[test]
fn a_shutdown_runs_what_was_posted_and_may_be_called_again() {
    everywhere(|| async {
        let (controller, log) = (controller(2), Log::default());
        let loopers = [(); 4].map(|()| controller.looper());
        let held = hold(&loopers[0]).await;
        for looper in &loopers {
            (1..4).for_each(|number| drop(note(looper, &log, number)));
        }
        let world = controller.stop_the_world(|_| ()).unwrap();
        let (one, two) = (controller.clone(), controller.clone());
        let first = greenroom::spawn(async move { one.shutdown().await });
        let second = greenroom::spawn(async move { two.shutdown().await });
        wait_for(|| loopers[3].is_closed()).await;
        assert!(loopers[0].post(|| ()).is_err());
        held.end().await;
        first.await;
        second.await;
        assert_eq!(log.len(), 12);
        assert!(world.is_finished());
        controller.shutdown().await;
        assert_eq!(
            controller.status(),
            greenroom::looper::LooperStatus::default()
        );
    });
}

#[test]
fn a_task_may_shut_its_controller_down() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let own = controller.clone();
        let ends = looper.spawn(async move {
            own.shutdown().await;
            own.looper().is_closed()
        });
        assert!(ends.unwrap().await.unwrap());
        controller.shutdown().await;
        assert!(looper.is_closed());
    });
}

#[test]
fn a_shutdown_ends_a_cycle_that_was_not_looked_for() {
    everywhere(|| async {
        let builder = Controller::builder().detect_deadlocks(false);
        let controller = builder.lanes(1).build().unwrap();
        let (one, two) = (controller.looper(), controller.looper());
        let (left, right) = (controller.guarded(1), controller.guarded(2));
        assert_eq!(one.attempt(left.exclusive()), Ok(true));
        assert_eq!(two.attempt(right.exclusive()), Ok(true));
        let waits = [
            one.with(right.shared()).post(|it| *it).unwrap(),
            two.with(left.shared()).post(|it| *it).unwrap(),
        ];
        yield_now().await;
        assert_eq!(controller.status().waiting, 2);
        controller.shutdown().await;
        let [one, two] = waits;
        deadlock(one.await);
        assert_eq!(two.await.unwrap(), 1);
    });
}

#[test]
fn loopers_go_on_after_the_last_handle_of_their_controller_is_gone() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let value = controller.guarded(1);
        let held = hold(&looper).await;
        let world = controller.stop_the_world(|_| 5).unwrap();
        drop(controller);
        held.end().await;
        assert_eq!(world.await.unwrap(), 5);
        let add = looper.with(value.exclusive()).post(|value| *value += 1);
        add.unwrap().await.unwrap();
        assert_eq!(value.close().await, Ok(2));
        let last = hold(&looper).await;
        let weak = looper.downgrade();
        drop(looper);
        last.end().await;
        assert!(weak.upgrade().is_none());
    });
}
