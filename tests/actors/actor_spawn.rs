//! The builder: options, where an actor may live, and the errors of spawning.

use std::error::Error;
use std::rc::Rc;

use greenroom::{Context, Fault, Runtime, SpawnProblem, actor, spawn};

use crate::support::{Drops, Gate, WATCH, drive, panic_of, within};

async fn idle(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

#[test]
fn an_actor_lives_on_the_current_runtime_by_default() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(1)
            .thread_name("here")
            .build()
            .unwrap();
        let name = || std::thread::current().name().map(str::to_owned);
        runtime.block_on(async {
            let outer = actor(async move |_cx: Context<u32>| {
                // Spawning inside an actor works like spawning outside.
                let inner = actor(async move |_cx: Context<u32>| name()).spawn();
                (name(), inner.join().await.unwrap())
            });
            let names = outer.spawn().join().await.unwrap();
            assert_eq!(names, (Some("here-0".into()), Some("here-0".into())));
        });
    });
}

#[test]
fn on_selects_the_runtime_or_thread_of_an_actor() {
    within(WATCH, || {
        let one = Runtime::builder()
            .workers(1)
            .thread_name("one")
            .build()
            .unwrap();
        let other = Runtime::builder()
            .workers(1)
            .thread_name("other")
            .build()
            .unwrap();
        let pinned = one.spawn_pinned("pinned").unwrap();
        let name = async |_cx: Context<u32>| std::thread::current().name().map(str::to_owned);
        one.block_on(async {
            let there = actor(name).on(&other).spawn();
            assert_eq!(there.join().await.unwrap().as_deref(), Some("other-0"));
            let there = actor(name).on(&pinned).spawn();
            assert_eq!(there.join().await.unwrap().as_deref(), Some("pinned"));
            let here = actor(name).on(&other).on(&pinned).on(&one).spawn();
            assert_eq!(
                here.join().await.unwrap().as_deref(),
                Some("one-0"),
                "the last one counts"
            );
        });
    });
}

#[test]
fn on_a_pinned_thread_the_future_need_not_be_send() {
    within(WATCH, || {
        let runtime = runtime(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let counts = actor(async |mut cx: Context<u32>| {
            let sum = Rc::new(std::cell::Cell::new(0));
            let also = sum.clone();
            while let Some(number) = cx.recv().await {
                also.set(also.get() + number);
            }
            sum.get()
        });
        let handle = counts.on(&pinned).spawn();
        (0..10).for_each(|number| handle.tell(number).unwrap());
        assert_eq!(runtime.block_on(handle.join()).unwrap(), 45);
    });
}

#[test]
fn an_actor_may_be_spawned_on_a_runtime_from_any_thread() {
    within(WATCH, || {
        let runtime = runtime(2);
        let handles: Vec<_> = std::thread::scope(|scope| {
            let spawns = (0..4).map(|_| scope.spawn(|| actor(idle).on(&runtime).spawn()));
            let spawns: Vec<_> = spawns.collect();
            spawns
                .into_iter()
                .map(|spawn| spawn.join().unwrap())
                .collect()
        });
        for handle in handles {
            drive(handle.join()).unwrap();
        }
    });
}

#[test]
fn try_spawn_without_a_runtime_returns_the_actor() {
    within(WATCH, || {
        let drops = Drops::default();
        let state = drops.one();
        let makes = move |_cx: Context<u32>| {
            let state = state;
            async move { drop(state) }
        };
        let error = actor(makes).name("lost").try_spawn().unwrap_err();
        assert_eq!(error.problem(), SpawnProblem::NoRuntime);
        assert!(
            error
                .to_string()
                .contains("no greenroom runtime is current"),
            "{error}"
        );
        assert!(format!("{error:?}").contains("NoRuntime"));
        let _: &dyn Error = &error;
        assert_eq!(drops.count(), 0, "the captured state was not dropped");
        // The returned actor can still be spawned.
        let runtime = runtime(1);
        let again = actor(error.into_inner()).on(&runtime).try_spawn().unwrap();
        runtime.block_on(again.join()).unwrap();
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_capacity_of_zero_is_refused_with_value_and_limit() {
    within(WATCH, || {
        let runtime = runtime(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        for named in [false, true] {
            let builder = actor(idle).capacity(0);
            let builder = if named {
                builder.name("tally")
            } else {
                builder
            };
            let error = builder.on(&runtime).try_spawn().unwrap_err();
            assert_eq!(error.problem(), SpawnProblem::ZeroCapacity);
            let text = error.to_string();
            assert!(
                text.contains("capacity is 0") && text.contains("at least 1"),
                "{text}"
            );
        }
        let error = actor(idle).on(&pinned).capacity(0).try_spawn().unwrap_err();
        assert_eq!(error.problem(), SpawnProblem::ZeroCapacity);
        // A later option replaces it.
        let two = actor(idle)
            .capacity(0)
            .capacity(2)
            .on(&runtime)
            .try_spawn()
            .unwrap();
        runtime.block_on(two.join()).unwrap();
    });
}

#[test]
fn a_priority_up_to_the_highest_of_the_runtime_is_accepted() {
    within(WATCH, || {
        let seven = runtime(1);
        let pinned = seven.spawn_pinned("pinned").unwrap();
        for level in [0, 1, 7] {
            let handle = spawn!(idle(_), priority = level, name = "tally", on = &seven);
            seven.block_on(handle.join()).unwrap();
            let handle = actor(idle).priority(level).on(&pinned).spawn();
            seven.block_on(handle.join()).unwrap();
        }
        for highest in [0, 3, 255] {
            let builder = Runtime::builder().workers(1).priorities(highest);
            let runtime = builder.build().unwrap();
            let handle = actor(idle).priority(highest).on(&runtime).spawn();
            runtime.block_on(handle.join()).unwrap();
            let Some(priority) = highest.checked_add(1) else {
                continue;
            };
            let error = actor(idle).priority(priority).on(&runtime).try_spawn();
            let problem = SpawnProblem::Priority { priority, highest };
            assert_eq!(error.unwrap_err().problem(), problem);
        }
        // A split actor has no levels, so any priority is accepted.
        let (address, split) = actor(idle).priority(255).split();
        drop(address);
        drive(split).unwrap();
    });
}

#[test]
fn a_priority_that_is_too_high_is_refused_with_value_and_limit() {
    within(WATCH, || {
        let runtime = runtime(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let drops = Drops::default();
        let held = drops.one();
        let nine = actor(|_: Context<u32>| async move { drop(held) }).priority(9);
        let error = runtime.block_on(async { nine.try_spawn() }).unwrap_err();
        assert_eq!(error.to_string(), "priority is 9, but must be from 0 to 7");
        assert_eq!(drops.count(), 0, "the actor was returned");
        let nine = actor(error.into_inner()).priority(9).on(&pinned);
        let error = nine.try_spawn().unwrap_err();
        let (priority, highest) = (9, 7);
        assert_eq!(
            error.problem(),
            SpawnProblem::Priority { priority, highest }
        );
        assert_eq!(drops.count(), 0, "the actor was returned");

        let nine = actor(idle).name("tally").priority(9).on(&runtime);
        let (text, file, line) = panic_of(|| nine.spawn());
        assert_eq!((&*file, line), (file!(), line!() - 1));
        assert!(
            text.contains("\"tally\"") && text.contains("priority is 9"),
            "{text}"
        );
    });
}

#[test]
fn spawn_panics_with_the_callers_location_and_the_problem() {
    within(WATCH, || {
        let (text, file, line) = panic_of(|| actor(idle).spawn());
        assert_eq!(line, line!() - 1);
        assert!(file.ends_with("actor_spawn.rs"), "{file}");
        assert!(text.contains("no greenroom runtime is current"), "{text}");

        let runtime = runtime(1);
        let zero = actor(idle).name("tally").capacity(0).on(&runtime);
        let (text, file, line) = panic_of(|| zero.spawn());
        assert_eq!(line, line!() - 1);
        assert!(file.ends_with("actor_spawn.rs"), "{file}");
        assert!(
            text.contains("\"tally\"") && text.contains("capacity is 0"),
            "{text}"
        );
    });
}

#[test]
fn after_a_shutdown_try_spawn_returns_the_actor_and_spawn_a_closed_handle() {
    within(WATCH, || {
        let runtime = runtime(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        runtime.block_on(runtime.shutdown());
        let drops = Drops::default();
        let make = || {
            let state = drops.one();
            move |_cx: Context<u32>| async move { drop(state) }
        };
        let on_runtime = actor(make())
            .name("late")
            .capacity(3)
            .on(&runtime)
            .try_spawn();
        let on_pinned = actor(make()).on(&pinned).try_spawn();
        for error in [on_runtime.unwrap_err(), on_pinned.unwrap_err()] {
            assert_eq!(error.problem(), SpawnProblem::ShutDown);
            assert!(error.to_string().contains("shut down"), "{error}");
            let before = drops.count();
            drop(error.into_inner());
            assert_eq!(drops.count(), before + 1);
        }
        let handle = actor(make()).name("late").capacity(3).on(&runtime).spawn();
        assert_eq!(handle.name(), Some("late"));
        assert!(
            handle
                .tell(1)
                .is_err_and(|it| it.is_closed() && it.into_inner() == 1)
        );
        assert_eq!(drive(handle.send(2)).unwrap_err().into_inner(), 2);
        assert!(matches!(drive(handle.join()), Err(Fault::NotStarted)));
        assert_eq!(drops.count(), 3);
    });
}

#[test]
fn an_actor_is_made_on_its_own_thread_in_its_first_turn() {
    within(WATCH, || {
        let runtime = runtime(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let (gate, made) = (Gate::default(), Gate::default());
        let waits = gate.clone();
        let held = pinned.spawn(move || async move { waits.pass() });
        let makes = made.clone();
        let handle = actor(move |_cx: Context<u32>| {
            makes.open();
            let here = std::thread::current().id();
            async move { here == std::thread::current().id() }
        });
        let handle = handle.on(&pinned).spawn();
        assert!(!made.is_open());
        gate.open();
        assert!(runtime.block_on(handle.join()).unwrap());
        runtime.block_on(held);
    });
}

#[test]
fn the_debug_text_of_a_builder_shows_its_options() {
    let text = format!("{:?}", actor(idle).name("tally").capacity(7));
    assert!(text.contains("tally") && text.contains('7'), "{text}");
}

#[test]
fn actors_of_two_runtimes_talk_to_each_other() {
    within(WATCH, || {
        let (one, other) = (runtime(1), runtime(2));
        let far = actor(async |mut cx: Context<greenroom::Reply<u32>>| {
            let mut count = 0;
            while let Some(reply) = cx.recv().await {
                count += 1;
                reply.send(count);
            }
        });
        let far = far.on(&other).spawn();
        let address = far.address();
        let near = actor(async move |_cx: Context<u32>| {
            let mut last = 0;
            for _ in 0..1_000 {
                last = address.ask(|reply| reply).await.unwrap();
            }
            last
        });
        assert_eq!(one.block_on(near.on(&one).spawn().join()).unwrap(), 1_000);
    });
}
