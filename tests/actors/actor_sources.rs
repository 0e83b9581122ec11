//! What `recv` returns beside sent messages: timers, streams, and results of futures.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt};
use greenroom::time::{Instant, sleep};
use greenroom::{Context, Fault, Runtime, actor, spawn};

use crate::support::{
    Bomb, Drops, Gate, Home, Log, WATCH, drive, in_every_home, keep_bombs_quiet, on_workers,
    received, within,
};

const SOON: Duration = Duration::from_millis(1);
const NEVER: Duration = Duration::MAX;

in_every_home!(
    a_timer_sends_its_message_once,
    a_due_timer_sends_nothing_if_its_guard_was_dropped,
    ticks_come_until_the_guard_is_dropped,
    a_stream_is_read_to_its_end_and_then_the_actor_is_closed,
    the_mailbox_and_the_sources_take_turns,
    on_return_delivers_the_result_of_a_future_as_a_message,
    stop_drops_the_sources_but_not_the_accepted_messages,
    an_actor_that_ends_drops_its_sources,
    sources_that_panic_end_and_the_actor_continues,
    a_stream_whose_guard_is_dropped_yields_no_more_messages,
    background_sources_send_messages_but_do_not_keep_the_actor_open,
    a_source_moved_to_the_background_by_another_task_lets_the_actor_end,
);

async fn all<M>(mut cx: Context<M>) -> Vec<M> {
    let mut all = Vec::new();
    while let Some(message) = cx.recv().await {
        all.push(message);
    }
    all
}

fn a_timer_sends_its_message_once(home: &Home) {
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        let start = Instant::now();
        cx.send_after(SOON, 1).detach();
        let _second = cx.send_after(3 * SOON, 2);
        let mut all = all(cx).await;
        assert!(start.elapsed() >= 3 * SOON);
        // On a busy machine both are due when the actor looks.
        all.sort_unstable();
        all
    }));
    // The actor has no other address left: the timers keep it open, then it is closed.
    assert_eq!(home.block_on(handle.join()).unwrap(), [1, 2]);
}

fn a_due_timer_sends_nothing_if_its_guard_was_dropped(home: &Home) {
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        let due = cx.send_after(Duration::ZERO, 1);
        let far = cx.send_after(NEVER, 2);
        assert_eq!(cx.recv().await, Some(1));
        let late = cx.send_after(Duration::ZERO, 3);
        drop((due, late, far));
        all(cx).await
    }));
    assert_eq!(home.block_on(handle.join()).unwrap(), []);
}

fn ticks_come_until_the_guard_is_dropped(home: &Home) {
    let handle = home.spawn(actor(|mut cx: Context<usize>| async move {
        let mut made = 0;
        let start = Instant::now();
        let timer = cx.send_every(SOON, move || {
            made += 1;
            made
        });
        for n in 1..=5 {
            assert_eq!(cx.recv().await, Some(n));
            assert!(start.elapsed() >= SOON * n as u32);
        }
        drop(timer);
        all(cx).await
    }));
    assert_eq!(home.block_on(handle.join()).unwrap(), []);
}

#[test]
fn ticks_that_were_missed_are_skipped() {
    on_workers(1, async {
        let ticks = spawn!(|mut cx: Context<()>| async move {
            let _timer = cx.send_every(SOON, || ());
            sleep(50 * SOON).await;
            let back = Instant::now();
            for _ in 0..20 {
                cx.recv().await;
            }
            // One tick was left of those before.
            assert!(back.elapsed() >= 18 * SOON);
        });
        ticks.join().await.unwrap();
    });
}

#[test]
fn a_period_of_zero_panics() {
    on_workers(1, async {
        let zero = spawn!(|mut cx: Context<()>| async move {
            let _timer = cx.send_every(Duration::ZERO, || ());
        });
        let Err(Fault::Panicked(panic)) = zero.join().await else {
            panic!("it panicked")
        };
        assert!(panic.text().unwrap().contains("the period is zero"));
        // A period that never ends is possible.
        let never = spawn!(|mut cx: Context<()>| async move {
            let timer = cx.send_every(NEVER, || ());
            assert!(cx.try_recv().is_none());
            drop(timer);
            cx.recv().await
        });
        assert_eq!(never.join().await.unwrap(), None);
    });
}

fn a_stream_is_read_to_its_end_and_then_the_actor_is_closed(home: &Home) {
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        cx.attach(stream::iter(0..300)).detach();
        cx.attach(stream::empty()).detach();
        let own = cx.downgrade();
        let all = all(cx).await;
        assert!(own.is_closed());
        all
    }));
    let all = home.block_on(handle.join()).unwrap();
    assert!(all.into_iter().eq(0..300));
}

fn the_mailbox_and_the_sources_take_turns(home: &Home) {
    let gate = Gate::default();
    let waits = gate.clone();
    let handle = home.spawn(actor(|mut cx: Context<&'static str>| async move {
        cx.attach(stream::repeat("source")).detach();
        waits.wait().await;
        let mut first = Vec::new();
        for _ in 0..200 {
            first.extend(cx.recv().await);
        }
        first
    }));
    (0..200).for_each(|_| handle.tell("mailbox").unwrap());
    gate.open();
    let first = home.block_on(handle.join()).unwrap();
    for pair in first.chunks(2) {
        assert!(
            pair.contains(&"source") && pair.contains(&"mailbox"),
            "{pair:?}"
        );
    }
}

/// A source that always has a message does not occupy the only worker.
#[test]
fn a_source_that_never_pauses_lets_other_tasks_run() {
    on_workers(1, async {
        let busy = spawn!(|mut cx: Context<u32>| async move {
            cx.attach(stream::repeat(1)).detach();
            while cx.recv().await.is_some() {}
        });
        for _ in 0..10 {
            greenroom::spawn(greenroom::yield_now()).await;
        }
        busy.stop();
        busy.join().await.unwrap();
    });
}

fn on_return_delivers_the_result_of_a_future_as_a_message(home: &Home) {
    let (runtime, gone) = (home.runtime.clone(), Runtime::new().unwrap());
    let cancelled = gone.spawn(std::future::pending::<u32>());
    drop(gone);
    let handle = home.spawn(actor(
        |mut cx: Context<(u32, Result<u32, Fault>)>| async move {
            let mut wait = |number, result: futures::future::BoxFuture<'static, u32>| {
                cx.on_return(result, move |result| (number, result));
            };
            wait(0, Box::pin(async { 40 }));
            wait(1, Box::pin(async { panic!("a future of its own") }));
            cx.on_return(runtime.spawn(async { 42 }), |result| (2, result));
            let panics = runtime.spawn(async { panic!("a task") });
            cx.on_return(panics, |result| (3, result));
            cx.on_return(cancelled, |result| (4, result));
            let other = spawn!(
                |mut cx: Context<u32>| async move { cx.recv().await },
                on = &runtime
            );
            other.tell(45).unwrap();
            cx.on_join(other, |result| (5, result.map(Option::unwrap)));
            let killed = spawn!(
                |_cx: Context<u32>| std::future::pending::<u32>(),
                on = &runtime
            );
            killed.kill();
            cx.on_join(killed, |result| (6, result));
            let mut all = all(cx).await;
            all.sort_by_key(|(number, _)| *number);
            all.into_iter()
                .map(|(_, result)| result)
                .collect::<Vec<_>>()
        },
    ));
    let all = home.block_on(handle.join()).unwrap();
    let [
        Ok(40),
        Err(Fault::Panicked(own)),
        Ok(42),
        Err(Fault::Panicked(task)),
        fourth,
        Ok(45),
        sixth,
    ] = &all[..]
    else {
        panic!("{all:?}")
    };
    assert_eq!(
        (own.text(), task.text()),
        (Some("a future of its own"), Some("a task"))
    );
    assert!(matches!(fourth, Err(Fault::Cancelled)), "{fourth:?}");
    assert!(matches!(sixth, Err(Fault::Killed)), "{sixth:?}");
}

/// A stream that is never ready and counts its drop.
struct Pending(#[expect(dead_code, reason = "counted by its drop")] crate::support::Dropped);

impl Stream for Pending {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<Option<u32>> {
        Poll::Pending
    }
}

fn stop_drops_the_sources_but_not_the_accepted_messages(home: &Home) {
    let (drops, received, go) = (Drops::default(), Log::default(), Gate::default());
    let (source, log, waits) = (Pending(drops.one()), received.clone(), go.clone());
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        cx.attach(source).detach();
        cx.attach(stream::repeat(7)).detach();
        waits.wait().await;
        while let Some(number) = cx.recv().await {
            log.add(number);
        }
        waits.wait().await;
    }));
    (0..3).for_each(|number| handle.tell(number).unwrap());
    handle.stop();
    go.open();
    home.block_on(handle.join()).unwrap();
    assert_eq!(received.take(), [0, 1, 2]);
    assert_eq!(drops.count(), 1);
}

fn an_actor_that_ends_drops_its_sources(home: &Home) {
    let drops = Drops::default();
    for kill in [false, true] {
        let (source, attached) = (Pending(drops.one()), Gate::default());
        let opens = attached.clone();
        let handle = home.spawn(actor(move |mut cx: Context<u32>| async move {
            cx.attach(source).detach();
            opens.open();
            if kill {
                cx.recv().await;
            }
        }));
        attached.pass();
        if kill {
            handle.kill();
        }
        home.block_on(handle.closed());
    }
    assert_eq!(drops.count(), 2);
}

/// A stream that panics when it is polled, and again when it is dropped.
struct Panics(#[expect(dead_code, reason = "a bomb")] Bomb);

impl Stream for Panics {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<Option<u32>> {
        panic!("a source")
    }
}

fn sources_that_panic_end_and_the_actor_continues(home: &Home) {
    keep_bombs_quiet();
    let drops = Drops::default();
    let bomb = |live| Bomb::new(live, &drops);
    let (panics, quiet, left) = (Panics(bomb(true)), bomb(true), bomb(true));
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        cx.attach(panics).detach();
        cx.on_return(
            async move {
                let _bomb = quiet;
                1
            },
            |result| result.unwrap_or(0),
        );
        cx.on_return(async {}, |_| panic!("the closure that makes the message"));
        cx.attach(stream::iter([2, 3])).detach();
        // Panics only in its drop, when the actor is stopped.
        cx.attach(stream::poll_fn(move |_| {
            let _ = &left;
            Poll::Pending
        }))
        .detach();
        let mut sum = 0;
        while sum < 5 {
            sum += cx.recv().await.unwrap();
        }
        cx.stop();
        assert_eq!(cx.recv().await, None);
        sum
    }));
    assert_eq!(home.block_on(handle.join()).unwrap(), 5);
    assert_eq!(drops.count(), 3);
}

#[test]
fn sources_take_no_room_and_are_found_without_waiting() {
    on_workers(1, async {
        let gate = Gate::default();
        let waits = gate.clone();
        let full = spawn!(
            |mut cx: Context<u32>| async move {
                cx.attach(stream::iter([10, 20])).detach();
                waits.wait().await;
                let mut found: Vec<_> = std::iter::from_fn(|| cx.try_recv()).collect();
                found.sort_unstable();
                found
            },
            capacity = 1
        );
        full.tell(1).unwrap();
        assert!(full.tell(2).is_err());
        gate.open();
        assert_eq!(full.join().await.unwrap(), [1, 10, 20]);
    });
}

#[test]
fn a_source_attached_after_the_close_is_dropped_at_once() {
    on_workers(1, async {
        let drops = Drops::default();
        for before in [None, Some(Pending(drops.one()))] {
            let (late, counted) = (Pending(drops.one()), drops.clone());
            let had_one = usize::from(before.is_some());
            let closed = spawn!(move |mut cx: Context<u32>| async move {
                before
                    .into_iter()
                    .for_each(|source| cx.attach(source).detach());
                cx.stop();
                let dropped = counted.count();
                cx.attach(late).detach();
                assert_eq!(counted.count() - dropped, 1 + had_one);
                cx.recv().await
            });
            assert_eq!(closed.join().await.unwrap(), None);
        }
        assert_eq!(drops.count(), 3);
    });
}

/// The guard is dropped on another thread while the actor sleeps; this closes the actor.
#[test]
fn dropping_the_last_guard_on_another_thread_closes_the_actor() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let waits = spawn!(
            |mut cx: Context<u32>| async move {
                send.send(cx.send_after(NEVER, 1)).unwrap();
                cx.recv().await
            },
            on = &runtime
        );
        let joined = waits.join();
        drop(received(&receive));
        assert_eq!(drive(joined).unwrap(), None);
    });
}

/// Thousands of sources at once, each polled only when it was woken.
#[test]
fn a_source_is_polled_only_when_it_was_woken() {
    on_workers(2, async {
        let polls = Arc::new(AtomicUsize::new(0));
        let counter = polls.clone();
        let sources = spawn!(|mut cx: Context<u32>| async move {
            for number in 0..1000 {
                let (waits, counter) = (sleep(NEVER), counter.clone());
                let mut waits = Box::pin(waits);
                cx.attach(stream::poll_fn(move |cx| {
                    counter.fetch_add(1, Ordering::Relaxed);
                    let waits: Poll<()> = Future::poll(waits.as_mut(), cx);
                    waits.map(|()| Some(number))
                }))
                .detach();
            }
            let mut sum = 0;
            for _ in 0..1000 {
                sum += cx.recv().await.unwrap();
            }
            sum
        });
        for _ in 0..1000 {
            sources.tell(1).unwrap();
        }
        assert_eq!(sources.join().await.unwrap(), 1000);
        assert_eq!(polls.load(Ordering::Relaxed), 1000);
    });
}

fn a_stream_whose_guard_is_dropped_yields_no_more_messages(home: &Home) {
    let drops = Drops::default();
    let counted = drops.clone();
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        let endless = cx.attach(stream::repeat(1));
        let pending = cx.attach(Pending(counted.one()));
        assert_eq!(cx.recv().await, Some(1));
        drop((endless, pending));
        assert_eq!((cx.recv().await, counted.count()), (None, 1));
    }));
    home.block_on(handle.join()).unwrap();
    assert_eq!(drops.count(), 1);
}

fn background_sources_send_messages_but_do_not_keep_the_actor_open(home: &Home) {
    let drops = Drops::default();
    let pending = Pending(drops.one());
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        cx.send_after(NEVER, 1).background().detach();
        let _ticks = cx.send_every(SOON, || 2).background();
        cx.attach(pending).background().detach();
        let foreground = cx.attach(stream::iter([3]).chain(stream::pending()));
        let mut ticks = 0;
        while ticks < 3 {
            ticks += u32::from(cx.recv().await == Some(2));
        }
        drop(foreground);
        while cx.recv().await.is_some() {}
        assert!(cx.address().is_closed());
    }));
    home.block_on(handle.join()).unwrap();
    assert_eq!(drops.count(), 1);
}

fn a_source_moved_to_the_background_by_another_task_lets_the_actor_end(home: &Home) {
    let (give, given) = futures::channel::oneshot::channel();
    let handle = home.spawn(actor(|mut cx: Context<u32>| async move {
        assert!(give.send(cx.send_after(NEVER, 1)).is_ok());
        cx.recv().await
    }));
    let join = handle.join();
    home.block_on(async {
        let guard = given.await.unwrap();
        let guard = guard.background();
        assert_eq!(join.await.unwrap(), None);
        drop(guard);
    });
}
