//! Actors on a tokio runtime: `on = &handle`, with the feature `tokio`.
//!
//! Apart from the other tests, which take minutes to build once more with the feature.

#[path = "support/support.rs"]
mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::looper::Controller;
use greenroom::market::{Job, Market};
use greenroom::registry::Keyed;
use greenroom::supervise::{Restarts, Supervisor};
use greenroom::{
    Address, AskCause, AskError, Context, Fault, Handle, RefusalKind, Reply, Runtime, SpawnProblem,
    actor, spawn,
};
use tokio::runtime::{Handle as Place, Runtime as Tokio};

use support::{
    Drops, Gate, OpenOnDrop, WATCH, drive, inside, keep_bombs_quiet, poll_once, until, within,
};

fn tokio(workers: usize) -> Tokio {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(workers).enable_time();
    builder.thread_name("tokio").build().unwrap()
}

enum Word {
    Add(u32),
    Sum(Reply<u32>),
    Panic,
}

async fn sum(mut cx: Context<Word>) -> u32 {
    let mut sum = 0;
    while let Some(word) = cx.recv().await {
        match word {
            Word::Add(number) => sum += number,
            Word::Sum(reply) => reply.send(sum),
            Word::Panic => panic!("bomb in a turn"),
        }
    }
    sum
}

/// Never ends by itself; the gate opens when its state is dropped.
async fn endless(mut cx: Context<()>, begun: Gate, gone: Gate) {
    let _opens = OpenOnDrop(gone);
    begun.open();
    while cx.recv().await.is_some() {}
    std::future::pending().await
}

#[test]
fn an_actor_runs_on_a_thread_of_tokio_and_is_joined() {
    within(WATCH, || {
        let tokio = tokio(1);
        let whole = spawn!(
            |_: Context<()>| async {
                // Both need tokio's context.
                tokio::time::sleep(Duration::from_millis(1)).await;
                tokio::spawn(async {}).await.unwrap();
                std::thread::current().name().map(str::to_owned)
            },
            name = "whole",
            on = tokio.handle()
        );
        assert_eq!(whole.name(), Some("whole"));
        assert_eq!(drive(whole.join()).unwrap().as_deref(), Some("tokio"));
    });
}

#[test]
fn messages_arrive_in_order_and_are_answered() {
    within(WATCH, || {
        let tokio = tokio(2);
        let sum = spawn!(sum(_), capacity = 3, on = tokio.handle());
        let address = sum.address();
        let talks = async move {
            for _ in 0..100 {
                address.send(Word::Add(1)).await.unwrap();
            }
            let asked = address.ask(Word::Sum).timeout(WATCH).await;
            assert_eq!(asked, Ok(100));
        };
        tokio.block_on(talks);
        sum.stop();
        assert_eq!(drive(sum.join()).unwrap(), 100);
    });
}

#[test]
fn actors_of_greenroom_and_of_tokio_ask_each_other() {
    within(WATCH, || {
        let (tokio, runtime) = (tokio(2), Runtime::builder().workers(2).build().unwrap());
        let here = spawn!(sum(_), on = &runtime);
        let there = spawn!(sum(_), on = tokio.handle());
        async fn asks(_: Context<()>, other: Address<Word>) -> u32 {
            let mut last = 0;
            for _ in 0..100 {
                other.tell(Word::Add(1)).unwrap();
                last = other.ask(Word::Sum).await.unwrap();
            }
            last
        }
        let from_here = spawn!(asks(_, there.address()), on = &runtime);
        let from_there = spawn!(asks(_, here.address()), on = tokio.handle());
        assert_eq!(drive(from_here.join()).unwrap(), 100);
        assert_eq!(drive(from_there.join()).unwrap(), 100);
    });
}

#[test]
fn a_current_thread_runtime_runs_the_actor_while_it_is_driven() {
    within(WATCH, || {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let sum = spawn!(sum(_), on = tokio.handle());
        sum.tell(Word::Add(42)).unwrap();
        let mut asked = Box::pin(sum.ask(Word::Sum));
        assert!(poll_once(&mut asked).is_pending());
        assert_eq!(tokio.block_on(asked), Ok(42));
    });
}

#[test]
fn a_kill_ends_an_actor_that_waits() {
    within(WATCH, || {
        let tokio = tokio(1);
        let (begun, gone) = (Gate::default(), Gate::default());
        let endless = spawn!(endless(_, begun.clone(), gone.clone()), on = tokio.handle());
        begun.pass();
        endless.kill();
        gone.pass();
        assert!(matches!(drive(endless.join()), Err(Fault::Killed)));
    });
}

#[test]
fn a_panic_is_the_fault_of_its_actor_alone() {
    within(WATCH, || {
        keep_bombs_quiet();
        let tokio = tokio(1);
        let (one, two) = (
            spawn!(sum(_), on = tokio.handle()),
            spawn!(sum(_), on = tokio.handle()),
        );
        one.tell(Word::Panic).unwrap();
        match drive(one.ask(Word::Sum)) {
            Err(AskError::NoReply(detail) | AskError::Closed(detail)) => {
                assert!(matches!(detail.why(), AskCause::Panicked(_)), "{detail}");
            }
            other => panic!("{other:?}"),
        }
        let Err(Fault::Panicked(panic)) = drive(one.join()) else {
            panic!("it did not panic")
        };
        assert_eq!(panic.text(), Some("bomb in a turn"));
        assert_eq!(drive(two.ask(Word::Sum)), Ok(0));
    });
}

#[test]
fn a_panic_that_nobody_joins_reaches_on_fault() {
    within(WATCH, || {
        keep_bombs_quiet();
        let told = Arc::new(Mutex::new(Vec::new()));
        let tells = told.clone();
        let runtime = Runtime::builder()
            .workers(1)
            .on_fault(move |fault| tells.lock().unwrap().push(fault.to_string()))
            .build()
            .unwrap();
        let tokio = tokio(1);
        inside(&runtime, || {
            let sum = spawn!(sum(_), name = "sum", on = tokio.handle());
            sum.tell(Word::Panic).unwrap();
            drive(sum.closed());
            drop(sum);
        });
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("bomb in a turn"), "{told:?}");
    });
}

#[test]
fn an_actor_is_restarted_on_its_runtime_with_its_messages() {
    within(WATCH, || {
        keep_bombs_quiet();
        let tokio = tokio(1);
        let incarnation = |mut cx: Context<Word>| async move {
            assert!(Place::try_current().is_ok());
            let mut sum = 0;
            while let Some(word) = cx.recv().await {
                match word {
                    Word::Add(number) => sum += number,
                    Word::Sum(reply) => reply.send(sum),
                    Word::Panic => panic!("bomb in a turn"),
                }
            }
            (cx.incarnation_number(), sum)
        };
        let sum = spawn!(
            incarnation,
            restart = Restarts::default(),
            on = tokio.handle()
        );
        for word in [Word::Add(1), Word::Panic, Word::Add(40), Word::Add(2)] {
            sum.tell(word).unwrap();
        }
        assert_eq!(drive(sum.ask(Word::Sum)), Ok(42));
        sum.stop();
        assert_eq!(drive(sum.join()).unwrap(), (1, 42));
    });
}

#[test]
fn a_parent_owns_children_on_tokio_wherever_it_runs() {
    enum Family {
        Ended(Result<u32, Fault>),
    }
    async fn parent(mut cx: Context<Family>, place: Place) -> u32 {
        let child = spawn!(sum(_), on = &place);
        child.tell(Word::Add(42)).unwrap();
        cx.adopt(child, Family::Ended);
        cx.stop_children();
        match cx.recv().await {
            Some(Family::Ended(sum)) => sum.unwrap(),
            None => panic!("the child's result is lost"),
        }
    }
    within(WATCH, || {
        let (tokio, runtime) = (tokio(1), Runtime::builder().workers(1).build().unwrap());
        let place = tokio.handle();
        let there = spawn!(parent(_, place.clone()), on = place);
        let here = spawn!(parent(_, place.clone()), on = &runtime);
        assert_eq!(drive(there.join()).unwrap(), 42);
        assert_eq!(drive(here.join()).unwrap(), 42);
    });
}

#[test]
fn timers_and_timeouts_work_without_a_runtime_of_greenroom() {
    within(WATCH, || {
        let tokio = tokio(1);
        let ticks = spawn!(
            |mut cx: Context<u32>| async move {
                cx.send_after(Duration::from_millis(1), 42).detach();
                greenroom::time::sleep(Duration::from_millis(1)).await;
                cx.recv().await
            },
            on = tokio.handle()
        );
        assert_eq!(drive(ticks.join()).unwrap(), Some(42));
        // An actor that never answers.
        let holds = |mut cx: Context<Reply<()>>| async move {
            let _held = cx.recv().await;
            std::future::pending::<()>().await
        };
        let holds = spawn!(holds, on = tokio.handle());
        let asked = holds.ask(|reply| reply).timeout(Duration::from_millis(1));
        assert_eq!(drive(asked), Err(AskError::TimedOut));
    });
}

#[test]
fn a_shutdown_of_tokio_cancels_its_actors_and_tells_those_who_wait() {
    within(WATCH, || {
        let tokio = tokio(1);
        let received = Gate::default();
        let opens = received.clone();
        let holds = |mut cx: Context<Reply<()>>| async move {
            let _held = cx.recv().await;
            opens.open();
            std::future::pending::<()>().await
        };
        let undelivered = Arc::new(Mutex::new(0));
        let counts = undelivered.clone();
        let count = move |reply: Reply<()>| {
            *counts.lock().unwrap() += 1;
            drop(reply);
        };
        let holds = spawn!(holds, on_undelivered = count, on = tokio.handle());
        let mut asked = Box::pin(holds.ask(|reply| reply));
        let mut again = Box::pin(holds.ask(|reply| reply));
        assert!(poll_once(&mut asked).is_pending());
        assert!(poll_once(&mut again).is_pending());
        received.pass();
        let (begun, gone) = (Gate::default(), Gate::default());
        let endless = spawn!(endless(_, begun.clone(), gone.clone()), on = tokio.handle());
        begun.pass();
        drop(tokio);
        assert!(gone.is_open());
        assert!(matches!(drive(asked), Err(AskError::NoReply(_))));
        assert!(matches!(drive(again), Err(AskError::NoReply(_))));
        assert!(matches!(drive(holds.join()), Err(Fault::Cancelled)));
        assert!(matches!(drive(endless.join()), Err(Fault::Cancelled)));
        assert_eq!(*undelivered.lock().unwrap(), 1);
    });
}

#[test]
fn an_actor_that_tokio_never_polled_has_not_started() {
    within(WATCH, || {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let drops = Drops::default();
        let held = drops.one();
        let never = spawn!(
            move |_: Context<()>| async move {
                let _held = held;
            },
            on = tokio.handle()
        );
        drop(tokio);
        assert!(never.is_closed());
        assert_eq!(drops.count(), 1);
        assert!(matches!(drive(never.join()), Err(Fault::NotStarted)));
    });
}

#[test]
fn a_runtime_that_is_shut_down_refuses_actors_and_returns_them() {
    within(WATCH, || {
        let gone = tokio(1);
        let place = gone.handle().clone();
        drop(gone);
        let never: Handle<Word, u32> = spawn!(sum(_), on = &place);
        assert!(never.is_closed());
        assert!(matches!(drive(never.join()), Err(Fault::NotStarted)));
        let error = actor(sum).on(&place).try_spawn().unwrap_err();
        assert!(matches!(error.problem(), SpawnProblem::ShutDown));
        let tokio = tokio(1);
        let again = actor(error.into_inner()).on(tokio.handle()).spawn();
        again.tell(Word::Add(42)).unwrap();
        again.stop();
        assert_eq!(drive(again.join()).unwrap(), 42);
    });
}

#[test]
fn each_actor_that_races_with_a_shutdown_is_joined() {
    within(WATCH, || {
        for round in 0..50 {
            let tokio = tokio(2);
            let place = tokio.handle().clone();
            let spawner = std::thread::spawn(move || {
                let actors = (0..20).map(|_| {
                    let sum = spawn!(sum(_), on = &place);
                    let _ = sum.tell(Word::Add(1));
                    sum
                });
                actors.collect::<Vec<_>>()
            });
            for _ in 0..round {
                std::thread::yield_now();
            }
            tokio.shutdown_background();
            for sum in spawner.join().unwrap() {
                let (address, join) = (sum.downgrade(), drive(sum.join()));
                assert!(matches!(
                    join,
                    Ok(1) | Err(Fault::Cancelled | Fault::NotStarted)
                ));
                assert!(address.tell(Word::Add(1)).is_err());
            }
        }
    });
}

#[test]
fn the_task_of_an_actor_ends_with_it() {
    within(WATCH, || {
        let tokio = tokio(1);
        for _ in 0..100 {
            let short = spawn!(|_: Context<()>| async {}, on = tokio.handle());
            drive(short.join()).unwrap();
        }
        until(|| tokio.metrics().num_alive_tasks() == 0);
    });
}

#[test]
fn a_large_actor_runs_on_a_thread_of_tokio() {
    /// In bytes; a debug build copies more often.
    const LARGE: usize = if cfg!(debug_assertions) { 256 } else { 512 } << 10;
    within(WATCH, || {
        let tokio = tokio(1);
        let place = tokio.handle().clone();
        let spawns = tokio.spawn(async move {
            let large = |_cx: Context<()>| async {
                let mut bytes = [1_u8; LARGE];
                std::hint::black_box(&mut bytes);
                greenroom::yield_now().await;
                std::hint::black_box(&mut bytes)[LARGE / 2]
            };
            spawn!({ large }, on = &place).join().await.unwrap()
        });
        assert_eq!(tokio.block_on(spawns).unwrap(), 1);
    });
}

#[test]
fn the_threads_of_a_runtime_enter_tokio() {
    within(WATCH, || {
        let tokio = tokio(1);
        let runtime = Runtime::builder().enter_tokio(tokio.handle());
        let runtime = runtime.workers(2).build().unwrap();
        let sleep = || async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::spawn(async { 42 }).await.unwrap()
        };
        assert_eq!(drive(runtime.spawn(sleep())), 42);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        assert_eq!(drive(pinned.spawn(sleep)), 42);
        let job = inside(&runtime, || {
            greenroom::unblock(|| Place::try_current().is_ok())
        });
        assert!(drive(job));
        drive(runtime.shutdown());
    });
}

const SUM: greenroom::registry::Name<Word> = greenroom::registry::Name::new("sum");
const SUMS: greenroom::registry::Group<Word> = greenroom::registry::Group::new("sums");

fn bound() -> (Tokio, Runtime) {
    let (tokio, runtime) = (tokio(1), Runtime::builder().workers(1).build().unwrap());
    runtime.bind(tokio.handle());
    (tokio, runtime)
}

/// Returns the name of this thread.
fn here() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn names_and_groups_work_in_the_tasks_of_a_bound_tokio() {
    within(WATCH, || {
        let (tokio, runtime) = bound();
        let task = tokio.spawn(async {
            let sum = spawn!(sum(_));
            SUM.register(&sum).unwrap();
            SUMS.join(&sum).unwrap();
            SUM.get().unwrap().tell(Word::Add(2)).unwrap();
            SUMS.next().unwrap().tell(Word::Add(3)).unwrap();
            sum
        });
        let sum = drive(task).unwrap();
        assert_eq!(drive(SUM.on(&runtime).get().unwrap().ask(Word::Sum)), Ok(5));
        sum.stop();
        assert_eq!(drive(sum.join()).unwrap(), 5);
        assert!(SUM.on(&runtime).get().is_err());
    });
}

#[test]
fn a_keyed_set_that_is_built_in_tokio_runs_its_actors_there_whoever_needs_them() {
    async fn tells_where(mut cx: Context<Reply<String>>) {
        while let Some(reply) = cx.recv().await {
            reply.send(here());
        }
    }
    within(WATCH, || {
        let (tokio, runtime) = bound();
        let own = runtime.clone();
        let sets = tokio.spawn(async move {
            let set = || Keyed::<u8, _>::builder(|_| actor(tells_where));
            (set().build().unwrap(), set().on(&own).build().unwrap())
        });
        let (there, placed) = drive(sets).unwrap();
        let ask = |set: &Keyed<u8, Reply<String>>, key| {
            let set = set.clone();
            async move { set.ask(&key, |reply| reply).await.unwrap() }
        };
        let asked = |set| {
            let in_greenroom = drive(runtime.spawn(ask(set, 1)));
            let in_tokio = drive(tokio.spawn(ask(set, 2))).unwrap();
            [in_greenroom, in_tokio]
        };
        assert_eq!(asked(&there), ["tokio", "tokio"]);
        let placed = asked(&placed);
        assert!(
            placed.iter().all(|thread| thread.starts_with("greenroom")),
            "{placed:?}"
        );
    });
}

#[test]
fn an_actor_without_a_place_and_its_children_run_on_the_bound_tokio() {
    within(WATCH, || {
        let (tokio, runtime) = bound();
        let task = tokio.spawn(async {
            let parent = spawn!(|_: Context<()>| async {
                let child = spawn!(|_: Context<()>| async { here() });
                let job = greenroom::unblock(here).await;
                (
                    here(),
                    child.join().await.unwrap(),
                    greenroom::spawn(async { here() }).await,
                    job,
                )
            });
            parent.join().await.unwrap()
        });
        let (parent, child, task, job) = drive(task).unwrap();
        assert_eq!((&*parent, &*child), ("tokio", "tokio"));
        assert!(
            task.starts_with("greenroom") && job.starts_with("greenroom"),
            "{task}, {job}"
        );
        // A thread of greenroom that has entered tokio is one of greenroom.
        let entered = Runtime::builder().workers(1).enter_tokio(tokio.handle());
        let entered = entered.build().unwrap();
        let child = entered.spawn(async {
            spawn!(|_: Context<()>| async { here() })
                .join()
                .await
                .unwrap()
        });
        assert!(drive(child).starts_with("greenroom"));
        drop(runtime);
    });
}

#[test]
fn supervisors_and_spools_work_on_a_bound_tokio() {
    within(WATCH, || {
        let (tokio, runtime) = bound();
        let task = tokio.spawn(async {
            let doubler = |mut cx: Context<(u32, Reply<u32>)>| async move {
                while let Some((number, reply)) = cx.recv().await {
                    reply.send(number * 2);
                }
            };
            let spool = greenroom::spool::Spool::builder(move |_| spawn!(doubler)).workers(2);
            let spool = spool.spawn().unwrap();
            let answer = spool.ask(21).await;
            spool.stop();
            assert_eq!(spool.join().await.unwrap_err().kind(), RefusalKind::Aborted);
            let tree = Supervisor::builder().spawn().unwrap();
            tree.stop();
            tree.join().await.unwrap();
            answer
        });
        assert_eq!(drive(task).unwrap(), Ok(42));
        drop(runtime);
    });
}

#[test]
fn the_last_handle_of_a_market_does_not_wait_on_a_thread_of_tokio() {
    within(WATCH, || {
        let (tokio, runtime) = bound();
        let task = tokio.spawn(async {
            let market = Market::<()>::builder().build().unwrap();
            let (begun, gate) = (Gate::default(), Gate::default());
            let (begins, waits) = (begun.clone(), gate.clone());
            let job = Job::new(move || {
                begins.open();
                waits.pass();
            });
            let job = market.offer(job).await.unwrap();
            begun.wait().await;
            drop(market);
            gate.open();
            job.await
        });
        drive(task).unwrap().unwrap();
        drop(runtime);
    });
}

#[test]
fn children_of_a_supervisor_on_tokio_run_there_whoever_starts_them() {
    /// Tells where it runs. Panics after that if it is told to.
    async fn tells_where(mut cx: Context<(bool, Reply<String>)>) {
        while let Some((panics, reply)) = cx.recv().await {
            reply.send(here());
            assert!(!panics, "bomb in a turn");
        }
    }
    within(WATCH, || {
        let (tokio, runtime) = bound();
        let tree = async { Supervisor::builder().spawn().unwrap() };
        let tree = drive(tokio.spawn(tree)).unwrap();
        let start = |tree: &Supervisor| {
            let tree = tree.clone();
            async move { tree.start(actor(tells_where)).unwrap() }
        };
        let below = tree.clone();
        let below = runtime.spawn(async move {
            let below = below.supervisor(Supervisor::builder()).unwrap();
            below.start(actor(tells_where)).unwrap()
        });
        let pinned = tree.start(actor(tells_where).on(&runtime)).unwrap();
        let children = [
            drive(runtime.spawn(start(&tree))),
            drive(tokio.spawn(start(&tree))).unwrap(),
            drive(start(&tree)),
            drive(below),
        ];
        // Each restarts.
        for panics in [true, false] {
            for child in &children {
                let thread = drive(child.ask(|reply| (panics, reply)));
                assert_eq!(thread.as_deref(), Ok("tokio"));
            }
        }
        let thread = drive(pinned.ask(|reply| (false, reply))).unwrap();
        assert!(thread.starts_with("greenroom"), "{thread}");
        tree.stop();
        drive(tree.join()).unwrap();
    });
}

#[test]
fn without_a_binding_the_error_says_how_to_bind() {
    within(WATCH, || {
        let tokio = tokio(1);
        let problem = || {
            let refused = actor(sum).try_spawn().unwrap_err();
            refused.problem().to_string()
        };
        let problems = move || {
            let set = Keyed::<u8, _>::builder(|_| actor(sum)).build();
            [
                problem(),
                SUM.get().unwrap_err().to_string(),
                set.unwrap_err().to_string(),
                Controller::builder().build().unwrap_err().to_string(),
            ]
        };
        let texts = drive(tokio.spawn(async move { problems() })).unwrap();
        let says_how = |text: &String| text.contains("`runtime.bind(&handle)`");
        assert!(texts.iter().all(says_how), "{texts:?}");
        assert!(!problems().iter().any(says_how));
        // A binding ends with its runtime.
        let runtime = Runtime::builder().workers(1).build().unwrap();
        runtime.bind(tokio.handle());
        drop(runtime);
        let problem = drive(tokio.spawn(async move { actor(sum).try_spawn().is_err() }));
        assert!(problem.unwrap());
    });
}

#[test]
fn two_runtimes_are_bound_to_two_of_tokio_and_a_later_binding_replaces_one() {
    within(WATCH, || {
        let ((first, one), (second, other)) = (bound(), bound());
        let named = |tokio: &Tokio| {
            drive(tokio.spawn(async { Runtime::current().stats().workers.len() })).unwrap()
        };
        let wide = Runtime::builder().workers(3).build().unwrap();
        assert_eq!((named(&first), named(&second)), (1, 1));
        wide.bind(second.handle());
        assert_eq!((named(&first), named(&second)), (1, 3));
        drop((one, other));
        assert_eq!(named(&second), 3);
    });
}

#[test]
fn a_bound_tokio_that_is_shut_down_first_cancels_its_actors_and_frees_their_names() {
    within(WATCH, || {
        let (tokio, runtime) = bound();
        let task = tokio.spawn(async {
            let sum = spawn!(sum(_));
            SUM.register(&sum).unwrap();
            // Neither is ever answered.
            let silent = spawn!(|mut cx: Context<Reply<()>>| async move {
                let _kept = cx.recv().await;
                std::future::pending::<()>().await;
            });
            (sum, silent)
        });
        let (sum, silent) = drive(task).unwrap();
        let asked = runtime.spawn(async move {
            let answer = silent.ask(|reply| reply).await;
            (answer, silent)
        });
        tokio.shutdown_timeout(WATCH);
        let (answer, _silent) = drive(asked);
        assert!(answer.is_err());
        assert!(matches!(
            drive(sum.join()),
            Err(Fault::Cancelled | Fault::NotStarted)
        ));
        assert!(SUM.on(&runtime).get().is_err());
    });
}
