//! A mailbox is one FIFO lane: messages are handled in order of arrival, one at a time and exactly
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use greenroom::{Context, Reply, actor};

use crate::support::{Drops, Elsewhere, Home, drive, drive_elsewhere, elsewhere, in_every_home};

in_every_home!(
    messages_of_one_sender_arrive_in_the_order_sent,
    tell_send_and_ask_of_one_sender_share_one_lane,
    a_message_told_after_an_answer_arrives_after_the_request,
    every_message_is_handled_exactly_once,
    two_handlers_of_one_actor_never_run_at_the_same_time,
    an_actor_finishes_a_message_before_it_reads_the_next,
    order_is_kept_along_a_chain_of_actors,
    a_message_that_races_with_the_actor_falling_asleep_wakes_it,
);

/// The content of a message: its sender and its number.
type Stamped = (usize, u64);

fn messages_of_one_sender_arrive_in_the_order_sent(home: &Home) {
    const SENDERS: usize = 4;
    let each = home.many(5_000) as u64;
    let handle = home.spawn(actor(async |mut cx: Context<Stamped>| {
        let mut next = [0; SENDERS];
        while let Some((sender, number)) = cx.recv().await {
            assert_eq!(number, next[sender], "of sender {sender}");
            next[sender] += 1;
        }
        next
    }));
    let senders = [0, 1, 2, 3].map(|sender| {
        let address = handle.address();
        elsewhere(move || {
            for number in 0..each {
                address.tell((sender, number)).unwrap();
            }
        })
    });
    senders.into_iter().for_each(Elsewhere::join);
    assert_eq!(home.block_on(handle.join()).unwrap(), [each; SENDERS]);
}

fn tell_send_and_ask_of_one_sender_share_one_lane(home: &Home) {
    for capacity in [2, usize::MAX] {
        let handle = home.spawn(
            actor(async |mut cx: Context<(u32, Option<Reply<u32>>)>| {
                let mut order = Vec::new();
                while let Some((number, reply)) = cx.recv().await {
                    order.push(number);
                    if let Some(reply) = reply {
                        reply.send(number);
                    }
                }
                order
            })
            .capacity(capacity),
        );
        home.block_on(async {
            for number in (0..300).step_by(3) {
                assert_eq!(handle.ask(|reply| (number, Some(reply))).await, Ok(number));
                handle.tell((number + 1, None)).unwrap();
                handle.send((number + 2, None)).await.unwrap();
            }
            assert_eq!(handle.join().await.unwrap(), (0..300).collect::<Vec<_>>());
        });
    }
}

fn a_message_told_after_an_answer_arrives_after_the_request(home: &Home) {
    // There are two senders. The second sends only when it knows that the first message was
    // handled.
    home.block_on(async {
        let handle = home.spawn(actor(async |mut cx: Context<(u32, Option<Reply<()>>)>| {
            let mut order = Vec::new();
            while let Some((number, reply)) = cx.recv().await {
                order.push(number);
                drop(reply);
            }
            order
        }));
        let first = handle.address();
        home.spawn_task(async move {
            let _ = first.ask(|reply| (1, Some(reply))).await;
        })
        .await;
        handle.tell((2, None)).unwrap();
        assert_eq!(handle.join().await.unwrap(), [1, 2]);
    });
}

fn every_message_is_handled_exactly_once(home: &Home) {
    const SENDERS: usize = 3;
    let each = home.many(3_000);
    for capacity in [1, 7, usize::MAX] {
        let drops = Drops::default();
        let handle = home.spawn(
            actor(async move |mut cx: Context<(usize, _)>| {
                let mut seen = vec![0_u8; SENDERS * each];
                while let Some((number, _)) = cx.recv().await {
                    seen[number] += 1;
                }
                seen
            })
            .capacity(capacity),
        );
        let senders = [0, 1, 2].map(|sender| {
            let (address, drops) = (handle.address(), drops.clone());
            drive_elsewhere(async move {
                for number in sender * each..(sender + 1) * each {
                    address.send((number, drops.one())).await.unwrap();
                }
            })
        });
        senders.into_iter().for_each(Elsewhere::join);
        let seen = home.block_on(handle.join()).unwrap();
        assert!(seen.iter().all(|&times| times == 1));
        assert_eq!(drops.count(), SENDERS * each);
    }
}

fn two_handlers_of_one_actor_never_run_at_the_same_time(home: &Home) {
    const SENDERS: usize = 4;
    const EACH: u64 = 2_000;
    // Not an atomic increment: two handlers at the same time would lose increments.
    let (counter, inside) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let (counts, enters) = (counter.clone(), inside.clone());
    let handle = home.spawn(actor(async move |mut cx: Context<u64>| {
        while let Some(number) = cx.recv().await {
            assert!(
                !enters.swap(true, Ordering::Relaxed),
                "two handlers ran at the same time"
            );
            let before = counts.load(Ordering::Relaxed);
            std::hint::black_box(number);
            counts.store(before + 1, Ordering::Relaxed);
            enters.store(false, Ordering::Relaxed);
            if number % 100 == 0 {
                greenroom::yield_now().await;
            }
        }
    }));
    let senders = [(); SENDERS].map(|()| {
        let address = handle.address();
        elsewhere(move || (0..EACH).for_each(|number| address.tell(number).unwrap()))
    });
    senders.into_iter().for_each(Elsewhere::join);
    home.block_on(handle.join()).unwrap();
    assert_eq!(counter.load(Ordering::Relaxed), SENDERS as u64 * EACH);
}

fn an_actor_finishes_a_message_before_it_reads_the_next(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| {
        let mut steps = Vec::new();
        while let Some(number) = cx.recv().await {
            steps.push((number, "begun"));
            greenroom::yield_now().await;
            steps.push((number, "done"));
        }
        steps
    }));
    (0..100).for_each(|number| handle.tell(number).unwrap());
    let expected: Vec<_> = (0..100)
        .flat_map(|number| [(number, "begun"), (number, "done")])
        .collect();
    assert_eq!(home.block_on(handle.join()).unwrap(), expected);
}

fn order_is_kept_along_a_chain_of_actors(home: &Home) {
    let last = home.spawn(actor(async |mut cx: Context<u32>| {
        let mut all = Vec::new();
        while let Some(number) = cx.recv().await {
            all.push(number);
        }
        all
    }));
    let mut next = last.address();
    for _ in 0..10 {
        let to = next;
        let link = home.spawn(actor(async move |mut cx: Context<u32>| {
            while let Some(number) = cx.recv().await {
                to.tell(number).unwrap();
            }
        }));
        next = link.address();
    }
    (0..1_000).for_each(|number| next.tell(number).unwrap());
    drop(next);
    assert_eq!(
        home.block_on(last.join()).unwrap(),
        (0..1_000).collect::<Vec<_>>()
    );
}

fn a_message_that_races_with_the_actor_falling_asleep_wakes_it(home: &Home) {
    // In each round the actor becomes idle while the next message is in flight.
    let echo = home.spawn(actor(async |mut cx: Context<Reply<()>>| {
        while let Some(reply) = cx.recv().await {
            reply.send(());
        }
    }));
    for _ in 0..home.many(5_000) {
        drive(echo.ask(|reply| reply)).unwrap();
    }
    home.block_on(async {
        for _ in 0..home.many(5_000) {
            echo.ask(|reply| reply).await.unwrap();
        }
    });
}
