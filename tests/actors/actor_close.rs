//! How an actor is closed and how it ends: `stop`, the last address, `closed`, `is_closed`.

use greenroom::{Address, Context, Fault, actor};

use crate::support::{Drops, Gate, Home, Log, OpenOnDrop, in_every_home};

/// Collects messages until the mailbox is closed.
async fn collect(mut cx: Context<u32>) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(message) = cx.recv().await {
        all.push(message);
    }
    all
}

in_every_home!(
    stop_delivers_accepted_messages_and_then_none,
    tell_and_send_after_stop_return_the_message,
    a_weak_address_of_a_closed_actor_cannot_be_upgraded,
    a_refused_upgrade_leaves_the_count_of_addresses_unchanged,
    the_last_address_closes_the_actor,
    a_weak_address_does_not_keep_the_actor_open,
    an_upgraded_address_keeps_the_actor_open,
    a_second_stop_has_no_effect,
    recv_returns_none_repeatedly_after_the_end,
    closed_resolves_after_the_state_is_dropped,
    closed_resolves_for_all_waiters_and_at_once_afterwards,
    is_closed_is_true_before_the_actor_has_ended,
    an_actor_that_returns_drops_its_unread_messages,
    a_context_that_is_dropped_early_closes_the_mailbox,
    an_actor_that_stops_itself_still_reads_accepted_messages,
    the_context_returns_addresses_of_its_own_actor,
    the_result_waits_in_the_handle_after_the_end,
);

fn stop_delivers_accepted_messages_and_then_none(home: &Home) {
    let held = home.hold();
    let all = home.spawn(actor(collect));
    for number in 0..200 {
        all.tell(number).unwrap();
    }
    all.stop();
    drop(held);
    let read = home.block_on(all.join()).unwrap();
    assert_eq!(read, (0..200).collect::<Vec<_>>());
}

fn tell_and_send_after_stop_return_the_message(home: &Home) {
    home.block_on(async {
        for capacity in [None, Some(1), Some(10)] {
            let gate = Gate::default();
            let waits = gate.clone();
            let ends_late = actor(async move |mut cx: Context<String>| {
                waits.wait().await;
                cx.recv().await
            });
            let ends_late = match capacity {
                Some(capacity) => home.spawn(ends_late.capacity(capacity)),
                None => home.spawn(ends_late),
            };
            ends_late.stop();
            match ends_late.tell("told".into()) {
                Err(closed) if closed.is_closed() => assert_eq!(closed.into_inner(), "told"),
                other => panic!("{other:?}"),
            }
            assert!(
                ends_late
                    .downgrade()
                    .tell("weakly".into())
                    .unwrap_err()
                    .is_closed()
            );
            assert_eq!(
                ends_late
                    .send("sent".into())
                    .await
                    .unwrap_err()
                    .into_inner(),
                "sent"
            );
            gate.open();
            assert_eq!(
                ends_late
                    .address()
                    .tell("x".into())
                    .unwrap_err()
                    .into_inner(),
                "x"
            );
            assert_eq!(ends_late.join().await.unwrap(), None);
        }
    });
}

fn a_weak_address_of_a_closed_actor_cannot_be_upgraded(home: &Home) {
    home.block_on(async {
        let gate = Gate::default();
        let waits = gate.clone();
        let alive = home.spawn(actor(async move |_cx: Context<u32>| waits.wait().await));
        let weak = alive.downgrade();
        assert!(weak.upgrade().is_some());
        alive.stop();
        assert!(
            weak.upgrade().is_none(),
            "closing is final even while the actor lives"
        );
        gate.open();
        alive.closed().await;
        assert!(weak.upgrade().is_none());
    });
}

fn a_refused_upgrade_leaves_the_count_of_addresses_unchanged(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let state = drops.one();
        let stopped = home.spawn(actor(async move |cx: Context<u32>| {
            let _state = state;
            drop(cx);
        }));
        let weak = stopped.downgrade();
        stopped.stop();
        for _ in 0..10 {
            assert!(weak.upgrade().is_none());
        }
        stopped.closed().await;
        let others: Vec<_> = (0..10).map(|_| stopped.address()).collect();
        for _ in 0..10 {
            assert!(weak.upgrade().is_none());
        }
        // The counts are right if all of these addresses still work.
        assert!(
            others
                .iter()
                .all(|other| other.is_closed() && *other == *stopped)
        );
        drop(others);
        assert!(stopped.tell(1).unwrap_err().is_closed());
        stopped.join().await.unwrap();
        assert!(weak.tell(1).unwrap_err().is_closed());
        assert_eq!(drops.count(), 1);
    });
}

fn the_last_address_closes_the_actor(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(collect));
        let (first, second) = (handle.address(), handle.address());
        let join = handle.join();
        first.tell(1).unwrap();
        drop(first);
        second.tell(2).unwrap();
        assert!(!second.is_closed());
        drop(second);
        assert_eq!(join.await.unwrap(), [1, 2]);
    });
}

fn a_weak_address_does_not_keep_the_actor_open(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(collect));
        let weak = handle.downgrade();
        weak.tell(1).unwrap();
        weak.clone().tell(2).unwrap();
        assert_eq!(handle.join().await.unwrap(), [1, 2]);
        assert!(weak.is_closed());
        assert!(
            weak.tell(3)
                .is_err_and(|it| it.is_closed() && it.into_inner() == 3)
        );
    });
}

fn an_upgraded_address_keeps_the_actor_open(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(collect));
        let upgraded = handle.downgrade().upgrade().unwrap();
        let join = handle.join();
        upgraded.tell(1).unwrap();
        assert!(!upgraded.is_closed());
        drop(upgraded);
        assert_eq!(join.await.unwrap(), [1]);
    });
}

fn a_second_stop_has_no_effect(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(collect));
        handle.tell(1).unwrap();
        handle.stop();
        handle.stop();
        handle.closed().await;
        handle.stop();
        assert_eq!(handle.join().await.unwrap(), [1]);
    });
}

fn recv_returns_none_repeatedly_after_the_end(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(async |mut cx: Context<u32>| {
            (
                cx.recv().await,
                cx.recv().await,
                cx.recv().await,
                cx.try_recv(),
            )
        }));
        handle.tell(1).unwrap();
        assert_eq!(handle.join().await.unwrap(), (Some(1), None, None, None));
    });
}

fn closed_resolves_after_the_state_is_dropped(home: &Home) {
    home.block_on(async {
        let (drops, captured, last_words) = (Drops::default(), Drops::default(), Log::default());
        let (argument, log) = (captured.one(), last_words.clone());
        let state = drops.clone();
        let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
            let _argument = argument;
            let _state = state.one();
            while cx.recv().await.is_some() {}
            log.add("read all");
        }));
        handle.stop();
        handle.closed().await;
        assert_eq!((drops.count(), captured.count()), (1, 1));
        assert_eq!(last_words.take(), ["read all"]);
        handle.join().await.unwrap();
    });
}

fn closed_resolves_for_all_waiters_and_at_once_afterwards(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(collect));
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let address = handle.address();
                home.spawn_task(async move { address.closed().await })
            })
            .collect();
        handle.stop();
        for waits in waiting {
            waits.await;
        }
        handle.closed().await;
    });
}

fn is_closed_is_true_before_the_actor_has_ended(home: &Home) {
    home.block_on(async {
        let (gate, ended) = (Gate::default(), Gate::default());
        let (waits, end) = (gate.clone(), OpenOnDrop(ended.clone()));
        let handle = home.spawn(actor(async move |_cx: Context<u32>| {
            let _end = end;
            waits.wait().await;
        }));
        assert!(!handle.is_closed());
        handle.stop();
        assert!(handle.is_closed());
        assert!(!ended.is_open());
        gate.open();
        handle.closed().await;
        assert!(ended.is_open() && handle.is_closed());
    });
}

fn an_actor_that_returns_drops_its_unread_messages(home: &Home) {
    let held = home.hold();
    let drops = Drops::default();
    let handle = home.spawn(actor(async |mut cx: Context<_>| {
        drop(cx.recv().await);
        "enough"
    }));
    for _ in 0..100 {
        handle.tell(drops.one()).unwrap();
    }
    drop(held);
    home.block_on(async {
        handle.closed().await;
        assert_eq!(drops.count(), 100);
        assert!(handle.tell(drops.one()).unwrap_err().is_closed());
        assert_eq!(handle.join().await.unwrap(), "enough");
    });
}

fn a_context_that_is_dropped_early_closes_the_mailbox(home: &Home) {
    let held = home.hold();
    let (dropped, gate, drops) = (Gate::default(), Gate::default(), Drops::default());
    let (tells, waits) = (dropped.clone(), gate.clone());
    let handle = home.spawn(actor(async move |cx: Context<_>| {
        drop(cx);
        tells.open();
        waits.wait().await;
        "ended later"
    }));
    handle.tell(drops.one()).unwrap();
    drop(held);
    dropped.pass();
    assert!(handle.is_closed());
    assert_eq!(drops.count(), 1);
    assert!(handle.tell(drops.one()).unwrap_err().is_closed());
    gate.open();
    assert_eq!(home.block_on(handle.join()).unwrap(), "ended later");
}

fn an_actor_that_stops_itself_still_reads_accepted_messages(home: &Home) {
    let held = home.hold();
    let handle = home.spawn(actor(async |mut cx: Context<u32>| {
        cx.stop();
        let mut read = Vec::new();
        while let Some(number) = cx.recv().await {
            read.push(number);
            assert!(cx.address().tell(9).unwrap_err().is_closed());
        }
        read
    }));
    handle.tell(1).unwrap();
    handle.tell(2).unwrap();
    drop(held);
    assert_eq!(home.block_on(handle.join()).unwrap(), [1, 2]);
}

fn the_context_returns_addresses_of_its_own_actor(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(async |mut cx: Context<u32>| {
            let own: Address<u32> = cx.address();
            let first = cx.recv().await.unwrap();
            own.tell(first + 1).unwrap();
            (
                own == cx.address(),
                own.downgrade() == cx.downgrade(),
                cx.recv().await,
            )
        }));
        handle.tell(1).unwrap();
        let address = handle.address();
        assert_eq!(handle.join().await.unwrap(), (true, true, Some(2)));
        assert!(address.is_closed());
    });
}

fn the_result_waits_in_the_handle_after_the_end(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let result = drops.one();
        let handle = home.spawn(actor(async move |_cx: Context<u32>| result));
        handle.closed().await;
        assert_eq!(drops.count(), 0, "only the result still exists");
        let result: Result<_, Fault> = handle.join().await;
        assert_eq!(drops.count(), 0);
        drop(result.unwrap());
        assert_eq!(drops.count(), 1);
    });
}
