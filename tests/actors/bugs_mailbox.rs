//! Bugs of other mailboxes, channels and runtimes, a test each. `docs/origins.md` lists the
//! sources.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use greenroom::looper::Controller;
use greenroom::market::{Job, Market};
use greenroom::{Address, Context, Reply, actor};

use crate::support::{
    Bomb, CountingWaker, DEEP, Dropped, Drops, Elsewhere, Gate, Home, WATCH, drive, elsewhere,
    in_every_home, on_threads, poll_once, received, until, within,
};

async fn collect(mut cx: Context<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(message) = cx.recv().await {
        all.push(message);
    }
    all
}

// Two threads write and wake at the same time.
on_threads!(data_written_before_a_wake_is_seen_even_if_wakes_coalesce);

// The chain is dropped on a thread with a small stack.
on_threads!(a_chain_of_results_is_dropped_without_recursion);

in_every_home!(
    two_free_places_wake_two_senders,
    two_messages_wake_two_actors,
    messages_of_an_ended_actor_are_dropped_while_senders_live,
    messages_sent_during_the_end_of_an_actor_are_dropped_or_refused,
    a_chain_of_actors_is_dropped_without_recursion,
    a_dropped_send_that_was_admitted_lets_the_next_sender_in,
    an_actor_ends_although_waiting_senders_are_not_polled,
    a_send_that_is_never_polled_again_does_not_block_other_senders,
    reply_kill_and_poll_of_an_ask_may_race,
    messages_that_panic_when_dropped_do_not_leak_the_rest,
    messages_that_panic_while_the_actor_panics_do_not_leak_the_rest,
    stop_may_race_with_recv,
);

fn data_written_before_a_wake_is_seen_even_if_wakes_coalesce(home: &Home) {
    const ROUNDS: usize = 3_000;
    let written: Arc<[AtomicUsize; 2]> = Arc::default();
    let (sees, (give, waker)) = (written.clone(), std::sync::mpsc::channel());
    let seen = Arc::new(AtomicUsize::new(0));
    let tells = seen.clone();
    let handle = home.spawn(actor(async move |_cx: Context<u32>| {
        std::future::poll_fn(|cx| {
            let _ = give.send(cx.waker().clone());
            let least = sees
                .iter()
                .map(|one| one.load(Ordering::Relaxed))
                .min()
                .unwrap();
            tells.store(least, Ordering::SeqCst);
            if least == ROUNDS {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }));
    let waker = received(&waker);
    std::thread::scope(|scope| {
        for one in 0..2 {
            let (waker, written, seen) = (waker.clone(), &written, &seen);
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    written[one].store(round, Ordering::Relaxed);
                    waker.wake_by_ref();
                    // Both threads have written. If this poll missed a write, no other poll would
                    // follow it.
                    while seen.load(Ordering::SeqCst) < round {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    home.block_on(handle.join()).unwrap();
}

fn two_free_places_wake_two_senders(home: &Home) {
    let held = home.hold();
    let (read, gate) = (Gate::default(), Gate::default());
    let (reads, waits) = (read.clone(), gate.clone());
    let handle = home.spawn(
        actor(async move |mut cx: Context<u32>| {
            let mut all = vec![cx.recv().await.unwrap(), cx.recv().await.unwrap()];
            reads.open();
            waits.wait().await;
            while let Some(message) = cx.recv().await {
                all.push(message);
            }
            all
        })
        .capacity(2),
    );
    handle.tell(0).unwrap();
    handle.tell(1).unwrap();
    let wakers = [
        CountingWaker::new(),
        CountingWaker::new(),
        CountingWaker::new(),
    ];
    let mut sends = [handle.send(2), handle.send(3), handle.send(4)];
    for (send, (_, waker)) in sends.iter_mut().zip(&wakers) {
        let polled = std::pin::Pin::new(send).poll(&mut std::task::Context::from_waker(waker));
        assert!(polled.is_pending());
    }
    drop(held);
    read.pass();
    assert_eq!(wakers.each_ref().map(|(woken, _)| woken.count()), [1, 1, 0]);
    gate.open();
    sends.into_iter().for_each(|send| drive(send).unwrap());
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1, 2, 3, 4]);
}

fn two_messages_wake_two_actors(home: &Home) {
    let echo = async |mut cx: Context<Reply<()>>| {
        while let Some(reply) = cx.recv().await {
            reply.send(());
        }
    };
    let (one, other) = (home.spawn(actor(echo)), home.spawn(actor(echo)));
    for _ in 0..home.many(2_000) {
        // Both actors sleep, and so do all other tasks.
        let (a, b) = drive(async { futures::join!(one.ask(|r| r), other.ask(|r| r)) });
        assert_eq!((a, b), (Ok(()), Ok(())));
    }
}

fn messages_of_an_ended_actor_are_dropped_while_senders_live(home: &Home) {
    type End = fn(&Address<Dropped>);
    let ends: [(&str, End); 4] = [
        ("returns", |_| ()),
        ("panics", |_| ()),
        ("is killed", Address::kill),
        ("drops its context", |_| ()),
    ];
    for (how, end) in ends {
        for capacity in [50, usize::MAX] {
            let held = home.hold();
            let drops = Drops::default();
            let handle = home.spawn(
                actor(async move |mut cx: Context<Dropped>| match how {
                    "returns" => drop(cx.recv().await),
                    "panics" => panic!("bomb in an actor"),
                    "drops its context" => drop(cx),
                    _ => std::future::pending().await,
                })
                .capacity(capacity),
            );
            let addresses: Vec<_> = (0..10).map(|_| handle.address()).collect();
            (0..50).for_each(|_| handle.tell(drops.one()).unwrap());
            end(&handle);
            drop(held);
            home.block_on(handle.closed());
            assert_eq!(drops.count(), 50, "an actor that {how}");
            assert!(
                addresses
                    .iter()
                    .all(|address| address.tell(drops.one()).is_err())
            );
            assert_eq!(drops.count(), 60);
        }
    }
}

fn messages_sent_during_the_end_of_an_actor_are_dropped_or_refused(home: &Home) {
    let each = home.many(500);
    for round in 0..100 {
        let drops = Drops::default();
        let handle = home.spawn(actor(async move |mut cx: Context<Dropped>| {
            for _ in 0..round % 5 {
                cx.recv().await;
            }
        }));
        let tellers = [(); 2].map(|()| {
            let (address, drops) = (handle.address(), drops.clone());
            elsewhere(move || (0..each).for_each(|_| drop(address.tell(drops.one()))))
        });
        tellers.into_iter().for_each(Elsewhere::join);
        home.block_on(handle.closed());
        assert_eq!(drops.count(), 2 * each);
    }
}

const LARGE: usize = 16 * 1024;

/// The stack for 16 KiB messages. Without optimization, every move of a message from one function
/// to the next leaves a copy on the stack, here up to thirty copies.
const SMALL_STACK: usize = if cfg!(debug_assertions) { 640 } else { 256 } * 1024;

/// Runs each job on a separate thread with a small stack.
fn on_small_stacks(jobs: Vec<Box<dyn FnOnce() + Send>>) {
    for job in jobs {
        let small = std::thread::Builder::new().stack_size(SMALL_STACK);
        small.spawn(job).unwrap().join().unwrap();
    }
}

#[test]
fn a_large_message_fits_on_a_small_stack() {
    within(WATCH, || {
        let home = Home::workers(1);
        for capacity in [1, usize::MAX] {
            let (out, context) = futures::channel::oneshot::channel();
            let gives_away = actor(async move |cx: Context<[u8; LARGE]>| {
                assert!(out.send(cx).is_ok());
                std::future::pending::<()>().await;
            });
            let handle = home.spawn(gives_away.capacity(capacity));
            let mut cx = home.block_on(context).unwrap();
            let (tells, sends) = (handle.address(), handle.address());
            on_small_stacks(vec![
                Box::new(move || assert!(tells.tell([7; LARGE]).is_ok())),
                Box::new(move || {
                    assert!(drive(cx.recv()).is_some_and(|message| message[LARGE - 1] == 7));
                    drop(cx);
                }),
                Box::new(move || assert!(drive(sends.send([8; LARGE])).is_err())),
            ]);
        }
    });
}

#[test]
fn a_mailbox_with_five_million_messages_is_dropped_without_recursion() {
    within(3 * WATCH, || {
        let home = Home::workers(1);
        let drops = Drops::default();
        let held = home.hold();
        let handle = home.spawn(actor(async |_cx: Context<Dropped>| ()));
        (0..5_000_000).for_each(|_| handle.tell(drops.one()).unwrap());
        // On a stack too small for a hundred thousand levels of recursion.
        let small = std::thread::Builder::new().stack_size(128 * 1024);
        let address = handle.address();
        small.spawn(move || address.kill()).unwrap().join().unwrap();
        assert_eq!(drops.count(), 5_000_000);
        drop(held);
    });
}

fn a_chain_of_actors_is_dropped_without_recursion(home: &Home) {
    type End = fn(Address<Dropped>);
    let ends: [(usize, End); 3] = [
        (home.many(DEEP).max(2_000), drop),
        (home.many(20_000), |head| head.kill()),
        (home.many(20_000), |head| head.stop()),
    ];
    for (length, end) in ends {
        let drops = Drops::default();
        let last = drops.one();
        let last = home.spawn(actor(async move |mut cx: Context<Dropped>| {
            let _last = last;
            cx.recv().await;
        }));
        let mut head = last.address();
        for _ in 0..length {
            let next = head;
            let link = home.spawn(actor(async move |mut cx: Context<Dropped>| {
                let _next = next;
                cx.recv().await;
            }));
            head = link.address();
        }
        assert_eq!(drops.count(), 0);
        let weak = last.downgrade();
        drop(last);
        end(head);
        until(|| drops.count() > 0);
        assert!(weak.is_closed());
    }
}

/// A result that owns the handle of another result.
struct Link {
    _next: Option<Box<dyn Any + Send>>,
    _dropped: Dropped,
}

fn a_chain_of_results_is_dropped_without_recursion(home: &Home) {
    type Spawn<'a> = &'a dyn Fn(Box<dyn FnOnce() -> Link + Send>) -> Box<dyn Any + Send>;
    let on = &home.runtime;
    let looper = Controller::builder().on(on).build().unwrap().looper();
    let market = Market::<()>::builder()
        .on(on)
        .capacity(100_000)
        .build()
        .unwrap();
    let kinds: [(usize, Spawn<'_>); 4] = [
        (home.many(2 * DEEP).max(4_000), &|link| {
            Box::new(home.spawn(actor(async move |_cx: Context<()>| link())))
        }),
        (home.many(20_000), &|link| {
            Box::new(on.spawn(async move { link() }))
        }),
        (home.many(20_000), &|link| {
            Box::new(looper.post(link).unwrap())
        }),
        (home.many(20_000), &|link| {
            Box::new(market.try_offer(Job::new(link)).unwrap())
        }),
    ];
    for (length, spawn) in kinds {
        let (drops, made) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
        let mut head: Option<Box<dyn Any + Send>> = None;
        for _ in 0..length {
            let (next, dropped, made) = (head.take(), drops.one(), made.clone());
            head = Some(spawn(Box::new(move || {
                made.fetch_add(1, Ordering::SeqCst);
                Link {
                    _next: next,
                    _dropped: dropped,
                }
            })));
        }
        until(|| made.load(Ordering::SeqCst) == length);
        assert_eq!(drops.count(), 0);
        // On a stack too small for a thousand levels of recursion.
        on_small_stacks(vec![Box::new(move || drop(head))]);
        until(|| drops.count() == length);
    }
}

fn a_dropped_send_that_was_admitted_lets_the_next_sender_in(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(1));
    handle.tell(0).unwrap();
    let (woken, waker) = CountingWaker::new();
    let mut first = handle.send(1);
    let polled = std::pin::Pin::new(&mut first).poll(&mut std::task::Context::from_waker(&waker));
    assert!(polled.is_pending());
    let mut second = handle.send(2);
    assert!(poll_once(&mut second).is_pending());
    drop(held);
    woken.pass();
    drop(first);
    drive(second).unwrap();
    drive(handle.send(3)).unwrap();
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1, 2, 3]);
}

fn an_actor_ends_although_waiting_senders_are_not_polled(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(1));
    let mut sends: Vec<_> = (0..10).map(|number| handle.send(number)).collect();
    for send in &mut sends {
        let _ = poll_once(send);
    }
    handle.stop();
    drop(held);
    home.block_on(handle.closed());
    let refused: Vec<_> = sends
        .into_iter()
        .skip(1)
        .map(|send| drive(send).unwrap_err().into_inner())
        .collect();
    assert_eq!(refused, (1..10).collect::<Vec<_>>());
    assert_eq!(home.block_on(handle.join()).unwrap(), [0]);
}

fn a_send_that_is_never_polled_again_does_not_block_other_senders(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(1));
    handle.tell(0).unwrap();
    let mut stuck: Vec<_> = (1..3).map(|number| handle.send(number)).collect();
    stuck
        .iter_mut()
        .for_each(|send| assert!(poll_once(send).is_pending()));
    let mut others: Vec<_> = (3..100).map(|number| handle.send(number)).collect();
    others
        .iter_mut()
        .for_each(|send| assert!(poll_once(send).is_pending()));
    drop(held);
    others.into_iter().for_each(|send| drive(send).unwrap());
    // The messages in the line were delivered, whether or not their sends were polled.
    stuck
        .iter_mut()
        .take(1)
        .for_each(|send| drive(send).unwrap());
    drop(stuck);
    let all = home.block_on(handle.join()).unwrap();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
}

fn reply_kill_and_poll_of_an_ask_may_race(home: &Home) {
    for round in 0..home.many(2_000) {
        let drops = Drops::default();
        let (out, replies) = std::sync::mpsc::channel();
        let handle = home.spawn(actor(async move |mut cx: Context<Reply<Dropped>>| {
            out.send(cx.recv().await.unwrap()).unwrap();
            cx.recv().await;
        }));
        let mut ask = handle.ask(|reply| reply);
        assert!(poll_once(&mut ask).is_pending());
        let reply = received(&replies);
        let answer = drops.one();
        let address = handle.address();
        let kills = elsewhere(move || address.kill());
        let answers = elsewhere(move || {
            if round % 2 == 0 {
                reply.send(answer);
            } else {
                drop((reply, answer));
            }
        });
        if round % 3 == 0 {
            drop(ask);
        } else {
            assert_eq!(drive(ask).is_ok(), round % 2 == 0);
        }
        [kills, answers].into_iter().for_each(Elsewhere::join);
        assert_eq!(drops.count(), 1);
    }
}

/// Sends ten messages, each with an ask, and ends the actor with `end`. Three messages panic when
/// they are dropped; `panics` makes the actor panic too.
fn with_bombs(home: &Home, capacity: usize, panics: bool, end: fn(&Address<Armed>)) {
    let held = home.hold();
    let drops = Drops::default();
    let handle = home.spawn(
        actor(async move |mut cx: Context<Armed>| {
            drop(cx.try_recv());
            assert!(!panics, "bomb in a handler");
        })
        .capacity(capacity),
    );
    handle
        .tell(Armed(Bomb::new(false, &Drops::default()), None))
        .unwrap();
    let mut asks: Vec<_> = (1..=10)
        .map(|number| {
            let bomb = Bomb::new([3, 7, 9].contains(&number), &drops);
            Box::pin(handle.ask(|reply| Armed(bomb, Some(reply))))
        })
        .collect();
    asks.iter_mut()
        .for_each(|ask| assert!(poll_once(ask).is_pending()));
    end(&handle);
    drop(held);
    let answers = asks.into_iter().map(drive);
    assert!(answers.into_iter().all(|answer| answer.is_err()));
    home.block_on(handle.closed());
    assert_eq!(drops.count(), 10);
}

/// A message that is only dropped.
struct Armed(
    #[expect(dead_code, reason = "see above")] Bomb,
    #[expect(dead_code, reason = "see above")] Option<Reply<()>>,
);

fn messages_that_panic_when_dropped_do_not_leak_the_rest(home: &Home) {
    for capacity in [11, usize::MAX] {
        with_bombs(home, capacity, false, |_| ());
        with_bombs(home, capacity, false, Address::kill);
    }
}

fn messages_that_panic_while_the_actor_panics_do_not_leak_the_rest(home: &Home) {
    for capacity in [11, usize::MAX] {
        with_bombs(home, capacity, true, |_| ());
    }
}

fn stop_may_race_with_recv(home: &Home) {
    for round in 0..home.many(200) {
        let handle = home.spawn(actor(async |mut cx: Context<u32>| {
            let mut handled = 0;
            while cx.recv().await.is_some() {
                handled += 1;
            }
            handled
        }));
        let (told, stopped) = (handle.address(), handle.address());
        let tells = elsewhere(move || {
            let accepted = (0..200).filter(|_| told.tell(0).is_ok()).count();
            told.stop();
            accepted
        });
        let stops = elsewhere(move || {
            (0..round % 20).for_each(|_| std::thread::yield_now());
            stopped.stop();
        });
        let accepted = tells.join();
        stops.join();
        assert_eq!(home.block_on(handle.join()).unwrap(), accepted);
    }
}
