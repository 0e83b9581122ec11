//! The points to measure, each in its own process.

use peers::linux;

use crate::figures::Figure;
use crate::growth::{self, COUNTS, Item};
use crate::way::{Greenroom, Tokio, Way};
use crate::{cost, memory};

/// The numbers of live actors.
pub const LIVE: [u64; 5] = [100, 1000, 10_000, 100_000, 1_000_000];
/// The numbers of workers.
pub const WORKERS: [usize; 4] = [1, 2, 4, 8];
/// Further numbers of workers, and the number of live actors with which they are measured.
pub const MANY_WORKERS: [usize; 3] = [16, 32, 64];
pub const BESIDE_MANY: u64 = 1000;
/// The number of workers where memory is measured.
const WORKERS_OF_MEMORY: usize = 2;

/// The programs of one way.
pub type Measure = fn(Point) -> Vec<Figure>;

/// The ways, in the order of the tables.
pub const WAYS: [(&str, Measure); 2] = [("greenroom", on::<Greenroom>), ("tokio", on::<Tokio>)];

/// Returns the way with this name.
pub fn way(name: &str) -> Option<(&'static str, Measure)> {
    WAYS.into_iter().find(|way| way.0 == name)
}

/// A kind of item whose memory is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Actor,
    Task,
    Ask,
    Timer,
    Address,
    Million,
}

impl Kind {
    pub const ALL: [Self; 6] = [
        Self::Actor,
        Self::Task,
        Self::Ask,
        Self::Timer,
        Self::Address,
        Self::Million,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Actor => "actor",
            Self::Task => "task",
            Self::Ask => "ask",
            Self::Timer => "timer",
            Self::Address => "address",
            Self::Million => "million",
        }
    }
}

/// The measurement of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// The memory of a kind of item.
    Memory(Kind),
    /// The cost of messages and spawns while `live` actors live.
    Cost { live: u64, workers: usize },
    /// The steps of `count` items.
    Growth { item: Item, count: u64 },
}

impl Point {
    /// Returns every point.
    pub fn all() -> Vec<Self> {
        let memory = Kind::ALL.into_iter().map(Self::Memory);
        let cost = LIVE
            .into_iter()
            .flat_map(|live| WORKERS.map(|workers| Self::Cost { live, workers }));
        let many = MANY_WORKERS.map(|workers| Self::Cost {
            live: BESIDE_MANY,
            workers,
        });
        let growth = Item::ALL
            .into_iter()
            .flat_map(|item| COUNTS.map(|count| Self::Growth { item, count }));
        memory.chain(cost).chain(many).chain(growth).collect()
    }

    /// Returns whether it is measured in the first round only, since it takes long.
    pub fn is_long(self) -> bool {
        matches!(self, Self::Growth { count, .. } if count == COUNTS[COUNTS.len() - 1])
    }

    /// Returns whether a way has it.
    pub fn is_in(self, way: &str) -> bool {
        match self {
            Self::Growth { item, .. } => way == WAYS[0].0 || item.is_in_tokio(),
            _ => true,
        }
    }

    /// Returns the point that these words name.
    pub fn named(words: &[&str]) -> Option<Self> {
        match words {
            [kind] => {
                let kind = Kind::ALL.into_iter().find(|each| each.name() == *kind)?;
                Some(Self::Memory(kind))
            }
            [item, count] if Item::named(item).is_some() => {
                let item = Item::named(item)?;
                let count = count.parse().ok().filter(|count| *count > 0)?;
                Some(Self::Growth { item, count })
            }
            [live, workers] => {
                let live = live.parse().ok().filter(|live| *live > 0)?;
                let workers = workers.parse().ok().filter(|workers| *workers > 0)?;
                Some(Self::Cost { live, workers })
            }
            _ => None,
        }
    }

    /// Returns the words that name it.
    pub fn words(self) -> Vec<String> {
        match self {
            Self::Memory(kind) => vec![kind.name().to_owned()],
            Self::Cost { live, workers } => vec![live.to_string(), workers.to_string()],
            Self::Growth { item, count } => vec![item.name().to_owned(), count.to_string()],
        }
    }
}

fn on<W: Way>(point: Point) -> Vec<Figure> {
    match point {
        Point::Cost { live, workers } => W::run(workers, cost::run::<W>(live)),
        Point::Growth { item, count } => {
            linux::keep_memory();
            W::run(1, growth::run::<W>(item, count))
        }
        Point::Memory(kind) => match kind {
            Kind::Actor => W::run(WORKERS_OF_MEMORY, memory::actor::<W>()),
            Kind::Task => W::run(WORKERS_OF_MEMORY, memory::task::<W>()),
            Kind::Ask => W::run(WORKERS_OF_MEMORY, memory::ask::<W>()),
            Kind::Timer => W::run(WORKERS_OF_MEMORY, memory::timer::<W>()),
            Kind::Address => W::run(WORKERS_OF_MEMORY, memory::address::<W>()),
            Kind::Million => W::run(WORKERS_OF_MEMORY, memory::million::<W>()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_named_by_its_words() {
        for point in Point::all() {
            let words = point.words();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(Point::named(&words), Some(point));
        }
        for wrong in [&["0", "2"][..], &["100", "0"], &["nothing"], &[]] {
            assert_eq!(Point::named(wrong), None, "{wrong:?}");
        }
    }
}
