//! An actor with four sources, on actix.

use std::sync::Arc;

use actix::fut::wrap_future;
use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, StreamHandler};
use futures_util::stream;
use tokio::sync::oneshot;

use super::{Add, Arbiters, Echo, question};
use crate::actors::sources::{Item, Received};
use crate::figures::Figure;
use crate::sizes::{SOURCED, TICK_EVERY};

/// The actor.
struct Listener {
    echo: Addr<Echo>,
    received: Option<Received>,
    done: Option<oneshot::Sender<Vec<Figure>>>,
}

impl Listener {
    fn ask(&self, n: u64, context: &mut Context<Self>) {
        let echo = self.echo.clone();
        let asking = wrap_future::<_, Self>(async move { question(&echo, n).await });
        context.spawn(asking.map(|answer, actor, context| {
            actor.add(Item::Answered(answer), context);
        }));
    }

    /// Adds an item, and sends the next request. At the end it sends the figures.
    fn add(&mut self, item: Item, context: &mut Context<Self>) {
        let Some(received) = &mut self.received else {
            return;
        };
        if let Some(n) = received.add(item) {
            self.ask(n, context);
        }
        if let Some(all) = self.received.take_if(|received| received.is_all()) {
            let done = self.done.take().expect("there is one end");
            done.send(all.figures()).expect("the driver waits");
        }
    }
}

impl Actor for Listener {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.received = Some(Received::nothing());
        context.run_interval(TICK_EVERY, |actor, context| actor.add(Item::Tick, context));
        Self::add_stream(stream::iter(0..SOURCED), context);
        Received::first_requests().for_each(|n| self.ask(n, context));
    }
}

impl StreamHandler<u64> for Listener {
    fn handle(&mut self, n: u64, context: &mut Context<Self>) {
        self.add(Item::Streamed(n), context);
    }

    /// Does nothing, since the actor does not end with its stream.
    fn finished(&mut self, _: &mut Context<Self>) {}
}

impl Handler<Add> for Listener {
    type Result = ();

    fn handle(&mut self, Add(n): Add, context: &mut Context<Self>) {
        self.add(Item::Sent(n), context);
    }
}

/// Runs the case `sources`.
pub async fn sources(arbiters: Arc<Arbiters>) -> Vec<Figure> {
    let (done, figures) = oneshot::channel();
    let (echo, received, done) = (arbiters.start(Echo), None, Some(done));
    let actor = arbiters.start(Listener {
        echo,
        received,
        done,
    });
    for n in 0..SOURCED {
        actor.do_send(Add(n));
    }
    figures.await.expect("all arrive")
}
