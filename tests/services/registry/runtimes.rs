//! Each runtime has names of its own, and none is needed to have a `Name`.

use std::future::Future;

use greenroom::policy::Simulated;
use greenroom::registry::{Group, JoinError, LookupError, Name, RegisterError};
use greenroom::{Detached, Runtime, SpawnProblem, actor};

use super::{Job, STORE, idle, outside, work, worker};
use crate::support::{Gate, Home, WATCH, panic_of, within};

const TOPIC: Group<Job> = Group::new("topic");

/// Runs a scenario with two runtimes.
fn with_two<Fut: Future + 'static>(scenario: fn(Home, Home) -> Fut) {
    within(WATCH, move || {
        let pair = (Home::workers(1), Home::workers(2));
        outside(scenario(pair.0, pair.1));
    });
}

#[test]
fn two_runtimes_share_neither_names_nor_groups() {
    with_two(|one, other| async move {
        let (first, second) = (worker(&one), worker(&other));
        one.block_on(async {
            STORE.register(&first).unwrap();
            TOPIC.join(&first).unwrap();
        });
        other.block_on(async {
            assert!(matches!(STORE.get(), Err(LookupError::Unknown { .. })));
            assert_eq!(TOPIC.members(), []);
            STORE.register(&second).unwrap();
            assert_eq!(STORE.get().unwrap(), *second);
            assert_eq!(STORE.on(&one.runtime).get().unwrap(), *first);
        });
        assert_eq!(STORE.on(&one.runtime).get().unwrap(), *first);
    });
}

#[test]
fn an_actor_of_another_runtime_is_registered_where_it_is_said() {
    with_two(|one, other| async move {
        let foreign = worker(&other);
        STORE.on(&one.runtime).register(&foreign).unwrap();
        TOPIC.on(&one.runtime).join(&foreign).unwrap();
        let found = STORE.on(&one.runtime).wait().await.unwrap();
        assert_eq!(found.ask(Job::Number).await, Ok(0));
        assert!(STORE.on(&other.runtime).get().is_err());
        foreign.kill();
        foreign.closed().await;
        assert!(STORE.on(&one.runtime).get().is_err());
        assert_eq!(TOPIC.on(&one.runtime).members(), []);
        STORE.on(&one.runtime).register(&worker(&one)).unwrap();
    });
}

#[test]
fn outside_a_runtime_each_function_says_so() {
    within(WATCH, || {
        let home = Home::workers(1);
        let store = worker(&home);
        let refused = STORE.register(&store).unwrap_err();
        assert!(matches!(refused, RegisterError::NoRuntime));
        assert_eq!(STORE.get(), Err(LookupError::NoRuntime));
        assert_eq!(outside(STORE.wait()), Err(LookupError::NoRuntime));
        assert!(!STORE.unregister());
        assert_eq!(TOPIC.join(&store), Err(JoinError::NoRuntime));
        for error in [refused.to_string(), LookupError::NoRuntime.to_string()] {
            assert!(
                error.starts_with("no greenroom runtime is current"),
                "{error}"
            );
        }
        const NUMBERS: Group<u32> = Group::new("numbers");
        let numbers = actor(idle::<u32>).on(&home.runtime).spawn();
        let calls: [&dyn Fn(); 5] = [
            &|| assert!(NUMBERS.members().is_empty()),
            &|| assert!(NUMBERS.next().is_none()),
            &|| assert!(!NUMBERS.leave(&numbers)),
            &|| assert_eq!(NUMBERS.broadcast(1).sent, 0),
            &|| assert_eq!(outside(NUMBERS.send_all(1)).sent, 0),
        ];
        for call in calls {
            let (text, ..) = panic_of(call);
            assert_eq!(text, SpawnProblem::NoRuntime.to_string());
        }
    });
}

#[test]
fn a_runtime_that_is_over_has_no_names() {
    within(WATCH, || {
        let home = Home::workers(1);
        let foreign = Home::workers(1);
        let store = worker(&foreign);
        let (name, topic) = (STORE.on(&home.runtime), TOPIC.on(&home.runtime));
        let never_used = Name::<Job>::new("never used").on(&foreign.runtime);
        name.register(&store).unwrap();
        topic.join(&store).unwrap();
        drop(home);
        assert_eq!(name.get(), Err(LookupError::NoRuntime));
        assert_eq!(outside(name.wait()), Err(LookupError::NoRuntime));
        assert!(matches!(
            name.register(&store),
            Err(RegisterError::NoRuntime)
        ));
        assert!(!name.unregister());
        assert_eq!(topic.join(&store), Err(JoinError::NoRuntime));
        assert_eq!(topic.members(), []);
        assert!(!topic.leave(&store));
        drop(foreign);
        assert_eq!(never_used.get(), Err(LookupError::NoRuntime));
        assert!(matches!(
            never_used.register(&store),
            Err(RegisterError::Closed)
        ));
    });
}

#[test]
fn actors_on_every_kind_of_thread_have_names() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let stage = runtime.pinned_here();
        let on_stage = actor(work).on(&stage).spawn();
        // The thread of a stage has the runtime of the stage.
        Name::new("stage").register(&on_stage).unwrap();
        let (detached, on_pinned) = runtime.block_on(async {
            let detached = actor(work).on(Detached).spawn();
            let on_pinned = actor(work).on(&pinned).spawn();
            Name::new("detached").register(&detached).unwrap();
            Name::new("pinned").register(&on_pinned).unwrap();
            (detached, on_pinned)
        });
        for (text, actor) in [
            ("stage", &on_stage),
            ("detached", &detached),
            ("pinned", &on_pinned),
        ] {
            assert_eq!(Name::new(text).get().unwrap(), **actor);
            actor.stop();
        }
        runtime.block_on(async {
            for actor in [on_stage, detached, on_pinned] {
                let id = actor.id();
                actor.closed().await;
                assert!(["stage", "detached", "pinned"].iter().all(|text| {
                    Name::<Job>::new(text)
                        .get()
                        .ok()
                        .is_none_or(|found| found.id() != id)
                }));
            }
        });
    });
}

#[test]
fn a_name_of_a_simulation_is_unknown_elsewhere() {
    within(WATCH, || {
        let simulated = Runtime::builder()
            .policy(Simulated::new(1))
            .build()
            .unwrap();
        let other = Runtime::builder().workers(1).build().unwrap();
        let store = actor(work).on(&simulated).spawn();
        simulated.block_on(async { STORE.register(&store).unwrap() });
        assert_eq!(STORE.on(&simulated).get().unwrap(), *store);
        assert!(STORE.on(&other).get().is_err());
    });
}

#[test]
fn names_do_not_keep_a_runtime_alive() {
    within(WATCH, || {
        let dropped = Gate::default();
        let home = Home::workers(1);
        let (name, topic) = (STORE.on(&home.runtime), TOPIC.on(&home.runtime));
        let opens = crate::support::OpenOnDrop(dropped.clone());
        let store = actor(move |cx| async move {
            let _opens = opens;
            work(cx).await;
        });
        let store = store.on(&home.runtime).spawn();
        name.register(&store).unwrap();
        topic.join(&store).unwrap();
        drop(home);
        assert!(dropped.is_open());
    });
}
