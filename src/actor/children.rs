//! The children of an actor, in the order of their adoption.
//!
//! A child's result is a message for its parent. The list has an address of each child, until the
//! parent has the result or ends. Stopping a child is final, so each is stopped at most once, and at
//! once at most once.

use std::collections::BTreeMap;
use std::task::{Context as TaskContext, Poll};

use super::address::Address;
use super::family::Kinship;
use super::source::{AttachedSource, Feed, SourceOrigin, SourceSet};
use crate::contain::{Panic, contain};
use crate::task::TaskInfo;
use crate::tracer::MessageSource;

/// All children of one actor.
pub(super) struct Children<M> {
    /// By the number of the adoption.
    members: BTreeMap<u64, AdoptedChild>,
    /// By the number of the adoption, too.
    results: SourceSet<M>,
    /// The number of the next adoption.
    next: u64,
    /// The number below which all children were stopped.
    stopped: u64,
    /// The number below which they were stopped at once.
    stopped_now: u64,
}

struct AdoptedChild {
    child: TaskInfo,
    /// Stops the child, at once or not. It has an address, so that the child stays open.
    stop: Box<dyn Fn(bool) + Send + Sync>,
    _kinship: Kinship,
}

impl<M> Children<M> {
    pub(super) fn new() -> Self {
        Children {
            members: BTreeMap::new(),
            results: SourceSet::new(),
            next: 0,
            stopped: 0,
            stopped_now: 0,
        }
    }

    /// Adds a child, whose result arrives from `feed`.
    pub(super) fn add<C: Send + 'static>(
        &mut self,
        address: Address<C>,
        kinship: Kinship,
        feed: Feed<M>,
    ) {
        let member = AdoptedChild {
            child: address.info(),
            stop: Box::new(move |at_once| match at_once {
                true => address.stop_now(),
                false => address.stop(),
            }),
            _kinship: kinship,
        };
        self.members.insert(self.next, member);
        let from = MessageSource::Child(self.next);
        self.results
            .push(from.into(), AttachedSource::new(feed, None, None));
        self.next += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn list(&self) -> impl Iterator<Item = TaskInfo> {
        self.members.values().map(|member| member.child.clone())
    }

    /// Stops the children that were not stopped this way before, youngest first.
    pub(super) fn stop(&mut self, at_once: bool) {
        let stopped = match at_once {
            true => &mut self.stopped_now,
            false => &mut self.stopped,
        };
        let first = std::mem::replace(stopped, self.next);
        for member in self.members.range(first..).rev() {
            // Only a forked process panics here, and it may be unwinding already.
            contain(|| (member.1.stop)(at_once));
        }
    }

    /// Returns the message for the result of a child, or the panic of the function that makes it,
    /// with the child's id. Returns `None` if there is no child.
    pub(super) fn poll(
        &mut self,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<(SourceOrigin, Result<M, Panic>)>> {
        let polled = self.results.poll(cx);
        polled.map(|result| {
            let (from, item) = result?;
            let member = match from.kind {
                MessageSource::Child(number) => self.members.remove(&number),
                _ => None,
            };
            let id = member.map_or(0, |member| member.child.id());
            Some((MessageSource::Child(id).into(), item))
        })
    }
}

/// Stops the children of a parent that ends.
impl<M> Drop for Children<M> {
    fn drop(&mut self) {
        self.stop(false);
    }
}
