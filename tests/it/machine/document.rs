//! What layer_cake says of its machines.

use greenroom::machine::{Machine, Next, machine};
use greenroom::{Actor, Context, Reply, actor_from};

use super::{Message, closed};
use crate::support::{Home, Log, in_every_home};

in_every_home!(
    a_stateless_actor_has_a_handler_for_each_type_and_one_for_unknown_ones,
    a_machine_decides_by_state_and_type,
    the_last_saved_message_comes_again_without_a_newer_one,
    start_comes_before_the_first_message,
    complete_ends_the_machine_at_once,
);

/// A message of one of many types.
enum Typed {
    Number(u32),
    Text(&'static str),
    /// A type without a handler.
    Picture,
}

struct Stateless(Log<String>);

impl Actor for Stateless {
    type Message = Typed;

    async fn handle(&mut self, message: Typed, _cx: &mut Context<Typed>) {
        match message {
            Typed::Number(number) => self.0.add(number.to_string()),
            Typed::Text(text) => self.0.add(text.into()),
            // layer_cake's `Unknown`.
            _ => self.0.add("unknown".into()),
        }
    }
}

fn a_stateless_actor_has_a_handler_for_each_type_and_one_for_unknown_ones(home: &Home) {
    let log = Log::default();
    let stateless = home.spawn(actor_from(Stateless(log.clone())));
    home.block_on(async {
        for message in [Typed::Text("a"), Typed::Picture, Typed::Number(1)] {
            stateless.tell(message).unwrap();
        }
        stateless.join().await.unwrap();
    });
    assert_eq!(log.take(), ["a", "unknown", "1"]);
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
        let (reply, last) = greenroom::reply();
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
        let (reply, _answer) = greenroom::reply();
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
    let started = home.spawn(machine(started, ()));
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
