//! Guards of async tasks: how long they hold a lock, and what becomes of those that leave the task.

use super::*;

use std::sync::Arc;

use greenroom::looper::Exclusive;

use crate::support::{Bomb, Drops, drive};

/// Lets a task of the looper carry its guard out.
async fn carry_out<T: Send + Sync>(looper: &Looper, guarded: &Guarded<T>) -> Exclusive<T> {
    let task = looper.with(guarded.exclusive());
    task.spawn(|guard| async { guard }).unwrap().await.unwrap()
}

#[test]
fn a_guard_that_is_dropped_gives_the_lock_back_while_its_task_goes_on() {
    everywhere(|| async {
        let controller = controller(1);
        let (first, second) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let until = Gate::default();
        let ends = until.clone();
        let task = first.with(value.exclusive()).spawn(|mut guard| async move {
            *guard = 2;
            drop(guard);
            ends.wait().await;
        });
        let read = second.with(value.shared()).post(|value| *value).unwrap();
        assert_eq!(read.await.unwrap(), 2);
        until.open();
        task.unwrap().await.unwrap();
        assert_eq!(controller.status().locks_held, 0);
    });
}

#[test]
fn a_lock_without_a_value_is_held_until_its_async_task_ends() {
    everywhere(|| async {
        let controller = controller(1);
        let (first, second) = (controller.looper(), controller.looper());
        let lock = controller.lock();
        let (begun, until) = (Gate::default(), Gate::default());
        let (begins, ends) = (begun.clone(), until.clone());
        let task = first.with(lock.exclusive()).spawn(|()| async move {
            begins.open();
            ends.wait().await;
        });
        begun.wait().await;
        assert_eq!(second.attempt(lock.shared()), Ok(false));
        until.open();
        task.unwrap().await.unwrap();
        assert_eq!(second.attempt(lock.shared()), Ok(true));
    });
}

#[test]
fn a_guard_that_was_carried_out_keeps_the_lock_and_the_world_waiting_but_not_its_looper() {
    everywhere(|| async {
        let controller = controller(2);
        let (carries, waits) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let mut guard = carry_out(&carries, &value).await;
        assert_eq!(carries.post(|| 5).unwrap().await.unwrap(), 5);
        let read = waits.with(value.shared()).post(|value| *value).unwrap();
        let seen = value.clone();
        let world = controller.stop_the_world(move |world| *world.get(&seen).unwrap());
        let world = world.unwrap();
        let halted = carries.post(|| 6).unwrap();
        for _ in 0..20 {
            yield_now().await;
        }
        assert!(!read.is_finished() && !world.is_finished() && !halted.is_finished());
        *guard += 1;
        drop(guard);
        assert_eq!(world.await.unwrap(), 2);
        assert_eq!((read.await.unwrap(), halted.await.unwrap()), (2, 6));
    });
}

#[test]
fn the_looper_of_a_carried_guard_waits_for_the_lock_like_any_other() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let value = controller.guarded(1);
        let guard = carry_out(&looper, &value).await;
        assert_eq!(looper.attempt(value.shared()), Ok(false));
        let again = looper.with(value.exclusive()).post(|value| *value).unwrap();
        assert_eq!(controller.status().waiting, 1);
        drop(guard);
        assert_eq!(again.await.unwrap(), 1);
    });
}

#[test]
fn a_guard_of_a_kept_lock_may_leave_its_task_and_the_looper_keeps_the_lock() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper_named("keeps");
        let value = controller.guarded_named("value", 1);
        let keep = looper.with(value.exclusive().keep());
        let guard = keep.spawn(|guard| async { guard }).unwrap();
        let guard = guard.await.unwrap();
        let used = looper.with(value.held_shared()).post(|value| *value);
        let error = lock_error(used.unwrap().await);
        assert_eq!(error.to_string(), "keeps already holds or requests value");
        drop(guard);
        assert_eq!(controller.status().locks_held, 1);
        let read = looper.with(value.held_shared()).post(|value| *value);
        assert_eq!(read.unwrap().await.unwrap(), 1);
        looper.unlock(&value).unwrap();
        assert_eq!(controller.status().locks_held, 0);
    });
}

#[test]
fn an_unlock_releases_a_lock_whose_guard_was_carried_out_when_the_guard_is_dropped() {
    everywhere(|| async {
        let controller = controller(1);
        let (keeps, other) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let keep = keeps.with(value.shared().keep());
        let guard = keep.spawn(|guard| async { guard }).unwrap();
        let guard = guard.await.unwrap();
        keeps.unlock(&value).unwrap();
        let error = keeps.unlock(&value).unwrap_err();
        assert!(matches!(error, LockError::NotHeld(_)), "{error}");
        assert_eq!(other.attempt(value.exclusive()), Ok(false));
        assert_eq!(*guard, 1);
        drop(guard);
        assert_eq!(other.attempt(value.exclusive()), Ok(true));
    });
}

#[test]
fn a_forgotten_guard_keeps_its_lock_and_breaks_nothing_else() {
    everywhere(|| async {
        let (controller, drops) = (controller(2), Drops::default());
        let (looper, other) = (controller.looper(), controller.looper());
        let value = controller.guarded(drops.one());
        let lost = looper.with(value.exclusive()).spawn(|guard| async {
            std::mem::forget(guard);
        });
        lost.unwrap().await.unwrap();
        assert_eq!(other.attempt(value.shared()), Ok(false));
        let free = controller.guarded(1);
        let read = looper.with(free.shared()).post(|value| *value).unwrap();
        assert_eq!(read.await.unwrap(), 1);
        let waits = other.with(value.shared()).post(|_| ()).unwrap();
        assert!(waits.cancel());
        drop((value, looper, other));
        // The guard has a pointer to it.
        assert_eq!(drops.count(), 0);
    });
}

#[test]
fn a_shared_guard_that_was_forgotten_leaves_the_value_to_other_readers() {
    everywhere(|| async {
        let controller = controller(1);
        let (looper, other) = (controller.looper(), controller.looper());
        let value = controller.guarded(3);
        let lost = looper.with(value.shared()).spawn(|guard| async {
            std::mem::forget(guard);
        });
        lost.unwrap().await.unwrap();
        let read = other.with(value.shared()).post(|value| *value).unwrap();
        assert_eq!(read.await.unwrap(), 3);
        assert_eq!(other.attempt(value.exclusive()), Ok(false));
    });
}

#[test]
fn a_guard_may_be_used_and_dropped_after_controller_and_runtime_have_ended() {
    within(WATCH, || {
        let drops = Drops::default();
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let controller = Controller::builder().on(&runtime).build().unwrap();
        let looper = controller.looper();
        let value = controller.guarded((5, drops.one()));
        let guard = drive(carry_out(&looper, &value));
        drop((controller, looper, value));
        drive(runtime.shutdown());
        drop(runtime);
        assert_eq!((guard.0, drops.count()), (5, 0));
        drop(guard);
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_task_that_panics_when_it_makes_its_future_gives_its_guards_back() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let (one, two) = (controller.guarded(1), controller.lock());
        let set = looper.with((one.exclusive(), two.exclusive()));
        let fails = set.spawn(|_guards| -> std::future::Ready<()> { panic!("bomb before it") });
        let outcome = fails.unwrap().await;
        assert!(
            matches!(outcome, Err(TaskError::Panicked(_))),
            "{outcome:?}"
        );
        assert_eq!(controller.status().locks_held, 0);
        let world = controller.stop_the_world(|_| 3).unwrap();
        assert_eq!(world.await.unwrap(), 3);
    });
}

#[test]
fn a_refused_task_with_guards_leaves_no_trace_of_them() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let (first, second) = (controller.guarded(1), controller.guarded(2));
        let held = hold(&looper).await;
        let set = || looper.with((first.exclusive(), second.exclusive()));
        let cancelled = set().spawn(|_| async {}).unwrap();
        assert!(cancelled.cancel());
        let twice = (first.shared(), second.exclusive(), first.shared());
        let twice = looper.with(twice).spawn(|_| async {}).unwrap();
        held.end().await;
        lock_error(twice.await);
        // One that is ready, and is cancelled before it begins.
        let held = hold(&controller.looper()).await;
        let world = controller.stop_the_world(|_| ()).unwrap();
        let ready = set().spawn(|_| async {}).unwrap();
        assert!(ready.cancel());
        held.end().await;
        world.await.unwrap();
        wait_for(|| controller.status().locks_held == 0).await;
        controller.stop_the_world(|_| ()).unwrap().await.unwrap();
    });
}

#[test]
fn a_value_that_panics_when_dropped_may_be_dropped_by_its_last_guard() {
    everywhere(|| async {
        let (controller, drops) = (controller(1), Drops::default());
        let looper = controller.looper();
        let bomb = controller.guarded(Bomb::new(true, &drops));
        let guard = carry_out(&looper, &bomb).await;
        drop(bomb);
        looper.post(|| ()).unwrap().await.unwrap();
        drop(guard);
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn values_of_no_size_are_guarded_like_others() {
    everywhere(|| async {
        let controller = controller(2);
        let unit = controller.guarded(());
        let (one, two) = (controller.looper(), controller.looper());
        let held = hold_with(&one, &unit).await;
        assert_eq!(two.attempt(unit.shared()), Ok(false));
        held.end().await;
        let task = two.with(unit.shared()).spawn(|unit| async move { *unit });
        task.unwrap().await.unwrap();
        assert_eq!(unit.close().await, Ok(()));
    });
}

#[test]
fn a_guard_shows_its_value() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper_named("teller");
        let value = controller.guarded_named("accounts", Arc::new(1));
        let texts = looper
            .with(value.exclusive())
            .spawn(|guard| async move { format!("{guard:?}") });
        assert_eq!(texts.unwrap().await.unwrap(), "Exclusive(1)");
        let shared = looper
            .with(value.shared())
            .spawn(|guard| async move { format!("{guard:?}") });
        assert_eq!(shared.unwrap().await.unwrap(), "Shared(1)");
        let texts = [format!("{value:?}"), format!("{looper:?}")];
        assert_eq!(texts, ["Guarded(accounts)", "Looper(teller)"]);
    });
}
