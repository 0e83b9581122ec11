//! The list of actors: sorted, filtered, grouped by function, or as a tree of parents.

mod rows;

use std::cmp::Ordering;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::{ACCENT, ALARM, DIM, PLAIN, REVERSED, fill, put, short, thousands};
use super::{Spot, column_name};
use crate::input::{Action, SortBy};
use crate::model::{ActorState, Model};
use crate::why::{LONG_TURN_US, duration};
use rows::{TableRow, matches, rows};

/// The width of each column. The name has the rest.
const WIDTHS: [u16; 8] = [8, 7, 7, 6, 5, 7, 4, 6];

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
    made_of: Option<(u64, u32, Arrangement)>,
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
        self.arrangement.is_descending = !matches!(column, SortBy::Name | SortBy::Number);
        (self.at, self.held) = (0, None);
    }

    pub(super) fn sort_next(&mut self, by: i32) {
        let all = SortBy::ALL;
        let is_sort = |column: &SortBy| *column == self.arrangement.sort;
        let at = all.iter().position(is_sort).unwrap_or(0);
        let next = (at as i32 + by).rem_euclid(all.len() as i32);
        self.sort(all[next as usize]);
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
            let group = model.text(rows::group_of(actor)).to_owned();
            self.toggle_groups();
            self.set_filter(&group);
        }
        true
    }

    /// Makes the rows, unless they are those of this refresh.
    fn make(&mut self, model: &Model) {
        let wanted = (model.at_ms(), model.refreshes(), &self.arrangement);
        if let Some((at, tick, made)) = &self.made_of
            && (*at, *tick, made) == wanted
        {
            return;
        }
        let arrangement = self.arrangement.clone();
        self.rows = rows(model, &arrangement);
        self.made_of = Some((model.at_ms(), model.refreshes(), arrangement));
        let held = self.held;
        let place = held.and_then(|id| self.rows.iter().position(|row| row.id == id));
        let last = self.rows.len().saturating_sub(1);
        self.at = place.unwrap_or(self.at).min(last);
    }

    pub(super) fn draw(
        &mut self,
        model: &Model,
        area: Rect,
        buffer: &mut Buffer,
        spots: &mut Vec<Spot>,
    ) {
        self.make(model);
        self.draw_heads(model, area, buffer, spots);
        let body = Rect::new(
            area.x,
            area.y + 1,
            area.width,
            area.height.saturating_sub(1),
        );
        let room = usize::from(body.height);
        // The cursor is always shown.
        self.top = self
            .top
            .min(self.at)
            .max((self.at + 1).saturating_sub(room));
        self.top = self.top.min(self.rows.len().saturating_sub(room));
        let shown = self.rows.iter().enumerate().skip(self.top).take(room);
        for (line, (at, row)) in shown.enumerate() {
            let line = line as u16;
            draw_row(model, row, self.arrangement.is_grouped, line, body, buffer);
            if at == self.at {
                fill(buffer, body, line, REVERSED);
            }
            let place = Rect::new(body.x, body.y + line, body.width, 1);
            spots.push((place, Action::Move(at as i32 - self.at as i32)));
        }
        if self.rows.is_empty() {
            put(
                buffer,
                body,
                2,
                1,
                "no actor is like this; Esc drops the filter",
                DIM,
            );
        }
    }

    fn draw_heads(&self, model: &Model, area: Rect, buffer: &mut Buffer, spots: &mut Vec<Spot>) {
        let arrangement = &self.arrangement;
        fill(buffer, area, 0, super::paint::HEAD);
        let mut column = 0;
        for (at, sort) in SortBy::ALL.into_iter().enumerate() {
            let width = WIDTHS.get(at).copied().unwrap_or(8);
            let name = column_name(sort);
            let text = match sort {
                SortBy::Name if arrangement.is_grouped => "ACTORS FUNCTION".to_owned(),
                SortBy::Name => "NAME".to_owned(),
                _ => format!("{name:>0$}", usize::from(width)),
            };
            let is_sort = sort == arrangement.sort;
            let style = if is_sort { ACCENT } else { super::paint::HEAD };
            put(buffer, area, column, 0, &text, style);
            let place = Rect::new(area.x + column, area.y, width, 1).intersection(area);
            spots.push((place, Action::Sort(sort)));
            column += width + 1;
        }
        let all = model.actors().len() as u64;
        let shown = thousands(self.rows.len() as u64);
        let mut count = match arrangement.is_grouped {
            true => format!(" {shown} groups "),
            false if self.has_filter() => format!(" {shown} of {} ", thousands(all)),
            false => format!(" {shown} "),
        };
        if self.has_filter() {
            count += &format!("with \"{}\" ", arrangement.filter);
        }
        let width = count.chars().count() as u16;
        let begin = area
            .width
            .saturating_sub(width)
            .max(column.saturating_sub(2));
        put(buffer, area, begin, 0, &count, ACCENT);
    }
}

fn draw_row(
    model: &Model,
    row: &TableRow,
    is_grouped: bool,
    line: u16,
    area: Rect,
    buffer: &mut Buffer,
) {
    let Some(actor) = model.actor(row.id) else {
        return;
    };
    let full = if actor.is_full() && !is_grouped {
        "!"
    } else {
        ""
    };
    let state = match (is_grouped, actor.state) {
        (true, _) => "",
        (_, ActorState::Idles) if actor.is_blocked() => "blocked",
        (_, state) => state.word(),
    };
    let cells = cells(row, actor.id, state, full, is_grouped);
    let mut column = 0;
    for (at, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        let is_alarm = match SortBy::ALL[at] {
            SortBy::Mailbox => !full.is_empty(),
            SortBy::Longest => row.longest_us >= LONG_TURN_US,
            SortBy::Restarts => row.restarts > 0,
            SortBy::State => state == "blocked",
            _ => false,
        };
        let style = if is_alarm { ALARM } else { PLAIN };
        // A still time below a second is no news.
        let cell = if cell == "0 µs" { "-" } else { cell };
        put(
            buffer,
            area,
            column,
            line,
            &format!("{cell:>0$}", usize::from(width)),
            style,
        );
        column += width + 1;
    }
    if is_grouped {
        let group = model.text(rows::group_of(actor));
        put(
            buffer,
            area,
            column,
            line,
            &format!("{:>6} {group}", short(row.count)),
            PLAIN,
        );
        return;
    }
    let indent = "  ".repeat(usize::from(row.depth.min(20)));
    let column = put(buffer, area, column, line, &indent, PLAIN);
    let column = put(buffer, area, column, line, model.text(actor.name), PLAIN);
    let key = model.text(actor.key);
    if !key.is_empty() {
        put(buffer, area, column + 1, line, &format!("[{key}]"), DIM);
    }
}

/// Returns the texts of a row, but for the name.
fn cells(row: &TableRow, id: u64, state: &str, full: &str, is_grouped: bool) -> [String; 8] {
    let longest = match row.longest_us {
        0 => "-".to_owned(),
        us => duration(us),
    };
    [
        if is_grouped {
            String::new()
        } else {
            id.to_string()
        },
        state.to_owned(),
        format!("{full}{}", short(row.mailbox)),
        short(row.rate),
        format!("{}.{}", row.busy / 10, row.busy % 10),
        longest,
        short(row.restarts),
        // In whole seconds.
        duration(row.still_ms / 1_000 * 1_000_000),
    ]
}

/// Orders two rows by a column, and equal ones by their numbers.
fn order(sort: SortBy, is_descending: bool, model: &Model, a: &TableRow, b: &TableRow) -> Ordering {
    let name = |row: &TableRow| model.actor(row.id).map(|actor| model.text(actor.name));
    let state = |row: &TableRow| {
        model
            .actor(row.id)
            .map(|actor| (actor.is_blocked(), actor.state))
    };
    let ordering = match sort {
        SortBy::Number => Ordering::Equal,
        SortBy::State => state(a).cmp(&state(b)),
        SortBy::Mailbox => a.mailbox.cmp(&b.mailbox),
        SortBy::Rate => a.rate.cmp(&b.rate),
        SortBy::Busy => a.busy.cmp(&b.busy),
        SortBy::Longest => a.longest_us.cmp(&b.longest_us),
        SortBy::Restarts => a.restarts.cmp(&b.restarts),
        SortBy::Still => a.still_ms.cmp(&b.still_ms),
        SortBy::Name => name(a).cmp(&name(b)),
    };
    let ordering = if is_descending {
        ordering.reverse()
    } else {
        ordering
    };
    let by_number = a.id.cmp(&b.id);
    let is_inverted = sort == SortBy::Number && is_descending;
    ordering.then(if is_inverted {
        by_number.reverse()
    } else {
        by_number
    })
}
