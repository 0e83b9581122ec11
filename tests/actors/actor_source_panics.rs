//! Panics of an actor's sources: where they are reported, and that the actor continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use greenroom::policy::Simulated;
use greenroom::sim::RunProblem;
use greenroom::{Address, Context, Fault, Reply, Runtime, actor, spawn};

use crate::support::{Bomb, Drops, Gate, Home, Log, WATCH, keep_bombs_quiet, within};

const SOON: Duration = Duration::from_millis(1);

/// Attaches each kind of source that can panic. Returns the sum of the messages of the sources
/// that do not panic.
async fn with_panics(mut cx: Context<u32>) -> u32 {
    cx.attach(stream::iter([1, 2]).map(|number| {
        assert!(number != 2, "bomb in a stream");
        number
    }))
    .detach();
    let mut tick = 0;
    cx.send_every(SOON, move || {
        tick += 10;
        assert!(tick != 20, "bomb in a tick");
        tick
    })
    .detach();
    cx.on_return(async { 1 }, |_| panic!("bomb in a closure"));
    cx.on_return(
        async { panic!("bomb in a future") },
        |result: Result<(), _>| {
            let Err(Fault::Panicked(panic)) = result else {
                panic!("it panicked")
            };
            assert_eq!(panic.text(), Some("bomb in a future"));
            100
        },
    );
    let mut sum = 0;
    while let Some(number) = cx.recv().await {
        sum += number;
    }
    sum
}

#[test]
fn panics_of_sources_reach_on_fault_and_those_of_futures_their_closure() {
    within(WATCH, || {
        let heard = Log::default();
        let log = heard.clone();
        let on_fault = move |unhandled: &greenroom::UnhandledFault<'_>| {
            assert!(unhandled.is_source);
            log.add(unhandled.to_string());
        };
        let home = Home::built(1, Runtime::builder().on_fault(on_fault));
        let handle = home.spawn(actor(with_panics).name("panics"));
        let id = handle.id();
        assert_eq!(home.block_on(handle.join()).unwrap(), 111);
        let mut heard = heard.take();
        heard.sort();
        let texts = ["a closure", "a stream", "a tick"]
            .map(|part| format!("a source of \"panics\" #{id} panicked: bomb in {part}"));
        assert_eq!(heard, texts);
    });
}

#[test]
fn a_panic_of_a_source_fails_a_simulation() {
    keep_bombs_quiet();
    for seed in 0..20 {
        let run = Simulated::new(seed).try_run(async {
            spawn!(with_panics(_), name = "panics")
                .join()
                .await
                .unwrap()
        });
        let failure = run.expect_err("a source has panicked");
        let RunProblem::Panicked(text) = failure.problem() else {
            panic!("{failure}")
        };
        let text = text.strip_prefix("a source of \"panics\" #1 panicked: bomb in a ");
        assert!(["closure", "stream", "tick"].contains(&text.unwrap()));
    }
}

/// A split actor has no runtime, so its faults go to the current runtime.
#[test]
fn a_panic_of_a_source_of_a_split_actor_reaches_the_current_runtime() {
    within(WATCH, || {
        let heard = Arc::new(AtomicUsize::new(0));
        let count = heard.clone();
        let builder = Runtime::builder().workers(1).on_fault(move |unhandled| {
            assert!(unhandled.is_source);
            count.fetch_add(1, Ordering::Relaxed);
        });
        let (address, own) = actor(with_panics).split();
        drop(address);
        let runtime = builder.build().unwrap();
        assert_eq!(runtime.block_on(own).unwrap(), 111);
        assert_eq!(heard.load(Ordering::Relaxed), 3);
    });
}

/// Receives until it is closed, with bombs in the closures of its requests, watches and children.
async fn with_bombs(mut cx: Context<u32>, drops: Drops, asked: Address<Reply<u32>>, ready: Gate) {
    /// Returns a closure that owns a bomb.
    fn bomb<T>(live: bool, drops: &Drops) -> impl FnOnce(T) -> u32 + use<T> {
        let bomb = Bomb::new(live, drops);
        move |_| {
            drop(bomb);
            1
        }
    }
    for live in [false, true, false] {
        cx.on_answer(asked.request(|reply| reply), bomb(live, &drops));
        cx.watch(&asked, bomb(live, &drops)).detach();
        let child = spawn!(|mut cx: Context<()>| async move { while cx.recv().await.is_some() {} });
        cx.adopt(child, bomb(live, &drops));
    }
    ready.open();
    while cx.recv().await.is_some() {}
}

#[test]
fn bombs_in_the_closures_of_sources_harm_nothing_else() {
    keep_bombs_quiet();
    within(WATCH, || {
        for kill in [false, true] {
            let runtime = Runtime::builder()
                .workers(1)
                .on_fault(|_| {})
                .build()
                .unwrap();
            let asked = actor(|mut cx: Context<Reply<u32>>| async move {
                let mut replies = Vec::new();
                while let Some(reply) = cx.recv().await {
                    replies.push(reply);
                }
                replies.iter().filter(|reply| !reply.is_wanted()).count()
            });
            let asked = asked.on(&runtime).spawn();
            let (drops, ready) = (Drops::default(), Gate::default());
            let (counted, address, is_ready) = (drops.clone(), asked.address(), ready.clone());
            let bombs = actor(move |cx| with_bombs(cx, counted, address, is_ready));
            let bombs = bombs.on(&runtime).spawn();
            ready.pass();
            match kill {
                true => bombs.kill(),
                false => bombs.stop(),
            }
            assert_eq!(runtime.block_on(bombs.join()).is_err(), kill);
            asked.stop();
            assert_eq!(
                runtime.block_on(asked.join()).unwrap(),
                3,
                "no reply is wanted"
            );
            assert_eq!(drops.count(), 9);
        }
    });
}
