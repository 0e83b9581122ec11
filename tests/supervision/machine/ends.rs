//! How a machine ends, and what becomes of the messages that it leaves.

use greenroom::machine::{Ended, Machine, Next};
use greenroom::{Address, AskCause, AskError, Context, Fault, Handle, Runtime};

use super::{Message, State, Turnstile, closed, number_of};
use crate::support::{Gate, Home, Log, WATCH, in_every_home, keep_bombs_quiet, within};

in_every_home!(
    a_value_ends_the_machine_at_once,
    a_machine_that_is_stopped_has_no_value,
    what_a_value_leaves_is_undelivered_in_order,
    what_a_stop_leaves_saved_is_undelivered,
    what_a_kill_leaves_is_undelivered_in_order,
    what_a_panic_leaves_is_undelivered_in_order,
    a_bounded_machine_leaves_its_messages_in_order,
    the_askers_of_saved_messages_learn_the_end,
    a_kill_amid_saved_messages_loses_none,
    an_ignored_request_has_no_reply,
);

/// Spawns a closed machine, of which undelivered numbers are logged.
fn logged(home: &Home, left: &Log<u32>) -> Handle<Message, Ended<Turnstile>> {
    let left = left.clone();
    let builder = closed(&Log::default());
    home.spawn(builder.on_undelivered(move |message| left.add(number_of(&message).unwrap())))
}

/// Lets the machine save 1 and 2, and wait with 3 and 4 in its mailbox. Returns what it waits for.
async fn fill(gate: &Address<Message>) -> Gate {
    let (begun, end) = (Gate::default(), Gate::default());
    gate.tell(Message::Pass(1)).unwrap();
    gate.tell(Message::Pass(2)).unwrap();
    gate.tell(Message::Hold(begun.clone(), end.clone()))
        .unwrap();
    begun.wait().await;
    end
}

fn a_value_ends_the_machine_at_once(home: &Home) {
    let log = Log::default();
    let gate = home.spawn(closed(&log));
    home.block_on(async {
        gate.tell(Message::Open).unwrap();
        gate.tell(Message::Pass(1)).unwrap();
        gate.tell(Message::Remove("rust")).unwrap();
        gate.tell(Message::Pass(2)).ok();
        let address = gate.address();
        let ended = gate.join().await.unwrap();
        assert_eq!(ended.value, Some("rust"));
        assert_eq!(ended.machine.passed.take(), [1]);
        assert!(address.tell(Message::Pass(3)).unwrap_err().is_closed());
    });
}

fn a_machine_that_is_stopped_has_no_value(home: &Home) {
    let gate = home.spawn(closed(&Log::default()));
    home.block_on(async {
        gate.tell(Message::Open).unwrap();
        gate.tell(Message::Pass(1)).unwrap();
        gate.stop();
        let ended = gate.join().await.unwrap();
        assert_eq!(ended.value, None);
        assert_eq!(ended.machine.passed.take(), [1]);
    });
}

fn what_a_value_leaves_is_undelivered_in_order(home: &Home) {
    let left = Log::default();
    let gate = logged(home, &left);
    home.block_on(async {
        let end = fill(&gate).await;
        gate.tell(Message::Remove("rust")).unwrap();
        gate.tell(Message::Pass(3)).unwrap();
        gate.tell(Message::Pass(4)).unwrap();
        end.open();
        gate.closed().await;
    });
    assert_eq!(left.take(), [1, 2, 3, 4]);
}

fn what_a_stop_leaves_saved_is_undelivered(home: &Home) {
    let left = Log::default();
    let gate = logged(home, &left);
    home.block_on(async {
        let end = fill(&gate).await;
        gate.tell(Message::Pass(3)).unwrap();
        gate.stop();
        end.open();
        gate.closed().await;
    });
    assert_eq!(left.take(), [1, 2, 3]);
}

fn what_a_kill_leaves_is_undelivered_in_order(home: &Home) {
    let left = Log::default();
    let gate = logged(home, &left);
    home.block_on(async {
        let _end = fill(&gate).await;
        gate.tell(Message::Pass(3)).unwrap();
        gate.tell(Message::Pass(4)).unwrap();
        gate.kill();
        gate.closed().await;
    });
    assert_eq!(left.take(), [1, 2, 3, 4]);
}

fn what_a_panic_leaves_is_undelivered_in_order(home: &Home) {
    keep_bombs_quiet();
    let left = Log::default();
    let gate = logged(home, &left);
    home.block_on(async {
        let end = fill(&gate).await;
        gate.tell(Message::Pass(3)).unwrap();
        gate.tell(Message::Panic("bomb")).unwrap();
        gate.tell(Message::Pass(4)).unwrap();
        end.open();
        assert!(matches!(gate.join().await, Err(Fault::Panicked(_))));
    });
    assert_eq!(left.take(), [1, 2, 3, 4]);
}

fn a_bounded_machine_leaves_its_messages_in_order(home: &Home) {
    let left = Log::default();
    let lost = left.clone();
    let builder = closed(&Log::default()).capacity(2);
    let builder = builder.on_undelivered(move |message| lost.add(number_of(&message).unwrap()));
    let gate = home.spawn(builder);
    home.block_on(async {
        for number in [1, 2, 3] {
            gate.send(Message::Pass(number)).await.unwrap();
        }
        let (begun, end) = (Gate::default(), Gate::default());
        gate.send(Message::Hold(begun.clone(), end)).await.unwrap();
        begun.wait().await;
        gate.send(Message::Pass(4)).await.unwrap();
        gate.send(Message::Pass(5)).await.unwrap();
        gate.kill();
        gate.closed().await;
    });
    assert_eq!(left.take(), [1, 2, 3, 4, 5]);
}

fn the_askers_of_saved_messages_learn_the_end(home: &Home) {
    keep_bombs_quiet();
    type End = fn(&Address<Message>);
    let ends: [(End, AskCause); 4] = [
        (|gate| gate.stop(), AskCause::Ended),
        (|gate| gate.kill(), AskCause::Killed),
        (
            |gate| gate.tell(Message::Remove("")).unwrap(),
            AskCause::Ended,
        ),
        (
            |gate| gate.tell(Message::Panic("bomb")).unwrap(),
            AskCause::Panicked("bomb".into()),
        ),
    ];
    home.block_on(async {
        for (end, cause) in ends {
            let gate = home.spawn(closed(&Log::default()).name("gate"));
            let (reply, answer) = greenroom::Reply::pair();
            gate.tell(Message::Request(1, reply)).unwrap();
            let (begun, go) = (Gate::default(), Gate::default());
            go.open();
            gate.tell(Message::Hold(begun.clone(), go)).unwrap();
            begun.wait().await;
            end(&gate);
            let Err(AskError::NoReply(detail)) = answer.await else {
                panic!("it was not answered");
            };
            assert_eq!(*detail.why(), cause);
            assert_eq!(detail.actor().unwrap().name(), Some("gate"));
        }
    });
}

fn a_kill_amid_saved_messages_loses_none(home: &Home) {
    let (log, left) = (Log::default(), Log::default());
    let lost = left.clone();
    let builder = closed(&log).on_undelivered(move |message| {
        if let Some(number) = number_of(&message) {
            lost.add(number);
        }
    });
    let gate = home.spawn(builder);
    home.block_on(async {
        for number in 1..=200 {
            gate.tell(Message::Pass(number)).unwrap();
        }
        gate.tell(Message::Open).unwrap();
        // At times the machine is between two batches of saved messages then.
        greenroom::yield_now().await;
        gate.kill();
        gate.closed().await;
    });
    let mut all = log.take();
    all.extend(left.take());
    assert!(all.into_iter().eq(1..=200));
}

fn an_ignored_request_has_no_reply(home: &Home) {
    struct Deaf;
    impl Machine for Deaf {
        type State = State;
        type Message = greenroom::Reply<()>;
        type Value = ();

        async fn on(
            &mut self,
            state: &State,
            message: Self::Message,
            _cx: &mut Context<Self::Message>,
        ) -> Next<Self> {
            assert_eq!(*state, State::Closed);
            Next::Ignore(message)
        }
    }
    let deaf = home.spawn(Deaf.into_builder(State::Closed));
    home.block_on(async {
        let Err(AskError::NoReply(detail)) = deaf.ask(|reply| reply).await else {
            panic!("it has no reply");
        };
        assert_eq!(*detail.why(), AskCause::ReplyDropped);
    });
}

#[test]
fn a_shutdown_counts_saved_messages_as_unhandled() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let gate = closed(&Log::default()).on(&runtime).spawn();
        let report = runtime.block_on(async {
            let end = fill(&gate).await;
            gate.tell(Message::Pass(3)).unwrap();
            end.open();
            runtime.shutdown().await
        });
        assert_eq!((report.unhandled, report.ended), (3, 1));
    });
}
