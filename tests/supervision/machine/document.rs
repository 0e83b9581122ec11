//! What layer_cake says of its machines.

use greenroom::machine::{Machine, Next};
use greenroom::{AskError, Context, Reply};

use super::{Message, closed};
use crate::support::{Home, Log, in_every_home};

in_every_home!(
    a_message_is_saved_any_number_of_times_and_others_are_dropped,
    a_machine_decides_by_state_and_type,
    the_last_saved_message_comes_again_without_a_newer_one,
    start_comes_before_the_first_message,
    complete_ends_the_machine_at_once,
);

/// A machine that goes through many states, and saves what it waits for until the last one.
struct Patient(Log<u32>);

/// The number of its last state: more than the eight times for which layer_cake keeps a message.
const LAST: u32 = 20;

enum Visit {
    Next,
    Wanted(u32),
    Other(Reply<()>),
}

impl Machine for Patient {
    type State = u32;
    type Message = Visit;
    type Value = ();

    async fn on(&mut self, state: &u32, visit: Visit, _cx: &mut Context<Visit>) -> Next<Self> {
        match (*state, visit) {
            (number, Visit::Next) => Next::To(number + 1),
            (LAST, Visit::Wanted(number)) => {
                self.0.add(number);
                Next::Stay
            }
            (LAST, Visit::Other(reply)) => {
                reply.send(());
                Next::Stay
            }
            (_, wanted @ Visit::Wanted(_)) => Next::Save(wanted),
            (_, other @ Visit::Other(_)) => Next::Ignore(other),
        }
    }
}

fn a_message_is_saved_any_number_of_times_and_others_are_dropped(home: &Home) {
    let log = Log::default();
    let patient = home.spawn(Patient(log.clone()).into_builder(0));
    home.block_on(async {
        for number in 0..LAST {
            patient.tell(Visit::Wanted(number)).unwrap();
            let dropped = patient.ask(Visit::Other).await;
            assert!(matches!(dropped, Err(AskError::NoReply(_))), "{dropped:?}");
            assert_eq!(log.len(), 0);
            patient.tell(Visit::Next).unwrap();
        }
        assert_eq!(patient.ask(Visit::Other).await, Ok(()));
    });
    assert!(log.take().into_iter().eq(0..LAST));
}

fn a_machine_decides_by_state_and_type(home: &Home) {
    let log = Log::default();
    let gate = home.spawn(closed(&log));
    home.block_on(async {
        gate.tell(Message::Close).unwrap(); // ignored
        gate.tell(Message::Open).unwrap();
        gate.tell(Message::Pass(1)).unwrap(); // handled
        gate.tell(Message::Close).unwrap();
        gate.tell(Message::Pass(2)).unwrap(); // saved
        gate.tell(Message::Open).unwrap();
        gate.tell(Message::Open).unwrap(); // ignored
        gate.join().await.unwrap();
    });
    assert_eq!(log.take(), [1, 2]);
}

fn the_last_saved_message_comes_again_without_a_newer_one(home: &Home) {
    let gate = home.spawn(closed(&Log::default()));
    home.block_on(async {
        let (reply, last) = Reply::pair();
        gate.tell(Message::Request(1, reply)).unwrap();
        gate.tell(Message::Open).unwrap();
        // Nothing is sent any more, and the machine lives on.
        assert_eq!(last.await, Ok(1));
        assert!(!gate.is_closed());
    });
}

/// A machine that has to be started.
struct Started {
    log: Log<&'static str>,
    is_started: bool,
}

impl Machine for Started {
    type State = ();
    type Message = Reply<()>;
    type Value = u32;

    async fn started(&mut self, cx: &mut Context<Reply<()>>) {
        assert!(!std::mem::replace(&mut self.is_started, true));
        greenroom::yield_now().await;
        // It has a context like any handler.
        let (reply, _answer) = Reply::pair();
        cx.address().tell(reply).unwrap();
        self.log.add("started");
    }

    async fn on(&mut self, (): &(), reply: Reply<()>, _cx: &mut Context<Reply<()>>) -> Next<Self> {
        assert!(self.is_started);
        self.log.add("message");
        reply.send(());
        match self.log.len() {
            3 => Next::Done(42),
            _ => Next::Stay,
        }
    }
}

fn start_comes_before_the_first_message(home: &Home) {
    let log = Log::default();
    let started = Started {
        log: log.clone(),
        is_started: false,
    };
    let started = home.spawn(started.into_builder(()));
    home.block_on(async {
        started.ask(|reply| reply).await.unwrap();
        assert_eq!(started.join().await.unwrap().value, Some(42));
    });
    assert_eq!(log.take(), ["started", "message", "message"]);
}

fn complete_ends_the_machine_at_once(home: &Home) {
    let log = Log::default();
    let gate = home.spawn(closed(&log));
    home.block_on(async {
        gate.tell(Message::Pass(1)).unwrap();
        gate.tell(Message::Remove("rust")).unwrap();
        gate.tell(Message::Open).ok();
        let ended = gate.join().await.unwrap();
        assert_eq!(ended.value, Some("rust"));
    });
    // What was saved is not handled either.
    assert_eq!(log.take(), [0; 0]);
}
