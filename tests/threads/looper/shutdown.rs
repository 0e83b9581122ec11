//! How loopers end with their runtime: what runs within the grace, and what becomes of the rest.

use super::*;

use greenroom::time::sleep;

use crate::support::{Drops, drive, poll_here, until};

/// Ends a runtime without grace on another thread.
fn end(runtime: &Runtime) -> std::thread::JoinHandle<()> {
    let runtime = runtime.clone();
    std::thread::spawn(move || {
        drive(runtime.shutdown());
    })
}

fn blocked(looper: &Looper) -> (Gate, Posted<()>) {
    let (begun, until) = (Gate::default(), Gate::default());
    let (begins, ends) = (begun.clone(), until.clone());
    let posted = looper.post(move || {
        begins.open();
        ends.pass();
    });
    begun.pass();
    (until, posted.unwrap())
}

fn runtime(workers: usize) -> Runtime {
    let runtime = Runtime::builder().workers(workers).on_fault(|_| {});
    runtime.grace(Duration::ZERO).build().unwrap()
}

#[test]
fn tasks_that_run_when_the_runtime_ends_have_results_and_ready_ones_do_not_start() {
    within(WATCH, || {
        let runtime = runtime(3);
        let builder = Controller::builder().lanes(2).on(&runtime);
        let controller = builder.build().unwrap();
        let loopers = [(); 4].map(|()| controller.looper());
        let running = [blocked(&loopers[0]), blocked(&loopers[1])];
        let ready = [2, 3].map(|at| loopers[at].post(|| ()).unwrap());
        let behind = loopers[0].post(|| ()).unwrap();
        assert!(behind.cancel());
        let ends = end(&runtime);
        for posted in ready {
            let outcome = drive(posted);
            assert!(matches!(outcome, Err(TaskError::NotStarted)), "{outcome:?}");
        }
        assert_eq!(loopers[0].len(), 1);
        for (until, posted) in running {
            until.open();
            drive(posted).unwrap();
        }
        ends.join().unwrap();
        assert!(loopers.iter().all(|it| it.is_closed() && it.is_empty()));
    });
}

#[test]
fn a_world_that_runs_when_the_runtime_ends_has_its_result() {
    within(WATCH, || {
        let runtime = runtime(3);
        let builder = Controller::builder().lanes(2).on(&runtime);
        let controller = builder.build().unwrap();
        let (first, second) = (controller.looper(), controller.looper());
        let (goes_on, before) = blocked(&first);
        let (begun, ends) = (Gate::default(), Gate::default());
        let (begins, waits) = (begun.clone(), ends.clone());
        let world = controller.stop_the_world(move |_| {
            begins.open();
            waits.pass();
            7
        });
        let halted = second.post(|| ()).unwrap();
        until(|| controller.status().ready == 1);
        goes_on.open();
        drive(before).unwrap();
        begun.pass();
        let over = end(&runtime);
        let outcome = drive(halted);
        assert!(matches!(outcome, Err(TaskError::NotStarted)), "{outcome:?}");
        ends.open();
        assert_eq!(drive(world.unwrap()).unwrap(), 7);
        over.join().unwrap();
        drive(controller.shutdown());
    });
}

#[test]
fn a_controller_without_handles_and_loopers_leaves_nothing_behind() {
    within(WATCH, || {
        let (runtime, drops) = (runtime(2), Drops::default());
        let builder = Controller::builder().on(&runtime);
        let controller = builder.build().unwrap();
        let looper = controller.looper();
        let value = controller.guarded(drops.one());
        assert_eq!(looper.attempt(value.shared()), Ok(true));
        let captured = drops.one();
        let last = looper.post(move || drop(captured)).unwrap();
        drop((controller, value, looper));
        drive(last).unwrap();
        until(|| drops.count() == 2);
        until(|| runtime.stats().tasks == 0);
    });
}

#[test]
fn tasks_that_were_accepted_run_within_the_grace_of_the_runtime() {
    within(WATCH, || {
        for seed in 0..SEEDS {
            let builder = Runtime::builder().policy(Simulated::new(seed));
            let builder = builder.grace(Duration::from_secs(10)).on_fault(|_| {});
            let runtime = builder.build().unwrap();
            let builder = Controller::builder().on(&runtime).lanes(1);
            let controller = builder.build().unwrap();
            let (keeps, waits) = (controller.looper(), controller.looper());
            let value = controller.guarded(1);
            assert_eq!(keeps.attempt(value.exclusive()), Ok(true));
            let sleeps = keeps.spawn(async { sleep(Duration::from_secs(5)).await });
            let queued = keeps.post(|| 5).unwrap();
            let waiting = waits.with(value.shared()).post(|value| *value).unwrap();
            let world = controller.stop_the_world(|_| 6).unwrap();
            runtime.block_on(runtime.shutdown());
            let outcomes = (drive(queued), drive(waiting), drive(world));
            let (Ok(5), Ok(1), Ok(6)) = outcomes else {
                panic!("seed {seed}: {outcomes:?}");
            };
            drive(sleeps.unwrap()).unwrap();
            assert!(keeps.is_closed() && keeps.post(|| ()).is_err());
        }
    });
}

#[test]
fn what_is_left_after_the_grace_is_cancelled_or_did_not_start() {
    within(WATCH, || {
        for seed in 0..SEEDS {
            let drops = Drops::default();
            let builder = Runtime::builder().policy(Simulated::new(seed));
            let builder = builder.grace(Duration::from_secs(1)).on_fault(|_| {});
            let runtime = builder.build().unwrap();
            let builder = Controller::builder().on(&runtime).lanes(2);
            let controller = builder.build().unwrap();
            let (holds, waits) = (controller.looper(), controller.looper());
            let value = controller.guarded(drops.one());
            let held = runtime.block_on(hold_with(&holds, &value));
            let captured = drops.one();
            let queued = holds.post(move || drop(captured)).unwrap();
            let captured = drops.one();
            let waiting = waits.with(value.shared());
            let waiting = waiting.post(move |_| drop(captured)).unwrap();
            let captured = drops.one();
            let world = controller.stop_the_world(move |_| drop(captured)).unwrap();
            let limited = waits
                .lock_timeout(Duration::from_secs(9))
                .post(|| ())
                .unwrap();
            let mut closes = Box::pin(holds.close());
            runtime.block_on(async {
                assert!(poll_here(&mut closes).await.is_pending());
                Runtime::current().shutdown().await;
            });
            let suspended = drive(held.posted);
            let is_cancelled = matches!(suspended, Err(TaskError::Cancelled));
            assert!(is_cancelled, "seed {seed}: {suspended:?}");
            for posted in [queued, waiting, world, limited] {
                let outcome = drive(posted);
                let is_left = matches!(outcome, Err(TaskError::NotStarted));
                assert!(is_left, "seed {seed}: {outcome:?}");
            }
            assert_eq!(drops.count(), 3);
            drive(closes);
            drive(controller.shutdown());
            drop(drive(value.close()).unwrap());
            assert_eq!((drops.count(), controller.status().locks_held), (4, 0));
        }
    });
}

#[test]
fn a_running_task_that_suspends_after_the_end_of_the_runtime_is_cancelled() {
    within(WATCH, || {
        let (runtime, drops) = (runtime(2), Drops::default());
        let builder = Controller::builder().on(&runtime);
        let controller = builder.build().unwrap();
        let looper = controller.looper();
        let (begun, goes_on) = (Gate::default(), Gate::default());
        let (begins, waits, captured) = (begun.clone(), goes_on.clone(), drops.one());
        let task = looper.spawn(async move {
            begins.open();
            waits.pass();
            std::future::pending::<()>().await;
            drop(captured);
        });
        begun.pass();
        let queued = looper.post(|| ()).unwrap();
        let ends = end(&runtime);
        drive(queued).unwrap_err();
        goes_on.open();
        let outcome = drive(task.unwrap());
        assert!(matches!(outcome, Err(TaskError::Cancelled)), "{outcome:?}");
        assert_eq!(drops.count(), 1);
        ends.join().unwrap();
    });
}
