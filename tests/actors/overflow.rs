//! Bounded mailboxes without room: which messages are refused, and which give way to newer ones.

mod keys;
mod model;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use greenroom::{
    ActorBuilder, AskError, Context, Overflow, RefusalKind, Reply, Runtime, SpawnProblem, actor,
};

use crate::support::{
    CountingWaker, Drops, Elsewhere, Home, Log, WATCH, drive, drive_elsewhere, in_every_home,
    poll_once, within,
};

in_every_home!(
    without_room_the_newest_message_is_refused_however_it_is_sent,
    without_room_the_oldest_message_gives_way_however_it_is_sent,
    displaced_messages_go_to_their_function_in_order,
    without_a_function_displaced_messages_are_dropped,
    room_that_permits_have_is_not_taken,
    a_permit_may_take_the_room_of_the_only_message,
    a_displaced_question_is_refused,
    a_question_without_room_is_refused,
    the_function_may_answer_a_displaced_question,
    messages_of_a_mapped_address_displace_too,
    displaced_messages_are_counted,
    a_message_that_wakes_the_actor_may_be_displaced,
    each_message_is_received_displaced_or_undelivered_once,
    many_messages_of_one_turn_displace_each_other,
);

type Collects = Pin<Box<dyn Future<Output = Vec<u32>> + Send>>;

/// Returns an actor that collects its messages until the mailbox is closed.
fn collects(
    capacity: usize,
    overflow: Overflow,
) -> ActorBuilder<u32, impl FnOnce(Context<u32>) -> Collects + Send + 'static, Collects> {
    let collects = |mut cx: Context<u32>| -> Collects {
        Box::pin(async move {
            let mut all = Vec::new();
            while let Some(message) = cx.recv().await {
                all.push(message);
            }
            all
        })
    };
    actor(collects).capacity(capacity).overflow(overflow)
}

fn without_room_the_newest_message_is_refused_however_it_is_sent(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(2, Overflow::Newest));
    handle.tell(1).unwrap();
    drive(handle.send(2)).unwrap();
    let full = handle.tell(3).unwrap_err();
    assert!(full.is_full() && full.into_inner() == 3);
    let full = drive(handle.send(4)).unwrap_err();
    assert!(full.is_full() && !full.is_closed());
    assert!(full.to_string().ends_with("is full"), "{full}");
    assert_eq!(full.into_inner(), 4);
    assert!(drive(handle.reserve()).unwrap_err().is_full());
    let mapped = handle.map(|number: u32| number);
    assert!(mapped.tell(5).unwrap_err().is_full());
    assert_eq!(drive(mapped.send(6)).unwrap_err().into_inner(), 6);
    drop((held, mapped));
    assert_eq!(home.block_on(handle.join()).unwrap(), [1, 2]);
}

fn without_room_the_oldest_message_gives_way_however_it_is_sent(home: &Home) {
    for capacity in [1, 2, 3, 50, 100] {
        let held = home.hold();
        let handle = home.spawn(collects(capacity, Overflow::Oldest));
        for number in 0..200 {
            match number % 3 {
                0 => handle.tell(number).unwrap(),
                1 => drive(handle.send(number)).unwrap(),
                _ => drive(handle.reserve()).unwrap().send(number),
            }
        }
        drop(held);
        let last = 200 - capacity as u32..200;
        assert_eq!(
            home.block_on(handle.join()).unwrap(),
            last.collect::<Vec<_>>()
        );
    }
}

fn displaced_messages_go_to_their_function_in_order(home: &Home) {
    let (displaced, held) = (Log::default(), home.hold());
    let log = displaced.clone();
    let handle = collects(3, Overflow::Oldest).on_displaced(move |number| log.add(number));
    let handle = home.spawn(handle);
    for number in 0..10 {
        handle.tell(number).unwrap();
    }
    assert_eq!(displaced.take(), (0..7).collect::<Vec<_>>());
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [7, 8, 9]);
    assert_eq!(displaced.len(), 0);
}

fn without_a_function_displaced_messages_are_dropped(home: &Home) {
    let (drops, held) = (Drops::default(), home.hold());
    let holds = actor(async |mut cx: Context<_>| cx.recv().await.is_some());
    let handle = home.spawn(holds.capacity(1).overflow(Overflow::Oldest));
    for number in 0..5 {
        handle.tell(drops.one()).unwrap();
        assert_eq!(drops.count(), number);
    }
    drop(held);
    assert!(home.block_on(handle.join()).unwrap());
    assert_eq!(drops.count(), 5);
}

fn room_that_permits_have_is_not_taken(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(2, Overflow::Oldest));
    let first = drive(handle.reserve()).unwrap();
    handle.tell(1).unwrap();
    let second = drive(handle.reserve()).unwrap();
    // The message has given way, and no other is there.
    assert!(handle.tell(2).unwrap_err().is_full());
    assert!(drive(handle.send(2)).unwrap_err().is_full());
    assert!(drive(handle.reserve()).unwrap_err().is_full());
    second.send(3);
    handle.tell(4).unwrap();
    first.send(5);
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [4, 5]);
}

fn a_permit_may_take_the_room_of_the_only_message(home: &Home) {
    let handle = home.spawn(collects(1, Overflow::Oldest));
    let held = home.hold();
    handle.tell(1).unwrap();
    let permit = drive(handle.reserve()).unwrap();
    assert!(handle.is_empty());
    drop(held);
    permit.send(2);
    assert_eq!(home.block_on(handle.join()).unwrap(), [2]);
}

fn a_displaced_question_is_refused(home: &Home) {
    let held = home.hold();
    let answers = actor(async |mut cx: Context<(u32, Reply<u32>)>| {
        while let Some((number, reply)) = cx.recv().await {
            reply.send(number);
        }
    });
    let answers = home.spawn(answers.name("one").capacity(1).overflow(Overflow::Oldest));
    let mut first = Box::pin(answers.ask(|reply| (1, reply)));
    assert!(poll_once(&mut first).is_pending());
    let mut second = Box::pin(answers.ask(|reply| (2, reply)));
    assert!(poll_once(&mut second).is_pending());
    let Err(AskError::Refused(refusal)) = drive(first) else {
        panic!("the first question has given way");
    };
    assert_eq!(refusal.kind(), RefusalKind::Overloaded);
    assert!(
        refusal
            .to_string()
            .contains("gave its room to a newer message"),
        "{refusal}"
    );
    drop(held);
    assert_eq!(home.block_on(second), Ok(2));
}

fn a_question_without_room_is_refused(home: &Home) {
    for overflow in [Overflow::Newest, Overflow::Oldest] {
        let held = home.hold();
        let asked = actor(async |mut cx: Context<Option<Reply<u32>>>| cx.recv().await.is_some());
        let asked = home.spawn(asked.capacity(1).overflow(overflow));
        let permit = drive(asked.reserve()).unwrap();
        let Err(AskError::Refused(refusal)) = drive(asked.ask(Some)) else {
            panic!("the permit has all the room");
        };
        assert_eq!(refusal.kind(), RefusalKind::Overloaded);
        let Err(AskError::Refused(refusal)) = drive(asked.request(Some)) else {
            panic!("the permit has all the room");
        };
        assert!(refusal.to_string().contains("is full"), "{refusal}");
        permit.send(None);
        drop(held);
        assert!(home.block_on(asked.join()).unwrap());
    }
}

fn the_function_may_answer_a_displaced_question(home: &Home) {
    let held = home.hold();
    let asked = actor(async |mut cx: Context<Reply<u32>>| {
        cx.recv().await.unwrap().send(1);
    });
    let asked = asked.capacity(1).overflow(Overflow::Oldest);
    let asked = home.spawn(asked.on_displaced(|reply: Reply<u32>| reply.send(42)));
    let mut first = Box::pin(asked.ask(|reply| reply));
    assert!(poll_once(&mut first).is_pending());
    let mut second = Box::pin(asked.ask(|reply| reply));
    assert!(poll_once(&mut second).is_pending());
    assert_eq!(drive(first), Ok(42));
    drop(held);
    assert_eq!(home.block_on(second), Ok(1));
}

fn messages_of_a_mapped_address_displace_too(home: &Home) {
    let (displaced, held) = (Log::default(), home.hold());
    let log = displaced.clone();
    let handle = collects(1, Overflow::Oldest).on_displaced(move |number| log.add(number));
    let handle = home.spawn(handle);
    let mapped = handle.map(|text: &str| text.parse::<u32>().unwrap());
    mapped.tell("1").unwrap();
    drive(mapped.send("2")).unwrap();
    handle.tell(3).unwrap();
    mapped.tell("4").unwrap();
    assert_eq!(displaced.take(), [1, 2, 3]);
    drop((held, mapped));
    assert_eq!(home.block_on(handle.join()).unwrap(), [4]);
}

fn displaced_messages_are_counted(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(2, Overflow::Oldest));
    for number in 0..10 {
        handle.tell(number).unwrap();
    }
    let actors = home.runtime.actors(usize::MAX);
    let status = actors.iter().find(|status| status.task.id() == handle.id());
    assert_eq!(
        status.map(|status| (status.mailbox, status.displaced)),
        Some((2, 8))
    );
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [8, 9]);
}

fn a_message_that_wakes_the_actor_may_be_displaced(home: &Home) {
    let handle = home.spawn(collects(1, Overflow::Oldest));
    let held = home.hold();
    let (woken, waker) = CountingWaker::new();
    handle.tell(1).unwrap();
    let mut send = handle.send(2);
    let sent = Pin::new(&mut send).poll(&mut TaskContext::from_waker(&waker));
    assert!(matches!(sent, Poll::Ready(Ok(()))));
    drop(send);
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [2]);
    assert_eq!(woken.count(), 0, "no sender waits for room");
}

fn each_message_is_received_displaced_or_undelivered_once(home: &Home) {
    const SENDERS: u32 = 4;
    for stops in [false, true] {
        let each = home.many(2_000) as u32;
        let (displaced, undelivered) = (Log::default(), Log::default());
        let (given, left) = (displaced.clone(), undelivered.clone());
        let handle = collects(3, Overflow::Oldest)
            .on_displaced(move |number| given.add(number))
            .on_undelivered(move |number| left.add(number));
        let handle = home.spawn(handle);
        let senders = [0, 1, 2, 3].map(|sender| {
            let address = handle.address();
            drive_elsewhere(async move {
                let mut refused = Vec::new();
                for number in sender * each..(sender + 1) * each {
                    let sent = match number % 3 {
                        0 => address.tell(number).map_err(|error| error.into_inner()),
                        1 => address
                            .send(number)
                            .await
                            .map_err(|error| error.into_inner()),
                        _ => match address.reserve().await {
                            Ok(permit) => {
                                permit.send(number);
                                Ok(())
                            }
                            Err(_) => Err(number),
                        },
                    };
                    refused.extend(sent.err());
                    if stops && number == each / 2 {
                        address.stop_now();
                    }
                }
                refused
            })
        });
        let refused = senders.into_iter().flat_map(Elsewhere::join);
        let mut all: Vec<_> = refused.collect();
        all.extend(home.block_on(handle.join()).unwrap());
        all.extend(displaced.take());
        all.extend(undelivered.take());
        all.sort_unstable();
        assert_eq!(all, (0..SENDERS * each).collect::<Vec<_>>());
    }
}

fn many_messages_of_one_turn_displace_each_other(home: &Home) {
    let handle = home.spawn(collects(1, Overflow::Oldest));
    let address = handle.address();
    let sends = home.spawn_task(async move {
        for number in 0..20 {
            match number % 2 {
                0 => address.tell(number).unwrap(),
                _ => address.send(number).await.unwrap(),
            }
        }
    });
    home.block_on(sends);
    let all = home.block_on(handle.join()).unwrap();
    assert_eq!(all.last(), Some(&19));
    assert!(all.is_sorted());
}

#[test]
fn a_panic_of_the_function_is_reported_and_loses_nothing() {
    within(WATCH, || {
        let faults = Log::default();
        let log = faults.clone();
        let on_fault = move |fault: &greenroom::UnhandledFault<'_>| {
            assert!(fault.is_on_displaced);
            log.add(fault.to_string());
        };
        let runtime = Runtime::builder().workers(1).on_fault(on_fault);
        let runtime = runtime.build().unwrap();
        let kept = runtime.block_on(runtime.spawn(async {
            let keeps = collects(1, Overflow::Oldest).name("keeps");
            let keeps = keeps.on_displaced(|number| assert_ne!(number, 1, "bomb"));
            let keeps = keeps.spawn();
            for number in 1..=3 {
                keeps.tell(number).unwrap();
            }
            keeps.join().await.unwrap()
        }));
        assert_eq!(kept.last(), Some(&3));
        // On the one worker the actor does not run before all were sent.
        let [fault] = <[String; 1]>::try_from(faults.take()).unwrap();
        assert!(fault.starts_with("`on_displaced` of \"keeps\""), "{fault}");
        assert!(fault.contains("bomb"), "{fault}");
    });
}

#[test]
fn options_for_a_mailbox_without_room_need_a_capacity() {
    within(WATCH, || {
        greenroom::run(async {
            let idle = || actor(async |_cx: Context<u32>| ());
            let oldest = idle().overflow(Overflow::Oldest).try_spawn();
            let displaced = idle().on_displaced(drop).try_spawn();
            let problems = [oldest, displaced].map(|spawned| spawned.unwrap_err().problem());
            assert_eq!(problems, [SpawnProblem::NoCapacity; 2]);
            let text = SpawnProblem::NoCapacity.to_string();
            assert!(text.contains("unbounded"), "{text}");
        });
    });
}
