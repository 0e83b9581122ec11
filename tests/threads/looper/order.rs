//! In which order tasks run, and how many at the same time.

use super::*;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use greenroom::time::sleep;

use crate::support::{drive, until};

/// Posts everything while the world is stopped, so that all of it is ready at the same time.
async fn at_once(controller: &Controller, posts: impl FnOnce() + Send + 'static) {
    let posted = controller.stop_the_world(|_| posts()).unwrap();
    posted.await.unwrap();
}

/// Posts a task with a priority that adds the number to the log.
fn note_at(looper: &Looper, priority: u8, log: &Log<u32>, number: u32) -> Posted<()> {
    let log = log.clone();
    let posted = looper.priority(priority).post(move || log.add(number));
    posted.unwrap()
}

#[test]
fn a_looper_runs_its_tasks_one_at_a_time_in_the_order_of_the_queue() {
    everywhere(|| async {
        let controller = controller(2);
        let log = Log::default();
        let inside = Arc::new(AtomicUsize::new(0));
        let loopers = [(); 3].map(|()| controller.looper());
        let mut all = Vec::new();
        for number in 0..20 {
            for (which, looper) in loopers.iter().enumerate() {
                let (log, inside) = (log.clone(), inside.clone());
                let one = 1 << (which * 8);
                all.push(looper.spawn(async move {
                    let before = inside.fetch_add(one, Ordering::SeqCst);
                    assert_eq!(before >> (which * 8) & 0xff, 0);
                    yield_now().await;
                    log.add((which, number));
                    inside.fetch_sub(one, Ordering::SeqCst);
                }));
            }
        }
        for posted in all {
            posted.unwrap().await.unwrap();
        }
        let log = log.take();
        for which in 0..3 {
            let own = log.iter().filter(|(of, _)| *of == which);
            assert!(own.map(|(_, number)| *number).eq(0..20), "{log:?}");
        }
    });
}

#[test]
fn loopers_may_be_made_and_dropped_at_any_time_in_any_number() {
    everywhere(|| async {
        let controller = controller(2);
        let log: Log<u32> = Log::default();
        let first = controller.looper();
        let (made, notes) = (controller.clone(), log.clone());
        let makes = first.post(move || {
            for number in 0..200 {
                let looper = made.looper();
                drop(note(&looper, &notes, number));
                drop((made.looper(), looper));
            }
        });
        makes.unwrap().await.unwrap();
        wait_for(|| controller.status().loopers == 1).await;
        assert_eq!(log.len(), 200);
    });
}

#[test]
fn tasks_of_different_loopers_run_at_the_same_time() {
    on_threads(async {
        let controller = controller(2);
        let meeting = Arc::new(Barrier::new(2));
        let both = [(); 2].map(|()| {
            let meeting = meeting.clone();
            controller.looper().post(move || meeting.wait().is_leader())
        });
        for posted in both {
            posted.unwrap().await.unwrap();
        }
    });
}

/// Checks that of four tasks which block, as many begin as there are lanes.
fn runs_at_once(concurrency: Option<usize>, lanes: usize) {
    within(WATCH, move || {
        let runtime = Runtime::builder().workers(3).build().unwrap();
        let builder = Controller::builder().on(&runtime);
        let builder = match concurrency {
            Some(concurrency) => builder.lanes(concurrency),
            None => builder,
        };
        let controller = builder.build().unwrap();
        let gate = Gate::default();
        let loopers = [(); 4].map(|()| controller.looper());
        let posted = loopers.each_ref().map(|looper| {
            let gate = gate.clone();
            looper.post(move || gate.pass()).unwrap()
        });
        until(|| controller.status().running == lanes);
        crate::support::hand_over(crate::support::MANY_HAND_OVERS);
        let stats = controller.status();
        assert_eq!((stats.running, stats.ready), (lanes, 4 - lanes));
        gate.open();
        posted.into_iter().for_each(|posted| drive(posted).unwrap());
    });
}

#[test]
fn as_many_tasks_run_at_the_same_time_as_the_controller_was_built_for() {
    runs_at_once(Some(1), 1);
    runs_at_once(Some(2), 2);
}

#[test]
fn by_default_as_many_tasks_run_as_there_are_workers() {
    runs_at_once(None, 3);
}

#[test]
fn any_concurrency_serves_all_loopers() {
    for concurrency in [1, 3, 16, usize::MAX] {
        everywhere(move || async move {
            let controller = controller(concurrency);
            let posted = (0..50).map(|number| {
                let looper = controller.looper();
                looper.spawn(async move {
                    yield_now().await;
                    number
                })
            });
            let posted: Vec<_> = posted.collect();
            for (number, posted) in (0..).zip(posted) {
                assert_eq!(posted.unwrap().await.unwrap(), number);
            }
        });
    }
}

#[test]
fn a_task_that_is_stuck_leaves_the_others_to_the_lane_that_stands_by() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let controller = Controller::builder().on(&runtime).lanes(2).build().unwrap();
        let loopers: Vec<_> = (0..100).map(|_| controller.looper()).collect();
        let meeting = Arc::new(Barrier::new(2));
        for _ in 0..20 {
            // Short tasks, with which one lane alone is faster than two.
            let short = loopers.iter().cycle().take(2000);
            let short: Vec<_> = short.map(|it| it.post(|| ()).unwrap()).collect();
            let both = [&loopers[0], &loopers[1]].map(|looper| {
                let meeting = meeting.clone();
                let meets = move || {
                    meeting.wait();
                };
                looper.post(meets).unwrap()
            });
            for posted in short.into_iter().chain(both) {
                drive(posted).unwrap();
            }
        }
    });
}

#[test]
fn the_higher_of_two_ready_tasks_begins_first() {
    simulated(|| async {
        let (controller, log) = (controller(1), Log::default());
        let loopers = [0, 3, 1, 2].map(|priority| (controller.looper(), priority));
        let notes = log.clone();
        at_once(&controller, move || {
            for (looper, priority) in &loopers {
                drop(note_at(looper, *priority, &notes, u32::from(*priority)));
            }
        })
        .await;
        controller.shutdown().await;
        assert_eq!(log.take(), [3, 2, 1, 0]);
    });
}

#[test]
fn all_256_priorities_are_in_order() {
    simulated(|| async {
        let builder = Controller::builder().priorities(u8::MAX).lanes(1);
        let (controller, log) = (builder.build().unwrap(), Log::default());
        let (maker, notes) = (controller.clone(), log.clone());
        at_once(&controller, move || {
            for priority in 0..=u8::MAX {
                // Every one of them, in an order that is not theirs.
                let priority = priority.wrapping_mul(77);
                let looper = maker.looper();
                drop(note_at(&looper, priority, &notes, u32::from(priority)));
            }
        })
        .await;
        controller.shutdown().await;
        assert!(log.take().into_iter().rev().eq(0..256));
    });
}

#[test]
fn a_higher_looper_goes_first_between_two_tasks_of_a_busy_lane() {
    simulated(|| async {
        let (controller, log) = (controller(1), Log::default());
        let (busy, other) = (controller.looper(), controller.looper());
        let (own, notes) = (busy.clone(), log.clone());
        at_once(&controller, move || {
            let urgent = notes.clone();
            let posts = own.priority(1).post(move || {
                drop(note_at(&other, 2, &urgent, 1));
                urgent.add(0);
            });
            drop(posts);
            for number in 2..5 {
                drop(note_at(&own, 1, &notes, number));
            }
        })
        .await;
        wait_for(|| log.len() == 5).await;
        assert_eq!(log.take(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_looper_waits_with_the_priority_of_its_next_task() {
    simulated(|| async {
        let (controller, log) = (controller(1), Log::default());
        let (mixed, plain) = (controller.looper(), controller.looper());
        let notes = log.clone();
        at_once(&controller, move || {
            for (priority, number) in [(0, 10), (3, 11), (0, 12), (2, 13)] {
                drop(note_at(&mixed, priority, &notes, number));
            }
            for number in 20..23 {
                drop(note_at(&plain, 1, &notes, number));
            }
        })
        .await;
        controller.shutdown().await;
        assert_eq!(log.take(), [20, 21, 22, 10, 11, 12, 13]);
    });
}

#[test]
fn equal_loopers_run_in_turn_one_task_a_turn() {
    simulated(|| async {
        let (controller, log) = (controller(1), Log::default());
        let loopers = [(); 3].map(|()| controller.looper());
        let notes = log.clone();
        at_once(&controller, move || {
            for (which, looper) in (0..).zip(&loopers) {
                for _ in 0..4 {
                    drop(note_at(looper, 2, &notes, which));
                }
            }
        })
        .await;
        controller.shutdown().await;
        assert_eq!(log.take(), [0, 1, 2].repeat(4));
    });
}

#[test]
fn equal_loopers_have_equal_shares_of_several_lanes() {
    within(WATCH, || {
        const TASKS: usize = 100;
        for lanes in [2, 3] {
            let runtime = Runtime::builder().workers(lanes).build().unwrap();
            let builder = Controller::builder().on(&runtime).lanes(lanes);
            let (controller, log) = (builder.build().unwrap(), Log::default());
            let loopers: Vec<_> = (0..2 * lanes).map(|_| controller.looper()).collect();
            let meeting = Arc::new(Barrier::new(lanes));
            let notes = log.clone();
            // All tasks take equally long: on each lane one begins, and they end together.
            drive(at_once(&controller, move || {
                for (which, looper) in loopers.iter().enumerate() {
                    for _ in 0..TASKS {
                        let (notes, meeting) = (notes.clone(), meeting.clone());
                        drop(looper.post(move || {
                            notes.add(which);
                            meeting.wait();
                        }));
                    }
                }
            }));
            drive(controller.shutdown());
            let mut log = log.take();
            // Which of several lanes is the first one to note its task does not matter.
            log.chunks_mut(lanes)
                .for_each(|together| together.sort_unstable());
            let in_turn: Vec<_> = (0..2 * lanes).collect();
            assert_eq!(log, in_turn.repeat(TASKS), "{lanes} lanes");
        }
    });
}

#[test]
fn the_turn_goes_on_where_it_was_after_the_world_has_stopped() {
    simulated(|| async {
        let (controller, log) = (controller(1), Log::default());
        let loopers = [(); 3].map(|()| controller.looper());
        let (notes, stops) = (log.clone(), controller.clone());
        at_once(&controller, move || {
            for (which, looper) in (0..).zip(&loopers) {
                for _ in 0..4 {
                    let (notes, stops) = (notes.clone(), stops.clone());
                    drop(looper.post(move || {
                        drop(stops.stop_the_world(|_| ()));
                        notes.add(which);
                    }));
                }
            }
        })
        .await;
        wait_for(|| log.len() == 12).await;
        assert_eq!(log.take(), [0, 1, 2].repeat(4));
    });
}

#[test]
fn a_looper_that_is_never_idle_leaves_the_others_their_turns() {
    everywhere(|| async {
        let controller = controller(1);
        let (busy, other) = (controller.looper(), controller.looper());
        /// Posts a task that posts itself again.
        fn again(looper: &Looper) {
            let own = looper.clone();
            drop(looper.post(move || again(&own)));
        }
        again(&busy);
        for number in 0..20 {
            assert_eq!(other.post(move || number).unwrap().await.unwrap(), number);
        }
        controller.shutdown().await;
    });
}

#[test]
fn the_next_task_begins_when_an_async_one_has_ended() {
    simulated(|| async {
        let (controller, log) = (controller(2), Log::default());
        let looper = controller.looper();
        let notes = log.clone();
        let first = looper.priority(0).spawn(async move {
            sleep(Duration::from_secs(1)).await;
            notes.add(1);
        });
        note_at(&looper, 3, &log, 2).await.unwrap();
        assert!(first.unwrap().is_finished());
        assert_eq!(log.take(), [1, 2]);
    });
}

#[test]
fn an_async_task_that_waits_takes_no_lane() {
    everywhere(|| async {
        let controller = controller(1);
        let (first, second) = (controller.looper(), controller.looper());
        let held = hold(&first).await;
        assert_eq!(second.post(|| 5).unwrap().await.unwrap(), 5);
        let stats = controller.status();
        assert_eq!((stats.loopers, stats.running, stats.ready), (2, 0, 0));
        held.end().await;
    });
}

#[test]
fn tasks_are_posted_by_threads_tasks_and_the_world() {
    everywhere(|| async {
        let controller = controller(1);
        let looper = controller.looper();
        let (from_thread, from_task, from_world) = (looper.clone(), looper.clone(), looper.clone());
        let thread = std::thread::spawn(move || from_thread.post(|| 1).unwrap());
        assert_eq!(thread.join().unwrap().await.unwrap(), 1);
        let task = looper.post(move || from_task.post(|| 2).unwrap()).unwrap();
        assert_eq!(task.await.unwrap().await.unwrap(), 2);
        let next = controller.clone();
        let world = controller.stop_the_world(move |_| {
            let posted = from_world.post(|| 3).unwrap();
            (posted, next.stop_the_world(|_| 4).unwrap())
        });
        let (posted, again) = world.unwrap().await.unwrap();
        assert_eq!((posted.await.unwrap(), again.await.unwrap()), (3, 4));
    });
}

#[test]
fn tasks_of_one_looper_share_what_only_they_use_without_a_lock() {
    everywhere(|| async {
        let controller = controller(2);
        let looper = controller.looper();
        let shared = Arc::new(AtomicUsize::new(0));
        let posts = (0..100).map(|_| {
            let shared = shared.clone();
            looper.post(move || {
                // Neither is atomic together with the other one.
                let count = shared.load(Ordering::Relaxed);
                shared.store(count + 1, Ordering::Relaxed);
            })
        });
        let posts: Vec<_> = posts.collect();
        for posted in posts {
            posted.unwrap().await.unwrap();
        }
        assert_eq!(shared.load(Ordering::Relaxed), 100);
    });
}
