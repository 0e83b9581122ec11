//! The time between the call of a shutdown and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use greenroom::{Context, Fault, Reply, Runtime, SpawnProblem, actor, spawn};

use crate::support::{
    Gate, Home, Log, WATCH, burn, drive, in_every_home, on_threads, poll_once, until, within,
};

// Uses the threads of another runtime.
on_threads!(a_shutdown_ends_before_its_grace_when_all_actors_have_ended);

in_every_home!(
    actors_finish_their_accepted_messages,
    actors_that_wait_for_each_other_finish,
    plain_tasks_run_until_the_last_actor_has_ended,
    deadlines_fire_during_the_grace,
    blocking_calls_are_made_during_the_grace,
    spawns_are_refused_during_the_grace,
);

/// Starts a shutdown and returns its future.
fn begin(runtime: &Runtime) -> impl Future<Output = greenroom::ShutdownReport> {
    let mut shutdown = Box::pin(runtime.shutdown());
    assert!(poll_once(&mut shutdown).is_pending());
    shutdown
}

fn actors_finish_their_accepted_messages(home: &Home) {
    let held = home.hold();
    let counters: Vec<_> = (0..10)
        .map(|_| {
            home.spawn(actor(|mut cx: Context<u32>| async move {
                let mut sum = 0;
                while let Some(n) = cx.recv().await {
                    sum += n;
                    // So that the actor needs many turns.
                    greenroom::yield_now().await;
                }
                sum
            }))
        })
        .collect();
    let many = home.many(1000) as u32;
    for counter in &counters {
        (0..many).for_each(|_| counter.tell(1).unwrap());
    }
    let shutdown = begin(&home.runtime);
    drop(held);
    let report = drive(shutdown);
    assert_eq!(
        (report.ended, report.cancelled, report.unhandled),
        (10, 0, 0)
    );
    for counter in counters {
        assert_eq!(drive(counter.join()).unwrap(), many);
    }
}

fn actors_that_wait_for_each_other_finish(home: &Home) {
    // Each actor asks the last one for every message that it has.
    let last = home.spawn(actor(|mut cx: Context<Reply<u32>>| async move {
        while let Some(reply) = cx.recv().await {
            reply.send(1);
        }
        0
    }));
    let address = last.address();
    let held = home.hold();
    let asker = home.spawn(actor(|mut cx: Context<u32>| async move {
        let mut sum = 0;
        while let Some(n) = cx.recv().await {
            sum += n;
            // The last actor is stopped too, and answers the asks that it accepted before.
            match address.ask(|reply| reply).await {
                Ok(answer) => sum += answer,
                Err(error) => assert_eq!(
                    error,
                    greenroom::AskError::Closed(greenroom::AskDetail::default())
                ),
            }
        }
        sum
    }));
    (0..10).for_each(|_| asker.tell(1).unwrap());
    let shutdown = begin(&home.runtime);
    drop(held);
    let report = drive(shutdown);
    assert_eq!(
        (report.ended, report.cancelled, report.unhandled),
        (2, 0, 0)
    );
    assert!(drive(asker.join()).unwrap() >= 10);
}

fn plain_tasks_run_until_the_last_actor_has_ended(home: &Home) {
    let (stopped, answer, gone) = (Gate::default(), Gate::default(), Gate::default());
    let (opens, waits) = (stopped.clone(), answer.clone());
    let last = home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
        opens.open();
        // The actor can only end with the help of a plain task.
        waits.wait().await;
    }));
    let guard = crate::support::OpenOnDrop(gone.clone());
    let helper = home.spawn_task(async move {
        let _guard = guard;
        stopped.wait().await;
        for _ in 0..100 {
            greenroom::yield_now().await;
        }
        answer.open();
        std::future::pending::<()>().await;
    });
    let report = home.block_on(home.runtime.shutdown());
    assert_eq!((report.ended, report.cancelled), (1, 0));
    drive(last.join()).unwrap();
    assert!(
        gone.is_open(),
        "the helper is cancelled after the last actor has ended"
    );
    assert!(drive(helper.fallible()).is_none());
}

fn deadlines_fire_during_the_grace(home: &Home) {
    let sleepy = home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
        greenroom::time::sleep(Duration::from_millis(3)).await;
        42
    }));
    let report = home.block_on(home.runtime.shutdown());
    assert_eq!((report.ended, report.cancelled), (1, 0));
    assert_eq!(drive(sleepy.join()).unwrap(), 42);
}

fn blocking_calls_are_made_during_the_grace(home: &Home) {
    let reader = home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
        greenroom::unblock(|| 42).await
    }));
    let report = home.block_on(home.runtime.shutdown());
    assert_eq!((report.ended, report.cancelled), (1, 0));
    assert_eq!(drive(reader.join()).unwrap(), 42);
}

fn spawns_are_refused_during_the_grace(home: &Home) {
    let log = Log::default();
    let found = log.clone();
    let inquisitive = home.spawn(actor(|mut cx: Context<()>| async move {
        while cx.recv().await.is_some() {}
        let never = |_cx: Context<()>| async { unreachable!("the runtime is shutting down") };
        let late = spawn!(never(_));
        found.add(late.is_closed());
        found.add(matches!(late.join().await, Err::<(), _>(Fault::NotStarted)));
        let refused = actor(never).try_spawn().map(drop).unwrap_err();
        found.add(refused.problem() == SpawnProblem::ShutDown);
        found.add(greenroom::spawn(async {}).fallible().await.is_none());
        found.add(Runtime::current().spawn_pinned("late").is_err());
    }));
    let report = home.block_on(home.runtime.shutdown());
    assert_eq!((report.ended, report.cancelled), (1, 0));
    drive(inquisitive.join()).unwrap();
    assert_eq!(log.take(), [true; 5]);
}

fn a_shutdown_ends_before_its_grace_when_all_actors_have_ended(home: &Home) {
    let runtime = Runtime::builder()
        .workers(1)
        .grace(Duration::MAX)
        .build()
        .unwrap();
    runtime.spawn(std::future::pending::<()>()).detach();
    let obedient = spawn!(
        |mut cx: Context<()>| async move { while cx.recv().await.is_some() {} },
        on = &runtime
    );
    // The watchdog is the assertion: `Duration::MAX` never passes.
    let report = home.block_on(runtime.shutdown());
    assert_eq!(report.ended, 1);
    drop(obedient);
}

/// A shutdown takes what is queued for stuck after this time, also if the whole machine has stopped.
const STANDS_STILL: Duration = Duration::from_millis(500);

/// Checks that all ran at a shutdown, unless it took so long that the machine may have stopped.
#[track_caller]
fn assert_all_ran(runs: &AtomicUsize, expected: usize, begun: Instant) {
    let stood = begun.elapsed() >= STANDS_STILL;
    let runs = runs.load(Ordering::SeqCst);
    assert!(runs == expected || stood, "{runs} of {expected}");
}

#[test]
fn queued_tasks_run_at_a_shutdown_without_grace() {
    within(WATCH, || {
        let homes = [|| Home::workers(1), Home::pinned];
        for _ in 0..20 {
            for home in homes {
                let home = home();
                let runs = Arc::new(AtomicUsize::new(0));
                let held = home.hold();
                for _ in 0..1000 {
                    let runs = runs.clone();
                    home.spawn_task(async move { runs.fetch_add(1, Ordering::SeqCst) })
                        .detach();
                }
                // Drops the last clone.
                let closing = std::thread::spawn(move || drop(home));
                let begun = Instant::now();
                drop(held);
                closing.join().unwrap();
                assert_all_ran(&runs, 1000, begun);
            }
        }
    });
}

#[test]
fn queued_tasks_run_at_a_shutdown_while_two_workers_steal_them() {
    within(WATCH, || {
        for _ in 0..300 {
            let runtime = Runtime::builder()
                .workers(2)
                .grace(Duration::ZERO)
                .build()
                .unwrap();
            let runs = Arc::new(AtomicUsize::new(0));
            for _ in 0..500 {
                let runs = runs.clone();
                runtime
                    .spawn(async move { runs.fetch_add(1, Ordering::SeqCst) })
                    .detach();
            }
            let begun = Instant::now();
            drop(runtime);
            assert_all_ran(&runs, 500, begun);
        }
    });
}

#[test]
fn tasks_queued_by_a_worker_run_at_a_shutdown() {
    within(WATCH, || {
        for workers in [1, 2] {
            for _ in 0..100 {
                let runtime = Runtime::builder().workers(workers).build().unwrap();
                let runs = Arc::new(AtomicUsize::new(0));
                let counter = runs.clone();
                // In the ring, in the LIFO slot, and in the injector after the overflow.
                drive(runtime.spawn(async move {
                    for _ in 0..600 {
                        let runs = counter.clone();
                        greenroom::spawn(async move { runs.fetch_add(1, Ordering::SeqCst) })
                            .detach();
                    }
                }));
                let begun = Instant::now();
                drop(runtime);
                assert_all_ran(&runs, 600, begun);
            }
        }
    });
}

#[test]
fn queued_tasks_run_at_a_shutdown_however_long_they_take() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(1)
            .grace(Duration::ZERO)
            .build()
            .unwrap();
        let ends = Log::default();
        ends.add(Instant::now());
        for _ in 0..40 {
            let ends = ends.clone();
            // Together they take longer than a shutdown waits for a thread.
            let turn = move || {
                burn(Duration::from_millis(50));
                ends.add(Instant::now());
            };
            runtime.spawn(async move { turn() }).detach();
        }
        drop(runtime);
        let mut ends = ends.take();
        let ran = ends.len() - 1;
        ends.push(Instant::now());
        let stood = ends
            .windows(2)
            .any(|pair| pair[1] - pair[0] >= STANDS_STILL);
        assert!(ran == 40 || stood, "{ran}");
    });
}

#[test]
fn senders_that_never_stop_do_not_delay_a_shutdown() {
    within(WATCH, || {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().unwrap();
            let counters: Vec<_> = (0..4)
                .map(|_| {
                    spawn!(
                        |mut cx: Context<u32>| async move {
                            let mut handled = 0_usize;
                            while cx.recv().await.is_some() {
                                handled += 1;
                            }
                            handled
                        },
                        on = &runtime
                    )
                })
                .collect();
            let accepted: Vec<_> = (0..3)
                .map(|_| {
                    let addresses: Vec<_> = counters.iter().map(|c| c.address()).collect();
                    std::thread::spawn(move || {
                        let mut accepted = 0;
                        // Until all actors refuse messages.
                        while addresses.iter().filter(|to| to.tell(1).is_ok()).count() > 0 {
                            accepted += 1;
                        }
                        accepted
                    })
                })
                .collect();
            until(|| counters.iter().all(|counter| !counter.is_closed()));
            let report = drive(runtime.shutdown());
            let senders: usize = accepted
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum();
            let handled: usize = counters
                .into_iter()
                .map(|counter| drive(counter.join()).unwrap())
                .sum();
            assert_eq!(
                (report.ended, report.cancelled, report.unhandled),
                (4, 0, 0)
            );
            // A round in which some actors refused counts once, so at least as many messages were
            // handled.
            assert!(handled >= senders);
        }
    });
}

#[test]
fn a_shutdown_continues_when_its_future_is_dropped() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let gone = Gate::default();
        let guard = crate::support::OpenOnDrop(gone.clone());
        runtime
            .spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            })
            .detach();
        let mut shutdown = Box::pin(runtime.shutdown());
        assert!(!gone.is_open());
        let _ = poll_once(&mut shutdown);
        drop(shutdown);
        gone.pass();
        // Dropping an unpolled shutdown does nothing.
        let other = Runtime::builder().workers(1).build().unwrap();
        drop(other.shutdown());
        assert_eq!(drive(other.spawn(async { 42 })), 42);
    });
}
