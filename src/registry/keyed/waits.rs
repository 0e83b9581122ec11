//! The waits of actors for the ends of keyed actors, and how a cycle of them is found.
//!
//! A wait is known from the turn in which an actor finds that the actor of a key ends, until its call
//! goes on or is dropped. Under one lock it is added, and compared with those that are known. So the
//! last wait of a cycle finds the cycle. It is not added, and the others go on when its actor ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Deadlock;
use crate::runtime::deadlock::{Edge, WaitListing, WaitsFor, Who, name_all};
use crate::runtime::list_wait;
use crate::sync::{Mutex, PerProcess};
use crate::task::{TaskInfo, run};

/// The waits and how often there is each, by the numbers of the actor that waits and of the one that
/// ends. They are of all sets, since a cycle may lead through several.
type KeyWaits = BTreeMap<(u64, u64), (Edge, usize)>;

static WAITS: PerProcess<Mutex<KeyWaits>> = PerProcess::new();

/// A wait that is known until this is dropped.
pub(super) struct KeyWait {
    key: (u64, u64),
    /// Its entry in the list of the runtime, if that detects deadlocks.
    _listing: Option<Box<WaitListing>>,
}

impl KeyWait {
    /// Adds the wait of the actor that this thread runs. Returns `None` if it runs none.
    pub(super) fn begin(ending: &TaskInfo) -> Result<Option<Self>, Deadlock> {
        let Some(actor) = run::current_actor() else {
            return Ok(None);
        };
        let key = (actor.id(), ending.id());
        let edge = Edge {
            for_what: WaitsFor::End,
            ..Edge::of_ask(Who::Task(actor), ending.clone())
        };
        let mut waits = table().lock();
        if let Some(back) = way(&waits, key.1, key.0) {
            drop(waits);
            let cycle: Vec<&Edge> = std::iter::once(&edge).chain(&back).collect();
            return Err(name_all(&cycle).swap_remove(0));
        }
        waits.entry(key).or_insert((edge, 0)).1 += 1;
        drop(waits);
        let listing = list_wait(WaitsFor::End, || ending.clone());
        Ok(Some(KeyWait {
            key,
            _listing: listing,
        }))
    }

    /// Returns whether it is the wait of the actor that this thread runs, for the end of this one.
    pub(super) fn is_for(&self, ending: &TaskInfo) -> bool {
        self.key == (run::actor_id(), ending.id())
    }
}

impl Drop for KeyWait {
    fn drop(&mut self) {
        let mut waits = table().lock();
        let Some((_, count)) = waits.get_mut(&self.key) else {
            // It is of the parent process.
            return;
        };
        *count -= 1;
        let over = match *count {
            0 => waits.remove(&self.key),
            _ => None,
        };
        drop(waits);
        drop(over);
    }
}

fn table() -> &'static Mutex<KeyWaits> {
    WAITS.get_or_init(|| Mutex::new(KeyWaits::new()))
}

/// Returns the waits that lead from one actor to the other, if any do.
fn way(waits: &KeyWaits, from: u64, to: u64) -> Option<Vec<Edge>> {
    let mut seen = BTreeSet::from([from]);
    // The actor that is looked at is the last one. Before it are those that lead there, each with the
    // last of its waits that was followed.
    let (mut at, mut followed) = (from, Vec::new());
    let mut after = 0;
    while at != to {
        let mut next = waits.range((at, after)..=(at, u64::MAX));
        match next.find(|((_, ending), _)| seen.insert(*ending)) {
            Some((key, (edge, _))) => {
                followed.push((key, edge));
                (at, after) = (key.1, 0);
            }
            None => (at, after) = *followed.pop()?.0,
        }
    }
    Some(followed.into_iter().map(|(_, edge)| edge.clone()).collect())
}
