//! When saved messages come again, and how many there may be.

use std::time::Duration;

use greenroom::machine::{Machine, Next};
use greenroom::{AskError, Context, RefusalKind, yield_now};

use super::{MANY, Message, closed, saving};
use crate::support::{Gate, Home, Log, in_every_home};

// On two workers the other task would run in any case.
#[test]
fn many_saved_messages_let_other_tasks_run_on_one_thread() {
    Home::watch(|| Home::workers(1), many_saved_messages_let_other_tasks_run);
    Home::watch(Home::pinned, many_saved_messages_let_other_tasks_run);
}

in_every_home!(
    saved_messages_come_before_newer_ones,
    a_saved_request_is_answered_later,
    a_change_to_the_same_state_is_a_change,
    a_message_that_is_saved_again_keeps_its_place,
    saved_messages_come_before_those_of_sources,
    one_too_many_saved_messages_is_refused,
    a_machine_that_may_save_nothing_refuses_each,
    a_saved_message_always_has_room_to_be_saved_again,
    a_killed_machine_handles_no_other_saved_message,
    saved_messages_leave_their_places_in_the_mailbox,
);

fn saved_messages_come_before_newer_ones(home: &Home) {
    let log = Log::default();
    let gate = home.spawn(closed(&log));
    home.block_on(async {
        for number in [1, 2] {
            gate.tell(Message::Pass(number)).unwrap();
        }
        gate.tell(Message::Open).unwrap();
        gate.tell(Message::Pass(3)).unwrap();
        gate.tell(Message::Close).unwrap();
        gate.tell(Message::Pass(4)).unwrap();
        gate.tell(Message::Open).unwrap();
        gate.tell(Message::Pass(5)).unwrap();
        gate.join().await.unwrap();
    });
    assert_eq!(log.take(), [1, 2, 3, 4, 5]);
}

fn a_saved_request_is_answered_later(home: &Home) {
    let log = Log::default();
    let gate = home.spawn(closed(&log));
    home.block_on(async {
        let mut early = Box::pin(gate.ask(|reply| Message::Request(1, reply)));
        assert!(futures::poll!(&mut early).is_pending());
        let (begun, end) = (Gate::default(), Gate::default());
        end.open();
        gate.tell(Message::Hold(begun.clone(), end)).unwrap();
        begun.wait().await;
        // The request was saved by now.
        assert!(futures::poll!(&mut early).is_pending());
        gate.tell(Message::Open).unwrap();
        assert_eq!(early.await, Ok(1));
    });
}

/// A machine that counts how often it changed, and saves numbers above that.
struct Counter(Log<u32>, usize);

impl Machine for Counter {
    type State = u32;
    type Message = u32;
    type Value = ();

    async fn on(&mut self, state: &u32, number: u32, _cx: &mut Context<u32>) -> Next<Self> {
        if number == 0 {
            self.0.add(0);
            return Next::To(*state + 1);
        }
        if number > *state {
            return Next::Save(number);
        }
        self.0.add(number);
        Next::Stay
    }

    fn saved_capacity(&self) -> usize {
        self.1
    }
}

fn a_message_that_is_saved_again_keeps_its_place(home: &Home) {
    let log = Log::default();
    let counter = home.spawn(Counter(log.clone(), MANY).into_builder(0));
    home.block_on(async {
        for number in [2, 1, 3, 2, 0, 1, 3, 0, 1, 0] {
            counter.tell(number).unwrap();
        }
        counter.join().await.unwrap();
    });
    assert_eq!(log.take(), [0, 1, 1, 0, 2, 2, 1, 0, 3, 3]);
}

/// A machine that saves each message but the first until it has changed to the same state.
struct Same(Log<u32>, u32);

impl Machine for Same {
    type State = ();
    type Message = u32;
    type Value = ();

    async fn on(&mut self, (): &(), number: u32, _cx: &mut Context<u32>) -> Next<Self> {
        self.1 += 1;
        match (self.1, number) {
            (1..=3, _) => Next::Save(number),
            (_, 0) => Next::To(()),
            _ => {
                self.0.add(number);
                Next::Stay
            }
        }
    }
}

fn a_change_to_the_same_state_is_a_change(home: &Home) {
    let log = Log::default();
    let same = home.spawn(Same(log.clone(), 0).into_builder(()));
    home.block_on(async {
        for number in [1, 2, 3, 4, 0, 5] {
            same.tell(number).unwrap();
        }
        same.join().await.unwrap();
    });
    assert_eq!(log.take(), [4, 1, 2, 3, 5]);
}

/// A machine with a timer that is due at once.
struct Timed(Log<u32>);

impl Machine for Timed {
    type State = bool;
    type Message = u32;
    type Value = ();

    async fn on(&mut self, open: &bool, number: u32, cx: &mut Context<u32>) -> Next<Self> {
        match (open, number) {
            (false, 0) => {
                for number in 10..15 {
                    cx.send_after(Duration::ZERO, number).detach();
                }
                Next::To(true)
            }
            (false, early) => Next::Save(early),
            (true, number) => {
                self.0.add(number);
                match self.0.len() {
                    15 => Next::Done(()),
                    _ => Next::Stay,
                }
            }
        }
    }
}

fn saved_messages_come_before_those_of_sources(home: &Home) {
    let log = Log::default();
    let timed = home.spawn(Timed(log.clone()).into_builder(false));
    home.block_on(async {
        for number in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0] {
            timed.tell(number).unwrap();
        }
        timed.join().await.unwrap();
    });
    assert_eq!(log.take()[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

fn one_too_many_saved_messages_is_refused(home: &Home) {
    let log = Log::default();
    let gate = home.spawn(saving(&log, 2));
    home.block_on(async {
        gate.tell(Message::Pass(1)).unwrap();
        let second = gate.request(|reply| Message::Request(2, reply));
        let mut second = Box::pin(second);
        assert!(futures::poll!(&mut second).is_pending());
        let third = gate.ask(|reply| Message::Request(3, reply)).await;
        let Err(AskError::Refused(refusal)) = third else {
            panic!("{third:?}");
        };
        assert_eq!(refusal.kind(), RefusalKind::Overloaded);
        let says = "overloaded (the machine has saved as many messages as it may: 2)";
        assert_eq!(refusal.to_string(), says);
        gate.tell(Message::Pass(4)).unwrap();
        gate.tell(Message::Open).unwrap();
        assert_eq!(second.await, Ok(2));
        // There is room again.
        gate.tell(Message::Close).unwrap();
        gate.tell(Message::Pass(5)).unwrap();
        gate.tell(Message::Open).unwrap();
        gate.join().await.unwrap();
    });
    assert_eq!(log.take(), [1, 2, 5]);
}

fn a_machine_that_may_save_nothing_refuses_each(home: &Home) {
    let log = Log::default();
    let gate = home.spawn(saving(&log, 0));
    home.block_on(async {
        let early = gate.ask(|reply| Message::Request(1, reply)).await;
        assert!(matches!(early, Err(AskError::Refused(_))), "{early:?}");
        gate.tell(Message::Open).unwrap();
        assert_eq!(gate.ask(|reply| Message::Request(2, reply)).await, Ok(2));
    });
}

fn a_saved_message_always_has_room_to_be_saved_again(home: &Home) {
    let log = Log::default();
    let counter = home.spawn(Counter(log.clone(), 3).into_builder(0));
    home.block_on(async {
        for number in [2, 2, 2, 0, 2, 0] {
            counter.tell(number).unwrap();
        }
        counter.join().await.unwrap();
    });
    assert_eq!(log.take(), [0, 0, 2, 2, 2]);
}

/// A machine that saves numbers until it gets 0, then logs each. It kills itself at a number.
struct Late {
    log: Log<u32>,
    kills_at: u32,
}

impl Machine for Late {
    type State = bool;
    type Message = u32;
    type Value = ();

    async fn on(&mut self, open: &bool, number: u32, cx: &mut Context<u32>) -> Next<Self> {
        match (open, number) {
            (_, 0) => Next::To(true),
            (false, early) => Next::Save(early),
            (true, number) => {
                self.log.add(number);
                if number == self.kills_at {
                    cx.address().kill();
                }
                Next::Stay
            }
        }
    }
}

fn a_killed_machine_handles_no_other_saved_message(home: &Home) {
    let (log, left) = (Log::default(), Log::default());
    let (lost, late) = (left.clone(), log.clone());
    let late = Late {
        log: late,
        kills_at: 2,
    };
    let late = late.into_builder(false);
    let late = home.spawn(late.on_undelivered(move |number| lost.add(number)));
    home.block_on(async {
        for number in [1, 2, 3, 4, 0, 5] {
            late.tell(number).unwrap();
        }
        late.closed().await;
    });
    assert_eq!((log.take(), left.take()), (vec![1, 2], vec![3, 4, 5]));
}

/// Saved messages count against the batch of a turn, as new ones do.
fn many_saved_messages_let_other_tasks_run(home: &Home) {
    let log = Log::default();
    let late = Late {
        log: log.clone(),
        kills_at: 0,
    };
    let late = late.into_builder(false);
    home.block_on(async {
        let late = home.spawn(late);
        for number in (1..=10_000).chain([0]) {
            late.tell(number).unwrap();
        }
        let seen = home.spawn_task(async move {
            while log.len() == 0 {
                yield_now().await;
            }
            log.len()
        });
        assert!(seen.await < 10_000);
        late.join().await.unwrap();
    });
}

fn saved_messages_leave_their_places_in_the_mailbox(home: &Home) {
    let log = Log::default();
    let gate = home.spawn(closed(&log).capacity(1));
    home.block_on(async {
        for number in 1..=20 {
            gate.send(Message::Pass(number)).await.unwrap();
        }
        gate.send(Message::Open).await.unwrap();
        gate.join().await.unwrap();
    });
    assert!(log.take().into_iter().eq(1..=20));
}
