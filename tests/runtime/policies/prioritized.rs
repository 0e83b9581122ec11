//! Priorities: the highest first, round-robin within a level, and aging for the lowest.

use greenroom::policy::Prioritized;
use greenroom::{Context, Handle, Runtime, SpawnProblem, actor, yield_now};

use crate::support::{Home, Log, WATCH, drive, within};

fn one_worker(policy: Prioritized) -> Home {
    Home::built(1, Runtime::builder().policy(policy).priorities(9))
}

/// Spawns an actor that writes its priority to the log in each of its `turns` turns.
fn turns(home: &Home, log: &Log<u8>, priority: u8, turns: usize) -> Handle<(), ()> {
    let log = log.clone();
    let writes = actor(move |_: Context<()>| async move {
        for _ in 0..turns {
            log.add(priority);
            yield_now().await;
        }
    });
    home.spawn(writes.priority(priority))
}

#[test]
fn the_highest_priority_always_runs_first() {
    within(WATCH, || {
        let home = one_worker(Prioritized::default());
        let log = Log::default();
        let held = home.hold();
        for priority in [3, 0, 9, 1, 7, 3, 9] {
            drop(turns(&home, &log, priority, 1));
        }
        drop(held);
        home.runtime.run_until_quiescent();
        assert_eq!(log.take(), [9, 9, 7, 3, 3, 1, 0]);
    });
}

#[test]
fn a_busy_level_starves_the_lower_levels() {
    within(WATCH, || {
        let home = one_worker(Prioritized::default());
        let log = Log::default();
        let held = home.hold();
        for priority in [0, 4, 5] {
            drop(turns(&home, &log, priority, 500));
        }
        drop(held);
        home.runtime.run_until_quiescent();
        let expected = [[5; 500], [4; 500], [0; 500]].concat();
        assert_eq!(log.take(), expected);
    });
}

#[test]
fn a_woken_actor_runs_before_a_waiting_task_of_lower_priority() {
    within(WATCH, || {
        let home = one_worker(Prioritized::default());
        let log = Log::default();
        let (hears, alarmed) = (log.clone(), log.clone());
        let alarm = actor(|mut cx: Context<()>| async move {
            while cx.recv().await.is_some() {
                alarmed.add("alarm");
            }
        });
        let alarm = home.spawn(alarm.priority(1));
        home.turn();
        let address = alarm.address();
        let held = home.hold();
        let first = hears.clone();
        let wakes = async move {
            first.add("first");
            address.tell(()).unwrap();
        };
        home.spawn_task(wakes).detach();
        home.spawn_task(async move { hears.add("second") }).detach();
        drop(held);
        home.runtime.run_until_quiescent();
        assert_eq!(log.take(), ["first", "alarm", "second"]);
    });
}

#[test]
fn actors_of_equal_priority_take_turns() {
    within(WATCH, || {
        let home = one_worker(Prioritized::default());
        let log = Log::default();
        let held = home.hold();
        for id in 0..4 {
            let log = log.clone();
            let writes = actor(move |_: Context<()>| async move {
                for _ in 0..5 {
                    log.add(id);
                    yield_now().await;
                }
            });
            drop(home.spawn(writes.priority(2)));
        }
        drop(held);
        home.runtime.run_until_quiescent();
        assert_eq!(log.take(), [0, 1, 2, 3].repeat(5));
    });
}

#[test]
fn plain_tasks_are_at_the_lowest_level() {
    within(WATCH, || {
        let home = one_worker(Prioritized::default());
        let log = Log::default();
        let held = home.hold();
        let task = |name| {
            let log = log.clone();
            home.spawn_task(async move { log.add(name) }).detach();
        };
        let actor = |name, priority| {
            let log = log.clone();
            let writes = actor(move |_: Context<()>| async move { log.add(name) });
            drop(home.spawn(writes.priority(priority)));
        };
        task("task");
        actor("actor", 0);
        actor("higher actor", 1);
        task("second task");
        drop(held);
        home.runtime.run_until_quiescent();
        let order = ["higher actor", "task", "actor", "second task"];
        assert_eq!(log.take(), order);
    });
}

#[test]
fn with_aging_every_nth_turn_goes_to_the_lowest_level() {
    within(WATCH, || {
        for aging in [2, 3, 10] {
            let home = one_worker(Prioritized::default().aging(aging));
            let log = Log::default();
            let held = home.hold();
            for priority in [5, 2, 0] {
                drop(turns(&home, &log, priority, 100));
            }
            drop(held);
            home.runtime.run_until_quiescent();
            let log = log.take();
            // As long as the highest level has tasks, every `aging`-th turn goes to the lowest
            // level.
            let busy = log.iter().rposition(|priority| *priority == 5).unwrap();
            let aged: Vec<_> = (0..busy).filter(|&at| log[at] != 5).collect();
            let apart = |pair: &[usize]| pair[1] - pair[0];
            assert!(aged.windows(2).all(|pair| apart(pair) == aging as usize));
            assert!(aged[0] < aging as usize);
            let low: Vec<_> = aged.iter().map(|&at| log[at]).collect();
            assert!(
                low.is_sorted(),
                "the lowest level runs first, then the next: {low:?}"
            );
            assert_eq!(low[0], 0);
            assert_eq!(log.len(), 300);
        }
    });
}

#[test]
fn with_an_aging_of_one_the_lowest_level_always_runs_first() {
    within(WATCH, || {
        let home = one_worker(Prioritized::default().aging(1));
        let log = Log::default();
        let held = home.hold();
        for priority in [3, 0, 9, 1] {
            drop(turns(&home, &log, priority, 2));
        }
        drop(held);
        home.runtime.run_until_quiescent();
        assert_eq!(log.take(), [0, 0, 1, 1, 3, 3, 9, 9]);
    });
}

#[test]
fn a_priority_above_the_highest_of_the_runtime_is_refused() {
    within(WATCH, || {
        let home = one_worker(Prioritized::default());
        let ten = actor(|_: Context<()>| async {}).priority(10);
        let problem = SpawnProblem::Priority {
            priority: 10,
            highest: 9,
        };
        let refused = ten.on(&home.runtime).try_spawn().unwrap_err();
        assert_eq!(refused.problem(), problem);
        // One level is enough.
        let builder = Runtime::builder()
            .policy(Prioritized::default())
            .priorities(0);
        let one = Home::built(1, builder);
        assert_eq!(drive(one.spawn_task(async { 42 })), 42);
    });
}
