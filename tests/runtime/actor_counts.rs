//! What a runtime counts of its actors: turns, messages, the highest fill of a mailbox, and samples.

use std::time::Duration;

use futures::FutureExt;
use futures::future::{try_join, try_join_all};
use greenroom::time::sleep;
use greenroom::{
    ActorStatus, Address, Context, Reply, Runtime, SampledTimes, SampledTurns, actor, yield_now,
};

use crate::support::{Home, WATCH, in_every_home, within};

in_every_home!(
    each_message_is_counted,
    the_largest_number_of_messages_that_waited_is_kept,
    the_largest_number_that_waited_in_a_bounded_mailbox_is_kept,
    the_urgent_messages_that_waited_are_counted_with_the_others,
    one_turn_in_64_is_timed,
);

enum Word {
    Plain,
    Ask(Reply<()>),
}

async fn answers(mut cx: Context<Word>) {
    while let Some(word) = cx.recv().await {
        if let Word::Ask(reply) = word {
            reply.send(());
        }
    }
}

/// Returns the state of the only actor once it is dormant. So its last turn is counted.
fn settled(home: &Home) -> ActorStatus {
    home.block_on(async {
        loop {
            let mut actors = home.runtime.stats().actors;
            assert_eq!(actors.len(), 1, "{actors:?}");
            match actors.remove(0) {
                dormant if dormant.is_dormant => return dormant,
                _ => yield_now().await,
            }
        }
    })
}

/// Tells an actor so many messages before it has a turn.
fn tell_at_once(home: &Home, to: &Address<Word>, count: usize) {
    let held = home.hold();
    for _ in 0..count {
        to.tell(Word::Plain).unwrap();
    }
    drop(held);
    home.block_on(to.ask(Word::Ask)).unwrap();
}

fn each_message_is_counted(home: &Home) {
    let actor = home.spawn(actor(answers));
    // They take several turns.
    tell_at_once(home, &actor, 1000);
    let before = settled(home);
    assert_eq!(before.messages, 1001);
    assert!(before.turns >= 2, "{before:?}");
    for _ in 0..10 {
        home.block_on(actor.ask(Word::Ask)).unwrap();
    }
    let after = settled(home);
    assert_eq!(after.messages, 1011);
    assert!(after.turns > before.turns, "{after:?}");
}

/// Checks the highest fill after bursts of 3, 7 and 1 messages. The ask after a burst may wait, too.
fn check_highest(home: &Home, to: &Address<Word>) {
    assert_eq!(settled(home).highest, 0);
    tell_at_once(home, to, 3);
    let highest = settled(home).highest;
    assert!((3..=4).contains(&highest), "{highest}");
    tell_at_once(home, to, 7);
    let highest = settled(home).highest;
    assert!((7..=8).contains(&highest), "{highest}");
    tell_at_once(home, to, 1);
    assert_eq!(settled(home).highest, highest);
}

fn the_largest_number_of_messages_that_waited_is_kept(home: &Home) {
    let actor = home.spawn(actor(answers));
    check_highest(home, &actor);
}

fn the_largest_number_that_waited_in_a_bounded_mailbox_is_kept(home: &Home) {
    let actor = home.spawn(actor(answers).capacity(20));
    check_highest(home, &actor);
}

fn the_urgent_messages_that_waited_are_counted_with_the_others(home: &Home) {
    let actor = home.spawn(actor(answers).urgent(8));
    assert_eq!(actor.capacity(), None);
    let held = home.hold();
    let urgent = actor.urgent().unwrap();
    for _ in 0..4 {
        actor.tell(Word::Plain).unwrap();
        urgent.tell(Word::Plain).unwrap();
    }
    drop(held);
    home.block_on(actor.ask(Word::Ask)).unwrap();
    let status = settled(home);
    assert!((8..=9).contains(&status.highest), "{status:?}");
    assert_eq!(status.messages, 9);
}

/// Asks an actor until it has had 150 turns. On a busy machine a turn may answer several asks.
fn ask_for_turns(home: &Home, actor: &Address<Word>) -> ActorStatus {
    loop {
        let status = settled(home);
        if status.turns >= 150 {
            return status;
        }
        for _ in 0..50 {
            home.block_on(actor.ask(Word::Ask)).unwrap();
        }
    }
}

fn one_turn_in_64_is_timed(home: &Home) {
    let actor = home.spawn(actor(answers));
    let ActorStatus { turns, sampled, .. } = ask_for_turns(home, &actor);
    let times = home.runtime.stats().turn_times;
    // Those of pinned threads are not among them.
    let counted: u64 = times.counts.iter().sum();
    assert!(
        counted == sampled.turns && times.total == sampled.busy || counted == 0,
        "{times:?}"
    );
    // The 63rd turn, and each 64th after that.
    assert_eq!(sampled.turns, (turns + 1) / 64, "{turns} turns");
    assert!(
        sampled.turns >= 1 && sampled.longest <= sampled.busy,
        "{sampled:?}"
    );
}

#[test]
fn the_times_of_turns_stay_when_their_actor_has_ended() {
    within(WATCH, || {
        let home = Home::built(1, Runtime::builder());
        let actor = home.spawn(actor(answers));
        let ActorStatus { sampled, .. } = ask_for_turns(&home, &actor);
        home.block_on(actor.join()).unwrap();
        let times = home.runtime.stats().turn_times;
        assert!(sampled.turns >= 1);
        assert!(
            times.counts.iter().sum::<u64>() >= sampled.turns,
            "{times:?}"
        );
        assert!(times.total >= sampled.busy, "{times:?}");
    });
}

#[test]
fn a_runtime_that_does_not_count_shows_zeros() {
    within(WATCH, || {
        let home = Home::built(1, Runtime::builder().counting(false));
        let actor = home.spawn(actor(answers));
        tell_at_once(&home, &actor, 200);
        let status = settled(&home);
        assert_eq!((status.turns, status.messages, status.highest), (0, 0, 0));
        assert_eq!(status.sampled, SampledTurns::default());
        let asks = (0..200).map(|_| actor.ask(Word::Ask));
        home.block_on(try_join_all(asks)).unwrap();
        let stats = home.runtime.stats();
        let none = SampledTimes::default();
        assert_eq!((stats.turn_times, stats.ask_times), (none, none));
    });
}

/// The number of asks of a thread of which one is timed.
const ASKS: usize = 61;

/// Keeps the replies until it is told another word. Then it sleeps for 2 ms, and answers.
async fn answers_late(mut cx: Context<Word>) {
    let mut kept = Vec::new();
    while let Some(word) = cx.recv().await {
        match word {
            Word::Ask(reply) => kept.push(reply),
            Word::Plain => {
                sleep(Duration::from_millis(2)).await;
                kept.drain(..).for_each(|reply| reply.send(()));
            }
        }
    }
}

#[test]
fn one_ask_in_61_is_timed_from_its_question_to_its_answer() {
    within(WATCH, || {
        // With that option all are timed.
        for (detects, timed) in [(false, 3), (true, 3 * ASKS)] {
            let home = Home::built(1, Runtime::builder().detect_deadlocks(detects));
            let actor = home.spawn(actor(answers_late));
            home.block_on(async {
                let asks = (0..3 * ASKS).map(|_| actor.ask(Word::Ask));
                let told = async {
                    actor.tell(Word::Plain).unwrap();
                    Ok(())
                };
                try_join(try_join_all(asks), told).await.unwrap();
            });
            let SampledTimes { total, counts, .. } = home.runtime.stats().ask_times;
            assert_eq!(counts.iter().sum::<u64>(), timed as u64, "{counts:?}");
            // None of them took at most 1 ms.
            assert_eq!(counts[..4], [0; 4]);
            let each = Duration::from_millis(2);
            assert!(total >= each * timed as u32, "{total:?}");
        }
    });
}

#[test]
fn an_ask_that_is_dropped_has_no_time() {
    within(WATCH, || {
        let home = Home::built(1, Runtime::builder());
        let actor = home.spawn(actor(answers_late));
        home.block_on(async {
            let asks = (0..3 * ASKS).map(|_| actor.ask(Word::Ask));
            assert!(try_join_all(asks).now_or_never().is_none());
            actor.tell(Word::Plain).unwrap();
            // The answers to the dropped asks were sent before this one.
            let last = actor.ask(Word::Ask);
            let told = async {
                actor.tell(Word::Plain).unwrap();
                Ok(())
            };
            try_join(last, told).await.unwrap();
        });
        let counts = home.runtime.stats().ask_times.counts;
        // The last ask may be timed.
        assert!(counts.iter().sum::<u64>() <= 1, "{counts:?}");
    });
}
