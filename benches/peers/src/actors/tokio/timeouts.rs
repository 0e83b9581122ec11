//! Asks with a time-out, by hand on tokio.

use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use super::{echo, question};
use crate::actors::timeouts::{Opened, waves};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::ASK_LIMIT;

/// Runs the case `ask_timeouts`.
pub async fn timeouts() -> Vec<Figure> {
    let start = |opened: Opened| {
        let (address, inbox) = unbounded_channel();
        tokio::spawn(async move {
            opened.await.expect("all ask");
            echo(inbox).await;
        });
        address
    };
    waves(start, |address, gate, n| {
        let address = address.clone();
        Tokio::spawn(gate.ask(async move {
            let answer = timeout(ASK_LIMIT, question(&address, n)).await;
            answer.expect("it is in time")
        }))
    })
    .await
}
