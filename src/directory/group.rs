//! What is known of a group: its members, those that watch it, and its last messages.
//!
//! A watch has at most one change for each actor: a member that has joined and left since the last
//! look is none. So what a watch keeps is bounded by the members, those of now and those of then.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use slab::Slab;

use super::NamedActor;
use super::table::{NameTable, Value};
use crate::task::TaskInfo;
use crate::waiters::Waiters;

/// The members of a group, by their ids.
pub(crate) type Members = BTreeMap<u64, Arc<dyn NamedActor>>;

/// A group.
#[derive(Default)]
pub(crate) struct GroupEntry {
    /// Copied when it changes, so that the members can be used without the lock.
    members: Arc<Members>,
    /// The member whose turn was last.
    pub(crate) last: u64,
    /// What late members receive, typed by the messages.
    pub(crate) history: Option<Box<dyn Any + Send + Sync>>,
    watches: Slab<WatchEntry>,
    /// The tasks that wait for a change, if there is a watch.
    waits: Option<Arc<Waiters>>,
}

/// A watch of a group.
struct WatchEntry {
    /// Returns whether it sees this member.
    sees: fn(&dyn NamedActor) -> bool,
    /// What it was not told yet, by the ids of the actors.
    /// One that joins is the member of now, so nothing is dropped with its change.
    changes: BTreeMap<u64, MemberChange>,
}

/// A change of a group.
pub(crate) enum MemberChange {
    Joined(Arc<dyn NamedActor>),
    Left(TaskInfo),
}

impl Value for GroupEntry {
    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.history.is_none() && self.watches.is_empty()
    }
}

impl GroupEntry {
    pub(crate) fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// Adds a member. Returns the one with this id that it replaces.
    pub(crate) fn insert(&mut self, member: &Arc<dyn NamedActor>) -> Option<Arc<dyn NamedActor>> {
        let id = member.id();
        let before = Arc::make_mut(&mut self.members).insert(id, member.clone());
        for (_, watch) in &mut self.watches {
            let joined = MemberChange::Joined(member.clone());
            if before.is_some() {
                // The caller drops the one before, which is not dropped here.
                if let Some(untold @ MemberChange::Joined(_)) = watch.changes.get_mut(&id) {
                    *untold = joined;
                }
                continue;
            }
            // One that has left and is back was not seen to leave.
            if (watch.sees)(&**member) && watch.changes.remove(&id).is_none() {
                watch.changes.insert(id, joined);
            }
        }
        before
    }

    /// Removes a member, and returns it.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Arc<dyn NamedActor>> {
        let member = Arc::make_mut(&mut self.members).remove(&id)?;
        for (_, watch) in &mut self.watches {
            // One that has joined meanwhile was not seen. It is not dropped here, but by the caller.
            if (watch.sees)(&*member) && watch.changes.remove(&id).is_none() {
                watch.changes.insert(id, MemberChange::Left(member.info()));
            }
        }
        Some(member)
    }

    /// Adds a watch, whose first changes are the members of now. Returns its key, and what its task
    /// waits for: `fresh`, if there is no other watch.
    pub(crate) fn watch(
        &mut self,
        sees: fn(&dyn NamedActor) -> bool,
        fresh: Arc<Waiters>,
    ) -> (usize, Arc<Waiters>) {
        let seen = self.members.iter().filter(|(_, member)| sees(&***member));
        let joined = seen.map(|(&id, member)| (id, MemberChange::Joined(member.clone())));
        let changes = joined.collect();
        let key = self.watches.insert(WatchEntry { sees, changes });
        (key, self.waits.get_or_insert(fresh).clone())
    }

    /// Returns the next change that this watch was not told.
    pub(crate) fn next_change(&mut self, key: usize) -> Option<MemberChange> {
        let (_, change) = self.watches[key].changes.pop_first()?;
        Some(change)
    }

    /// Removes a watch. The caller drops what it was not told, and what nothing waits for any more.
    pub(crate) fn unwatch(&mut self, key: usize) -> impl Sized + use<> {
        let watch = self.watches.remove(key);
        (watch, self.waits.take_if(|_| self.watches.is_empty()))
    }

    /// Wakes all watches, without the lock.
    pub(super) fn wake(&self) {
        if let Some(waits) = &self.waits {
            waits.wake_all();
        }
    }
}

impl NameTable<GroupEntry> {
    /// Calls `change`, which may change who is a member, and then wakes the watches of the group.
    pub(crate) fn change_members<R>(
        &self,
        name: &str,
        change: impl FnOnce(&mut GroupEntry) -> R,
    ) -> Option<R> {
        let (result, waits) = self.change(name, |entry| (change(entry), entry.waits.clone()))?;
        if let Some(waits) = waits {
            waits.wake_all();
        }
        Some(result)
    }
}
