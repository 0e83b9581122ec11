//! A span that code carries along, to send within it later, and its context for other processes.
//!
//! It is for code that keeps what it is to send, and for packages that carry messages across
//! processes. What a span and a context are, the tracer of the runtime knows.

use std::fmt;
use std::sync::Arc;

use super::context;
use super::observed::{span_of_current, with_tracer};
use crate::tracer::{self, ForeignContext, SentSpan};

/// A span to send messages within, later or for another process.
///
/// There is one only where the runtime's tracer propagates spans, with the feature `tracing` and
/// `trace::Propagation`. It has no effect elsewhere.
///
/// ```
/// use greenroom::trace::CarriedSpan;
/// use greenroom::{Address, Context, spawn};
///
/// /// Passes numbers on in pairs, each within the span in which it came.
/// async fn pairs(mut cx: Context<u32>, next: Address<u32>) {
///     let mut kept = None;
///     while let Some(number) = cx.recv().await {
///         match kept.take() {
///             None => kept = Some((number, CarriedSpan::current())),
///             Some((first, span)) => {
///                 span.in_scope(|| next.tell(first)).unwrap();
///                 next.tell(number).unwrap();
///             }
///         }
///     }
/// }
/// # greenroom::run(async {
/// #     async fn sum(mut cx: Context<u32>) -> u32 {
/// #         cx.recv().await.unwrap() + cx.recv().await.unwrap()
/// #     }
/// #     let sum = spawn!(sum(_));
/// #     let pairs = spawn!(pairs(_, sum.address()));
/// #     pairs.tell(1).unwrap();
/// #     pairs.tell(2).unwrap();
/// #     assert_eq!(sum.join().await.unwrap(), 3);
/// # });
/// ```
#[derive(Clone, Default)]
pub struct CarriedSpan(SentSpan);

impl CarriedSpan {
    /// Returns the span that is current on this thread.
    pub fn current() -> Self {
        CarriedSpan(span_of_current())
    }

    /// Creates a span for what has come from another process, whose parent is what the context says.
    ///
    /// `describe` returns the name of the span and the context. It is called only if the tracer knows
    /// contexts, by `Propagation::remote`. Without a context, or with one that the tracer does not
    /// accept, the span is the root of a trace. On a thread of no runtime, the tracer of a
    /// receiver makes a span for each message that is sent [within](CarriedSpan::in_scope) this.
    pub fn remote(describe: impl FnOnce() -> (String, Option<String>)) -> Self {
        if context::with_runtime(|runtime| runtime.is_none()) {
            let (name, context) = describe();
            let foreign = Arc::new(ForeignContext { name, context });
            return CarriedSpan(SentSpan::keep(|| Some(Arc::new(foreign))));
        }
        let (mut span, mut describe) = (SentSpan::NONE, Some(describe));
        with_tracer(&mut |tracer| {
            span = SentSpan::keep(|| {
                let mut remote = None;
                tracer::with_spans(tracer, |spans| {
                    if let Some(describe) = describe.take().filter(|_| spans.has_contexts()) {
                        let (name, context) = describe();
                        remote = Some(spans.remote(&name, context.as_deref()));
                    }
                });
                remote
            });
        });
        CarriedSpan(span)
    }

    /// Returns the context of the span that is current on this thread, for another process. Returns
    /// `None` unless the tracer of the runtime knows contexts.
    pub fn current_context() -> Option<String> {
        let mut context = None;
        with_tracer(&mut |tracer| {
            tracer::with_spans(tracer, |spans| context = spans.context());
        });
        context
    }

    /// Calls `f` within the span: what it sends is tied to the span.
    pub fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.call_within(false, f)
    }
}

impl fmt::Debug for CarriedSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_some = self.0.kept().is_some();
        f.debug_struct("CarriedSpan")
            .field("is_some", &is_some)
            .finish()
    }
}
