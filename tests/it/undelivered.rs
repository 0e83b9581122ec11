//! Messages that are accepted and never handled, and places for messages that do not exist yet.

use std::future::pending;

use greenroom::{Address, Context, End, Permit, actor};

use crate::support::{Bomb, Drops, Home, Log, in_every_home, keep_bombs_quiet};

in_every_home!(
    every_message_is_handled_or_undelivered_once_and_in_order,
    undelivered_messages_are_passed_before_the_end_is_seen,
    the_message_of_a_permit_is_undelivered_after_the_end,
    a_permit_counts_as_an_accepted_message,
);

/// Handles one message, then ends in the given way.
async fn handles_one(mut cx: Context<u32>, handled: Log<u32>, end: End) {
    handled.add(cx.recv().await.unwrap());
    match end {
        End::Panicked => drop(Bomb::new(true, &Drops::default())),
        End::Killed => {
            cx.address().kill();
            pending().await
        }
        _ => {}
    }
}

fn every_message_is_handled_or_undelivered_once_and_in_order(home: &Home) {
    keep_bombs_quiet();
    for end in [End::Returned, End::Panicked, End::Killed] {
        let (handled, undelivered) = (Log::default(), Log::default());
        let (first, rest) = (handled.clone(), undelivered.clone());
        let held = home.hold();
        let handle = home.spawn(
            actor(move |cx| handles_one(cx, first, end))
                .on_undelivered(move |number| rest.add(number)),
        );
        for number in 0..100 {
            handle.tell(number).unwrap();
        }
        drop(held);
        assert_eq!(home.block_on(handle.ended()), end);
        assert_eq!(handled.take(), [0]);
        assert!(undelivered.take().into_iter().eq(1..100));
        drop(home.block_on(handle.join()));
    }
}

fn undelivered_messages_are_passed_before_the_end_is_seen(home: &Home) {
    let (own, seen) = (Log::<Address<u32>>::default(), Log::default());
    let (address, ends) = (own.clone(), seen.clone());
    let held = home.hold();
    let handle = home.spawn(actor(async |_: Context<u32>| {}).on_undelivered(move |_| {
        let address = address.take().pop().unwrap();
        let mut ended = std::pin::pin!(address.ended());
        ends.add(crate::support::poll_once(&mut ended).is_ready());
    }));
    own.add(handle.address());
    handle.tell(1).unwrap();
    drop(held);
    home.block_on(handle.join()).unwrap();
    assert_eq!(seen.take(), [false]);
}

fn the_message_of_a_permit_is_undelivered_after_the_end(home: &Home) {
    let undelivered = Log::default();
    let log = undelivered.clone();
    let handle = home.spawn(
        actor(async |_: Context<u32>| pending::<()>().await)
            .on_undelivered(move |number| log.add(number)),
    );
    home.block_on(async {
        let permits: [Permit<u32>; 2] = [
            handle.reserve().await.unwrap(),
            handle.reserve().await.unwrap(),
        ];
        handle.kill();
        assert_eq!(handle.ended().await, End::Killed);
        for (number, permit) in permits.into_iter().enumerate() {
            permit.send(number as u32);
            // In a simulation the message may arrive in a later step.
            while undelivered.len() == 0 {
                greenroom::yield_now().await;
            }
            assert_eq!(undelivered.take(), [number as u32]);
        }
    });
}

fn a_permit_counts_as_an_accepted_message(home: &Home) {
    let handle = home.spawn(
        actor(async |mut cx: Context<u32>| {
            let mut all = Vec::new();
            while let Some(number) = cx.recv().await {
                all.push(number);
            }
            all
        })
        .capacity(2),
    );
    home.block_on(async {
        let filled = handle.reserve().await.unwrap();
        let given_up = handle.reserve().await.unwrap();
        assert!(handle.tell(1).unwrap_err().is_full());
        handle.stop();
        assert!(handle.reserve().await.is_err());
        drop(given_up);
        filled.send(2);
        assert_eq!(handle.join().await.unwrap(), [2]);
    });
}
