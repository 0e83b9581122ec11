//! `recv` wherever a future can be used: selected, raced, moved, and polled by combinators.

use std::pin::Pin;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use futures::future::{Either, FutureExt, select};
use futures::stream::{FuturesUnordered, StreamExt};
use greenroom::{Context, actor};

use crate::support::{
    Drops, Gate, Home, drive, drive_elsewhere, in_every_home, open_when_pending, poll_here,
    received,
};

in_every_home!(
    a_recv_that_is_dropped_takes_no_message,
    a_recv_that_loses_a_race_takes_no_message,
    a_message_wakes_a_recv_inside_select,
    a_message_wakes_a_recv_inside_futures_unordered,
    a_recv_polled_directly_and_then_by_a_combinator_is_woken,
    a_recv_polled_by_a_combinator_and_then_directly_is_woken,
    stop_and_kill_wake_a_recv_on_another_thread,
    a_context_may_be_read_in_another_task,
    a_context_may_be_read_on_another_thread,
    a_context_may_return_to_its_actor,
    an_actor_that_ends_closes_the_context_it_gave_away,
    an_actor_that_ends_drops_the_messages_of_a_context_that_lives_on,
    a_context_given_away_keeps_its_order_and_its_batch,
    try_recv_takes_queued_messages_and_does_not_wait,
    recv_and_try_recv_share_one_order,
    messages_do_not_wake_a_handler_that_awaits_another_future,
    a_timeout_around_recv_loses_no_message,
    a_recv_that_was_polled_in_an_earlier_turn_is_woken,
);

/// Waits until the actor that opens this gate is dormant; its turn is over too.
fn asleep(home: &Home, waiting: &Gate) {
    waiting.pass();
    drop(home.hold());
}

fn a_recv_that_is_dropped_takes_no_message(home: &Home) {
    let drops = Drops::default();
    let (waiting, told) = (Gate::default(), Gate::default());
    let (waits, go_on) = (waiting.clone(), told.clone());
    let handle = home.spawn(actor(async move |mut cx: Context<_>| {
        let mut recv = cx.recv();
        assert!(poll_here(&mut recv).await.is_pending());
        waits.open();
        go_on.wait().await;
        // Now there are messages for the `recv`, which has not been polled again.
        drop(recv);
        let mut numbers = Vec::new();
        while let Some((number, _)) = cx.recv().await {
            numbers.push(number);
        }
        numbers
    }));
    asleep(home, &waiting);
    for number in 0..3 {
        handle.tell((number, drops.one())).unwrap();
    }
    told.open();
    assert_eq!(home.block_on(handle.join()).unwrap(), [0, 1, 2]);
    assert_eq!(drops.count(), 3);
}

fn a_recv_that_loses_a_race_takes_no_message(home: &Home) {
    let lost = Gate::default();
    let loses = lost.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let mut all = Vec::new();
        loop {
            // The other future is ready at its second poll, whatever the mailbox contains.
            let other = std::pin::pin!(greenroom::yield_now());
            match select(other, cx.recv()).await {
                Either::Left(_) => loses.open(),
                Either::Right((Some(number), _)) => all.push(number),
                Either::Right((None, _)) => return all,
            }
        }
    }));
    lost.pass();
    for number in 0..100 {
        handle.tell(number).unwrap();
        std::thread::yield_now();
    }
    assert_eq!(
        home.block_on(handle.join()).unwrap(),
        (0..100).collect::<Vec<_>>()
    );
}

fn a_message_wakes_a_recv_inside_select(home: &Home) {
    let waiting = Gate::default();
    let waits = waiting.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let never = std::future::pending::<()>();
        let race = select(cx.recv(), never);
        match open_when_pending(waits, race).await {
            Either::Left((message, _)) => message,
            Either::Right(_) => unreachable!(),
        }
    }));
    asleep(home, &waiting);
    handle.tell(7).unwrap();
    home.block_on(handle.closed());
    assert_eq!(home.block_on(handle.join()).unwrap(), Some(7));
}

fn a_message_wakes_a_recv_inside_futures_unordered(home: &Home) {
    let waiting = Gate::default();
    let waits = waiting.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let mut all = FuturesUnordered::new();
        all.push(cx.recv().left_future());
        all.push(std::future::pending().right_future());
        open_when_pending(waits, all.next()).await
    }));
    asleep(home, &waiting);
    handle.tell(7).unwrap();
    home.block_on(handle.closed());
    assert_eq!(home.block_on(handle.join()).unwrap(), Some(Some(7)));
}

fn a_recv_polled_directly_and_then_by_a_combinator_is_woken(home: &Home) {
    for suspend_between in [false, true] {
        let (between, go_on, waiting) = (Gate::default(), Gate::default(), Gate::default());
        let (comes_between, waits_between, waits) =
            (between.clone(), go_on.clone(), waiting.clone());
        let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
            let mut recv = cx.recv();
            assert!(poll_here(&mut recv).await.is_pending());
            if suspend_between {
                open_when_pending(comes_between, waits_between.wait()).await;
            }
            // From here on the `recv` is polled with a waker of the set.
            let mut all = FuturesUnordered::from_iter([recv]);
            open_when_pending(waits, all.next()).await
        }));
        if suspend_between {
            asleep(home, &between);
            go_on.open();
        }
        asleep(home, &waiting);
        handle.tell(7).unwrap();
        home.block_on(handle.closed());
        assert_eq!(home.block_on(handle.join()).unwrap(), Some(Some(7)));
    }
}

fn a_recv_polled_by_a_combinator_and_then_directly_is_woken(home: &Home) {
    for suspend_between in [false, true] {
        let (between, go_on, waiting) = (Gate::default(), Gate::default(), Gate::default());
        let (comes_between, waits_between, waits) =
            (between.clone(), go_on.clone(), waiting.clone());
        let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
            let mut recv = cx.recv();
            {
                let mut all = FuturesUnordered::from_iter([&mut recv]);
                assert!(poll_here(&mut all.next()).await.is_pending());
            }
            if suspend_between {
                open_when_pending(comes_between, waits_between.wait()).await;
            }
            open_when_pending(waits, recv).await
        }));
        if suspend_between {
            asleep(home, &between);
            go_on.open();
        }
        asleep(home, &waiting);
        handle.tell(7).unwrap();
        home.block_on(handle.closed());
        assert_eq!(home.block_on(handle.join()).unwrap(), Some(7));
    }
}

fn stop_and_kill_wake_a_recv_on_another_thread(home: &Home) {
    for kill in [false, true] {
        let (waiting, ended) = (Gate::default(), Gate::default());
        let (waits, ends) = (waiting.clone(), ended.clone());
        let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
            drive_elsewhere(async move {
                let message = open_when_pending(waits, cx.recv()).await;
                assert_eq!(message, None);
                ends.open();
            });
            std::future::pending::<()>().await;
        }));
        asleep(home, &waiting);
        if kill {
            handle.kill()
        } else {
            handle.stop()
        }
        ended.pass();
        handle.kill();
        assert!(home.block_on(handle.join()).is_err());
    }
}

fn a_context_may_be_read_in_another_task(home: &Home) {
    let waiting = Gate::default();
    let waits = waiting.clone();
    let runtime = home.runtime.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let reader = runtime.spawn(async move {
            let mut all = vec![open_when_pending(waits, cx.recv()).await.unwrap()];
            while let Some(number) = cx.recv().await {
                all.push(number);
            }
            all
        });
        drop(runtime);
        reader.await
    }));
    asleep(home, &waiting);
    (0..500).for_each(|number| handle.tell(number).unwrap());
    assert_eq!(
        home.block_on(handle.join()).unwrap(),
        (0..500).collect::<Vec<_>>()
    );
}

fn a_context_may_be_read_on_another_thread(home: &Home) {
    let waiting = Gate::default();
    let waits = waiting.clone();
    let (out, read) = mpsc::channel();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let done = Gate::default();
        let ends = done.clone();
        drive_elsewhere(async move {
            out.send(open_when_pending(waits, cx.recv()).await.unwrap())
                .unwrap();
            while let Some(number) = cx.recv().await {
                out.send(number).unwrap();
            }
            ends.open();
        });
        done.wait().await;
    }));
    asleep(home, &waiting);
    for number in 0..500 {
        handle.tell(number).unwrap();
        // One message at a time, so that each must wake the thread.
        assert_eq!(received(&read), number);
    }
    home.block_on(handle.join()).unwrap();
}

fn a_context_may_return_to_its_actor(home: &Home) {
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let mut all = Vec::new();
        loop {
            let (back, comes) = futures::channel::oneshot::channel();
            drive_elsewhere(async move {
                let message = cx.recv().await;
                assert!(back.send((message, cx)).is_ok());
            });
            let (message, returned) = comes.await.unwrap();
            cx = returned;
            all.extend(message);
            match cx.recv().await {
                Some(number) => all.push(number),
                None => return all,
            }
        }
    }));
    (0..101).for_each(|number| handle.tell(number).unwrap());
    assert_eq!(
        home.block_on(handle.join()).unwrap(),
        (0..101).collect::<Vec<_>>()
    );
}

fn an_actor_that_ends_closes_the_context_it_gave_away(home: &Home) {
    let (drops, waiting, gate) = (Drops::default(), Gate::default(), Gate::default());
    let (waits, end) = (waiting.clone(), gate.clone());
    let (out, read) = mpsc::channel();
    let handle = home.spawn(actor(async move |mut cx: Context<_>| {
        drive_elsewhere(async move {
            let message = open_when_pending(waits, cx.recv()).await;
            out.send(message.is_none()).unwrap();
        });
        end.wait().await;
    }));
    asleep(home, &waiting);
    gate.open();
    assert!(received(&read));
    home.block_on(handle.closed());
    assert!(handle.tell(drops.one()).unwrap_err().is_closed());
    assert_eq!(drops.count(), 1);
}

fn an_actor_that_ends_drops_the_messages_of_a_context_that_lives_on(home: &Home) {
    let drops = Drops::default();
    let (out, context) = mpsc::channel();
    let gate = Gate::default();
    let end = gate.clone();
    let handle = home.spawn(actor(async move |cx: Context<_>| {
        out.send(cx).unwrap();
        end.wait().await;
    }));
    let mut cx = received(&context);
    (0..10).for_each(|_| handle.tell(drops.one()).unwrap());
    gate.open();
    home.block_on(handle.closed());
    assert_eq!(drops.count(), 10);
    assert!(cx.try_recv().is_none());
    assert!(drive(cx.recv()).is_none());
}

fn a_context_given_away_keeps_its_order_and_its_batch(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        // The first `recv` takes a batch; the rest of the batch moves to the other thread with the
        // context.
        let mut all = vec![cx.recv().await.unwrap()];
        let (back, comes) = futures::channel::oneshot::channel();
        drive_elsewhere(async move {
            while let Some(number) = cx.recv().await {
                all.push(number);
            }
            assert!(back.send(all).is_ok());
        });
        comes.await.unwrap()
    }));
    (0..300).for_each(|number| handle.tell(number).unwrap());
    drop(held);
    assert_eq!(
        home.block_on(handle.join()).unwrap(),
        (0..300).collect::<Vec<_>>()
    );
}

fn try_recv_takes_queued_messages_and_does_not_wait(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(async |mut cx: Context<u32>| {
        let mut all = Vec::new();
        while let Some(number) = cx.try_recv() {
            all.push(number);
        }
        (all, cx.try_recv())
    }));
    (0..200).for_each(|number| handle.tell(number).unwrap());
    drop(held);
    // The mailbox is never closed: the actor ends only because `try_recv` did not wait.
    home.block_on(handle.closed());
    let (all, none) = home.block_on(handle.join()).unwrap();
    assert_eq!((all, none), ((0..200).collect::<Vec<_>>(), None));
}

fn recv_and_try_recv_share_one_order(home: &Home) {
    for capacity in [10, usize::MAX] {
        let handle = home.spawn(
            actor(async |mut cx: Context<u32>| {
                let mut all = Vec::new();
                while let Some(number) = cx.recv().await {
                    all.push(number);
                    all.extend(cx.try_recv());
                }
                all
            })
            .capacity(capacity),
        );
        (0..1_000).for_each(|number| drive(handle.send(number)).unwrap());
        assert_eq!(
            home.block_on(handle.join()).unwrap(),
            (0..1_000).collect::<Vec<_>>()
        );
    }
}

fn messages_do_not_wake_a_handler_that_awaits_another_future(home: &Home) {
    let (waiting, gate) = (Gate::default(), Gate::default());
    let (waits, go_on) = (waiting.clone(), gate.clone());
    let (polls, count) = mpsc::channel();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        cx.recv().await;
        let mut go_on = Box::pin(go_on.wait());
        std::future::poll_fn(|task| {
            polls.send(()).unwrap();
            let polled = go_on.as_mut().poll(task);
            waits.open();
            polled
        })
        .await;
    }));
    handle.tell(0).unwrap();
    asleep(home, &waiting);
    (1..100).for_each(|number| handle.tell(number).unwrap());
    gate.open();
    home.block_on(handle.join()).unwrap();
    // Once at the start, and once because the gate was opened.
    assert!(count.try_iter().count() <= 2);
}

fn a_timeout_around_recv_loses_no_message(home: &Home) {
    let handle = home.spawn(actor(async |mut cx: Context<u32>| {
        let mut all = Vec::new();
        loop {
            // So short that the timeout often fires first.
            match greenroom::time::timeout(Duration::from_micros(1), cx.recv()).await {
                Ok(Some(number)) => all.push(number),
                Ok(None) => return all,
                Err(_) => {}
            }
        }
    }));
    for number in 0..200 {
        handle.tell(number).unwrap();
        std::thread::yield_now();
    }
    assert_eq!(
        home.block_on(handle.join()).unwrap(),
        (0..200).collect::<Vec<_>>()
    );
}

/// A combinator polls one of its futures per turn.
fn a_recv_that_was_polled_in_an_earlier_turn_is_woken(home: &Home) {
    let waiting = Gate::default();
    let waits = waiting.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let mut recv = cx.recv();
        let mut turns = 0;
        std::future::poll_fn(|cx| {
            turns += 1;
            match turns {
                1 => {
                    assert!(Pin::new(&mut recv).poll(cx).is_pending());
                    // Requests the turn of the other future, which never becomes ready.
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                2 => {
                    waits.open();
                    Poll::Pending
                }
                _ => Pin::new(&mut recv).poll(cx),
            }
        })
        .await
    }));
    asleep(home, &waiting);
    handle.tell(7).unwrap();
    assert_eq!(home.block_on(handle.join()).unwrap(), Some(7));
}
