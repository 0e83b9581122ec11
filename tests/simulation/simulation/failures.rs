//! What makes a run fail, what does not, and the text of a failure.

use std::future::pending;
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::sim::{self, RunProblem};
use greenroom::time::sleep;
use greenroom::{Address, AskError, Context, Fault, Reply, Runtime, actor, spawn, yield_now};

use super::{Friend, SEEDS, deadlock_of, deaf, failure_of, reads, run_of, shy};
use crate::support::panic_of;

/// The text of a deadlock of [`two_friends`].
const A_B_A: &str = r#""a" #1 → "b" #2 → "a" #1"#;

/// Spawns two actors that ask each other when the first one is asked.
async fn two_friends() -> [greenroom::Handle<Friend, ()>; 2] {
    let (a, b) = (spawn!(shy(_), name = "a"), spawn!(shy(_), name = "b"));
    a.tell(Friend::Is(b.address())).unwrap();
    b.tell(Friend::Is(a.address())).unwrap();
    [a, b]
}

#[test]
fn a_panic_of_the_future_is_a_failure() {
    let failure = failure_of(|| async { panic!("bomb in main") });
    let panicked = RunProblem::Panicked("main panicked: bomb in main".into());
    assert_eq!(*failure.problem(), panicked);
}

#[test]
fn an_unjoined_panic_is_a_failure() {
    let failure = failure_of(|| async {
        drop(spawn!(
            |_cx: Context<u32>| async { panic!("bomb in b") },
            name = "b"
        ));
        pending::<()>().await;
    });
    let panicked = RunProblem::Panicked("\"b\" #1 panicked: bomb in b".into());
    assert_eq!(*failure.problem(), panicked);
    let failure = failure_of(|| async {
        spawn(async { panic!("bomb in a task") }).detach();
        sleep(Duration::from_secs(1)).await;
    });
    let panicked = RunProblem::Panicked("a task panicked: bomb in a task".into());
    assert_eq!(*failure.problem(), panicked);
}

async fn bursts(_cx: Context<u32>) {
    panic!("bomb");
}

#[test]
fn an_unnamed_actor_is_called_after_its_function_with_its_number_in_the_run() {
    let failure = failure_of(|| async {
        spawn(async {}).await;
        drop(spawn!(bursts(_)));
        yield_now().await;
    });
    let panicked = RunProblem::Panicked("bursts #2 panicked: bomb".into());
    assert_eq!(*failure.problem(), panicked);
}

#[test]
fn a_joined_panic_is_no_failure() {
    crate::support::keep_bombs_quiet();
    for seed in SEEDS {
        run_of(seed, async {
            let dies = spawn!(|_cx: Context<u32>| async { panic!("bomb") });
            assert!(matches!(dies.join().await, Err(Fault::Panicked(_))));
        });
    }
}

#[test]
fn a_future_that_nothing_can_wake_is_a_deadlock() {
    let who = deadlock_of(|| async {
        let keep = Runtime::current().keep_alive();
        let alive = spawn!(reads(_));
        pending::<()>().await;
        drop((keep, alive));
    });
    assert_eq!(who, "main waits, and nothing is left that could wake it");
}

#[test]
fn a_cycle_of_asks_is_a_deadlock_that_names_the_actors() {
    let who = deadlock_of(|| async {
        let [a, _b] = two_friends().await;
        let _ = a.ask(Friend::Ask).await;
    });
    assert_eq!(who, A_B_A);
}

#[test]
fn a_cycle_of_asks_is_a_deadlock_even_if_the_future_is_done() {
    let who = deadlock_of(|| async {
        let [a, b] = two_friends().await;
        spawn(async move {
            let _ = a.ask(Friend::Ask).await;
            drop(b);
        })
        .detach();
        sleep(Duration::from_secs(1)).await;
    });
    assert_eq!(who, A_B_A);
}

#[test]
fn a_cycle_of_asks_is_a_deadlock_even_if_the_future_awaits_quiescence() {
    let who = deadlock_of(|| async {
        let [a, _b] = two_friends().await;
        let asks = spawn(async move { a.ask(Friend::Ask).await });
        Runtime::current().quiescent().await;
        drop(asks);
    });
    assert_eq!(who, A_B_A);
}

#[test]
fn a_kept_reply_is_a_deadlock_that_names_the_chain() {
    async fn keeps(mut cx: Context<Friend>) {
        let kept = cx.recv().await;
        pending::<()>().await;
        drop(kept);
    }
    let who = deadlock_of(|| async {
        let [a, _b] = two_friends().await;
        let c = spawn!(keeps(_), name = "c");
        a.tell(Friend::Is(c.address())).unwrap();
        let _ = a.ask(Friend::Ask).await;
    });
    assert_eq!(who, r#"main → "a" #1 → "c" #3"#);
}

#[test]
fn a_send_that_waits_for_room_is_a_deadlock_that_names_the_actor() {
    let who = deadlock_of(|| async {
        let full = spawn!(deaf(_), name = "full", capacity = 1);
        full.send(1).await.unwrap();
        full.send(2).await.unwrap();
    });
    assert_eq!(who, r#"main → "full" #1 (for room)"#);
    let who = deadlock_of(|| async {
        let full = spawn!(deaf(_), name = "full", capacity = 1);
        let mapped = full.map(u32::from);
        mapped.send(1_u8).await.unwrap();
        mapped.send(2).await.unwrap();
    });
    assert_eq!(who, r#"main → "full" #1 (for room)"#);
}

/// Sends to its friend until its friend is closed.
async fn fills(mut cx: Context<Friend>) {
    let Some(Friend::Is(friend)) = cx.recv().await else {
        unreachable!("the first message must be the friend");
    };
    while friend.send(Friend::Is(friend.clone())).await.is_ok() {}
}

async fn asks_once(mut cx: Context<Friend>, friend: Address<Friend>) {
    cx.recv().await;
    let _ = friend.ask(Friend::Ask).await;
}

#[test]
fn a_send_and_an_ask_can_form_a_cycle() {
    let who = deadlock_of(|| async {
        let back = spawn!(fills(_), name = "back");
        let front = spawn!(asks_once(_, back.address()), name = "front", capacity = 1);
        back.tell(Friend::Is(front.address())).unwrap();
        front.closed().await;
    });
    assert!(
        [
            r#""back" #1 → "front" #2 (for room) → "back" #1"#,
            r#""front" #2 → "back" #1 → "front" #2 (for room)"#
        ]
        .contains(&&*who),
        "{who}"
    );
}

#[test]
fn a_send_that_got_its_room_or_was_dropped_is_no_deadlock() {
    for seed in SEEDS {
        run_of(seed, async {
            let slow = spawn!(
                |mut cx: Context<u32>| async move {
                    while cx.recv().await.is_some() {
                        sleep(Duration::from_secs(1)).await;
                    }
                },
                capacity = 1
            );
            let senders: Vec<_> = (0..5)
                .map(|n| {
                    let slow = slow.address();
                    spawn(async move { slow.send(n).await.unwrap() })
                })
                .collect();
            let given_up = slow.send(5);
            drop(spawn(greenroom::time::timeout(
                Duration::from_millis(1),
                pending::<()>(),
            )));
            drop(given_up);
            for sender in senders {
                sender.await;
            }
            Runtime::current().quiescent().await;
            slow.join().await.unwrap();
        });
    }
}

#[test]
fn an_actor_that_the_shutdown_has_to_cancel_is_a_failure() {
    let failure = failure_of(|| async {
        drop(spawn!(deaf(_), name = "deaf"));
        drop(spawn!(reads(_), name = "reads"));
        drop(spawn!(never_ends(_)));
    });
    let left = ["\"deaf\" #1", "never_ends #3"].map(str::to_owned);
    let left = RunProblem::Cancelled(left.into());
    assert_eq!(*failure.problem(), left);
    assert_eq!(
        failure.problem().to_string(),
        r#"the shutdown had to cancel "deaf" #1, never_ends #3"#
    );
}

async fn never_ends(_cx: Context<u32>) {
    pending::<()>().await;
}

#[test]
fn an_actor_has_the_grace_of_its_runtime_to_end() {
    let sleeps = |seconds| {
        async move {
            drop(spawn!(move |_cx: Context<u32>| sleep(Duration::from_secs(
                seconds
            ))));
            // The actor has begun.
            yield_now().await;
        }
    };
    for seed in SEEDS {
        run_of(seed, sleeps(4));
    }
    let failure = failure_of(|| sleeps(6));
    assert!(
        matches!(failure.problem(), RunProblem::Cancelled(_)),
        "{failure}"
    );
}

#[test]
fn too_many_steps_are_a_failure() {
    async fn endless() {
        loop {
            yield_now().await;
        }
    }
    let failure = Simulated::new(1).steps(500).try_run(endless()).unwrap_err();
    assert_eq!(
        failure.problem().to_string(),
        "the run did not end within 500 steps"
    );
    let in_the_end = || async { spawn!(|_cx: Context<u32>| endless()) };
    let failure = Simulated::new(1)
        .steps(500)
        .try_run(in_the_end())
        .unwrap_err();
    assert_eq!(
        failure.problem().to_string(),
        "the run did not end within 500 steps"
    );
}

#[test]
fn too_many_steps_beside_a_cycle_of_asks_name_the_cycle() {
    for seed in SEEDS {
        let failure = Simulated::new(seed).steps(1000).try_run(async {
            let ticks = spawn!(|mut cx: Context<()>| async move {
                let _beat = cx.send_every(Duration::from_secs(1), || ());
                while cx.recv().await.is_some() {}
            });
            let [a, _b] = two_friends().await;
            let _ = a.ask(Friend::Ask).await;
            drop(ticks);
        });
        assert_eq!(
            failure.unwrap_err().problem().to_string(),
            "the run did not end within 1000 steps, and these wait: \
             \"a\" #2 → \"b\" #3 → \"a\" #2"
        );
    }
}

#[test]
fn a_failure_drops_all_futures_and_values_of_the_run() {
    let drops = crate::support::Drops::default();
    let live = || {
        let (main, task) = (drops.one(), drops.one());
        let (held, job) = (drops.one(), drops.one());
        async move {
            spawn(async move {
                pending::<()>().await;
                drop(task);
            })
            .detach();
            let pinned = Runtime::current().spawn_pinned("host").unwrap();
            let hosted = pinned.host(move || held).await.unwrap();
            greenroom::unblock(move || drop(job)).await;
            pending::<()>().await;
            drop((main, hosted));
        }
    };
    failure_of(live);
    assert_eq!(drops.count(), 4 * (SEEDS.end - SEEDS.start) as usize);
}

#[test]
fn the_text_has_the_problem_its_time_the_trace_and_how_to_repeat_the_run() {
    let failure = Simulated::new(3).random().steps(9000).try_run(async {
        let [a, _b] = two_friends().await;
        sleep(Duration::from_millis(1500)).await;
        let _ = a.ask(Friend::Ask).await;
    });
    let text = failure.unwrap_err().to_string();
    for part in [
        "seed 3: deadlock: \"a\" #1 → \"b\" #2 → \"a\" #1\n",
        " at 1.50",
        "  main: sends #3 Friend to \"a\" #1\n",
        "  \"a\" #1: gets #3 Friend from main, sends #4 Friend to \"b\" #2\n",
        "  \"b\" #2: gets #4 Friend from \"a\" #1, sends #5 Friend to \"a\" #1\n",
        "to run it again: greenroom::policy::Simulated::new(3).random().steps(9000).try_run(..)\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_trace_has_only_the_last_steps() {
    let last = |steps: usize, simulated: Simulated| {
        let failure = simulated.try_run(async {
            for _ in 0..1000 {
                yield_now().await;
            }
            panic_quietly();
        });
        let failure = failure.unwrap_err();
        let lines: Vec<_> = failure.trace().lines().skip(1).map(str::to_owned).collect();
        assert_eq!(lines.len(), steps, "{failure}");
        lines.last().cloned()
    };
    crate::support::keep_bombs_quiet();
    last(200, Simulated::new(1));
    assert!(
        last(3, Simulated::new(1).trace(3))
            .unwrap()
            .contains("1001")
    );
    last(0, Simulated::new(1).trace(0));
}

fn panic_quietly() {
    panic!("bomb");
}

#[test]
fn explore_stops_at_the_first_failing_seed_and_says_how_to_repeat_it() {
    let mut last = 0;
    let here = line!() + 2;
    let (text, file, line) = panic_of(|| {
        sim::explore(0..1000, |seed: u64| {
            last = seed;
            async move {
                spawn(async {}).await;
                assert!(seed < 6, "bomb");
            }
        });
    });
    assert_eq!((file.as_str(), line, last), (file!(), here, 6));
    assert!(text.starts_with("seed 6: main panicked: bomb\n"), "{text}");
    assert!(
        text.contains("to run it again: greenroom::sim::run(6, ..)\n"),
        "{text}"
    );
    let at = format!("{}:{here}:", file!());
    assert!(
        text.contains(&at) && text.contains("greenroom::sim::explore([6], ..)"),
        "{text}"
    );
}

#[test]
fn a_failing_run_panics_with_the_text_at_the_caller() {
    let here = line!() + 1;
    let (text, file, line) = panic_of(|| sim::run(5, pending::<()>()));
    assert_eq!((file.as_str(), line), (file!(), here));
    assert!(text.starts_with("seed 5: deadlock: main waits"), "{text}");
}

#[test]
fn outside_a_run_a_deadlock_fails_its_ask_or_else_panics() {
    let runtime = Runtime::builder()
        .policy(Simulated::new(1))
        .build()
        .unwrap();
    let keeps = actor(|mut cx: Context<Reply<u32>>| async move {
        let kept = cx.recv().await;
        cx.recv().await;
        drop(kept);
    });
    let keeps = keeps.name("keeps").on(&runtime).spawn();
    match runtime.block_on(keeps.ask(|reply| reply)) {
        Err(AskError::Deadlock(who)) => assert_eq!(who.as_str(), r#"main → "keeps" #1"#),
        other => panic!("{other:?}"),
    }
    let here = line!() + 1;
    let (text, file, line) = panic_of(|| runtime.block_on(pending::<()>()));
    assert_eq!((file.as_str(), line), (file!(), here));
    assert!(
        text.starts_with("deadlock: main waits, and nothing is left"),
        "{text}"
    );
    assert_eq!(
        runtime.block_on(runtime.spawn(async { 42 })),
        42,
        "the runtime still runs tasks"
    );
}

/// A value that waits in its drop, in the current runtime.
struct Waits(greenroom::Address<u32>);

impl Drop for Waits {
    fn drop(&mut self) {
        let waits = Runtime::try_current().map(|runtime| (runtime, self.0.clone()));
        if let Some((runtime, address)) = waits {
            runtime.block_on(async move { address.closed().await });
        }
    }
}

#[test]
fn a_block_on_in_a_drop_after_a_failed_run_is_contained() {
    let who = deadlock_of(|| async {
        let waits = Waits(spawn!(reads(_)).address());
        let held = Waits(waits.0.clone());
        spawn(async move {
            pending::<()>().await;
            drop(held);
        })
        .detach();
        pending::<()>().await;
        drop(waits);
    });
    assert!(who.starts_with("main waits"), "{who}");
}

#[test]
fn more_priority_changes_than_steps_are_allowed() {
    for (changes, within) in [(u32::MAX, u64::MAX), (u32::MAX, 3), (3, 0), (0, 0)] {
        let run = Simulated::new(1)
            .priorities(changes, within)
            .try_run(async {
                let tasks: Vec<_> = (0..10).map(|n| spawn(async move { n })).collect();
                futures::future::join_all(tasks)
                    .await
                    .into_iter()
                    .sum::<u32>()
            });
        assert_eq!(run.unwrap().value, 45);
    }
}

#[test]
fn waiting_sends_are_a_deadlock_even_if_the_future_is_done() {
    for seed in SEEDS {
        let failure = Simulated::new(seed).try_run(async {
            let fills = |name: &str| actor(fills).name(name).capacity(2).spawn();
            let (a, b) = (fills("a"), fills("b"));
            a.tell(Friend::Is(b.address())).unwrap();
            b.tell(Friend::Is(a.address())).unwrap();
            sleep(Duration::from_secs(3600)).await;
        });
        match failure.unwrap_err().problem() {
            // A message from `a` to `b` may come before that of `main`; then `b` fills its own
            // mailbox.
            RunProblem::Deadlock(who) => {
                assert!(
                    [
                        r#""a" #1 → "b" #2 (for room) → "a" #1 (for room)"#,
                        r#""b" #2 → "a" #1 (for room) → "b" #2 (for room)"#,
                        r#""b" #2 → "b" #2 (for room)"#,
                    ]
                    .contains(&&**who),
                    "{who}"
                );
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_send_dropped_by_another_task_is_no_deadlock() {
    for seed in SEEDS {
        run_of(seed, async {
            let full = spawn!(deaf(_), capacity = 1);
            full.send(1).await.unwrap();
            let address = full.address();
            let mut waits = Box::pin(async move { address.send(2).await });
            assert!(futures::poll!(&mut waits).is_pending());
            spawn(async move { drop(waits) }).await;
            Runtime::current().quiescent().await;
            full.kill();
        });
    }
}

#[test]
fn several_drops_may_call_block_on_after_a_failed_run() {
    struct Yields;
    impl Drop for Yields {
        fn drop(&mut self) {
            Runtime::current().block_on(yield_now());
        }
    }
    let failure = failure_of(|| async {
        let _held = (Yields, Yields);
        spawn(async {
            let _held = (Yields, Yields);
            Runtime::current().block_on(pending::<()>());
        })
        .detach();
        pending::<()>().await;
    });
    assert!(
        matches!(failure.problem(), RunProblem::Deadlock(_)),
        "{failure}"
    );
}

#[test]
fn messages_from_sources_are_in_the_trace() {
    let failure = failure_of(|| async {
        let a = spawn!(
            |mut cx: Context<u32>| async move {
                let _timer = cx.send_after(Duration::from_secs(36), 1);
                cx.recv().await;
                panic!("bomb")
            },
            name = "a"
        );
        a.closed().await;
    });
    let part = "\"a\" #1: gets u32 from a source of its own";
    assert!(failure.trace().contains(part), "{failure}");
}
