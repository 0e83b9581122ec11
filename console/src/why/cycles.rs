//! Actors that wait for each other.

use std::collections::{HashMap, HashSet};

use crate::model::{ActorFacts, Model};

/// Returns the cycles of actors that wait for each other, each from its lowest number on.
///
/// An actor that waits for several things goes on when one of them comes. So only actors all of whose
/// waits lead into the set are stuck: what can still be woken is taken out until nothing changes.
pub fn cycles(model: &Model) -> Vec<Vec<u64>> {
    let stuck = knot(model);
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut begins: Vec<u64> = stuck.keys().copied().collect();
    begins.sort_unstable();
    for begin in begins {
        let (mut path, mut at) = (Vec::new(), begin);
        while seen.insert(at) {
            path.push(at);
            at = stuck[&at];
        }
        // A path that ends at an earlier one has found no other cycle.
        let Some(first) = path.iter().position(|id| *id == at) else {
            continue;
        };
        let mut cycle = path.split_off(first);
        let lowest = cycle.iter().enumerate().min_by_key(|(_, id)| **id);
        let lowest = lowest.map_or(0, |(index, _)| index);
        cycle.rotate_left(lowest);
        found.push(cycle);
    }
    found
}

/// Returns the actors that nothing can wake any more, each with one that it waits for.
fn knot(model: &Model) -> HashMap<u64, u64> {
    let blocked = model.actors().iter().filter(|actor| actor.is_blocked());
    let waits_for_actors = |actor: &&ActorFacts| actor.waits.iter().all(|wait| wait.of().is_some());
    let mut knot: HashMap<u64, &ActorFacts> = blocked
        .filter(waits_for_actors)
        .map(|actor| (actor.id, actor))
        .collect();
    loop {
        let ids: HashSet<u64> = knot.keys().copied().collect();
        let is_within = |id: u64| ids.contains(&id);
        knot.retain(|_, actor| {
            let mut targets = actor.waits.iter().filter_map(|wait| wait.of());
            targets.all(is_within)
        });
        if knot.len() == ids.len() {
            break;
        }
    }
    let first = |actor: &ActorFacts| actor.waits.iter().find_map(|wait| wait.of());
    let pairs = knot.into_values();
    pairs
        .filter_map(|actor| Some((actor.id, first(actor)?)))
        .collect()
}
