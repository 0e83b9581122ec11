//! A tracer that makes events and spans for the subscribers of `tracing`.
//!
//! Only this file and the one below it know the crate `tracing`.

mod propagating;

use std::cell::RefCell;

use tracing::span::EnteredSpan;
use tracing::{debug, error, info, trace, warn};

use super::call::Tracer;
use super::event::Level;
use super::event::{Event, EventKind, MessageSource};
use crate::info::TaskInfo;

pub use propagating::Propagation;

/// A [`Tracer`] that makes an event of `tracing` of each event, and a span of each turn of an actor.
///
/// Events have the target `greenroom`, the text of a line as their message, and these fields, as far
/// as they apply: `id`, `actor` (the name), `state`, `sign`, `name` (of the message), `to` and
/// `from`. A span `turn` has `id` and `actor`; what a handler itself reports to `tracing` is inside
/// of it. A turn is a poll of the actor, which may handle several messages, or a part of one.
///
/// | level here | level of `tracing` |
/// |---|---|
/// | debug, trace | `TRACE` |
/// | object | `DEBUG` |
/// | console | `INFO` |
/// | warning | `WARN` |
/// | fault | `ERROR` |
///
/// Needs the feature `tracing`.
///
/// ```
/// use greenroom::{Runtime, trace};
///
/// let runtime = Runtime::builder().tracer(trace::Tracing).build()?;
/// runtime.block_on(async {
///     trace::note!(trace::Level::Console, "ready"); // as `tracing::info!` does
/// });
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Tracing;

crate::sync::thread_local! {
    /// The turns on this thread, the innermost last.
    static TURNS: RefCell<Vec<TracedTurn>> = const { RefCell::new(Vec::new()) };
}

/// The spans of a turn. The inner one is left first.
struct TracedTurn {
    actor: u64,
    /// The span of the message that is handled, if spans are propagated.
    handled: Option<EnteredSpan>,
    _turn: EnteredSpan,
}

impl Tracer for Tracing {
    fn event(&self, event: &Event<'_>) {
        let kind = event.kind();
        let (id, actor, state) = (event.id(), event.name(), event.state());
        let sign = String::from(kind.sign());
        let (name, to, from) = message_of(&kind);
        // `tracing` keeps the level in a static of each call, so there is a call for each level.
        macro_rules! at {
            ($event:ident) => {
                $event!(target: "greenroom", id, actor, state, sign, name, to, from, "{kind}")
            };
        }
        match event.level() {
            Level::Debug | Level::Trace => at!(trace),
            Level::Object => at!(debug),
            Level::Console => at!(info),
            Level::Warning => at!(warn),
            Level::Fault => at!(error),
        }
    }

    fn enabled(&self, level: Level) -> bool {
        match level {
            Level::Debug | Level::Trace => {
                tracing::enabled!(target: "greenroom", tracing::Level::TRACE)
            }
            Level::Object => tracing::enabled!(target: "greenroom", tracing::Level::DEBUG),
            Level::Console => tracing::enabled!(target: "greenroom", tracing::Level::INFO),
            Level::Warning => tracing::enabled!(target: "greenroom", tracing::Level::WARN),
            Level::Fault => tracing::enabled!(target: "greenroom", tracing::Level::ERROR),
        }
    }

    fn enter(&self, actor: &TaskInfo, name: &str) {
        let span = tracing::debug_span!(
            target: "greenroom", "turn", id = actor.id(), actor = name,
        );
        let turn = TracedTurn {
            actor: actor.id(),
            handled: None,
            _turn: span.entered(),
        };
        TURNS.with_borrow_mut(|turns| turns.push(turn));
    }

    fn exit(&self, _actor: &TaskInfo) {
        let turn = TURNS.with_borrow_mut(Vec::pop);
        drop(turn);
    }
}

/// Returns the message of an event, its receiver and its sender, as far as it has them.
fn message_of<'a>(kind: &EventKind<'a>) -> (Option<&'a str>, Option<u64>, Option<u64>) {
    match *kind {
        EventKind::Created { by } => (None, None, Some(by)),
        EventKind::Returned { value, to } => (Some(value), to, None),
        EventKind::Sent { message, to } => (Some(message), Some(to), None),
        EventKind::Forwarded { message, to, from } => (Some(message), Some(to), Some(from)),
        EventKind::Received { message, from } => {
            let from = match from {
                MessageSource::Sender(id) | MessageSource::Child(id) => Some(id),
                MessageSource::Timer | MessageSource::Answer | MessageSource::Source => None,
            };
            (Some(message), None, from)
        }
        EventKind::Dropped { message, from } => (Some(message), None, from),
        EventKind::Timer { message, .. } => (Some(message), None, None),
        _ => (None, None, None),
    }
}
