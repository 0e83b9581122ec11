//! An actor with four sources, on kameo.
//!
//! `attach_stream` spawns a task that sends each item, and `pipe` one for each request. The interval
//! is a stream of tokio's ticks.

use std::convert::Infallible;

use futures_util::stream::{self, StreamExt, unfold};
use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::error::SendError;
use kameo::mailbox;
use kameo::message::{Context, Message, StreamMessage};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval_at};

use super::{Echo, Question, spawn};
use crate::actors::sources::{Item, Received};
use crate::figures::Figure;
use crate::sizes::{SOURCED, TICK_EVERY};

struct Begin;
struct Sent(u64);
struct Answer(Result<u64, SendError<Question>>);

/// The actor.
struct Listener {
    echo: ActorRef<Echo>,
    received: Option<Received>,
    done: Option<oneshot::Sender<Vec<Figure>>>,
}

impl Listener {
    fn ask(&self, n: u64) -> impl Future<Output = Answer> + Send + 'static {
        let echo = self.echo.clone();
        async move { Answer(echo.ask(Question(n)).await) }
    }

    /// Adds an item; returns the next request. At the end it sends the figures.
    fn add(&mut self, item: Item) -> Option<u64> {
        let next = self.received.as_mut()?.add(item);
        if let Some(all) = self.received.take_if(|received| received.is_all()) {
            let done = self.done.take().expect("there is one end");
            done.send(all.figures()).expect("the driver waits");
        }
        next
    }
}

impl Actor for Listener {
    type Args = (ActorRef<Echo>, oneshot::Sender<Vec<Figure>>);
    type Error = Infallible;

    async fn on_start((echo, done): Self::Args, own: ActorRef<Self>) -> Result<Self, Infallible> {
        let mut ticks = interval_at(tokio::time::Instant::now() + TICK_EVERY, TICK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let ticks = unfold(ticks, |mut ticks| async {
            ticks.tick().await;
            Some((Item::Tick, ticks))
        });
        own.attach_stream(Box::pin(ticks), (), ());
        own.attach_stream(stream::iter(0..SOURCED).map(Item::Streamed), (), ());
        own.tell(Begin).await.expect("it lives");
        Ok(Self {
            echo,
            received: Some(Received::nothing()),
            done: Some(done),
        })
    }
}

impl Message<Begin> for Listener {
    type Reply = ();

    async fn handle(&mut self, Begin: Begin, cx: &mut Context<Self, ()>) {
        for n in Received::first_requests() {
            cx.pipe(self.ask(n));
        }
    }
}

impl Message<Answer> for Listener {
    type Reply = ();

    async fn handle(&mut self, Answer(answer): Answer, cx: &mut Context<Self, ()>) {
        let answer = answer.expect("it answers");
        if let Some(n) = self.add(Item::Answered(answer)) {
            cx.pipe(self.ask(n));
        }
    }
}

impl Message<Sent> for Listener {
    type Reply = ();

    async fn handle(&mut self, Sent(n): Sent, _: &mut Context<Self, ()>) {
        self.add(Item::Sent(n));
    }
}

impl Message<StreamMessage<Item, (), ()>> for Listener {
    type Reply = ();

    async fn handle(&mut self, message: StreamMessage<Item, (), ()>, _: &mut Context<Self, ()>) {
        if let StreamMessage::Next(item) = message {
            self.add(item);
        }
    }
}

/// Runs the case `sources`.
pub async fn sources() -> Vec<Figure> {
    let (done, figures) = oneshot::channel();
    let actor = Listener::spawn_with_mailbox((spawn(Echo), done), mailbox::unbounded());
    for n in 0..SOURCED {
        actor.tell(Sent(n)).await.expect("the actor lives");
    }
    figures.await.expect("all arrive")
}
