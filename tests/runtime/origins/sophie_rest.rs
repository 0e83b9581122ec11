//! The promises of Sophie's scheduler about quiescence and fairness.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom::policy::{Polling, Prioritized, Sharing, Stealing};
use greenroom::{Address, Builder, Context, Handle, Runtime, spawn};

use super::{join, on_each_worker, runtime};
use crate::stats::Plain;
#[cfg(target_os = "linux")]
use crate::support::naps::asleep;
use crate::support::{Gate, WATCH, drive, open_when_pending, within};

fn two_workers(builder: Builder) -> Runtime {
    builder.workers(2).build().unwrap()
}

#[test]
fn keep_alive_delays_quiescence_until_outside_work_is_spawned_and_done() {
    within(WATCH, || {
        let runtime = runtime(2);
        for _ in 0..200 {
            let keep = runtime.keep_alive();
            let (waits, ran) = (Gate::default(), Arc::new(AtomicBool::new(false)));
            let ending = {
                let (runtime, waits) = (Runtime::clone(&runtime), waits.clone());
                std::thread::spawn(move || drive(open_when_pending(waits, runtime.quiescent())))
            };
            waits.pass();
            let runs = ran.clone();
            let work = async move { runs.store(true, Ordering::SeqCst) };
            runtime.spawn(work).detach();
            drop(keep);
            ending.join().unwrap();
            assert!(ran.load(Ordering::SeqCst));
        }
    });
}

struct Save(Arc<AtomicUsize>);

/// Handles a save with a blocking job, another actor and a timer.
async fn saver(mut cx: Context<Save>) {
    while let Some(Save(steps)) = cx.recv().await {
        let job = steps.clone();
        greenroom::unblock(move || job.fetch_add(1, Ordering::SeqCst)).await;
        back_up_once_more(steps, 2);
    }
}

/// Sleeps briefly, then passes the save on to another actor or spawns a last job.
async fn backup(mut cx: Context<Save>, further: u32) {
    while let Some(Save(steps)) = cx.recv().await {
        greenroom::time::sleep(Duration::from_micros(100)).await;
        steps.fetch_add(1, Ordering::SeqCst);
        if further > 0 {
            back_up_once_more(steps, further - 1);
        } else {
            greenroom::spawn(async move {
                greenroom::yield_now().await;
                greenroom::unblock(move || steps.fetch_add(1, Ordering::SeqCst)).await;
            })
            .detach();
        }
    }
}

/// Spawns the next backup. A separate function, since the future of `backup` would contain itself.
fn back_up_once_more(steps: Arc<AtomicUsize>, further: u32) {
    let next = spawn!(backup(_, further));
    next.tell(Save(steps)).unwrap();
}

/// Closes a window while all workers are idle, and checks that all work caused by that is done
/// before quiescence.
fn work_caused_by_a_closed_window_is_done_before_quiescence(builder: Builder) {
    const ROUNDS: usize = 300;
    // A job, three backups and the job of the last backup.
    const STEPS: usize = 5;
    within(WATCH, move || {
        let runtime = two_workers(builder);
        let saver = spawn!(saver(_), on = &runtime);
        for round in 0..ROUNDS {
            let screen = runtime.spawn_pinned("screen").unwrap();
            let saver = saver.address();
            let window = spawn!(
                |mut cx: Context<Save>| {
                    async move {
                        let pinned = Rc::new(());
                        let save = cx.recv().await.unwrap();
                        saver.tell(save).unwrap();
                        drop(pinned);
                    }
                },
                on = &screen
            );
            runtime.run_until_quiescent();
            let steps = Arc::new(AtomicUsize::new(0));
            window.tell(Save(steps.clone())).unwrap();
            drop((window, screen));
            runtime.run_until_quiescent();
            assert_eq!(steps.load(Ordering::SeqCst), STEPS, "in round {round}");
        }
    });
}

#[test]
fn work_caused_by_a_closed_window_is_done_before_quiescence_stealing() {
    work_caused_by_a_closed_window_is_done_before_quiescence(Runtime::builder());
}

#[test]
fn work_caused_by_a_closed_window_is_done_before_quiescence_sharing() {
    let sharing = Runtime::builder().policy(Sharing::default());
    work_caused_by_a_closed_window_is_done_before_quiescence(sharing);
}

#[test]
fn work_caused_by_a_closed_window_is_done_before_quiescence_custom() {
    let own = Runtime::builder().policy(Plain::default());
    work_caused_by_a_closed_window_is_done_before_quiescence(own);
}

type Actors = Vec<Handle<(), ()>>;

/// The turns that a group has had.
#[derive(Clone)]
struct Share {
    turns: Arc<AtomicUsize>,
    /// The number of groups that have not had enough turns yet.
    left: Arc<AtomicUsize>,
}

impl Share {
    /// So many turns that a worker preempted for a while does not matter. Fewer where a turn takes
    /// much longer: without optimization.
    const ENOUGH: usize = if cfg!(debug_assertions) {
        2_000
    } else {
        10_000
    };

    /// Counts a turn; returns false once all groups have had enough turns.
    fn turn(&self) -> bool {
        if self.turns.fetch_add(1, Ordering::Relaxed) + 1 == Self::ENOUGH {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        self.left.load(Ordering::Relaxed) > 0
    }

    /// Spawns one actor that sends itself a message in every turn.
    fn selfish(self) -> Actors {
        let actor = spawn!(|mut cx: Context<()>| async move {
            let own = cx.downgrade();
            while cx.recv().await.is_some() && self.turn() {
                own.tell(()).unwrap();
            }
        });
        actor.tell(()).unwrap();
        vec![actor]
    }

    /// Spawns a ring of actors that pass a token round.
    fn ring(self) -> Actors {
        let seats: Arc<[OnceLock<Address<()>>; 4]> = Arc::default();
        let member = |at: usize| {
            let (share, all) = (self.clone(), seats.clone());
            let actor = spawn!(move |mut cx: Context<()>| async move {
                while cx.recv().await.is_some() && share.turn() {
                    let next = &all[(at + 1) % all.len()];
                    next.get().unwrap().tell(()).unwrap();
                }
                // The seats hold each other's addresses.
                all.iter().for_each(|seat| seat.get().unwrap().stop());
            });
            let _ = seats[at].set(actor.address());
            actor
        };
        let actors = (0..seats.len()).map(member).collect();
        seats[0].get().unwrap().tell(()).unwrap();
        actors
    }
}

/// Starts two groups on one worker and `many` on the other, all with endless work. Returns the
/// largest number of turns of a group when each group has had enough.
fn most_turns(builder: Builder, many: usize, group: fn(Share) -> Actors) -> usize {
    let runtime = two_workers(builder.batch(1));
    let left = Arc::new(AtomicUsize::new(2 + many));
    let share = |_| Share {
        turns: Arc::default(),
        left: left.clone(),
    };
    let shares: Vec<Share> = (0..2 + many).map(share).collect();
    let actors = join(on_each_worker(&runtime, 2, |number, _| {
        let groups = match number {
            0 => shares[..2].to_vec(),
            _ => shares[2..].to_vec(),
        };
        async move { groups.into_iter().flat_map(group).collect::<Actors>() }
    }));
    runtime.run_until_quiescent();
    drop(actors);
    let turns = shares
        .iter()
        .map(|share| share.turns.load(Ordering::Relaxed));
    turns.max().unwrap()
}

/// How many groups share the other worker, or twice as many. Without optimization half of them
/// suffice to tell.
const CROWD: usize = if cfg!(debug_assertions) { 50 } else { 100 };

/// Asserts that no group gets far more turns than it needs. Without rebalancing, each of the two
/// groups that share a worker would have `many / 2` times as many turns as each of the others.
fn no_group_gets_much_more_than_it_needs(many: usize, group: fn(Share) -> Actors) {
    within(WATCH, move || {
        let polling = Stealing::polling(Polling::default());
        let policies = [
            ("stealing", Runtime::builder()),
            ("polling", Runtime::builder().policy(polling)),
            ("sharing", Runtime::builder().policy(Sharing::default())),
            (
                "prioritized",
                Runtime::builder().policy(Prioritized::default()),
            ),
        ];
        for (policy, builder) in policies {
            let most = most_turns(builder, many, group);
            let bound = 10 * Share::ENOUGH;
            assert!(most <= bound, "{policy}: {most} turns, at most {bound}");
        }
    });
}

#[test]
fn actors_on_a_worker_with_few_get_no_more_turns_than_those_in_a_crowd() {
    no_group_gets_much_more_than_it_needs(2 * CROWD, Share::selfish);
}

#[test]
fn isolated_rings_get_no_more_turns_than_others() {
    no_group_gets_much_more_than_it_needs(CROWD, Share::ring);
}

#[cfg(target_os = "linux")]
#[test]
fn a_runtime_without_work_does_not_run_even_after_full_load() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).thread_name("so24");
        // A look for endless waits would be a wake-up.
        let runtime = runtime.endless_waits(false).build().unwrap();
        for _ in 0..5 {
            let load = |_| {
                runtime.spawn(async {
                    for _ in 0..100 {
                        greenroom::yield_now().await;
                    }
                })
            };
            join((0..500).map(load).collect());
            // No thread's count of naps rises any more.
            asleep("so24");
            let idle = runtime.stats();
            asleep("so24");
            assert_eq!(runtime.stats().workers, idle.workers);
        }
    });
}
