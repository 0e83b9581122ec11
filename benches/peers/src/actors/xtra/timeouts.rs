//! Asks with a time-out, on xtra with tokio's timers.

use tokio::time::timeout;
use xtra::prelude::*;

use super::{Question, spawn};
use crate::actors::timeouts::{Opened, waves};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::ASK_LIMIT;

/// An actor that answers with the number, once all have asked.
struct Gated(Option<Opened>);

impl Actor for Gated {
    type Stop = ();

    async fn started(&mut self, _: &Mailbox<Self>) -> Result<(), ()> {
        let opened = self.0.take().expect("it starts once").await;
        opened.map_err(drop)
    }

    async fn stopped(self) {}
}

impl Handler<Question> for Gated {
    type Return = u64;

    async fn handle(&mut self, Question(n): Question, _: &mut Context<Self>) -> u64 {
        n
    }
}

/// Runs the case `ask_timeouts`.
pub async fn timeouts() -> Vec<Figure> {
    let start = |opened| spawn(Gated(Some(opened)));
    waves(start, |actor, gate, n| {
        let actor = actor.clone();
        Tokio::spawn(gate.ask(async move {
            let answer = timeout(ASK_LIMIT, actor.send(Question(n))).await;
            answer.expect("it is in time").expect("it answers")
        }))
    })
    .await
}
