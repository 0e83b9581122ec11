//! Mapped addresses: an address for one of several message types.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom::{Address, AskDetail, AskError, Context, Reply, WeakAddress, actor, spawn};

use crate::support::{
    Drops, Gate, Home, WATCH, drive, in_every_home, keep_bombs_quiet, on_workers, panic_of,
    poll_here, poll_once, within,
};

enum Event {
    Number(u32),
    Text(String),
    Sum(Reply<u32>),
}

async fn events(mut cx: Context<Event>) -> Vec<String> {
    let (mut all, mut sum) = (Vec::new(), 0);
    while let Some(event) = cx.recv().await {
        match event {
            Event::Number(number) => {
                sum += number;
                all.push(number.to_string());
            }
            Event::Text(text) => all.push(text),
            Event::Sum(reply) => reply.send(sum),
        }
    }
    all
}

in_every_home!(
    messages_of_one_sender_stay_in_order_through_different_addresses,
    send_and_ask_work_through_a_map,
    a_map_of_a_map_is_the_same_actor,
    a_message_is_dropped_if_the_actor_is_killed_after_its_place_was_reserved,
);

fn messages_of_one_sender_stay_in_order_through_different_addresses(home: &Home) {
    let events = home.spawn(actor(events));
    let (numbers, texts) = (events.map(Event::Number), events.map(Event::Text));
    for number in 0..10 {
        numbers.tell(number).unwrap();
        texts.tell(format!("text {number}")).unwrap();
    }
    // They keep the actor open like any address.
    let joined = events.join();
    drop((numbers, texts));
    let all = home.block_on(joined).unwrap();
    let expected = (0..10).flat_map(|n| [n.to_string(), format!("text {n}")]);
    assert!(all.into_iter().eq(expected));
}

fn send_and_ask_work_through_a_map(home: &Home) {
    let handle = home.spawn(actor(events).capacity(2));
    let (numbers, sums) = (handle.map(Event::Number), handle.map(Event::Sum));
    let own = home.spawn_task(async move {
        for number in 1..=100 {
            numbers.send(number).await.unwrap();
        }
        sums.ask(|reply| reply)
            .timeout(Duration::from_secs(60))
            .await
    });
    assert_eq!(home.block_on(own), Ok(5050));
    assert_eq!(home.block_on(handle.join()).unwrap().len(), 100);
}

fn a_map_of_a_map_is_the_same_actor(home: &Home) {
    let handle = home.spawn(actor(events).name("events"));
    let texts = handle.map(Event::Text);
    let halves: Address<f32> = texts.map(|half: f32| format!("{half:.1}"));
    assert_eq!((halves.id(), halves.name()), (handle.id(), Some("events")));
    halves.tell(0.5).unwrap();
    let weak: WeakAddress<f32> = halves.clone().downgrade();
    drop(halves);
    weak.tell(1.5).unwrap();
    weak.upgrade().unwrap().tell(2.5).unwrap();
    texts.stop();
    let all = home.block_on(handle.join()).unwrap();
    assert_eq!(all, ["0.5", "1.5", "2.5"]);
    assert!(texts.is_closed() && weak.is_closed() && weak.upgrade().is_none());
    home.block_on(texts.closed());
}

#[test]
fn a_refused_message_is_returned_unmapped() {
    on_workers(1, async {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        let gate = Gate::default();
        let waits = gate.clone();
        let one = spawn!(
            |mut cx: Context<String>| async move {
                waits.wait().await;
                cx.recv().await
            },
            capacity = 1
        );
        let mapped = one.map(move |number: u32| {
            counter.fetch_add(1, Ordering::Relaxed);
            number.to_string()
        });
        mapped.tell(1).unwrap();
        assert!(
            mapped
                .tell(2)
                .is_err_and(|it| it.is_full() && it.into_inner() == 2)
        );
        let mut waiting = mapped.send(3);
        assert!(poll_here(&mut waiting).await.is_pending());
        // A sender waits, so later messages are refused, mapped or not.
        assert!(one.tell("4".into()).unwrap_err().is_full());
        one.stop();
        assert_eq!(waiting.await.unwrap_err().into_inner(), 3);
        assert!(
            mapped
                .tell(5)
                .is_err_and(|it| it.is_closed() && it.into_inner() == 5)
        );
        assert_eq!(mapped.send(6).await.unwrap_err().into_inner(), 6);
        gate.open();
        assert_eq!(one.join().await.unwrap().unwrap(), "1");
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let gone = spawn!(events(_));
        let sums = gone.map(Event::Sum);
        gone.stop();
        assert_eq!(
            sums.ask(|reply| reply).await,
            Err(AskError::Closed(AskDetail::default()))
        );
    });
}

/// Returns an address whose map calls `meanwhile` in the middle of `tell`.
fn amid(address: &Address<u32>, meanwhile: impl Fn() + Send + Sync + 'static) -> Address<u32> {
    address.map(move |number: u32| {
        meanwhile();
        number
    })
}

#[test]
fn a_closed_actor_waits_for_the_message_of_a_reserved_place() {
    within(WATCH, || {
        for capacity in [None, Some(1)] {
            let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
            let mut builder = actor(|mut cx: Context<u32>| async move {
                let mut all = Vec::new();
                while let Some(number) = cx.recv().await {
                    all.push(number);
                }
                all
            });
            if let Some(capacity) = capacity {
                builder = builder.capacity(capacity);
            }
            let handle = builder.on(&runtime).spawn();
            let address = handle.address();
            let stops = amid(&address, {
                let address = address.clone();
                let runtime = runtime.clone();
                move || {
                    address.stop();
                    assert!(address.tell(0).unwrap_err().is_closed());
                    // The actor has had a turn and has not ended.
                    runtime.block_on(runtime.spawn(greenroom::yield_now()));
                    let mut closed = Box::pin(address.closed());
                    assert!(poll_once(&mut closed).is_pending());
                }
            });
            stops.tell(7).unwrap();
            assert_eq!(drive(handle.join()).unwrap(), [7]);
        }
    });
}

#[test]
fn a_map_that_panics_releases_its_place() {
    keep_bombs_quiet();
    within(WATCH, || {
        greenroom::run(async {
            let handle = spawn!(events(_), capacity = 1);
            let address = handle.address();
            let panics = address.map(|number: u32| {
                assert!(number.is_multiple_of(2), "an odd number");
                Event::Number(number)
            });
            for number in 0..10 {
                // When the actor has answered, there is room.
                address.ask(Event::Sum).await.unwrap();
                let (text, ..) = panic_of(|| panics.tell(2 * number + 1));
                assert_eq!(text, "an odd number");
                panics.send(2 * number).await.unwrap();
            }
            address.ask(Event::Sum).await.unwrap();
            // The last event before the end: the actor must observe that no message follows.
            let stops = handle.address();
            let last = handle.map(move |(): ()| -> Event {
                stops.stop();
                panic!("after the close")
            });
            let joined = handle.join();
            panic_of(|| last.tell(()));
            assert_eq!(joined.await.unwrap().len(), 10);
        });
    });
}

#[test]
fn a_dropped_send_passes_its_place_to_the_next_sender() {
    on_workers(1, async {
        let gate = Gate::default();
        let waits = gate.clone();
        let one = spawn!(
            |mut cx: Context<u32>| async move {
                waits.wait().await;
                let mut all = Vec::new();
                while let Some(number) = cx.recv().await {
                    all.push(number);
                }
                all
            },
            capacity = 1
        );
        let mapped = one.map(|number: u32| number * 10);
        mapped.tell(0).unwrap();
        let (mut first, mut second, mut third) = (mapped.send(1), mapped.send(2), one.send(3));
        assert!(poll_here(&mut first).await.is_pending());
        assert!(poll_here(&mut second).await.is_pending());
        assert!(poll_here(&mut third).await.is_pending());
        // The first is dropped while it waits, the second after it was granted its place.
        drop(first);
        gate.open();
        greenroom::yield_now().await;
        greenroom::yield_now().await;
        drop(second);
        third.await.unwrap();
        drop(mapped);
        assert_eq!(one.join().await.unwrap(), [0, 3]);
    });
}

fn a_message_is_dropped_if_the_actor_is_killed_after_its_place_was_reserved(home: &Home) {
    let drops = Drops::default();
    let handle = home.spawn(actor(|mut cx: Context<crate::support::Dropped>| async move {
        while cx.recv().await.is_some() {}
    }));
    let address = handle.address();
    let kills = address.map({
        let (address, dropped) = (address.clone(), drops.clone());
        move |(): ()| {
            address.kill();
            drive(address.closed());
            dropped.one()
        }
    });
    kills.tell(()).unwrap();
    assert_eq!(drops.count(), 1);
    assert!(home.block_on(handle.join()).is_err());
}

/// The actor lives on without its context, so a late message is never read.
#[test]
fn a_message_is_dropped_if_the_context_is_dropped_after_its_place_was_reserved() {
    within(WATCH, || {
        let runtime = greenroom::Runtime::builder().workers(1).build().unwrap();
        let (reserved, lives) = (Gate::default(), Gate::default());
        let dropped = Gate::default();
        let (waits, goes_on, tells) = (reserved.clone(), lives.clone(), dropped.clone());
        let handle = spawn!(
            |cx: Context<Reply<u32>>| async move {
                waits.wait().await;
                drop(cx);
                tells.open();
                goes_on.wait().await;
            },
            on = &runtime
        );
        let late = handle.map(move |reply: Reply<u32>| {
            reserved.open();
            dropped.pass();
            reply
        });
        assert_eq!(
            drive(late.ask(|reply| reply)),
            Err(AskError::NoReply(AskDetail::default()))
        );
        lives.open();
        drop(late);
        drive(handle.join()).unwrap();
    });
}

/// The largest number of nested maps; each is called only in `tell`.
#[test]
fn an_address_can_be_mapped_a_thousand_times_but_not_more() {
    on_workers(1, async {
        // On a worker, whose stack is smaller than that of a main thread.
        greenroom::spawn(async {
            let handle = spawn!(|mut cx: Context<u64>| async move { cx.recv().await });
            let mut mapped = handle.address();
            for _ in 0..1000 {
                mapped = mapped.map(|number: u64| number + 1);
            }
            assert_eq!((mapped.id(), mapped.is_closed()), (handle.id(), false));
            let (text, ..) = panic_of(|| mapped.map(|number: u64| number));
            assert!(text.contains("mapped 1000 times"), "{text}");
            let weak = mapped.clone().downgrade();
            mapped.tell(1).unwrap();
            drop(mapped);
            assert_eq!(handle.join().await.unwrap(), Some(1001));
            assert!(weak.upgrade().is_none());
        })
        .await;
    });
}
