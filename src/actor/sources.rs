//! The sources that `recv` polls beside the mailbox: timers, streams, and results of other tasks.
//!
//! Sources belong to the context. Only `recv` polls them, on any executor. They are dropped with
//! the context, or by the first `recv` after the mailbox was closed. A foreground source holds an
//! address of its actor, so the actor does not close for lack of addresses. `recv` starts
//! alternately with the mailbox and with the sources, so neither starves the other. A panic ends
//! the source and is reported to the executor.

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

/// Sources, which [`recv`](Context::recv) reads beside the messages that are sent.
///
/// Sources take no room in the mailbox and work on any executor. Only `recv` and
/// [`try_recv`](Context::try_recv) poll them. They are dropped with the actor, and when the actor
/// receives after its mailbox was closed. A source that is added after the close is dropped at
/// once.
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
        let waiting = sleep(duration);
        self.add_guarded(once(async move {
            waiting.await;
            message
        }))
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
        self.add_guarded(ticks.map(move |_| make()))
    }

    /// Delivers the items of a stream as messages, until the stream ends or the guard is dropped.
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

    /// Delivers the result of an actor, a task or a future as a message, which `make` builds.
    ///
    /// The actor continues to receive meanwhile. The result is an `Err` if the actor, task or
    /// future panicked, was killed or was cancelled. Such a panic is not reported to
    /// [`on_fault`](crate::Builder::on_fault).
    ///
    /// A [`Handle`](crate::Handle) is passed as it is, without calling `join`, whose output is a
    /// `Result` already. The handle gives up its address at once, as [`join`](crate::Handle::join)
    /// does.
    ///
    /// If the source is dropped first, a [`Task`](crate::Task) or future is cancelled, while an
    /// actor continues and its result is dropped.
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
