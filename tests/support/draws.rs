//! Numbers that depend on a seed alone.

use std::time::Duration;

/// Draws numbers from a seed.
#[derive(Clone)]
pub struct Draws(u64);

impl Draws {
    pub fn of(seed: u64, part: u64) -> Draws {
        Draws((seed * 1000 + part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    pub fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    pub fn millis(&mut self, limit: usize) -> Duration {
        Duration::from_millis(self.below(limit) as u64)
    }
}
