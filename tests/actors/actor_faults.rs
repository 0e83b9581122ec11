//! Faults: what `join` returns if an actor did not end normally, and what `on_fault` receives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::{Context, Fault, Runtime, UnhandledFault, actor};

use crate::support::{Bomb, Drops, Gate, Home, Log, WATCH, in_every_home, until, within};

in_every_home!(
    join_returns_the_panic_of_an_actor,
    a_panic_keeps_its_payload,
    a_panic_before_the_first_suspension_is_a_fault,
    a_panic_while_the_future_is_made_is_a_fault,
    a_panic_drops_the_state_once_and_closes_the_mailbox,
    a_panic_in_the_drop_of_the_state_is_contained,
    a_panic_in_the_drop_of_a_result_is_contained,
    a_panic_payload_that_panics_when_dropped_is_contained,
    the_text_of_a_fault_says_how_the_actor_ended,
);

fn join_returns_the_panic_of_an_actor(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(async |mut cx: Context<u32>| {
            let number = cx.recv().await;
            panic!("bomb number {number:?}");
        }));
        handle.tell(3).unwrap();
        let Err(Fault::Panicked(panic)) = handle.join().await else {
            panic!("it panicked")
        };
        assert_eq!(panic.text(), Some("bomb number Some(3)"));
        assert_eq!(panic.to_string(), "bomb number Some(3)");
    });
}

fn a_panic_keeps_its_payload(home: &Home) {
    let literal = home.spawn(actor(async |_cx: Context<u32>| panic!("bomb")));
    let any = home.spawn(actor(async |_cx: Context<u32>| {
        std::panic::resume_unwind(Box::new(42_u64));
    }));
    home.block_on(async {
        let Err(Fault::Panicked(panic)) = literal.join().await else {
            panic!("it panicked")
        };
        assert_eq!(panic.text(), Some("bomb"));
        assert_eq!(*panic.into_payload().downcast::<&str>().unwrap(), "bomb");
        let Err(Fault::Panicked(panic)) = any.join().await else {
            panic!("it panicked")
        };
        assert_eq!(panic.text(), None);
        assert_eq!(*panic.into_payload().downcast::<u64>().unwrap(), 42);
    });
}

fn a_panic_before_the_first_suspension_is_a_fault(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(async |_cx: Context<u32>| panic!("bomb at once")));
        handle.closed().await;
        assert!(handle.tell(1).unwrap_err().is_closed());
        assert!(matches!(handle.await, Err(Fault::Panicked(_))));
    });
}

fn a_panic_while_the_future_is_made_is_a_fault(home: &Home) {
    fn explode(_cx: Context<u32>) -> std::future::Ready<()> {
        panic!("bomb while it is made")
    }
    home.block_on(async {
        let handle = home.spawn(actor(explode));
        let Err(Fault::Panicked(panic)) = handle.join().await else {
            panic!("it panicked")
        };
        assert_eq!(panic.text(), Some("bomb while it is made"));
    });
}

fn a_panic_drops_the_state_once_and_closes_the_mailbox(home: &Home) {
    let (state, messages) = (Drops::default(), Drops::default());
    let (captured, local) = (state.one(), state.clone());
    let held = home.hold();
    let handle = home.spawn(actor(async move |mut cx: Context<_>| {
        let (_captured, _local) = (captured, local.one());
        let _message = cx.recv().await;
        panic!("bomb in a handler");
    }));
    (0..10).for_each(|_| handle.tell(messages.one()).unwrap());
    drop(held);
    home.block_on(async {
        handle.closed().await;
        assert_eq!((state.count(), messages.count()), (2, 10));
        assert!(handle.tell(messages.one()).unwrap_err().is_closed());
        assert!(handle.join().await.is_err());
    });
}

fn a_panic_in_the_drop_of_the_state_is_contained(home: &Home) {
    let drops = Drops::default();
    home.block_on(async {
        // Ends normally; its state panics in its drop after the value was made.
        let bomb = Bomb::new(true, &drops);
        let ends = home.spawn(actor(move |cx: Context<u32>| Exploding {
            _bomb: bomb,
            _cx: cx,
        }));
        assert_eq!(ends.join().await.unwrap(), 7);
        // Is killed; its state panics in its drop.
        let bomb = Bomb::new(true, &drops);
        let waits = home.spawn(actor(async move |mut cx: Context<u32>| {
            let _bomb = bomb;
            while cx.recv().await.is_some() {}
        }));
        waits.kill();
        assert!(matches!(waits.join().await, Err(Fault::Killed)));
        assert_eq!(drops.count(), 2);
        // Other actors there run as before.
        let next = home.spawn(actor(async |mut cx: Context<u32>| cx.recv().await));
        next.tell(1).unwrap();
        assert_eq!(next.join().await.unwrap(), Some(1));
    });
}

/// A future that is ready at once and panics when it is dropped.
struct Exploding {
    _bomb: Bomb,
    _cx: Context<u32>,
}

impl Future for Exploding {
    type Output = u32;

    fn poll(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<u32> {
        std::task::Poll::Ready(7)
    }
}

fn a_panic_in_the_drop_of_a_result_is_contained(home: &Home) {
    let drops = Drops::default();
    let held = home.hold();
    let spawn = || {
        let result = Bomb::new(true, &drops);
        home.spawn(actor(async move |_cx: Context<u32>| result))
    };
    let (before, after) = (spawn(), spawn());
    drop(before);
    drop(held);
    home.block_on(async {
        after.closed().await;
        drop(after);
        let next = home.spawn(actor(async |_cx: Context<u32>| 1));
        assert_eq!(next.join().await.unwrap(), 1);
    });
    home.block_on(home.spawn_task(async {}));
    // The first actor may still be ending on another worker.
    until(|| drops.count() == 2);
}

fn a_panic_payload_that_panics_when_dropped_is_contained(home: &Home) {
    let drops = Drops::default();
    home.block_on(async {
        for joins in [true, false] {
            let payload = Bomb::new(true, &drops);
            let handle = home.spawn(actor(async move |_cx: Context<u32>| {
                std::panic::resume_unwind(Box::new(payload));
            }));
            handle.closed().await;
            if joins {
                let fault: Fault = handle.join().await.unwrap_err();
                drop(fault);
            } else {
                drop(handle);
            }
        }
        assert_eq!(drops.count(), 2);
    });
}

fn the_text_of_a_fault_says_how_the_actor_ended(home: &Home) {
    home.block_on(async {
        let killed = home.spawn(actor(async |mut cx: Context<u32>| cx.recv().await));
        killed.kill();
        assert_eq!(killed.join().await.unwrap_err().to_string(), "was killed");
        let panics = home.spawn(actor(async |_cx: Context<u32>| panic!("bomb")));
        assert_eq!(
            panics.join().await.unwrap_err().to_string(),
            "panicked: bomb"
        );
    });
}

/// Builds a runtime that records the faults that are not joined. The gate opens at the `n`th fault.
fn recording(workers: usize, n: usize) -> (Runtime, Log<String>, Gate) {
    let (log, heard, count) = (Log::default(), Gate::default(), AtomicUsize::new(0));
    let (says, hears) = (log.clone(), heard.clone());
    let on_fault = move |unhandled: &UnhandledFault<'_>| {
        says.add(unhandled.to_string());
        if count.fetch_add(1, Ordering::SeqCst) + 1 == n {
            hears.open();
        }
    };
    let builder = Runtime::builder().workers(workers).grace(Duration::ZERO);
    (builder.on_fault(on_fault).build().unwrap(), log, heard)
}

async fn explodes(_cx: Context<u32>) {
    panic!("bomb");
}

#[test]
fn an_unjoined_panic_goes_to_on_fault_exactly_once() {
    within(WATCH, || {
        for late in [false, true] {
            let (runtime, log, heard) = recording(2, 2);
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            let handles = [
                actor(explodes).name("one").on(&runtime).spawn(),
                actor(explodes).on(&pinned).spawn(),
            ];
            let mut expected: Vec<_> = vec![
                format!("\"one\" #{} panicked: bomb", handles[0].id()),
                format!("explodes #{} panicked: bomb", handles[1].id()),
            ];
            if late {
                handles
                    .iter()
                    .for_each(|handle| runtime.block_on(handle.closed()));
                assert!(!heard.is_open(), "the handle may still be joined");
            }
            drop(handles);
            heard.pass();
            drop(pinned);
            runtime.block_on(runtime.shutdown());
            let mut told = log.take();
            told.sort();
            expected.sort();
            assert_eq!(told, expected);
        }
    });
}

#[test]
fn a_joined_panic_does_not_reach_on_fault() {
    within(WATCH, || {
        let (runtime, log, _) = recording(1, 1);
        let handle = actor(async |_cx: Context<u32>| panic!("bomb"))
            .on(&runtime)
            .spawn();
        let fault = runtime.block_on(handle.join()).unwrap_err();
        drop(fault);
        runtime.block_on(runtime.shutdown());
        assert!(log.take().is_empty());
    });
}

#[test]
fn a_join_that_is_dropped_leaves_the_panic_to_on_fault() {
    within(WATCH, || {
        for polled in [false, true] {
            let (runtime, log, heard) = recording(1, 1);
            let gate = Gate::default();
            let waits = gate.clone();
            let explodes = actor(async move |_cx: Context<u32>| {
                waits.wait().await;
                panic!("bomb");
            });
            let mut join = explodes.on(&runtime).spawn().join();
            if polled {
                assert!(crate::support::poll_once(&mut join).is_pending());
            }
            drop(join);
            gate.open();
            heard.pass();
            runtime.block_on(runtime.shutdown());
            assert_eq!(log.take().len(), 1);
        }
    });
}

#[test]
fn actors_that_end_without_a_panic_are_not_reported_to_on_fault() {
    within(WATCH, || {
        let (runtime, log, _) = recording(1, 1);
        let wait = async |mut cx: Context<u32>| while cx.recv().await.is_some() {};
        let killed = actor(wait).on(&runtime).spawn();
        killed.kill();
        runtime.block_on(killed.closed());
        drop(killed);
        drop(actor(wait).on(&runtime).spawn());
        let cancelled =
            actor(async |_cx: Context<u32>| std::future::pending::<()>().await).on(&runtime);
        let cancelled = cancelled.spawn();
        runtime.block_on(runtime.shutdown());
        runtime.block_on(cancelled.closed());
        drop(cancelled);
        assert!(log.take().is_empty());
    });
}

#[test]
fn a_panic_of_on_fault_is_contained() {
    within(WATCH, || {
        let told = Gate::default();
        let tells = told.clone();
        let runtime = Runtime::builder()
            .workers(1)
            .on_fault(move |_| {
                tells.open();
                panic!("bomb in on_fault");
            })
            .build()
            .unwrap();
        drop(
            actor(async |_cx: Context<u32>| panic!("bomb"))
                .on(&runtime)
                .spawn(),
        );
        told.pass();
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })), 1);
    });
}

#[test]
fn an_actor_that_has_begun_is_cancelled_by_the_shutdown() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(1)
            .grace(Duration::ZERO)
            .build()
            .unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let (drops, begun) = (Drops::default(), [Gate::default(), Gate::default()]);
        let make = |begun: &Gate| {
            let (begun, state) = (begun.clone(), drops.one());
            actor(async move |_cx: Context<u32>| {
                let _state = state;
                begun.open();
                std::future::pending::<()>().await;
            })
        };
        let on_worker = make(&begun[0]).on(&runtime).spawn();
        let on_pinned = make(&begun[1]).on(&pinned).spawn();
        begun.iter().for_each(Gate::pass);
        runtime.block_on(runtime.shutdown());
        assert_eq!(drops.count(), 2);
        for handle in [on_worker, on_pinned] {
            assert!(handle.is_closed());
            assert!(matches!(
                crate::support::drive(handle.join()),
                Err(Fault::Cancelled)
            ));
        }
    });
}

#[test]
fn an_actor_killed_before_its_first_poll_is_not_started_after_a_shutdown() {
    within(WATCH, || {
        let home = Home::workers(1);
        let drops = Drops::default();
        let (state, held) = (drops.one(), home.hold());
        let killed = home.spawn(actor(async move |_cx: Context<u32>| drop(state)));
        killed.kill();
        let runtime = home.runtime.clone();
        let closes = std::thread::spawn(move || crate::support::drive(runtime.shutdown()));
        // Waits until the shutdown has begun.
        let refused = || {
            actor(async |_cx: Context<u32>| ())
                .on(&home.runtime)
                .try_spawn()
        };
        while refused().is_ok() {
            std::thread::yield_now();
        }
        drop(held);
        closes.join().unwrap();
        assert!(matches!(
            crate::support::drive(killed.join()),
            Err(Fault::NotStarted)
        ));
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn an_actor_spawned_after_the_shutdown_is_not_started() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        runtime.block_on(runtime.shutdown());
        let drops = Drops::default();
        let make = || {
            let state = drops.one();
            actor(async move |_cx: Context<u32>| drop(state))
        };
        for handle in [make().on(&runtime).spawn(), make().on(&pinned).spawn()] {
            assert!(handle.is_closed());
            assert!(handle.tell(1).unwrap_err().is_closed());
            assert!(handle.downgrade().upgrade().is_none());
            handle.kill();
            crate::support::drive(handle.closed());
            let Err(fault) = crate::support::drive(handle.join()) else {
                panic!("the actor was not started")
            };
            assert!(matches!(fault, Fault::NotStarted), "{fault}");
        }
        assert_eq!(drops.count(), 2);
    });
}
