//! Who has sent a message, and the span that was current there, if a tracer lets messages carry it.
//!
//! What a tracer does for that is behind two traits, since only the tracer knows what a span is. A
//! span takes no room without the feature `tracing`.

use std::any::Any;
use std::cell::RefCell;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use crate::contain::{OnDrop, contain};

/// Who has sent a message: an actor or, with id 0, code outside actors; with its span.
#[derive(Clone, Default)]
pub(crate) struct MessageSender {
    pub(crate) id: u64,
    pub(crate) span: SentSpan,
}

impl MessageSender {
    pub(crate) const NONE: Self = MessageSender::of(0);

    /// Returns the sender of this number, without a span.
    pub(crate) const fn of(id: u64) -> Self {
        MessageSender {
            id,
            span: SentSpan::NONE,
        }
    }
}

/// The span that was current where something was sent, if it is carried.
#[derive(Clone, Default)]
pub(crate) struct SentSpan {
    #[cfg(feature = "tracing")]
    span: Option<Arc<dyn KeptSpan>>,
}

impl SentSpan {
    pub(crate) const NONE: Self = SentSpan {
        #[cfg(feature = "tracing")]
        span: None,
    };

    /// Keeps the span that this function returns, or none.
    pub(crate) fn keep(span: impl FnOnce() -> Option<Arc<dyn KeptSpan>>) -> Self {
        #[cfg(feature = "tracing")]
        return SentSpan { span: span() };
        #[cfg(not(feature = "tracing"))]
        {
            let _ = span;
            SentSpan::NONE
        }
    }

    pub(crate) fn kept(&self) -> Option<&dyn KeptSpan> {
        #[cfg(feature = "tracing")]
        return self.span.as_deref();
        #[cfg(not(feature = "tracing"))]
        None
    }

    /// Calls `f`: within the kept span, or within the span of a job that is tied to it. Without a
    /// span it only calls `f`.
    pub(crate) fn call_within<R>(&self, is_job: bool, f: impl FnOnce() -> R) -> R {
        let Some(kept) = self.kept() else { return f() };
        let mut leave: Option<Box<dyn FnOnce()>> = None;
        contain(|| leave = Some(kept.enter(is_job)));
        // Also if `f` panics.
        let _leave = OnDrop(|| contain(|| leave.take().into_iter().for_each(|leave| leave())));
        f()
    }
}

/// A context of another process, where no tracer is known. The tracer of each receiver makes a span of
/// it.
pub(crate) struct ForeignContext {
    pub(crate) name: String,
    pub(crate) context: Option<String>,
}

crate::sync::thread_local! {
    /// The context within which this thread sends, if that is of another process.
    static FOREIGN: RefCell<Option<Arc<ForeignContext>>> = const { RefCell::new(None) };
}

impl KeptSpan for Arc<ForeignContext> {
    fn enter(&self, _is_job: bool) -> Box<dyn FnOnce()> {
        let outer = FOREIGN.try_with(|foreign| foreign.replace(Some(self.clone())));
        Box::new(move || {
            let _ = FOREIGN.try_with(|foreign| foreign.replace(outer.unwrap_or(None)));
        })
    }
}

/// Returns the context within which this thread sends, if that is of another process.
pub(crate) fn foreign_context() -> Option<Arc<ForeignContext>> {
    FOREIGN
        .try_with(|foreign| foreign.borrow().clone())
        .ok()
        .flatten()
}

/// A span as what it is kept in sees it. It is dropped contained.
pub trait KeptSpan: Any + Send + Sync + RefUnwindSafe {
    /// Enters the span, or that of a job that is tied to it. The function that is returned leaves it,
    /// on the same thread.
    fn enter(&self, is_job: bool) -> Box<dyn FnOnce()>;
}

/// What a tracer does that lets messages carry spans.
pub trait CarriesSpans {
    /// Returns the span that is current on this thread.
    fn current(&self) -> Option<Arc<dyn KeptSpan>>;

    /// Begins the span in which the actor that this thread runs handles a message, which was sent
    /// within this span. The last one ends.
    fn handles(&self, actor: (u64, &str), message: &str, sent: Option<&dyn KeptSpan>);

    /// Ends the span in which the actor handles a message, if there is one.
    fn handled(&self, actor: u64);

    /// Returns whether spans have contexts for elsewhere.
    fn has_contexts(&self) -> bool;

    /// Returns a new span for what has come from elsewhere with this context, or without one.
    fn remote(&self, name: &str, context: Option<&str>) -> Arc<dyn KeptSpan>;

    /// Returns the context of the span that is current on this thread, for elsewhere.
    fn context(&self) -> Option<String>;
}
