//! A machine that begins anew, with the messages that it has saved.

use std::time::Duration;

use greenroom::Context;
use greenroom::machine::{Machine, Next};
use greenroom::supervise::Restarts;

use super::State;
use crate::support::{Home, Log, in_every_home, keep_bombs_quiet};

in_every_home!(
    saved_messages_survive_a_restart_in_order,
    messages_that_come_again_survive_a_restart_in_order,
    a_stopped_machine_is_restarted_for_its_saved_messages,
    a_machine_that_gives_up_leaves_its_messages_in_order,
);

#[derive(Clone)]
struct Fragile(Log<u32>);

/// Numbers below 10 are logged by the third incarnation, and saved by others; 10 panics, and 20
/// changes the state.
impl Machine for Fragile {
    type State = State;
    type Message = u32;
    type Value = ();

    async fn on(&mut self, state: &State, number: u32, cx: &mut Context<u32>) -> Next<Self> {
        match (state, number) {
            (_, 10) => panic!("bomb"),
            (_, 20) => Next::To(State::Open),
            _ if cx.incarnation_number() < 2 => Next::Save(number),
            (State::Closed, _) => Next::Save(number),
            (State::Open, _) => {
                self.0.add(number);
                Next::Stay
            }
        }
    }
}

fn saved_messages_survive_a_restart_in_order(home: &Home) {
    keep_bombs_quiet();
    let log = Log::default();
    let fragile = Fragile(log.clone()).into_builder(State::Closed);
    let fragile = home.spawn(fragile.restart(Restarts::on_fault()));
    home.block_on(async {
        for number in [1, 2, 20, 3, 10, 4, 10, 5, 20, 6] {
            fragile.tell(number).unwrap();
        }
        let ended = fragile.join().await.unwrap();
        assert_eq!(ended.value, None);
    });
    assert_eq!(log.take(), [1, 2, 3, 4, 5, 6]);
}

/// Saves numbers until 20 opens it. The first incarnation panics at the open 2.
#[derive(Clone)]
struct Second(Log<u32>);

impl Machine for Second {
    type State = State;
    type Message = u32;
    type Value = ();

    async fn on(&mut self, state: &State, number: u32, cx: &mut Context<u32>) -> Next<Self> {
        match (state, number) {
            (State::Closed, 20) => Next::To(State::Open),
            (State::Closed, early) => Next::Save(early),
            (State::Open, 2) if cx.incarnation_number() == 0 => panic!("bomb"),
            (State::Open, number) => {
                self.0.add(number);
                Next::Stay
            }
        }
    }
}

fn messages_that_come_again_survive_a_restart_in_order(home: &Home) {
    keep_bombs_quiet();
    let log = Log::default();
    let second = Second(log.clone()).into_builder(State::Closed);
    let second = home.spawn(second.restart(Restarts::on_fault()));
    home.block_on(async {
        // The message in hand, 2, is lost by the panic. The next incarnation is closed.
        for number in [1, 2, 3, 4, 20, 5, 20, 6] {
            second.tell(number).unwrap();
        }
        second.join().await.unwrap();
    });
    assert_eq!(log.take(), [1, 3, 4, 5, 6]);
}

fn a_stopped_machine_is_restarted_for_its_saved_messages(home: &Home) {
    keep_bombs_quiet();
    let (log, left) = (Log::default(), Log::default());
    let lost = left.clone();
    let fragile = Fragile(log.clone()).into_builder(State::Closed);
    let fragile = fragile.restart(Restarts::on_fault());
    let fragile = home.spawn(fragile.on_undelivered(move |number| lost.add(number)));
    home.block_on(async {
        for number in [1, 2, 10] {
            fragile.tell(number).unwrap();
        }
        fragile.stop();
        // The next incarnation receives 1 and 2, and saves them.
        let ended = fragile.join().await.unwrap();
        assert_eq!(ended.value, None);
    });
    assert_eq!((log.take(), left.take()), (vec![], vec![1, 2]));
}

fn a_machine_that_gives_up_leaves_its_messages_in_order(home: &Home) {
    keep_bombs_quiet();
    let left = Log::default();
    let lost = left.clone();
    let fragile = Fragile(Log::default()).into_builder(State::Closed);
    let fragile =
        fragile.restart(Restarts::on_fault().intensity(1, Duration::from_secs(1_000_000)));
    let fragile = home.spawn(fragile.on_undelivered(move |number| lost.add(number)));
    home.block_on(async {
        for number in [1, 2, 10, 3, 10, 4] {
            fragile.tell(number).unwrap();
        }
        assert!(fragile.join().await.is_err());
    });
    assert_eq!(left.take(), [1, 2, 3, 4]);
}
