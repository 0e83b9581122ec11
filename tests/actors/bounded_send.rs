//! Bounded mailboxes: `send` waits for room in order of arrival, `tell` never waits.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use greenroom::{Context, actor};

use crate::support::{
    CountingWaker, Drops, Elsewhere, Gate, Home, drive, drive_elsewhere, in_every_home, panic_of,
    poll_once,
};

/// Collects messages until the mailbox is closed.
async fn collect(mut cx: Context<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(message) = cx.recv().await {
        all.push(message);
    }
    all
}

in_every_home!(
    tell_returns_full_and_the_message_when_there_is_no_room,
    a_mailbox_has_room_for_exactly_its_capacity,
    send_does_not_wait_while_there_is_room,
    waiting_senders_are_served_in_order_of_arrival,
    tell_returns_full_while_a_sender_waits,
    a_cancelled_send_leaves_the_line_and_drops_its_message,
    tell_is_accepted_again_after_the_only_waiting_send_was_cancelled,
    an_accepted_send_is_delivered_even_if_it_is_dropped_unpolled,
    a_send_that_was_never_polled_is_not_sent,
    stop_returns_the_messages_of_waiting_senders,
    kill_returns_the_messages_of_waiting_senders,
    an_actor_that_ends_returns_the_messages_of_waiting_senders,
    room_wakes_the_waker_that_polled_the_send_last,
    a_waiting_sender_is_woken_only_when_there_is_room_for_it,
    one_reader_serves_many_senders_on_many_threads,
    a_huge_capacity_works_like_any_other,
    a_send_polled_after_it_was_ready_panics,
    a_waiting_send_may_go_to_another_thread,
    try_recv_admits_waiting_senders,
    an_actor_may_wait_for_room_in_another_mailbox,
);

fn tell_returns_full_and_the_message_when_there_is_no_room(home: &Home) {
    let held = home.hold();
    let two = home.spawn(actor(async |mut cx: Context<String>| cx.recv().await).capacity(2));
    two.tell("a".into()).unwrap();
    two.tell("b".into()).unwrap();
    match two.tell("c".into()) {
        Err(full) if full.is_full() => assert_eq!(full.into_inner(), "c"),
        other => panic!("{other:?}"),
    }
    assert!(two.downgrade().tell("d".into()).unwrap_err().is_full());
    drop(held);
}

fn a_mailbox_has_room_for_exactly_its_capacity(home: &Home) {
    for capacity in [1, 2, 3, 47, 48, 49, 64, 65, 1000] {
        let held = home.hold();
        let handle = home.spawn(actor(collect).capacity(capacity as usize));
        for number in 0..capacity {
            handle.tell(number).unwrap();
        }
        assert!(
            handle
                .tell(9)
                .is_err_and(|it| it.is_full() && it.into_inner() == 9)
        );
        drop(held);
        let all = home.block_on(handle.join()).unwrap();
        assert_eq!(all, (0..capacity).collect::<Vec<_>>());
    }
}

fn send_does_not_wait_while_there_is_room(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(3));
    for number in 0..3 {
        assert!(matches!(
            poll_once(&mut handle.send(number)),
            Poll::Ready(Ok(()))
        ));
    }
    assert!(poll_once(&mut handle.send(3)).is_pending());
    let unbounded = home.spawn(actor(collect));
    for number in 0..1000 {
        assert!(matches!(
            poll_once(&mut unbounded.send(number)),
            Poll::Ready(Ok(()))
        ));
    }
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1, 2]);
    assert_eq!(home.block_on(unbounded.join()).unwrap().len(), 1000);
}

fn waiting_senders_are_served_in_order_of_arrival(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(2));
    let mut sends: Vec<_> = (0..50).map(|number| handle.send(number)).collect();
    for send in &mut sends {
        let _ = poll_once(send);
    }
    drop(held);
    // Polling them again in the opposite order changes nothing.
    for send in sends.into_iter().skip(2).rev() {
        drive(send).unwrap();
    }
    assert_eq!(
        home.block_on(handle.join()).unwrap(),
        (0..50).collect::<Vec<_>>()
    );
}

fn tell_returns_full_while_a_sender_waits(home: &Home) {
    let (step, gate) = (Gate::default(), Gate::default());
    let (steps, waits) = (step.clone(), gate.clone());
    let handle = home.spawn(
        actor(async move |mut cx: Context<u32>| {
            // Only the end of this turn admits the waiting sender, unless it was admitted before.
            let first = cx.recv().await;
            steps.open();
            waits.wait().await;
            let mut all = vec![first.unwrap()];
            while let Some(message) = cx.recv().await {
                all.push(message);
            }
            all
        })
        .capacity(1),
    );
    drive(handle.send(0)).unwrap();
    step.pass();
    handle.tell(1).unwrap();
    let mut waiting = handle.send(2);
    assert!(poll_once(&mut waiting).is_pending());
    let mut behind = handle.send(3);
    assert!(poll_once(&mut behind).is_pending());
    assert!(
        handle
            .tell(4)
            .is_err_and(|it| it.is_full() && it.into_inner() == 4)
    );
    gate.open();
    drive(waiting).unwrap();
    drive(behind).unwrap();
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1, 2, 3]);
}

fn a_cancelled_send_leaves_the_line_and_drops_its_message(home: &Home) {
    for cancelled in 0..3 {
        let held = home.hold();
        let drops = Drops::default();
        let handle = home.spawn(
            actor(async |mut cx: Context<(u32, _)>| {
                let mut order = Vec::new();
                while let Some((number, _)) = cx.recv().await {
                    order.push(number);
                }
                order
            })
            .capacity(1),
        );
        handle.tell((9, drops.one())).unwrap();
        let mut sends: Vec<_> = (0..3).map(|at| handle.send((at, drops.one()))).collect();
        sends
            .iter_mut()
            .for_each(|send| assert!(poll_once(send).is_pending()));
        drop(sends.remove(cancelled));
        assert_eq!(drops.count(), 1);
        drop(held);
        for send in sends {
            drive(send).unwrap();
        }
        let mut expected = vec![9, 0, 1, 2];
        expected.remove(cancelled + 1);
        assert_eq!(home.block_on(handle.join()).unwrap(), expected);
        assert_eq!(drops.count(), 4);
    }
}

fn tell_is_accepted_again_after_the_only_waiting_send_was_cancelled(home: &Home) {
    let (read, gate) = (Gate::default(), Gate::default());
    let (reads, waits) = (read.clone(), gate.clone());
    let held = home.hold();
    let handle = home.spawn(
        actor(async move |mut cx: Context<u32>| {
            let mut all = vec![cx.recv().await.unwrap()];
            reads.open();
            waits.wait().await;
            while let Some(message) = cx.recv().await {
                all.push(message);
            }
            all
        })
        .capacity(1),
    );
    handle.tell(0).unwrap();
    let mut waiting = handle.send(1);
    assert!(poll_once(&mut waiting).is_pending());
    drop(waiting);
    drop(held);
    read.pass();
    handle.tell(2).unwrap();
    gate.open();
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 2]);
}

fn an_accepted_send_is_delivered_even_if_it_is_dropped_unpolled(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(1));
    handle.tell(0).unwrap();
    let (woken, waker) = CountingWaker::new();
    let mut waiting = handle.send(1);
    let polled = Pin::new(&mut waiting).poll(&mut TaskContext::from_waker(&waker));
    assert!(polled.is_pending());
    drop(held);
    woken.pass();
    drop(waiting);
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1]);
}

fn a_send_that_was_never_polled_is_not_sent(home: &Home) {
    let drops = Drops::default();
    let handle = home.spawn(
        actor(async |mut cx: Context<_>| {
            let mut handled = 0;
            while cx.recv().await.is_some() {
                handled += 1;
            }
            handled
        })
        .capacity(1),
    );
    drop(handle.send(drops.one()));
    assert_eq!(drops.count(), 1);
    assert_eq!(home.block_on(handle.join()).unwrap(), 0);
}

/// Ends the actor with `end` while three senders wait. Returns the messages that the actor read, if
/// it was not killed.
fn end_while_senders_wait(home: &Home, end: fn(&greenroom::Address<u32>)) -> Option<Vec<u32>> {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(2));
    handle.tell(0).unwrap();
    handle.tell(1).unwrap();
    let wakers: Vec<_> = (0..3).map(|_| CountingWaker::new()).collect();
    let mut sends: Vec<_> = (2..5).map(|number| handle.send(number)).collect();
    for (send, (_, waker)) in sends.iter_mut().zip(&wakers) {
        assert!(
            Pin::new(send)
                .poll(&mut TaskContext::from_waker(waker))
                .is_pending()
        );
    }
    end(&handle);
    assert!(
        wakers.iter().all(|(woken, _)| woken.count() == 1),
        "every waiting sender is woken at once"
    );
    for (send, number) in sends.into_iter().zip(2..) {
        assert_eq!(drive(send).unwrap_err().into_inner(), number);
    }
    assert!(
        handle
            .tell(9)
            .is_err_and(|it| it.is_closed() && it.into_inner() == 9)
    );
    drop(held);
    home.block_on(handle.join()).ok()
}

fn stop_returns_the_messages_of_waiting_senders(home: &Home) {
    let read = end_while_senders_wait(home, |address| address.stop());
    assert_eq!(read, Some(vec![0, 1]), "accepted messages are delivered");
}

fn kill_returns_the_messages_of_waiting_senders(home: &Home) {
    assert_eq!(end_while_senders_wait(home, |address| address.kill()), None);
}

fn an_actor_that_ends_returns_the_messages_of_waiting_senders(home: &Home) {
    for panics in [false, true] {
        let gate = Gate::default();
        let waits = gate.clone();
        let handle = home.spawn(
            actor(async move |_cx: Context<u32>| {
                waits.wait().await;
                assert!(!panics, "bomb in an actor");
            })
            .capacity(1),
        );
        handle.tell(0).unwrap();
        let mut waiting = handle.send(1);
        assert!(poll_once(&mut waiting).is_pending());
        gate.open();
        assert_eq!(drive(waiting).unwrap_err().into_inner(), 1);
        assert_eq!(home.block_on(handle.join()).is_err(), panics);
    }
}

fn room_wakes_the_waker_that_polled_the_send_last(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(1));
    handle.tell(0).unwrap();
    let ((first, one), (second, two)) = (CountingWaker::new(), CountingWaker::new());
    let mut waiting = handle.send(1);
    for waker in [one, two] {
        let polled = Pin::new(&mut waiting).poll(&mut TaskContext::from_waker(&waker));
        assert!(polled.is_pending());
    }
    drop(held);
    second.pass();
    assert_eq!((first.count(), second.count()), (0, 1));
    assert!(matches!(poll_once(&mut waiting), Poll::Ready(Ok(()))));
    drop(waiting);
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1]);
}

fn a_waiting_sender_is_woken_only_when_there_is_room_for_it(home: &Home) {
    let gates: Vec<Gate> = (0..3).map(|_| Gate::default()).collect();
    let (waits, read) = (gates.clone(), Gate::default());
    let reads = read.clone();
    let held = home.hold();
    let handle = home.spawn(
        actor(async move |mut cx: Context<u32>| {
            let mut all = Vec::new();
            while let Some(message) = cx.recv().await {
                all.push(message);
                reads.open();
                if let Some(gate) = waits.get(all.len() - 1) {
                    gate.wait().await;
                }
            }
            all
        })
        .capacity(1),
    );
    handle.tell(0).unwrap();
    let wakers: Vec<_> = (0..3).map(|_| CountingWaker::new()).collect();
    let mut sends: Vec<_> = (1..4).map(|number| handle.send(number)).collect();
    for (send, (_, waker)) in sends.iter_mut().zip(&wakers) {
        assert!(
            Pin::new(send)
                .poll(&mut TaskContext::from_waker(waker))
                .is_pending()
        );
    }
    drop(held);
    read.pass();
    // One message was read, so there is room for one more message, that of the first sender.
    let counts: Vec<_> = wakers.iter().map(|(woken, _)| woken.count()).collect();
    assert_eq!(counts, [1, 0, 0]);
    gates.iter().for_each(Gate::open);
    for send in sends {
        drive(send).unwrap();
    }
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1, 2, 3]);
}

fn one_reader_serves_many_senders_on_many_threads(home: &Home) {
    const SENDERS: u32 = 4;
    let each = home.many(2_000) as u32;
    let handle = home.spawn(actor(collect).capacity(3));
    let senders = [0, 1, 2, 3].map(|sender| {
        let address = handle.address();
        drive_elsewhere(async move {
            for number in 0..each {
                address.send(sender * each + number).await.unwrap();
            }
        })
    });
    senders.into_iter().for_each(Elsewhere::join);
    let all = home.block_on(handle.join()).unwrap();
    for sender in 0..SENDERS {
        let own = sender * each..(sender + 1) * each;
        let read: Vec<_> = all
            .iter()
            .copied()
            .filter(|number| own.contains(number))
            .collect();
        assert_eq!(
            read,
            own.collect::<Vec<_>>(),
            "the messages of a sender arrive in the order in which they were sent"
        );
    }
    assert_eq!(all.len(), (SENDERS * each) as usize);
}

fn a_huge_capacity_works_like_any_other(home: &Home) {
    let handle = home.spawn(actor(collect).capacity(usize::MAX));
    for number in 0..10 {
        handle.tell(number).unwrap();
    }
    drive(handle.send(10)).unwrap();
    assert_eq!(home.block_on(handle.join()).unwrap().len(), 11);
}

fn a_send_polled_after_it_was_ready_panics(home: &Home) {
    let handle = home.spawn(actor(collect).capacity(1));
    let mut send = handle.send(1);
    drive(&mut send).unwrap();
    let (text, ..) = panic_of(|| poll_once(&mut send));
    assert!(text.contains("`send` polled after it was ready"), "{text}");
}

fn a_waiting_send_may_go_to_another_thread(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(collect).capacity(1));
    handle.tell(0).unwrap();
    let mut sends: Vec<_> = (1..9)
        .map(|number| {
            let address = handle.address();
            Box::pin(async move { address.send(number).await })
        })
        .collect();
    sends
        .iter_mut()
        .for_each(|send| assert!(poll_once(send).is_pending()));
    let sends = sends.into_iter().enumerate();
    let sends: Vec<_> = sends
        .map(|(at, send)| {
            // Every fourth is dropped there, whether it still waits or was admitted.
            drive_elsewhere(async move {
                if at % 4 == 3 {
                    drop(send)
                } else {
                    send.await.unwrap()
                }
            })
        })
        .collect();
    drop(held);
    sends.into_iter().for_each(Elsewhere::join);
    let mut all = home.block_on(handle.join()).unwrap();
    all.retain(|number| number % 4 != 0);
    assert_eq!(all, [1, 2, 3, 5, 6, 7]);
}

fn try_recv_admits_waiting_senders(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(
        actor(async |mut cx: Context<u32>| {
            let mut all = Vec::new();
            while let Some(message) = cx.try_recv() {
                all.push(message);
            }
            all
        })
        .capacity(2),
    );
    let mut sends: Vec<_> = (0..10).map(|number| handle.send(number)).collect();
    for send in &mut sends {
        let _ = poll_once(send);
    }
    drop(held);
    home.block_on(handle.closed());
    drop(sends);
    let all = home.block_on(handle.join()).unwrap();
    assert_eq!(all, (0..10).collect::<Vec<_>>());
}

fn an_actor_may_wait_for_room_in_another_mailbox(home: &Home) {
    let last = home.spawn(actor(collect).capacity(1));
    let next = last.address();
    let first = home.spawn(
        actor(async move |mut cx: Context<u32>| {
            while let Some(number) = cx.recv().await {
                next.send(number).await.unwrap();
            }
        })
        .capacity(1),
    );
    home.block_on(async {
        for number in 0..500 {
            first.send(number).await.unwrap();
        }
        first.join().await.unwrap();
        assert_eq!(last.join().await.unwrap(), (0..500).collect::<Vec<_>>());
    });
}
