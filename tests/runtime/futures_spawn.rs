//! The runtime as `futures::task::Spawn`, with combinators of the `futures` crate.

use std::sync::Arc;

use futures::future::{join_all, select};
use futures::stream::{FuturesUnordered, StreamExt};
use futures::task::{Spawn, SpawnExt};
use greenroom::{Runtime, spawn};

use crate::support::{Drops, Gate, Log, WATCH, drive, keep_bombs_quiet, within};

fn runtime(workers: usize) -> Runtime {
    Runtime::builder().workers(workers).build().unwrap()
}

/// Adds up numbers on any executor, as a library would.
async fn sum_on(executor: impl Spawn, numbers: u32) -> u32 {
    let tasks = (1..=numbers).map(|number| {
        let task = executor.spawn_with_handle(async move { number });
        task.expect("the executor accepts the task")
    });
    join_all(tasks).await.into_iter().sum()
}

#[test]
fn code_for_any_executor_accepts_a_runtime() {
    within(WATCH, || {
        let runtime = runtime(2);
        assert!(runtime.status().is_ok());
        assert_eq!(runtime.block_on(sum_on(runtime.clone(), 100)), 5050);
        assert_eq!(runtime.block_on(sum_on(&runtime, 100)), 5050);
        assert_eq!(drive(sum_on(Arc::new(runtime.clone()), 100)), 5050);
        let boxed: Box<dyn Spawn> = Box::new(runtime.clone());
        assert_eq!(drive(sum_on(boxed, 100)), 5050);
        // In a task, on the current runtime.
        let inside = runtime.spawn(async { sum_on(Runtime::current(), 100).await });
        assert_eq!(drive(inside), 5050);
    });
}

#[test]
fn a_task_spawned_through_spawn_ext_is_detached() {
    within(WATCH, || {
        let (runtime, done) = (runtime(1), Gate::default());
        let opens = done.clone();
        SpawnExt::spawn(&runtime, async move { opens.open() }).unwrap();
        done.pass();
    });
}

#[test]
fn a_panic_of_a_task_spawned_through_spawn_ext_reaches_on_fault() {
    within(WATCH, || {
        keep_bombs_quiet();
        let (told, log) = (Gate::default(), Log::default());
        let (opens, own) = (told.clone(), log.clone());
        let builder = Runtime::builder().workers(1).on_fault(move |unhandled| {
            own.add(unhandled.to_string());
            opens.open();
        });
        let runtime = builder.build().unwrap();
        SpawnExt::spawn(&runtime, async { panic!("bomb on any executor") }).unwrap();
        told.pass();
        let told = log.take();
        assert!(
            told.len() == 1 && told[0].contains("bomb on any"),
            "{told:?}"
        );
    });
}

#[test]
fn spawn_ext_refuses_and_drops_futures_after_a_shutdown() {
    within(WATCH, || {
        let (runtime, drops) = (runtime(1), Drops::default());
        drive(runtime.shutdown());
        let dropped = drops.one();
        let refused = SpawnExt::spawn(&runtime, async move { drop(dropped) });
        assert!(refused.unwrap_err().is_shutdown());
        assert!(runtime.status().unwrap_err().is_shutdown());
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn combinators_of_the_futures_crate_run_on_a_runtime() {
    within(WATCH, || {
        let sum = runtime(2).block_on(async {
            let mut tasks: FuturesUnordered<_> = (1..=100)
                .map(|number| greenroom::spawn(async move { number }))
                .collect();
            let mut sum = 0;
            while let Some(number) = tasks.next().await {
                sum += number;
            }
            let never = std::future::pending::<()>();
            let first = select(Box::pin(never), greenroom::spawn(async { 1 })).await;
            let futures::future::Either::Right((one, _)) = first else {
                panic!("the other one never ends")
            };
            let (tells, mut told) = futures::channel::mpsc::channel(1);
            let actor = spawn!(|_cx: greenroom::Context<()>| async move {
                use futures::SinkExt;
                let mut tells = tells;
                for number in 0..10 {
                    tells.send(number).await.unwrap();
                }
            });
            while let Some(number) = told.next().await {
                sum += number;
            }
            actor.join().await.unwrap();
            sum + one
        });
        assert_eq!(sum, 5050 + 45 + 1);
    });
}
