//! A hash table from names to values, behind several locks, so that threads rarely wait.
//!
//! No user code runs under a lock. A change may allocate there, which is rare beside lookups. A
//! value that is empty after a change is removed, and the memory shrinks with the number of values.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use super::hash::HashSeeds;
use crate::lock::SpinLock;
use crate::sync::CachePadded;

/// The number of locks, a power of two: more than threads that look up names at one time.
const SHARDS: usize = 16;

/// The number of values for which a shard keeps memory when it shrinks.
const KEPT: usize = 16;

/// So many changed names are kept also by a shard with fewer values.
const CHANGED_MIN: usize = 64;

/// A value of a [`NameTable`].
pub(crate) trait Value: Default {
    /// Returns whether it says no more than a new value.
    fn is_empty(&self) -> bool;
}

/// What was read of names.
type ReadNames<R> = Vec<(Arc<str>, R)>;

pub(crate) struct NameTable<V> {
    seeds: HashSeeds,
    shards: [CachePadded<SpinLock<NameShard<V>>>; SHARDS],
}

struct NameShard<V> {
    /// The values, by the hashes of their names.
    values: HashMap<u64, SameHash<V>, Hashed>,
    /// The names of the values that were changed, while they are few. Then nothing takes them, and all
    /// values are read by who asks next.
    changed: Option<Vec<Box<str>>>,
    is_closed: bool,
}

impl<V: Value> NameShard<V> {
    fn note_change(&mut self, name: &str) {
        let most = CHANGED_MIN.max(self.values.len());
        self.changed.take_if(|changed| changed.len() >= most);
        if let Some(changed) = &mut self.changed {
            changed.push(name.into());
        }
    }

    fn read<R>(&self, read: impl Fn(&V) -> Option<R>) -> impl Iterator<Item = (Arc<str>, R)> {
        let named = self.values.values();
        let named = named.flat_map(|named| std::iter::once(&named.first).chain(&named.others));
        named.filter_map(move |(name, value)| Some((Arc::from(&**name), read(value)?)))
    }
}

/// The names of one hash, with their values. There is rarely more than one, which is found without
/// another step.
struct SameHash<V> {
    first: (Box<str>, V),
    others: Vec<(Box<str>, V)>,
}

impl<V: Value> SameHash<V> {
    fn new(name: &str) -> Self {
        SameHash {
            first: (name.into(), V::default()),
            others: Vec::new(),
        }
    }

    #[inline]
    fn get(&self, name: &str) -> Option<&V> {
        match *self.first.0 == *name {
            true => Some(&self.first.1),
            false => self.get_other(name),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_other(&self, name: &str) -> Option<&V> {
        let other = self.others.iter().find(|(other, _)| **other == *name);
        other.map(|(_, value)| value)
    }

    /// Returns the value of a name, which is created if it is missing.
    fn made(&mut self, name: &str) -> &mut V {
        if *self.first.0 == *name {
            return &mut self.first.1;
        }
        let index = self.others.iter().position(|(other, _)| **other == *name);
        let index = index.unwrap_or_else(|| {
            self.others.push((name.into(), V::default()));
            self.others.len() - 1
        });
        &mut self.others[index].1
    }

    /// Removes a name whose value is empty. Returns false if no name is left.
    fn remove(&mut self, name: &str) -> bool {
        if *self.first.0 != *name {
            self.others.retain(|(other, _)| **other != *name);
            return true;
        }
        let other = self.others.pop();
        other.map(|other| self.first = other).is_some()
    }
}

impl<V: Value> NameTable<V> {
    pub(crate) fn new() -> Self {
        NameTable {
            seeds: HashSeeds::new(),
            shards: std::array::from_fn(|_| {
                CachePadded(SpinLock::new(NameShard {
                    values: HashMap::default(),
                    changed: None,
                    is_closed: false,
                }))
            }),
        }
    }

    /// Calls `look` with the value of this name, if there is one. Returns `None` after the close.
    #[inline]
    pub(crate) fn look<R>(&self, name: &str, look: impl FnOnce(Option<&V>) -> R) -> Option<R> {
        let hash = self.seeds.of_name(name);
        self.shard(hash).with(|shard| {
            let value = shard.values.get(&hash).and_then(|named| named.get(name));
            (!shard.is_closed).then(|| look(value))
        })
    }

    /// Calls `change` with the value of this name, which is created if it is missing. Returns
    /// `None` after the close.
    pub(crate) fn change<R>(&self, name: &str, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        let hash = self.seeds.of_name(name);
        self.shard(hash).with(|shard| {
            if shard.is_closed {
                return None;
            }
            shard.note_change(name);
            let named = match shard.values.entry(hash) {
                Entry::Occupied(named) => named.into_mut(),
                Entry::Vacant(free) => free.insert(SameHash::new(name)),
            };
            let value = named.made(name);
            let result = change(value);
            // An empty value says nothing, so it takes no memory. A shard that has shrunk far does not
            // keep the memory of its best days either.
            if value.is_empty() && !named.remove(name) {
                shard.values.remove(&hash);
                let len = shard.values.len();
                if shard.values.capacity() > KEPT.max(4 * len) {
                    shard.values.shrink_to(KEPT.max(2 * len));
                }
            }
            Some(result)
        })
    }

    /// Returns what `read` makes of each name and its value, if that is something. It is called under the
    /// lock of a shard.
    pub(crate) fn read_all<R>(&self, read: impl Fn(&V) -> Option<R>) -> ReadNames<R> {
        let mut all = Vec::new();
        for shard in &self.shards {
            shard.with(|shard| all.extend(shard.read(&read)));
        }
        all
    }

    /// Does the same for the names that have changed since the call before, or may have. If these are
    /// not known any more, or this `is_first` of a caller, returns what `read_all` does, and true. One
    /// caller at a time may follow a table so.
    pub(crate) fn read_changed<R>(
        &self,
        is_first: bool,
        read: impl Fn(&V) -> Option<R>,
    ) -> (ReadNames<Option<R>>, bool) {
        let (mut changed, mut is_whole) = (Vec::new(), is_first);
        for shard in &self.shards {
            shard.with(|shard| match shard.changed.replace(Vec::new()) {
                Some(names) => changed.extend(names.into_iter().map(|name| {
                    let hash = self.seeds.of_name(&name);
                    let value = shard.values.get(&hash).and_then(|named| named.get(&name));
                    (Arc::from(name), value.and_then(&read))
                })),
                None => is_whole = true,
            });
        }
        if is_whole {
            // A change from now on is read by the next call as well.
            let all = self.read_all(read).into_iter();
            changed = all.map(|(name, read)| (name, Some(read))).collect();
        }
        (changed, is_whole)
    }

    /// Takes out all values, and accepts no more.
    pub(crate) fn close(&self) -> impl Iterator<Item = V> {
        self.shards.iter().flat_map(|shard| {
            let values = shard.with(|shard| {
                shard.is_closed = true;
                shard.changed = None;
                std::mem::take(&mut shard.values)
            });
            let named = values.into_values();
            let named = named.flat_map(|named| std::iter::once(named.first).chain(named.others));
            named.map(|(_, value)| value)
        })
    }

    fn shard(&self, hash: u64) -> &SpinLock<NameShard<V>> {
        // The map uses the lowest and the highest bits.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

/// The hasher for keys that are hashes.
#[derive(Default)]
struct Hashed(u64);

impl BuildHasher for Hashed {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Hashed(0)
    }
}

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a key is one number")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
