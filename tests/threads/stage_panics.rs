//! A panic on a stage ends there, or reaches the waiter; the foreign loop continues.

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;

use greenroom::{Context, Pinned, Runtime, Stage, actor};

use crate::support::{Bomb, Drops, WATCH, drive, panic_of, within};

/// Runs the test with a stage of a runtime, and with a stage without a runtime.
fn with_both(test: fn(Stage)) {
    within(WATCH, move || {
        let builder = Runtime::builder().workers(1).on_fault(|_| {});
        test(builder.build().unwrap().pinned_here());
        test(Pinned::here());
    });
}

#[test]
fn panics_in_drops_do_not_reach_the_loop() {
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
fn block_on_resumes_a_panic_and_the_stage_continues() {
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
fn block_on_in_a_task_of_the_stage_panics_with_the_reason() {
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
                        .block_on(async { unreachable!("the future must not be polled") })
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
