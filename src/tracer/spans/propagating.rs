//! A tracer that ties the span in which a message is handled to the span in which it was sent.
//!
//! The span of a message begins when an actor receives it in its own turn. It ends when the actor
//! receives again, begins anew or ends. Between two turns of the actor it is kept by the actor's
//! number, so it is entered exactly while the actor is polled.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use tracing::Span;
use tracing::span::EnteredSpan;

use super::super::call::Tracer;
use super::super::event::{Event, Level};
use super::super::sent::{CarriesSpans, KeptSpan};
use super::{TURNS, Tracing};
use crate::contain::contain;
use crate::info::TaskInfo;
use crate::sync::Mutex;

/// How the span in which a message is handled is tied to the span that was current where the message
/// was sent, for [`Tracing::propagating`].
#[derive(Clone)]
#[must_use = "it does nothing until a tracer has it"]
pub struct Propagation {
    tie: Tie,
    remote: Option<RemoteContexts>,
}

/// How a span is tied to an earlier one.
#[derive(Clone, Copy, Debug)]
enum Tie {
    Parent,
    FollowsFrom,
}

/// The functions of the program for contexts of other processes.
#[derive(Clone)]
struct RemoteContexts {
    context: Arc<ContextFn>,
    join: Arc<JoinFn>,
}

type ContextFn = dyn Fn(&Span) -> Option<String> + Send + Sync;
type JoinFn = dyn Fn(&Span, &str) + Send + Sync;

impl Propagation {
    /// Makes the span of the sender the parent.
    pub const fn parent() -> Self {
        Propagation {
            tie: Tie::Parent,
            remote: None,
        }
    }

    /// Makes each handler's span the root of a trace, which
    /// [follows from](tracing::Span::follows_from) the span of the sender.
    pub const fn follows_from() -> Self {
        Propagation {
            tie: Tie::FollowsFrom,
            remote: None,
        }
    }

    /// Ties spans of several processes together, by two functions of the program.
    ///
    /// `context` returns the context of a span as text, which is the
    /// [`traceparent`](https://www.w3.org/TR/trace-context/#traceparent-header) field of W3C. `join`
    /// makes the context that such a text names the parent of a span. greenroom-http has the text in
    /// the header of a request, and greenroom-cluster beside a message. The subscriber knows what a
    /// context is; `examples/otel` has both functions for OpenTelemetry.
    pub fn remote(
        mut self,
        context: impl Fn(&Span) -> Option<String> + Send + Sync + 'static,
        join: impl Fn(&Span, &str) + Send + Sync + 'static,
    ) -> Self {
        self.remote = Some(RemoteContexts {
            context: Arc::new(context),
            join: Arc::new(join),
        });
        self
    }
}

impl fmt::Debug for Propagation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Propagation")
            .field("tie", &self.tie)
            .field("remote", &self.remote.is_some())
            .finish()
    }
}

impl Tracing {
    /// Returns a tracer that also gives each message a span, `handle`, which is tied to the span that
    /// was current where the message was sent.
    ///
    /// So one request through many actors is one tree, or one chain. The span has the level `INFO`,
    /// the target `greenroom`, and the fields `id` and `actor`, `message`, and `otel.name`, which is
    /// both names. It lasts until the actor receives again, also while it waits for something else
    /// meanwhile. Within it are the events of the handler, and what the handler sends:
    ///
    /// | what | is tied to the span |
    /// |---|---|
    /// | a message by `tell`, `ask`, `send` or a permit, through a map, a key or a group | where it was sent |
    /// | a request through a [spool](crate::spool) | where it was sent to the spool |
    /// | a message of a timer | where the timer was started |
    /// | an answer by [`on_answer`](crate::Context::on_answer), a result by `on_return` or `on_join` | where the wait was begun |
    /// | a job of a [market](crate::market), as a span `job` | where the job was offered |
    /// | a message of a stream, the result of a child | none: it is a root |
    ///
    /// The sender's span stays open until the message was handled. A sender with no runtime of such a
    /// tracer ties its messages as well, since the tracer of the receiver decides; a request to a spool
    /// and a job are tied if they come from the runtime. An actor that receives outside of its own
    /// turns has no spans of messages.
    ///
    /// ```
    /// use greenroom::trace::{Propagation, Tracing};
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// async fn echo(mut cx: Context<&'static str>) {
    ///     while let Some(text) = cx.recv().await {
    ///         tracing::info!("{text}"); // within `handle`, and so within `request`
    ///     }
    /// }
    ///
    /// let tracer = Tracing.propagating(Propagation::parent());
    /// let runtime = Runtime::builder().tracer(tracer).build()?;
    /// runtime.block_on(async {
    ///     let echo = spawn!(echo(_));
    ///     tracing::info_span!("request").in_scope(|| echo.tell("hello")).unwrap();
    ///     echo.join().await.unwrap();
    /// });
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    pub fn propagating(self, how: Propagation) -> impl Tracer {
        PropagatingTracing {
            events: self,
            how,
            between_turns: std::array::from_fn(|_| Mutex::new(HashMap::new())),
        }
    }
}

/// The number of parts of the table, which keeps contention between workers low.
const PARTS: usize = 16;

struct PropagatingTracing {
    events: Tracing,
    how: Propagation,
    /// The spans of messages whose actors are not polled now, by the numbers of the actors.
    between_turns: [Mutex<HashMap<u64, Span>>; PARTS],
}

impl PropagatingTracing {
    fn part(&self, actor: u64) -> &Mutex<HashMap<u64, Span>> {
        &self.between_turns[actor as usize % PARTS]
    }
}

impl Tracer for PropagatingTracing {
    fn event(&self, event: &Event<'_>) {
        self.events.event(event);
    }

    fn enabled(&self, level: Level) -> bool {
        self.events.enabled(level)
    }

    fn enter(&self, actor: &TaskInfo, name: &str) {
        self.events.enter(actor, name);
        let span = self.part(actor.id()).lock().remove(&actor.id());
        if let Some(span) = span {
            let entered = span.entered();
            set_handled(actor.id(), Some(entered));
        }
    }

    fn exit(&self, actor: &TaskInfo) {
        if let Some(entered) = set_handled(actor.id(), None).flatten() {
            let span = entered.exit();
            self.part(actor.id()).lock().insert(actor.id(), span);
        }
        self.events.exit(actor);
    }

    fn spans(&self) -> Option<&dyn CarriesSpans> {
        Some(self)
    }
}

/// Replaces the span of the message that this actor handles on this thread, and returns the last one.
/// Returns `None` if this thread does not run the actor.
fn set_handled(actor: u64, entered: Option<EnteredSpan>) -> Option<Option<EnteredSpan>> {
    TURNS.with_borrow_mut(|turns| {
        let turn = turns.last_mut().filter(|turn| turn.actor == actor)?;
        Some(mem::replace(&mut turn.handled, entered))
    })
}

impl CarriesSpans for PropagatingTracing {
    fn current(&self) -> Option<Arc<dyn KeptSpan>> {
        let span = Span::current();
        (!span.is_none()).then(|| TiedSpan::keep(span, self.how.tie))
    }

    fn handles(&self, (id, actor): (u64, &str), message: &str, sent: Option<&dyn KeptSpan>) {
        // The last one ends before the next one begins.
        let Some(last) = set_handled(id, None) else {
            return;
        };
        drop(last);
        let sent = sent.and_then(|sent| (sent as &dyn Any).downcast_ref::<TiedSpan>());
        let span = tied(sent, |parent| {
            tracing::info_span!(
                target: "greenroom", parent: parent, "handle",
                otel.name = format_args!("{actor} {message}"), id, actor, message,
            )
        });
        set_handled(id, Some(span.entered()));
    }

    fn handled(&self, actor: u64) {
        let last = set_handled(actor, None);
        let waiting = match last {
            Some(_) => None,
            None => self.part(actor).lock().remove(&actor),
        };
        drop((last, waiting));
    }

    fn has_contexts(&self) -> bool {
        self.how.remote.is_some()
    }

    fn remote(&self, name: &str, context: Option<&str>) -> Arc<dyn KeptSpan> {
        let span = tracing::info_span!(
            target: "greenroom", parent: None, "remote", otel.name = name, otel.kind = "server", name,
        );
        if let (Some(remote), Some(context)) = (&self.how.remote, context) {
            (remote.join)(&span, context);
        }
        TiedSpan::keep(span, self.how.tie)
    }

    fn context(&self) -> Option<String> {
        let remote = self.how.remote.as_ref()?;
        let span = Span::current();
        (!span.is_none()).then(|| (remote.context)(&span)).flatten()
    }
}

/// A span, and how others are tied to it.
struct TiedSpan {
    span: Span,
    tie: Tie,
}

// A subscriber may be called after a panic: so it is where a span is dropped while a thread unwinds.
impl UnwindSafe for TiedSpan {}
impl RefUnwindSafe for TiedSpan {}

impl TiedSpan {
    fn keep(span: Span, tie: Tie) -> Arc<dyn KeptSpan> {
        Arc::new(TiedSpan { span, tie })
    }
}

/// The last one closes the span, by code of the subscriber.
impl Drop for TiedSpan {
    fn drop(&mut self) {
        let span = mem::replace(&mut self.span, Span::none());
        contain(|| drop(span));
    }
}

impl KeptSpan for TiedSpan {
    fn enter(&self, is_job: bool) -> Box<dyn FnOnce()> {
        let span = match is_job {
            false => self.span.clone(),
            true => tied(
                Some(self),
                |parent| tracing::info_span!(target: "greenroom", parent: parent, "job"),
            ),
        };
        let entered = span.entered();
        Box::new(move || drop(entered))
    }
}

/// Makes a span that is tied to this one. `make` makes it of its parent.
fn tied(sent: Option<&TiedSpan>, make: impl FnOnce(Option<tracing::span::Id>) -> Span) -> Span {
    match sent {
        Some(TiedSpan {
            span,
            tie: Tie::Parent,
        }) => make(span.id()),
        Some(TiedSpan {
            span,
            tie: Tie::FollowsFrom,
        }) => {
            let made = make(None);
            made.follows_from(span);
            made
        }
        None => make(None),
    }
}
