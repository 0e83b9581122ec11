//! What a runtime counts of its actors: turns, messages, the highest fill of a mailbox, and samples.

use greenroom::{
    ActorStatus, Address, Context, Reply, Runtime, SampledTurns, TurnTimes, actor, yield_now,
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

fn one_turn_in_64_is_timed(home: &Home) {
    let actor = home.spawn(actor(answers));
    for _ in 0..200 {
        home.block_on(actor.ask(Word::Ask)).unwrap();
    }
    let ActorStatus { turns, sampled, .. } = settled(home);
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
        for _ in 0..200 {
            home.block_on(actor.ask(Word::Ask)).unwrap();
        }
        let ActorStatus { sampled, .. } = settled(&home);
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
        assert_eq!(home.runtime.stats().turn_times, TurnTimes::default());
    });
}
