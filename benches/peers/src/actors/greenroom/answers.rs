//! Many requests in flight, on greenroom.

use greenroom::{Address, AskError, Context, spawn};

use super::{Question, echo};
use crate::actors::{Sum, waves, with_many_and_one};
use crate::executors::Executor;
use crate::executors::greenroom::Greenroom;
use crate::figures::Figure;
use crate::sizes::IN_FLIGHT;

/// A message to the asking actor.
enum Message {
    Wave(Sum),
    Answer(Result<u64, AskError>),
}

/// Sends a wave of requests at once, and adds up their answers.
async fn asker(mut cx: Context<Message>, echo: Address<Question>) {
    let mut sum = None;
    while let Some(message) = cx.recv().await {
        match message {
            Message::Wave(new) => {
                sum = Some(new);
                for n in 0..IN_FLIGHT {
                    let request = echo.request(move |reply| Question(n, reply));
                    cx.on_answer(request, Message::Answer);
                }
            }
            Message::Answer(answer) => {
                let sum = sum.as_mut().expect("a wave was told first");
                sum.add(answer.expect("it answers"));
            }
        }
    }
}

async fn ask(what: &'static str) -> Figure {
    let echo = spawn!(echo(_));
    let asker = spawn!(asker(_, echo.address()));
    waves(what, |sum| asker.send(Message::Wave(sum))).await
}

/// Runs the case `answers`.
pub fn answers() -> Vec<Figure> {
    with_many_and_one(|workers, what| Greenroom::of(workers).inside(ask(what)))
}
