//! Detached actors: each has its own thread, which it may block and which ends with it.

use std::future::pending;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::Poll;
use std::thread::ThreadId;
use std::time::Duration;

use greenroom::time::sleep;
use greenroom::{Context, Detached, Fault, Handle, Reply, Runtime, SpawnProblem, actor, spawn};

use crate::support::{
    Drops, Gate, Home, Log, WATCH, drive, inside, keep_bombs_quiet, panic_of, poll_here, within,
};

/// Runs `test` where a runtime with one worker is current.
fn with_worker(test: impl FnOnce(&Runtime) + Send + 'static) {
    within(WATCH, move || {
        let home = Home::workers(1);
        inside(&home.runtime, || test(&home.runtime));
    });
}

fn here() -> ThreadId {
    std::thread::current().id()
}

fn thread_name() -> Option<String> {
    std::thread::current().name().map(str::to_owned)
}

/// Waits until no thread has this name. Only one test uses the name.
#[cfg(target_os = "linux")]
fn gone(name: &str) {
    crate::support::until(|| crate::child::threads_named(name) == 0);
}

/// Does nothing: threads cannot be listed on this system.
#[cfg(not(target_os = "linux"))]
fn gone(_name: &str) {}

/// Spawns an actor of this name that counts its messages until its mailbox is closed.
fn counter(name: &str) -> Handle<(), usize> {
    let count = |mut cx: Context<()>| async move {
        let mut count = 0;
        while cx.recv().await.is_some() {
            count += 1;
        }
        count
    };
    actor(count).name(name).on(Detached).spawn()
}

#[test]
fn the_thread_has_the_name_of_its_actor() {
    with_worker(|_| {
        let name = |_: Context<()>| async { thread_name() };
        let named =
            |given: &str| drive(actor(name).name(given).on(Detached).spawn().join()).unwrap();
        assert_eq!(named("reader").as_deref(), Some("reader"));
        assert_eq!(
            named("длинное имя потока").as_deref(),
            Some("длинное имя потока")
        );
        assert_eq!(named("").as_deref(), Some(""));
        // A thread name cannot contain NUL, an actor's name can.
        let odd = actor(name).name("one\0two").on(Detached).spawn();
        assert_eq!(odd.name(), Some("one\0two"));
        assert_eq!(
            drive(odd.join()).unwrap().as_deref(),
            Some("one\u{fffd}two")
        );
        let none = drive(actor(name).on(Detached).spawn().join()).unwrap();
        assert_eq!(none.as_deref(), Some("greenroom-detached"));
    });
}

#[test]
fn a_detached_actor_is_created_run_and_dropped_on_one_thread() {
    struct Here(Log<ThreadId>);
    impl Drop for Here {
        fn drop(&mut self) {
            self.0.add(here());
        }
    }
    with_worker(|_| {
        let log = Log::default();
        let own = log.clone();
        let make = move |mut cx: Context<Reply<ThreadId>>| {
            own.add(here());
            // State that is not `Send`, held across an await.
            let state = Rc::new(Here(own));
            async move {
                while let Some(reply) = cx.recv().await {
                    reply.send(here());
                }
                drop(state);
            }
        };
        let one = actor(make).on(Detached).spawn();
        let other = counter("other");
        let thread = drive(one.ask(|reply| reply)).unwrap();
        assert_ne!(thread, here());
        assert_eq!(drive(one.ask(|reply| reply)).unwrap(), thread);
        drive(one.join()).unwrap();
        assert_eq!(log.take(), [thread, thread]);
        drive(other.join()).unwrap();
    });
}

#[test]
fn detached_actors_that_block_leave_the_workers_free() {
    with_worker(|_| {
        let blocked: Vec<_> = (0..4)
            .map(|n| {
                let (go, waits) = mpsc::channel();
                let begun = Gate::default();
                let begins = begun.clone();
                let actor = spawn!(
                    move |_: Context<()>| async move {
                        begins.open();
                        (n, waits.recv().unwrap(), here())
                    },
                    on = Detached
                );
                begun.pass();
                (actor, go)
            })
            .collect();
        // All of them block by now, and all other tasks still run.
        let adder = spawn!(|mut cx: Context<(u32, Reply<u32>)>| async move {
            while let Some((number, reply)) = cx.recv().await {
                reply.send(number + 1);
            }
        });
        for n in 0..100 {
            let task = greenroom::spawn(async move { n });
            assert_eq!(drive(task), n);
            assert_eq!(drive(adder.ask(|reply| (n, reply))).unwrap(), n + 1);
        }
        let mut threads = std::collections::HashSet::new();
        for (expected, (actor, go)) in blocked.into_iter().enumerate() {
            go.send("go").unwrap();
            let (n, word, thread) = drive(actor.join()).unwrap();
            assert_eq!((n, word), (expected, "go"));
            threads.insert(thread);
        }
        assert_eq!(threads.len(), 4, "each actor has its own thread");
    });
}

#[test]
fn block_on_in_a_detached_actor_blocks_only_its_thread() {
    with_worker(|runtime| {
        let adder = spawn!(|mut cx: Context<(u32, Reply<u32>)>| async move {
            while let Some((number, reply)) = cx.recv().await {
                reply.send(number + 1);
            }
        });
        let adder = adder.address();
        let waits = spawn!(
            |_: Context<()>| async move {
                let thread = here();
                let sum = Runtime::current().block_on(async {
                    sleep(Duration::from_millis(1)).await;
                    let one = greenroom::spawn(async { 1 }).await;
                    let deeper = Runtime::current().block_on(adder.ask(|reply| (20, reply)));
                    one + deeper.unwrap()
                });
                let other = greenroom::run(async { greenroom::spawn(async { 20 }).await });
                greenroom::yield_now().await;
                assert_eq!(here(), thread);
                sum + other
            },
            on = Detached
        );
        assert_eq!(runtime.block_on(waits.join()).unwrap(), 42);
    });
}

#[test]
fn timers_of_a_detached_actor_need_no_worker() {
    within(WATCH, || {
        let home = Home::workers(1);
        let _held = home.hold();
        let waits = |_: Context<()>| async {
            sleep(Duration::from_millis(1)).await;
            // A sleep polled here can be awaited in a nested `block_on`.
            let mut begun = sleep(Duration::from_millis(10));
            let _ = poll_here(&mut begun).await;
            Runtime::current().block_on(begun);
            42
        };
        let actor = inside(&home.runtime, || actor(waits).on(Detached).spawn());
        assert_eq!(drive(actor.join()).unwrap(), 42);
    });
}

#[test]
fn a_detached_actor_may_receive_in_a_nested_block_on() {
    with_worker(|_| {
        let polled = Gate::default();
        let polls = polled.clone();
        let receives = |mut cx: Context<u32>| async move {
            let _timer = cx.send_after(Duration::from_millis(10), 2);
            // The timer belongs to the thread, whichever `recv` is polled later.
            let first = poll_here(&mut cx.recv()).await;
            polls.open();
            let runtime = Runtime::current();
            let mut received = Vec::new();
            if let Poll::Ready(early) = first {
                received.extend(early);
            }
            while received.len() < 2 {
                received.extend(runtime.block_on(cx.recv()));
            }
            received.iter().sum::<u32>()
        };
        let actor = actor(receives).on(Detached).spawn();
        polled.pass();
        actor.tell(40).unwrap();
        assert_eq!(drive(actor.join()).unwrap(), 42);
    });
}

#[test]
fn spawns_of_a_detached_actor_live_on_workers_unless_detached() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).thread_name("pool");
        let runtime = runtime.build().unwrap();
        let name = |_: Context<()>| async { thread_name() };
        let spawns = move |_: Context<()>| async move {
            let task = greenroom::spawn(async { thread_name() }).await;
            let pooled = actor(name).spawn().await.unwrap();
            let detached = actor(name)
                .name("inner")
                .on(Detached)
                .spawn()
                .await
                .unwrap();
            [task, pooled, detached].map(Option::unwrap)
        };
        let actor = inside(&runtime, || {
            actor(spawns).name("outer").on(Detached).spawn()
        });
        let names = drive(actor.join()).unwrap();
        assert_eq!(names, ["pool-0", "pool-0", "inner"]);
    });
}

#[test]
fn the_thread_ends_with_its_actor_however_that_ends() {
    with_worker(|_| {
        keep_bombs_quiet();
        let stopped = counter("det-stopped");
        stopped.tell(()).unwrap();
        stopped.stop();
        let address = stopped.address();
        assert_eq!(drive(stopped.join()).unwrap(), 1);
        gone("det-stopped");
        assert!(
            address.tell(()).is_err(),
            "an address keeps the thread alive"
        );

        let forgotten = counter("det-forgotten");
        drop(forgotten);
        gone("det-forgotten");

        let drops = Drops::default();
        let (held, begun) = (drops.one(), Gate::default());
        let begins = begun.clone();
        let killed = spawn!(
            |_: Context<()>| async move {
                let _held = held;
                begins.open();
                pending::<()>().await;
            },
            name = "det-killed",
            on = Detached
        );
        begun.pass();
        killed.kill();
        assert!(matches!(drive(killed.join()), Err(Fault::Killed)));
        assert_eq!(drops.count(), 1);
        gone("det-killed");

        let panics = |_: Context<()>| async { panic!("bomb in a detached actor") };
        let panicked: Handle<(), ()> = actor(panics).name("det-panicked").on(Detached).spawn();
        let fault = drive(panicked.join()).unwrap_err();
        assert!(matches!(fault, Fault::Panicked(_)), "{fault}");
        assert_eq!(fault.to_string(), "panicked: bomb in a detached actor");
        gone("det-panicked");
    });
}

#[test]
fn a_shutdown_stops_a_detached_actor_after_its_accepted_messages() {
    with_worker(|runtime| {
        let (begun, gate) = (Gate::default(), Gate::default());
        let (begins, waits) = (begun.clone(), gate.clone());
        let finishes = |mut cx: Context<u32>| async move {
            begins.open();
            waits.pass();
            let mut sum = 0;
            while let Some(number) = cx.recv().await {
                sum += number;
            }
            sum
        };
        let actor = actor(finishes).name("det-finish").on(Detached).spawn();
        begun.pass();
        (1..=3).for_each(|number| actor.tell(number).unwrap());
        let address = actor.address();
        let ending = std::thread::spawn({
            let runtime = runtime.clone();
            move || drive(runtime.shutdown())
        });
        crate::support::until(|| address.is_closed());
        gate.open();
        let report = ending.join().unwrap();
        assert_eq!((report.ended, report.cancelled), (1, 0));
        assert_eq!((report.unhandled, report.left_behind), (0, 0));
        assert_eq!(drive(actor.join()).unwrap(), 6);
        gone("det-finish");
    });
}

/// Builds a runtime without a grace period.
fn hasty() -> Runtime {
    let builder = Runtime::builder().workers(1).grace(Duration::ZERO);
    builder.build().unwrap()
}

#[test]
fn a_shutdown_cancels_a_detached_actor_after_the_grace() {
    within(WATCH, || {
        let (runtime, drops, begun) = (hasty(), Drops::default(), Gate::default());
        let (held, begins) = (drops.one(), begun.clone());
        let endless = |_: Context<()>| async move {
            let _held = (held, Rc::new(()));
            begins.open();
            pending::<()>().await;
        };
        let actor = inside(&runtime, || {
            actor(endless).name("det-endless").on(Detached).spawn()
        });
        begun.pass();
        let report = drive(runtime.shutdown());
        assert_eq!((report.ended, report.cancelled), (0, 1));
        assert_eq!(report.left_behind, 0);
        assert_eq!(drops.count(), 1);
        assert!(matches!(drive(actor.join()), Err(Fault::Cancelled)));
        gone("det-endless");
    });
}

#[test]
fn a_shutdown_leaves_a_blocked_detached_actor_behind() {
    within(WATCH, || {
        let (runtime, begun) = (hasty(), Gate::default());
        let (go, waits) = mpsc::channel::<()>();
        let begins = begun.clone();
        let blocks = |_: Context<()>| async move {
            begins.open();
            waits.recv().unwrap();
            pending::<()>().await;
        };
        let actor = inside(&runtime, || {
            actor(blocks).name("det-blocks").on(Detached).spawn()
        });
        begun.pass();
        let report = drive(runtime.shutdown());
        assert_eq!((report.ended, report.cancelled), (0, 1));
        assert_eq!(report.left_behind, 1);
        go.send(()).unwrap();
        assert!(matches!(drive(actor.join()), Err(Fault::Cancelled)));
        gone("det-blocks");
    });
}

#[test]
fn a_detached_actor_may_await_the_shutdown_of_its_runtime() {
    within(WATCH, || {
        let runtime = hasty();
        let ends = |_: Context<()>| async { Runtime::current().shutdown().await };
        let actor = inside(&runtime, || {
            actor(ends).name("det-awaits").on(Detached).spawn()
        });
        let report = drive(actor.join()).unwrap();
        assert_eq!((report.ended, report.cancelled), (0, 0));
        assert_eq!(report.left_behind, 0);
        gone("det-awaits");
    });
}

#[test]
fn a_detached_actor_spawned_after_the_shutdown_starts_no_thread() {
    with_worker(|runtime| {
        drive(runtime.shutdown());
        let drops = Drops::default();
        let held = drops.one();
        let late = actor(|_: Context<()>| async move { drop(held) }).name("det-late");
        let error = late.on(Detached).try_spawn().unwrap_err();
        assert_eq!(error.problem(), SpawnProblem::ShutDown);
        assert_eq!(drops.count(), 0);
        let handle = actor(error.into_inner()).name("det-late").on(Detached);
        let handle = handle.spawn();
        assert!(handle.is_closed());
        assert!(matches!(drive(handle.join()), Err(Fault::NotStarted)));
        assert_eq!(drops.count(), 1);
        #[cfg(target_os = "linux")]
        assert_eq!(crate::child::threads_named("det-late"), 0);
    });
}

#[test]
fn a_detached_actor_without_a_runtime_is_returned() {
    within(WATCH, || {
        let drops = Drops::default();
        let held = drops.one();
        let alone = actor(|_: Context<()>| async move { drop(held) }).on(Detached);
        let error = alone.try_spawn().unwrap_err();
        assert_eq!(error.problem(), SpawnProblem::NoRuntime);
        assert_eq!(drops.count(), 0);
        let alone = actor(error.into_inner()).on(Detached);
        let (text, file, line) = panic_of(|| alone.spawn());
        assert_eq!((&*file, line), (file!(), line!() - 1));
        assert!(text.contains("no greenroom runtime is current"), "{text}");
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_detached_actor_with_an_impossible_option_starts_no_thread() {
    with_worker(|_| {
        let named = || {
            actor(|_: Context<()>| async {})
                .name("det-refused")
                .on(Detached)
        };
        let error = named().capacity(0).try_spawn().unwrap_err();
        assert_eq!(error.problem(), SpawnProblem::ZeroCapacity);
        let error = named().priority(8).try_spawn().unwrap_err();
        let (priority, highest) = (8, 7);
        assert_eq!(
            error.problem(),
            SpawnProblem::Priority { priority, highest }
        );
        #[cfg(target_os = "linux")]
        assert_eq!(crate::child::threads_named("det-refused"), 0);
        drive(named().priority(7).try_spawn().unwrap().join()).unwrap();
    });
}
