//! Actors that begin anew in place: what stays, what goes, and when it is over.

mod bombs;
mod delays;
mod ending;
mod lending;
mod messages;
mod model;
mod nesting;
mod observed;
mod places;
mod rules;
mod state;

use std::fmt::Debug;
use std::time::Duration;

use greenroom::supervise::Restarts;
use greenroom::time::RetryIntervals;
use greenroom::{ActorBuilder, AskCause, AskError, Context, Fault, Reply, actor};

use crate::support::{Gate, Log};

/// Longer than any test, but in virtual time.
const HOUR: Duration = Duration::from_secs(3600);

/// What the actors of these tests are told to do.
enum Order {
    /// Log this number.
    Log(u32),
    /// Panic with this text.
    Panic(&'static str),
    /// Return.
    Return,
    /// Answer with the number of the incarnation.
    Number(Reply<u64>),
    /// Panic with this text and the reply in hand.
    Lose(&'static str, Reply<()>),
    /// Keep the reply.
    Keep(Reply<()>),
    /// Open the first gate, then wait for the other one.
    Wait(Gate, Gate),
}

/// Does what it is told, and returns the number of its incarnation.
async fn obey(mut cx: Context<Order>, log: Log<u32>) -> u64 {
    let mut kept = Vec::new();
    while let Some(order) = cx.recv().await {
        match order {
            Order::Log(number) => log.add(number),
            Order::Panic(text) => panic!("{text}"),
            Order::Return => break,
            Order::Number(reply) => reply.send(cx.incarnation_number()),
            Order::Lose(text, _reply) => panic!("{text}"),
            Order::Keep(reply) => kept.push(reply),
            Order::Wait(begun, end) => {
                begun.open();
                end.wait().await;
            }
        }
    }
    cx.incarnation_number()
}

/// Creates an actor that does what it is told, and the log of its numbers.
fn obedient() -> (
    Obedient<impl FnOnce(Context<Order>) -> Obeys + Clone + Send + 'static>,
    Log<u32>,
) {
    let log = Log::default();
    let own = log.clone();
    let obeys = move |cx: Context<Order>| -> Obeys { Box::pin(obey(cx, own)) };
    (actor(obeys), log)
}

type Obedient<A> = ActorBuilder<Order, A, Obeys>;
type Obeys = std::pin::Pin<Box<dyn Future<Output = u64> + Send>>;

/// Restarts after each panic, as often as it takes.
fn ever<T>() -> Restarts<T> {
    Restarts::on_fault().intensity(u32::MAX, HOUR)
}

/// Intervals that never end.
fn never() -> RetryIntervals {
    RetryIntervals::every(Duration::MAX)
}

/// Returns the text of the panic with which an actor ended.
#[track_caller]
fn text_of<T: Debug>(result: Result<T, Fault>) -> String {
    match result {
        Err(Fault::Panicked(panic)) => panic.text().unwrap().to_owned(),
        other => panic!("it did not end with a panic: {other:?}"),
    }
}

/// Returns the actor and the cause of an ask without a reply.
#[track_caller]
fn lost<T: Debug>(answer: Result<T, AskError>) -> (Option<u64>, AskCause) {
    match answer {
        Err(AskError::NoReply(detail)) => {
            let actor = detail.actor().map(greenroom::policy::TaskInfo::id);
            (actor, detail.why().clone())
        }
        other => panic!("there is a reply: {other:?}"),
    }
}
