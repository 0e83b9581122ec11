//! The queue of ready entries; which of them comes next is drawn from a seed.
//!
//! The same seed and the same calls produce the same order, on any machine.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::BTreeMap;

/// Numbers drawn from a seed: SplitMix64 (Steele, Lea, Flood 2014).
///
/// Implemented here so that a seed reproduces its run with later versions of any library for random
/// numbers, too.
#[derive(Clone)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Draw(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number from 0 to `end`, without `end`; returns 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        below(self.next(), end)
    }
}

/// Maps a drawn number to the range from 0 to `end`, without `end`.
pub(super) fn below(drawn: u64, end: u64) -> u64 {
    let wide = u128::from(drawn) * u128::from(end);
    // The upper half of a product is below the factor, so it fits.
    (wide >> u64::BITS) as u64
}

/// How the next entry is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Any entry, all with the same probability.
    Random,
    /// The entry with the highest rank; ranks are drawn when a task is spawned. At `changes` of the
    /// first `within` steps, the task that would run gets a lower rank first. After `within` steps,
    /// any entry.
    Priorities {
        changes: u32,
        within: u64,
        /// A task that is woken during its own turn keeps its rank, instead of getting the lowest.
        keeps: bool,
    },
}

/// Ranks of new tasks are at least this; ranks of tasks that are lowered at a change are below.
const CHANGED: u64 = 1 << 32;
/// Ranks of tasks that are woken during their own turns go down from here.
const YIELDED: u64 = 1 << 31;

/// The ready entries. Each is pushed with its rank, which the caller keeps.
pub(crate) struct Ready<T> {
    draw: Draw,
    /// The entries of which any may be next: all, unless they are ranked.
    any: Vec<T>,
    /// The entries that are ordered by rank, for as many steps as the schedule says.
    ranked: Option<Ranked<T>>,
}

struct Ranked<T> {
    /// Ordered by rank, and by age among equal ranks.
    items: BTreeMap<(u64, u64), T>,
    pushed: u64,
    /// The number of steps that are still ordered by rank.
    left: u64,
    /// At how many of these steps the task that would run is lowered.
    changes: u64,
    lowest: u64,
    keeps: bool,
}

impl<T> Ready<T> {
    pub(crate) fn new(schedule: Schedule, draw: Draw) -> Self {
        let ranked = match schedule {
            Schedule::Random => None,
            Schedule::Priorities {
                changes,
                within,
                keeps,
            } => Some(Ranked {
                items: BTreeMap::new(),
                pushed: 0,
                left: within,
                changes: u64::from(changes),
                lowest: YIELDED,
                keeps,
            }),
        };
        Ready {
            draw,
            any: Vec::new(),
            ranked,
        }
    }

    /// Returns a rank for a new task.
    pub(crate) fn rank(&mut self) -> u64 {
        match self.ranked {
            None => 0,
            Some(_) => self.draw.next() | CHANGED,
        }
    }

    /// Returns a rank below all ranks of tasks that were not lowered. It is drawn, so the order
    /// among lowered tasks is drawn as well.
    pub(crate) fn changed(&mut self) -> u64 {
        YIELDED + self.draw.below(CHANGED - YIELDED)
    }

    /// Returns the new rank of a task that was woken during its own turn, unless it keeps its rank.
    pub(crate) fn yielded(&mut self) -> Option<u64> {
        let ranked = self.ranked.as_mut().filter(|ranked| !ranked.keeps)?;
        ranked.lowest = ranked.lowest.saturating_sub(1);
        Some(ranked.lowest)
    }

    pub(crate) fn push(&mut self, item: T, rank: u64) {
        match &mut self.ranked {
            None => self.any.push(item),
            Some(ranked) => {
                ranked.pushed += 1;
                // The highest rank is taken first, and of equals the oldest.
                ranked.items.insert((rank, u64::MAX - ranked.pushed), item);
            }
        }
    }

    /// Takes the next entry; the flag says that it must be lowered instead of run.
    pub(crate) fn pop(&mut self) -> Option<(T, bool)> {
        // After the steps that are ordered by rank, any entry may be next.
        if let Some(ranked) = self.ranked.take_if(|ranked| ranked.left == 0) {
            self.any = ranked.items.into_values().collect();
        }
        let Some(ranked) = &mut self.ranked else {
            if self.any.is_empty() {
                return None;
            }
            let at = self.draw.below(self.any.len() as u64) as usize;
            return Some((self.any.swap_remove(at), false));
        };
        let (_, item) = ranked.items.pop_last()?;
        // Each choice of steps is as likely as any other (Knuth's selection sampling).
        let lower = self.draw.below(ranked.left) < ranked.changes;
        ranked.left -= 1;
        ranked.changes -= u64::from(lower);
        Some((item, lower))
    }

    /// Returns the entries of the random order, the oldest first.
    pub(crate) fn unordered(&self) -> &[T] {
        &self.any
    }

    /// Takes one of these entries out.
    pub(crate) fn take_unordered(&mut self, at: usize) -> Option<T> {
        (at < self.any.len()).then(|| self.any.remove(at))
    }

    /// Counts the entries for which `is_such` holds.
    pub(crate) fn count(&self, is_such: impl Fn(&T) -> bool) -> usize {
        let ranked = self.ranked.iter().flat_map(|ranked| ranked.items.values());
        let items = self.any.iter().chain(ranked);
        items.filter(|item| is_such(item)).count()
    }

    /// Takes all entries out, in an order that was not drawn.
    pub(crate) fn take_all(&mut self) -> Vec<T> {
        match &mut self.ranked {
            None => std::mem::take(&mut self.any),
            Some(ranked) => std::mem::take(&mut ranked.items).into_values().collect(),
        }
    }
}
