//! The list of actors: sorted, filtered, grouped by function, or as a tree of parents.

mod rows;

use std::cmp::Ordering;

use super::paint::{ACCENT, ALARM, DIM, HEAD, PLAIN, REVERSED, short, thousands, wait_estimate};
use super::pane::Pane;
use crate::input::{Action, SortBy};
use crate::model::{ActorFacts, ActorState, Model};
use crate::why::{LONG_TURN_US, duration};
pub(super) use rows::group_of;
use rows::{TableRow, matches, rows};

/// The columns in their order, with the width of each. The name has the rest.
const COLUMNS: [(SortBy, &str, usize); 10] = [
    (SortBy::Id, "ID", 6),
    (SortBy::State, "STATE", 7),
    (SortBy::Mailbox, "MAILBOX", 7),
    (SortBy::Wait, "WAIT", 7),
    (SortBy::Rate, "MSG/S", 5),
    (SortBy::Busy, "BUSY%", 5),
    (SortBy::Longest, "LONGEST", 7),
    (SortBy::Restarts, "RST", 4),
    (SortBy::Still, "STILL", 6),
    (SortBy::Name, "NAME", 0),
];

/// How the list is made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Arrangement {
    sort: SortBy,
    is_descending: bool,
    filter: String,
    is_tree: bool,
    is_grouped: bool,
}

/// The list of actors, and its cursor.
#[derive(Debug)]
pub(super) struct ActorTable {
    arrangement: Arrangement,
    rows: Vec<TableRow>,
    /// The refresh and the arrangement of which the rows are.
    made_of: Option<(u32, Arrangement)>,
    /// The digits of the greatest id.
    digits: usize,
    /// The row of the cursor, and the first that is shown.
    at: usize,
    top: usize,
    /// The actor at the cursor, to which it keeps.
    held: Option<u64>,
}

impl Default for ActorTable {
    fn default() -> Self {
        ActorTable {
            arrangement: Arrangement {
                sort: SortBy::Busy,
                is_descending: true,
                filter: String::new(),
                is_tree: false,
                is_grouped: false,
            },
            rows: Vec::new(),
            made_of: None,
            digits: 0,
            at: 0,
            top: 0,
            held: None,
        }
    }
}

impl ActorTable {
    pub(super) fn toggle_tree(&mut self) {
        self.arrangement.is_tree ^= true;
        self.arrangement.is_grouped = false;
    }

    pub(super) fn toggle_groups(&mut self) {
        self.arrangement.is_grouped ^= true;
        self.arrangement.is_tree = false;
        (self.at, self.held) = (0, None);
    }

    pub(super) fn invert(&mut self) {
        self.arrangement.is_descending ^= true;
    }

    /// Sorts by a column: numbers from the greatest on, names from the first on.
    pub(super) fn sort(&mut self, column: SortBy) {
        if self.arrangement.sort == column {
            return self.invert();
        }
        self.arrangement.sort = column;
        self.arrangement.is_descending = !matches!(column, SortBy::Name | SortBy::Id);
        (self.at, self.held) = (0, None);
    }

    pub(super) fn sort_next(&mut self, by: i32) {
        let sort = self.arrangement.sort;
        let at = COLUMNS.iter().position(|(column, ..)| *column == sort);
        let next = at.unwrap_or(0) as i32 + by;
        self.sort(COLUMNS[next.rem_euclid(COLUMNS.len() as i32) as usize].0);
    }

    pub(super) fn filter(&self) -> &str {
        &self.arrangement.filter
    }

    pub(super) fn has_filter(&self) -> bool {
        !self.arrangement.filter.is_empty()
    }

    pub(super) fn set_filter(&mut self, filter: &str) {
        filter.clone_into(&mut self.arrangement.filter);
        (self.at, self.held) = (0, None);
    }

    /// Moves the cursor.
    pub(super) fn step(&mut self, by: isize, model: &Model) {
        self.make(model);
        let last = self.rows.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
        self.hold();
    }

    /// Moves the cursor to the next row from here on that has a text.
    pub(super) fn find(&mut self, text: &str, model: &Model) {
        self.make(model);
        let (before, behind) = self.rows.split_at(self.at.min(self.rows.len()));
        let mut in_turn = behind.iter().chain(before);
        let actor = |row: &TableRow| model.actor(row.id);
        let found =
            in_turn.position(|row| actor(row).is_some_and(|actor| matches(model, actor, text)));
        if let Some(found) = found {
            self.at = (self.at + found) % self.rows.len();
            self.hold();
        }
    }

    /// Keeps the cursor at its actor, but at the first row.
    fn hold(&mut self) {
        let id = self.rows.get(self.at).map(|row| row.id);
        self.held = id.filter(|_| self.at > 0);
    }

    /// Returns the actor at the cursor.
    pub(super) fn actor_at_cursor(&mut self, model: &Model) -> Option<u64> {
        self.make(model);
        self.rows.get(self.at).map(|row| row.id)
    }

    /// Shows the actors of the group at the cursor, if there are groups.
    pub(super) fn opens_group(&mut self, model: &Model) -> bool {
        if !self.arrangement.is_grouped {
            return false;
        }
        self.make(model);
        let id = self.rows.get(self.at).map(|row| row.id);
        if let Some(actor) = id.and_then(|id| model.actor(id)) {
            let group = model.text(group_of(actor)).to_owned();
            self.toggle_groups();
            self.set_filter(&group);
        }
        true
    }

    /// Makes the rows, unless they are those of this refresh.
    fn make(&mut self, model: &Model) {
        let wanted = (model.refreshes(), self.arrangement.clone());
        if self.made_of.as_ref() == Some(&wanted) {
            return;
        }
        self.rows = rows(model, &wanted.1);
        self.made_of = Some(wanted);
        let greatest = self.rows.iter().map(|row| row.id).max();
        self.digits = greatest.unwrap_or(0).to_string().len();
        let held = self.held;
        let index = held.and_then(|id| self.rows.iter().position(|row| row.id == id));
        let last = self.rows.len().saturating_sub(1);
        self.at = index.unwrap_or(self.at).min(last);
    }

    /// Returns the columns with their widths: a long id makes its column wider.
    fn columns(&self) -> impl Iterator<Item = (SortBy, &'static str, usize)> + use<> {
        let digits = self.digits;
        COLUMNS.into_iter().map(move |(sort, name, width)| {
            let least = if sort == SortBy::Id { digits } else { 0 };
            (sort, name, width.max(least))
        })
    }

    pub(super) fn draw(&mut self, model: &Model, pane: &mut Pane<'_>) {
        self.make(model);
        self.draw_heads(model, pane);
        let mut body = pane.below(1);
        let room = usize::from(body.height());
        // The cursor is always shown.
        let least = (self.at + 1).saturating_sub(room);
        self.top = self.top.min(self.at).max(least);
        self.top = self.top.min(self.rows.len().saturating_sub(room));
        let shown = self.rows.iter().enumerate().skip(self.top).take(room);
        for (line, (at, row)) in shown.enumerate() {
            let line = line as u16;
            self.draw_row(model, row, line, &mut body);
            if at == self.at {
                body.fill(line, REVERSED);
            }
            body.on_click_row(line, at, self.at);
        }
        if self.rows.is_empty() {
            body.put(2, 1, "no actor is like this; Esc drops the filter", DIM);
        }
    }

    fn draw_heads(&self, model: &Model, pane: &mut Pane<'_>) {
        let arrangement = &self.arrangement;
        pane.fill(0, HEAD);
        let mut begin = 0;
        for (sort, name, width) in self.columns() {
            let name = match sort {
                SortBy::Id if arrangement.is_grouped => "ACTORS",
                _ => name,
            };
            let (sign, style) = match (sort == arrangement.sort, arrangement.is_descending) {
                (false, _) => ("", HEAD),
                (true, true) => ("▼", ACCENT),
                (true, false) => ("▲", ACCENT),
            };
            let text = format!("{name:>width$}{sign}");
            let end = pane.put(begin, 0, text, style);
            pane.on_click(begin..end, 0, Action::Sort(sort));
            begin += width as u16 + 1;
        }
        let shown = thousands(self.rows.len() as u64);
        let mut count = match (arrangement.is_grouped, self.has_filter()) {
            (true, _) => format!(" {shown} groups "),
            (_, true) => format!(" {shown} of {} ", thousands(model.actors().len() as u64)),
            (_, false) => format!(" {shown} "),
        };
        if self.has_filter() {
            count += &format!("with \"{}\" ", arrangement.filter);
        }
        let width = count.chars().count() as u16;
        let column = pane.width().saturating_sub(width).max(begin - 1);
        pane.put(column, 0, count, ACCENT);
    }

    fn draw_row(&self, model: &Model, row: &TableRow, line: u16, pane: &mut Pane<'_>) {
        let is_grouped = self.arrangement.is_grouped;
        let Some(actor) = model.actor(row.id) else {
            return;
        };
        let mut begin = 0;
        for ((cell, is_alarm), (.., width)) in
            cells(row, actor, is_grouped).iter().zip(self.columns())
        {
            let style = if *is_alarm { ALARM } else { PLAIN };
            pane.put(begin, line, format!("{cell:>width$}"), style);
            begin += width as u16 + 1;
        }
        if is_grouped {
            pane.put(begin, line, model.text(group_of(actor)), PLAIN);
            return;
        }
        let indent = "  ".repeat(usize::from(row.depth.min(20)));
        let text = format!("{indent}{}", model.text(actor.name));
        let end = pane.put(begin, line, text, PLAIN);
        let key = model.text(actor.key);
        if !key.is_empty() {
            pane.put(end + 1, line, format!("[{key}]"), DIM);
        }
    }
}

/// Returns the texts of a row but for the name, and which of them are alarms.
fn cells(row: &TableRow, actor: &ActorFacts, is_grouped: bool) -> [(String, bool); 9] {
    let is_full = actor.is_full() && !is_grouped;
    let is_blocked = actor.is_blocked() && !is_grouped;
    let state = match (is_grouped, actor.state) {
        (true, _) => "",
        (_, ActorState::Waiting) if is_blocked => "blocked",
        (_, state) => state.word(),
    };
    let id = if is_grouped {
        short(row.count)
    } else {
        row.id.to_string()
    };
    let full = if is_full { "!" } else { "" };
    let wait = row.wait();
    let known = |us: u64| match us {
        0 => "–".to_owned(),
        us => duration(us),
    };
    [
        (id, false),
        (state.to_owned(), is_blocked),
        (format!("{full}{}", short(row.mailbox)), is_full),
        (wait_estimate(wait), wait == Some(f64::INFINITY)),
        (short(row.rate), false),
        (format!("{}.{}", row.busy / 10, row.busy % 10), false),
        (known(row.longest_us), row.longest_us >= LONG_TURN_US),
        (short(row.restarts), row.restarts > 0),
        // In whole seconds.
        (known(row.still_ms / 1_000 * 1_000_000), false),
    ]
}

/// Orders two rows by a column, and equal ones by their numbers.
fn order(arrangement: &Arrangement, model: &Model, a: &TableRow, b: &TableRow) -> Ordering {
    let name = |row: &TableRow| model.actor(row.id).map(|actor| model.text(actor.name));
    let state = |row: &TableRow| {
        let actor = model.actor(row.id);
        actor.map(|actor| (actor.is_blocked(), actor.state))
    };
    let wait = |row: &TableRow| row.wait().unwrap_or(-1.0);
    let ordering = match arrangement.sort {
        SortBy::Id => (a.count, a.id).cmp(&(b.count, b.id)),
        SortBy::State => state(a).cmp(&state(b)),
        SortBy::Mailbox => a.mailbox.cmp(&b.mailbox),
        SortBy::Wait => wait(a).total_cmp(&wait(b)),
        SortBy::Rate => a.rate.cmp(&b.rate),
        SortBy::Busy => a.busy.cmp(&b.busy),
        SortBy::Longest => a.longest_us.cmp(&b.longest_us),
        SortBy::Restarts => a.restarts.cmp(&b.restarts),
        SortBy::Still => a.still_ms.cmp(&b.still_ms),
        SortBy::Name => name(a).cmp(&name(b)),
    };
    let ordering = match arrangement.is_descending {
        true => ordering.reverse(),
        false => ordering,
    };
    ordering.then(a.id.cmp(&b.id))
}
