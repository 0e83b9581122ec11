//! A span for what has come from another process, and the context that goes there.
//!
//! They are for packages that carry messages across processes. What a context is, the tracer of the
//! runtime knows.

use super::observed::with_tracer;
use crate::tracer::{self, SentSpan};

/// A span for work that was ordered elsewhere, such as a request of another process.
///
/// It is made where the runtime's tracer [propagates](crate::trace::Propagation::remote) contexts,
/// and has no effect elsewhere.
#[derive(Clone, Default)]
pub struct RemoteSpan(SentSpan);

impl RemoteSpan {
    /// Creates a span of this name, whose parent is what the context says. Without a context, or with
    /// one that the tracer does not accept, it is the root of a trace.
    pub fn new(name: &str, context: Option<&str>) -> Self {
        let mut span = SentSpan::NONE;
        with_tracer(&mut |tracer| {
            span = SentSpan::keep(|| {
                let mut remote = None;
                tracer::with_spans(tracer, |spans| remote = spans.remote(name, context));
                remote
            });
        });
        RemoteSpan(span)
    }

    /// Returns whether there is a span at all, so that [`in_scope`](RemoteSpan::in_scope) has an
    /// effect.
    pub fn is_some(&self) -> bool {
        self.0.kept().is_some()
    }

    /// Calls `f` within the span: what it sends is tied to the span.
    pub fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.call_within(false, f)
    }

    /// Returns the context of the span that is current on this thread, for another process. Returns
    /// `None` unless the tracer of the runtime propagates contexts.
    pub fn context() -> Option<String> {
        let mut context = None;
        with_tracer(&mut |tracer| {
            tracer::with_spans(tracer, |spans| context = spans.context());
        });
        context
    }
}

impl std::fmt::Debug for RemoteSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RemoteSpan").field(&self.is_some()).finish()
    }
}
