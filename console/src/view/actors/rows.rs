//! The rows of the list of actors.

use std::collections::{HashMap, HashSet};

use super::{Arrangement, order};
use crate::model::{ActorFacts, Model, TextId, mailbox_wait};

/// A row: an actor, or the sums of a group.
#[derive(Debug, Clone)]
pub(super) struct TableRow {
    /// The actor, or the first of the group.
    pub id: u64,
    /// How many parents are above it in the tree.
    pub depth: u16,
    /// The actors of the group.
    pub count: u64,
    pub mailbox: u64,
    pub rate: u64,
    /// The messages handled a second in the last refreshes, if that is known.
    handled: Option<f32>,
    /// The share of the time in which it was busy, in thousandths.
    pub busy: u64,
    pub longest_us: u64,
    pub restarts: u64,
    pub still_ms: u64,
}

impl TableRow {
    fn of(model: &Model, actor: &ActorFacts) -> Self {
        let now = model.turn_now(actor.id).map_or(0, |(_, us)| us);
        TableRow {
            id: actor.id,
            depth: 0,
            count: 1,
            mailbox: actor.mailbox.into(),
            rate: model.message_rate(actor),
            handled: model.handling_rate(actor).map(|rate| rate as f32),
            busy: model.busy_share(actor),
            longest_us: u64::from(actor.longest_us).max(now),
            restarts: actor.restarts.into(),
            still_ms: model.still_ms(actor),
        }
    }

    /// Returns an estimate of how long a message waits, in seconds.
    pub fn wait(&self) -> Option<f64> {
        mailbox_wait(self.mailbox, self.handled.map(f64::from))
    }

    /// Adds a row to the sums of a group.
    fn add(&mut self, other: &TableRow) {
        self.count += 1;
        self.id = self.id.min(other.id);
        self.mailbox += other.mailbox;
        self.rate += other.rate;
        self.handled = match (self.handled, other.handled) {
            (Some(own), Some(other)) => Some(own + other),
            (own, other) => own.or(other),
        };
        self.busy += other.busy;
        self.longest_us = self.longest_us.max(other.longest_us);
        self.restarts += other.restarts;
        self.still_ms = self.still_ms.min(other.still_ms);
    }
}

/// Returns the text by which actors are one group: their function, or their name.
pub(in crate::view) fn group_of(actor: &ActorFacts) -> TextId {
    match actor.function.is_empty() {
        true => actor.name,
        false => actor.function,
    }
}

/// Returns whether an actor has a text: in its name, function, key, names, groups, machine or thread.
/// `#7` is the number 7. Small letters also mean large ones.
pub(super) fn matches(model: &Model, actor: &ActorFacts, text: &str) -> bool {
    if let Some(number) = text.strip_prefix('#') {
        return number.parse() == Ok(actor.id);
    }
    let texts = [
        actor.name,
        actor.function,
        actor.key,
        actor.names,
        actor.groups,
        actor.machine,
        actor.thread,
    ];
    let is_exact = text.chars().any(char::is_uppercase);
    texts.into_iter().any(|id| {
        let own = model.text(id);
        match is_exact {
            true => own.contains(text),
            false => contains_any_case(own, text),
        }
    })
}

fn contains_any_case(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    part.is_empty()
        || text
            .windows(part.len())
            .any(|window| window.eq_ignore_ascii_case(part))
}

/// Returns the rows of an arrangement.
pub(super) fn rows(model: &Model, arrangement: &Arrangement) -> Vec<TableRow> {
    let filter = &*arrangement.filter;
    let actors = model.actors().iter();
    let shown = actors.filter(|actor| filter.is_empty() || matches(model, actor, filter));
    let mut rows: Vec<TableRow> = match arrangement.is_grouped {
        true => groups(model, shown),
        false => shown.map(|actor| TableRow::of(model, actor)).collect(),
    };
    rows.sort_unstable_by(|a, b| order(arrangement, model, a, b));
    match arrangement.is_tree {
        true => tree(model, rows),
        false => rows,
    }
}

fn groups<'a>(model: &Model, actors: impl Iterator<Item = &'a ActorFacts>) -> Vec<TableRow> {
    let mut groups: HashMap<TextId, TableRow> = HashMap::new();
    for actor in actors {
        let row = TableRow::of(model, actor);
        groups
            .entry(group_of(actor))
            .and_modify(|sums| sums.add(&row))
            .or_insert(row);
    }
    groups.into_values().collect()
}

/// Returns the rows with each actor below its parent, in their order otherwise.
fn tree(model: &Model, rows: Vec<TableRow>) -> Vec<TableRow> {
    let ids: HashSet<u64> = rows.iter().map(|row| row.id).collect();
    let parent = |row: &TableRow| model.actor(row.id).and_then(|actor| actor.parent);
    let (mut roots, mut children) = (Vec::new(), HashMap::<u64, Vec<TableRow>>::new());
    for row in rows {
        let above = parent(&row).filter(|above| *above != row.id && ids.contains(above));
        match above {
            Some(above) => children.entry(above).or_default().push(row),
            None => roots.push(row),
        }
    }
    let mut ordered = Vec::new();
    loop {
        let mut open = roots;
        open.reverse();
        while let Some(row) = open.pop() {
            let below = children.remove(&row.id).unwrap_or_default();
            let depth = row.depth.saturating_add(1);
            let below = below.into_iter().rev();
            open.extend(below.map(|child| TableRow { depth, ..child }));
            ordered.push(row);
        }
        // What is left are parents of each other: an actor may be adopted by one that it has spawned.
        let Some(&parent) = children.keys().min() else {
            return ordered;
        };
        roots = children.remove(&parent).unwrap_or_default();
    }
}
