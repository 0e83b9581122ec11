//! Hashes of names and keys, by folded multiplications, eight bytes at a time.
//!
//! The numbers that go in are random, so that nothing outside the process can choose values of one
//! hash.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The random numbers of a table. All hashes of one table are made with the same ones.
pub(crate) struct HashSeeds {
    pub(super) first: u64,
    /// Odd, so that the multiplication loses nothing.
    pub(super) factor: u64,
}

impl HashSeeds {
    pub(crate) fn new() -> Self {
        let random = RandomState::new();
        HashSeeds {
            first: random.hash_one(0),
            factor: random.hash_one(1) | 1,
        }
    }

    #[inline]
    fn fold(&self, hash: u64, word: u64) -> u64 {
        let product = u128::from(hash ^ word) * u128::from(self.factor);
        (product as u64) ^ (product >> 64) as u64
    }

    /// Returns the hash of a name.
    #[inline]
    pub(crate) fn of_name(&self, name: &str) -> u64 {
        self.of_bytes(self.first, name.as_bytes())
    }

    #[inline]
    fn of_bytes(&self, hash: u64, bytes: &[u8]) -> u64 {
        let mut hash = hash ^ bytes.len() as u64;
        let Some(&last) = bytes.last_chunk() else {
            return self.fold(hash, short_word(bytes));
        };
        let mut rest = bytes;
        // The last word overlaps with the one before.
        while let Some((&word, more)) = rest.split_first_chunk()
            && !more.is_empty()
        {
            hash = self.fold(hash, u64::from_le_bytes(word));
            rest = more;
        }
        self.fold(hash, u64::from_le_bytes(last))
    }
}

/// Returns fewer than eight bytes as a word, which differs from those of all others of this length.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    if let (Some(&first), Some(&last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // The halves overlap.
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(half)));
        return first << 32 | last;
    }
    let short = |word, &byte| word << 8 | u64::from(byte);
    bytes.iter().fold(0, short)
}

/// Hashes a key of any type.
pub(crate) struct FoldHasher<'a> {
    seeds: &'a HashSeeds,
    hash: u64,
}

impl<'a> BuildHasher for &'a HashSeeds {
    type Hasher = FoldHasher<'a>;

    #[inline]
    fn build_hasher(&self) -> FoldHasher<'a> {
        FoldHasher {
            seeds: self,
            hash: self.first,
        }
    }
}

impl FoldHasher<'_> {
    #[inline]
    fn add(&mut self, word: u64) {
        self.hash = self.seeds.fold(self.hash, word);
    }
}

impl Hasher for FoldHasher<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.hash = self.seeds.of_bytes(self.hash, bytes);
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, Hash};

    use super::HashSeeds;

    /// Checks that the low and the high halves of the hashes are spread.
    fn check<K: Hash>(keys: impl Iterator<Item = K>) {
        let seeds = HashSeeds::new();
        let hashes: Vec<u64> = keys.map(|key| (&seeds).hash_one(key)).collect();
        let count = hashes.len();
        let low: BTreeSet<_> = hashes.iter().map(|hash| *hash as u32).collect();
        assert!(low.len() + 10 > count, "few keys have one half of a hash");
        for bits in 0..16 {
            let share = |at: usize| {
                hashes
                    .iter()
                    .filter(|&hash| hash >> at & 15 == bits)
                    .count()
            };
            for at in [0, 32] {
                let share = share(at);
                assert!(
                    share > count / 32 && share < count / 8,
                    "{share} of {count}"
                );
            }
        }
    }

    #[test]
    fn hashes_of_keys_are_spread() {
        check(0..10_000_u64);
        check((0..10_000_u64).map(|number| number << 40));
        check((0..10_000_u32).map(|number| (number / 100, number % 100)));
        check((0..10_000).map(|number| format!("user {number}")));
        check((0..10_000).map(|number| format!("{number}")));
    }
}
