//! The rows of the table: filtered, grouped and sorted.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use greenroom::policy::TaskInfo;

use super::look::SeenStatus;
use super::query::{PageQuery, SortColumn};
use super::tree::in_tree;

/// An actor, or all actors of a name.
#[derive(Debug, Clone)]
pub(super) struct ActorRow<'a> {
    /// The actor, or the oldest one of the group.
    pub(super) task: &'a TaskInfo,
    pub(super) actors: usize,
    /// The number of its parent, and how deep it is in a tree.
    pub(super) parent: Option<u64>,
    pub(super) depth: usize,
    /// The word for its state.
    pub(super) state: &'static str,
    /// How many of them are running or ready.
    pub(super) ready: usize,
    pub(super) mailbox: usize,
    /// The highest fill of one mailbox.
    pub(super) highest: usize,
    pub(super) messages: u64,
    /// Messages a second, if they are known.
    pub(super) rate: Option<f64>,
    /// The same, if a wait can be estimated by it.
    pub(super) handled: Option<f64>,
    pub(super) turns: u64,
    /// The part of the time for turns, if it is known. That of a group may be more than 1.
    pub(super) busy: Option<f64>,
    /// The longest turn that was timed.
    pub(super) longest: Option<Duration>,
    pub(super) restarts: u64,
    pub(super) displaced: u64,
}

/// The rows that are shown, and how many there are.
pub(super) struct RowList<'a> {
    pub(super) rows: Vec<ActorRow<'a>>,
    /// The actors that the filter lets through.
    pub(super) actors: usize,
    /// The rows of all of them.
    pub(super) all: usize,
}

/// Returns the first rows of these actors, as the query wants them, and at most so many.
pub(super) fn rows_of<'a>(
    actors: impl Iterator<Item = SeenStatus<'a>>,
    query: &PageQuery,
    most: usize,
) -> RowList<'a> {
    let filter = query.filter.to_lowercase();
    let passes = |seen: &SeenStatus<'_>| {
        let status = seen.status;
        let has = |text: &str| text.to_lowercase().contains(&filter);
        let mut others = status.names.iter().chain(&status.groups).chain(&status.key);
        filter.is_empty() || has(&status.task.called()) || others.any(|text| has(text))
    };
    let rows = actors.filter(passes).map(ActorRow::of);
    let mut rows: Vec<_> = rows.collect();
    let actors = rows.len();
    if query.is_grouped {
        rows = grouped(rows);
    }
    let all = rows.len();
    // Names are made only if they count.
    let text = |row: &ActorRow<'a>| match query.sort {
        SortColumn::Name => row.name(),
        _ => Cow::Borrowed(""),
    };
    let mut rows: Vec<_> = rows.into_iter().map(|row| (text(&row), row)).collect();
    let compare = |(text, row): &(Cow<'a, str>, ActorRow<'a>),
                   (other_text, other): &(Cow<'a, str>, ActorRow<'a>)| {
        let order = match query.sort {
            SortColumn::Name => text.cmp(other_text),
            sort => row
                .number(sort, query)
                .total_cmp(&other.number(sort, query)),
        };
        let order = if query.is_ascending {
            order
        } else {
            order.reverse()
        };
        order.then_with(|| row.busier_first(other))
    };
    // A row of a tree may be shown only since one below it is.
    if rows.len() > most && !query.is_tree {
        rows.select_nth_unstable_by(most, compare);
        rows.truncate(most);
    }
    rows.sort_unstable_by(compare);
    let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    if query.is_tree {
        rows = in_tree(rows);
        rows.truncate(most);
    }
    RowList { rows, actors, all }
}

/// Makes one row of all that have a name.
fn grouped(rows: Vec<ActorRow<'_>>) -> Vec<ActorRow<'_>> {
    let mut groups: HashMap<Cow<'_, str>, ActorRow<'_>> = HashMap::new();
    for row in rows {
        match groups.get_mut(&row.task.called()) {
            Some(group) => group.add(&row),
            None => {
                groups.insert(row.name(), row);
            }
        }
    }
    groups.into_values().collect()
}

impl<'a> ActorRow<'a> {
    pub(super) fn of(seen: SeenStatus<'a>) -> Self {
        let status = seen.status;
        ActorRow {
            task: &status.task,
            actors: 1,
            parent: status.parent,
            depth: 0,
            state: seen.state(),
            ready: usize::from(!status.is_dormant),
            mailbox: status.mailbox,
            highest: status.highest,
            messages: status.messages,
            rate: seen.rate(),
            handled: seen.handling_rate(),
            turns: status.turns,
            busy: seen.busy(),
            longest: seen.longest(),
            restarts: status.incarnation,
            displaced: status.displaced,
        }
    }

    /// Returns the name, or that of the function or type.
    pub(super) fn name(&self) -> Cow<'a, str> {
        self.task.called()
    }

    /// Returns for how many seconds a message waits: by Little's law, those that wait divided by those
    /// handled a second. Infinite if none is handled, `None` if none waits or the rate is not known.
    pub(super) fn wait(&self) -> Option<f64> {
        let rate = self.handled.filter(|_| self.mailbox > 0)?;
        Some(self.mailbox as f64 / rate)
    }

    fn add(&mut self, row: &ActorRow<'a>) {
        if row.task.id() < self.task.id() {
            self.task = row.task;
        }
        self.actors += row.actors;
        self.ready += row.ready;
        self.mailbox += row.mailbox;
        self.highest = self.highest.max(row.highest);
        self.messages += row.messages;
        self.rate = sum(self.rate, row.rate);
        self.handled = sum(self.handled, row.handled);
        self.turns += row.turns;
        self.busy = sum(self.busy, row.busy);
        self.longest = self.longest.max(row.longest);
        self.restarts += row.restarts;
        self.displaced += row.displaced;
    }

    /// Returns what a column sorts by. What is not known is less than anything else.
    fn number(&self, sort: SortColumn, query: &PageQuery) -> f64 {
        match sort {
            SortColumn::Id if query.is_grouped => self.actors as f64,
            SortColumn::Id => self.task.id() as f64,
            SortColumn::Name => 0.0,
            SortColumn::State if query.is_grouped => self.ready as f64,
            SortColumn::State => match self.state {
                "running" => 2.0,
                "ready" => 1.0,
                _ => 0.0,
            },
            SortColumn::Mailbox => self.mailbox as f64,
            SortColumn::Highest => self.highest as f64,
            SortColumn::Wait => self.wait().unwrap_or(-1.0),
            SortColumn::Messages => self.messages as f64,
            SortColumn::Rate => self.rate.unwrap_or(-1.0),
            SortColumn::Turns => self.turns as f64,
            SortColumn::Busy => self.busy.unwrap_or(-1.0),
            SortColumn::Longest => self.longest.map_or(-1.0, |it| it.as_secs_f64()),
            SortColumn::Restarts => self.restarts as f64,
            SortColumn::Displaced => self.displaced as f64,
        }
    }

    /// Orders rows that are the same otherwise.
    fn busier_first(&self, other: &Self) -> Ordering {
        let busy = |row: &Self| row.busy.unwrap_or(-1.0);
        let by_busy = busy(other).total_cmp(&busy(self));
        let counts = |row: &Self| (row.mailbox, row.messages);
        let by_counts = counts(other).cmp(&counts(self));
        let by_id = self.task.id().cmp(&other.task.id());
        by_busy.then(by_counts).then(by_id)
    }
}

/// Returns the sum of what is known.
fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
