//! Mailboxes that conflate: the newest message of a key replaces the waiting one.

use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::task::Poll;

use greenroom::{
    ActorBuilder, AskError, Context, Overflow, RefusalKind, Reply, Runtime, SpawnProblem, actor,
};

use crate::support::{
    Drops, Elsewhere, Home, Log, WATCH, drive, drive_elsewhere, in_every_home, panic_of, poll_once,
    within,
};

in_every_home!(
    a_message_replaces_the_waiting_one_of_its_key_in_its_position,
    a_message_that_was_received_is_not_replaced,
    a_message_of_a_waiting_key_needs_no_room,
    a_message_of_another_key_waits_for_room,
    without_room_for_a_key_the_oldest_message_gives_way,
    a_permit_is_given_back_if_its_message_replaces_another,
    a_replaced_question_is_refused,
    messages_of_a_mapped_address_replace_others,
    a_panic_of_the_key_reaches_the_sender_and_loses_nothing,
    the_last_message_of_each_key_is_received,
    messages_of_one_turn_replace_each_other,
    many_keys_pass_through_a_small_mailbox,
);

/// A key, and a value.
type Entry = (&'static str, u32);

type Collects = Pin<Box<dyn Future<Output = Vec<Entry>> + Send>>;

/// Returns an actor that collects the messages of a mailbox that conflates them.
fn collects(
    capacity: usize,
) -> ActorBuilder<Entry, impl FnOnce(Context<Entry>) -> Collects + Send + 'static, Collects> {
    let collects = |mut cx: Context<Entry>| -> Collects {
        Box::pin(async move {
            let mut all = Vec::new();
            while let Some(entry) = cx.recv().await {
                all.push(entry);
            }
            all
        })
    };
    actor(collects)
        .capacity(capacity)
        .conflate(|entry: &Entry| entry.0)
}

fn a_message_replaces_the_waiting_one_of_its_key_in_its_position(home: &Home) {
    let (displaced, held) = (Log::default(), home.hold());
    let log = displaced.clone();
    let handle = home.spawn(collects(9).on_displaced(move |entry| log.add(entry)));
    for entry in [("a", 1), ("b", 2), ("c", 3), ("a", 4), ("c", 5), ("a", 6)] {
        handle.tell(entry).unwrap();
    }
    assert_eq!(displaced.take(), [("a", 1), ("c", 3), ("a", 4)]);
    assert_eq!(handle.len(), 3);
    let actors = home.runtime.actors(usize::MAX);
    let status = actors.iter().find(|status| status.task.id() == handle.id());
    assert_eq!(status.map(|status| status.displaced), Some(3));
    drop(held);
    assert_eq!(
        home.block_on(handle.join()).unwrap(),
        [("a", 6), ("b", 2), ("c", 5)]
    );
}

fn a_message_that_was_received_is_not_replaced(home: &Home) {
    let (read, held) = (Log::default(), home.hold());
    let reads = read.clone();
    let takes = actor(async move |mut cx: Context<Entry>| {
        for _ in 0..3 {
            reads.add(cx.recv().await);
            cx.address().tell(("a", 9)).unwrap();
        }
    });
    let takes = takes.capacity(9).conflate(|entry: &Entry| entry.0);
    let takes = home.spawn(takes);
    takes.tell(("a", 1)).unwrap();
    takes.tell(("b", 2)).unwrap();
    drop(held);
    home.block_on(takes.join()).unwrap();
    assert_eq!(read.take(), [("a", 1), ("b", 2), ("a", 9)].map(Some));
}

fn a_message_of_a_waiting_key_needs_no_room(home: &Home) {
    for overflow in [Overflow::Wait, Overflow::Newest, Overflow::Oldest] {
        let held = home.hold();
        let handle = home.spawn(collects(2).overflow(overflow));
        handle.tell(("a", 1)).unwrap();
        handle.tell(("b", 2)).unwrap();
        drive(handle.send(("a", 3))).unwrap();
        handle.tell(("b", 4)).unwrap();
        drop(held);
        assert_eq!(home.block_on(handle.join()).unwrap(), [("a", 3), ("b", 4)]);
    }
}

fn a_message_of_another_key_waits_for_room(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(1));
    handle.tell(("a", 1)).unwrap();
    let full = handle.tell(("b", 2)).unwrap_err();
    assert!(full.is_full() && full.into_inner() == ("b", 2));
    let mut given_up = handle.send(("b", 3));
    assert!(poll_once(&mut given_up).is_pending());
    let mut first = handle.send(("b", 4));
    assert!(poll_once(&mut first).is_pending());
    let mut second = handle.send(("b", 5));
    assert!(poll_once(&mut second).is_pending());
    drop(given_up);
    drop(held);
    drive(first).unwrap();
    drive(second).unwrap();
    let all = home.block_on(handle.join()).unwrap();
    assert_eq!((all[0], all[all.len() - 1]), (("a", 1), ("b", 5)));

    let held = home.hold();
    let handle = home.spawn(collects(1).overflow(Overflow::Newest));
    handle.tell(("a", 1)).unwrap();
    assert!(drive(handle.send(("b", 2))).unwrap_err().is_full());
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [("a", 1)]);
}

fn without_room_for_a_key_the_oldest_message_gives_way(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(2).overflow(Overflow::Oldest));
    for entry in [("a", 1), ("b", 2), ("c", 3), ("b", 4), ("a", 5)] {
        handle.tell(entry).unwrap();
    }
    // The second message of `b` has the position of the first one.
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [("c", 3), ("a", 5)]);
}

fn a_permit_is_given_back_if_its_message_replaces_another(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(2));
    handle.tell(("a", 1)).unwrap();
    let permit = drive(handle.reserve()).unwrap();
    let mut waits = handle.send(("b", 2));
    assert!(poll_once(&mut waits).is_pending());
    permit.send(("a", 3));
    assert!(
        matches!(poll_once(&mut waits), Poll::Ready(Ok(()))),
        "there is room"
    );
    drop(waits);
    let mut waits = Box::pin(handle.reserve());
    assert!(poll_once(&mut waits).is_pending());
    handle.stop();
    drop((held, waits));
    assert_eq!(home.block_on(handle.join()).unwrap(), [("a", 3), ("b", 2)]);
}

fn a_replaced_question_is_refused(home: &Home) {
    let held = home.hold();
    let answers = actor(async |mut cx: Context<(u8, Reply<u8>)>| {
        while let Some((key, reply)) = cx.recv().await {
            reply.send(key);
        }
    });
    let answers = home.spawn(
        answers
            .capacity(1)
            .conflate(|question: &(u8, _)| question.0),
    );
    let mut first = Box::pin(answers.ask(|reply| (1, reply)));
    assert!(poll_once(&mut first).is_pending());
    let mut second = Box::pin(answers.ask(|reply| (1, reply)));
    assert!(poll_once(&mut second).is_pending());
    let mut waits = Box::pin(answers.ask(|reply| (2, reply)));
    assert!(poll_once(&mut waits).is_pending());
    let Err(AskError::Refused(refusal)) = drive(first) else {
        panic!("the first question was replaced");
    };
    assert_eq!(refusal.kind(), RefusalKind::Overloaded);
    drop(held);
    assert_eq!(home.block_on(second), Ok(1));
    assert_eq!(home.block_on(waits), Ok(2));
}

fn messages_of_a_mapped_address_replace_others(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(collects(2));
    let mapped = handle.map(|value: u32| ("a", value));
    mapped.tell(1).unwrap();
    drive(mapped.send(2)).unwrap();
    handle.tell(("b", 3)).unwrap();
    assert!(
        mapped.tell(4).unwrap_err().is_full(),
        "the key is not known yet"
    );
    drop((held, mapped));
    assert_eq!(home.block_on(handle.join()).unwrap(), [("a", 2), ("b", 3)]);
}

fn a_panic_of_the_key_reaches_the_sender_and_loses_nothing(home: &Home) {
    let (drops, held) = (Drops::default(), home.hold());
    let counts = actor(async |mut cx: Context<_>| {
        let mut handled = 0;
        while let Some((_, _)) = cx.recv().await {
            handled += 1;
        }
        handled
    });
    let counts = counts.capacity(2).conflate(|(key, _): &(u32, _)| {
        assert_ne!(*key, 9, "bomb");
        *key
    });
    let counts = home.spawn(counts);
    counts.tell((1, drops.one())).unwrap();
    let (text, ..) = panic_of(|| counts.tell((9, drops.one())));
    assert!(text.contains("bomb"), "{text}");
    let permit = drive(counts.reserve()).unwrap();
    panic_of(|| permit.send((9, drops.one())));
    panic_of(|| poll_once(&mut counts.send((9, drops.one()))));
    assert_eq!(drops.count(), 3);
    // The permit was given up.
    counts.tell((2, drops.one())).unwrap();
    drop(held);
    assert_eq!(home.block_on(counts.join()).unwrap(), 2);
    assert_eq!(drops.count(), 5);
}

fn the_last_message_of_each_key_is_received(home: &Home) {
    const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
    let each = home.many(2_000) as u32;
    let displaced = Log::default();
    let log = displaced.clone();
    let handle = home.spawn(collects(3).on_displaced(move |entry| log.add(entry)));
    let senders = KEYS.map(|key| {
        let address = handle.address();
        drive_elsewhere(async move {
            for value in 0..each {
                match value % 3 {
                    0 => address.send((key, value)).await.unwrap(),
                    1 => address.reserve().await.unwrap().send((key, value)),
                    _ => match address.tell((key, value)) {
                        Ok(()) => {}
                        Err(full) => address.send(full.into_inner()).await.unwrap(),
                    },
                }
            }
        })
    });
    senders.into_iter().for_each(Elsewhere::join);
    let received = home.block_on(handle.join()).unwrap();
    let mut all = displaced.take();
    for key in KEYS {
        let of_key = received.iter().filter(|(other, _)| *other == key);
        let values: Vec<_> = of_key.map(|(_, value)| *value).collect();
        assert!(values.is_sorted());
        assert_eq!(values.last(), Some(&(each - 1)));
    }
    all.extend(received);
    all.sort_unstable();
    let sent = KEYS
        .iter()
        .flat_map(|key| (0..each).map(|value| (*key, value)));
    assert_eq!(
        all,
        sent.collect::<Vec<_>>(),
        "each is received or displaced, once"
    );
}

fn messages_of_one_turn_replace_each_other(home: &Home) {
    let handle = home.spawn(collects(2));
    let (address, mapped) = (handle.address(), handle.map(|value: u32| ("a", value)));
    let sends = home.spawn_task(async move {
        for value in 0..20 {
            match value % 4 {
                0 => mapped.send(value).await.unwrap(),
                1 => address.send(("b", value)).await.unwrap(),
                2 => address.send(("a", value)).await.unwrap(),
                _ => address.reserve().await.unwrap().send(("a", value)),
            }
        }
    });
    home.block_on(sends);
    let all = home.block_on(handle.join()).unwrap();
    for key in ["a", "b"] {
        let of_key = all.iter().filter(|(other, _)| *other == key);
        assert!(of_key.clone().map(|(_, value)| value).is_sorted());
    }
    assert!(all.contains(&("a", 19)) && all.contains(&("b", 17)));
}

fn many_keys_pass_through_a_small_mailbox(home: &Home) {
    let keys = home.many(100_000) as u32;
    let counts = actor(async |mut cx: Context<u32>| {
        let mut handled = 0;
        while cx.recv().await.is_some() {
            handled += 1;
        }
        handled
    });
    let counts = home.spawn(counts.capacity(3).conflate(|key: &u32| *key));
    let address = counts.address();
    home.block_on(async move {
        for key in 0..keys {
            address.send(key).await.unwrap();
        }
    });
    assert_eq!(home.block_on(counts.join()).unwrap(), keys);
}

/// A key that hashes alike whatever it is.
struct Same;

impl Hash for Same {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[test]
fn keys_that_hash_alike_are_the_same() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let last = runtime.block_on(async {
            let last = actor(async |mut cx: Context<u32>| {
                let mut all = Vec::new();
                while let Some(number) = cx.recv().await {
                    all.push(number);
                }
                all
            });
            let last = last.capacity(9).conflate(|_: &u32| Same).spawn();
            (1..=3).for_each(|number| last.tell(number).unwrap());
            last.join().await.unwrap()
        });
        assert_eq!(last.last(), Some(&3));
    });
}

#[test]
fn a_mailbox_that_conflates_needs_a_capacity() {
    within(WATCH, || {
        greenroom::run(async {
            let unbounded = actor(async |_cx: Context<u32>| ()).conflate(|number: &u32| *number);
            let problem = unbounded.try_spawn().unwrap_err().problem();
            assert_eq!(problem, SpawnProblem::NoCapacity);
        });
    });
}
