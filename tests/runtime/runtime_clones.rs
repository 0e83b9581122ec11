//! Which clones of a runtime keep it alive, and the drop of the last one.

use std::sync::{Arc, Mutex};

use greenroom::{Context, Runtime, spawn};

use crate::support::{Drops, Gate, OpenOnDrop, WATCH, drive, inside, within};

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

/// Spawns a task that never ends and waits until it has begun. The gate opens when the task is
/// dropped.
fn endless(runtime: &Runtime) -> Gate {
    let (begun, gone) = (Gate::default(), Gate::default());
    let (here, opens) = (begun.clone(), OpenOnDrop(gone.clone()));
    runtime
        .spawn(async move {
            let _opens = opens;
            here.open();
            std::future::pending::<()>().await;
        })
        .detach();
    begun.pass();
    gone
}

#[test]
fn dropping_the_last_clone_ends_the_runtime_before_it_returns() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let gone = endless(&runtime);
            let clone = runtime.clone();
            drop(runtime);
            assert_eq!(drive(clone.spawn(async { 42 })), 42);
            assert!(!gone.is_open());
            drop(clone);
            assert!(gone.is_open());
        }
    });
}

#[test]
fn clones_from_current_do_not_keep_the_runtime_alive() {
    within(WATCH, || {
        let runtime = runtime(1);
        let gone = endless(&runtime);
        let in_block_on = runtime.block_on(async { Runtime::current() });
        let in_task = drive(runtime.spawn(async { Runtime::try_current().unwrap() }));
        let clones = [
            in_block_on.clone(),
            in_task.clone(),
            in_task.clone().clone(),
        ];
        drop(runtime);
        assert!(gone.is_open());
        for clone in clones.iter().chain([&in_block_on, &in_task]) {
            assert!(
                drive(clone.spawn(async {}).fallible()).is_none(),
                "the runtime is shut down"
            );
        }
    });
}

#[test]
fn addresses_handles_tasks_and_pinned_threads_do_not_keep_the_runtime() {
    within(WATCH, || {
        let runtime = runtime(1);
        let gone = endless(&runtime);
        let actor = spawn!(
            |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
            on = &runtime
        );
        let address = actor.address();
        let task = runtime.spawn(std::future::pending::<()>());
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let hosted = drive(pinned.host(|| 42)).unwrap();
        drop(runtime);
        assert!(gone.is_open());
        assert!(address.is_closed());
        assert!(drive(task.fallible()).is_none());
        assert!(drive(hosted.with(|number| *number)).is_err());
        assert!(drive(pinned.spawn(|| async {}).fallible()).is_none());
        drive(address.closed());
        // The actor may have had its last turn or not, but it has ended.
        let _ = drive(actor.join());
    });
}

/// Drops the last clone within `place`, and waits until the endless task is dropped.
fn dropped_within(workers: usize, place: impl FnOnce(&Runtime, Gate, Box<dyn FnOnce() + Send>)) {
    let runtime = runtime(workers);
    let gone = endless(&runtime);
    let dropped = Gate::default();
    let shared = Arc::new(Mutex::new(None));
    let take = shared.clone();
    let here = dropped.clone();
    let drop_it = Box::new(move || {
        drop(
            take.lock()
                .unwrap()
                .take()
                .expect("the last clone is in the slot"),
        );
        here.open();
    });
    let go = Gate::default();
    place(&runtime, go.clone(), drop_it);
    *shared.lock().unwrap() = Some(runtime);
    go.open();
    dropped.pass();
    gone.pass();
}

fn in_its_own_task(workers: usize) {
    within(WATCH, move || {
        let rest = Gate::default();
        let opens = OpenOnDrop(rest.clone());
        dropped_within(workers, |runtime, go, drop_it| {
            let task = runtime.spawn(async move {
                let _opens = opens;
                go.wait().await;
                drop_it();
                // The task's worker ends when it suspends.
                std::future::pending::<()>().await;
            });
            task.detach();
        });
        rest.pass();
    });
}

#[test]
fn the_last_clone_may_be_dropped_in_its_own_task_one_worker() {
    in_its_own_task(1);
}

#[test]
fn the_last_clone_may_be_dropped_in_its_own_task_two_workers() {
    in_its_own_task(2);
}

fn in_its_own_actor(workers: usize) {
    within(WATCH, move || {
        let rest = Gate::default();
        let opens = OpenOnDrop(rest.clone());
        let mut kept = None;
        dropped_within(workers, |runtime, go, drop_it| {
            let actor = spawn!(
                |mut cx: Context<()>| async move {
                    let _opens = opens;
                    go.wait().await;
                    drop_it();
                    cx.recv().await;
                    std::future::pending::<()>().await;
                },
                on = runtime
            );
            // The address is kept, so that only the shutdown ends the actor.
            kept = Some(actor);
        });
        rest.pass();
        drop(kept);
    });
}

#[test]
fn the_last_clone_may_be_dropped_in_its_own_actor_one_worker() {
    in_its_own_actor(1);
}

#[test]
fn the_last_clone_may_be_dropped_in_its_own_actor_two_workers() {
    in_its_own_actor(2);
}

#[test]
fn the_last_clone_may_be_dropped_inside_unblock() {
    within(WATCH, || {
        dropped_within(1, |runtime, go, drop_it| {
            let job = inside(runtime, || {
                greenroom::unblock(move || {
                    go.pass();
                    drop_it();
                })
            });
            job.detach();
        });
    });
}

#[test]
fn the_last_clone_may_be_dropped_on_its_own_pinned_thread() {
    within(WATCH, || {
        let rest = Gate::default();
        let opens = OpenOnDrop(rest.clone());
        dropped_within(1, |runtime, go, drop_it| {
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            pinned
                .spawn(move || async move {
                    let _opens = opens;
                    go.wait().await;
                    drop_it();
                    std::future::pending::<()>().await;
                })
                .detach();
        });
        rest.pass();
    });
}

#[test]
fn the_last_clone_may_be_dropped_in_a_task_of_another_runtime() {
    within(WATCH, || {
        let other = runtime(1);
        dropped_within(1, |_, go, drop_it| {
            other
                .spawn(async move {
                    go.wait().await;
                    drop_it();
                })
                .detach();
        });
        assert_eq!(drive(other.spawn(async { 42 })), 42);
    });
}

#[test]
fn a_clone_in_an_own_task_keeps_the_runtime_until_the_task_ends() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = runtime(workers);
            let gone = endless(&runtime);
            let (go, answer) = (Gate::default(), Gate::default());
            let (waits, answers, own) = (go.clone(), answer.clone(), runtime.clone());
            runtime
                .spawn(async move {
                    waits.wait().await;
                    own.spawn(async move { answers.open() }).await;
                })
                .detach();
            drop(runtime);
            assert!(!gone.is_open());
            go.open();
            answer.pass();
            gone.pass();
        }
    });
}

#[test]
fn the_last_clone_may_be_dropped_with_a_task_that_a_shutdown_cancels() {
    within(WATCH, || {
        for workers in [1, 2] {
            let drops = Drops::default();
            let runtime = runtime(workers);
            let (begun, dropped) = (Gate::default(), drops.one());
            let (here, own) = (begun.clone(), runtime.clone());
            let mut shutdown = Box::pin({
                let runtime = runtime.clone();
                async move { runtime.shutdown().await }
            });
            let task = runtime.spawn(async move {
                let _own = own;
                let _dropped = dropped;
                here.open();
                std::future::pending::<()>().await;
            });
            begun.pass();
            // The shutdown has begun and its future is dropped: the task's clone is the last one.
            let _ = crate::support::poll_once(&mut shutdown);
            drop((shutdown, runtime));
            assert!(drive(task.fallible()).is_none());
            assert_eq!(drops.count(), 1);
        }
    });
}

#[test]
fn block_on_of_an_uncounted_clone_observes_the_end_of_the_runtime() {
    within(WATCH, || {
        let runtime = runtime(1);
        let uncounted = runtime.block_on(async { Runtime::current() });
        let begun = Gate::default();
        let waits = begun.clone();
        let waiting = std::thread::spawn(move || {
            let task = uncounted.spawn(std::future::pending::<()>());
            let cancelled = uncounted.block_on(async {
                waits.open();
                task.fallible().await.is_none()
            });
            // The runtime is still current here, though it runs no tasks any more.
            let refused = uncounted.block_on(async { greenroom::spawn(async {}).fallible().await });
            (cancelled, refused.is_none())
        });
        begun.pass();
        drop(runtime);
        assert_eq!(waiting.join().unwrap(), (true, true));
    });
}
