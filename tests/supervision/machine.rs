//! State machines: what each state does with a message, and what becomes of saved ones.

mod document;
mod ends;
#[cfg(target_os = "linux")]
mod example;
mod model;
mod restarts;
mod saved;

use greenroom::machine::{Ended, Machine, Next};
use greenroom::{ActorBuilder, Context, Reply};

use crate::support::{Gate, Log};

/// A gate that opens and closes, and lets numbers pass while it is open.
struct Turnstile {
    passed: Log<u32>,
    saved_capacity: usize,
}

/// More messages than a machine of a test saves, if it does not test that.
const MANY: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Closed,
    Open,
}

enum Message {
    Open,
    Close,
    Pass(u32),
    /// Answered with the number while it is open.
    Request(u32, Reply<u32>),
    /// Ends it in any state.
    Remove(&'static str),
    Panic(&'static str),
    /// Opens the first gate, then waits for the other one.
    Hold(Gate, Gate),
}

impl Machine for Turnstile {
    type State = State;
    type Message = Message;
    type Value = &'static str;

    async fn on(
        &mut self,
        state: &State,
        message: Message,
        _cx: &mut Context<Message>,
    ) -> Next<Self> {
        match (state, message) {
            (State::Closed, Message::Open) => Next::To(State::Open),
            (State::Open, Message::Close) => Next::To(State::Closed),
            (State::Closed, ignored @ Message::Close) => Next::Ignore(ignored),
            (State::Open, ignored @ Message::Open) => Next::Ignore(ignored),
            (State::Closed, early @ (Message::Pass(_) | Message::Request(..))) => Next::Save(early),
            (State::Open, Message::Pass(number)) => {
                self.passed.add(number);
                Next::Stay
            }
            (State::Open, Message::Request(number, reply)) => {
                self.passed.add(number);
                reply.send(number);
                Next::Stay
            }
            (_, Message::Remove(why)) => Next::Done(why),
            (_, Message::Panic(text)) => panic!("{text}"),
            (_, Message::Hold(begun, end)) => {
                begun.open();
                end.wait().await;
                Next::Stay
            }
        }
    }

    fn saved_capacity(&self) -> usize {
        self.saved_capacity
    }
}

/// The builder of a turnstile that is closed.
fn closed(
    passed: &Log<u32>,
) -> ActorBuilder<Message, (Turnstile, State), impl Future<Output = Ended<Turnstile>> + Send + use<>>
{
    saving(passed, MANY)
}

/// The builder of a turnstile that is closed, and saves at most this many messages.
fn saving(
    passed: &Log<u32>,
    saved_capacity: usize,
) -> ActorBuilder<Message, (Turnstile, State), impl Future<Output = Ended<Turnstile>> + Send + use<>>
{
    let turnstile = Turnstile {
        passed: passed.clone(),
        saved_capacity,
    };
    turnstile.into_builder(State::Closed)
}

/// Returns the number of a message that has one.
fn number_of(message: &Message) -> Option<u32> {
    match message {
        Message::Pass(number) | Message::Request(number, _) => Some(*number),
        _ => None,
    }
}
