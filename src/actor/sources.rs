//! What `recv` polls beside the mailbox: timers, streams, and what comes back from elsewhere.
//!
//! Sources belong to the context: they are polled by `recv` alone, on whatever executor that is, and
//! dropped with it, or by the first `recv` after the mailbox was closed. One in the foreground has an address of
//! its actor, so that is not closed for want of addresses. `recv` begins with the mailbox and with the sources in
//! turn, so neither keeps the other waiting. A panic ends the source, and the executor is told of it.

mod returns;

use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::once;
use futures_util::{FutureExt, StreamExt};

pub use returns::{Returned, Returns};

use super::address::Address;
use super::context::Context;
use super::source::{Source, SourceGuard, Sources, Switch};
use crate::error::Fault;
use crate::time::{Interval, sleep};

impl<M> Context<M> {
    fn add(&mut self, stream: impl Stream<Item = M> + Send + 'static, switch: Option<Arc<Switch>>) {
        self.drop_sources_if_closed();
        let (core, reader) = self.parts();
        let is_closed = core.is_closed();
        let address = (!is_closed).then(|| Address::own(core));
        let source = Source::new(stream, switch, address);
        if is_closed {
            return;
        }
        if !reader.has_sources() {
            reader.put_sources(Sources::new());
        }
        if let Some(sources) = reader.sources() {
            sources.push(source);
        }
    }

    fn add_guarded(&mut self, stream: impl Stream<Item = M> + Send + 'static) -> SourceGuard {
        let switch = Switch::new();
        self.add(stream, Some(switch.clone()));
        SourceGuard::new(switch)
    }
}

/// Sources: what [`recv`](Context::recv) gives beside what others send.
///
/// They take no room in the mailbox and work on any executor. `recv` alone polls them (and
/// [`try_recv`](Context::try_recv)); they are dropped with the actor, and when it receives after its
/// mailbox was closed. As long as one is left, the actor is not closed for want of addresses, unless that is a
/// [background](SourceGuard::background) source. A source that is added after the close is dropped at once.
///
/// A panic of a stream or of a closure ends that source and reaches
/// [`on_fault`](crate::Builder::on_fault); a simulation takes it for a failure. The actor goes on.
impl<M: Send + 'static> Context<M> {
    /// Gives `message` after `duration`, counted from this call.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    /// use std::time::Duration;
    ///
    /// async fn patient(mut cx: Context<&'static str>) -> Option<&'static str> {
    ///     let _timer = cx.send_after(Duration::from_millis(1), "nobody came");
    ///     cx.recv().await
    /// }
    ///
    /// greenroom::run(async {
    ///     assert_eq!(spawn!(patient(_)).join().await.unwrap(), Some("nobody came"));
    /// });
    /// ```
    pub fn send_after(&mut self, duration: Duration, message: M) -> SourceGuard {
        let waiting = sleep(duration);
        self.add_guarded(once(async move {
            waiting.await;
            message
        }))
    }

    /// Gives a message of `make` every `period`, the first one after one period.
    ///
    /// There is at most one that was not received: ticks that were missed meanwhile are skipped. A
    /// period beyond the end of the clock never ends.
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
        self.add_guarded(ticks.map(move |_| make()))
    }

    /// Gives the items of a stream, until it ends or the guard is dropped.
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
        self.add_guarded(stream)
    }

    /// Gives what `make` makes of the result of an actor, a task or a future, when that is there.
    ///
    /// Give it the [`Handle`](crate::Handle) itself: its `join` is a future like any other, whose
    /// value is a result already.
    ///
    /// The actor reads on meanwhile. The result is an `Err` if the actor, task or future panicked, was killed
    /// or was cancelled; such a panic does not reach [`on_fault`](crate::Builder::on_fault). When the source is
    /// dropped first, a [`Task`](crate::Task) or future is cancelled, and a
    /// [`Handle`](crate::Handle) gives up its address and its result.
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
    pub fn on_return<R: Returns>(
        &mut self,
        returns: R,
        make: impl FnOnce(Result<R::Value, Fault>) -> M + Send + 'static,
    ) {
        self.add(once(returns.returned().map(make)), None);
    }
}
