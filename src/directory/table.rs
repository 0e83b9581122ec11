//! A hash table from names to values, behind several locks, so that threads rarely wait.
//!
//! No user code runs under a lock. A change may allocate there, which is rare beside lookups. A
//! value that is empty after a change is removed, and the memory shrinks with the number of values.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use super::hash::HashSeeds;
use crate::lock::SpinLock;
use crate::sync::CachePadded;

/// The number of locks, a power of two: more than threads that look up names at one time.
const SHARDS: usize = 16;

/// The number of values for which a shard keeps memory when it shrinks.
const KEPT: usize = 16;

/// A value of a [`NameTable`].
pub(crate) trait Value: Default {
    /// Returns whether it says no more than a new value.
    fn is_empty(&self) -> bool;
}

pub(crate) struct NameTable<V> {
    seeds: HashSeeds,
    shards: [CachePadded<SpinLock<NameShard<V>>>; SHARDS],
}

struct NameShard<V> {
    /// The values and their names, by the hashes of these. Names of one hash are rare.
    values: HashMap<u64, Vec<(Box<str>, V)>, Hashed>,
    is_closed: bool,
}

impl<V: Value> NameTable<V> {
    pub(crate) fn new() -> Self {
        NameTable {
            seeds: HashSeeds::new(),
            shards: std::array::from_fn(|_| {
                CachePadded(SpinLock::new(NameShard {
                    values: HashMap::default(),
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
            let mut named = shard.values.get(&hash).into_iter().flatten();
            let value = named.find(|(other, _)| **other == *name);
            (!shard.is_closed).then(|| look(value.map(|(_, value)| value)))
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
            let named = shard.values.entry(hash).or_default();
            let index = named.iter().position(|(other, _)| **other == *name);
            let index = index.unwrap_or_else(|| {
                named.reserve_exact(1);
                named.push((name.into(), V::default()));
                named.len() - 1
            });
            let result = change(&mut named[index].1);
            // An empty value says nothing, so it takes no memory. A shard that has shrunk far does not
            // keep the memory of its best days either.
            if named[index].1.is_empty() {
                named.swap_remove(index);
                if named.is_empty() {
                    shard.values.remove(&hash);
                    let len = shard.values.len();
                    if shard.values.capacity() > KEPT.max(4 * len) {
                        shard.values.shrink_to(KEPT.max(2 * len));
                    }
                }
            }
            Some(result)
        })
    }

    /// Takes out all values, and accepts no more.
    pub(crate) fn close(&self) -> impl Iterator<Item = V> {
        self.shards.iter().flat_map(|shard| {
            let values = shard.with(|shard| {
                shard.is_closed = true;
                std::mem::take(&mut shard.values)
            });
            values.into_values().flatten().map(|(_, value)| value)
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
