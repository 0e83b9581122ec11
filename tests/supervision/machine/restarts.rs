//! A machine that begins anew, with the messages that it has saved.

use std::time::Duration;

use greenroom::machine::{Machine, Next};
use greenroom::supervise::Restarts;
use greenroom::time::sleep;
use greenroom::{Context, Reply, SourceGuard, sim};

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

const HOUR: Duration = Duration::from_secs(3600);

/// A lamp that goes out by itself. The timer is a part of its state.
#[derive(Clone)]
struct Lamp;

#[derive(Clone)]
enum Light {
    Off,
    On { pushes: u32, _timer: SourceGuard },
}

enum Touch {
    Push,
    GoOut,
    Break,
    Pushes(Reply<u32>),
}

impl Machine for Lamp {
    type State = Light;
    type Message = Touch;
    type Value = ();

    async fn on(&mut self, light: &Light, touch: Touch, cx: &mut Context<Touch>) -> Next<Self> {
        match (light, touch) {
            (_, Touch::Break) => panic!("bomb"),
            (Light::Off, Touch::Push) => Next::To(Light::On {
                pushes: 1,
                _timer: cx.send_after(HOUR, Touch::GoOut),
            }),
            (Light::On { .. }, Touch::Push) => {
                let mut next = light.clone();
                if let Light::On { pushes, .. } = &mut next {
                    *pushes += 1;
                }
                Next::To(next)
            }
            (Light::On { .. }, Touch::GoOut) => Next::To(Light::Off),
            (Light::Off, Touch::GoOut) => panic!("a timer outlives its state"),
            (Light::Off, Touch::Pushes(reply)) => {
                reply.send(0);
                Next::Stay
            }
            (Light::On { pushes, .. }, Touch::Pushes(reply)) => {
                reply.send(*pushes);
                Next::Stay
            }
        }
    }
}

#[test]
fn a_state_with_the_guard_of_a_timer_is_cloned_and_dropped_by_a_restart() {
    keep_bombs_quiet();
    sim::explore(0..20, |_| async {
        let lamp = Lamp.into_builder(Light::Off);
        let lamp = lamp.restart(Restarts::on_fault()).spawn();
        // Clones of the state keep the timer, which is not begun anew.
        lamp.tell(Touch::Push).unwrap();
        sleep(HOUR / 2).await;
        lamp.tell(Touch::Push).unwrap();
        assert_eq!(lamp.ask(Touch::Pushes).await, Ok(2));
        sleep(HOUR * 3 / 4).await;
        assert_eq!(lamp.ask(Touch::Pushes).await, Ok(0));
        // The next incarnation is off, and gets nothing of the timer of the last one.
        lamp.tell(Touch::Push).unwrap();
        lamp.tell(Touch::Break).unwrap();
        assert_eq!(lamp.ask(Touch::Pushes).await, Ok(0));
        sleep(HOUR * 2).await;
        assert_eq!(lamp.ask(Touch::Pushes).await, Ok(0));
        lamp.stop();
        lamp.join().await.unwrap();
    });
}
