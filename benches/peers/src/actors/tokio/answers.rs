//! Many requests in flight, by hand on tokio.

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;

use super::{Question, echo};
use crate::actors::{Sum, waves, with_many_and_one};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::IN_FLIGHT;

/// A message to the asking actor.
enum Message {
    Wave(Sum),
    Answer(Result<u64, RecvError>),
}

/// Sends a wave of requests at once, and adds up their answers.
async fn asker(mut inbox: UnboundedReceiver<Message>, echo: UnboundedSender<Question>) {
    let (mut sum, mut answers) = (None, FuturesUnordered::new());
    loop {
        let message = tokio::select! {
            Some(message) = inbox.recv() => message,
            Some(answer) = answers.next() => answer,
            else => break,
        };
        match message {
            Message::Wave(new) => {
                sum = Some(new);
                for n in 0..IN_FLIGHT {
                    let (reply, answer) = oneshot::channel();
                    echo.send((n, reply)).expect("the actor lives");
                    answers.push(answer.map(Message::Answer));
                }
            }
            Message::Answer(answer) => {
                let sum: &mut Sum = sum.as_mut().expect("a wave was told first");
                sum.add(answer.expect("it answers"));
            }
        }
    }
}

async fn ask(what: &'static str) -> Figure {
    let (address, inbox) = unbounded_channel();
    tokio::spawn(echo(inbox));
    let (asker_address, inbox) = unbounded_channel();
    tokio::spawn(asker(inbox, address));
    waves(what, |sum| {
        let told = asker_address.send(Message::Wave(sum));
        async move { assert!(told.is_ok(), "the actor lives") }
    })
    .await
}

/// Runs the case `answers`.
pub fn answers() -> Vec<Figure> {
    with_many_and_one(|workers, what| Tokio::of(workers).inside(ask(what)))
}
