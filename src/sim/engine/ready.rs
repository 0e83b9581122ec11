//! What is ready to run, and which of it comes next: drawn from a seed.
//!
//! The same seed and the same calls give the same order, on any machine.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::BTreeMap;

/// Numbers drawn from a seed: SplitMix64 (Steele, Lea, Flood 2014).
///
/// Our own, since a seed that found something is to find it also with the next version of a
/// library for random numbers.
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

    /// From 0 to `end`, without `end`; zero if that is.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        below(self.next(), end)
    }
}

/// The same of a number that was drawn.
pub(super) fn below(drawn: u64, end: u64) -> u64 {
    let wide = u128::from(drawn) * u128::from(end);
    // The upper half of a product is below the factor, so it fits.
    (wide >> u64::BITS) as u64
}

/// How the next one is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Any one, all with the same probability.
    Random,
    /// The one with the highest priority, of those drawn for each task when it is spawned; whoever
    /// would run at one of so many moments drawn `within` the first steps gets a lower one first.
    /// Later any one.
    Priorities {
        changes: u32,
        within: u64,
        /// Whoever is woken in its own run keeps its priority, instead of getting the lowest.
        keeps: bool,
    },
}

/// Ranks of new tasks are above, those of whoever is lowered at a change below.
const CHANGED: u64 = 1 << 32;
/// Those of whoever was woken in its own run go down from here.
const YIELDED: u64 = 1 << 31;

/// What is ready. With each item comes its rank, which is kept by the caller.
pub(crate) struct Ready<T> {
    draw: Draw,
    order: Order<T>,
}

enum Order<T> {
    Any(Vec<T>),
    Ranked(Ranked<T>),
}

struct Ranked<T> {
    /// By rank, and by age among equals.
    items: BTreeMap<(u64, u64), T>,
    pushed: u64,
    /// How many more steps go by rank.
    left: u64,
    /// At how many of them whoever would run is lowered.
    changes: u64,
    lowest: u64,
    keeps: bool,
}

impl<T> Ready<T> {
    pub(crate) fn new(schedule: Schedule, draw: Draw) -> Self {
        let order = match schedule {
            Schedule::Random => Order::Any(Vec::new()),
            Schedule::Priorities {
                changes,
                within,
                keeps,
            } => Order::Ranked(Ranked {
                items: BTreeMap::new(),
                pushed: 0,
                left: within,
                changes: u64::from(changes),
                lowest: YIELDED,
                keeps,
            }),
        };
        Ready { draw, order }
    }

    /// A rank for a new task.
    pub(crate) fn rank(&mut self) -> u64 {
        match self.order {
            Order::Any(_) => 0,
            Order::Ranked(_) => self.draw.next() | CHANGED,
        }
    }

    /// A rank below those of all that were not lowered. Among those that were it is any: which of two
    /// that are lowered comes first is drawn as well.
    pub(crate) fn changed(&mut self) -> u64 {
        YIELDED + self.draw.below(CHANGED - YIELDED)
    }

    /// The rank of one that was woken in its own run, if it is not the one that it had.
    pub(crate) fn yielded(&mut self) -> Option<u64> {
        match &mut self.order {
            Order::Ranked(ranked) if !ranked.keeps => {
                ranked.lowest = ranked.lowest.saturating_sub(1);
                Some(ranked.lowest)
            }
            _ => None,
        }
    }

    pub(crate) fn push(&mut self, item: T, rank: u64) {
        match &mut self.order {
            Order::Any(items) => items.push(item),
            Order::Ranked(ranked) => {
                ranked.pushed += 1;
                // The highest rank is taken first, and of equals the oldest.
                ranked.items.insert((rank, u64::MAX - ranked.pushed), item);
            }
        }
    }

    /// Takes the next one, and says whether it is to be lowered instead of being run.
    pub(crate) fn pop(&mut self) -> Option<(T, bool)> {
        if let Order::Ranked(ranked) = &mut self.order
            && ranked.left == 0
        {
            let items = std::mem::take(&mut ranked.items);
            self.order = Order::Any(items.into_values().collect());
        }
        match &mut self.order {
            Order::Any(items) if items.is_empty() => None,
            Order::Any(items) => {
                let at = self.draw.below(items.len() as u64) as usize;
                Some((items.swap_remove(at), false))
            }
            Order::Ranked(ranked) => {
                let (_, item) = ranked.items.pop_last()?;
                // Each choice of steps is as likely as any other (Knuth's selection sampling).
                let lower = self.draw.below(ranked.left) < ranked.changes;
                ranked.left -= 1;
                ranked.changes -= u64::from(lower);
                Some((item, lower))
            }
        }
    }

    /// What is ready in any order, the oldest first.
    pub(crate) fn unordered(&self) -> &[T] {
        match &self.order {
            Order::Any(items) => items,
            Order::Ranked(_) => &[],
        }
    }

    /// Takes one of these.
    pub(crate) fn take_unordered(&mut self, at: usize) -> Option<T> {
        match &mut self.order {
            Order::Any(items) if at < items.len() => Some(items.remove(at)),
            _ => None,
        }
    }

    /// How many of them are such.
    pub(crate) fn count(&self, is_such: impl Fn(&T) -> bool) -> usize {
        match &self.order {
            Order::Any(items) => items.iter().filter(|item| is_such(item)).count(),
            Order::Ranked(ranked) => ranked.items.values().filter(|item| is_such(item)).count(),
        }
    }

    /// Takes all, in no order that was drawn.
    pub(crate) fn take_all(&mut self) -> Vec<T> {
        match &mut self.order {
            Order::Any(items) => std::mem::take(items),
            Order::Ranked(ranked) => std::mem::take(&mut ranked.items).into_values().collect(),
        }
    }
}
