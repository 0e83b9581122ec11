//! What has names: for each name one value without its type, and for each group any number.
//! Beside it are the tables of keys that other modules own.
//!
//! A value whose task has ended counts as removed, though its removal may come a moment later. No
//! value is dropped, and no waker is woken, under a lock.

mod group;
mod hash;
mod keys;
mod registered;
mod table;

use std::any::Any;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

pub(crate) use group::{GroupEntry, MemberChange, Members};
pub(crate) use hash::HashSeeds;
pub(crate) use keys::{HashedKey, KeySlot, Keys};
pub(crate) use registered::{LabelledKeys, Registrations};

use crate::contain::contain;
use crate::sync::Mutex;
use crate::task::TaskInfo;
use crate::waiters::{Ticket, Waiters};
use table::{NameTable, Value};

/// The names and groups of a runtime.
pub(crate) struct Directory {
    pub(crate) names: NameTable<NameEntry>,
    pub(crate) groups: NameTable<GroupEntry>,
    /// The sets of keyed actors whose keys have texts. Those that are gone go with the next one.
    labelled: Mutex<Vec<Weak<dyn LabelledKeys>>>,
    /// What is notified of the close.
    closed: Waiters,
}

/// A value under a name or in a group.
pub(crate) trait NamedActor: Any + Send + Sync {
    fn id(&self) -> u64;
    fn info(&self) -> TaskInfo;
    /// Returns whether its task has ended, so that it has no name and is in no group.
    fn has_ended(&self) -> bool;
    /// Returns the name of the type of its messages.
    fn message_type(&self) -> &'static str;
}

impl dyn NamedActor {
    /// Returns the value if it has this type.
    pub(crate) fn of<T: NamedActor>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// What is known of a name.
#[derive(Default)]
pub(crate) struct NameEntry {
    pub(crate) holder: Option<Box<dyn NamedActor>>,
    /// The tasks that wait until there is a holder, or until there is none.
    pub(crate) waits: Option<Arc<Waiters>>,
}

impl Value for NameEntry {
    fn is_empty(&self) -> bool {
        self.holder.is_none() && self.waits.is_none()
    }
}

impl NameTable<NameEntry> {
    /// Takes the value under a name if `is_it`, and wakes those that wait for a change of the name.
    pub(crate) fn free(
        &self,
        name: &str,
        is_it: impl FnOnce(&dyn NamedActor) -> bool,
    ) -> Option<Box<dyn NamedActor>> {
        let (holder, waits) = self.change(name, |entry| {
            let holder = entry.holder.take_if(|holder| is_it(&**holder));
            let waits = entry.waits.clone().filter(|_| holder.is_some());
            (holder, waits)
        })?;
        self.wake(name, waits);
        holder
    }

    /// Wakes the tasks of a list of this name.
    pub(crate) fn wake(&self, name: &str, waits: Option<Arc<Waiters>>) {
        if let Some(waits) = waits {
            waits.wake_all();
            // A wait that has ended meanwhile was not the last one that has the list.
            self.leave_waits(name, waits);
        }
    }

    /// Gives up a pointer to the list of a name, and drops the list with the last one.
    pub(crate) fn leave_waits(&self, name: &str, waits: Arc<Waiters>) {
        let unused = self.change(name, |entry| {
            drop(waits);
            entry.waits.take_if(|waits| Arc::strong_count(waits) == 1)
        });
        drop(unused);
    }
}

impl Directory {
    pub(crate) fn new() -> Self {
        Directory {
            names: NameTable::new(),
            groups: NameTable::new(),
            labelled: Mutex::new(Vec::new()),
            closed: Waiters::new(),
        }
    }

    /// Adds a set of keyed actors whose keys have texts.
    pub(crate) fn add_labelled(&self, set: Weak<dyn LabelledKeys>) {
        let mut sets = self.labelled.lock();
        sets.retain(|set| set.strong_count() > 0);
        sets.push(set);
    }

    fn labelled_sets(&self) -> Vec<Arc<dyn LabelledKeys>> {
        self.labelled
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Wakes `waker` at the close, until `ticket` is given up with
    /// [`forget_close`](Directory::forget_close). Returns true if it is closed.
    pub(crate) fn wake_at_close(&self, ticket: &mut Ticket, waker: &Waker) -> bool {
        let is_closed = || self.names.look("", |_| ()).is_none();
        let polled = self
            .closed
            .poll(ticket, &mut Context::from_waker(waker), is_closed);
        polled.is_ready()
    }

    /// Gives up the ticket, so that its waker is not woken.
    pub(crate) fn forget_close(&self, ticket: &mut Ticket) {
        self.closed.leave(ticket);
    }

    /// Removes all names and groups, accepts no more, and wakes all that wait.
    pub(crate) fn close(&self) {
        for NameEntry { waits, .. } in self.names.close() {
            if let Some(waits) = waits {
                waits.wake_all();
            }
        }
        for group in self.groups.close() {
            group.wake();
            // Messages and tags are of the user.
            contain(|| drop(group));
        }
        self.closed.wake_all();
    }
}
