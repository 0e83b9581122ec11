//! Split turns: the effects of a turn on other tasks arrive one after another, and nothing else
//! changes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::Location;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use greenroom::policy::Simulated;
use greenroom::{Address, AskDetail, AskError, Context, Reply, sim, spawn, yield_now};

use super::run_of;

/// Many of these seeds split turns.
const SEEDS: Range<u64> = 0..400;

type Log = Arc<Mutex<Vec<u32>>>;

/// Records its messages.
async fn notes(mut cx: Context<u32>, log: Log) {
    while let Some(number) = cx.recv().await {
        log.lock().unwrap().push(number);
    }
}

/// Returns all values that the program returns with some seed.
fn values<T: Ord, F: Future<Output = T>>(program: impl Fn() -> F) -> BTreeSet<T> {
    SEEDS.map(|seed| run_of(seed, program()).value).collect()
}

#[test]
fn other_messages_may_arrive_between_two_messages_of_a_turn() {
    let program = || async {
        let log = Log::default();
        let (first, second) = (Log::default(), log.clone());
        let one = spawn!(notes(_, first.clone()));
        let two = spawn!(notes(_, second));
        let teller = {
            let (one, two) = (one.address(), two.address());
            spawn(async move {
                one.tell(1).unwrap();
                two.tell(1).unwrap();
            })
        };
        // Observes the effect of the first message, and then sends to the second actor.
        let watcher = {
            let two = two.address();
            spawn(async move {
                while first.lock().unwrap().is_empty() {
                    yield_now().await;
                }
                let _ = two.tell(2);
            })
        };
        teller.await;
        watcher.await;
        two.join().await.unwrap();
        one.join().await.unwrap();
        log.lock().unwrap().clone()
    };
    assert_eq!(values(program), BTreeSet::from([vec![1, 2], vec![2, 1]]));
}

#[test]
fn messages_of_one_sender_to_one_actor_stay_in_order_however_they_are_sent() {
    let program = || async {
        let log = Log::default();
        let (one, other) = (
            spawn!(notes(_, log.clone())),
            spawn!(notes(_, Log::default())),
        );
        let sender = {
            let (one, other) = (one.address(), other.address());
            spawn(async move {
                let mapped = one.map(|number: u32| number);
                for number in 0..4 {
                    one.tell(4 * number).unwrap();
                    other.tell(0).unwrap();
                    mapped.tell(4 * number + 1).unwrap();
                    one.send(4 * number + 2).await.unwrap();
                    mapped.send(4 * number + 3).await.unwrap();
                }
            })
        };
        sender.await;
        one.join().await.unwrap();
        log.lock().unwrap().clone()
    };
    assert_eq!(values(program), BTreeSet::from([(0..16).collect()]));
}

#[test]
fn an_accepted_message_is_handled_if_a_stop_comes_before_it_arrives() {
    let program = || async {
        let log = Log::default();
        let one = spawn!(notes(_, log.clone()));
        let sender = {
            let (one, other) = (one.address(), spawn!(notes(_, Log::default())));
            spawn(async move {
                other.tell(1).unwrap();
                one.tell(1)
            })
        };
        let stopper = {
            let one = one.address();
            spawn(async move { one.stop() })
        };
        let told = sender.await;
        stopper.await;
        one.join().await.unwrap();
        assert_eq!(told.is_ok(), *log.lock().unwrap() == [1]);
        told.is_ok()
    };
    assert_eq!(values(program), BTreeSet::from([false, true]));
}

#[test]
fn a_message_takes_its_place_in_a_bounded_mailbox_when_it_is_sent() {
    let program = || async {
        let (one, other) = (
            spawn!(notes(_, Log::default()), capacity = 1),
            spawn!(notes(_, Log::default())),
        );
        let sender = {
            let one = one.address();
            spawn(async move {
                other.tell(1).unwrap();
                let told = one.tell(1).is_ok();
                // No message was received in between.
                assert!(
                    one.tell(2)
                        .is_err_and(|it| it.is_full() && it.into_inner() == 2)
                );
                assert_eq!(one.len(), 1);
                told
            })
        };
        assert!(sender.await);
        one.join().await.unwrap();
    };
    values(program);
}

#[test]
fn a_turn_sees_its_own_effects() {
    async fn both(mut cx: Context<Reply<bool>>, other: Address<u32>) {
        while let Some(reply) = cx.recv().await {
            other.tell(1).unwrap();
            let own = cx.address();
            // Sent to the actor itself, and received at once.
            assert!(own.ask(|reply| reply).now_or_never().is_none());
            assert!(cx.try_recv().is_some());
            other.stop();
            assert!(other.is_closed());
            assert!(
                other
                    .tell(2)
                    .is_err_and(|it| it.is_closed() && it.into_inner() == 2)
            );
            reply.send(true);
        }
    }
    values(|| async {
        let log = Log::default();
        let one = spawn!(notes(_, log.clone()));
        let both = spawn!(both(_, one.address()));
        assert_eq!(both.ask(|reply| reply).await, Ok(true));
        one.join().await.unwrap();
        assert_eq!(*log.lock().unwrap(), [1]);
    });
}

#[test]
fn the_end_of_a_task_or_actor_is_seen_after_its_effects() {
    values(|| async {
        let log = Log::default();
        let one = spawn!(notes(_, log.clone()));
        let tells = |number| {
            let one = one.address();
            async move {
                one.tell(number).unwrap();
            }
        };
        let task = spawn(tells(1));
        let actor = spawn!({
            let told = tells(2);
            move |_cx: Context<()>| told
        });
        yield_now().await;
        let weak = actor.downgrade();
        task.await;
        one.tell(10).unwrap();
        actor.join().await.unwrap();
        weak.closed().await;
        one.tell(20).unwrap();
        one.join().await.unwrap();
        let log = log.lock().unwrap().clone();
        let place = |number| log.iter().position(|&is| is == number).unwrap();
        assert!(place(1) < place(10) && place(2) < place(20), "{log:?}");
    });
}

#[test]
fn is_finished_is_true_only_after_the_effects_of_the_task() {
    values(|| async {
        let log = Log::default();
        let one = spawn!(notes(_, log.clone()));
        let tells = |number| {
            let one = one.address();
            spawn(async move { one.tell(number).unwrap() })
        };
        let task = tells(1);
        while !task.is_finished() {
            yield_now().await;
        }
        one.tell(2).unwrap();
        one.join().await.unwrap();
        assert_eq!(*log.lock().unwrap(), [1, 2]);
    });
}

#[test]
fn a_task_woken_by_a_turn_sees_the_messages_sent_before() {
    values(|| async {
        let log = Log::default();
        let one = spawn!(notes(_, log.clone()));
        let (send, mut received) = futures::channel::oneshot::channel();
        let waits_now = Arc::new(Mutex::new(false));
        let waits = {
            let (one, waits_now) = (one.address(), waits_now.clone());
            spawn(async move {
                std::future::poll_fn(|cx| {
                    *waits_now.lock().unwrap() = true;
                    received.poll_unpin(cx)
                })
                .await
                .unwrap();
                one.tell(2).unwrap();
            })
        };
        while !*waits_now.lock().unwrap() {
            yield_now().await;
        }
        let teller = {
            let one = one.address();
            spawn(async move {
                one.tell(1).unwrap();
                send.send(()).unwrap();
            })
        };
        teller.await;
        waits.await;
        one.join().await.unwrap();
        assert_eq!(*log.lock().unwrap(), [1, 2]);
    });
}

#[test]
fn a_late_answer_is_seen_after_the_effects_before_it() {
    async fn answers(mut cx: Context<Reply<()>>, other: Address<u32>) {
        while let Some(reply) = cx.recv().await {
            other.tell(1).unwrap();
            reply.send(());
        }
    }
    values(|| async {
        let log = Log::default();
        let one = spawn!(notes(_, log.clone()));
        let answers = spawn!(answers(_, one.address()));
        let mut ask = std::pin::pin!(answers.ask(|reply| reply));
        // Polls the ask even if no wake has occurred.
        while ask.as_mut().now_or_never().is_none() {
            yield_now().await;
        }
        one.tell(2).unwrap();
        answers.stop();
        answers.closed().await;
        one.join().await.unwrap();
        assert_eq!(*log.lock().unwrap(), [1, 2]);
    });
}

#[test]
fn a_late_drop_of_a_reply_is_seen_after_the_effects_before_it() {
    async fn drops(mut cx: Context<Reply<()>>, other: Address<u32>) {
        while let Some(reply) = cx.recv().await {
            other.tell(1).unwrap();
            drop(reply);
        }
    }
    values(|| async {
        let log = Log::default();
        let one = spawn!(notes(_, log.clone()));
        let drops = spawn!(drops(_, one.address()));
        assert_eq!(
            drops.ask(|reply| reply).await,
            Err(AskError::NoReply(AskDetail::default()))
        );
        one.tell(2).unwrap();
        drops.stop();
        drops.closed().await;
        one.join().await.unwrap();
        assert_eq!(*log.lock().unwrap(), [1, 2]);
    });
}

/// Runs the program with every seed, and checks that its recording actor gets 1 before 2.
#[track_caller]
fn one_comes_first<F: Future<Output = ()>>(program: impl Fn(Address<u32>) -> F) {
    one_comes_first_in(&SEEDS.collect::<Vec<_>>(), program);
}

/// Does so with these seeds.
#[track_caller]
pub(super) fn one_comes_first_in<F: Future<Output = ()>>(
    seeds: &[u64],
    program: impl Fn(Address<u32>) -> F,
) {
    let here = Location::caller();
    for &seed in seeds {
        let log = Log::default();
        let run = Simulated::new(seed).try_run(async {
            let one = spawn!(notes(_, log.clone()));
            program(one.address()).await;
            one.join().await.unwrap();
        });
        if let Err(failure) = run {
            panic!("{here}: {failure}");
        }
        let log = log.lock().unwrap();
        let last_one = log.iter().rposition(|&number| number == 1);
        let first_two = log.iter().position(|&number| number == 2);
        let is_in_order = first_two.is_none() || last_one < first_two;
        assert!(is_in_order, "{here}, seed {seed}: {log:?}");
    }
}

#[test]
fn effects_before_the_drop_of_an_address_come_before_those_of_the_end() {
    one_comes_first(|one| async move {
        let group = spawn!(async |mut cx: Context<()>| while cx.recv().await.is_some() {});
        for _ in 0..2 {
            let (one, member) = (one.clone(), group.address());
            spawn(async move {
                one.tell(1).unwrap();
                drop(member);
            })
            .detach();
        }
        group.join().await.unwrap();
        one.tell(2).unwrap();
    });
}

#[test]
fn turns_of_one_pinned_thread_take_effect_one_after_the_other() {
    one_comes_first(|one| async move {
        let pinned = greenroom::Runtime::current().spawn_pinned("host").unwrap();
        let tasks = [1, 2].map(|number| {
            let one = one.clone();
            pinned.spawn(move || async move { one.tell(number).unwrap() })
        });
        for task in tasks {
            task.await;
        }
    });
}

#[test]
fn a_cancellation_takes_effect_after_the_effects_before_it() {
    struct Tells(Address<u32>);
    impl Drop for Tells {
        fn drop(&mut self) {
            self.0.tell(2).unwrap();
        }
    }
    one_comes_first(|one| async move {
        let tells = Tells(one.clone());
        let cancelled = spawn(async move {
            std::future::pending::<()>().await;
            drop(tells);
        });
        let canceller = spawn(async move {
            one.tell(1).unwrap();
            drop(cancelled);
        });
        canceller.await;
    });
}

#[test]
fn a_full_mailbox_is_seen_after_the_effects_before_it() {
    one_comes_first(|one| async move {
        let full = spawn!(notes(_, Log::default()), capacity = 1);
        let tells = {
            let (one, full) = (one.clone(), full.address());
            spawn(async move {
                one.tell(1).unwrap();
                let _ = full.tell(1);
            })
        };
        let looks = {
            let full = full.address();
            spawn(async move {
                if full.tell(2).is_err() {
                    one.tell(2).unwrap();
                }
            })
        };
        tells.await;
        looks.await;
    });
}

#[test]
fn an_unwanted_reply_is_seen_after_the_effects_of_the_asker() {
    async fn looks(mut cx: Context<Reply<()>>, one: Address<u32>) {
        while let Some(reply) = cx.recv().await {
            while reply.is_wanted() {
                yield_now().await;
            }
            one.tell(2).unwrap();
        }
    }
    one_comes_first(|one| async move {
        let looks = spawn!(looks(_, one.clone()));
        let asker = spawn(async move {
            let mut ask = Box::pin(looks.ask(|reply| reply));
            assert!(ask.as_mut().now_or_never().is_none());
            yield_now().await;
            one.tell(1).unwrap();
            drop(ask);
            drop(looks);
        });
        asker.await;
    });
}

#[test]
fn a_closed_mailbox_is_seen_after_the_effects_before_it() {
    one_comes_first(|one| async move {
        let (send, received) = futures::channel::oneshot::channel();
        let gives = spawn!(async move |cx: Context<()>| {
            let _ = send.send(cx);
            std::future::pending::<()>().await;
        });
        let holder = {
            let one = one.clone();
            spawn(async move {
                let cx: Context<()> = received.await.unwrap();
                one.tell(1).unwrap();
                drop(cx);
            })
        };
        while !gives.is_closed() {
            yield_now().await;
        }
        one.tell(2).unwrap();
        holder.await;
        gives.kill();
    });
    one_comes_first(|one| async move {
        let (address, actor) = {
            let one = one.clone();
            greenroom::actor(move |_cx: Context<()>| async move { one.tell(1).unwrap() }).split()
        };
        let driver = spawn(async move { actor.await.unwrap() });
        while !address.is_closed() {
            yield_now().await;
        }
        one.tell(2).unwrap();
        driver.await;
    });
}

#[test]
fn the_stats_of_a_runtime_show_an_end_after_the_effects_before_it() {
    one_comes_first(|one| async move {
        let runtime = greenroom::Runtime::current();
        let before = runtime.stats().actors.len();
        let short = {
            let one = one.clone();
            spawn!(move |_cx: Context<()>| async move { one.tell(1).unwrap() })
        };
        while runtime.stats().actors.len() > before {
            yield_now().await;
        }
        one.tell(2).unwrap();
        drop(short);
    });
}

#[test]
fn between_two_calls_of_block_on_all_effects_have_arrived() {
    for seed in SEEDS {
        let runtime = greenroom::Runtime::builder()
            .policy(Simulated::new(seed))
            .build()
            .unwrap();
        let log = Log::default();
        let one = greenroom::actor({
            let log = log.clone();
            move |cx| notes(cx, log)
        });
        let one = one.on(&runtime).spawn();
        let teller = {
            let one = one.address();
            runtime.spawn(async move { one.tell(1).unwrap() })
        };
        runtime.block_on(async {
            for _ in 0..3 {
                yield_now().await;
            }
        });
        let has_told = teller.is_finished();
        one.tell(2).unwrap();
        runtime.block_on(teller);
        runtime.block_on(one.join()).unwrap();
        let wanted = if has_told { vec![1, 2] } else { vec![2, 1] };
        assert_eq!(*log.lock().unwrap(), wanted);
    }
}

#[test]
fn a_recv_finds_a_queued_message_after_the_turn_has_sent_another() {
    values(|| async {
        let one = spawn!(notes(_, Log::default()));
        let (go, goes) = futures::channel::oneshot::channel();
        let looks = {
            let one = one.address();
            spawn!(async move |mut cx: Context<u32>| {
                goes.await.unwrap();
                let first = cx.recv().await;
                one.tell(1).unwrap();
                (first, cx.recv().now_or_never())
            })
        };
        looks.tell(1).unwrap();
        looks.tell(2).unwrap();
        assert_eq!(looks.len(), 2);
        go.send(()).unwrap();
        assert_eq!(looks.join().await.unwrap(), (Some(1), Some(Some(2))));
    });
}

#[test]
fn with_whole_turns_no_message_comes_between() {
    for seed in SEEDS {
        let run = Simulated::new(seed).whole_turns().try_run(async {
            let log = Log::default();
            let (one, two) = (spawn!(notes(_, log.clone())), spawn!(notes(_, log.clone())));
            let teller = |number| {
                let (one, two) = (one.address(), two.address());
                spawn(async move {
                    one.tell(number).unwrap();
                    two.tell(number).unwrap();
                })
            };
            let tellers = [teller(1), teller(2)];
            for teller in tellers {
                teller.await;
            }
            one.join().await.unwrap();
            let first = std::mem::take(&mut *log.lock().unwrap());
            two.join().await.unwrap();
            let second = std::mem::take(&mut *log.lock().unwrap());
            first == second || first.len() != 2
        });
        assert!(run.unwrap().value);
    }
}

#[test]
fn messages_in_flight_are_dropped_when_a_run_fails() {
    for seed in SEEDS {
        let counted = Arc::new(());
        let message = counted.clone();
        let run = Simulated::new(seed).try_run(async move {
            let keeps = spawn!(async |mut cx: Context<Arc<()>>| { cx.recv().await });
            keeps.tell(message).unwrap();
            panic!("bomb");
        });
        assert!(run.is_err());
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}

#[test]
fn messages_in_flight_are_dropped_with_a_runtime_on_another_thread() {
    for seed in 0..50 {
        let counted = Arc::new(());
        let runtime = greenroom::Runtime::builder()
            .policy(Simulated::new(seed))
            .build()
            .unwrap();
        let message = counted.clone();
        runtime.block_on(async move {
            let keeps = spawn!(async |mut cx: Context<Arc<()>>| { cx.recv().await });
            let teller = spawn(async move { keeps.tell(message).unwrap() });
            yield_now().await;
            teller.detach();
        });
        std::thread::spawn(move || drop(runtime)).join().unwrap();
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}

#[test]
fn random_numbers_follow_from_the_seed() {
    let program = || async {
        let drawn: Vec<u64> = (0..3).map(|_| sim::random()).collect();
        let task = spawn(async { sim::random() });
        (drawn, task.await)
    };
    let runs: BTreeSet<_> = (0..100).map(|seed| run_of(seed, program()).value).collect();
    assert_eq!(runs.len(), 100);
    for seed in 0..10 {
        assert_eq!(run_of(seed, program()).value, run_of(seed, program()).value);
    }
    assert_ne!(sim::random(), sim::random());
    sim::note("a note outside any run");
}
