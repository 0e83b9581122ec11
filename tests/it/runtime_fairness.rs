//! Nobody starves: not the old behind the newest, not the outside behind the inside.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom::{Address, Context, Runtime, spawn};

use crate::support::{Gate, Home, Log, WATCH, drive, in_every_home, within};

in_every_home!(
    a_task_that_wakes_itself_for_ever_starves_nobody,
    an_actor_that_tells_itself_for_ever_starves_nobody,
    deadlines_are_kept_while_the_threads_are_busy,
);

fn a_task_that_wakes_itself_for_ever_starves_nobody(home: &Home) {
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

fn an_actor_that_tells_itself_for_ever_starves_nobody(home: &Home) {
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

fn deadlines_are_kept_while_the_threads_are_busy(home: &Home) {
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

/// Counts the turns of a load on one worker.
#[derive(Clone, Default)]
struct Load {
    turns: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Load {
    /// A turn of the load; false once it is to end.
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

    /// Two actors that tell each other something in every turn, so that the slot is never empty.
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

    /// Tasks that wake themselves, so that the ring is never empty.
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

    /// Tasks each of which spawns the next one.
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

/// How many turns of the load come before a task that waits in the ring has its own: the most of
/// a hundred times.
async fn most_turns_before_a_yield(load: &Load) -> usize {
    let mut most = 0;
    for _ in 0..100 {
        let at = load.turns();
        greenroom::yield_now().await;
        most = most.max(load.turns() - at);
    }
    most
}

/// The newest goes first for 16 µs, and no turn takes less than 10 ns.
const CHAIN: usize = 2000;

#[test]
fn bug_s1_a_pair_in_the_slot_does_not_starve_the_ring() {
    on_the_worker(|load| async move {
        load.pair();
        let most = most_turns_before_a_yield(&load).await;
        assert!(
            (1..=CHAIN).contains(&most),
            "{most} turns of the pair before one of the ring's"
        );
    });
}

#[test]
fn two_that_talk_have_more_than_three_turns_in_a_row_while_others_wait() {
    on_the_worker(|load| async move {
        load.pair();
        let most = most_turns_before_a_yield(&load).await;
        // One from the ring, three of the newest, and one more after the first look at the clock.
        assert!(most > 4, "{most} turns of the pair, however short they are");
    });
}

#[test]
fn bug_s1_a_chain_of_spawns_does_not_starve_the_ring() {
    on_the_worker(|load| async move {
        load.chain();
        let most = most_turns_before_a_yield(&load).await;
        assert!(
            (1..=CHAIN).contains(&most),
            "{most} turns of the chain before one of the ring's"
        );
    });
}

#[test]
fn bug_s1_the_newest_of_many_goes_first_only_a_few_times_in_a_row() {
    on_the_worker(|load| async move {
        load.pair();
        load.chain();
        load.selfish(8);
        let most = most_turns_before_a_yield(&load).await;
        // Each of the others in the ring may come first, and with each a chain from the slot.
        assert!(
            (1..=12 * CHAIN).contains(&most),
            "{most} turns of others before one of the ring's"
        );
    });
}

/// A task is spawned from outside while one of the load is in the middle of its turn: how many
/// more turns begin before that task does, at most, in a hundred times?
async fn most_turns_before_the_outside(load: &Load) -> usize {
    let runtime = Runtime::current();
    let mut most = 0;
    for _ in 0..100 {
        // The thread injects while this turn, which is one of the worker's, waits for it.
        let seen = std::thread::scope(|scope| {
            let injecting = scope.spawn(|| {
                let load = load.clone();
                runtime.spawn(async move { load.turns() })
            });
            let at = load.turns();
            (at, injecting.join().unwrap())
        });
        let (at, task) = seen;
        // At least one turn of others comes before this task's own next one.
        greenroom::yield_now().await;
        most = most.max(task.await - at);
    }
    most
}

#[test]
fn bug_s4_what_comes_from_outside_starts_within_two_turns_of_a_busy_ring() {
    on_the_worker(|load| async move {
        load.selfish(100);
        greenroom::yield_now().await;
        let most = most_turns_before_the_outside(&load).await;
        assert!(most <= 2, "{most} turns before it");
        assert!(load.turns() > 100, "the ring was busy");
    });
}

#[test]
fn bug_s4_what_comes_from_outside_starts_within_two_turns_of_a_busy_slot() {
    on_the_worker(|load| async move {
        load.pair();
        load.chain();
        greenroom::yield_now().await;
        let most = most_turns_before_the_outside(&load).await;
        assert!(most <= 2, "{most} turns before it");
    });
}

#[test]
fn bug_s4_a_flood_from_outside_does_not_starve_the_ring() {
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
        // It is behind no more than what one look takes over from the injector, twice.
        assert!(
            (1..=512).contains(&most),
            "{most} turns of the flood before one of the ring's"
        );
    });
}

/// Spawned all in one turn, so that they wait in one queue.
async fn everybody_has_a_turn_before_anybody_has_two<S>(spawn: S)
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
    on_the_worker(|_| everybody_has_a_turn_before_anybody_has_two(greenroom::spawn));
}

#[test]
fn tasks_that_yield_have_their_turns_in_rounds_pinned() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let here = pinned.clone();
        drive(pinned.spawn(move || {
            everybody_has_a_turn_before_anybody_has_two(move |task| here.spawn(move || task))
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
