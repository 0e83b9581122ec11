//! The trait of tracers, and how they are called.
//!
//! A panic of a tracer is contained. What a thread does while a tracer runs on it is not traced, so
//! no tracer calls itself.
//!
//! A message may be passed on for its sender. That is noted for the thread while a closure runs, so
//! it applies to what the closure sends.

use std::cell::{Cell, RefCell};

use super::event::{Event, EventKind, Level};
use super::sent::{CarriesSpans, MessageSender, SentSpan, foreign_context};
use super::subject::Subject;
use crate::contain::{OnDrop, contain};
use crate::info::TaskInfo;

/// Receives the trace of a runtime: what its actors do, and what happens to their messages.
///
/// A tracer is set with [`Builder::tracer`](crate::Builder::tracer). [`Lines`](super::Lines) is one
/// that writes lines. Without a tracer, tracing has no cost.
///
/// The methods are called on the thread where the event happens, so the time that they take delays
/// that thread. They may be called on several threads at once. A panic in a method is caught and
/// dropped. What the thread does during such a call is not traced.
///
/// # Examples
///
/// A tracer that counts the messages that were dropped unread:
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// use greenroom::trace::{Event, EventKind, Level, Tracer};
/// use greenroom::{Context, Runtime, spawn};
///
/// #[derive(Clone, Default)]
/// struct CountDropped(Arc<AtomicU32>);
///
/// impl Tracer for CountDropped {
///     fn event(&self, event: &Event<'_>) {
///         if let EventKind::Dropped { .. } = event.kind() {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
///
///     fn enabled(&self, level: Level) -> bool {
///         level >= Level::Object
///     }
/// }
///
/// async fn first(mut cx: Context<u32>) -> Option<u32> {
///     for number in 1..=3 {
///         cx.address().tell(number).unwrap();
///     }
///     cx.recv().await
/// }
///
/// let dropped = CountDropped::default();
/// let runtime = Runtime::builder().tracer(dropped.clone()).build()?;
/// runtime.block_on(async {
///     assert_eq!(spawn!(first(_)).join().await.unwrap(), Some(1));
/// });
/// assert_eq!(dropped.0.load(Ordering::Relaxed), 2);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub trait Tracer: Send + Sync + 'static {
    /// Receives an event. It is called only with events whose level is
    /// [`enabled`](Tracer::enabled).
    fn event(&self, event: &Event<'_>);

    /// Returns whether events of this level are of interest. Others are not made.
    fn enabled(&self, level: Level) -> bool;

    /// Observes that a poll of the actor begins on this thread. `name` is that of its
    /// [events](Event::name), also if it was spawned without one.
    fn enter(&self, actor: &TaskInfo, name: &str) {
        let _ = (actor, name);
    }

    /// Observes that a poll of the actor has ended on this thread.
    fn exit(&self, actor: &TaskInfo) {
        let _ = actor;
    }

    /// Observes that the runtime has shut down, so that nothing stays in a buffer.
    fn flush(&self) {}

    /// Returns the last lines about the actor with this id, the oldest first, for
    /// [`Runtime::trace_of`](crate::Runtime::trace_of). By default none is kept.
    fn lines_of(&self, actor: u64) -> Vec<String> {
        let _ = actor;
        Vec::new()
    }

    /// Returns the part that lets messages carry spans, if the tracer has one.
    #[doc(hidden)]
    fn spans(&self) -> Option<&dyn CarriesSpans> {
        None
    }
}

crate::sync::thread_local! {
    /// Whether a tracer runs on this thread.
    static TRACING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `f` with the tracer, contained, unless a tracer runs on this thread already.
pub(crate) fn call(tracer: &dyn Tracer, f: impl FnOnce(&dyn Tracer)) {
    if TRACING.try_with(|tracing| tracing.replace(true)).ok() != Some(false) {
        return;
    }
    contain(|| f(tracer));
    let _ = TRACING.try_with(|tracing| tracing.set(false));
}

/// Returns whether the tracer wants events of this level, here and now.
pub(crate) fn wants(tracer: &dyn Tracer, level: Level) -> bool {
    let mut is_wanted = false;
    call(tracer, |tracer| is_wanted = tracer.enabled(level));
    is_wanted
}

/// Calls `f` with the part of the tracer that lets messages carry spans, if it has one. Its results
/// outlast the tracer's call, so `f` returns by what it captures.
pub(crate) fn with_spans(tracer: &dyn Tracer, f: impl FnOnce(&dyn CarriesSpans)) {
    if let Some(spans) = tracer.spans() {
        call(tracer, |_| f(spans));
    }
}

/// Returns the span that is current on this thread, if the tracer lets messages carry it.
pub(crate) fn current_span(tracer: &dyn Tracer) -> SentSpan {
    SentSpan::keep(|| {
        let mut current = None;
        with_spans(tracer, |spans| {
            current = match foreign_context() {
                Some(foreign) if spans.has_contexts() => {
                    Some(spans.remote(&foreign.name, foreign.context.as_deref()))
                }
                _ => spans.current(),
            };
        });
        current
    })
}

/// Gives the tracer the event of this kind, if it wants it. `subject` returns what it is about.
pub(crate) fn trace(tracer: &dyn Tracer, subject: impl FnOnce() -> Subject, kind: EventKind<'_>) {
    call(tracer, |tracer| {
        if tracer.enabled(kind.level()) {
            tracer.event(&subject().event(kind));
        }
    });
}

crate::sync::thread_local! {
    /// The sender for whom this thread passes messages on.
    static FROM: RefCell<Option<MessageSender>> = const { RefCell::new(None) };
}

/// Calls `f`, and traces the messages that it sends as passed on for their sender `from`.
///
/// `from` is the [`id`](crate::Address::id) of the sender, or 0 if that is outside actors. A line
/// `Forward Job to <..> (from <..>)` then replaces `Sent Job to <..>`, and the receiver's line names
/// the sender and not the actor between. A message itself does not say whether it was passed on.
/// Without a [`Tracer`] this only calls `f`.
///
/// ```
/// use greenroom::{Address, Context, spawn, trace};
///
/// struct Job {
///     client: u64,
/// }
///
/// async fn queue(mut cx: Context<Job>, worker: Address<Job>) {
///     while let Some(job) = cx.recv().await {
///         trace::forwarding(job.client, || worker.tell(job)).unwrap();
///     }
/// }
///
/// # async fn work(mut cx: Context<Job>) -> Option<u64> { cx.recv().await.map(|job| job.client) }
/// # greenroom::run(async {
/// let worker = spawn!(work(_));
/// let queue = spawn!(queue(_, worker.address()));
/// queue.tell(Job { client: 0 }).unwrap();
/// # assert_eq!(worker.join().await.unwrap(), Some(0));
/// # });
/// ```
pub fn forwarding<R>(from: u64, f: impl FnOnce() -> R) -> R {
    passing_on(MessageSender::of(from), f)
}

/// Does the same, given a sender with the span that the messages carry.
pub(crate) fn passing_on<R>(from: MessageSender, f: impl FnOnce() -> R) -> R {
    let mut outer = FROM.try_with(|sender| sender.replace(Some(from)));
    // Also if `f` panics. What was set is dropped outside of the borrow.
    let _restore = OnDrop(|| {
        let outer = outer.as_mut().ok().and_then(Option::take);
        let _ = FROM.try_with(|sender| sender.replace(outer));
    });
    f()
}

/// Returns the sender for whom this thread passes messages on, if it does.
pub(crate) fn forwarded_from() -> Option<u64> {
    FROM.try_with(|sender| sender.borrow().as_ref().map(|sender| sender.id))
        .ok()
        .flatten()
}

/// Returns who sends on this thread to a receiver with this tracer: the sender for whom it passes
/// messages on, or else the actor of this number.
pub(crate) fn sender_here(
    tracer: Option<&dyn Tracer>,
    actor: impl FnOnce() -> u64,
) -> MessageSender {
    let passed = FROM
        .try_with(|sender| sender.borrow().clone())
        .ok()
        .flatten();
    match passed {
        Some(passed) if passed.span.kept().is_some() => passed,
        passed => MessageSender {
            id: passed.map_or_else(actor, |passed| passed.id),
            span: tracer.map_or(SentSpan::NONE, current_span),
        },
    }
}
