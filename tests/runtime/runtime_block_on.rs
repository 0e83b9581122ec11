//! `block_on` and `run`: a thread of the user waits for a future.

use std::rc::Rc;

use greenroom::{Context, Runtime, spawn};

use crate::support::{Drops, Gate, WATCH, drive, panic_of, within};

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

#[test]
fn block_on_returns_the_value_of_the_future() {
    within(WATCH, || {
        assert_eq!(runtime(1).block_on(async { 40 + 2 }), 42)
    });
}

#[test]
fn block_on_runs_its_future_on_the_calling_thread_without_send() {
    within(WATCH, || {
        let here = std::thread::current().id();
        let text = Rc::new(String::from("here"));
        let borrowed: &str = &text;
        let ran_on = runtime(2).block_on(async {
            for _ in 0..10 {
                greenroom::yield_now().await;
                assert_eq!(std::thread::current().id(), here);
            }
            greenroom::spawn(async {}).await;
            assert_eq!(borrowed, "here");
            std::thread::current().id()
        });
        assert_eq!(ran_on, here);
    });
}

#[test]
fn block_on_waits_for_another_thread() {
    within(WATCH, || {
        let gate = Gate::default();
        let opener = gate.clone();
        let waits = Gate::default();
        let begun = waits.clone();
        let thread = std::thread::spawn(move || {
            begun.pass();
            opener.open();
        });
        runtime(1).block_on(async {
            waits.open();
            gate.wait().await;
        });
        thread.join().unwrap();
    });
}

#[test]
fn many_threads_may_call_block_on_at_the_same_time() {
    within(WATCH, || {
        let runtime = runtime(2);
        let sum: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16_u64)
                .map(|n| {
                    let runtime = &runtime;
                    scope.spawn(move || {
                        runtime.block_on(async move {
                            let mut sum = 0;
                            for k in 0..100 {
                                sum += greenroom::spawn(async move { n * k }).await;
                            }
                            sum
                        })
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(sum, 120 * 4950);
    });
}

#[test]
fn block_on_resumes_a_panic_and_the_runtime_continues() {
    within(WATCH, || {
        let runtime = runtime(1);
        let drops = Drops::default();
        let dropped = drops.one();
        let (text, ..) = panic_of(|| {
            runtime.block_on(async move {
                let _dropped = dropped;
                greenroom::yield_now().await;
                panic!("bomb in block_on");
            })
        });
        assert_eq!(text, "bomb in block_on");
        assert_eq!(drops.count(), 1);
        assert!(Runtime::try_current().is_none());
        assert_eq!(
            runtime.block_on(async { greenroom::spawn(async { 42 }).await }),
            42
        );
    });
}

#[test]
fn block_on_in_a_pinned_task_panics_with_the_reason() {
    within(WATCH, || {
        let runtime = runtime(1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let (text, file, _) = runtime.block_on(
            pinned.spawn(|| async { panic_of(|| Runtime::current().block_on(async {})) }),
        );
        assert!(text.contains("pinned thread"), "{text}");
        assert!(text.contains("nowhere else"), "{text}");
        assert!(
            text.contains("await"),
            "the text does not say what to do instead: {text}"
        );
        assert_eq!(file, file!());
    });
}

#[test]
fn block_on_works_inside_unblock() {
    within(WATCH, || {
        let runtime = runtime(1);
        let value = runtime.block_on(async {
            // On a thread that may block, where the runtime is current too.
            greenroom::unblock(|| {
                let runtime = Runtime::current();
                runtime.block_on(async { greenroom::spawn(async { 40 }).await + 2 })
            })
            .await
        });
        assert_eq!(value, 42);
    });
}

#[test]
fn run_returns_the_value_and_shuts_down() {
    within(WATCH, || {
        let drops = Drops::default();
        let (gone, handle) = (drops.one(), Gate::default());
        let ended = handle.clone();
        let actor_gone = drops.one();
        let value = greenroom::run(async move {
            greenroom::spawn(async move {
                let _gone = gone;
                std::future::pending::<()>().await;
            })
            .detach();
            // Only the shutdown at the end stops this actor.
            let actor = spawn!(|mut cx: Context<()>| async move {
                let _gone = actor_gone;
                while cx.recv().await.is_some() {}
                ended.open();
            });
            (42, actor.address())
        });
        assert_eq!(value.0, 42);
        assert!(
            handle.is_open(),
            "the actor was not stopped by the shutdown"
        );
        assert_eq!(drops.count(), 2);
        assert!(value.1.is_closed());
        drive(value.1.closed());
    });
}

#[test]
fn run_resumes_a_panic_after_the_shutdown() {
    within(WATCH, || {
        let drops = Drops::default();
        let dropped = drops.one();
        let (text, ..) = panic_of(|| {
            greenroom::run(async move {
                greenroom::spawn(async move {
                    let _dropped = dropped;
                    std::future::pending::<()>().await;
                })
                .detach();
                greenroom::spawn(async {}).await;
                panic!("bomb in run");
            })
        });
        assert_eq!(text, "bomb in run");
        assert_eq!(drops.count(), 1);
    });
}
