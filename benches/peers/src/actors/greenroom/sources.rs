//! An actor with four sources, on greenroom.

use futures_util::stream::{self, StreamExt};
use greenroom::{Address, Context, spawn};

use super::{Question, echo};
use crate::actors::sources::{Item, Received};
use crate::figures::Figure;
use crate::sizes::{SOURCED, TICK_EVERY};

async fn actor(mut cx: Context<Item>, echo: Address<Question>) -> Vec<Figure> {
    let mut received = Received::nothing();
    let _ticks = cx.send_every(TICK_EVERY, || Item::Tick);
    let _stream = cx.attach(stream::iter(0..SOURCED).map(Item::Streamed));
    let ask = |cx: &mut Context<Item>, n| {
        let request = echo.request(move |reply| Question(n, reply));
        cx.on_answer(request, |answer| {
            Item::Answered(answer.expect("it answers"))
        });
    };
    Received::first_requests().for_each(|n| ask(&mut cx, n));
    while !received.is_all() {
        let item = cx.recv().await.expect("it is open");
        if let Some(n) = received.add(item) {
            ask(&mut cx, n);
        }
    }
    received.figures()
}

/// Runs the case `sources`.
pub async fn sources() -> Vec<Figure> {
    let echo = spawn!(echo(_));
    let actor = spawn!(actor(_, echo.address()));
    for n in 0..SOURCED {
        assert!(actor.tell(Item::Sent(n)).is_ok(), "the actor lives");
    }
    actor.join().await.expect("no panic")
}
