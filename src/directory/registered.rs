//! What actors are registered as: names, groups and keys, by the ids of the actors.
//!
//! The tables know the actor of a name. A look at actors needs the names of an actor. They are read anew
//! if a table has changed since the look before. The text of a key is made once, since an actor
//! keeps its key. A lock is held for one shard at a time.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use super::{Directory, HashSeeds};
use crate::contain::contain;

/// A set of actors with keys, which have texts.
pub(crate) trait LabelledKeys: Send + Sync {
    /// Returns the text of the key of each actor for whose id `is_new` returns true. That is called
    /// for all actors, under a lock.
    fn texts(&self, is_new: &mut dyn FnMut(u64) -> bool) -> Vec<(u64, String)>;
}

/// What an actor is registered as.
#[derive(Default, Hash)]
pub(crate) struct Registered {
    /// Sorted, as `groups` are.
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) groups: Vec<Arc<str>>,
    pub(crate) key: Option<Arc<str>>,
}

/// What the actors of a directory are registered as, at the last look.
#[derive(Default)]
pub(crate) struct Registrations {
    /// By the ids of the actors. The number is that of the last look that has found the key.
    actors: HashMap<u64, (Registered, u32)>,
    /// How often names and groups had changed.
    changes: u64,
    looks: u32,
}

impl Registrations {
    /// Looks for the first time.
    pub(crate) fn of(directory: Option<&Directory>) -> Self {
        let mut all = Registrations::default();
        all.look_again(directory);
        all
    }

    /// Notes what has changed since the look before.
    pub(crate) fn look_again(&mut self, directory: Option<&Directory>) {
        let Some(directory) = directory else { return };
        // Before they are read: what changes meanwhile is read again by the next look.
        let changes = directory.names.changes() + directory.groups.changes();
        if std::mem::replace(&mut self.changes, changes) != changes {
            self.read_names(directory);
        }
        let sets = directory.labelled_sets();
        if !sets.is_empty() || self.looks > 0 {
            self.looks = self.looks.wrapping_add(1);
            self.read_keys(&sets);
        }
        contain(|| drop(sets));
    }

    fn read_names(&mut self, directory: &Directory) {
        for (registered, _) in self.actors.values_mut() {
            registered.names.clear();
            registered.groups.clear();
        }
        let names = (directory.names)
            .read(|name, entry| Some((entry.holder.as_ref()?.id(), Arc::<str>::from(name))));
        for (id, name) in names {
            self.actors.entry(id).or_default().0.names.push(name);
        }
        // The members are copied by a change meanwhile, so this may be the last pointer to some.
        let groups = (directory.groups)
            .read(|name, entry| Some((Arc::<str>::from(name), entry.members().clone())));
        for (name, members) in groups {
            for &id in members.keys() {
                let (registered, _) = self.actors.entry(id).or_default();
                registered.groups.push(name.clone());
            }
            contain(|| drop(members));
        }
        self.actors.retain(|_, (registered, _)| {
            registered.names.sort_unstable();
            registered.groups.sort_unstable();
            !registered.is_empty()
        });
    }

    fn read_keys(&mut self, sets: &[Arc<dyn LabelledKeys>]) {
        let looks = self.looks;
        for set in sets {
            let texts = set.texts(&mut |id| match self.actors.get_mut(&id) {
                Some((registered, seen)) => {
                    *seen = looks;
                    registered.key.is_none()
                }
                None => true,
            });
            for (id, text) in texts {
                let (registered, seen) = self.actors.entry(id).or_default();
                (registered.key, *seen) = (Some(text.into()), looks);
            }
        }
        self.actors.retain(|_, (registered, seen)| {
            registered.key.take_if(|_| *seen != looks);
            !registered.is_empty()
        });
    }

    /// Returns what the actor with this id is registered as, if it is.
    pub(crate) fn get(&self, id: u64) -> Option<&Registered> {
        let (registered, _) = self.actors.get(&id)?;
        Some(registered)
    }

    /// Returns a hash of what the actor with this id is registered as, or 0.
    pub(crate) fn hash(&self, id: u64, seeds: &HashSeeds) -> u64 {
        match self.actors.is_empty() {
            true => 0,
            false => self.get(id).map_or(0, |it| seeds.hash_one(it)),
        }
    }
}

impl Registered {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.groups.is_empty() && self.key.is_none()
    }
}
