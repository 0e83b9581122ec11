//! Fairness: older tasks don't starve behind the newest, nor injected tasks behind local ones.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom::{Address, Context, Runtime, spawn};

use crate::support::{Gate, Home, Log, WATCH, drive, in_every_home, within};

in_every_home!(
    a_task_that_wakes_itself_forever_does_not_starve_other_tasks,
    an_actor_that_messages_itself_forever_does_not_starve_other_tasks,
    deadlines_fire_while_the_threads_are_busy,
);

fn a_task_that_wakes_itself_forever_does_not_starve_other_tasks(home: &Home) {
    let busy: Vec<_> = (0..4)
        .map(|_| {
            home.spawn_task(async {
                loop {
                    greenroom::yield_now().await;
                }
            })
        })
        .collect();
    for n in 0..100 {
        assert_eq!(drive(home.spawn_task(async move { n })), n);
    }
    drop::<Vec<greenroom::Task<()>>>(busy);
}

fn an_actor_that_messages_itself_forever_does_not_starve_other_tasks(home: &Home) {
    let chatter = home.spawn(greenroom::actor(|mut cx: Context<()>| async move {
        let me = cx.downgrade();
        while cx.recv().await.is_some() {
            let _ = me.tell(());
        }
    }));
    chatter.tell(()).unwrap();
    for n in 0..100 {
        assert_eq!(drive(home.spawn_task(async move { n })), n);
    }
    chatter.kill();
    drive(chatter.closed());
}

fn deadlines_fire_while_the_threads_are_busy(home: &Home) {
    let busy: Vec<greenroom::Task<()>> = (0..4)
        .map(|_| {
            home.spawn_task(async {
                loop {
                    greenroom::yield_now().await;
                }
            })
        })
        .collect();
    drive(home.spawn_task(async { greenroom::time::sleep(Duration::from_millis(2)).await }));
    drop(busy);
}

/// A load on one worker whose turns are counted.
#[derive(Clone, Default)]
struct Load {
    turns: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Load {
    /// Counts a turn of the load; returns false once the load has to end.
    fn turn(&self) -> bool {
        self.turns.fetch_add(1, Ordering::SeqCst);
        !self.over.load(Ordering::SeqCst)
    }

    fn turns(&self) -> usize {
        self.turns.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Spawns two actors that message each other in every turn, so that the LIFO slot is never
    /// empty.
    fn pair(&self) {
        let seats: [Arc<OnceLock<Address<()>>>; 2] = Default::default();
        for (me, partner) in [(0, 1), (1, 0)] {
            let (load, partner) = (self.clone(), seats[partner].clone());
            let player = spawn!(|mut cx: Context<()>| async move {
                while cx.recv().await.is_some() && load.turn() {
                    let _ = partner.get().unwrap().tell(());
                }
                partner.get().unwrap().stop();
            });
            let _ = seats[me].set(player.address());
        }
        seats[0].get().unwrap().tell(()).unwrap();
    }

    /// Spawns tasks that wake themselves, so that the ring is never empty.
    fn selfish(&self, tasks: usize) {
        for _ in 0..tasks {
            let load = self.clone();
            greenroom::spawn(async move {
                while load.turn() {
                    greenroom::yield_now().await;
                }
            })
            .detach();
        }
    }

    /// Spawns a task that spawns the next one, and so on.
    fn chain(&self) {
        let load = self.clone();
        greenroom::spawn(async move {
            if load.turn() {
                load.chain();
            }
        })
        .detach();
    }
}

/// Runs `test` in a task of a runtime with one worker.
fn on_the_worker<F: Future<Output = ()> + Send + 'static>(
    test: impl FnOnce(Load) -> F + Send + 'static,
) {
    within(WATCH, move || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let load = Load::default();
        drive(runtime.spawn(test(load.clone())));
        load.end();
    });
}

/// Returns the most turns of the load, in a hundred rounds, before a task waiting in the ring has
/// its turn.
async fn most_turns_before_a_yield(load: &Load) -> usize {
    let mut most = 0;
    for _ in 0..100 {
        let at = load.turns();
        greenroom::yield_now().await;
        most = most.max(load.turns() - at);
    }
    most
}

/// An upper bound: the LIFO slot runs first for at most 16 µs, and no turn takes less than 10 ns.
const CHAIN: usize = 2000;

#[test]
fn a_pair_in_the_slot_does_not_starve_the_ring() {
    on_the_worker(|load| async move {
        load.pair();
        let most = most_turns_before_a_yield(&load).await;
        assert!(
            (1..=CHAIN).contains(&most),
            "{most} turns of the pair before the ring's task"
        );
    });
}

#[test]
fn a_pair_in_the_slot_has_more_than_three_short_turns_in_a_row() {
    on_the_worker(|load| async move {
        load.pair();
        let most = most_turns_before_a_yield(&load).await;
        // One from the ring, three of the newest task, and one more after the first reading of the
        // clock.
        assert!(most > 4, "the pair had only {most} short turns in a row");
    });
}

#[test]
fn a_chain_of_spawns_does_not_starve_the_ring() {
    on_the_worker(|load| async move {
        load.chain();
        let most = most_turns_before_a_yield(&load).await;
        assert!(
            (1..=CHAIN).contains(&most),
            "{most} turns of the chain before the ring's task"
        );
    });
}

#[test]
fn the_newest_of_many_tasks_runs_first_only_a_few_times_in_a_row() {
    on_the_worker(|load| async move {
        load.pair();
        load.chain();
        load.selfish(8);
        let most = most_turns_before_a_yield(&load).await;
        // Each other task in the ring may run first, and with each a chain from the LIFO slot.
        assert!(
            (1..=12 * CHAIN).contains(&most),
            "{most} turns of other tasks before the ring's task"
        );
    });
}

/// Spawns a task from another thread in the middle of a turn of the load. Returns the most turns,
/// in a hundred rounds, that begin before that task's turn.
async fn most_turns_before_the_outside(load: &Load) -> usize {
    let runtime = Runtime::current();
    let mut most = 0;
    for _ in 0..100 {
        // The thread injects while the worker's current turn waits for it.
        let seen = std::thread::scope(|scope| {
            let injecting = scope.spawn(|| {
                let load = load.clone();
                runtime.spawn(async move { load.turns() })
            });
            let at = load.turns();
            (at, injecting.join().unwrap())
        });
        let (at, task) = seen;
        // At least one turn of another task comes before the next turn of this task.
        greenroom::yield_now().await;
        most = most.max(task.await - at);
    }
    most
}

#[test]
fn an_injected_task_starts_within_two_turns_of_a_busy_ring() {
    on_the_worker(|load| async move {
        load.selfish(100);
        greenroom::yield_now().await;
        let most = most_turns_before_the_outside(&load).await;
        assert!(most <= 2, "{most} turns before the injected task");
        assert!(load.turns() > 100, "the ring must be busy");
    });
}

#[test]
fn an_injected_task_starts_within_two_turns_of_a_busy_slot() {
    on_the_worker(|load| async move {
        load.pair();
        load.chain();
        greenroom::yield_now().await;
        let most = most_turns_before_the_outside(&load).await;
        assert!(most <= 2, "{most} turns before the injected task");
    });
}

#[test]
fn a_flood_of_injected_tasks_does_not_starve_the_ring() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let load = Load::default();
        let (begun, flooded) = (Gate::default(), Gate::default());
        let (own, here, waits) = (load.clone(), begun.clone(), flooded.clone());
        let inside = runtime.spawn(async move {
            here.open();
            waits.pass();
            most_turns_before_a_yield(&own).await
        });
        begun.pass();
        for _ in 0..100_000 {
            let load = load.clone();
            runtime.spawn(async move { load.turn() }).detach();
        }
        flooded.open();
        let most = drive(inside);
        // The task is behind no more tasks than one look takes from the injector, twice.
        assert!(
            (1..=512).contains(&most),
            "{most} turns of the flood before the ring's task"
        );
    });
}

/// Spawns all tasks in one turn, so that they wait in one queue, and checks that they take turns in
/// rounds.
async fn every_task_has_a_turn_before_any_task_has_two<S>(spawn: S)
where
    S: Fn(futures::future::BoxFuture<'static, ()>) -> greenroom::Task<()>,
{
    let log = Log::default();
    let tasks: Vec<_> = (0..5)
        .map(|id| {
            let log = log.clone();
            spawn(Box::pin(async move {
                for round in 0..20 {
                    log.add((round, id));
                    greenroom::yield_now().await;
                }
            }))
        })
        .collect();
    futures::future::join_all(tasks).await;
    let turns = log.take();
    for (round, five) in turns.chunks(5).enumerate() {
        let mut ids: Vec<u32> = five.iter().map(|(_, id)| *id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [0, 1, 2, 3, 4], "round {round} of {turns:?}");
        assert!(
            five.iter().all(|(of, _)| *of == round),
            "round {round} of {turns:?}"
        );
    }
}

#[test]
fn tasks_that_yield_have_their_turns_in_rounds_one_worker() {
    on_the_worker(|_| every_task_has_a_turn_before_any_task_has_two(greenroom::spawn));
}

#[test]
fn tasks_that_yield_have_their_turns_in_rounds_pinned() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let here = pinned.clone();
        drive(pinned.spawn(move || {
            every_task_has_a_turn_before_any_task_has_two(move |task| here.spawn(move || task))
        }));
    });
}

#[test]
fn yield_now_is_ready_the_second_time_and_wakes_once() {
    let (wakes, waker) = crate::support::CountingWaker::new();
    let mut cx = std::task::Context::from_waker(&waker);
    let mut yielding = Box::pin(greenroom::yield_now());
    assert!(yielding.as_mut().poll(&mut cx).is_pending());
    assert_eq!(wakes.count(), 1);
    assert!(yielding.as_mut().poll(&mut cx).is_ready());
    assert_eq!(wakes.count(), 1);
}
