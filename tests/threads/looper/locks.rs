//! Who gets a lock, how long it is held, and what `attempt` and `unlock` do.

use super::*;

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use crate::support::OpenOnDrop;

/// Posts a task with a priority that notes the number when it has the lock.
fn takes(looper: &Looper, priority: u8, claim: Claim<()>, log: &Log<u32>, number: u32) {
    let log = log.clone();
    let posting = looper.priority(priority).with(claim);
    drop(posting.post(move |()| log.add(number)).unwrap());
}

/// Returns the order in which requests of a lock are granted that wait for its exclusive holder.
/// Each is a priority and whether it is exclusive.
async fn granted<const N: usize>(requests: [(u8, bool); N]) -> Vec<u32> {
    let (controller, log) = (controller(1), Log::default());
    let (keeps, lock) = (controller.looper(), controller.lock());
    assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
    for (number, (priority, is_exclusive)) in (0..).zip(requests) {
        let claim = match is_exclusive {
            true => lock.exclusive(),
            false => lock.shared(),
        };
        takes(&controller.looper(), priority, claim, &log, number);
    }
    assert_eq!(controller.status().waiting, N);
    keeps.unlock(&lock).unwrap();
    controller.shutdown().await;
    log.take()
}

#[test]
fn any_number_of_loopers_share_a_lock_or_one_has_it_alone() {
    everywhere(|| async {
        let controller = controller(2);
        let value = controller.guarded(AtomicIsize::new(0));
        let most = Arc::new(AtomicIsize::new(0));
        let mut all = Vec::new();
        for number in 0..60 {
            let (looper, most) = (controller.looper(), most.clone());
            let write = looper.with(value.exclusive()).spawn(|value| async move {
                assert_eq!(value.swap(-1, Ordering::SeqCst), 0);
                yield_now().await;
                assert_eq!(value.swap(0, Ordering::SeqCst), -1);
            });
            all.push(write.unwrap());
            let read = controller
                .looper()
                .with(value.shared())
                .spawn(|value| async move {
                    let others = value.fetch_add(1, Ordering::SeqCst);
                    assert!(others >= 0);
                    most.fetch_max(others + 1, Ordering::SeqCst);
                    yield_now().await;
                    value.fetch_sub(1, Ordering::SeqCst);
                });
            all.push(read.unwrap());
            if number % 3 == 0 {
                yield_now().await;
            }
        }
        for posted in all {
            posted.await.unwrap();
        }
        assert!(most.load(Ordering::SeqCst) > 1);
    });
}

#[test]
fn a_wait_for_a_lock_takes_no_lane_and_holds_up_only_its_looper() {
    everywhere(|| async {
        let (controller, log) = (controller(1), Log::default());
        let (keeps, waits, other) = (
            controller.looper(),
            controller.looper(),
            controller.looper(),
        );
        let lock = controller.lock();
        assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
        takes(&waits, 0, lock.shared(), &log, 1);
        let behind = note(&waits, &log, 2);
        assert_eq!(other.post(|| 5).unwrap().await.unwrap(), 5);
        keeps.post(|| ()).unwrap().await.unwrap();
        let stats = controller.status();
        assert_eq!((stats.waiting, stats.locks_held, stats.running), (1, 1, 0));
        assert_eq!((log.len(), waits.len()), (0, 2));
        keeps.unlock(&lock).unwrap();
        behind.await.unwrap();
        assert_eq!(log.take(), [1, 2]);
    });
}

#[test]
fn exclusive_requests_are_granted_before_shared_ones_of_their_priority() {
    simulated(|| async {
        let order = granted([(1, false), (1, true), (1, false), (1, true)]).await;
        assert_eq!(order, [1, 3, 0, 2]);
    });
}

#[test]
fn a_shared_request_of_a_higher_priority_is_granted_before_an_exclusive_one() {
    simulated(|| async {
        let order = granted([(0, true), (1, false), (2, true), (3, false)]).await;
        assert_eq!(order, [3, 2, 1, 0]);
    });
}

#[test]
fn equal_requests_are_granted_in_their_order() {
    simulated(|| async {
        assert_eq!(granted([(2, true); 4]).await, [0, 1, 2, 3]);
        assert_eq!(granted([(2, false); 4]).await, [0, 1, 2, 3]);
    });
}

#[test]
fn a_newcomer_waits_behind_an_exclusive_request_while_readers_hold_the_lock() {
    simulated(|| async {
        let controller = controller(1);
        let loopers = [(); 5].map(|()| controller.looper());
        let [reads, writes, equal, lower, higher] = &loopers;
        let (lock, log) = (controller.lock(), Log::default());
        assert_eq!(reads.attempt(lock.shared()), Ok(true));
        takes(writes, 1, lock.exclusive(), &log, 1);
        takes(equal, 1, lock.shared(), &log, 2);
        takes(lower, 0, lock.shared(), &log, 3);
        takes(higher, 2, lock.shared(), &log, 4);
        wait_for(|| log.len() == 1).await;
        assert_eq!((log.take(), controller.status().waiting), (vec![4], 3));
        assert_eq!(higher.attempt(lock.shared()), Ok(false));
        reads.unlock(&lock).unwrap();
        wait_for(|| log.len() == 3).await;
        assert_eq!(log.take(), [1, 2, 3]);
    });
}

#[test]
fn a_cancelled_exclusive_request_frees_those_behind_it() {
    everywhere(|| async {
        let controller = controller(1);
        let (reads, writes, behind) = (
            controller.looper(),
            controller.looper(),
            controller.looper(),
        );
        let value = controller.guarded(3);
        assert_eq!(reads.attempt(value.shared()), Ok(true));
        let write = writes.with(value.exclusive()).post(|_| ()).unwrap();
        let read = behind.with(value.shared()).post(|value| *value).unwrap();
        assert_eq!(controller.status().waiting, 2);
        assert!(write.cancel());
        assert_eq!(read.await.unwrap(), 3);
        assert!(!write.cancel());
    });
}

#[test]
fn a_request_enters_the_line_when_its_task_is_the_next_one() {
    simulated(|| async {
        let (controller, log) = (controller(1), Log::default());
        let (keeps, early, late) = (
            controller.looper(),
            controller.looper(),
            controller.looper(),
        );
        let lock = controller.lock();
        assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
        let held = hold(&early).await;
        takes(&early, 0, lock.exclusive(), &log, 1);
        takes(&late, 0, lock.exclusive(), &log, 2);
        held.end().await;
        wait_for(|| controller.status().waiting == 2).await;
        keeps.unlock(&lock).unwrap();
        wait_for(|| log.len() == 2).await;
        assert_eq!(log.take(), [2, 1]);
    });
}

#[test]
fn a_task_that_finds_its_free_lock_taken_when_it_begins_enters_the_line_then() {
    simulated(|| async {
        let (controller, log) = (controller(1), Log::default());
        let (first, second, third) = (
            controller.looper(),
            controller.looper(),
            controller.looper(),
        );
        let lock = controller.lock();
        let until = Gate::default();
        let (ends, claim, own) = (until.clone(), lock.exclusive(), log.clone());
        let held = first.with(lock.exclusive()).spawn(|()| async move {
            // The second task is ready by now, and has not begun.
            takes(&third, 0, claim, &own, 3);
            ends.wait().await;
        });
        let held = held.unwrap();
        takes(&second, 0, lock.exclusive(), &log, 2);
        wait_for(|| controller.status().waiting == 2).await;
        until.open();
        held.await.unwrap();
        wait_for(|| log.len() == 2).await;
        assert_eq!(log.take(), [3, 2]);
    });
}

#[test]
fn a_lock_is_given_back_when_its_task_ends_or_panics() {
    everywhere(|| async {
        let controller = controller(1);
        let (first, second) = (controller.looper(), controller.looper());
        let value = controller.guarded(0);
        let panics = first.with(value.exclusive()).post(|value| {
            *value = 1;
            panic!("bomb in a task");
        });
        let outcome: Result<(), _> = panics.unwrap().await;
        assert!(
            matches!(outcome, Err(TaskError::Panicked(_))),
            "{outcome:?}"
        );
        assert_eq!(controller.status().locks_held, 0);
        // The value is not poisoned, and the looper goes on.
        let panics = first.with(value.exclusive()).spawn(|mut value| async move {
            *value += 1;
            yield_now().await;
            panic!("bomb in an async task");
        });
        let outcome: Result<(), _> = panics.unwrap().await;
        assert!(
            matches!(outcome, Err(TaskError::Panicked(_))),
            "{outcome:?}"
        );
        assert_eq!(second.attempt(value.exclusive()), Ok(true));
        let read = second.with(value.held_exclusive()).post(|value| *value);
        assert_eq!(read.unwrap().await.unwrap(), 2);
    });
}

#[test]
fn a_kept_lock_stays_with_the_looper_until_it_is_unlocked() {
    everywhere(|| async {
        let controller = controller(1);
        let (keeps, other) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let keep = keeps.with(value.exclusive().keep());
        keep.post(|value| *value += 1).unwrap().await.unwrap();
        let waits = other.with(value.shared()).post(|value| *value).unwrap();
        let add = keeps.with(value.held_exclusive()).post(|value| *value += 1);
        add.unwrap().await.unwrap();
        let add = keeps
            .with(value.held_exclusive())
            .spawn(|mut value| async move {
                yield_now().await;
                *value += 1;
            });
        add.unwrap().await.unwrap();
        let read = keeps.with(value.held_shared()).post(|value| *value);
        assert_eq!(read.unwrap().await.unwrap(), 4);
        let seen = value.clone();
        let world = controller.stop_the_world(move |world| {
            *world.get_mut(&seen).unwrap() += 1;
        });
        world.unwrap().await.unwrap();
        assert_eq!(
            (waits.is_finished(), controller.status().locks_held),
            (false, 1)
        );
        keeps.unlock(&value).unwrap();
        assert_eq!(waits.await.unwrap(), 5);
        assert_eq!(keeps.unlock(&value), other.unlock(&value));
    });
}

#[test]
fn locks_of_a_set_are_taken_in_one_order_whatever_order_they_are_written_in() {
    everywhere(|| async {
        let controller = controller(2);
        let values = [0, 0, 0].map(|value| controller.guarded(value));
        let mut all = Vec::new();
        for turn in 0..60 {
            let [one, two, three] = [0, 1, 2].map(|at| values[(at + turn) % 3].exclusive());
            let looper = controller.looper();
            let set = match turn % 2 {
                0 => vec![one, two, three],
                _ => vec![three, two, one],
            };
            all.push(looper.with(set).post(|values| {
                for value in values {
                    *value += 1;
                }
            }));
        }
        for posted in all {
            posted.unwrap().await.unwrap();
        }
        for value in values {
            assert_eq!(value.close().await, Ok(60));
        }
    });
}

#[test]
fn a_set_of_locks_gives_a_set_of_values_as_it_was_written() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let (text, number) = (controller.guarded("text"), controller.guarded(7));
        let (unit, lock) = (controller.guarded(()), controller.lock());
        let set = (
            (number.shared(), lock.shared()),
            text.exclusive(),
            vec![unit.exclusive()],
        );
        let task = looper.with(set).post(|((number, ()), text, units)| {
            let old = std::mem::replace(text, "other");
            (*number, old, units.len())
        });
        assert_eq!(task.unwrap().await.unwrap(), (7, "text", 1));
        let locks = [0, 1, 2, 3, 4, 5, 6, 7].map(|value| controller.guarded(value));
        let [a, b, c, d, e, f, g, h] = locks.each_ref().map(Guarded::shared);
        let eight = looper.with((h, g, f, e, d, c, b, a));
        let eight =
            eight.spawn(|(h, g, f, e, d, c, b, a)| async move { [*a, *b, *c, *d, *e, *f, *g, *h] });
        assert_eq!(eight.unwrap().await.unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        let none: Vec<Claim<()>> = Vec::new();
        looper.with(none).post(|_| ()).unwrap().await.unwrap();
        assert_eq!(controller.status().locks_held, 0);
    });
}

#[test]
fn an_attempt_takes_a_lock_at_once_or_not_at_all() {
    everywhere(|| async {
        let controller = controller(1);
        let (one, two, three) = (
            controller.looper(),
            controller.looper(),
            controller.looper(),
        );
        let value = controller.guarded(1);
        assert_eq!(one.attempt(value.shared()), Ok(true));
        assert_eq!(two.attempt(value.exclusive()), Ok(false));
        assert_eq!(two.attempt(value.shared()), Ok(true));
        let waits = three.with(value.exclusive()).post(|value| *value);
        let late = controller.looper();
        assert_eq!(
            late.attempt(value.shared()),
            Ok(false),
            "it overtakes no one"
        );
        one.unlock(&value).unwrap();
        two.unlock(&value).unwrap();
        assert_eq!(waits.unwrap().await.unwrap(), 1);
        assert_eq!(late.attempt(value.exclusive()), Ok(true));
    });
}

#[test]
fn an_attempt_of_a_set_takes_all_or_none() {
    everywhere(|| async {
        let controller = controller(1);
        let (one, two) = (controller.looper(), controller.looper());
        let (first, second) = (controller.lock(), controller.guarded(1));
        assert_eq!(two.attempt(second.shared()), Ok(true));
        let set = || (first.exclusive(), second.exclusive());
        assert_eq!(one.attempt(set()), Ok(false));
        assert_eq!(two.attempt(first.exclusive()), Ok(true));
        two.unlock(&first).unwrap();
        two.unlock(&second).unwrap();
        assert_eq!(one.attempt(set()), Ok(true));
        assert_eq!(controller.status().locks_held, 2);
        assert_eq!(
            one.attempt((first.held_exclusive(), second.held_shared())),
            Ok(true)
        );
        let mixed = (first.held_shared(), controller.lock().shared());
        assert_eq!(one.attempt(mixed), Ok(true));
        drop(one);
        wait_for(|| controller.status().locks_held == 0).await;
        assert_eq!(two.attempt(set()), Ok(true));
    });
}

#[test]
fn an_unlock_from_any_thread_hands_the_lock_to_all_who_can_have_it() {
    everywhere(|| async {
        let controller = controller(2);
        let keeps = controller.looper();
        let value = controller.guarded(2);
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        let readers = [(); 3].map(|()| {
            let looper = controller.looper();
            let (begun, until) = (Gate::default(), Gate::default());
            let (begins, ends) = (begun.clone(), until.clone());
            let read = looper.with(value.shared()).spawn(|value| async move {
                begins.open();
                ends.wait().await;
                *value
            });
            (read.unwrap(), begun, until)
        });
        let (holder, own) = (keeps.clone(), value.clone());
        let thread = std::thread::spawn(move || holder.unlock(&own));
        thread.join().unwrap().unwrap();
        for (_, begun, _) in &readers {
            begun.wait().await;
        }
        for (read, _, until) in readers {
            until.open();
            assert_eq!(read.await.unwrap(), 2);
        }
    });
}

#[test]
fn a_lock_that_its_task_unlocks_is_released_when_the_task_ends() {
    everywhere(|| async {
        let controller = controller(2);
        let (keeps, waits) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let wait = waits.with(value.exclusive()).post(|value| *value);
        wait.unwrap().await.unwrap();
        let (own, lock) = (keeps.clone(), value.clone());
        let ended = Gate::default();
        let ends = OpenOnDrop(ended.clone());
        let task = keeps.with(value.exclusive().keep()).post(move |value| {
            let _ends = ends;
            own.unlock(&lock).unwrap();
            let error = own.unlock(&lock).unwrap_err();
            assert!(matches!(error, LockError::NotHeld(_)), "{error}");
            *value = 2;
        });
        let after = waits.with(value.exclusive()).post(move |value| {
            assert!(ended.is_open());
            *value
        });
        task.unwrap().await.unwrap();
        assert_eq!(after.unwrap().await.unwrap(), 2);
        assert_eq!(waits.attempt(value.exclusive()), Ok(true));
    });
}

#[test]
fn a_closed_looper_releases_what_it_keeps_after_its_last_task() {
    everywhere(|| async {
        let controller = controller(1);
        let (keeps, waits) = (controller.looper(), controller.looper());
        // The lock is older, so it is the first of the set.
        let (lock, value) = (controller.lock(), controller.guarded(1));
        assert_eq!(keeps.attempt(lock.exclusive()), Ok(true));
        let held = hold(&keeps).await;
        let last = keeps
            .with(value.exclusive().keep())
            .post(|value| *value += 1);
        drop(keeps);
        let set = (value.shared(), lock.shared());
        let read = waits.with(set).post(|(value, ())| *value).unwrap();
        yield_now().await;
        assert!(!read.is_finished());
        held.end().await;
        last.unwrap().await.unwrap();
        assert_eq!(read.await.unwrap(), 2);
    });
}
