//! Document 1, Sophie's scheduler: when work has run out, and that nobody gets too much of it.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom::policy::{Polling, Prioritized, Sharing, Stealing};
use greenroom::{Address, Builder, Context, Handle, Runtime, spawn};

#[cfg(target_os = "linux")]
use super::asleep;
use super::{join, on_each_worker, runtime};
use crate::stats::Plain;
use crate::support::{Gate, WATCH, drive, open_when_pending, within};

fn two_workers(builder: Builder) -> Runtime {
    builder.workers(2).build().unwrap()
}

#[test]
fn so12_whoever_may_bring_work_from_elsewhere_holds_off_the_end() {
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

/// Saves, and starts all that goes with it: jobs, another actor, a timer.
async fn saver(mut cx: Context<Save>) {
    while let Some(Save(steps)) = cx.recv().await {
        let job = steps.clone();
        greenroom::unblock(move || job.fetch_add(1, Ordering::SeqCst)).await;
        back_up_once_more(steps, 2);
    }
}

/// Waits a little, hands on to another one, or does a last job.
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

/// Not within `backup`, whose future would contain itself.
fn back_up_once_more(steps: Arc<AtomicUsize>, further: u32) {
    let next = spawn!(backup(_, further));
    next.tell(Save(steps)).unwrap();
}

/// A window is closed while all workers are idle: what that sets off is done before the end.
fn what_a_closed_window_sets_off_is_done_before_the_end(builder: Builder) {
    const ROUNDS: usize = 300;
    // A job, three backups and the job of the last one.
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
fn so14_what_a_closed_window_sets_off_is_done_before_the_end_stealing() {
    what_a_closed_window_sets_off_is_done_before_the_end(Runtime::builder());
}

#[test]
fn so14_what_a_closed_window_sets_off_is_done_before_the_end_sharing() {
    let sharing = Runtime::builder().policy(Sharing::default());
    what_a_closed_window_sets_off_is_done_before_the_end(sharing);
}

#[test]
fn so14_what_a_closed_window_sets_off_is_done_before_the_end_own_policy() {
    let own = Runtime::builder().policy(Plain::default());
    what_a_closed_window_sets_off_is_done_before_the_end(own);
}

type Actors = Vec<Handle<(), ()>>;

/// How many turns a group has had.
#[derive(Clone)]
struct Share {
    turns: Arc<AtomicUsize>,
    /// How many groups have not had enough yet.
    left: Arc<AtomicUsize>,
}

impl Share {
    /// So many that a worker which the system keeps from its core for a while does not count. Where a turn takes much
    /// longer fewer do: with AddressSanitizer, and without optimization.
    const ENOUGH: usize = if cfg!(any(greenroom_uncached, debug_assertions)) {
        2_000
    } else {
        10_000
    };

    /// A turn; false once everybody has had enough of them.
    fn turn(&self) -> bool {
        if self.turns.fetch_add(1, Ordering::Relaxed) + 1 == Self::ENOUGH {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        self.left.load(Ordering::Relaxed) > 0
    }

    /// One actor, which tells itself something in every turn.
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

    /// A ring of actors, round which a token goes.
    fn ring(self) -> Actors {
        let seats: Arc<[OnceLock<Address<()>>; 4]> = Arc::default();
        let member = |at: usize| {
            let (share, all) = (self.clone(), seats.clone());
            let actor = spawn!(move |mut cx: Context<()>| async move {
                while cx.recv().await.is_some() && share.turn() {
                    let next = &all[(at + 1) % all.len()];
                    next.get().unwrap().tell(()).unwrap();
                }
                // The seats hold each other.
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

/// Two groups begin on one worker and `many` on the other, all of them with work without end. When
/// each has had enough turns, how often has that had who had most?
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

/// Where nobody evens it out, two that share a worker have fifty or a hundred times as many turns as
/// those of the others.
fn nobody_gets_much_more_than_the_others(many: usize, group: fn(Share) -> Actors) {
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
fn so22_actors_that_keep_to_themselves_get_no_more_than_those_in_the_crowd() {
    nobody_gets_much_more_than_the_others(200, Share::selfish);
}

#[test]
fn so22_rings_that_keep_to_themselves_get_no_more_than_those_in_the_crowd() {
    nobody_gets_much_more_than_the_others(100, Share::ring);
}

#[cfg(target_os = "linux")]
#[test]
fn so24_from_idle_to_full_load_and_back_a_runtime_without_work_does_not_run() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).thread_name("so24");
        let runtime = runtime.build().unwrap();
        for _ in 0..5 {
            let load = |_| {
                runtime.spawn(async {
                    for _ in 0..100 {
                        greenroom::yield_now().await;
                    }
                })
            };
            join((0..500).map(load).collect());
            // Nobody's count of naps rises any more.
            asleep("so24");
            let idle = runtime.stats();
            asleep("so24");
            assert_eq!(runtime.stats().workers, idle.workers);
        }
    });
}
