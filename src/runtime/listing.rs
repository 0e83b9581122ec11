//! How an ask, or another wait of an actor, is added to the list of its runtime.

use std::collections::HashMap;

use super::ask_times::{AskSample, listed_every};
use super::context::{self, Role, ThreadContext};
use super::deadlock::{Edge, Listing, WaitListing, WaitsFor, Who, detects_waits};
use crate::sync::{Mutex, PerProcess};
use crate::task::{TaskInfo, run};

/// Adds an ask that begins on this thread to the list of the current runtime, notes the actor that asks
/// if that is traced, and times the ask. It is [to be listed](context::lists_ask).
///
/// `has_timeout` says whether the ask ends by itself. `who` returns the asking actor, if an actor
/// asks, and the actor that is asked.
#[cold]
#[inline(never)]
pub(crate) fn list_ask(
    has_timeout: bool,
    who: impl FnOnce() -> (Option<TaskInfo>, TaskInfo),
) -> Option<Listing> {
    context::with(|context| {
        let context = context?;
        let runtime = context.runtime;
        context.asks_left.set(listed_every(&runtime.options));
        runtime.check_process();
        let lists = runtime.options.lists_asks;
        let listing = lists
            .then(|| list_at(context, has_timeout, who()))
            .flatten();
        if !runtime.options.counting || runtime.is_simulated() {
            return listing;
        }
        let sample = AskSample::begin(&runtime.ask_times);
        Some(
            listing
                .unwrap_or_else(|| Listing::alone(None))
                .timed(sample),
        )
    })
}

/// Returns whether an ask that begins here may be ended as a deadlock before its timeout.
///
/// In a simulation waiting takes no time, and timeouts are part of what is tested. A stage counts
/// as activity of its runtime, and reports all deadlines to its foreign loop.
fn may_be_cut(context: &ThreadContext<'_>) -> bool {
    !context.runtime.is_simulated() && !context.is_on_a_stage()
}

fn list_at(
    context: &ThreadContext<'_>,
    has_timeout: bool,
    (asker, asked): (Option<TaskInfo>, TaskInfo),
) -> Option<Listing> {
    let options = &context.runtime.options;
    let traced = asker.as_ref().filter(|_| options.tracer.is_some());
    let traced = traced.map(TaskInfo::id);
    if !options.detect_deadlocks {
        return traced.is_some().then(|| Listing::alone(traced));
    }
    let is_timed = has_timeout && may_be_cut(context);
    let from = match (asker, context.role.get()) {
        (Some(actor), _) => Who::Task(actor),
        (None, Role::Outside) => Who::Other("block_on"),
        (None, _) => Who::Other("a task"),
    };
    let edge = context.runtime.engine().edge(from, asked);
    Some(context.runtime.asks.list(edge, traced, is_timed))
}

/// Lists a wait of the actor that this thread runs for another one, if the current runtime detects
/// deadlocks.
#[inline]
pub(crate) fn list_wait(
    for_what: WaitsFor,
    to: impl FnOnce() -> TaskInfo,
) -> Option<Box<WaitListing>> {
    match detects_waits() {
        true => list_wait_at(for_what, to),
        false => None,
    }
}

#[cold]
#[inline(never)]
fn list_wait_at(for_what: WaitsFor, to: impl FnOnce() -> TaskInfo) -> Option<Box<WaitListing>> {
    context::with(|context| {
        let runtime = context
            .filter(|it| it.runtime.options.detect_deadlocks)?
            .runtime;
        // Only the turn of an actor has a waker that says later whether the actor receives.
        let (actor, waker) = run::current_actor().zip(run::actor_waker())?;
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

/// The listed waits of joins, by the number of the actor that is joined. An actor has one join, and a
/// handle has no room for this.
static JOINS: PerProcess<Mutex<HashMap<u64, Box<WaitListing>>>> = PerProcess::new();

/// Lists the wait of the join of this actor, unless it is listed.
#[inline]
pub(crate) fn list_join(actor: impl FnOnce() -> TaskInfo) {
    if detects_waits() {
        list_join_at(actor());
    }
}

#[cold]
#[inline(never)]
fn list_join_at(actor: TaskInfo) {
    let joins = JOINS.get_or_init(|| Mutex::new(HashMap::new()));
    let number = actor.id();
    if !joins.lock().contains_key(&number)
        && let Some(listing) = list_wait(WaitsFor::End, || actor)
    {
        joins.lock().insert(number, listing);
    }
}

/// Removes the wait of the join of this actor, if it is listed.
#[inline]
pub(crate) fn unlist_join(actor: u64) {
    if detects_waits() {
        unlist_join_of(actor);
    }
}

#[cold]
#[inline(never)]
fn unlist_join_of(actor: u64) {
    let joins = JOINS.get_or_init(|| Mutex::new(HashMap::new()));
    let listing = joins.lock().remove(&actor);
    drop(listing);
}
