//! The stopped world: when it begins, what it reaches, and what waits for it.

use super::*;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::poll_here;

/// Posts a task of the world that adds the number to the log.
fn stop(controller: &Controller, log: &Log<u32>, number: u32) -> Posted<()> {
    let log = log.clone();
    controller.stop_the_world(move |_| log.add(number)).unwrap()
}

#[test]
fn the_world_waits_until_every_begun_task_has_ended_and_no_other_begins() {
    everywhere(|| async {
        let (controller, log) = (controller(2), Log::default());
        let loopers = [(); 3].map(|()| controller.looper());
        let [first, second, third] = &loopers;
        let (one, two) = (hold(first).await, hold(second).await);
        let world = stop(&controller, &log, 1);
        let behind = note(first, &log, 2);
        let other = note(third, &log, 3);
        one.end().await;
        for _ in 0..20 {
            yield_now().await;
        }
        assert_eq!(log.len(), 0);
        assert!(controller.status().is_world_stopped);
        two.end().await;
        world.await.unwrap();
        behind.await.unwrap();
        other.await.unwrap();
        assert_eq!(log.take()[0], 1);
        assert!(!controller.status().is_world_stopped);
    });
}

#[test]
fn begun_tasks_are_polled_on_while_the_world_waits_for_them() {
    everywhere(|| async {
        let controller = controller(1);
        let (first, second) = (controller.looper(), controller.looper());
        let (begun, until) = (Gate::default(), Gate::default());
        let (begins, ends) = (begun.clone(), until.clone());
        let task = first.spawn(async move {
            begins.open();
            ends.wait().await;
            for _ in 0..10 {
                yield_now().await;
            }
            7
        });
        begun.wait().await;
        let world = controller.stop_the_world(|_| ()).unwrap();
        let halted = second.post(|| 8).unwrap();
        yield_now().await;
        until.open();
        let task = task.unwrap();
        assert_eq!(task.await.unwrap(), 7);
        world.await.unwrap();
        assert_eq!(halted.await.unwrap(), 8);
    });
}

#[test]
fn a_task_that_is_granted_its_lock_does_not_begin_before_the_world() {
    everywhere(|| async {
        let controller = controller(2);
        let (keeps, waits, begun) = (
            controller.looper(),
            controller.looper(),
            controller.looper(),
        );
        let value = controller.guarded(1);
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        let waits = waits.with(value.exclusive()).post(|value| *value += 1);
        let held = hold(&begun).await;
        let seen = value.clone();
        let world = controller.stop_the_world(move |world| *world.get(&seen).unwrap());
        keeps.unlock(&value).unwrap();
        assert_eq!(controller.status().waiting, 0, "it was granted");
        held.end().await;
        assert_eq!(world.unwrap().await.unwrap(), 1);
        waits.unwrap().await.unwrap();
        assert_eq!(value.close().await, Ok(2));
    });
}

#[test]
fn tasks_of_the_world_run_in_their_order_and_alone() {
    everywhere(|| async {
        let (controller, log) = (controller(2), Log::default());
        let inside = Arc::new(AtomicUsize::new(0));
        let enter = {
            let inside = inside.clone();
            move || {
                let enters = inside.clone();
                async move {
                    enters.fetch_add(1, Ordering::SeqCst);
                    yield_now().await;
                    enters.fetch_sub(1, Ordering::SeqCst);
                }
            }
        };
        let loopers = [(); 3].map(|()| controller.looper());
        let mut all = Vec::new();
        let mut worlds = Vec::new();
        for number in 0..20 {
            for looper in &loopers {
                all.push(looper.spawn(enter()).unwrap());
            }
            let (inside, log) = (inside.clone(), log.clone());
            let world = controller.stop_the_world(move |_| {
                assert_eq!(inside.load(Ordering::SeqCst), 0);
                log.add(number);
            });
            worlds.push(world.unwrap());
            if number % 5 == 0 {
                yield_now().await;
            }
        }
        for posted in worlds.into_iter().chain(all) {
            posted.await.unwrap();
        }
        assert!(log.take().into_iter().eq(0..20));
    });
}

#[test]
fn the_world_stops_under_a_load_that_never_ends() {
    everywhere(|| async {
        let builder = Controller::builder().lanes(2).priorities(u8::MAX);
        let controller = builder.build().unwrap();
        let count = controller.guarded(0_u64);
        /// Posts a task that posts itself again, with the highest priority.
        fn again(looper: &Looper, count: &Guarded<u64>) {
            let own = (looper.clone(), count.clone());
            let posting = looper.priority(u8::MAX).with(count.exclusive());
            drop(posting.post(move |count| {
                *count += 1;
                again(&own.0, &own.1);
            }));
        }
        let loopers = [(); 4].map(|()| controller.looper());
        loopers.iter().for_each(|looper| again(looper, &count));
        for _ in 0..10 {
            let seen = count.clone();
            let world = controller.stop_the_world(move |world| {
                let before = *world.get(&seen).unwrap();
                (before, *world.get(&seen).unwrap())
            });
            let (before, after) = world.unwrap().await.unwrap();
            assert_eq!(before, after);
        }
        controller.shutdown().await;
    });
}

#[test]
fn no_priority_lets_a_task_begin_before_a_world_that_waits() {
    const PRIORITIES: [u8; 7] = [0, 3, 1, 3, 2, 0, 0];
    simulated(|| async {
        let (controller, log) = (controller(1), Log::default());
        let begun = controller.looper();
        let held = hold(&begun).await;
        let worlds = [100, 101].map(|number| stop(&controller, &log, number));
        for (number, priority) in (0..).zip(&PRIORITIES[..6]) {
            let (looper, notes) = (controller.looper(), log.clone());
            drop(looper.priority(*priority).post(move || notes.add(number)));
            yield_now().await;
        }
        let behind = note(&begun, &log, 6);
        let last = stop(&controller, &log, 102);
        held.end().await;
        for world in worlds.into_iter().chain([last]) {
            world.await.unwrap();
        }
        behind.await.unwrap();
        controller.shutdown().await;
        let order = log.take();
        assert_eq!(order[..3], [100, 101, 102]);
        // After the world the priorities count again.
        let priority = |number: &u32| PRIORITIES[*number as usize];
        let rest: Vec<_> = order[3..].iter().map(priority).collect();
        assert_eq!(rest, [3, 3, 2, 1, 0, 0, 0], "{order:?}");
    });
}

#[test]
fn a_task_of_the_world_has_no_looper_and_priority_0() {
    everywhere(|| async {
        let controller = controller(1);
        let world = controller.stop_the_world(|_| {
            let current = looper::current().unwrap();
            (current.looper().is_none(), current.priority())
        });
        assert_eq!(world.unwrap().await.unwrap(), (true, 0));
    });
}

#[test]
fn the_world_reaches_every_value_whoever_holds_its_lock() {
    everywhere(|| async {
        let controller = controller(1);
        let (shares, alone) = (controller.looper(), controller.looper());
        let values = [1, 2, 3].map(|value| controller.guarded(value));
        assert_eq!(shares.attempt(values[0].shared()), Ok(true));
        assert_eq!(alone.attempt(values[1].exclusive()), Ok(true));
        let seen = values.clone();
        let world = controller.stop_the_world(move |world| {
            for value in &seen {
                *world.get_mut(value).unwrap() *= 10;
            }
            let all: Vec<&i32> = seen.iter().map(|it| world.get(it).unwrap()).collect();
            assert_eq!(all, [&10, &20, &30]);
            let sets = (
                seen[0].exclusive(),
                vec![seen[1].shared(), seen[2].shared()],
            );
            world.with(sets, |(first, rest)| {
                *first += 1;
                rest.into_iter().sum::<i32>() + *first
            })
        });
        assert_eq!(world.unwrap().await.unwrap(), Ok(61));
        let own = shares.with(values[0].held_shared()).post(|value| *value);
        assert_eq!(own.unwrap().await.unwrap(), 11);
        assert_eq!(controller.status().locks_held, 2);
    });
}

#[test]
fn the_world_borrows_a_thousand_values_at_once() {
    everywhere(|| async {
        let controller = controller(1);
        let values: Vec<_> = (0..1000).map(|value| controller.guarded(value)).collect();
        let seen = values.clone();
        let world = controller.stop_the_world(move |world| {
            let all: Vec<&usize> = seen.iter().map(|it| world.get(it).unwrap()).collect();
            let sum = all.into_iter().sum::<usize>();
            for value in seen.iter().rev() {
                *world.get_mut(value).unwrap() += 1;
            }
            sum
        });
        assert_eq!(world.unwrap().await.unwrap(), 499_500);
        for (number, value) in (1..).zip(values) {
            assert_eq!(value.close().await, Ok(number));
        }
    });
}

#[test]
fn a_task_of_the_world_that_panics_leaves_all_values_and_the_next_one_runs() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let value = controller.guarded(1);
        let seen = value.clone();
        let fails = controller.stop_the_world(move |world| {
            *world.get_mut(&seen).unwrap() = 2;
            panic!("bomb in the world");
        });
        let next = controller.stop_the_world(|_| 5).unwrap();
        let outcome: Result<(), _> = fails.unwrap().await;
        assert!(
            matches!(outcome, Err(TaskError::Panicked(_))),
            "{outcome:?}"
        );
        assert_eq!(next.await.unwrap(), 5);
        let read = looper.with(value.exclusive()).post(|value| *value).unwrap();
        assert_eq!(read.await.unwrap(), 2);
    });
}

#[test]
fn a_task_of_the_world_that_is_cancelled_holds_up_no_looper() {
    everywhere(|| async {
        let (controller, log) = (controller(1), Log::default());
        let (begun, looper) = (controller.looper(), controller.looper());
        let held = hold(&begun).await;
        let world = stop(&controller, &log, 1);
        let halted = note(&looper, &log, 2);
        yield_now().await;
        assert!(world.cancel());
        halted.await.unwrap();
        assert_eq!(log.take(), [2]);
        assert!(!controller.status().is_world_stopped);
        held.end().await;
        let outcome = world.await;
        assert!(matches!(outcome, Err(TaskError::Cancelled)), "{outcome:?}");
    });
}

#[test]
fn each_controller_has_a_world_of_its_own() {
    everywhere(|| async {
        let (one, two) = (controller(1), controller(1));
        let held = hold(&one.looper()).await;
        let waits = one.stop_the_world(|_| 1).unwrap();
        assert_eq!(two.stop_the_world(|_| 2).unwrap().await.unwrap(), 2);
        assert_eq!(two.looper().post(|| 3).unwrap().await.unwrap(), 3);
        assert!(!waits.is_finished());
        held.end().await;
        assert_eq!(waits.await.unwrap(), 1);
    });
}

#[test]
fn a_world_may_await_the_results_of_another_controller() {
    on_threads(async {
        let (one, two) = (controller(1), controller(1));
        let looper = two.looper();
        let world = one.stop_the_world(move |_| {
            let posted = looper.post(|| 3).unwrap();
            greenroom::Runtime::current().block_on(posted).unwrap()
        });
        assert_eq!(world.unwrap().await.unwrap(), 3);
    });
}

#[test]
fn the_world_ends_what_would_wait_for_it() {
    on_threads(async {
        let controller = controller(2);
        let looper = controller.looper_named("looper");
        let value = controller.guarded_named("value", 1);
        let (lock, other) = (controller.lock(), controller.clone());
        let (own, seen) = (looper.clone(), value.clone());
        let world = controller.stop_the_world(move |_| {
            let runtime = Runtime::current();
            let mine = runtime.block_on(own.post(|| 1).unwrap());
            let next = runtime.block_on(other.stop_the_world(|_| 1).unwrap());
            let closed = runtime.block_on(seen.close());
            runtime.block_on(lock.close());
            runtime.block_on(own.close());
            runtime.block_on(other.shutdown());
            (
                deadlock(mine),
                deadlock(next),
                closed.unwrap_err().to_string(),
            )
        });
        let (mine, next, closed) = world.unwrap().await.unwrap();
        assert_eq!(
            mine,
            "the world waits for looper, which waits for the world"
        );
        assert_eq!(
            next,
            "the world waits for a task of its own, which waits for the world"
        );
        assert_eq!(closed, "the world already holds or requests value");
        assert_eq!(value.close().await, Ok(1));
        controller.shutdown().await;
    });
}

#[test]
fn the_world_reaches_a_value_whose_close_was_given_up() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let value = controller.guarded(1);
        let held = hold_with(&looper, &value).await;
        let mut closes = Box::pin(value.close());
        assert!(poll_here(&mut closes).await.is_pending());
        drop(closes);
        held.end().await;
        let seen = value.clone();
        let world = controller.stop_the_world(move |world| {
            *world.get_mut(&seen).unwrap() += 1;
            world.with(seen.shared(), |value| *value)
        });
        assert_eq!(world.unwrap().await.unwrap(), Ok(2));
        let error = lock_error(looper.with(value.shared()).post(|_| ()).unwrap().await);
        assert!(matches!(error, LockError::Closed(_)), "{error}");
    });
}
