//! The handle: an address with the right to the result; it can be joined, awaited or dropped.

use std::future::IntoFuture;
use std::task::{Context as TaskContext, Poll};

use greenroom::{Address, Context, Handle, actor};

use crate::support::{
    CountingWaker, Dropped, Drops, Gate, Home, OpenOnDrop, drive, in_every_home, panic_of,
    poll_once,
};

/// Ends at the first message, or when the last sender is dropped.
async fn until_told(mut cx: Context<u32>) -> Option<u32> {
    cx.recv().await
}

in_every_home!(
    a_handle_dereferences_to_an_address,
    join_drops_the_address_of_its_handle_first,
    join_waits_while_other_addresses_live,
    awaiting_a_handle_is_joining,
    dropping_a_handle_drops_only_its_address,
    dropping_the_last_handle_closes_and_delivers,
    dropping_a_handle_drops_a_result_that_waits,
    the_result_of_an_actor_without_a_handle_is_dropped_at_the_end,
    a_join_that_is_dropped_leaves_the_actor_alone,
    a_join_wakes_the_waker_that_polled_it_last,
    a_join_polled_after_it_was_ready_panics,
    an_actor_may_hold_its_own_handle,
    a_thousand_actors_may_be_joined_in_any_order,
);

fn a_handle_dereferences_to_an_address(home: &Home) {
    fn tell(address: &Address<u32>) -> u64 {
        address.tell(7).unwrap();
        address.id()
    }
    let handle: Handle<u32, Option<u32>> = home.spawn(actor(until_told).name("handle"));
    assert_eq!(tell(&handle), handle.address().id());
    assert_eq!(
        (handle.id(), handle.name()),
        (handle.address().id(), Some("handle"))
    );
    assert_eq!(*handle, handle.address());
    assert_eq!(home.block_on(handle.join()).unwrap(), Some(7));
}

fn join_drops_the_address_of_its_handle_first(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(until_told));
        let weak = handle.downgrade();
        let join = handle.join();
        // The actor ends before the join is polled.
        weak.closed().await;
        assert_eq!(join.await.unwrap(), None);
    });
}

fn join_waits_while_other_addresses_live(home: &Home) {
    let handle = home.spawn(actor(until_told));
    let address = handle.address();
    let mut join = handle.join();
    assert!(poll_once(&mut join).is_pending());
    assert!(!address.is_closed());
    address.tell(1).unwrap();
    assert_eq!(home.block_on(join).unwrap(), Some(1));
    assert!(address.is_closed());
}

fn awaiting_a_handle_is_joining(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(until_told));
        handle.tell(1).unwrap();
        assert_eq!(handle.await.unwrap(), Some(1));
        let handle = home.spawn(actor(until_told));
        let weak = handle.downgrade();
        let join = handle.into_future();
        weak.closed().await;
        assert_eq!(join.await.unwrap(), None);
    });
}

fn dropping_a_handle_drops_only_its_address(home: &Home) {
    let ended = Gate::default();
    let ends = OpenOnDrop(ended.clone());
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let _ends = ends;
        cx.recv().await
    }));
    let address = handle.address();
    drop(handle);
    assert!(!address.is_closed());
    assert!(!ended.is_open());
    address.tell(1).unwrap();
    drive(address.closed());
    assert!(ended.is_open());
}

fn dropping_the_last_handle_closes_and_delivers(home: &Home) {
    let (drops, ended) = (Drops::default(), Gate::default());
    let ends = OpenOnDrop(ended.clone());
    let held = home.hold();
    let handle = home.spawn(actor(async move |mut cx: Context<_>| {
        let _ends = ends;
        let mut handled = 0;
        while cx.recv().await.is_some() {
            handled += 1;
        }
        assert_eq!(handled, 10);
    }));
    (0..10).for_each(|_| handle.tell(drops.one()).unwrap());
    let weak = handle.downgrade();
    handle.detach();
    assert_eq!(drops.count(), 0);
    drop(held);
    ended.pass();
    assert_eq!(drops.count(), 10);
    drive(weak.closed());
    assert!(weak.is_closed());
}

fn dropping_a_handle_drops_a_result_that_waits(home: &Home) {
    let drops = Drops::default();
    let result = drops.one();
    let handle = home.spawn(actor(async move |_cx: Context<u32>| result));
    home.block_on(handle.closed());
    assert_eq!(drops.count(), 0);
    drop(handle);
    assert_eq!(drops.count(), 1);
}

fn the_result_of_an_actor_without_a_handle_is_dropped_at_the_end(home: &Home) {
    let ended = Gate::default();
    let result = OpenOnDrop(ended.clone());
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        cx.recv().await;
        result
    }));
    let address = handle.address();
    drop(handle);
    assert!(!ended.is_open());
    address.tell(1).unwrap();
    ended.pass();
}

fn a_join_that_is_dropped_leaves_the_actor_alone(home: &Home) {
    let handle = home.spawn(actor(until_told));
    let address = handle.address();
    let mut join = handle.join();
    assert!(poll_once(&mut join).is_pending());
    drop(join);
    assert!(!address.is_closed());
    address.tell(1).unwrap();
    home.block_on(address.closed());
}

fn a_join_wakes_the_waker_that_polled_it_last(home: &Home) {
    let handle = home.spawn(actor(until_told));
    let address = handle.address();
    let mut join = handle.join();
    let ((first, one), (second, two)) = (CountingWaker::new(), CountingWaker::new());
    for waker in [one, two] {
        let polled = std::pin::Pin::new(&mut join).poll(&mut TaskContext::from_waker(&waker));
        assert!(polled.is_pending());
    }
    address.tell(5).unwrap();
    second.pass();
    assert_eq!((first.count(), second.count()), (0, 1));
    let Poll::Ready(Ok(Some(5))) = poll_once(&mut join) else {
        panic!("the join was woken and must be ready")
    };
}

fn a_join_polled_after_it_was_ready_panics(home: &Home) {
    let mut join = home.spawn(actor(until_told)).join();
    assert_eq!(drive(&mut join).unwrap(), None);
    let (text, ..) = panic_of(|| poll_once(&mut join));
    assert!(text.contains("`join` polled after it was ready"), "{text}");
    drop(join);
}

fn an_actor_may_hold_its_own_handle(home: &Home) {
    struct Own(Handle<Own, Dropped>);
    let (drops, ended) = (Drops::default(), Gate::default());
    let (result, ends) = (drops.one(), OpenOnDrop(ended.clone()));
    let handle = home.spawn(actor(async move |mut cx: Context<Own>| {
        let _ends = ends;
        let Own(own) = cx.recv().await.unwrap();
        // The handle keeps the actor open, and the actor stops itself with it.
        assert!(!own.is_closed());
        own.stop();
        assert!(cx.recv().await.is_none());
        result
    }));
    let address = handle.address();
    assert!(address.tell(Own(handle)).is_ok());
    drive(address.closed());
    // The right to the result was dropped before there was a result.
    assert!(ended.is_open());
    assert_eq!(drops.count(), 1);
}

fn a_thousand_actors_may_be_joined_in_any_order(home: &Home) {
    let mut handles: Vec<_> = (0..1_000)
        .map(|number| {
            home.spawn(actor(async move |mut cx: Context<u32>| {
                cx.recv().await;
                number
            }))
        })
        .collect();
    for at in (0..1_000).rev() {
        handles[at].tell(0).unwrap();
    }
    handles.rotate_left(333);
    let joins = futures::future::join_all(handles.into_iter().map(Handle::join));
    let numbers: Vec<u32> = home
        .block_on(joins)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(numbers.len(), 1_000);
    assert_eq!((numbers[0], numbers[999]), (333, 332));
}
