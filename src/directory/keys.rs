//! A table of keys, each with what its owner knows of it, in a slot.
//!
//! A key is found by its hash, in a table of chains of slots. The table grows and shrinks by a
//! chain or two at a time, as Litwin's linear hashing does, so that no step visits all keys. It has
//! at least as many chains as keys, and at most twice as many and one. User code runs only in
//! [`Keys::find`] and [`Keys::find_key`], which change nothing. No key is dropped here.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use slab::Slab;

/// The number of keys for which memory is kept when the last one is removed.
const KEPT: usize = 64;

/// The part of its keys for which a full table gets room. So it has few entries more than keys.
const GROWTH: usize = 8;

/// A key with its hash, made where user code may run.
pub(crate) struct HashedKey<K> {
    hash: u32,
    key: K,
}

impl<K> HashedKey<K> {
    /// Keys that are equal must come with equal hashes.
    pub(crate) fn new(hash: u64, key: K) -> Self {
        // The half makes an entry smaller. Its bits are as good as the others.
        HashedKey {
            hash: hash as u32,
            key,
        }
    }

    pub(crate) fn into_inner(self) -> K {
        self.key
    }
}

/// The index of a known key in the slab, plus 1, so that `None` takes no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeySlot(NonZeroU32);

impl KeySlot {
    fn new(index: usize) -> Self {
        let number = index.checked_add(1).and_then(|it| u32::try_from(it).ok());
        let number = number.and_then(NonZeroU32::new);
        KeySlot(number.expect("memory ends before 2^32 keys"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

struct KeyEntry<K, V> {
    hash: u32,
    /// The next one in its chain.
    next: Option<KeySlot>,
    key: K,
    value: V,
}

pub(crate) struct Keys<K, V> {
    entries: Slab<KeyEntry<K, V>>,
    /// The first slots of the chains, of which there is at least one.
    chains: Vec<Option<KeySlot>>,
}

impl<K, V> Keys<K, V> {
    pub(crate) fn new() -> Self {
        Keys {
            entries: Slab::new(),
            chains: vec![None],
        }
    }

    /// Returns the slot of the key, if it is known. This compares keys of equal hashes, and so may
    /// panic.
    pub(crate) fn find(&self, keyed: &HashedKey<K>) -> Option<KeySlot>
    where
        K: Eq,
    {
        self.find_key(u64::from(keyed.hash), &keyed.key)
    }

    /// Does the same for a key that is borrowed.
    #[inline]
    pub(crate) fn find_key(&self, hash: u64, key: &K) -> Option<KeySlot>
    where
        K: Eq,
    {
        let hash = hash as u32;
        let mut next = self.chains[self.chain(hash)];
        while let Some(slot) = next {
            let entry = &self.entries[slot.index()];
            if entry.hash == hash && entry.key == *key {
                return Some(slot);
            }
            next = entry.next;
        }
        None
    }

    /// Returns all keys with their slots and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (KeySlot, &K, &V)> {
        let entries = self.entries.iter();
        entries.map(|(index, entry)| (KeySlot::new(index), &entry.key, &entry.value))
    }

    /// Adds a key that is not known.
    pub(crate) fn insert(&mut self, keyed: HashedKey<K>, value: V) -> KeySlot {
        let HashedKey { hash, key } = keyed;
        let len = self.entries.len();
        if len == self.entries.capacity() {
            self.entries.reserve_exact(more_for(len));
        }
        let slot = self.entries.insert(KeyEntry {
            hash,
            next: None,
            key,
            value,
        });
        let slot = KeySlot::new(slot);
        self.link(slot);
        while self.chains.len() < self.entries.len() {
            self.split();
        }
        slot
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, slot: KeySlot) -> HashedKey<K> {
        self.unlink(slot);
        let KeyEntry { hash, key, .. } = self.entries.remove(slot.index());
        if self.entries.is_empty() && self.entries.capacity() > KEPT {
            *self = Keys::new();
        }
        while self.chains.len() > 2 * self.entries.len() + 1 {
            self.merge();
        }
        HashedKey { hash, key }
    }

    /// Returns the chain of a hash: its low bits, with one bit less if there are fewer chains.
    fn chain(&self, hash: u32) -> usize {
        let mask = self.chains.len().next_power_of_two() - 1;
        let chain = hash as usize & mask;
        match chain < self.chains.len() {
            true => chain,
            false => chain & mask >> 1,
        }
    }

    fn link(&mut self, slot: KeySlot) {
        let chain = self.chain(self.entries[slot.index()].hash);
        let next = self.chains[chain].replace(slot);
        self.entries[slot.index()].next = next;
    }

    fn unlink(&mut self, slot: KeySlot) {
        let KeyEntry { hash, next, .. } = self.entries[slot.index()];
        let chain = self.chain(hash);
        let mut link = &mut self.chains[chain];
        while let Some(other) = link.filter(|other| *other != slot) {
            link = &mut self.entries[other.index()].next;
        }
        *link = next;
    }

    /// Adds a chain, for some keys of the chain that has its number without the highest bit.
    fn split(&mut self) {
        let highest = 1 << self.chains.len().ilog2();
        let parent = self.chains.len() - highest;
        let keys = self.chains[parent].take();
        if self.chains.len() == self.chains.capacity() {
            self.chains.reserve_exact(more_for(self.chains.len()));
        }
        self.chains.push(None);
        self.link_all(keys);
    }

    /// Removes the last chain. Its keys go to the chain from which it was split.
    fn merge(&mut self) {
        let keys = self.chains.pop().flatten();
        self.link_all(keys);
    }

    fn link_all(&mut self, mut first: Option<KeySlot>) {
        while let Some(slot) = first {
            first = self.entries[slot.index()].next;
            self.link(slot);
        }
    }
}

/// Returns how much room a full table of so many gets.
fn more_for(len: usize) -> usize {
    len / GROWTH + GROWTH
}

impl<K, V> Index<KeySlot> for Keys<K, V> {
    type Output = V;

    fn index(&self, slot: KeySlot) -> &V {
        &self.entries[slot.index()].value
    }
}

impl<K, V> IndexMut<KeySlot> for Keys<K, V> {
    fn index_mut(&mut self, slot: KeySlot) -> &mut V {
        &mut self.entries[slot.index()].value
    }
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use std::collections::BTreeMap;

    use super::{HashedKey, KEPT, KeySlot, Keys};

    impl<K, V> Keys<K, V> {
        pub(crate) fn capacity(&self) -> usize {
            self.entries.capacity().max(self.chains.capacity())
        }

        /// Returns all keys by a walk of the chains, and checks what always holds.
        pub(crate) fn walk(&self) -> Vec<(KeySlot, &V)> {
            let mut all = Vec::new();
            for (chain, first) in self.chains.iter().enumerate() {
                let mut next = *first;
                while let Some(slot) = next {
                    let entry = &self.entries[slot.index()];
                    assert_eq!(self.chain(entry.hash), chain);
                    all.push((slot, &entry.value));
                    next = entry.next;
                }
            }
            assert_eq!(all.len(), self.entries.len(), "all keys are in one chain");
            let most = 2 * all.len() + 1;
            assert!((all.len().max(1)..=most).contains(&self.chains.len()));
            all
        }
    }

    #[test]
    fn random_keys_are_found_until_they_are_removed() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut keys, mut model) = (Keys::new(), BTreeMap::new());
            let hash = |key: u64| key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (seed % 40);
            for step in 0..2_000 {
                // It grows, then shrinks.
                let key = random.u64(..200);
                let adds = random.u64(..2_000) > step;
                let found = keys.find(&HashedKey::new(hash(key), key));
                assert_eq!(found, model.get(&key).copied());
                match found {
                    None if adds => {
                        let slot = keys.insert(HashedKey::new(hash(key), key), key);
                        model.insert(key, slot);
                    }
                    Some(slot) if !adds => {
                        assert_eq!(keys[slot], key);
                        assert_eq!(keys.remove(slot).into_inner(), key);
                        model.remove(&key);
                    }
                    _ => {}
                }
                assert_eq!(keys.walk().len(), model.len());
            }
        }
    }

    #[test]
    fn an_empty_table_keeps_little_memory() {
        let mut keys = Keys::new();
        let slots: Vec<_> = (0..10_000)
            .map(|key| keys.insert(HashedKey::new(key, key), ()))
            .collect();
        for slot in slots {
            keys.remove(slot);
        }
        assert!(keys.capacity() <= KEPT);
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn a_key_of_64_bits_takes_16_bytes_and_its_value() {
        assert_eq!(size_of::<super::KeyEntry<u64, [u64; 3]>>(), 16 + 24);
    }
}
