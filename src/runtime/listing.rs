//! How an ask comes on the list of the runtime that it is made in.

use super::context::{self, Role, ThreadContext};
use super::deadlock::{Listing, Who};
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
    !context.runtime.is_simulated() && !on_a_stage
}

#[cold]
fn list_at(
    context: &ThreadContext<'_>,
    has_time_out: bool,
    (asker, asked): (Option<TaskInfo>, TaskInfo),
) -> Listing {
    let is_timed = has_time_out && may_be_cut(context);
    let from = match (asker, context.role.get()) {
        (Some(actor), _) => Who::Task(actor),
        (None, Role::Outside) => Who::Other("block_on"),
        (None, _) => Who::Other("a task"),
    };
    let edge = context.runtime.engine().edge(from, asked);
    context.runtime.asks.list(edge, is_timed)
}
