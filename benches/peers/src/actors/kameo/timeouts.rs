//! Asks with a time-out, on kameo.

use std::convert::Infallible;

use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::mailbox;
use kameo::message::{Context, Message};

use super::Question;
use crate::actors::timeouts::{Opened, waves};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::ASK_LIMIT;

/// An actor that answers with the number, once all have asked.
struct Gated;

impl Actor for Gated {
    type Args = Opened;
    type Error = Infallible;

    async fn on_start(opened: Opened, _: ActorRef<Self>) -> Result<Self, Infallible> {
        opened.await.expect("all ask");
        Ok(Self)
    }
}

impl Message<Question> for Gated {
    type Reply = u64;

    async fn handle(&mut self, Question(n): Question, _: &mut Context<Self, u64>) -> u64 {
        n
    }
}

/// Runs the case `ask_timeouts`.
pub async fn timeouts() -> Vec<Figure> {
    let start = |opened| Gated::spawn_with_mailbox(opened, mailbox::unbounded());
    waves(start, |actor, gate, n| {
        let actor: ActorRef<Gated> = actor.clone();
        Tokio::spawn(gate.ask(async move {
            let answer = actor.ask(Question(n)).reply_timeout(ASK_LIMIT).await;
            answer.expect("it answers")
        }))
    })
    .await
}
