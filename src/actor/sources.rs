//! The sources that `recv` polls beside the mailbox: timers, streams, answers, results of tasks and
//! of children.
//!
//! Sources belong to the context. Only `recv` polls them, on any executor. They are dropped with
//! the context, or by the first `recv` after the mailbox was closed; the results of children stay
//! until they are received. A foreground source holds an address of its actor, so the actor does
//! not close for lack of addresses. `recv` starts alternately with the mailbox and with the
//! sources, so neither starves the other. A panic ends the source and is reported to the executor.

mod adoption;
mod returns;

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::FutureExt;
use futures_util::StreamExt;

pub use adoption::AdoptError;

use self::returns::returned;
use super::address::Address;
use super::context::Context;
use super::handle::Handle;
use super::in_flight::{Flight, FlightParts};
use super::own_sources::OwnSources;
use super::request::{Launched, OwnedRequest, Request};
use super::source::{AttachedSource, Feed, SourceGuard, SourceOrigin, Standing, Switch};
use crate::contain::contain;
use crate::error::{AskError, End, Fault};
use crate::time::{Interval, sleep, timeout};
use crate::tracer::{MessageSource, SentSpan};

impl<M: Send + 'static> Context<M> {
    fn add(
        &mut self,
        from: MessageSource,
        feed: Feed<M>,
        switch: Option<Arc<Switch>>,
        standing: Standing,
    ) {
        self.close_sources_if_closed();
        let (core, _) = self.parts();
        if core.is_closed() {
            return drop(AttachedSource::new(feed, switch, None));
        }
        let keeps_open = standing == Standing::Foreground;
        let address = keeps_open.then(|| Address::own(core));
        // A stream or a watch outlasts what the actor does now.
        let span = match (from, &feed) {
            (MessageSource::Source, Feed::Stream(_)) => SentSpan::NONE,
            _ if !keeps_open => SentSpan::NONE,
            _ => core.current_span(),
        };
        let origin = SourceOrigin { kind: from, span };
        let source = AttachedSource::new(feed, switch, address);
        self.sources_made().add(origin, source);
    }

    fn add_guarded(
        &mut self,
        from: MessageSource,
        feed: Feed<M>,
        standing: Standing,
    ) -> SourceGuard {
        let switch = Switch::new(standing);
        self.add(from, feed, Some(switch.clone()), standing);
        SourceGuard::new(switch)
    }

    /// Returns the sources, which are created if there are none.
    fn sources_made(&mut self) -> &mut OwnSources<M> {
        let (_, reader) = self.parts();
        if !reader.has_sources() {
            reader.put_sources(Box::new(OwnSources::new()));
        }
        reader.sources().expect("they were put there").all()
    }
}

/// Sources, which [`recv`](Context::recv) reads beside the messages that are sent.
///
/// Sources take no room in the mailbox and work on any executor. Only `recv` and
/// [`try_recv`](Context::try_recv) poll them. They are dropped with the actor, and when the actor
/// receives after its mailbox was closed. A source that is added after the close is dropped at
/// once. The results of [adopted](Context::adopt) children are received even then.
///
/// While a source is left, the actor does not close for lack of addresses. A
/// [background](SourceGuard::background) source does not count.
///
/// A panic of a stream or of a closure ends that source and is reported to
/// [`on_fault`](crate::Builder::on_fault); a simulation treats it as a failure. The actor
/// continues.
impl<M: Send + 'static> Context<M> {
    /// Delivers `message` to this actor after `duration`, measured from this call.
    ///
    /// The guard cancels the timer when dropped.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    /// use std::time::Duration;
    ///
    /// async fn patient(mut cx: Context<&'static str>) -> Option<&'static str> {
    ///     let _timer = cx.send_after(Duration::from_millis(1), "timed out");
    ///     cx.recv().await
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(spawn!(patient(_)).join().await.unwrap(), Some("timed out"));
    /// });
    /// ```
    pub fn send_after(&mut self, duration: Duration, message: M) -> SourceGuard {
        self.parts().0.timer(Some(&message), duration);
        let waiting = sleep(duration);
        let feed = Feed::once(async move {
            waiting.await;
            message
        });
        self.add_guarded(MessageSource::Timer, feed, Standing::Foreground)
    }

    /// Delivers a message built by `make` every `period`, starting one period from now.
    ///
    /// At most one tick is pending: ticks that the actor misses are skipped. The guard cancels the
    /// timer when dropped. A period that exceeds the range of the clock never elapses.
    ///
    /// # Panics
    /// If the period is zero.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    /// use std::time::Duration;
    ///
    /// async fn metronome(mut cx: Context<u32>) -> u32 {
    ///     let _timer = cx.send_every(Duration::from_millis(1), || 1);
    ///     let mut ticks = 0;
    ///     while let Some(tick) = cx.recv().await {
    ///         ticks += tick;
    ///         if ticks == 3 {
    ///             cx.stop();
    ///         }
    ///     }
    ///     ticks
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(spawn!(metronome(_)).join().await.unwrap(), 3);
    /// });
    /// ```
    #[track_caller]
    pub fn send_every(
        &mut self,
        period: Duration,
        mut make: impl FnMut() -> M + Send + 'static,
    ) -> SourceGuard {
        let ticks = Interval::after(period);
        self.parts().0.timer(None, period);
        let feed = Feed::Stream(Box::pin(ticks.map(move |_| make())));
        self.add_guarded(MessageSource::Timer, feed, Standing::Foreground)
    }

    /// Delivers the items of a stream as messages, until the stream ends or the guard is dropped.
    ///
    /// The end of the stream is no message. An actor that others keep open, such as an
    /// [adopted](Context::adopt) one, chains one: `lines.map(Some).chain(stream::iter([None]))`.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    ///
    /// async fn sum(mut cx: Context<u32>) -> u32 {
    ///     cx.attach(futures::stream::iter([1, 2, 3])).detach();
    ///     let mut sum = 0;
    ///     while let Some(number) = cx.recv().await {
    ///         sum += number;
    ///     }
    ///     sum
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(spawn!(sum(_)).join().await.unwrap(), 6);
    /// });
    /// ```
    pub fn attach(&mut self, stream: impl Stream<Item = M> + Send + 'static) -> SourceGuard {
        let feed = Feed::Stream(Box::pin(stream));
        self.add_guarded(MessageSource::Source, feed, Standing::Foreground)
    }

    /// Delivers the result of a task or a future as a message, which `make` builds.
    ///
    /// The actor continues to receive meanwhile. The result is an `Err` if the task or future
    /// panicked or was cancelled. Such a panic is not reported to
    /// [`on_fault`](crate::Builder::on_fault). If the source is dropped first, the task or future is
    /// cancelled. For the result of an actor, see [`on_join`](Context::on_join).
    ///
    /// There is no guard that drops one source alone. So work that may be cancelled is an actor:
    /// [`adopt`](Context::adopt) it, and [`kill`](Address::kill) it by its address.
    ///
    /// ```
    /// use greenroom::{Context, Fault, spawn};
    ///
    /// async fn asker(mut cx: Context<Result<u32, Fault>>) -> u32 {
    ///     cx.on_return(async { 40 + 2 }, |result| result);
    ///     cx.recv().await.unwrap().unwrap()
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(spawn!(asker(_)).join().await.unwrap(), 42);
    /// });
    /// ```
    pub fn on_return<F>(
        &mut self,
        future: F,
        make: impl FnOnce(Result<F::Output, Fault>) -> M + Send + 'static,
    ) where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let feed = Feed::once(returned(future).map(make));
        self.add(MessageSource::Source, feed, None, Standing::Foreground);
    }

    /// Delivers the result of another actor as a message, which `make` builds.
    ///
    /// The actor continues to receive meanwhile. The result is an `Err` if the other actor panicked,
    /// was killed or was cancelled. Such a panic is not reported to
    /// [`on_fault`](crate::Builder::on_fault).
    ///
    /// The handle gives up its address at once, as [`join`](crate::Handle::join) does. If the source
    /// is dropped first, the other actor continues and its result is dropped.
    ///
    /// ```
    /// use greenroom::{Context, Fault, spawn};
    ///
    /// async fn parent(mut cx: Context<Result<u32, Fault>>) -> u32 {
    ///     let child = spawn!(|_cx: Context<()>| async { 40 + 2 });
    ///     cx.on_join(child, |result| result);
    ///     cx.recv().await.unwrap().unwrap()
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(spawn!(parent(_)).join().await.unwrap(), 42);
    /// });
    /// ```
    pub fn on_join<N, T>(
        &mut self,
        actor: Handle<N, T>,
        make: impl FnOnce(Result<T, Fault>) -> M + Send + 'static,
    ) where
        N: Send + 'static,
        T: Send + 'static,
    {
        let feed = Feed::once(actor.join().map(make));
        self.add(MessageSource::Source, feed, None, Standing::Foreground);
    }

    /// Sends a request now, and delivers its answer as a message, which `make` builds.
    ///
    /// The actor continues to receive meanwhile, and may have any number of requests in flight.
    /// Their answers arrive in any order. The request is sent before this returns, or waits in line
    /// for room. So a message that is sent to the same actor later cannot overtake it.
    ///
    /// [`Address::request`] makes the request. An [`ask`](Address::ask) borrows its address, so it
    /// cannot be sent here.
    ///
    /// The answer is the error if the request fails, as [`Address::ask`] tells. After this actor's
    /// mailbox was closed, requests in flight are dropped, and a new one is not sent.
    ///
    /// # Panics
    /// If the question of the request panics.
    ///
    /// ```
    /// use greenroom::{Address, AskError, Context, Reply, spawn};
    ///
    /// async fn doubler(mut cx: Context<(u32, Reply<u32>)>) {
    ///     while let Some((number, reply)) = cx.recv().await {
    ///         reply.send(number * 2);
    ///     }
    /// }
    ///
    /// type Answer = Result<u32, AskError>;
    ///
    /// async fn asker(mut cx: Context<Answer>, doubler: Address<(u32, Reply<u32>)>) -> u32 {
    ///     for number in 1..=3 {
    ///         cx.on_answer(doubler.request(move |reply| (number, reply)), |answer| answer);
    ///     }
    ///     let mut sum = 0;
    ///     while let Some(answer) = cx.recv().await {
    ///         sum += answer.unwrap();
    ///     }
    ///     sum // the requests in flight kept the actor open
    /// }
    ///
    /// greenroom::run(async {
    ///     let doubler = spawn!(doubler(_));
    ///     assert_eq!(spawn!(asker(_, doubler.clone())).join().await.unwrap(), 12);
    /// });
    /// ```
    pub fn on_answer<T: Send + 'static>(
        &mut self,
        request: impl OwnedRequest<T>,
        make: impl FnOnce(Result<T, AskError>) -> M + Send + 'static,
    ) {
        let mut request: Request<T> = request.into();
        self.close_sources_if_closed();
        if self.parts().0.is_closed() {
            return contain(|| drop((request, make)));
        }
        if let Some(limit) = request.take_limit() {
            let limited = timeout(limit, request);
            let answer = limited.map(|answer| answer.unwrap_or(Err(AskError::TimedOut)));
            return self.add_answer(answer, make);
        }
        let (mut make, mut flight) = (Some(make), None);
        let launched = request.send(&mut |answer, asked| {
            let make = make.take().expect("a request is launched once");
            let span = self.parts().0.current_span();
            flight = Some(self.launch((answer, asked, make, span)));
        });
        // The flight ends here if the message was not delivered: then a future has its parts.
        let mut take_back = || {
            let parts = self.sources_made().in_flight().take_back(flight.as_ref()?);
            parts.map(|(answer, _, make, _)| (answer, make))
        };
        match launched {
            Ok(Launched::Delivered) => {}
            Ok(Launched::Full(mut asking)) => {
                let (answer, make) = take_back().expect("it has no outcome");
                asking.wait_for_room(answer);
                self.add_answer(Request::of(asking), make);
            }
            Ok(Launched::Closed(error, asking)) => {
                let (answer, make) = take_back().expect("it has no outcome");
                contain(|| drop((answer, asking)));
                self.add_answer(ready(Err(error)), make);
            }
            Err(request) => {
                let make = make.take().expect("it was not launched");
                self.add_answer(request, make);
            }
        }
    }

    /// Adds a request in flight.
    fn launch<T, F>(&mut self, parts: FlightParts<T, F>) -> Arc<Flight<T, F>>
    where
        T: Send + 'static,
        F: FnOnce(Result<T, AskError>) -> M + Send + 'static,
    {
        self.sources_made();
        let (core, reader) = self.parts();
        let in_flight = reader.sources().expect("they were made").all().in_flight();
        in_flight.keep_open(|| Address::own(core));
        in_flight.launch(parts)
    }

    /// Adds the future of an answer, and polls it once.
    fn add_answer<T: Send + 'static>(
        &mut self,
        answer: impl Future<Output = Result<T, AskError>> + Send + 'static,
        make: impl FnOnce(Result<T, AskError>) -> M + Send + 'static,
    ) {
        let mut answer = Box::pin(answer);
        let feed = match answer.as_mut().now_or_never() {
            Some(answer) => Feed::once(async { make(answer) }),
            None => Feed::once(answer.map(make)),
        };
        self.add(MessageSource::Answer, feed, None, Standing::Foreground);
    }

    /// Delivers the end of another actor as a message, which `make` builds.
    ///
    /// The watch keeps neither actor open: it is a source in the background from the beginning. If the other actor is dead already, the message is ready
    /// at once. Dropping the guard leaves the other actor; [`detach`](SourceGuard::detach) keeps
    /// the watch.
    ///
    /// ```
    /// use greenroom::{Address, Context, End, spawn};
    ///
    /// async fn watcher(mut cx: Context<End>, other: Address<()>) -> Option<End> {
    ///     let _watch = cx.watch(&other, |end| end);
    ///     other.kill();
    ///     let _myself = cx.address(); // a watch alone would not keep this actor open
    ///     cx.recv().await
    /// }
    ///
    /// greenroom::run(async {
    ///     let other = spawn!(|mut cx: Context<()>| async move { cx.recv().await });
    ///     let watcher = spawn!(watcher(_, other.clone()));
    ///     assert_eq!(watcher.join().await.unwrap(), Some(End::Killed));
    /// });
    /// ```
    pub fn watch<N: Send + 'static>(
        &mut self,
        address: &Address<N>,
        make: impl FnOnce(End) -> M + Send + 'static,
    ) -> SourceGuard {
        // The function of a mapped address is not kept: it may own an address of the actor.
        let end = address.recipient().actor().end();
        let feed = Feed::once(end.map(make));
        self.add_guarded(MessageSource::Source, feed, Standing::Background)
    }
}
