//! What panics on a stage ends there, or goes to whoever waits; the foreign loop goes on.

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;

use greenroom::{Context, Pinned, Runtime, Stage, actor};

use crate::support::{Bomb, Drops, WATCH, drive, panic_of, within};

/// Runs the test with a stage of a runtime, and with one of none.
fn with_both(test: fn(Stage)) {
    within(WATCH, move || {
        let builder = Runtime::builder().workers(1).on_fault(|_| {});
        test(builder.build().unwrap().pinned_here());
        test(Pinned::here());
    });
}

#[test]
fn what_panics_when_it_is_dropped_does_not_reach_the_loop() {
    with_both(|stage| {
        let drops = Drops::default();
        let payload = || Bomb::new(true, &drops);
        let (one, two, three, four) = (payload(), payload(), payload(), payload());
        stage
            .spawn(move || async move { std::panic::panic_any(one) })
            .detach();
        let panics = stage.spawn(move || async move { std::panic::panic_any(two) });
        let actor = actor(move |_: Context<()>| async move { std::panic::panic_any(three) });
        let actor = actor.on(&stage).spawn();
        let waits = stage.spawn(move || async move {
            let _four = four;
            pending::<()>().await;
        });
        stage.run_ready();
        drop((panics, actor));
        stage.run_ready();
        assert_eq!(drops.count(), 3);
        assert_eq!(stage.block_on(stage.spawn(|| async { 42 })), 42);
        drop(stage);
        assert_eq!(drops.count(), 4);
        assert!(drive(waits.fallible()).is_none());
    });
}

#[test]
fn a_panic_of_the_future_it_waits_for_goes_through_and_the_stage_goes_on() {
    with_both(|stage| {
        let (text, ..) = panic_of(|| stage.block_on(async { panic!("bomb in a future") }));
        assert_eq!(text, "bomb in a future");
        let (text, ..) =
            panic_of(|| stage.block_on(stage.spawn(|| async { panic!("bomb in a task") })));
        assert_eq!(text, "bomb in a task");
        assert_eq!(stage.block_on(stage.spawn(|| async { 42 })), 42);
        assert_eq!(stage.run_ready(), 0);
    });
}

#[test]
fn to_wait_in_a_task_of_its_own_panics_and_says_why() {
    thread_local!(static HERE: RefCell<Option<Rc<Stage>>> = const { RefCell::new(None) });
    with_both(|stage| {
        let stage = Rc::new(stage);
        HERE.set(Some(stage.clone()));
        let waits = || {
            panic_of(|| {
                HERE.with_borrow(|stage| {
                    stage
                        .as_ref()
                        .unwrap()
                        .block_on(async { unreachable!("not polled") })
                })
            })
        };
        let waits = stage.spawn(move || async move { waits() });
        let (text, file, _) = stage.block_on(waits);
        assert!(text.contains("in a task of a pinned thread"), "{text}");
        assert_eq!(file, file!());
        HERE.take();
    });
}
