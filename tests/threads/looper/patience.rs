//! Limits for waits: `within` and `aging`.

use super::*;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_task_whose_lock_is_not_granted_in_time_does_not_run() {
    simulated(|| async {
        let controller = controller(1);
        let (keeps, waits) = (controller.looper(), controller.looper_named("waits"));
        let value = controller.guarded_named("value", 0);
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        let begun = Instant::now();
        let late = waits.lock_timeout(SECOND).with(value.exclusive());
        let late = late.post(|value| *value += 1).unwrap();
        let next = note(&waits, &Log::default(), 1);
        let error = lock_error(late.await);
        assert_eq!(error.to_string(), "waits did not get value in time");
        assert_eq!(rounded(begun.elapsed()), SECOND);
        next.await.unwrap();
        keeps.unlock(&value).unwrap();
        assert_eq!(value.close().await, Ok(0));
    });
}

/// Returns a time without that of the turns, each of which takes a little virtual time.
fn rounded(time: Duration) -> Duration {
    Duration::from_millis((time.as_micros() as u64 + 500) / 1000)
}

#[test]
fn the_error_names_the_lock_of_the_set_that_was_not_granted() {
    simulated(|| async {
        let controller = controller(1);
        let (keeps, waits) = (controller.looper(), controller.looper_named("waits"));
        let free = controller.lock_named("free");
        let taken = controller.lock_named("taken");
        assert_eq!(keeps.attempt(taken.exclusive()), Ok(true));
        let set = waits
            .lock_timeout(SECOND)
            .with((taken.shared(), free.exclusive()));
        let error = lock_error(set.post(|_| ()).unwrap().await);
        assert_eq!(error.to_string(), "waits did not get taken in time");
        // What it had of the set was given back.
        assert_eq!(keeps.attempt(free.exclusive()), Ok(true));
    });
}

#[test]
fn a_task_that_is_not_the_next_one_in_time_does_not_run_and_holds_up_no_other() {
    simulated(|| async {
        let controller = controller(1);
        let looper = controller.looper_named("looper");
        let held = hold(&looper).await;
        let late = looper.lock_timeout(SECOND).post(|| ()).unwrap();
        let log = Log::default();
        let behind = note(&looper, &log, 1);
        assert_eq!(looper.len(), 3);
        let error = lock_error(late.await);
        assert_eq!(error.to_string(), "looper did not get its turn in time");
        assert_eq!(looper.len(), 2);
        held.end().await;
        behind.await.unwrap();
        assert_eq!(log.take(), [1]);
    });
}

#[test]
fn a_task_that_was_granted_its_locks_in_time_runs_however_late() {
    simulated(|| async {
        let controller = controller(1);
        let (first, second) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let held = hold(&first).await;
        let world = controller.stop_the_world(|_| ()).unwrap();
        let halted = second.lock_timeout(SECOND).with(value.shared());
        let halted = halted.post(|value| *value).unwrap();
        sleep(SECOND * 5).await;
        assert!(!halted.is_finished());
        held.end().await;
        world.await.unwrap();
        assert_eq!(halted.await.unwrap(), 1);
    });
}

#[test]
fn no_time_at_all_is_enough_for_locks_that_are_free() {
    everywhere(|| async {
        let controller = controller(1);
        let (looper, keeps) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        let now = looper.lock_timeout(Duration::ZERO).with(value.exclusive());
        assert_eq!(now.post(|value| *value).unwrap().await.unwrap(), 1);
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        let late = looper.with(value.shared()).lock_timeout(Duration::ZERO);
        let error = lock_error(late.post(|value| *value).unwrap().await);
        assert!(matches!(error, LockError::TimedOut(_)), "{error}");
    });
}

#[test]
fn an_endless_limit_is_none() {
    everywhere(|| async {
        let controller = controller(1);
        let (looper, keeps) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        let waits = looper.lock_timeout(Duration::MAX).with(value.shared());
        let waits = waits.spawn(|value| async move { *value }).unwrap();
        wait_for(|| controller.status().waiting == 1).await;
        keeps.unlock(&value).unwrap();
        assert_eq!(waits.await.unwrap(), 1);
    });
}

#[test]
fn a_cancelled_task_is_not_timed_out() {
    simulated(|| async {
        let controller = controller(1);
        let (looper, keeps) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        let posts = || looper.lock_timeout(SECOND).with(value.shared());
        let waits = [(); 2].map(|()| posts().post(|_| ()).unwrap());
        for waits in waits {
            assert!(waits.cancel());
            let outcome = waits.await;
            assert!(matches!(outcome, Err(TaskError::Cancelled)), "{outcome:?}");
        }
        sleep(SECOND * 2).await;
        keeps.unlock(&value).unwrap();
        let read = posts().post(|value| *value).unwrap();
        assert_eq!(read.await.unwrap(), 1);
    });
}

#[test]
fn limits_of_many_tasks_end_each_in_its_time() {
    simulated(|| async {
        let controller = controller(1);
        let keeps = controller.looper();
        let value = controller.guarded(1);
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        let begun = Instant::now();
        let log = Log::default();
        let loopers = [3, 1, 2].map(|seconds| (controller.looper(), seconds));
        let waits = loopers.each_ref().map(|(looper, seconds)| {
            let late = looper.lock_timeout(SECOND * *seconds).with(value.shared());
            let (late, log) = (late.post(|_| ()).unwrap(), log.clone());
            greenroom::spawn(async move {
                lock_error(late.await);
                log.add(rounded(begun.elapsed()));
            })
        });
        for wait in waits {
            wait.await;
        }
        assert_eq!(log.take(), [SECOND, SECOND * 2, SECOND * 3]);
    });
}

#[test]
fn nothing_is_left_to_wait_for_after_a_limit_was_met() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let controller = Controller::builder().on(&runtime).build().unwrap();
        let looper = controller.looper();
        let value = controller.guarded(1);
        let hour = looper.lock_timeout(SECOND * 3600).with(value.shared());
        let read = hour.post(|value| *value).unwrap();
        assert_eq!(crate::support::drive(read).unwrap(), 1);
        crate::support::drive(runtime.quiescent());
        assert_eq!(controller.status().ready, 0);
    });
}

#[test]
fn a_limit_from_a_thread_outside_of_a_simulation_is_one_of_virtual_time() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .policy(Simulated::new(1))
            .build()
            .unwrap();
        let controller = Controller::builder().on(&runtime).build().unwrap();
        let (looper, keeps) = (controller.looper(), controller.looper());
        let value = controller.guarded(1);
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        let waits = looper.lock_timeout(SECOND).with(value.shared());
        let waits = waits.post(|value| *value).unwrap();
        runtime.block_on(async {
            sleep(SECOND / 2).await;
            assert!(!waits.is_finished());
            keeps.unlock(&value).unwrap();
            assert_eq!(waits.await.unwrap(), 1);
        });
    });
}

#[test]
fn by_default_exclusive_requests_of_a_busy_lock_keep_shared_ones_waiting() {
    starves(0, true);
}

#[test]
fn aging_lets_the_lowest_request_of_a_lock_have_every_nth_grant() {
    starves(4, false);
}

/// Lets two loopers take a lock in turns, and a third one wait for it with a lower rank.
fn starves(aging: u32, starves: bool) {
    simulated(move || async move {
        let builder = Controller::builder().lanes(1).aging(aging);
        let controller = builder.priorities(3).build().unwrap();
        let value = controller.guarded(0_u32);
        let over = Arc::new(AtomicBool::new(false));
        let writers = [(); 2].map(|()| controller.looper());
        let reader = controller.looper();
        let keeps = controller.looper();
        assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
        for writer in &writers {
            write_again(writer, &value, &over);
        }
        let read = reader.with(value.shared()).post(|writes| *writes).unwrap();
        keeps.unlock(&value).unwrap();
        sleep(SECOND / 1000).await;
        assert_eq!(!read.is_finished(), starves);
        over.store(true, Ordering::SeqCst);
        let writes = read.await.unwrap();
        assert!(starves || writes < 4, "{writes} writes");
    });
}

/// Posts a task that takes the value and, until it is over, posts itself again.
fn write_again(looper: &Looper, value: &Guarded<u32>, over: &Arc<AtomicBool>) {
    let own = (looper.clone(), value.clone(), over.clone());
    let again = move |writes: &mut u32| {
        *writes += 1;
        if !own.2.load(Ordering::SeqCst) {
            write_again(&own.0, &own.1, &own.2);
        }
    };
    drop(looper.priority(1).with(value.exclusive()).post(again));
}

#[test]
fn aging_lets_the_lowest_looper_have_every_nth_turn() {
    for (aging, before) in [(0, 9), (4, 3)] {
        simulated(move || async move {
            let builder = Controller::builder().lanes(1).aging(aging);
            let controller = builder.priorities(1).build().unwrap();
            let (high, low) = (controller.looper(), controller.looper());
            let log: Log<u32> = Log::default();
            let stopped = controller.stop_the_world({
                let (high, low, log) = (high.clone(), low.clone(), log.clone());
                move |_| {
                    for number in 0..9 {
                        let log = log.clone();
                        drop(high.priority(1).post(move || log.add(number)));
                    }
                    drop(note(&low, &log, 100));
                }
            });
            stopped.unwrap().await.unwrap();
            controller.shutdown().await;
            let order = log.take();
            let at = order.iter().position(|&number| number == 100);
            assert!(at.is_some_and(|at| at <= before), "{order:?}");
            assert_eq!(at == Some(9), aging == 0, "{order:?}");
        });
    }
}

#[test]
fn a_shared_lock_goes_to_those_who_wait_for_another_one_to_take_it() {
    simulated(|| async {
        let controller = controller(1);
        let [holds, keeps, shares] = [(); 3].map(|()| controller.looper());
        let lock = controller.lock();
        // No task begins until the world has run.
        let held = hold(&holds).await;
        let world = controller.stop_the_world(|_| ()).unwrap();
        let kept = keeps.with(lock.shared().keep()).post(|()| ()).unwrap();
        let shared = shares.lock_timeout(1000 * SECOND).with(lock.shared());
        let shared = shared.post(|()| 7).unwrap();
        assert_eq!(controller.status().waiting, 1);
        held.end().await;
        world.await.unwrap();
        kept.await.unwrap();
        assert_eq!(shared.await.unwrap(), 7);
    });
}

#[test]
fn posts_that_are_taken_together_have_their_effects_one_by_one() {
    simulated(|| async {
        let builder = Controller::builder().lanes(1).aging(2);
        let controller = builder.priorities(3).build().unwrap();
        let [keeps, writes, reads, fails, last] = [(); 5].map(|()| controller.looper());
        let (lock, other) = (controller.lock(), controller.lock());
        assert_eq!(keeps.attempt(lock.shared()), Ok(true));
        assert_eq!(fails.attempt(other.exclusive()), Ok(true));
        let log: Log<u32> = Log::default();
        // No lane waits for work yet, so these posts are taken together.
        let write = writes.with(lock.exclusive()).post(|()| ()).unwrap();
        let own = log.clone();
        let read = reads.with(lock.shared()).post(move |()| own.add(1));
        // It is granted the first lock, is refused because of the second, and gives the first back.
        let both = fails.priority(1).with((lock.shared(), other.shared()));
        let failed = both.post(|_| ()).unwrap();
        let noted = note(&last, &log, 2);
        read.unwrap().await.unwrap();
        noted.await.unwrap();
        assert!(matches!(
            failed.await,
            Err(TaskError::Lock(LockError::AlreadyHeld(_)))
        ));
        keeps.unlock(&lock).unwrap();
        write.await.unwrap();
        assert_eq!(log.take(), [1, 2]);
    });
}
