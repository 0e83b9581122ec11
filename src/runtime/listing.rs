//! How an ask comes on the list of the runtime that it is made in.

use super::context::{self, Role, ThreadContext};
use super::deadlock::{Edge, Listing, Who};
use crate::task::TaskInfo;

/// Puts an ask that begins on this thread on the list of the current runtime, if that keeps one.
///
/// `time_out` is what ends it by itself; `who` gives the actor that asks, if it is one, and the one
/// that is asked.
#[inline]
pub(crate) fn list_ask(
    has_time_out: bool,
    who: impl FnOnce() -> (Option<TaskInfo>, TaskInfo),
) -> Option<Listing> {
    context::with(|context| {
        let context = context.filter(|context| context.runtime.options.detect_deadlocks)?;
        context.runtime.check_process();
        Some(list_at(context, has_time_out, who()))
    })
}

/// Whether an ask that begins here may be ended as a deadlock before its time-out.
///
/// In a simulation waiting takes no time, and what is done about a time-out is to be tested. A stage is
/// work of its runtime, and tells its foreign loop of all deadlines.
fn may_be_cut(context: &ThreadContext<'_>) -> bool {
    let on_a_stage = matches!(context.role.get(), Role::Pinned(local) if local.is_stage());
    context.runtime.simulator().is_none() && !on_a_stage
}

#[cold]
fn list_at(
    context: &ThreadContext<'_>,
    has_time_out: bool,
    (asker, asked): (Option<TaskInfo>, TaskInfo),
) -> Listing {
    let is_timed = has_time_out && may_be_cut(context);
    let edge = match (context.runtime.simulator(), asker) {
        (Some(simulator), _) => simulator.edge(asked),
        (None, Some(actor)) => Edge {
            from: Who::Task(actor),
            to: asked,
            question: None,
        },
        (None, None) => Edge {
            from: Who::Other(match context.role.get() {
                Role::Outside => "block_on",
                _ => "a task",
            }),
            to: asked,
            question: None,
        },
    };
    context.runtime.asks.list(edge, is_timed)
}
