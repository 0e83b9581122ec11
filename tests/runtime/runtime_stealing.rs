//! Stealing: another worker runs the tasks of a blocked worker, whichever queue they are in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use greenroom::{Context, Reply, Runtime, spawn};

use crate::support::{Gate, OpenOnDrop, WATCH, drive, within};

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

/// The number of repetitions; the other worker does something different each time.
const TIMES: usize = 200;

/// Runs a task that blocks its worker until `count` other tasks, queued by that worker, have run.
pub fn block_until_others_ran(runtime: &Runtime, count: usize) {
    drive(runtime.spawn(async move {
        let gates: Vec<Gate> = (0..count).map(|_| Gate::default()).collect();
        for gate in &gates {
            let gate = gate.clone();
            greenroom::spawn(async move { gate.open() }).detach();
        }
        // No await: the worker is blocked here.
        gates.iter().for_each(Gate::pass);
    }));
}

fn blocked_until_others_ran(workers: usize, count: usize) {
    within(WATCH, move || {
        let runtime = runtime(workers);
        (0..TIMES).for_each(|_| block_until_others_ran(&runtime, count));
    });
}

#[test]
fn a_task_in_the_slot_of_a_worker_that_blocks_is_run_by_another() {
    blocked_until_others_ran(2, 1);
}

#[test]
fn tasks_in_the_ring_and_the_slot_of_a_worker_that_blocks_are_run_by_another() {
    blocked_until_others_ran(2, 2);
    blocked_until_others_ran(2, 5);
}

#[test]
fn tasks_that_overflow_the_ring_of_a_worker_that_blocks_are_run_by_another() {
    within(WATCH, || {
        let runtime = runtime(2);
        for count in [255, 256, 257, 258, 1000, 5000] {
            let ran = Arc::new(AtomicUsize::new(0));
            let all = Gate::default();
            let (counter, last) = (ran.clone(), all.clone());
            drive(runtime.spawn(async move {
                for _ in 0..count {
                    let (counter, last) = (counter.clone(), last.clone());
                    greenroom::spawn(async move {
                        if counter.fetch_add(1, Ordering::SeqCst) + 1 == count {
                            last.open();
                        }
                    })
                    .detach();
                }
                last.pass();
            }));
            assert_eq!(ran.load(Ordering::SeqCst), count);
        }
    });
}

#[test]
fn two_of_three_workers_may_block() {
    blocked_until_others_ran(3, 1);
    within(WATCH, || {
        let runtime = runtime(3);
        for _ in 0..TIMES {
            let done = Gate::default();
            let (first, second) = (Gate::default(), done.clone());
            drive(runtime.spawn(async move {
                // This task blocks for a task that blocks for a task.
                let opens = first.clone();
                greenroom::spawn(async move {
                    let opened = second.clone();
                    greenroom::spawn(async move { opened.open() }).detach();
                    second.pass();
                    opens.open();
                })
                .detach();
                first.pass();
            }));
            assert!(done.is_open());
        }
    });
}

#[test]
fn an_actor_woken_by_a_handler_that_then_blocks_answers_it() {
    within(WATCH, || {
        let runtime = runtime(2);
        let answered = Gate::default();
        let opens = answered.clone();
        let answerer = spawn!(
            |mut cx: Context<Gate>| async move {
                opens.open();
                while let Some(gate) = cx.recv().await {
                    gate.open();
                }
            },
            on = &runtime
        );
        answered.pass();
        let address = answerer.address();
        let asker = spawn!(
            |mut cx: Context<u32>| async move {
                let mut blocked = 0;
                while cx.recv().await.is_some() {
                    let gate = Gate::default();
                    address.tell(gate.clone()).unwrap();
                    // The handler blocks for the answer of an actor on its own worker.
                    gate.pass();
                    blocked += 1;
                }
                blocked
            },
            on = &runtime
        );
        (0..1000).for_each(|n| asker.tell(n).unwrap());
        assert_eq!(drive(asker.join()).unwrap(), 1000);
    });
}

#[test]
fn a_task_woken_into_the_slot_of_a_worker_that_blocks_is_run() {
    within(WATCH, || {
        let runtime = runtime(2);
        for _ in 0..TIMES {
            let (go, done) = (Gate::default(), Gate::default());
            let (waits, opens) = (go.clone(), done.clone());
            let mut sleeper = runtime.spawn(async move {
                waits.wait().await;
                opens.open();
            });
            runtime.block_on(async {
                assert!(crate::support::poll_here(&mut sleeper).await.is_pending());
            });
            // The task waits for `go` by now, or is about to have its first turn.
            drive(runtime.spawn(async move {
                go.open();
                done.pass();
            }));
            drive(sleeper);
        }
    });
}

#[test]
fn a_task_that_has_yielded_to_a_task_that_blocks_is_run() {
    within(WATCH, || {
        let runtime = runtime(2);
        for _ in 0..TIMES {
            let back = Gate::default();
            let awaited = back.clone();
            drive(runtime.spawn(async move {
                greenroom::spawn(async move { awaited.pass() }).detach();
                greenroom::yield_now().await;
                back.open();
            }));
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn two_actors_that_talk_do_not_wake_a_worker_for_each_message() {
    const ROUNDS: u64 = 50_000;
    async fn back(mut cx: Context<Reply<()>>) {
        while let Some(reply) = cx.recv().await {
            reply.send(());
        }
    }
    let naps = || {
        let threads = crate::support::naps::naps("pair-").into_values();
        threads.map(|(naps, _)| naps).sum::<u64>()
    };
    within(WATCH, move || {
        let builder = Runtime::builder().workers(2).thread_name("pair");
        let runtime = builder.build().unwrap();
        let back = spawn!(back(_), on = &runtime);
        let (naps, took) = drive(runtime.spawn(async move {
            let (before, start) = (naps(), Instant::now());
            for _ in 0..ROUNDS {
                back.ask(|reply| reply).await.unwrap();
            }
            (naps() - before, start.elapsed())
        }));
        // One sleeper checks the LIFO slots every 2 ms, however many messages pass through them. A
        // slow machine has time for more of these checks.
        let checks = took.as_millis() as u64;
        assert!(naps < ROUNDS / 10 + checks, "{naps} naps in {took:?}");
    });
}

/// Blocks one of the workers until the returned guard is dropped.
fn block_one(runtime: &Runtime) -> OpenOnDrop {
    let (begun, gate) = (Gate::default(), Gate::default());
    let (here, waits) = (begun.clone(), gate.clone());
    runtime
        .spawn(async move {
            here.open();
            waits.pass();
        })
        .detach();
    begun.pass();
    OpenOnDrop(gate)
}

#[test]
fn injected_work_is_handled_while_one_worker_is_blocked() {
    within(WATCH, || {
        let runtime = runtime(2);
        let blocked = block_one(&runtime);
        let counter = spawn!(
            |mut cx: Context<u32>| async move {
                let mut sum = 0;
                while let Some(n) = cx.recv().await {
                    sum += n;
                }
                sum
            },
            on = &runtime
        );
        for n in 0..100 {
            counter.tell(n).unwrap();
            assert_eq!(drive(runtime.spawn(async move { n })), n);
        }
        assert_eq!(drive(counter.join()).unwrap(), 4950);
        drop(blocked);
    });
}

#[test]
fn actors_that_ran_on_a_blocked_worker_continue_on_another() {
    within(WATCH, || {
        let runtime = runtime(2);
        let actors: Vec<_> = (0..10)
            .map(|_| {
                spawn!(
                    |mut cx: Context<u32>| async move {
                        let mut sum = 0;
                        while let Some(n) = cx.recv().await {
                            sum += n;
                        }
                        sum
                    },
                    on = &runtime
                )
            })
            .collect();
        actors.iter().for_each(|actor| actor.tell(1).unwrap());
        let blocked = block_one(&runtime);
        for n in 0..100 {
            actors[n as usize % 10].tell(n).unwrap();
        }
        let sum: u32 = actors
            .into_iter()
            .map(|actor| drive(actor.join()).unwrap())
            .sum();
        assert_eq!(sum, 4950 + 10);
        drop(blocked);
    });
}

/// Queues a job for the other worker in a certain way.
type Bring = fn(&Runtime, Gate);

const KINDS: [(&str, Bring); 8] = [
    ("injector", |runtime, gate| {
        runtime.spawn(async move { gate.open() }).detach()
    }),
    ("slot, then blocked", |runtime, gate| {
        runtime
            .spawn(async move {
                let opens = gate.clone();
                greenroom::spawn(async move { opens.open() }).detach();
                gate.pass();
            })
            .detach();
    }),
    ("ring, then blocked", |runtime, gate| {
        runtime
            .spawn(async move {
                let opens = gate.clone();
                greenroom::spawn(async move { opens.open() }).detach();
                greenroom::spawn(async {}).detach();
                gate.pass();
            })
            .detach();
    }),
    ("overflow, then blocked", |runtime, gate| {
        runtime
            .spawn(async move {
                let opens = gate.clone();
                greenroom::spawn(async move { opens.open() }).detach();
                (0..600).for_each(|_| greenroom::spawn(async {}).detach());
                gate.pass();
            })
            .detach();
    }),
    ("a deadline", |runtime, gate| {
        let soon = greenroom::time::sleep(Duration::from_millis(1));
        runtime
            .spawn(async move {
                soon.await;
                gate.open();
            })
            .detach();
    }),
    ("a pinned thread's wake", |runtime, gate| {
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let waits = Gate::default();
        let opens = waits.clone();
        runtime
            .spawn(async move {
                waits.wait().await;
                gate.open();
            })
            .detach();
        pinned.spawn(move || async move { opens.open() }).detach();
    }),
    ("a job's end", |runtime, gate| {
        runtime
            .spawn(async move {
                greenroom::unblock(|| {}).await;
                gate.open();
            })
            .detach();
    }),
    ("an actor's message", |runtime, gate| {
        let actor = spawn!(
            |mut cx: Context<()>| async move {
                cx.recv().await;
                gate.open();
            },
            on = runtime
        );
        actor.tell(()).unwrap();
    }),
];

#[test]
fn each_kind_of_queue_wakes_a_sleeping_worker() {
    for (kind, bring) in KINDS {
        eprintln!("woken by {kind}");
        within(WATCH, move || {
            let runtime = runtime(2);
            for _ in 0..20 {
                let gate = Gate::default();
                bring(&runtime, gate.clone());
                gate.pass();
            }
        });
    }
}

#[test]
fn all_workers_run_tasks_that_one_task_spawns() {
    within(WATCH, || {
        for workers in [2, 4] {
            let runtime = runtime(workers);
            for _ in 0..50 {
                drive(runtime.spawn(async move {
                    // All of these must run at the same time.
                    let meeting = Arc::new(Barrier::new(workers));
                    let tasks: Vec<_> = (0..workers)
                        .map(|_| {
                            let meeting = meeting.clone();
                            greenroom::spawn(async move { meeting.wait().is_leader() })
                        })
                        .collect();
                    futures::future::join_all(tasks).await;
                }));
            }
        }
    });
}

#[test]
fn no_task_is_lost_or_run_twice_among_many_workers_that_steal() {
    within(WATCH, || {
        let runtime = runtime(8);
        const TASKS: usize = 200;
        const TURNS: usize = 100;
        let turns: Arc<Vec<AtomicUsize>> =
            Arc::new((0..TASKS).map(|_| AtomicUsize::new(0)).collect());
        let counters = turns.clone();
        drive(runtime.spawn(async move {
            let tasks: Vec<_> = (0..TASKS)
                .map(|id| {
                    let counters = counters.clone();
                    greenroom::spawn(async move {
                        for turn in 0..TURNS {
                            assert_eq!(counters[id].fetch_add(1, Ordering::Relaxed), turn);
                            greenroom::yield_now().await;
                        }
                    })
                })
                .collect();
            futures::future::join_all(tasks).await;
        }));
        assert!(
            turns
                .iter()
                .all(|count| count.load(Ordering::Relaxed) == TURNS)
        );
    });
}
