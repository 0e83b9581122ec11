//! The view "why": the suspects, cycles first, and the causes of the one at the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Screen;
use super::paint::{ALARM, DIM, PLAIN, REVERSED, fill, heading, link_style, put, trouble_style};
use crate::input::Action;
use crate::model::Model;
use crate::why::{LinkKind, Suspect, Suspects, Trouble, chain};

/// The rows of the list above the causes.
const LIST: u16 = 7;

/// A row of the list.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReasonRow<'a> {
    /// The actor that was asked for.
    Asked(u64),
    /// A suspect.
    Suspect(&'a Suspect),
}

impl ReasonRow<'_> {
    fn actor(&self) -> u64 {
        match self {
            ReasonRow::Asked(id) => *id,
            ReasonRow::Suspect(suspect) => suspect.actor,
        }
    }

    /// Returns what tells it from the other rows.
    fn key(&self) -> (u64, Option<Trouble>) {
        match self {
            ReasonRow::Asked(id) => (*id, None),
            ReasonRow::Suspect(suspect) => (suspect.actor, Some(suspect.trouble)),
        }
    }
}

/// Returns the rows of the list. The members of cycles are the first suspects.
pub(super) fn rows<'a>(screen: &'a Screen, _: &Model) -> Vec<ReasonRow<'a>> {
    listed(screen).collect()
}

fn listed(screen: &Screen) -> impl Iterator<Item = ReasonRow<'_>> {
    let asked = screen.asked.into_iter().map(ReasonRow::Asked);
    asked.chain(screen.suspects.all().map(ReasonRow::Suspect))
}

/// Replaces the suspects. The cursor stays at its row, wherever that is now.
pub(super) fn put_suspects(screen: &mut Screen, suspects: Suspects) {
    let row = listed(screen).nth(screen.suspect_at);
    let before = row.map(|row| row.key());
    screen.suspects = suspects;
    let now = listed(screen).position(|row| Some(row.key()) == before);
    screen.suspect_at = now.unwrap_or(screen.suspect_at);
}

/// Returns the actor at the cursor.
pub(super) fn actor_at(screen: &Screen) -> Option<u64> {
    let row = listed(screen).nth(screen.suspect_at);
    row.map(|row| row.actor())
}

/// Returns the row of an actor, or the first one.
pub(super) fn row_of(screen: &Screen, actor: Option<u64>, _: &Model) -> usize {
    let is_asked = |row: ReasonRow<'_>| Some(row.actor()) == actor;
    listed(screen).position(is_asked).unwrap_or(0)
}

pub(super) fn draw(screen: &mut Screen, model: &Model, area: Rect, buffer: &mut Buffer) {
    let rows = rows(screen, model);
    let at = screen.suspect_at.min(rows.len().saturating_sub(1));
    heading(buffer, area, 0, &format!("Suspects: {}", rows.len()));
    let list = Rect::new(area.x, area.y + 1, area.width, LIST.min(area.height - 1));
    if rows.is_empty() {
        let text = "no actor is stuck, slow, growing or faulting; w at any actor explains it";
        put(buffer, list, 1, 0, text, DIM);
        return;
    }
    let room = usize::from(list.height);
    let top = (at + 1).saturating_sub(room);
    let mut spots = Vec::new();
    for (line, row) in rows.iter().skip(top).take(room).enumerate() {
        draw_reason_row(model, row, line as u16, list, buffer);
        let place = Rect::new(list.x, list.y + line as u16, list.width, 1);
        spots.push((place, Action::Move((top + line) as i32 - at as i32)));
    }
    fill(buffer, list, (at - top) as u16, REVERSED);
    let below = LIST + 1;
    let rest = Rect::new(
        area.x,
        area.y + below,
        area.width,
        area.height.saturating_sub(below),
    );
    draw_chain(model, rows[at].actor(), rest, buffer);
    screen.suspect_at = at;
    screen.spots.extend(spots);
}

fn draw_reason_row(model: &Model, row: &ReasonRow<'_>, line: u16, area: Rect, buffer: &mut Buffer) {
    let label = model.label(row.actor());
    match row {
        ReasonRow::Asked(_) => {
            put(buffer, area, 1, line, "asked", PLAIN);
            put(buffer, area, 10, line, &label, PLAIN);
        }
        ReasonRow::Suspect(suspect) => {
            let style = trouble_style(suspect.trouble);
            put(buffer, area, 1, line, suspect.trouble.word(), style);
            let column = put(buffer, area, 10, line, &label, PLAIN);
            put(buffer, area, column + 1, line, &suspect.says, DIM);
        }
    }
}

/// Draws the causes of an actor.
fn draw_chain(model: &Model, actor: u64, area: Rect, buffer: &mut Buffer) {
    let chain = chain(model, actor);
    heading(buffer, area, 0, &format!("Why {}", model.label(actor)));
    let mut row = 1;
    if !chain.cycle.is_empty() {
        let mut names: Vec<_> = chain.cycle.iter().map(|id| model.label(*id)).collect();
        names.push(names[0].clone());
        let text = format!("A CYCLE: {}", names.join(" -> "));
        row += put_wrapped(buffer, area, 1, row, &text, ALARM);
    }
    for link in &chain.links {
        let column = 1 + 2 * link.depth.min(12) as u16;
        let (mark, style) = match link.kind {
            LinkKind::Step if link.depth == 0 => ("", link_style(link.kind)),
            LinkKind::Step => ("-> ", link_style(link.kind)),
            LinkKind::Remark => ("   ", link_style(link.kind)),
            LinkKind::Cause => ("=> ", link_style(link.kind)),
        };
        let text = format!("{mark}{}", link.text);
        row += put_wrapped(buffer, area, column, row, &text, style);
    }
    let has_cause = chain.links.iter().any(|link| link.kind == LinkKind::Cause);
    if !has_cause {
        let has_messages = model.actor(actor).is_some_and(|actor| actor.mailbox > 0);
        let text = match has_messages {
            true => "No cause was found.",
            false => "No cause was found: it may just have nothing to do.",
        };
        put(buffer, area, 1, row, text, DIM);
    }
}

/// Writes a text in as many rows as it needs, and returns their number.
pub(super) fn put_wrapped(
    buffer: &mut Buffer,
    area: Rect,
    column: u16,
    row: u16,
    text: &str,
    style: ratatui::style::Style,
) -> u16 {
    let room = usize::from(area.width.saturating_sub(column + 4)).max(10);
    let (mut rows, mut line) = (0, String::new());
    let mut indent = 0;
    for word in text.split(' ') {
        let is_full = line.chars().count() + 1 + word.chars().count() > room;
        if is_full && !line.trim().is_empty() {
            put(buffer, area, column + indent, row + rows, &line, style);
            (rows, indent) = (rows + 1, 3);
            line.clear();
        } else if !line.is_empty() || word.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    put(buffer, area, column + indent, row + rows, &line, style);
    rows + 1
}
