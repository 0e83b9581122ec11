//! Asks with a time-out, on actix.

use std::sync::Arc;

use actix::fut::wrap_future;
use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler};

use super::{Arbiters, Question};
use crate::actors::timeouts::{Opened, waves};
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::{ASK_LIMIT, LIMITED};

/// An actor that answers with the number, once all have asked.
struct Gated(Option<Opened>);

impl Actor for Gated {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        context.set_mailbox_capacity(LIMITED as usize);
        let opened = self.0.take().expect("it starts once");
        let waiting = wrap_future::<_, Self>(opened);
        context.wait(waiting.map(|opened, _, _| opened.expect("all ask")));
    }
}

impl Handler<Question> for Gated {
    type Result = u64;

    fn handle(&mut self, Question(n): Question, _: &mut Context<Self>) -> u64 {
        n
    }
}

/// Runs the case `ask_timeouts`. All tasks are on one arbiter, and the actor is on the other.
pub async fn timeouts(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let start = |opened| Gated::start_in_arbiter(&arbiters.0[1].handle(), |_| Gated(Some(opened)));
    waves(start, |actor, gate, n| {
        let actor = actor.clone();
        Tokio::task(actix::spawn(gate.ask(async move {
            let answer = actor.send(Question(n)).timeout(ASK_LIMIT).await;
            answer.expect("it answers")
        })))
    })
    .await
}
