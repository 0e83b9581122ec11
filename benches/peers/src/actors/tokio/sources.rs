//! An actor with four sources, by hand on tokio.

use futures_util::stream::{self, FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval};

use super::{Question, echo, question};
use crate::actors::sources::{Item, Received};
use crate::figures::Figure;
use crate::sizes::{SOURCED, TICK_EVERY};

async fn actor(mut inbox: UnboundedReceiver<u64>, echo: UnboundedSender<Question>) -> Vec<Figure> {
    let mut received = Received::nothing();
    let mut ticks = interval(TICK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await; // the first is at once
    let mut stream = stream::iter(0..SOURCED);
    let mut requests: FuturesUnordered<_> = Received::first_requests()
        .map(|n| question(&echo, n))
        .collect();
    while !received.is_all() {
        let item = tokio::select! {
            Some(n) = inbox.recv() => Item::Sent(n),
            Some(n) = stream.next() => Item::Streamed(n),
            Some(n) = requests.next() => Item::Answered(n),
            _ = ticks.tick() => Item::Tick,
        };
        if let Some(n) = received.add(item) {
            requests.push(question(&echo, n));
        }
    }
    received.figures()
}

/// Runs the case `sources`.
pub async fn sources() -> Vec<Figure> {
    let (echo_address, inbox) = unbounded_channel();
    tokio::spawn(echo(inbox));
    let (address, inbox) = unbounded_channel();
    let actor = tokio::spawn(actor(inbox, echo_address));
    for n in 0..SOURCED {
        address.send(n).expect("the actor lives");
    }
    actor.await.expect("no panic")
}
