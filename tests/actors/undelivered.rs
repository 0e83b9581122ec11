//! Messages that were accepted and never handled: each goes to `on_undelivered` once, in order.

mod model;

use std::time::Duration;

use greenroom::{ActorBuilder, AskCause, AskError, Context, Reply, Runtime, actor};

use crate::support::{
    Bomb, Drops, Gate, Home, Log, WATCH, drive, elsewhere, in_every_home, keep_bombs_quiet, until,
    within,
};

in_every_home!(
    what_an_actor_leaves_behind_is_undelivered_in_order,
    a_panic_leaves_the_rest_undelivered,
    a_kill_leaves_the_rest_undelivered_in_order,
    a_context_that_is_dropped_early_leaves_its_messages,
    everything_is_passed_on_before_the_end_is_told,
    the_function_may_answer_a_question,
    a_message_that_the_function_sends_itself_is_passed_on_too,
    handled_and_refused_messages_are_not_undelivered,
    the_function_is_dropped_with_the_actor,
    an_undelivered_question_ends_as_its_message_does,
    a_question_whose_permit_is_used_after_the_end_ends_as_its_message_does,
    a_context_that_was_moved_out_gives_back_its_messages_in_order,
);

/// Receives `handled` messages, then waits for the gate, then ends.
fn handles(
    handled: usize,
    gate: &Gate,
) -> ActorBuilder<u32, impl FnOnce(Context<u32>) -> Ends + Send + 'static, Ends> {
    let gate = gate.clone();
    actor(move |mut cx: Context<u32>| -> Ends {
        Box::pin(async move {
            for _ in 0..handled {
                cx.recv().await;
            }
            gate.wait().await;
        })
    })
}

type Ends = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn what_an_actor_leaves_behind_is_undelivered_in_order(home: &Home) {
    home.block_on(async {
        for capacity in [None, Some(10)] {
            let (undelivered, gate) = (Log::default(), Gate::default());
            let log = undelivered.clone();
            let mut ends = handles(3, &gate).on_undelivered(move |number| log.add(number));
            if let Some(capacity) = capacity {
                ends = ends.capacity(capacity);
            }
            let ends = home.spawn(ends);
            for number in 1..=8 {
                ends.tell(number).unwrap();
            }
            gate.open();
            ends.join().await.unwrap();
            assert_eq!(undelivered.take(), [4, 5, 6, 7, 8]);
        }
    });
}

fn a_panic_leaves_the_rest_undelivered(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let undelivered = Log::default();
        let log = undelivered.clone();
        let panics = actor(|mut cx: Context<u32>| async move {
            let number = cx.recv().await;
            assert_ne!(number, Some(1), "bomb");
        });
        let panics = panics.on_undelivered(move |number| log.add(number));
        let held = home.hold();
        let panics = home.spawn(panics);
        for number in 1..=3 {
            panics.tell(number).unwrap();
        }
        drop(held);
        panics.join().await.unwrap_err();
        // The first message was received.
        assert_eq!(undelivered.take(), [2, 3]);
    });
}

fn a_kill_leaves_the_rest_undelivered_in_order(home: &Home) {
    home.block_on(async {
        let (undelivered, gate, took) = (Log::default(), Gate::default(), Gate::default());
        let (log, has_taken) = (undelivered.clone(), took.clone());
        let killed = actor(move |mut cx: Context<u32>| async move {
            cx.recv().await;
            has_taken.open();
            gate.wait().await;
        });
        let held = home.hold();
        let killed = home.spawn(killed.on_undelivered(move |number| log.add(number)));
        // The actor takes the first three as one batch, and the others stay in the mailbox.
        for number in 1..=3 {
            killed.tell(number).unwrap();
        }
        drop(held);
        took.wait().await;
        for number in 4..=6 {
            killed.tell(number).unwrap();
        }
        killed.kill();
        killed.join().await.unwrap_err();
        assert_eq!(undelivered.take(), [2, 3, 4, 5, 6]);
    });
}

fn a_context_that_is_dropped_early_leaves_its_messages(home: &Home) {
    home.block_on(async {
        let (undelivered, gate) = (Log::default(), Gate::default());
        let (log, opened, dropped) = (undelivered.clone(), gate.clone(), Gate::default());
        let has_dropped = dropped.clone();
        let drops = actor(|mut cx: Context<u32>| async move {
            cx.recv().await;
            drop(cx);
            has_dropped.open();
            opened.wait().await;
        });
        let held = home.hold();
        let drops = home.spawn(drops.on_undelivered(move |number| log.add(number)));
        for number in 1..=3 {
            drops.tell(number).unwrap();
        }
        drop(held);
        dropped.wait().await;
        assert_eq!(undelivered.len(), 0, "the actor has not ended");
        gate.open();
        drops.join().await.unwrap();
        assert_eq!(undelivered.take(), [2, 3]);
    });
}

fn everything_is_passed_on_before_the_end_is_told(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let (state, seen) = (drops.one(), drops.clone());
        let order = Log::default();
        let log = order.clone();
        let ends = actor(|cx: Context<u32>| async move { drop((cx, state)) });
        let held = home.hold();
        let ends = home.spawn(ends.on_undelivered(move |_| log.add(seen.count())));
        let address = ends.address();
        ends.tell(1).unwrap();
        drop(held);
        address.closed().await;
        assert_eq!(
            order.take(),
            [1],
            "after the drop of the state, before the end"
        );
    });
}

fn the_function_may_answer_a_question(home: &Home) {
    home.block_on(async {
        let ends = actor(|cx: Context<Reply<u32>>| async move { drop(cx) });
        let held = home.hold();
        let ends = home.spawn(ends.on_undelivered(|reply: Reply<u32>| reply.send(42)));
        let mut request = ends.request(|reply| reply);
        assert!(futures::poll!(&mut request).is_pending());
        drop(held);
        assert_eq!(request.await, Ok(42));
    });
}

fn a_message_that_the_function_sends_itself_is_passed_on_too(home: &Home) {
    home.block_on(async {
        let undelivered = Log::default();
        let log = undelivered.clone();
        let (permits, reserved) = std::sync::mpsc::channel::<greenroom::Permit<u32>>();
        let ends = actor(|cx: Context<u32>| async move { drop(cx) });
        let held = home.hold();
        let ends = home.spawn(ends.on_undelivered(move |number| {
            if let Ok(permit) = reserved.try_recv() {
                permit.send(number + 1);
            }
            log.add(number);
        }));
        for _ in 0..3 {
            permits.send(ends.reserve().await.unwrap()).unwrap();
        }
        ends.tell(1).unwrap();
        drop(held);
        ends.join().await.unwrap();
        assert_eq!(undelivered.take(), [1, 2, 3, 4]);
    });
}

fn handled_and_refused_messages_are_not_undelivered(home: &Home) {
    home.block_on(async {
        let undelivered = Log::default();
        let log = undelivered.clone();
        let all = actor(|mut cx: Context<u32>| async move {
            let mut sum = 0;
            while let Some(number) = cx.recv().await {
                sum += number;
            }
            sum
        });
        let all = home.spawn(all.on_undelivered(move |number| log.add(number)));
        all.tell(1).unwrap();
        all.tell(2).unwrap();
        let address = all.address();
        all.stop();
        assert!(all.tell(4).is_err());
        assert_eq!(all.join().await.unwrap(), 3);
        assert!(address.tell(8).is_err());
        assert_eq!(undelivered.take(), []);
    });
}

fn the_function_is_dropped_with_the_actor(home: &Home) {
    home.block_on(async {
        let drops = Drops::default();
        let dropped = drops.one();
        let ends = actor(|cx: Context<u32>| async move { drop(cx) });
        let ends = home.spawn(ends.on_undelivered(move |_| {
            let _captured = &dropped;
        }));
        let address = ends.address();
        ends.join().await.unwrap();
        assert_eq!(drops.count(), 1, "an address is left");
        drop(address);
    });
}

fn an_undelivered_question_ends_as_its_message_does(home: &Home) {
    home.block_on(async {
        let ends = actor(|cx: Context<Reply<u32>>| async move { drop(cx) });
        let held = home.hold();
        let ends = home.spawn(ends.name("ends").on_undelivered(drop));
        let mut request = ends.request(|reply| reply);
        assert!(futures::poll!(&mut request).is_pending());
        drop(held);
        let Err(AskError::NoReply(detail)) = request.await else {
            panic!("there is no reply");
        };
        assert_eq!(*detail.why(), AskCause::ReplyDropped);
        assert_eq!(detail.actor().and_then(|actor| actor.name()), Some("ends"));
    });
}

fn a_question_whose_permit_is_used_after_the_end_ends_as_its_message_does(home: &Home) {
    home.block_on(async {
        let ends = actor(|cx: Context<Reply<u32>>| async move { drop(cx) });
        let held = home.hold();
        let ends = home.spawn(ends.on_undelivered(drop));
        let permit = ends.address().reserve().await.unwrap();
        drop(held);
        ends.join().await.unwrap();
        let (reply, answer) = Reply::pair();
        permit.send(reply);
        let Err(AskError::NoReply(detail)) = answer.await else {
            panic!("there is no reply");
        };
        assert_eq!(*detail.why(), AskCause::ReplyDropped);
    });
}

fn a_context_that_was_moved_out_gives_back_its_messages_in_order(home: &Home) {
    home.block_on(async {
        let undelivered = Log::default();
        let log = undelivered.clone();
        let (give, given) = futures::channel::oneshot::channel();
        let moves = actor(|cx: Context<u32>| async move {
            drop(give.send(cx));
            std::future::pending::<()>().await
        });
        let moves = home.spawn(moves.on_undelivered(move |number| log.add(number)));
        let mut cx = given.await.unwrap();
        // The first three are taken as one batch.
        for number in 1..=3 {
            moves.tell(number).unwrap();
        }
        assert_eq!(cx.recv().await, Some(1));
        for number in 4..=6 {
            moves.tell(number).unwrap();
        }
        moves.kill();
        moves.join().await.unwrap_err();
        assert_eq!(undelivered.len(), 0, "older messages may follow");
        drop(cx);
        assert_eq!(undelivered.take(), [2, 3, 4, 5, 6]);
    });
}

#[test]
fn an_actor_that_a_shutdown_leaves_behind_gives_back_its_messages_at_its_end() {
    within(WATCH, || {
        let undelivered = Log::default();
        let runtime = Runtime::builder().workers(1).grace(Duration::ZERO);
        let runtime = runtime.build().unwrap();
        let (begun, gate, log) = (Gate::default(), Gate::default(), undelivered.clone());
        let (has_begun, blocks) = (begun.clone(), gate.clone());
        let stays = actor(move |mut cx: Context<u32>| async move {
            cx.recv().await;
            has_begun.open();
            blocks.pass();
        });
        let stays = stays.on_undelivered(move |number| log.add(number));
        let stays = stays.on(&runtime).spawn();
        stays.tell(1).unwrap();
        begun.pass();
        stays.tell(2).unwrap();
        stays.tell(3).unwrap();
        drive(runtime.shutdown());
        assert_eq!(undelivered.len(), 0, "the actor still runs");
        gate.open();
        until(|| undelivered.len() == 2);
        assert_eq!(undelivered.take(), [2, 3]);
    });
}

#[test]
fn an_actor_that_is_not_spawned_drops_the_function() {
    keep_bombs_quiet();
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        runtime.block_on(runtime.shutdown());
        let idle = || actor(|cx: Context<u32>| async move { drop(cx) });
        let drops = Drops::default();
        let dropped = drops.one();
        let first = idle().on_undelivered(move |_| {
            let _captured = &dropped;
        });
        let closed = first.on(&runtime).spawn();
        assert!(closed.is_closed());
        assert_eq!(drops.count(), 1, "the handle is left");

        for capacity in [0, 1] {
            let drops = Drops::default();
            let bomb = Bomb::new(true, &drops);
            let refused = idle().capacity(capacity).on_undelivered(move |_| {
                let _captured = &bomb;
            });
            let error = refused.on(&runtime).try_spawn().unwrap_err();
            assert_eq!(drops.count(), 1);
            let _actor = error.into_inner();
        }
    });
}

#[test]
fn a_shutdown_passes_on_what_its_actors_leave() {
    within(WATCH, || {
        let undelivered = Log::default();
        for grace in [Duration::ZERO, WATCH] {
            let runtime = Runtime::builder().workers(1).grace(grace);
            let runtime = runtime.build().unwrap();
            let (begun, told, log) = (Gate::default(), Gate::default(), undelivered.clone());
            let (has_begun, are_told) = (begun.clone(), told.clone());
            let actor = actor(move |mut cx: Context<u32>| async move {
                cx.recv().await;
                has_begun.open();
                // It does not end before the others are in its mailbox.
                are_told.pass();
                if grace.is_zero() {
                    std::future::pending().await
                }
            });
            let actor = actor.on_undelivered(move |number| log.add(number));
            let actor = actor.on(&runtime).spawn();
            for number in 1..=3 {
                actor.tell(number).unwrap();
            }
            begun.pass();
            told.open();
            drive(runtime.shutdown());
            // The shutdown waits for the calls.
            assert_eq!(undelivered.take(), [2, 3]);
        }
    });
}

#[test]
fn an_actor_that_never_starts_leaves_all_its_messages() {
    within(WATCH, || {
        let undelivered = Log::default();
        let log = undelivered.clone();
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (busy, begun) = (Gate::default(), Gate::default());
        let (ends, has_begun) = (busy.clone(), begun.clone());
        let blocks = runtime.spawn(async move {
            has_begun.open();
            ends.pass();
        });
        begun.pass();
        let late = actor(|mut cx: Context<u32>| async move { cx.recv().await });
        let late = late.on_undelivered(move |number| log.add(number));
        let late = late.on(&runtime).spawn();
        late.tell(1).unwrap();
        late.tell(2).unwrap();
        late.kill();
        busy.open();
        drive(blocks);
        assert!(drive(late.join()).is_err());
        assert_eq!(undelivered.take(), [1, 2]);
    });
}

#[test]
fn a_panic_of_the_function_is_reported_and_the_next_message_passed_on() {
    keep_bombs_quiet();
    within(WATCH, || {
        let (heard, passed) = (Log::default(), Log::default());
        let (faults, log) = (heard.clone(), passed.clone());
        let on_fault = move |fault: &greenroom::UnhandledFault<'_>| {
            faults.add((fault.to_string(), fault.is_on_undelivered));
        };
        let runtime = Runtime::builder()
            .workers(1)
            .on_fault(on_fault)
            .build()
            .unwrap();
        let drops = Drops::default();
        let bombs: Vec<_> = (0..4)
            .map(|number| (number, Bomb::new(number == 3, &drops)))
            .collect();
        let ends = actor(|cx: Context<(u32, Bomb)>| async move { drop(cx) });
        let ends = ends.name("ends").on_undelivered(move |(number, bomb)| {
            log.add(number);
            // The message is dropped while the panic unwinds, or panics itself.
            let _bomb = bomb;
            if number == 1 {
                panic!("bomb in the function");
            }
        });
        let gate = Gate::default();
        let (holds, held) = (gate.clone(), Gate::default());
        let has_held = held.clone();
        let blocks = runtime.spawn(async move {
            has_held.open();
            holds.pass();
        });
        held.pass();
        let ends = ends.on(&runtime).spawn();
        let id = ends.id();
        for bomb in bombs {
            assert!(ends.tell(bomb).is_ok());
        }
        gate.open();
        drive(blocks);
        drive(ends.join()).unwrap();
        assert_eq!(passed.take(), [0, 1, 2, 3]);
        assert_eq!(drops.count(), 4);
        let heard = heard.take();
        assert_eq!(heard.len(), 2, "{heard:?}");
        let part = "`on_undelivered` of";
        let first = format!("{part} \"ends\" #{id} panicked: bomb in the function");
        assert!(heard[0].0.starts_with(&first), "{heard:?}");
        assert!(
            heard
                .iter()
                .all(|(_, is_on_undelivered)| *is_on_undelivered)
        );
    });
}

#[test]
fn a_kill_from_elsewhere_loses_no_message() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        for _ in 0..100 {
            let undelivered = Log::default();
            let (log, handled) = (undelivered.clone(), Log::default());
            let handles = handled.clone();
            let killed = actor(move |mut cx: Context<u32>| async move {
                while let Some(number) = cx.recv().await {
                    handles.add(number);
                }
            });
            let killed = killed.on_undelivered(move |number| log.add(number));
            let killed = killed.on(&runtime).spawn();
            let kills = killed.address();
            let kill = elsewhere(move || kills.kill());
            let accepted = (0..200)
                .take_while(|number| killed.tell(*number).is_ok())
                .count();
            kill.join();
            drive(killed.join()).unwrap_err();
            let mut all = handled.take();
            all.extend(undelivered.take());
            assert_eq!(all, (0..accepted as u32).collect::<Vec<_>>());
        }
    });
}
