//! What an item costs beside ever more of its kind: to create it, to use it, to remove it.
//!
//! Everything runs on one worker, so that the instructions can be counted again. The items are used
//! and removed in random order. A lap creates, uses and removes all of them.

mod both;
pub mod instructions;
mod meter;
mod own;
mod verdict;

pub use verdict::{Costs, bends, grows};

use crate::figures::Figure;
use crate::way::Way;
use meter::{Meter, Mode};

/// The numbers of items.
pub const COUNTS: [u64; 4] = [10, 1000, 100_000, 1_000_000];

/// A kind of item that a program has many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// Memory of the size of an actor, without a runtime: what the caches of the machine cost.
    Plain,
    Actor,
    Task,
    Timer,
    /// Waits for room in one full mailbox.
    Sender,
    /// In the registry.
    Name,
    /// Of one group.
    Member,
    /// Adopted by one actor.
    Child,
    /// Started by one supervisor.
    Supervised,
    /// Waits for the end of one actor.
    Watcher,
    /// One actor's watch of another one.
    Watch,
}

impl Item {
    pub const ALL: [Self; 11] = [
        Self::Plain,
        Self::Actor,
        Self::Task,
        Self::Timer,
        Self::Sender,
        Self::Name,
        Self::Member,
        Self::Child,
        Self::Supervised,
        Self::Watcher,
        Self::Watch,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Actor => "actor",
            Self::Task => "task",
            Self::Timer => "timer",
            Self::Sender => "sender",
            Self::Name => "name",
            Self::Member => "member",
            Self::Child => "child",
            Self::Supervised => "supervised",
            Self::Watcher => "watcher",
            Self::Watch => "watch",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|item| item.name() == name)
    }

    /// Returns its steps, in the order in which they are measured. The first one creates it.
    pub fn steps(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["allocate", "write", "free"],
            Self::Actor => &["spawn", "message", "end"],
            Self::Task => &["spawn", "wake", "end"],
            Self::Timer => &["arm", "cancel", "fire"],
            Self::Sender => &["join the line", "get room", "leave the line"],
            Self::Name => &["register", "look up", "unregister", "end of its actor"],
            Self::Member => &["join", "broadcast", "next", "leave", "end of its actor"],
            Self::Child => &["adopt", "list", "end"],
            Self::Supervised => &["start", "restart", "stop", "stop of the tree"],
            Self::Watcher => &["watch", "see the end", "leave"],
            Self::Watch => &["watch", "see the end", "leave"],
        }
    }

    /// Returns whether tokio has something like it.
    pub fn is_in_tokio(self) -> bool {
        matches!(self, Self::Actor | Self::Task | Self::Timer | Self::Sender)
    }
}

/// Measures the steps of `count` items, and the memory that one of them takes.
pub async fn run<W: Way>(item: Item, count: u64) -> Vec<Figure> {
    let mut meter = Meter::new(Mode::Time, count);
    laps::<W>(item, &mut meter).await;
    meter.figures()
}

/// Does the steps for a program that counts their instructions.
pub async fn run_counted<W: Way>(item: Item, count: u64) {
    let mut meter = Meter::new(Mode::Instructions, count);
    laps::<W>(item, &mut meter).await;
}

async fn laps<W: Way>(item: Item, meter: &mut Meter) {
    match item {
        Item::Plain => both::plain(meter),
        Item::Actor => both::actors::<W>(meter).await,
        Item::Task => both::tasks::<W>(meter).await,
        Item::Timer => both::timers::<W>(meter).await,
        Item::Sender => both::senders::<W>(meter).await,
        Item::Name => own::names(meter).await,
        Item::Member => own::members(meter).await,
        Item::Child => own::children(meter).await,
        Item::Supervised => own::supervised(meter).await,
        Item::Watcher => own::watchers(meter).await,
        Item::Watch => own::watches(meter).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::way::{Greenroom, Tokio};

    #[test]
    fn every_item_has_its_steps_in_both_ways() {
        const COUNT: u64 = 1000;
        for item in Item::ALL {
            let mut expected = [item.steps(), &[crate::figures::LIVE]].concat();
            expected.sort_unstable();
            let mut ways = vec![Greenroom::run(1, run::<Greenroom>(item, COUNT))];
            if item.is_in_tokio() {
                ways.push(Tokio::run(1, run::<Tokio>(item, COUNT)));
            }
            for figures in ways {
                let mut steps: Vec<_> = figures.into_iter().map(|(step, _)| step).collect();
                steps.sort_unstable();
                assert_eq!(steps, expected, "{item:?}");
            }
        }
    }
}
