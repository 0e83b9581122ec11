//! Asks with a time-out, on ractor.

use ractor::concurrency::Duration;
use ractor::{Actor, ActorProcessingErr, ActorRef, ActorRuntime, call_t};

use super::{Handled, Question};
use crate::actors::timeouts::{Opened, waves};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::ASK_LIMIT;

/// An actor that answers with the number, once all have asked.
struct Gated;

impl Actor for Gated {
    type Msg = Question;
    type State = Option<Opened>;
    type Arguments = Opened;

    async fn pre_start(
        &self,
        _: ActorRef<Question>,
        opened: Opened,
    ) -> Result<Option<Opened>, ActorProcessingErr> {
        Ok(Some(opened))
    }

    async fn post_start(&self, _: ActorRef<Question>, opened: &mut Option<Opened>) -> Handled {
        opened.take().expect("it starts once").await?;
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Question>,
        Question(n, reply): Question,
        _: &mut Option<Opened>,
    ) -> Handled {
        Ok(reply.send(n)?)
    }
}

/// Runs the case `ask_timeouts`.
pub async fn timeouts() -> Vec<Figure> {
    let start = |opened| {
        let spawned = ActorRuntime::spawn_instant(None, Gated, opened);
        spawned.expect("the actor starts").0
    };
    let limit = Duration::as_millis(&ASK_LIMIT) as u64;
    waves(start, |actor, gate, n| {
        let actor = actor.clone();
        Tokio::spawn(
            gate.ask(async move { call_t!(actor, Question, limit, n).expect("it answers") }),
        )
    })
    .await
}
