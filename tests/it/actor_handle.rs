//! The handle: an address with the right to the result, to be joined, awaited or dropped.

use std::future::IntoFuture;
use std::task::{Context as TaskContext, Poll};

use greenroom::{Address, Context, Handle, actor};

use crate::support::{
    CountingWaker, Dropped, Drops, Gate, Home, OpenOnDrop, drive, in_every_home, panic_of,
    poll_once,
};

/// Ends when it is told to, or when nobody can tell it any more.
async fn until_told(mut cx: Context<u32>) -> Option<u32> {
    cx.recv().await
}

in_every_home!(
    a_handle_is_an_address_to_those_who_ask_for_one,
    joining_gives_up_the_address_first,
    joining_waits_though_other_addresses_live,
    awaiting_a_handle_is_joining,
    dropping_a_handle_gives_up_one_address_and_nothing_else,
    dropping_the_last_handle_closes_and_delivers,
    dropping_a_handle_drops_a_result_that_waits,
    a_result_that_nobody_can_ask_for_is_dropped_at_the_end,
    a_join_that_is_dropped_leaves_the_actor_alone,
    a_join_may_be_polled_anywhere_and_is_woken_where_it_was_polled_last,
    a_join_says_that_it_was_polled_too_often,
    an_actor_may_hold_its_own_handle,
    a_thousand_actors_may_be_joined_in_any_order,
);

fn a_handle_is_an_address_to_those_who_ask_for_one(home: &Home) {
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

fn joining_gives_up_the_address_first(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(until_told));
        let weak = handle.downgrade();
        let join = handle.join();
        // It ends before the join is polled.
        weak.closed().await;
        assert_eq!(join.await.unwrap(), None);
    });
}

fn joining_waits_though_other_addresses_live(home: &Home) {
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

fn dropping_a_handle_gives_up_one_address_and_nothing_else(home: &Home) {
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

fn a_result_that_nobody_can_ask_for_is_dropped_at_the_end(home: &Home) {
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

fn a_join_may_be_polled_anywhere_and_is_woken_where_it_was_polled_last(home: &Home) {
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
        panic!("it was woken")
    };
}

fn a_join_says_that_it_was_polled_too_often(home: &Home) {
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
        // It keeps itself open with it, and stops itself with it.
        assert!(!own.is_closed());
        own.stop();
        assert!(cx.recv().await.is_none());
        result
    }));
    let address = handle.address();
    assert!(address.tell(Own(handle)).is_ok());
    drive(address.closed());
    // Its right to the result was gone before there was one.
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
