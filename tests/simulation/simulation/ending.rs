//! The shutdown of a simulated runtime keeps the usual promises, in virtual time.

use std::future::pending;
use std::time::Duration;

use greenroom::policy::{Simulated, TaskInfo};
use greenroom::time::{Instant, sleep};
use greenroom::{Context, Fault, Runtime, actor, spawn, unblock, yield_now};

use super::{SEEDS, deaf, reads};
use crate::support::{DEEP, Drops};

fn simulated(seed: u64) -> Runtime {
    let builder = Runtime::builder().policy(Simulated::new(seed));
    builder.grace(Duration::from_secs(60)).build().unwrap()
}

#[test]
fn the_report_counts_ended_and_cancelled_actors() {
    for seed in SEEDS {
        let runtime = simulated(seed);
        let start = runtime.block_on(async { Instant::now() });
        let (ends, stays) = (
            actor(reads).on(&runtime).spawn(),
            actor(deaf).on(&runtime).spawn(),
        );
        for n in 0..3 {
            ends.tell(n).unwrap();
            stays.tell(n).unwrap();
        }
        let (report, after) = runtime.block_on(async {
            let report = runtime.shutdown().await;
            (report, start.elapsed())
        });
        assert_eq!((report.ended, report.cancelled), (1, 1));
        let cancelled: Vec<_> = report.cancelled_actors.iter().map(TaskInfo::id).collect();
        assert_eq!(cancelled, [stays.id()]);
        assert_eq!((report.unhandled, report.left_behind), (3, 0));
        assert!(
            after >= Duration::from_secs(60),
            "the grace must pass in virtual time"
        );
        let ended = runtime.block_on(async { (ends.join().await, stays.join().await) });
        assert!(
            matches!(ended, (Ok(()), Err(Fault::Cancelled))),
            "{ended:?}"
        );
    }
}

#[test]
fn a_task_that_awaits_the_shutdown_gets_its_report() {
    for seed in SEEDS {
        let runtime = simulated(seed);
        let drops = Drops::default();
        let (mut reports, one) = (None, drops.one());
        let task = runtime.spawn(async move {
            let report = Runtime::current().shutdown().await;
            let later = Runtime::current().shutdown().await;
            assert_eq!(report, later);
            drop(one);
            report
        });
        let actor = actor(reads).on(&runtime).spawn();
        reports.get_or_insert(runtime.block_on(task).ended);
        assert_eq!(reports, Some(1));
        assert_eq!(drops.count(), 1);
        runtime.block_on(actor.closed());
    }
}

#[test]
fn queued_tasks_run_and_waiting_tasks_are_cancelled_by_a_shutdown() {
    for seed in SEEDS {
        let runtime = simulated(seed);
        let (ran, dropped) = (Drops::default(), Drops::default());
        for _ in 0..5 {
            let (one, other) = (ran.one(), dropped.one());
            runtime.spawn(async move { drop(one) }).detach();
            let waits = async move {
                yield_now().await;
                pending::<()>().await;
                drop(other);
            };
            runtime.spawn(waits).detach();
        }
        drop(runtime);
        assert_eq!((ran.count(), dropped.count()), (5, 5));
    }
}

#[test]
fn spawns_are_refused_after_the_shutdown() {
    let runtime = simulated(1);
    runtime.block_on(runtime.shutdown());
    assert!(
        runtime
            .block_on(runtime.spawn(async {}).fallible())
            .is_none()
    );
    assert!(runtime.spawn_pinned("late").is_err());
    let late = actor(reads).on(&runtime).spawn();
    assert!(matches!(
        runtime.block_on(late.join()),
        Err(Fault::NotStarted)
    ));
    let job = runtime.block_on(async { unblock(|| {}).fallible().await });
    assert!(job.is_none());
    let start = runtime.block_on(async { Instant::now() });
    runtime.block_on(async { sleep(Duration::from_secs(3600)).await });
    assert!(runtime.block_on(async { start.elapsed() }) >= Duration::from_secs(3600));
}

#[test]
fn the_last_clone_may_be_dropped_in_a_task() {
    for seed in SEEDS {
        let runtime = simulated(seed);
        let drops = Drops::default();
        let not_counting = runtime.block_on(async { Runtime::current() });
        let (own, other, waits) = (drops.one(), drops.one(), drops.one());
        let task = not_counting.spawn(async move {
            drop(runtime);
            drop(own);
            pending::<()>().await;
            drop(other);
        });
        let reader = not_counting.spawn(async move {
            pending::<()>().await;
            drop(waits);
        });
        not_counting.block_on(async {
            assert!(task.fallible().await.is_none());
            assert!(reader.fallible().await.is_none());
        });
        assert_eq!(drops.count(), 3);
    }
}

#[test]
fn panics_in_drops_are_contained() {
    crate::support::keep_bombs_quiet();
    for seed in SEEDS {
        let runtime = simulated(seed);
        let drops = Drops::default();
        for live in [true, false, true] {
            let (bomb, pinned, hosted) = (
                crate::support::Bomb::new(live, &drops),
                crate::support::Bomb::new(live, &drops),
                crate::support::Bomb::new(live, &drops),
            );
            runtime
                .spawn(async move {
                    pending::<()>().await;
                    drop(bomb);
                })
                .detach();
            let thread = runtime.spawn_pinned("pinned").unwrap();
            let waits = || async move {
                pending::<()>().await;
                drop(pinned);
            };
            thread.spawn(waits).detach();
            let kept = runtime.block_on(thread.host(move || hosted)).unwrap();
            let keeps = async move {
                pending::<()>().await;
                drop(kept);
            };
            runtime.spawn(keeps).detach();
        }
        runtime.run_until_quiescent();
        drop(runtime);
        assert_eq!(drops.count(), 9);
    }
}

#[test]
fn a_chain_of_tasks_that_hold_each_other_is_dropped_without_recursion() {
    let runtime = simulated(1);
    let drops = Drops::default();
    let mut held = runtime.spawn(pending::<()>());
    for _ in 0..DEEP {
        let (inner, one) = (held, drops.one());
        held = runtime.spawn(async move {
            inner.await;
            drop(one);
        });
    }
    held.detach();
    runtime.run_until_quiescent();
    drop(runtime);
    assert_eq!(drops.count(), DEEP);
}

#[test]
fn detached_actors_end_when_the_future_of_the_run_is_done() {
    for seed in SEEDS {
        let drops = Drops::default();
        let ran = drops.clone();
        super::run_of(seed, async move {
            let ones: Vec<_> = (0..3).map(|_| ran.one()).collect();
            for one in ones {
                spawn!(|mut cx: Context<u32>| async move {
                    cx.recv().await;
                    drop(one);
                })
                .detach();
            }
        });
        assert_eq!(drops.count(), 3);
    }
}

#[test]
fn an_endless_grace_ends_when_all_actors_are_stuck() {
    for seed in SEEDS {
        let builder = Runtime::builder().policy(Simulated::new(seed));
        let runtime = builder.grace(Duration::MAX).build().unwrap();
        let stays = actor(deaf).on(&runtime).spawn();
        let ends = actor(|_cx: Context<u32>| sleep(Duration::from_secs(3600)));
        let ends = ends.on(&runtime).spawn();
        let report = runtime.block_on(async {
            yield_now().await;
            runtime.shutdown().await
        });
        assert!(report.cancelled >= 1 && report.cancelled + report.ended == 2);
        drop((stays, ends));
    }
}
