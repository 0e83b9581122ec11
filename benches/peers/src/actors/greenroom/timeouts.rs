//! Asks with a time-out, on greenroom.

use greenroom::{Context, spawn};

use super::{Question, echo};
use crate::actors::timeouts::{Opened, waves};
use crate::executors::Executor;
use crate::executors::greenroom::Greenroom;
use crate::figures::Figure;
use crate::sizes::ASK_LIMIT;

async fn gated(cx: Context<Question>, opened: Opened) {
    opened.await.expect("all ask");
    echo(cx).await;
}

/// Runs the case `ask_timeouts`.
pub async fn timeouts() -> Vec<Figure> {
    let start = |opened| spawn!(gated(_, opened)).address();
    waves(start, |address, gate, n| {
        let address = address.clone();
        Greenroom::spawn(gate.ask(async move {
            let ask = address.ask(|reply| Question(n, reply)).timeout(ASK_LIMIT);
            ask.await.expect("it answers")
        }))
    })
    .await
}
