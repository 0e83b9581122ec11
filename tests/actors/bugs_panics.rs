//! Panics in every kind of user code that an actor or its senders call, on every kind of thread
//! (rayon#37, ruff#17537). Also wakers that panic or call the library (tokio#5154, tokio#3689).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

use greenroom::{Address, AskCause, AskError, Context, Fault, Reply, Runtime, actor};

use crate::support::{
    Bomb, CountingWaker, Drops, Elsewhere, Gate, Home, WATCH, drive, drive_elsewhere,
    in_every_home, panic_of, poll_once, within,
};

in_every_home!(
    a_panic_in_a_handler_ends_only_its_actor,
    a_panic_while_an_actor_is_made_ends_only_that_actor,
    panics_in_the_drops_of_state_result_and_messages_are_contained,
    a_panic_in_the_closure_of_an_ask_does_not_reach_the_actor,
    a_panic_in_the_drop_of_an_unwanted_answer_is_contained,
    a_panic_in_the_drop_of_a_message_that_found_no_room_in_time_is_contained,
    panics_in_a_thousand_actors_do_not_reach_other_actors,
    a_panic_of_a_waker_that_a_message_wakes_is_contained,
    a_panic_of_a_waker_that_a_free_place_wakes_is_contained,
    a_panic_of_a_waker_that_an_answer_wakes_is_contained,
    a_waker_that_panics_at_the_end_of_an_actor_prevents_no_other_wake,
    a_waker_may_use_the_actor_that_wakes_it,
    a_waker_may_drop_a_join_of_the_actor_that_wakes_it,
    an_ask_as_soon_as_a_panic_has_failed_another_one_names_the_panic,
);

/// Asserts that new actors of this home still work.
fn still_serves(home: &Home) {
    let echo = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
        cx.recv().await.unwrap().send(1);
    }));
    assert_eq!(drive(echo.ask(|reply| reply)), Ok(1));
    home.block_on(echo.join()).unwrap();
}

fn a_panic_in_a_handler_ends_only_its_actor(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
        let _reply = cx.recv().await;
        greenroom::yield_now().await;
        panic!("bomb in a handler");
    }));
    let others: Vec<_> = (0..3).map(|_| handle.address()).collect();
    let waits: Vec<_> = others
        .into_iter()
        .map(|other| drive_elsewhere(async move { other.closed().await }))
        .collect();
    assert!(drive(handle.ask(|reply| reply)).is_err());
    waits.into_iter().for_each(Elsewhere::join);
    assert!(matches!(
        home.block_on(handle.join()),
        Err(Fault::Panicked(_))
    ));
    still_serves(home);
}

fn a_panic_while_an_actor_is_made_ends_only_that_actor(home: &Home) {
    let handle = home.spawn(actor(|_cx: Context<u32>| -> std::future::Ready<()> {
        panic!("bomb in a call")
    }));
    assert!(matches!(
        home.block_on(handle.join()),
        Err(Fault::Panicked(_))
    ));
    still_serves(home);
}

fn panics_in_the_drops_of_state_result_and_messages_are_contained(home: &Home) {
    let drops = Drops::default();
    for begun in [false, true] {
        let state = Bomb::new(true, &drops);
        let held = (!begun).then(|| home.hold());
        let begins = Gate::default();
        let begin = begins.clone();
        let handle = home.spawn(actor(async move |_cx: Context<Bomb>| {
            let _state = state;
            begin.open();
            std::future::pending::<()>().await;
        }));
        if begun {
            begins.pass();
        }
        (0..5).for_each(|_| handle.tell(Bomb::new(true, &drops)).unwrap());
        handle.kill();
        drop(held);
        home.block_on(handle.closed());
    }
    assert_eq!(drops.count(), 12);
    let result = Bomb::new(true, &drops);
    let handle = home.spawn(actor(async move |_cx: Context<u32>| result));
    home.block_on(handle.closed());
    drop(handle);
    assert_eq!(drops.count(), 13);
    still_serves(home);
}

fn a_panic_in_the_closure_of_an_ask_does_not_reach_the_actor(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
        cx.recv().await.unwrap().send(1);
    }));
    let mut ask = handle.ask(|_reply: Reply<u32>| panic!("bomb in a question"));
    panic_of(|| poll_once(&mut ask));
    drop(ask);
    assert_eq!(drive(handle.ask(|reply| reply)), Ok(1));
    home.block_on(handle.join()).unwrap();
}

fn a_panic_in_the_drop_of_an_unwanted_answer_is_contained(home: &Home) {
    let drops = Drops::default();
    let live = drops.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<(Gate, Reply<Bomb>)>| {
        while let Some((gate, reply)) = cx.recv().await {
            gate.wait().await;
            // The ask was dropped, so the answer is dropped here.
            reply.send(Bomb::new(true, &live));
        }
    }));
    for _ in 0..3 {
        let gate = Gate::default();
        let mut ask = handle.ask(|reply| (gate.clone(), reply));
        assert!(poll_once(&mut ask).is_pending());
        drop(ask);
        gate.open();
    }
    home.block_on(handle.join()).unwrap();
    assert_eq!(drops.count(), 3);
    still_serves(home);
}

fn a_panic_in_the_drop_of_a_message_that_found_no_room_in_time_is_contained(home: &Home) {
    let drops = Drops::default();
    let (handle, cx) = open_mailbox(home, 1);
    handle.tell(None).unwrap();
    let ask = handle.ask(|reply: Reply<u32>| Some((Bomb::new(true, &drops), reply)));
    let asked = drive(ask.timeout(Duration::from_millis(1)));
    assert_eq!(asked, Err(AskError::TimedOut));
    assert_eq!(drops.count(), 1);
    handle.kill();
    drop(cx);
    still_serves(home);
}

fn panics_in_a_thousand_actors_do_not_reach_other_actors(home: &Home) {
    let handles: Vec<_> = (0..1_000)
        .map(|number| {
            home.spawn(actor(async move |mut cx: Context<u32>| {
                cx.recv().await;
                assert!(number % 2 == 0, "bomb in an actor");
                number
            }))
        })
        .collect();
    let joins = handles.into_iter().map(|handle| handle.join());
    let outcomes = home.block_on(futures::future::join_all(joins));
    assert!(
        outcomes
            .iter()
            .enumerate()
            .all(|(at, outcome)| outcome.is_ok() == (at % 2 == 0))
    );
    still_serves(home);
}

/// A waker that panics when it wakes, and counts its wakes.
struct Explosive(AtomicUsize);

impl Wake for Explosive {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("bomb in a waker");
    }
}

fn explosive() -> (Arc<Explosive>, Waker) {
    let explosive = Arc::new(Explosive(AtomicUsize::new(0)));
    (explosive.clone(), Waker::from(explosive))
}

/// Polls once with this waker and asserts that the future is pending.
fn leave<F: Future + Unpin>(future: &mut F, waker: &Waker) {
    let polled = std::pin::Pin::new(future).poll(&mut TaskContext::from_waker(waker));
    assert!(polled.is_pending());
}

/// Spawns an actor that gives its context to the caller.
fn open_mailbox<M: Send + 'static>(
    home: &Home,
    capacity: usize,
) -> (greenroom::Handle<M, ()>, Context<M>) {
    let (out, context) = futures::channel::oneshot::channel();
    let gives_away = actor(async move |cx: Context<M>| {
        assert!(out.send(cx).is_ok());
        std::future::pending().await
    });
    let handle = home.spawn(gives_away.capacity(capacity));
    (handle, home.block_on(context).unwrap())
}

fn a_panic_of_a_waker_that_a_message_wakes_is_contained(home: &Home) {
    let (handle, mut cx) = open_mailbox(home, usize::MAX);
    let (woken, waker) = explosive();
    let mut recv = cx.recv();
    leave(&mut recv, &waker);
    handle.tell(1).unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(drive(recv), Some(1));
    let mut recv = cx.recv();
    leave(&mut recv, &waker);
    handle.stop();
    assert_eq!(woken.0.load(Ordering::SeqCst), 2);
    assert_eq!(drive(recv), None);
    still_serves(home);
}

fn a_panic_of_a_waker_that_a_free_place_wakes_is_contained(home: &Home) {
    let (handle, mut cx) = open_mailbox(home, 1);
    let (woken, waker) = explosive();
    handle.tell(0).unwrap();
    let mut sends: Vec<_> = (1..5).map(|number| handle.send(number)).collect();
    sends.iter_mut().for_each(|send| leave(send, &waker));
    assert_eq!(drive(cx.recv()), Some(0));
    assert_eq!(cx.try_recv(), Some(1));
    assert_eq!(woken.0.load(Ordering::SeqCst), 2);
    handle.stop();
    assert_eq!(woken.0.load(Ordering::SeqCst), 4);
    let outcomes = sends.into_iter().map(|send| drive(send).is_ok());
    assert_eq!(outcomes.collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!((cx.try_recv(), drive(cx.recv())), (Some(2), None));
    still_serves(home);
}

fn a_panic_of_a_waker_that_an_answer_wakes_is_contained(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<(Gate, Reply<u32>)>| {
        let (gate, reply) = cx.recv().await.unwrap();
        gate.wait().await;
        reply.send(1);
        2
    }));
    let (gate, (woken, waker)) = (Gate::default(), explosive());
    let address = handle.address();
    let mut ask = address.ask(|reply| (gate.clone(), reply));
    leave(&mut ask, &waker);
    gate.open();
    assert_eq!(home.block_on(handle.join()).unwrap(), 2);
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(drive(ask), Ok(1));
}

fn a_waker_that_panics_at_the_end_of_an_actor_prevents_no_other_wake(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| cx.recv().await));
    let (exploded, explosive) = explosive();
    let ((one, first), (other, second)) = (CountingWaker::new(), CountingWaker::new());
    let address = handle.address();
    let [mut before, mut between, mut after] = [(); 3].map(|()| Box::pin(address.closed()));
    let mut join = handle.join();
    leave(&mut before, &explosive);
    leave(&mut between, &first);
    leave(&mut join, &second);
    leave(&mut after, &explosive);
    address.tell(1).unwrap();
    one.pass();
    other.pass();
    drop(home.hold());
    assert_eq!((one.count(), other.count()), (1, 1));
    assert_eq!(exploded.0.load(Ordering::SeqCst), 2);
    [before, between, after].into_iter().for_each(drive);
    assert_eq!(drive(join).unwrap(), Some(1));
    still_serves(home);
}

/// A waker that runs a closure when it wakes, and then opens a gate.
struct Does<F>(F, Gate);

impl<F: Fn() + Send + Sync + 'static> Does<F> {
    fn waker(what: F) -> (Gate, Waker) {
        let done = Gate::default();
        (done.clone(), Waker::from(Arc::new(Does(what, done))))
    }
}

impl<F: Fn() + Send + Sync + 'static> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
        self.1.open();
    }
}

fn a_waker_may_use_the_actor_that_wakes_it(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| cx.recv().await));
    let address: Address<u32> = handle.address();
    let (looked, waker) = Does::waker(move || {
        assert!(poll_once(&mut Box::pin(address.closed())).is_ready());
        assert!(address.tell(1).is_err() && address.downgrade().upgrade().is_none());
        address.kill();
    });
    let watched = handle.address();
    let mut closed = Box::pin(watched.closed());
    leave(&mut closed, &waker);
    watched.tell(1).unwrap();
    looked.pass();
    assert_eq!(home.block_on(handle.join()).unwrap(), Some(1));
    assert!(poll_once(&mut closed).is_ready());
}

fn a_waker_may_drop_a_join_of_the_actor_that_wakes_it(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| cx.recv().await));
    let address = handle.address();
    let mut join = handle.join();
    leave(&mut join, Waker::noop());
    let join = Mutex::new(Some(join));
    let (dropped, waker) = Does::waker(move || drop(join.lock().unwrap().take()));
    let mut closed = Box::pin(address.closed());
    leave(&mut closed, &waker);
    address.tell(1).unwrap();
    dropped.pass();
    drive(closed);
    still_serves(home);
}

fn an_ask_as_soon_as_a_panic_has_failed_another_one_names_the_panic(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
        let _reply = cx.recv().await;
        panic!("bomb in a handler");
    }));
    let (address, again) = (handle.address(), Arc::new(Mutex::new(None)));
    let found = again.clone();
    let (asked, waker) = Does::waker(move || {
        let outcome = poll_once(&mut Box::pin(address.ask(|reply| reply)));
        *found.lock().unwrap() = Some(outcome);
    });
    let other = handle.address();
    let mut first = Box::pin(other.ask(|reply| reply));
    let held = home.hold();
    leave(&mut first, &waker);
    drop(held);
    asked.pass();
    let again = again.lock().unwrap().take();
    let Some(Poll::Ready(Err(AskError::Closed(detail)))) = again else {
        panic!("{again:?}")
    };
    let panicked = AskCause::Panicked("bomb in a handler".into());
    assert_eq!(*detail.why(), panicked);
    assert!(drive(first).is_err());
    assert!(home.block_on(handle.join()).is_err());
}

/// Tasks on the workers wait for an actor on a pinned thread that only the shutdown ends.
#[test]
fn a_task_that_awaits_the_end_of_an_actor_is_dropped_during_a_shutdown() {
    within(WATCH, || {
        for _ in 0..200 {
            let runtime = Runtime::builder()
                .workers(1)
                .grace(Duration::ZERO)
                .build()
                .unwrap();
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            let begun = Gate::default();
            let begins = begun.clone();
            let never = actor(async move |_cx: Context<u32>| {
                begins.open();
                std::future::pending::<()>().await;
            });
            let handle = never.on(&pinned).spawn();
            begun.pass();
            let drops = Drops::default();
            for _ in 0..3 {
                let (waits, address) = (drops.one(), handle.address());
                let waiting = Gate::default();
                let wait = waiting.clone();
                let task = runtime.spawn(async move {
                    let _waits = waits;
                    crate::support::open_when_pending(wait, address.closed()).await;
                    std::future::pending::<()>().await;
                });
                task.detach();
                waiting.pass();
            }
            runtime.block_on(runtime.shutdown());
            assert_eq!(drops.count(), 3);
            assert!(matches!(drive(handle.join()), Err(Fault::Cancelled)));
        }
    });
}
