//! A watch of a group: which actors join and leave.
//!
//! The group has the changes that the watch was not told yet, until the watch is dropped.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::super::member::{RegisteredActor, observe};
use super::Group;
use crate::actor::WeakAddress;
use crate::directory::{GroupEntry, MemberChange, NamedActor};
use crate::runtime::Inner;
use crate::task::{TaskInfo, WaitsFor, run};
use crate::waiters::{Ticket, Waiters};

/// A change of a [`Group`], as its [watch](Group::watch) returns it.
#[non_exhaustive]
pub enum Membership<M> {
    /// This actor is a member. Its address does not keep it open.
    Joined(WeakAddress<M>),
    /// This actor is no member any more: it has left, or it has ended.
    Left(TaskInfo),
}

/// A stream of the members that join and leave a [`Group`], made by [`Group::watch`].
///
/// Dropping it ends the watch.
#[must_use = "a watch that is dropped sees nothing"]
pub struct GroupWatch<M> {
    group: Group<M>,
    runtime: Arc<Inner>,
    /// The key of the watch, and what its task waits for; `None` if the runtime has shut down.
    entry: Option<(usize, Arc<Waiters>)>,
    ticket: Ticket,
}

// No value is pinned here.
impl<M> Unpin for GroupWatch<M> {}

impl<M: Send + 'static> Group<M> {
    /// Watches which actors join and leave.
    ///
    /// The stream begins with the actors that are members now. Then it has each actor that joins,
    /// leaves or ends, and it ends with the runtime. A restart of a member is no change.
    ///
    /// The watch counts changes since its last look, and so it needs no more memory than there are
    /// members. An actor that has joined and left meanwhile is not returned, nor is one that has
    /// left and joined again. Changes of several actors come in the order of their
    /// [ids](crate::Address::id).
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on).
    ///
    /// ```
    /// use greenroom::registry::{Group, Membership};
    /// use greenroom::{Context, spawn};
    ///
    /// const WORKERS: Group<u32> = Group::new("workers");
    ///
    /// async fn work(mut cx: Context<u32>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// greenroom::run(async {
    ///     let worker = spawn!(work(_));
    ///     let mut watch = WORKERS.watch();
    ///     WORKERS.join(&worker).unwrap();
    ///     let Some(Membership::Joined(joined)) = watch.next().await else {
    ///         panic!("it has joined");
    ///     };
    ///     joined.tell(1).unwrap();
    ///     worker.kill();
    ///     let Some(Membership::Left(left)) = watch.next().await else {
    ///         panic!("it has ended");
    ///     };
    ///     assert_eq!(left.id(), joined.id());
    /// });
    /// ```
    #[doc(alias("monitor", "subscribe", "presence"))]
    #[track_caller]
    pub fn watch(&self) -> GroupWatch<M> {
        let sees = |member: &dyn NamedActor| member.of::<RegisteredActor<M>>().is_some();
        let fresh = Arc::new(Waiters::new());
        let (runtime, entry) = self.on_runtime(|runtime| {
            observe(|| None);
            let groups = &runtime.directory_made().groups;
            let entry = groups.change(&self.name, |entry| entry.watch(sees, fresh));
            (runtime.clone(), entry)
        });
        GroupWatch {
            group: self.clone(),
            runtime,
            entry,
            ticket: Ticket::default(),
        }
    }
}

impl<M: Send + 'static> GroupWatch<M> {
    /// Waits until an actor joins or leaves, and returns it; `None` when the runtime has shut down.
    ///
    /// # Cancel safety
    /// Cancel safe: a change that was not returned is left to the next call.
    pub async fn next(&mut self) -> Option<Membership<M>> {
        let next = NextChange(self);
        poll_fn(|cx| next.0.poll_change(cx)).await
    }

    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<Option<Membership<M>>> {
        let Some((key, waits)) = &self.entry else {
            return Poll::Ready(None);
        };
        observe(|| None);
        // It looks before and after the waker is in the list. What was found is kept.
        let found = Cell::new(None);
        let happened = || {
            let next = |entry: &mut GroupEntry| entry.next_change(*key);
            let groups = &self.runtime.directory_made().groups;
            match groups.change(&self.group.name, next) {
                Some(None) => false,
                Some(Some(change)) => {
                    found.set(Some(change));
                    true
                }
                None => true,
            }
        };
        let polled = waits.poll(&mut self.ticket, cx, happened);
        if polled.is_pending() {
            run::note_wait_for(cx.waker(), WaitsFor::Other("a group"), || 0);
        }
        polled.map(|()| found.take().map(Membership::of))
    }
}

impl<M: Send + 'static> Membership<M> {
    fn of(change: MemberChange) -> Self {
        match change {
            MemberChange::Joined(member) => {
                let member = member.of::<RegisteredActor<M>>();
                let member = member.expect("the watch sees no member of another type");
                Membership::Joined(member.address.clone())
            }
            MemberChange::Left(actor) => Membership::Left(actor),
        }
    }
}

impl<M> Clone for Membership<M> {
    fn clone(&self) -> Self {
        match self {
            Membership::Joined(actor) => Membership::Joined(actor.clone()),
            Membership::Left(actor) => Membership::Left(actor.clone()),
        }
    }
}

impl<M> fmt::Debug for Membership<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Membership::Joined(actor) => f.debug_tuple("Joined").field(actor).finish(),
            Membership::Left(actor) => f.debug_tuple("Left").field(actor).finish(),
        }
    }
}

/// A wait for the next change.
struct NextChange<'a, M>(&'a mut GroupWatch<M>);

impl<M> Drop for NextChange<'_, M> {
    fn drop(&mut self) {
        self.0.stop_waiting();
    }
}

impl<M> GroupWatch<M> {
    fn stop_waiting(&mut self) {
        // A thread of the parent process may have held the lock at a fork.
        if let Some((_, waits)) = self.entry.as_ref().filter(|_| self.runtime.is_here()) {
            waits.leave(&mut self.ticket);
        }
    }
}

impl<M> Drop for GroupWatch<M> {
    fn drop(&mut self) {
        self.stop_waiting();
        let Some((key, waits)) = self.entry.take().filter(|_| self.runtime.is_here()) else {
            return;
        };
        drop(waits);
        let groups = &self.runtime.directory_made().groups;
        drop(groups.change(&self.group.name, |entry| entry.unwatch(key)));
    }
}

impl<M: Send + 'static> Stream for GroupWatch<M> {
    type Item = Membership<M>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_change(cx)
    }
}

impl<M> fmt::Debug for GroupWatch<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupWatch").field(&self.group.name).finish()
    }
}
