//! What `recv` polls beside the mailbox: timers, streams, and what comes back from elsewhere.
//!
//! Sources belong to the context: they are polled by `recv` alone, on whatever executor that is, and
//! dropped with it, or by the first `recv` after the mailbox was closed. One in the foreground has an address of
//! its actor, so that is not closed for want of addresses. `recv` begins with the mailbox and with the sources in
//! turn, so neither keeps the other waiting. A panic ends the source, and the executor is told of it.

mod guard;
mod returns;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream::{SelectAll, once};
use futures_util::{FutureExt, StreamExt};

pub use guard::SourceGuard;
use guard::{Standing, Switch};
pub use returns::{Returned, Returns};

use super::address::Address;
use super::context::Context;
use crate::contain::{Panic, attempt_on, contain};
use crate::error::Fault;
use crate::mailbox::Flags;
use crate::task::MessageEvent;
use crate::time::{Interval, sleep};

/// All sources of one actor.
pub(super) struct Sources<M> {
    all: SelectAll<Source<M>>,
    /// The mailbox had its turn, so `recv` begins with these.
    first: bool,
    /// Whom they wake, since they were found pending.
    waker: Waker,
}

/// One source.
struct Source<M> {
    /// `None` once it is over.
    stream: Option<Pin<Box<dyn Stream<Item = M> + Send>>>,
    /// What it shares with its guard, if there is one.
    switch: Option<Arc<Switch>>,
    /// Keeps the actor open.
    address: Option<Address<M>>,
}

impl<M> Source<M> {
    /// Drops the stream; a panic of that stays here.
    fn end(&mut self) {
        contain(|| self.stream = None);
        self.address = None;
    }
}

impl<M> Stream for Source<M> {
    type Item = Result<M, Panic>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        let standing = self.switch.as_ref().map(|switch| switch.look(cx.waker()));
        match standing {
            None | Some(Standing::Foreground) => {}
            Some(Standing::Background) => self.address = None,
            Some(Standing::Cancelled) => self.end(),
        }
        let polled = attempt_on(
            &mut *self,
            |source| Some(source.stream.as_mut()?.as_mut().poll_next(cx)),
            Source::end,
        );
        match polled {
            Ok(None) => Poll::Ready(None),
            Ok(Some(polled)) => polled.map(|item| item.map(Ok)),
            Err(panic) => Poll::Ready(Some(Err(panic))),
        }
    }
}

impl<M> Drop for Source<M> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<M> Context<M> {
    /// Whether `recv` begins with the sources; every second time it does.
    pub(super) fn take_turn(&mut self) -> bool {
        match self.parts().1.sources() {
            Some(sources) => {
                sources.first = !sources.first;
                !sources.first
            }
            None => false,
        }
    }

    /// A message of a source, if one has any now. Otherwise that wakes `waker` or, if that is
    /// `None`, whoever polled before.
    pub(super) fn poll_sources(&mut self, waker: Option<&Waker>) -> Option<M> {
        let (core, reader) = self.parts();
        let sources = reader.sources()?;
        if let Some(waker) = waker {
            sources.waker.clone_from(waker);
        }
        let mut cx = TaskContext::from_waker(&sources.waker);
        loop {
            match sources.all.poll_next_unpin(&mut cx) {
                Poll::Ready(Some(Ok(message))) => {
                    core.trace(|| MessageEvent::FromSource(std::any::type_name::<M>()));
                    return Some(message);
                }
                Poll::Ready(Some(Err(panic))) => core.report(panic),
                Poll::Ready(None) => break,
                Poll::Pending => return None,
            }
        }
        self.drop_sources();
        None
    }

    pub(super) fn drop_sources(&mut self) {
        // Their drop may do anything, but not reach this context.
        drop(self.parts().1.take_sources());
    }

    pub(super) fn drop_sources_if_closed(&mut self) {
        if self.core.mailbox.peek().has(Flags::CLOSED) {
            self.drop_sources();
        }
    }

    fn add(&mut self, stream: impl Stream<Item = M> + Send + 'static, switch: Option<Arc<Switch>>) {
        self.drop_sources_if_closed();
        let (core, reader) = self.parts();
        let is_closed = core.is_closed();
        let source = Source {
            stream: Some(Box::pin(stream)),
            switch,
            address: (!is_closed).then(|| Address::own(core)),
        };
        if is_closed {
            return;
        }
        if !reader.has_sources() {
            reader.put_sources(Sources {
                all: SelectAll::new(),
                first: false,
                waker: Waker::noop().clone(),
            });
        }
        if let Some(sources) = reader.sources() {
            sources.all.push(source);
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
