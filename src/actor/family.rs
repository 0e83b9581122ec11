//! Which actor is the parent of which, so that no actor becomes its own ancestor.
//!
//! The list is one for the process, since parent and child may belong to different runtimes. It has
//! an entry for each child and for each parent, and for each actor that has a supervisor. A supervisor
//! is no parent: it gets no result as a message.
//!
//! An actor without children is no ancestor, so the usual adoption looks at two entries.

use std::collections::HashMap;

use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{Mutex, PerProcess};

static FAMILIES: PerProcess<Mutex<Families>> = PerProcess::new();

/// The number of entries, so that a look takes no lock if there are none.
static ENTRIES: AtomicU64 = AtomicU64::new(0);

/// The entries by the ids of the actors.
#[derive(Default)]
struct Families(HashMap<u64, Kin>);

#[derive(Default)]
struct Kin {
    parent: Option<u64>,
    supervisor: Option<u64>,
    children: usize,
}

/// A child's membership of its family, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Kinship {
    child: u64,
}

/// That an actor has a supervisor, until this is dropped.
#[derive(Debug)]
pub(crate) struct Supervised {
    actor: u64,
}

impl Kinship {
    /// Makes `parent` the parent of `child`, which has none. Returns `None` if the child is the
    /// parent itself or one of its ancestors.
    pub(super) fn new(parent: u64, child: u64) -> Option<Self> {
        let mut families = families().lock();
        if families.is_descendant(parent, child) {
            return None;
        }
        families.0.entry(child).or_default().parent = Some(parent);
        families.0.entry(parent).or_default().children += 1;
        families.publish();
        Some(Kinship { child })
    }
}

impl Supervised {
    pub(crate) fn new(actor: u64, supervisor: u64) -> Self {
        let mut families = families().lock();
        families.0.entry(actor).or_default().supervisor = Some(supervisor);
        families.publish();
        Supervised { actor }
    }
}

/// Returns the parent of an actor, if it has one.
pub(super) fn parent_of(child: u64) -> Option<u64> {
    families().lock().0.get(&child)?.parent
}

/// Returns the parent of an actor or, if it has none, its supervisor.
pub(super) fn owner_of(actor: u64) -> Option<u64> {
    // Relaxed: it publishes nothing. A thread that has seen the entry being made sees the number.
    if ENTRIES.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let families = families().lock();
    let kin = families.0.get(&actor)?;
    kin.parent.or(kin.supervisor)
}

impl Drop for Kinship {
    fn drop(&mut self) {
        let mut families = families().lock();
        let child = families.0.get_mut(&self.child);
        let parent = child.and_then(|kin| kin.parent.take());
        if let Some(kin) = parent.and_then(|parent| families.0.get_mut(&parent)) {
            kin.children -= 1;
        }
        for id in parent.into_iter().chain([self.child]) {
            families.forget(id);
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let mut families = families().lock();
        if let Some(kin) = families.0.get_mut(&self.actor) {
            kin.supervisor = None;
        }
        families.forget(self.actor);
    }
}

impl Families {
    /// Returns whether `id` is `ancestor` or descends from it.
    fn is_descendant(&self, id: u64, ancestor: u64) -> bool {
        if id == ancestor {
            return true;
        }
        if self.0.get(&ancestor).is_none_or(|kin| kin.children == 0) {
            return false;
        }
        let mut next = id;
        while let Some(parent) = self.0.get(&next).and_then(|kin| kin.parent) {
            if parent == ancestor {
                return true;
            }
            next = parent;
        }
        false
    }

    /// Removes an entry that says nothing any more.
    fn forget(&mut self, id: u64) {
        if let Some(Kin {
            parent: None,
            supervisor: None,
            children: 0,
        }) = self.0.get(&id)
        {
            self.0.remove(&id);
            self.publish();
        }
    }

    /// Stores the number of entries.
    fn publish(&self) {
        // Relaxed: as in `owner_of`.
        ENTRIES.store(self.0.len() as u64, Ordering::Relaxed);
    }
}

fn families() -> &'static Mutex<Families> {
    FAMILIES.get_or_init(|| Mutex::new(Families::default()))
}
