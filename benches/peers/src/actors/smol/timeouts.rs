//! Asks with a time-out, by hand on async-executor, with a timer of async-io.

use async_channel::unbounded;
use async_io::Timer;
use futures_lite::future;

use super::{echo, question};
use crate::actors::timeouts::{Opened, waves};
use crate::executors::async_executor::THREADS;
use crate::figures::Figure;
use crate::sizes::ASK_LIMIT;

/// Runs the case `ask_timeouts`.
pub async fn timeouts() -> Vec<Figure> {
    let start = |opened: Opened| {
        let (address, inbox) = unbounded();
        let actor = async move {
            opened.await.expect("all ask");
            echo(inbox).await;
        };
        THREADS.spawn(actor).detach();
        address
    };
    waves(start, |address, gate, n| {
        let address = address.clone();
        THREADS.spawn(gate.ask(future::or(
            async move { question(&address, n).await },
            async {
                Timer::after(ASK_LIMIT).await;
                panic!("it is in time")
            },
        )))
    })
    .await
}
