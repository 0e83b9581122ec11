//! How an ask, or another wait of an actor, is added to the list of its runtime.

use super::context::{self, Role, ThreadContext};
use super::deadlock::{Edge, Listing, WaitListing, WaitsFor, Who};
use crate::task::{TaskInfo, run};

/// Adds an ask that begins on this thread to the list of the current runtime, if that keeps one, or
/// notes the actor that asks, if that is traced.
///
/// `has_time_out` says whether the ask ends by itself. `who` returns the asking actor, if an actor
/// asks, and the actor that is asked.
#[inline]
pub(crate) fn list_ask(
    has_time_out: bool,
    who: impl FnOnce() -> (Option<TaskInfo>, TaskInfo),
) -> Option<Listing> {
    context::with(|context| {
        let context = context.filter(|context| context.runtime.options.lists_asks)?;
        context.runtime.check_process();
        list_at(context, has_time_out, who())
    })
}

/// Returns whether an ask that begins here may be ended as a deadlock before its timeout.
///
/// In a simulation waiting takes no time, and timeouts are part of what is tested. A stage counts
/// as activity of its runtime, and tells its foreign loop about all deadlines.
fn may_be_cut(context: &ThreadContext<'_>) -> bool {
    let on_a_stage = matches!(context.role.get(), Role::Pinned(local) if local.is_stage());
    !context.runtime.is_simulated() && !on_a_stage
}

#[cold]
fn list_at(
    context: &ThreadContext<'_>,
    has_time_out: bool,
    (asker, asked): (Option<TaskInfo>, TaskInfo),
) -> Option<Listing> {
    let options = &context.runtime.options;
    let traced = asker.as_ref().filter(|_| options.tracer.is_some());
    let traced = traced.map(TaskInfo::id);
    if !options.detect_deadlocks {
        return traced.map(Listing::alone);
    }
    let is_timed = has_time_out && may_be_cut(context);
    let from = match (asker, context.role.get()) {
        (Some(actor), _) => Who::Task(actor),
        (None, Role::Outside) => Who::Other("block_on"),
        (None, _) => Who::Other("a task"),
    };
    let edge = context.runtime.engine().edge(from, asked);
    Some(context.runtime.asks.list(edge, traced, is_timed))
}

/// Lists a wait of the actor that this thread runs for another one, if the current runtime detects
/// deadlocks. Called for waits that are pending, so it is on no hot path.
pub(crate) fn list_wait(for_what: WaitsFor, to: impl FnOnce() -> TaskInfo) -> Option<WaitListing> {
    context::with(|context| {
        let runtime = context
            .filter(|it| it.runtime.options.detect_deadlocks)?
            .runtime;
        let (actor, waker) = run::actor().zip(run::actor_waker())?;
        if !runtime.is_here() {
            return None;
        }
        let edge = runtime.engine().edge(Who::Task(actor), to());
        let question = None;
        let edge = Edge {
            for_what,
            question,
            ..edge
        };
        Some(runtime.waits.list(edge, waker))
    })
}
