//! `kill`: the actor is dropped at its next suspension, and its messages at once.

use std::any::Any;

use greenroom::{AskDetail, AskError, Context, Fault, Reply, WeakAddress, actor};

use crate::support::{
    Dropped, Drops, Gate, Home, Log, OpenOnDrop, WATCH, drive, in_every_home, on_threads,
    open_when_pending, poll_once, within,
};

// A handler blocks its thread until the actor is killed.
on_threads!(
    a_running_handler_continues_to_its_next_suspension_after_a_kill,
    a_killed_actor_handles_no_other_message,
    the_drops_of_messages_run_after_the_actor_counts_as_killed,
);

in_every_home!(
    a_killed_actor_joins_with_killed,
    a_waiting_handler_is_dropped_where_it_waits,
    messages_not_handled_are_dropped_at_once,
    every_ask_among_the_messages_gets_no_reply_at_once,
    an_ask_being_handled_gets_no_reply_when_its_handler_is_dropped,
    an_actor_that_kills_itself_handles_no_other_message,
    an_actor_that_was_never_polled_can_be_killed,
    kill_after_the_end_has_no_effect,
    kill_after_stop_drops_the_accepted_messages,
    kill_ends_a_recv_of_the_context_in_another_task,
);

/// A message whose drop waits for the end of the actor that it was sent to.
struct WaitsForTheEnd(
    WeakAddress<WaitsForTheEnd>,
    #[expect(dead_code, reason = "counted by its drop")] Dropped,
);

impl Drop for WaitsForTheEnd {
    fn drop(&mut self) {
        drive(self.0.closed());
    }
}

/// Spawns an actor that has two such messages and never receives them.
fn with_messages_that_wait(home: &Home, drops: &Drops) -> greenroom::Handle<WaitsForTheEnd, ()> {
    let pending = Gate::default();
    let waits = pending.clone();
    let handle = home.spawn(actor(|cx: Context<WaitsForTheEnd>| async move {
        let _cx = cx;
        open_when_pending(waits, std::future::pending::<()>()).await;
    }));
    pending.pass();
    for _ in 0..2 {
        let message = WaitsForTheEnd(handle.downgrade(), drops.one());
        handle.tell(message).unwrap();
    }
    handle
}

#[test]
fn a_message_whose_drop_awaits_the_end_of_its_actor_does_not_block_kill() {
    Home::watch(
        || Home::workers(1),
        |home| {
            let drops = Drops::default();
            let handle = with_messages_that_wait(home, &drops);
            handle.kill();
            assert_eq!(drops.count(), 2);
            assert!(matches!(home.block_on(handle.join()), Err(Fault::Killed)));
        },
    );
}

#[test]
fn a_message_whose_drop_awaits_the_end_of_its_actor_does_not_block_shutdown() {
    Home::watch(
        || {
            Home::built(
                1,
                greenroom::Runtime::builder().grace(std::time::Duration::ZERO),
            )
        },
        |home| {
            let drops = Drops::default();
            let _handle = with_messages_that_wait(home, &drops);
            let report = drive(home.runtime.shutdown());
            assert_eq!((report.cancelled, report.unhandled), (1, 2));
            assert_eq!(drops.count(), 2);
        },
    );
}

/// The drop of a split actor waits until the actor has ended.
#[test]
fn a_split_actor_that_was_sent_to_itself_is_killed() {
    within(WATCH, || {
        let drops = Drops::default();
        let state = drops.one();
        let (address, mut own) = actor(|cx: Context<Box<dyn Any + Send>>| async move {
            let (_cx, _state) = (cx, state);
            std::future::pending::<()>().await;
        })
        .split();
        assert!(poll_once(&mut own).is_pending());
        address.tell(Box::new(own)).unwrap();
        address.kill();
        assert_eq!(drops.count(), 1);
    });
}

fn a_killed_actor_joins_with_killed(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(async |mut cx: Context<u32>| cx.recv().await));
        handle.kill();
        assert!(handle.is_closed());
        assert!(
            handle
                .tell(1)
                .is_err_and(|it| it.is_closed() && it.into_inner() == 1)
        );
        assert!(handle.downgrade().upgrade().is_none());
        assert!(matches!(handle.join().await, Err(Fault::Killed)));
    });
}

fn a_waiting_handler_is_dropped_where_it_waits(home: &Home) {
    let (waiting, drops, log) = (Gate::default(), Drops::default(), Log::default());
    let (waits, state, says) = (waiting.clone(), drops.clone(), log.clone());
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        let _state = state.one();
        cx.recv().await;
        waits.open();
        std::future::pending::<()>().await;
        says.add("continued");
    }));
    handle.tell(1).unwrap();
    waiting.pass();
    handle.kill();
    home.block_on(async {
        handle.closed().await;
        assert_eq!(drops.count(), 1);
        assert!(log.take().is_empty());
        assert!(matches!(handle.join().await, Err(Fault::Killed)));
    });
}

fn messages_not_handled_are_dropped_at_once(home: &Home) {
    let drops = Drops::default();
    let held = home.hold();
    let handle = home.spawn(actor(
        async |mut cx: Context<_>| {
            while cx.recv().await.is_some() {}
        },
    ));
    for _ in 0..1000 {
        handle.tell(drops.one()).unwrap();
    }
    handle.kill();
    assert_eq!(
        drops.count(),
        1000,
        "dropped although the actor cannot run yet"
    );
    drop(held);
    assert!(matches!(home.block_on(handle.join()), Err(Fault::Killed)));
}

fn every_ask_among_the_messages_gets_no_reply_at_once(home: &Home) {
    let held = home.hold();
    for capacity in [100, 3] {
        let handle = home.spawn(
            actor(async |mut cx: Context<Reply<u32>>| while cx.recv().await.is_some() {})
                .capacity(capacity),
        );
        let mut asks: Vec<_> = (0..10).map(|_| handle.ask(|reply| reply)).collect();
        for ask in &mut asks {
            assert!(crate::support::poll_once(ask).is_pending());
        }
        handle.kill();
        let waited = asks.into_iter().map(crate::support::drive);
        let answers: Vec<_> = waited.map(Result::unwrap_err).collect();
        // Asks that were not yet in the mailbox were not delivered.
        let expected: Vec<_> = (0..10)
            .map(|at| {
                if at < capacity {
                    AskError::NoReply(AskDetail::default())
                } else {
                    AskError::Closed(AskDetail::default())
                }
            })
            .collect();
        assert_eq!(answers, expected);
    }
    drop(held);
}

fn an_ask_being_handled_gets_no_reply_when_its_handler_is_dropped(home: &Home) {
    let handling = Gate::default();
    let handles = handling.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<Reply<u32>>| {
        let _reply = cx.recv().await;
        handles.open();
        std::future::pending::<()>().await;
    }));
    home.block_on(async {
        let mut ask = handle.ask(|reply| reply);
        assert!(crate::support::poll_here(&mut ask).await.is_pending());
        handling.wait().await;
        handle.kill();
        assert_eq!(ask.await, Err(AskError::NoReply(AskDetail::default())));
    });
}

fn a_running_handler_continues_to_its_next_suspension_after_a_kill(home: &Home) {
    let (handling, gate, log) = (Gate::default(), Gate::default(), Log::default());
    let (handles, blocks, says) = (handling.clone(), gate.clone(), log.clone());
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        cx.recv().await;
        handles.open();
        blocks.pass();
        says.add("ran on");
        greenroom::yield_now().await;
        says.add("was resumed");
    }));
    handle.tell(1).unwrap();
    handling.pass();
    handle.kill();
    gate.open();
    home.block_on(handle.closed());
    assert_eq!(log.take(), ["ran on"]);
    assert!(matches!(home.block_on(handle.join()), Err(Fault::Killed)));
}

fn a_killed_actor_handles_no_other_message(home: &Home) {
    let (handling, gate, drops) = (Gate::default(), Gate::default(), Drops::default());
    let (handles, blocks, log) = (handling.clone(), gate.clone(), Log::default());
    let says = log.clone();
    let held = home.hold();
    let handle = home.spawn(actor(async move |mut cx: Context<(u32, _)>| {
        while let Some((number, _)) = cx.recv().await {
            says.add(number);
            handles.open();
            blocks.pass();
        }
    }));
    for number in 0..10 {
        handle.tell((number, drops.one())).unwrap();
    }
    drop(held);
    handling.pass();
    handle.kill();
    gate.open();
    home.block_on(handle.closed());
    assert_eq!(log.take(), [0]);
    assert_eq!(drops.count(), 10);
    assert!(matches!(home.block_on(handle.join()), Err(Fault::Killed)));
}

/// A value whose drop lets an actor continue and waits until the actor has ended.
struct Last(Gate, Gate);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.open();
        self.1.pass();
    }
}

fn the_drops_of_messages_run_after_the_actor_counts_as_killed(home: &Home) {
    let (handling, gate, ended) = (Gate::default(), Gate::default(), Gate::default());
    let (handles, blocks, log) = (handling.clone(), gate.clone(), Log::default());
    let (says, ends) = (log.clone(), OpenOnDrop(ended.clone()));
    let held = home.hold();
    let handle = home.spawn(actor(async move |mut cx: Context<(u32, Option<Last>)>| {
        let ends = ends;
        while let Some((number, _)) = cx.recv().await {
            says.add(number);
            handles.open();
            blocks.pass();
            if number > 0 {
                ends.0.open();
            }
        }
    }));
    (0..10).for_each(|number| assert!(handle.tell((number, None)).is_ok()));
    drop(held);
    // The actor has taken all ten by now.
    handling.pass();
    assert!(handle.tell((10, Some(Last(gate, ended)))).is_ok());
    handle.kill();
    home.block_on(handle.closed());
    assert_eq!(log.take(), [0]);
}

fn an_actor_that_kills_itself_handles_no_other_message(home: &Home) {
    let (log, drops) = (Log::default(), Drops::default());
    let says = log.clone();
    let held = home.hold();
    let handle = home.spawn(actor(async move |mut cx: Context<(u32, _)>| {
        let own: WeakAddress<_> = cx.downgrade();
        while let Some((number, _)) = cx.recv().await {
            says.add(number);
            own.upgrade().unwrap().kill();
            assert!(cx.try_recv().is_none());
        }
    }));
    for number in 0..10 {
        handle.tell((number, drops.one())).unwrap();
    }
    drop(held);
    home.block_on(handle.closed());
    assert!(matches!(home.block_on(handle.join()), Err(Fault::Killed)));
    assert_eq!(log.take(), [0]);
    assert_eq!(drops.count(), 10);
}

fn an_actor_that_was_never_polled_can_be_killed(home: &Home) {
    let (called, captured) = (Gate::default(), Drops::default());
    let held = home.hold();
    let (calls, state) = (called.clone(), captured.one());
    let handle = home.spawn(actor(move |_cx: Context<u32>| {
        calls.open();
        let state = state;
        async move { drop(state) }
    }));
    handle.tell(1).unwrap();
    handle.kill();
    drop(held);
    assert!(matches!(home.block_on(handle.join()), Err(Fault::Killed)));
    assert!(!called.is_open());
    assert_eq!(captured.count(), 1);
}

fn kill_after_the_end_has_no_effect(home: &Home) {
    home.block_on(async {
        let handle = home.spawn(actor(async |mut cx: Context<u32>| cx.recv().await));
        handle.tell(1).unwrap();
        handle.closed().await;
        handle.kill();
        handle.kill();
        assert_eq!(
            handle.join().await.unwrap(),
            Some(1),
            "the actor had ended before it was killed"
        );
    });
}

fn kill_after_stop_drops_the_accepted_messages(home: &Home) {
    let drops = Drops::default();
    let held = home.hold();
    let handle = home.spawn(actor(
        async |mut cx: Context<_>| {
            while cx.recv().await.is_some() {}
        },
    ));
    handle.tell(drops.one()).unwrap();
    handle.stop();
    assert_eq!(drops.count(), 0);
    handle.kill();
    assert_eq!(drops.count(), 1);
    drop(held);
    assert!(matches!(home.block_on(handle.join()), Err(Fault::Killed)));
}

fn kill_ends_a_recv_of_the_context_in_another_task(home: &Home) {
    let (reading, over) = (Gate::default(), Gate::default());
    let (reads, ends) = (reading.clone(), OpenOnDrop(over.clone()));
    let reader = home.runtime.clone();
    let handle = home.spawn(actor(async move |mut cx: Context<u32>| {
        // The reader lives in a separate task.
        let reads = async move {
            let _ends = ends;
            open_when_pending(reads, cx.recv()).await
        };
        reader.spawn(reads).detach();
        drop(reader);
        std::future::pending::<()>().await;
    }));
    reading.pass();
    handle.kill();
    over.pass();
    assert!(matches!(home.block_on(handle.join()), Err(Fault::Killed)));
}
