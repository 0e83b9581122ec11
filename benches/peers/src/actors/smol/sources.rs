//! An actor with four sources, by hand on async-executor, with an interval of async-io.

use async_channel::{Receiver, Sender, unbounded};
use async_io::Timer;
use futures_util::stream::{self, FuturesUnordered, StreamExt};

use super::{Question, echo, question};
use crate::actors::sources::{Item, Received};
use crate::executors::async_executor::THREADS;
use crate::figures::Figure;
use crate::sizes::{SOURCED, TICK_EVERY};

async fn actor(inbox: Receiver<u64>, echo: Sender<Question>) -> Vec<Figure> {
    let mut received = Received::nothing();
    let mut inbox = Box::pin(inbox.fuse());
    let mut ticks = Timer::interval(TICK_EVERY).fuse();
    let mut stream = stream::iter(0..SOURCED).fuse();
    let mut requests: FuturesUnordered<_> = Received::first_requests()
        .map(|n| question(&echo, n))
        .collect();
    while !received.is_all() {
        let item = futures_util::select! {
            n = inbox.select_next_some() => Item::Sent(n),
            n = stream.select_next_some() => Item::Streamed(n),
            n = requests.select_next_some() => Item::Answered(n),
            _ = ticks.select_next_some() => Item::Tick,
        };
        if let Some(n) = received.add(item) {
            requests.push(question(&echo, n));
        }
    }
    received.figures()
}

/// Runs the case `sources`.
pub async fn sources() -> Vec<Figure> {
    let (echo_address, inbox) = unbounded();
    THREADS.spawn(echo(inbox)).detach();
    let (address, inbox) = unbounded();
    let actor = THREADS.spawn(actor(inbox, echo_address));
    for n in 0..SOURCED {
        address.try_send(n).expect("the actor lives");
    }
    actor.await
}
