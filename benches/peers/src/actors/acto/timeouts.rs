//! Asks with a time-out, on acto with tokio's oneshot and timers.

use acto::{AcTokioRuntime, ActoRuntime};
use tokio::time::timeout;

use super::{Cell, echo, question};
use crate::actors::timeouts::{Opened, waves};
use crate::executors::Executor;
use crate::executors::tokio::Tokio;
use crate::figures::Figure;
use crate::sizes::ASK_LIMIT;

/// Runs the case `ask_timeouts`.
pub async fn timeouts(runtime: AcTokioRuntime) -> Vec<Figure> {
    let start = |opened: Opened| {
        let actor = |cell: Cell<_>| async move {
            opened.await.expect("all ask");
            echo(cell).await;
        };
        runtime.spawn_actor("echo", actor).me
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
