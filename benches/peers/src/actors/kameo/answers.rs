//! Many requests in flight, on kameo.

use std::convert::Infallible;

use kameo::actor::{Actor, ActorRef};
use kameo::error::SendError;
use kameo::message::{Context, Message};

use super::{Echo, Question, spawn};
use crate::actors::{Sum, waves, with_many_and_one};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::IN_FLIGHT;

struct Wave(Sum);
struct Answer(Result<u64, SendError<Question>>);

/// An actor that sends a wave of requests at once, and adds up their answers.
struct Asker {
    echo: ActorRef<Echo>,
    sum: Option<Sum>,
}

plain_actors!(Asker);

impl Message<Wave> for Asker {
    type Reply = ();

    async fn handle(&mut self, Wave(sum): Wave, cx: &mut Context<Self, ()>) {
        self.sum = Some(sum);
        for n in 0..IN_FLIGHT {
            let echo = self.echo.clone();
            cx.pipe(async move { Answer(echo.ask(Question(n)).await) });
        }
    }
}

impl Message<Answer> for Asker {
    type Reply = ();

    async fn handle(&mut self, Answer(answer): Answer, _: &mut Context<Self, ()>) {
        let sum = self.sum.as_mut().expect("a wave was told first");
        sum.add(answer.expect("it answers"));
    }
}

async fn ask(what: &'static str) -> Figure {
    let (echo, sum) = (spawn(Echo), None);
    let asker = spawn(Asker { echo, sum });
    waves(what, |sum| {
        let asker = asker.clone();
        async move { asker.tell(Wave(sum)).await.expect("the actor lives") }
    })
    .await
}

/// Runs the case `answers`.
pub fn answers() -> Vec<Figure> {
    with_many_and_one(|workers, what| Tokio::of(workers).inside(ask(what)))
}
