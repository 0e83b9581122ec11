//! What actors are registered as: names, groups and keys, by the ids of the actors.
//!
//! The tables know the actors of a name. A look at actors needs the names of an actor. A walk that looks again
//! and again reads what has changed since the look before. The text of a key is made once, since
//! an actor keeps its key. A lock is held for one shard at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Directory, Members, NameEntry};
use crate::contain::contain;

/// A set of actors with keys, which have texts.
pub(crate) trait LabelledKeys: Send + Sync {
    /// Returns the text of the key of each actor for whose id `is_new` returns true. That is called
    /// for all actors, under a lock.
    fn texts(&self, is_new: &mut dyn FnMut(u64) -> bool) -> Vec<(u64, String)>;
}

/// What an actor is registered as.
#[derive(Default)]
pub(crate) struct Registered {
    /// By [`NAMES`] and [`GROUPS`], each sorted.
    lists: [Vec<Arc<str>>; 2],
    key: Option<Arc<str>>,
}

const NAMES: usize = 0;
const GROUPS: usize = 1;

/// What the actors of a directory are registered as, at the last look.
#[derive(Default)]
pub(crate) struct Registrations {
    /// By the ids of the actors. The number is that of the last look that has found the key.
    actors: HashMap<u64, (Registered, u32)>,
    /// The ids of the actors of each name, and of each group, sorted. Empty if there was one look.
    ids: [HashMap<Arc<str>, Vec<u64>>; 2],
    /// The actors of which something has changed since the look before.
    pub(crate) changed: HashSet<u64>,
    looks: u32,
    /// Whether the tables know what has changed since the look before.
    follows: bool,
}

impl Registrations {
    /// Looks once.
    pub(crate) fn of(directory: Option<&Directory>) -> Self {
        let mut once = Registrations::default();
        let Some(directory) = directory else {
            return once;
        };
        for (name, id) in directory.names.read_all(holder) {
            once.add(NAMES, &name, id);
        }
        for (name, members) in directory.groups.read_all(|it| Some(it.members().clone())) {
            for id in ids(members) {
                once.add(GROUPS, &name, id);
            }
        }
        once.read_keys(directory);
        once
    }

    /// Notes what has changed since the look before. One at a time may look again and again.
    pub(crate) fn look_again(&mut self, directory: Option<&Directory>) {
        self.changed.clear();
        let Some(directory) = directory else { return };
        let is_first = !std::mem::replace(&mut self.follows, true);
        let (names, are_all) = directory.names.read_changed(is_first, holder);
        let names = names.into_iter();
        self.follow(
            NAMES,
            are_all,
            names.map(|(name, id)| (name, Vec::from_iter(id))),
        );
        let (groups, are_all) =
            (directory.groups).read_changed(is_first, |it| Some(it.members().clone()));
        let groups = groups.into_iter();
        let groups = groups.map(|(name, members)| (name, members.map_or_else(Vec::new, ids)));
        self.follow(GROUPS, are_all, groups);
        self.read_keys(directory);
        for id in &self.changed {
            let entry = self.actors.get(id);
            if entry.is_some_and(|(registered, _)| registered.is_empty()) {
                self.actors.remove(id);
            }
        }
    }

    /// Notes the actors of the names that have changed, or of all names.
    fn follow(
        &mut self,
        list: usize,
        are_all: bool,
        names: impl Iterator<Item = (Arc<str>, Vec<u64>)>,
    ) {
        let mut before = match are_all {
            true => std::mem::take(&mut self.ids[list]),
            false => HashMap::new(),
        };
        for (name, ids) in names {
            let old = before
                .remove(&name)
                .or_else(|| self.ids[list].remove(&name));
            self.replace(list, &name, &old.unwrap_or_default(), &ids);
            if !ids.is_empty() {
                self.ids[list].insert(name, ids);
            }
        }
        for (name, old) in before {
            self.replace(list, &name, &old, &[]);
        }
    }

    /// Takes a name from the actors that do not have it any more, and gives it to those that have it now.
    fn replace(&mut self, list: usize, name: &Arc<str>, old: &[u64], new: &[u64]) {
        for id in old.iter().filter(|id| new.binary_search(id).is_err()) {
            if let Some((registered, _)) = self.actors.get_mut(id) {
                registered.lists[list].retain(|other| other != name);
                self.changed.insert(*id);
            }
        }
        for id in new.iter().filter(|id| old.binary_search(id).is_err()) {
            self.add(list, name, *id);
            self.changed.insert(*id);
        }
    }

    fn add(&mut self, list: usize, name: &Arc<str>, id: u64) {
        let list = &mut self.actors.entry(id).or_default().0.lists[list];
        let at = list.binary_search(name).unwrap_or_else(|at| at);
        list.insert(at, name.clone());
    }

    fn read_keys(&mut self, directory: &Directory) {
        let sets = directory.labelled_sets();
        if sets.is_empty() && self.looks == 0 {
            return;
        }
        self.looks = self.looks.wrapping_add(1);
        let looks = self.looks;
        for set in &sets {
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
                self.changed.insert(id);
            }
        }
        contain(|| drop(sets));
        for (id, (registered, seen)) in &mut self.actors {
            if *seen != looks && registered.key.take().is_some() {
                self.changed.insert(*id);
            }
        }
    }

    /// Returns what the actor with this id is registered as, if it is.
    pub(crate) fn get(&self, id: u64) -> Option<&Registered> {
        let (registered, _) = self.actors.get(&id)?;
        Some(registered)
    }
}

impl Registered {
    pub(crate) fn names(&self) -> &Vec<Arc<str>> {
        &self.lists[NAMES]
    }

    pub(crate) fn groups(&self) -> &Vec<Arc<str>> {
        &self.lists[GROUPS]
    }

    pub(crate) fn key(&self) -> &Option<Arc<str>> {
        &self.key
    }

    fn is_empty(&self) -> bool {
        self.lists.iter().all(Vec::is_empty) && self.key.is_none()
    }
}

/// Returns the id of the actor that has a name.
fn holder(entry: &NameEntry) -> Option<u64> {
    Some(entry.holder.as_ref()?.id())
}

/// Returns the ids of members. A change meanwhile has copied them, so these may be the last pointers.
fn ids(members: Arc<Members>) -> Vec<u64> {
    let ids = members.keys().copied().collect();
    contain(|| drop(members));
    ids
}
