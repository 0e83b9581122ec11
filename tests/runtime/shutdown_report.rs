//! The report of a shutdown.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use greenroom::policy::TaskInfo;
use greenroom::{
    Context, Fault, Handle, Runtime, ShutdownReport, SpawnProblem, Warning, actor, spawn,
};

use crate::support::{
    Drops, Gate, Home, Log, WATCH, drive, elsewhere, in_every_home, poll_once, within,
};

/// Enough grace for actors that end at once; a test with actors that never end waits for all of it.
const SHORT: Duration = Duration::from_millis(200);

fn runtime(workers: usize, grace: Duration) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .grace(grace)
        .build()
        .unwrap()
}

/// Spawns an actor that ends when it is stopped.
fn obedient(home: &Home) -> Handle<(), ()> {
    home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
    }))
}

/// Spawns an actor that has begun, handles one message and then waits forever.
fn stubborn(home: &Home) -> Handle<Gate, ()> {
    let handle = home.spawn(actor(|mut cx: Context<Gate>| async move {
        if let Some(gate) = cx.recv().await {
            gate.open();
        }
        std::future::pending().await
    }));
    let begun = Gate::default();
    handle.tell(begun.clone()).unwrap();
    begun.pass();
    handle
}

/// Spawns an actor that has begun and is always ready.
fn restless(home: &Home) -> Handle<(), ()> {
    let begun = Gate::default();
    let here = begun.clone();
    let handle = home.spawn(actor(|cx: Context<()>| async move {
        let _cx = cx;
        here.open();
        loop {
            greenroom::yield_now().await;
        }
    }));
    begun.pass();
    handle
}

fn shut_down(home: &Home) -> ShutdownReport {
    home.block_on(home.runtime.shutdown())
}

in_every_home!(
    the_report_of_an_idle_runtime_is_all_zero,
    actors_that_ended_before_are_not_counted,
    actors_that_end_when_stopped_are_counted_as_ended,
    an_actor_that_panics_or_is_killed_is_not_counted_as_cancelled,
);

fn the_report_of_an_idle_runtime_is_all_zero(home: &Home) {
    home.spawn_task(std::future::pending::<()>()).detach();
    let report = shut_down(home);
    assert_eq!((report.ended, report.cancelled), (0, 0));
    assert_eq!((report.unhandled, report.left_behind), (0, 0));
}

fn actors_that_ended_before_are_not_counted(home: &Home) {
    for _ in 0..10 {
        drive(obedient(home).join()).unwrap();
    }
    assert_eq!(shut_down(home).ended, 0);
}

fn actors_that_end_when_stopped_are_counted_as_ended(home: &Home) {
    let actors: Vec<_> = (0..10).map(|_| obedient(home)).collect();
    let report = shut_down(home);
    assert_eq!((report.ended, report.cancelled), (10, 0));
    assert_eq!((report.unhandled, report.left_behind), (0, 0));
    for actor in actors {
        drive(actor.join()).unwrap();
    }
}

fn an_actor_that_panics_or_is_killed_is_not_counted_as_cancelled(home: &Home) {
    crate::support::keep_bombs_quiet();
    let fragile = home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
        panic!("bomb in the end");
    }));
    let victim = stubborn(home);
    let address = victim.address();
    // Kills the other actor when the shutdown stops this one.
    let killer = home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
        address.kill();
    }));
    let report = shut_down(home);
    assert_eq!((report.ended, report.cancelled), (3, 0));
    let fault: Result<(), _> = drive(fragile.join());
    assert!(matches!(fault, Err(Fault::Panicked(_))));
    assert!(matches!(drive(victim.join()), Err(Fault::Killed)));
    drive(killer.join()).unwrap();
}

/// Calls `test` again if it fails and has taken longer than a shutdown waits for a turn: the machine may
/// have stopped meanwhile, and then threads are left behind. A third failure counts.
fn unless_stopped(test: impl Fn()) {
    for _ in 0..2 {
        let begun = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(&test));
        match outcome {
            Err(_) if begun.elapsed() >= SHORT + Duration::from_millis(500) => {}
            Err(failure) => resume_unwind(failure),
            Ok(()) => return,
        }
    }
    test();
}

/// Runs the scenario in homes with a short grace.
fn brief_homes(scenario: fn(&Home)) {
    let homes: [fn() -> Home; 3] = [
        || Home::built(1, Runtime::builder().grace(SHORT)),
        || Home::built(2, Runtime::builder().grace(SHORT)),
        || Home::pinned_built(Runtime::builder().grace(SHORT)),
    ];
    for home in homes {
        unless_stopped(|| Home::watch(home, scenario));
    }
    for home in [Home::simulated, Home::simulated_pinned] {
        Home::watch_seeds(home, scenario);
    }
}

#[test]
fn actors_that_do_not_end_in_time_are_counted_as_cancelled_and_named() {
    brief_homes(|home| {
        let ended: Vec<_> = (0..3).map(|_| obedient(home)).collect();
        let cancelled = [stubborn(home), stubborn(home)];
        let report = shut_down(home);
        assert_eq!((report.ended, report.cancelled), (3, 2));
        let named: Vec<_> = report.cancelled_actors.iter().map(TaskInfo::id).collect();
        assert_eq!(named, [cancelled[0].id(), cancelled[1].id()]);
        assert_eq!((report.unhandled, report.left_behind), (0, 0));
        ended
            .into_iter()
            .for_each(|actor| drive(actor.join()).unwrap());
        for actor in cancelled {
            assert!(matches!(drive(actor.join()), Err(Fault::Cancelled)));
        }
    });
}

#[test]
fn an_actor_that_is_ready_when_the_grace_ends_is_counted_as_cancelled() {
    brief_homes(|home| {
        let actors = [restless(home), restless(home), restless(home)];
        let report = shut_down(home);
        assert_eq!((report.ended, report.cancelled), (0, 3));
        for actor in actors {
            assert!(matches!(drive(actor.join()), Err(Fault::Cancelled)));
        }
    });
}

#[test]
fn accepted_messages_that_were_not_handled_are_counted() {
    brief_homes(|home| {
        let drops = Drops::default();
        let stubborn = [stubborn(home), stubborn(home)];
        for (actor, messages) in stubborn.iter().zip([3, 4]) {
            (0..messages).for_each(|_| actor.tell(Gate::default()).unwrap());
        }
        // An actor that ends normally with unread messages, received in a batch and in the mailbox.
        let counted = drops.clone();
        let lazy = home.spawn(actor(
            |mut cx: Context<crate::support::Dropped>| async move {
                // The first message; the other messages have arrived when the actor is stopped.
                drop(cx.recv().await);
                while !cx.address().is_closed() {
                    greenroom::yield_now().await;
                }
                drop(cx.recv().await);
            },
        ));
        (0..7).for_each(|_| lazy.tell(counted.one()).unwrap());
        let report = shut_down(home);
        assert_eq!((report.ended, report.cancelled), (1, 2));
        assert_eq!(report.unhandled, 3 + 4 + 5);
        assert_eq!(drops.count(), 7);
    });
}

#[test]
fn the_counts_of_all_kinds_of_actors_add_up() {
    brief_homes(|home| {
        let before = obedient(home);
        drive(before.join()).unwrap();
        let obedient: Vec<_> = (0..5).map(|_| obedient(home)).collect();
        let stubborn: Vec<_> = (0..4).map(|_| stubborn(home)).collect();
        let restless: Vec<_> = (0..3).map(|_| restless(home)).collect();
        stubborn
            .iter()
            .for_each(|actor| actor.tell(Gate::default()).unwrap());
        restless.iter().for_each(|actor| actor.tell(()).unwrap());
        let report = shut_down(home);
        assert_eq!(report.ended, obedient.len());
        assert_eq!(report.cancelled, stubborn.len() + restless.len());
        assert_eq!(report.unhandled, stubborn.len() + restless.len());
        assert_eq!(report.left_behind, 0);
    });
}

/// Builds a runtime with 2 workers and three threads that user code blocks: a worker, a thread for
/// blocking calls, and a pinned thread. They continue when the gate opens.
fn held_threads(drops: &Drops) -> (Runtime, Gate) {
    let runtime = runtime(2, SHORT);
    let gate = Gate::default();
    let begun = [Gate::default(), Gate::default(), Gate::default()];
    let hold = |at: usize| {
        let (here, gate, dropped) = (begun[at].clone(), gate.clone(), drops.one());
        move || {
            let _dropped = dropped;
            here.open();
            gate.pass();
        }
    };
    let (on_worker, in_job, on_pinned) = (hold(0), hold(1), hold(2));
    let held = drops.one();
    runtime
        .spawn(async move {
            let _held = held;
            on_worker();
            std::future::pending::<()>().await;
        })
        .detach();
    runtime.block_on(async { greenroom::unblock(in_job).detach() });
    let held = drops.one();
    let pinned = runtime.spawn_pinned("pinned").unwrap();
    let held_on_pinned = move || async move {
        let _held = held;
        on_pinned();
        std::future::pending::<()>().await;
    };
    pinned.spawn(held_on_pinned).detach();
    begun.iter().for_each(Gate::pass);
    (runtime, gate)
}

#[test]
fn threads_that_user_code_blocks_are_left_behind_and_counted() {
    within(WATCH, || {
        let drops = Drops::default();
        let (runtime, gate) = held_threads(&drops);
        let actor = spawn!(
            |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
            on = &runtime
        );
        let report = runtime.block_on(runtime.shutdown());
        assert_eq!(
            (report.ended, report.cancelled, report.left_behind),
            (1, 0, 3)
        );
        drive(actor.join()).unwrap();
        assert_eq!(drops.count(), 0);
        // When they continue, they end and drop their tasks.
        gate.open();
        crate::support::until(|| drops.count() == 5);
    });
}

#[test]
fn dropping_the_last_clone_leaves_blocked_threads_behind() {
    within(WATCH, || {
        let drops = Drops::default();
        let (runtime, gate) = held_threads(&drops);
        drop(runtime);
        assert_eq!(drops.count(), 0);
        gate.open();
        crate::support::until(|| drops.count() == 5);
    });
}

#[test]
fn an_actor_that_blocks_its_worker_is_counted_as_cancelled() {
    within(WATCH, || {
        let runtime = runtime(1, SHORT);
        let (begun, gate) = (Gate::default(), Gate::default());
        let (here, held) = (begun.clone(), gate.clone());
        let actor = spawn!(
            |_cx: Context<()>| async move {
                here.open();
                held.pass();
                std::future::pending::<()>().await;
            },
            on = &runtime
        );
        begun.pass();
        let report = runtime.block_on(runtime.shutdown());
        assert_eq!(
            (report.ended, report.cancelled, report.left_behind),
            (0, 1, 1)
        );
        assert_eq!(report.cancelled_actors[0].id(), actor.id());
        let mut join = actor.join();
        assert!(
            poll_once(&mut join).is_pending(),
            "the actor is still in its turn"
        );
        gate.open();
        assert!(matches!(drive(join), Err(Fault::Cancelled)));
    });
}

#[test]
fn a_shutdown_that_takes_long_names_the_actors_that_it_waits_for() {
    for pinned in [false, true] {
        within(WATCH, move || {
            let (warnings, warned) = (Log::default(), Gate::default());
            let (log, warns) = (warnings.clone(), warned.clone());
            let builder = Runtime::builder()
                .grace(Duration::MAX)
                .on_warning(move |warning| {
                    log.add(warning.clone());
                    warns.open();
                });
            let home = match pinned {
                true => Home::pinned_built(builder),
                false => Home::built(1, builder),
            };
            let (_ends, stays) = (obedient(&home), stubborn(&home));
            let shutdown = elsewhere({
                let runtime = home.runtime.clone();
                move || drive(runtime.shutdown())
            });
            warned.pass();
            let Some(Warning::ShutdownWaits(actors)) = warnings.take().pop() else {
                panic!("it warns of what it waits for");
            };
            assert_eq!(actors.len(), 1);
            assert_eq!(actors[0].task.id(), stays.id());
            let text = Warning::ShutdownWaits(actors).to_string();
            assert!(
                text.starts_with("the shutdown waits for 1 actor: "),
                "{text}"
            );
            assert!(text.ends_with(", which waits"), "{text}");
            stays.kill();
            let report = shutdown.join();
            assert_eq!((report.ended, report.cancelled), (2, 0));
        });
    }
}

#[test]
fn a_second_shutdown_returns_the_same_report() {
    within(WATCH, || {
        let runtime = runtime(1, WATCH);
        let _actor = spawn!(
            |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
            on = &runtime
        );
        let first = runtime.block_on(runtime.shutdown());
        assert_eq!(first.ended, 1);
        assert_eq!(runtime.block_on(runtime.shutdown()), first);
        assert_eq!(drive(runtime.clone().shutdown()), first);
    });
}

#[test]
fn concurrent_shutdowns_return_the_same_report() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = runtime(workers, WATCH);
            let _actors: Vec<_> = (0..100)
                .map(|_| {
                    spawn!(
                        |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
                        on = &runtime
                    )
                })
                .collect();
            let reports: Vec<_> = std::thread::scope(|scope| {
                let call = || drive(runtime.shutdown());
                let threads = [scope.spawn(call), scope.spawn(call), scope.spawn(call)];
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect()
            });
            assert_eq!(reports[0].ended, 100);
            assert!(
                reports.iter().all(|report| *report == reports[0]),
                "{reports:?}"
            );
        }
    });
}

#[test]
fn spawns_after_the_shutdown_are_refused_with_the_reason() {
    within(WATCH, || {
        let runtime = runtime(1, SHORT);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        drive(runtime.shutdown());
        let never = |_cx: Context<()>| async { unreachable!("the runtime was shut down") };
        for handle in [
            spawn!(never(_), on = &runtime),
            spawn!(never(_), on = &pinned, capacity = 1, name = "late"),
        ] {
            assert!(handle.is_closed());
            assert!(handle.tell(()).is_err());
            drive(handle.closed());
            assert!(matches!(
                drive::<_>(handle.join()),
                Err::<(), _>(Fault::NotStarted)
            ));
        }
        for problem in [
            actor(never)
                .on(&runtime)
                .try_spawn()
                .map(drop)
                .unwrap_err()
                .problem(),
            actor(never)
                .on(&pinned)
                .try_spawn()
                .map(drop)
                .unwrap_err()
                .problem(),
        ] {
            assert_eq!(problem, SpawnProblem::ShutDown);
        }
        let error = runtime.spawn_pinned("late").unwrap_err();
        assert!(error.to_string().contains("shutting down"), "{error}");
        assert!(drive(runtime.spawn(async {}).fallible()).is_none());
        assert!(drive(pinned.spawn(|| async {}).fallible()).is_none());
        let error = drive(pinned.host(|| ())).map(drop).unwrap_err();
        assert!(matches!(error, greenroom::HostFault::Gone));
        let job = runtime.block_on(async { greenroom::unblock(|| ()).fallible().await });
        assert!(job.is_none());
        // The runtime still drives futures in `block_on`.
        assert_eq!(runtime.block_on(async { 42 }), 42);
    });
}
