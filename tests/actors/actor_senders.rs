//! Which values keep an actor open, and when it is closed because no sender is left.

use std::future::Future;
use std::time::Duration;

use futures::StreamExt;
use greenroom::{AskDetail, AskError, Context, Reply, Runtime, WeakAddress, actor, spawn};

use crate::support::{
    Gate, Home, WATCH, drive, in_every_home, on_workers, open_when_pending, poll_here, poll_once,
    within,
};

in_every_home!(
    a_new_actor_without_a_handle_can_still_give_its_address_away,
    a_weak_address_can_send_before_the_first_recv,
    a_weak_address_of_a_busy_actor_can_be_upgraded_without_any_address,
    dropping_the_last_address_closes_an_actor_that_waits_in_recv,
    an_actor_closed_because_no_sender_is_left_stays_closed,
    addresses_of_a_stopped_actor_refuse_messages,
    an_actor_that_keeps_its_own_address_stays_open,
    dropping_the_last_address_in_another_task_closes_the_actor,
    try_recv_that_finds_nothing_closes_an_actor_without_senders,
    the_stream_ends_when_no_sender_is_left,
    closed_of_a_weak_address_does_not_keep_the_actor_open,
    send_of_a_weak_address_keeps_order_and_does_not_keep_the_actor_open,
    ask_of_a_weak_address_does_not_keep_the_actor_open,
);

async fn collect(mut cx: Context<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(message) = cx.recv().await {
        all.push(message);
    }
    all
}

/// Collects messages once the gate is open.
fn collect_after(gate: &Gate) -> impl FnOnce(Context<u32>) -> CollectAfter + use<> {
    let gate = gate.clone();
    move |cx| {
        Box::pin(async move {
            gate.wait().await;
            collect(cx).await
        })
    }
}

type CollectAfter = std::pin::Pin<Box<dyn Future<Output = Vec<u32>> + Send>>;

fn a_new_actor_without_a_handle_can_still_give_its_address_away(home: &Home) {
    let many = home.many(1000);
    let held = home.hold();
    let desk = home.spawn(actor(
        async move |mut cx: Context<greenroom::Address<u32>>| {
            for _ in 0..many {
                let child = cx.recv().await.unwrap();
                child.tell(1).unwrap();
            }
        },
    ));
    for _ in 0..many {
        let desk = desk.address();
        home.spawn(actor(async move |mut cx: Context<u32>| {
            desk.tell(cx.address()).unwrap();
            assert_eq!(cx.recv().await, Some(1));
            assert_eq!(cx.recv().await, None);
        }))
        .detach();
    }
    drop(held);
    home.block_on(desk.join()).unwrap();
}

fn a_weak_address_can_send_before_the_first_recv(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect));
    let (weak, join) = (handle.downgrade(), handle.join());
    assert!(!weak.is_closed());
    weak.tell(1).unwrap();
    weak.upgrade().unwrap().tell(2).unwrap();
    weak.upgrade().unwrap().clone().tell(3).unwrap();
    drop(held);
    assert_eq!(home.block_on(join).unwrap(), [1, 2, 3]);
    assert!(weak.is_closed() && weak.upgrade().is_none());
    assert!(
        weak.tell(4)
            .is_err_and(|it| it.is_closed() && it.into_inner() == 4)
    );
}

fn a_weak_address_of_a_busy_actor_can_be_upgraded_without_any_address(home: &Home) {
    for capacity in [None, Some(1)] {
        let gate = Gate::default();
        let builder = actor(collect_after(&gate));
        let handle = match capacity {
            Some(capacity) => home.spawn(builder.capacity(capacity)),
            None => home.spawn(builder),
        };
        let (weak, join) = (handle.downgrade(), handle.join());
        let again = weak.upgrade().unwrap();
        gate.open();
        again.tell(7).unwrap();
        drop(again);
        assert_eq!(home.block_on(join).unwrap(), [7]);
    }
}

fn dropping_the_last_address_closes_an_actor_that_waits_in_recv(home: &Home) {
    let waits = Gate::default();
    let waiting = waits.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        open_when_pending(waiting, cx.recv()).await
    }));
    waits.pass();
    let (first, second) = (handle.address(), handle.downgrade());
    let join = handle.join();
    let third = second.upgrade().unwrap();
    drop(first);
    drop(third);
    assert_eq!(home.block_on(join).unwrap(), None);
}

fn an_actor_closed_because_no_sender_is_left_stays_closed(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| {
        assert_eq!(cx.recv().await, None);
        let own = cx.address();
        assert!(own.is_closed());
        assert!(
            own.tell(1)
                .is_err_and(|it| it.is_closed() && it.into_inner() == 1)
        );
        assert!(cx.downgrade().upgrade().is_none());
        cx.attach(futures::stream::iter([2])).detach();
        (cx.recv().await, cx.try_recv())
    }));
    assert_eq!(home.block_on(handle.join()).unwrap(), (None, None));
}

fn addresses_of_a_stopped_actor_refuse_messages(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| {
        cx.stop();
        let own = cx.address();
        (
            own.tell(1).is_err(),
            own.clone().is_closed(),
            cx.recv().await,
        )
    }));
    assert_eq!(home.block_on(handle.join()).unwrap(), (true, true, None));
}

fn an_actor_that_keeps_its_own_address_stays_open(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| {
        let _own = cx.address();
        cx.recv().await
    }));
    let (weak, id) = (handle.downgrade(), handle.id());
    assert_eq!(home.runtime.stats().dormant_without_handle(), 0);
    handle.detach();
    home.runtime.run_until_quiescent();
    let stats = home.runtime.stats();
    assert_eq!(stats.dormant_without_handle(), 1);
    let [alone] = &stats.actors[..] else {
        panic!("{stats:?}")
    };
    assert!(alone.is_dormant && !alone.has_handle && alone.task.id() == id);
    weak.upgrade().unwrap().tell(1).unwrap();
    home.block_on(weak.closed());
}

fn dropping_the_last_address_in_another_task_closes_the_actor(home: &Home) {
    let (give, given) = futures::channel::oneshot::channel();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        assert!(give.send(cx.address()).is_ok());
        (cx.recv().await, cx.recv().await)
    }));
    let join = handle.join();
    home.block_on(async {
        let address = given.await.unwrap();
        address.tell(1).unwrap();
        drop(address);
        assert_eq!(join.await.unwrap(), (Some(1), None));
    });
}

fn try_recv_that_finds_nothing_closes_an_actor_without_senders(home: &Home) {
    let gate = Gate::default();
    let waits = gate.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        waits.wait().await;
        let own = cx.downgrade();
        assert_eq!((cx.try_recv(), own.is_closed()), (Some(1), false));
        assert_eq!((cx.try_recv(), own.is_closed()), (None, true));
        cx.recv().await
    }));
    handle.tell(1).unwrap();
    let join = handle.join();
    gate.open();
    assert_eq!(home.block_on(join).unwrap(), None);
}

fn the_stream_ends_when_no_sender_is_left(home: &Home) {
    let handle = home.spawn(actor(|cx: Context<u32>| cx.collect::<Vec<_>>()));
    let (weak, join) = (handle.downgrade(), handle.join());
    let _ = weak.tell(1);
    assert!(home.block_on(join).unwrap().len() <= 1);
    assert!(weak.is_closed());
}

fn closed_of_a_weak_address_does_not_keep_the_actor_open(home: &Home) {
    let handle = home.spawn(actor(collect));
    let mapped = handle.map(|number: u32| number).downgrade();
    let weak: WeakAddress<u32> = handle.downgrade();
    let mut closed = Box::pin(weak.closed());
    assert!(poll_once(&mut closed).is_pending());
    handle.detach();
    home.block_on(async {
        closed.await;
        mapped.closed().await;
    });
}

fn send_of_a_weak_address_keeps_order_and_does_not_keep_the_actor_open(home: &Home) {
    let gate = Gate::default();
    let handle = home.spawn(actor(collect_after(&gate)).capacity(1));
    let weak = handle.downgrade();
    let mapped = handle.map(|number: u64| number as u32).downgrade();
    let join = handle.join();
    home.block_on(async {
        weak.send(1).await.unwrap();
        let (mut second, mut third) = (weak.send(2), mapped.send(3));
        let mut forgotten = weak.send(4);
        assert!(poll_here(&mut second).await.is_pending());
        assert!(poll_here(&mut third).await.is_pending());
        assert!(poll_here(&mut forgotten).await.is_pending());
        drop(forgotten);
        gate.open();
        second.await.unwrap();
        third.await.unwrap();
        assert_eq!(join.await.unwrap(), [1, 2, 3]);
        assert_eq!(weak.send(5).await.unwrap_err().into_inner(), 5);
    });
}

fn ask_of_a_weak_address_does_not_keep_the_actor_open(home: &Home) {
    let gate = Gate::default();
    let waits = gate.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<Reply<u32>>| {
        waits.wait().await;
        while let Some(reply) = cx.recv().await {
            reply.send(42);
        }
    }));
    let (weak, join) = (handle.downgrade(), handle.join());
    home.block_on(async {
        let mut asked = Box::pin(weak.ask(|reply| reply).timeout(Duration::from_secs(3600)));
        assert!(poll_here(&mut asked).await.is_pending());
        gate.open();
        assert_eq!(asked.await, Ok(42));
        join.await.unwrap();
        assert_eq!(
            weak.ask(|reply| reply).await,
            Err(AskError::Closed(AskDetail::default()))
        );
    });
}

/// A map reserves a place; the sender fills it after the last address was dropped.
#[test]
fn a_place_reserved_by_a_weak_address_keeps_the_actor_open() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (begun, gate) = (Gate::default(), Gate::default());
        let handle = spawn!(collect(_), on = &runtime);
        let mapped = handle.map({
            let (begun, gate) = (begun.clone(), gate.clone());
            move |number: u32| {
                begun.open();
                gate.pass();
                number
            }
        });
        let weak = mapped.downgrade();
        drop(mapped);
        let sender = std::thread::spawn(move || weak.tell(7));
        begun.pass();
        let join = handle.join();
        // Meanwhile the actor has turns and finds that no address is left.
        runtime.block_on(runtime.spawn(greenroom::yield_now()));
        gate.open();
        sender.join().unwrap().unwrap();
        assert_eq!(drive(join).unwrap(), [7]);
    });
}

#[test]
fn an_address_returns_the_length_and_capacity_of_its_mailbox() {
    on_workers(1, async {
        let gate = Gate::default();
        let bounded = actor(collect_after(&gate)).capacity(3).spawn();
        let unbounded = actor(collect_after(&gate)).spawn();
        let mapped = bounded.map(|number: u32| number);
        assert_eq!((bounded.len(), bounded.capacity()), (0, Some(3)));
        assert_eq!((mapped.is_empty(), mapped.capacity()), (true, Some(3)));
        assert_eq!((unbounded.len(), unbounded.capacity()), (0, None));
        for number in 1..=3 {
            bounded.tell(number).unwrap();
            assert_eq!(
                (bounded.len(), mapped.len()),
                (number as usize, number as usize)
            );
        }
        assert!(bounded.tell(4).unwrap_err().is_full());
        (0..300).for_each(|number| unbounded.tell(number).unwrap());
        assert_eq!(unbounded.len(), 300);
        gate.open();
        bounded.stop();
        bounded.closed().await;
        assert_eq!((bounded.len(), bounded.capacity()), (0, Some(3)));
    });
}
