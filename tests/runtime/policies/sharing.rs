//! Work sharing: one FIFO queue.

use greenroom::policy::Sharing;
use greenroom::{Context, Runtime, actor, yield_now};

use crate::support::{Home, Log, WATCH, drive, within};

fn one_worker() -> Home {
    Home::built(1, Runtime::builder().policy(Sharing::default()))
}

#[test]
fn tasks_and_actors_run_in_order_of_arrival() {
    within(WATCH, || {
        let home = one_worker();
        let log = Log::default();
        let held = home.hold();
        for n in 0..20 {
            let (own, inner, others) = (log.clone(), log.clone(), log.clone());
            let task = async move {
                own.add((n, "task"));
                // Spawned by a worker, it goes to the same queue, behind all queued tasks.
                greenroom::spawn(async move { inner.add((n, "inside")) }).detach();
            };
            home.spawn_task(task).detach();
            let high = actor(move |_: Context<()>| async move { others.add((n, "actor")) });
            drop(home.spawn(high.priority(7)));
        }
        drop(held);
        home.runtime.run_until_quiescent();
        let first = (0..20).flat_map(|n| [(n, "task"), (n, "actor")]);
        let expected: Vec<_> = first.chain((0..20).map(|n| (n, "inside"))).collect();
        assert_eq!(log.take(), expected);
    });
}

#[test]
fn a_task_that_yields_goes_behind_all_waiting_tasks() {
    within(WATCH, || {
        let home = one_worker();
        let log = Log::default();
        let held = home.hold();
        let tasks: Vec<_> = (0..5)
            .map(|n| {
                let log = log.clone();
                home.spawn_task(async move {
                    for _ in 0..4 {
                        log.add(n);
                        yield_now().await;
                    }
                })
            })
            .collect();
        drop(held);
        drive(futures::future::join_all(tasks));
        assert_eq!(log.take(), [0, 1, 2, 3, 4].repeat(4));
    });
}
