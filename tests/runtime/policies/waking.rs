//! Scenarios of the suite: a sleeping worker is woken when there is work for it, and not before.

use std::time::Duration;

use greenroom::time::sleep;
use greenroom::{Context, Reply, actor, spawn};

use super::Case;
use crate::support::{Gate, Home, OpenOnDrop, drive, inside, poll_here};

async fn echo(mut cx: Context<(u32, Reply<u32>)>) {
    while let Some((n, reply)) = cx.recv().await {
        reply.send(n);
    }
}

const SOON: Duration = Duration::from_millis(2);
const NEVER: Duration = Duration::from_secs(1_000_000);

pub fn no_wake_up_from_a_foreign_thread_is_lost(case: &Case) {
    let home = case.home();
    let echo = spawn!(echo(_), on = &home.runtime);
    for n in 0..1500 {
        assert_eq!(drive(home.spawn_task(async move { n })), n);
        assert_eq!(drive(echo.ask(|reply| (n, reply))).unwrap(), n);
    }
}

pub fn no_wake_up_from_a_pinned_thread_is_lost(case: &Case) {
    let home = case.home();
    let echo = spawn!(echo(_), on = &home.runtime);
    let pinned = home.runtime.spawn_pinned("pinned").unwrap();
    let asked = echo.address();
    let asks = pinned.spawn(move || async move {
        for n in 0..2000 {
            assert_eq!(asked.ask(|reply| (n, reply)).await.unwrap(), n);
        }
    });
    drive(asks);
}

pub fn no_wake_up_between_workers_is_lost(case: &Case) {
    let home = case.home();
    let echo = spawn!(echo(_), on = &home.runtime);
    let asked = echo.address();
    let asks = home.spawn_task(async move {
        for n in 0..2000 {
            assert_eq!(asked.ask(|reply| (n, reply)).await.unwrap(), n);
            let other = greenroom::spawn(async move { n });
            assert_eq!(other.await, n);
        }
    });
    drive(asks);
}

pub fn many_simultaneous_wake_ups_are_all_delivered(case: &Case) {
    let home = case.home();
    for _ in 0..50 {
        let gate = Gate::default();
        let waiting: Vec<_> = (0..20)
            .map(|_| {
                let gate = gate.clone();
                home.spawn_task(async move { gate.wait().await })
            })
            .collect();
        gate.open();
        drive(futures::future::join_all(waiting));
    }
}

pub fn tasks_woken_by_a_worker_that_blocks_are_run_by_another(case: &Case) {
    let home = case.home();
    for count in (1..5).cycle().take(40) {
        let blocks = home.spawn_task(async move {
            let gates: Vec<Gate> = (0..count).map(|_| Gate::default()).collect();
            for gate in &gates {
                let gate = gate.clone();
                greenroom::spawn(async move { gate.open() }).detach();
            }
            // No await: the worker is blocked here.
            gates.iter().for_each(Gate::pass);
        });
        drive(blocks);
    }
}

pub fn a_timer_fires_while_all_workers_are_idle(case: &Case) {
    let home = case.home();
    for _ in 0..20 {
        drive(home.spawn_task(async { sleep(SOON).await }));
    }
    // Several timers; the one armed last fires first.
    let sleeps = (1..5)
        .rev()
        .map(|n| home.spawn_task(async move { sleep(SOON * n).await }));
    drive(futures::future::join_all(sleeps.collect::<Vec<_>>()));
}

pub fn a_deadline_armed_outside_fires_while_all_workers_are_idle(case: &Case) {
    let home = case.home();
    for _ in 0..5 {
        // The workers that had a turn before have gone to sleep.
        #[cfg(target_os = "linux")]
        crate::support::until(|| {
            crate::support::naps::naps(&case.threads)
                .values()
                .all(|&(_, sleeps)| sleeps)
        });
        home.block_on(async { sleep(SOON).await });
    }
}

/// Blocks this many workers until the guard is dropped.
fn busy(home: &Home, workers: usize) -> OpenOnDrop {
    let over = Gate::default();
    for _ in 0..workers {
        let (begun, ends) = (Gate::default(), over.clone());
        let begins = begun.clone();
        let blocks = async move {
            begins.open();
            ends.pass();
        };
        home.spawn_task(blocks).detach();
        begun.pass();
    }
    OpenOnDrop(over)
}

pub fn a_timer_fires_while_another_worker_is_busy(case: &Case) {
    let home = case.home();
    for _ in 0..10 {
        // One timer is armed before the workers block, one after.
        let armed = Gate::default();
        let arms = armed.clone();
        let before = home.spawn_task(async move {
            let mut sleep = sleep(SOON * 2);
            let _ = poll_here(&mut sleep).await;
            arms.open();
            sleep.await;
        });
        armed.pass();
        let _busy = busy(&home, case.workers - 1);
        drive(home.spawn_task(async { sleep(SOON).await }));
        drive(before);
    }
}

pub fn a_timer_fires_while_all_workers_are_busy(case: &Case) {
    let home = case.home();
    let busy: Vec<greenroom::Task<()>> = (0..2 * case.workers)
        .map(|_| {
            home.spawn_task(async {
                loop {
                    greenroom::yield_now().await;
                }
            })
        })
        .collect();
    for _ in 0..5 {
        drive(home.spawn_task(async { sleep(SOON).await }));
    }
    drop(busy);
}

pub fn a_nearer_deadline_armed_outside_fires_in_time(case: &Case) {
    let home = case.home();
    let never = home.spawn_task(async { sleep(NEVER).await });
    for _ in 0..20 {
        // All workers sleep now, or are about to.
        home.block_on(async { sleep(SOON).await });
        drive(home.spawn_task(async { sleep(SOON).await }));
        let timed = inside(&home.runtime, || {
            spawn!(|mut cx: Context<()>| async move {
                let _timer = cx.send_after(SOON, ());
                cx.recv().await
            })
        });
        assert_eq!(drive(timed.join()).unwrap(), Some(()));
    }
    drop(never);
}

pub fn a_deadline_fires_while_the_worker_that_armed_it_blocks(case: &Case) {
    let home = case.home();
    for _ in 0..20 {
        let (armed, fired) = (Gate::default(), Gate::default());
        drive(home.spawn_task(async move {
            let (arms, fires) = (armed.clone(), fired.clone());
            let sleeper = greenroom::spawn(async move {
                let mut sleep = sleep(SOON);
                let _ = poll_here(&mut sleep).await;
                arms.open();
                sleep.await;
                fires.open();
            });
            sleeper.detach();
            // The task may run on this worker or on another one; in the second case this worker
            // blocks.
            armed.wait().await;
            fired.pass();
        }));
    }
}

#[cfg(target_os = "linux")]
pub fn workers_without_work_do_not_run(case: &Case) {
    let home = case.home();
    let far = home.spawn_task(sleep(NEVER));
    let waits = home.spawn(actor(|mut cx: Context<()>| async move { cx.recv().await }));
    drive(home.spawn_task(async {
        let tasks = (0..100).map(|_| greenroom::spawn(greenroom::yield_now()));
        futures::future::join_all(tasks.collect::<Vec<_>>()).await;
    }));
    super::sleep_on(&case.threads, case.workers);
    drop((far, waits));
}

#[cfg(not(target_os = "linux"))]
pub fn workers_without_work_do_not_run(_case: &Case) {}
