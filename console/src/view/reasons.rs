//! The view "why": the suspects, cycles first, and the causes of the one at the cursor.

use super::Screen;
use super::paint::{ALARM, DIM, PLAIN, REVERSED, link_style, trouble_style};
use super::pane::Pane;
use crate::model::Model;
use crate::why::{LinkKind, Suspect, Suspects, Trouble, chain};

/// The rows of the list above the causes.
const LIST: u16 = 7;

/// A row of the list: an actor, and why it is suspect, or nothing if it was asked for.
#[derive(Debug, Clone, Copy)]
struct ReasonRow<'a> {
    actor: u64,
    suspect: Option<&'a Suspect>,
}

impl ReasonRow<'_> {
    /// Returns what tells it from the other rows.
    fn key(&self) -> (u64, Option<Trouble>) {
        (self.actor, self.suspect.map(|suspect| suspect.trouble))
    }
}

/// Returns the rows of the list. The members of cycles are the first suspects.
fn rows(screen: &Screen) -> impl Iterator<Item = ReasonRow<'_>> {
    let row = |actor, suspect| ReasonRow { actor, suspect };
    let asked = screen.asked.into_iter().map(move |id| row(id, None));
    let suspects = screen.suspects.all();
    asked.chain(suspects.map(move |suspect| row(suspect.actor, Some(suspect))))
}

/// Returns how many rows there are.
pub(super) fn count(screen: &Screen) -> usize {
    rows(screen).count()
}

/// Replaces the suspects. The cursor stays at its row, wherever that is now.
pub(super) fn put_suspects(screen: &mut Screen, suspects: Suspects) {
    let row = rows(screen).nth(screen.suspect_at);
    let before = row.map(|row| row.key());
    screen.suspects = suspects;
    let now = rows(screen).position(|row| Some(row.key()) == before);
    screen.suspect_at = now.unwrap_or(screen.suspect_at);
}

/// Returns the actor at the cursor.
pub(super) fn actor_at(screen: &Screen) -> Option<u64> {
    let row = rows(screen).nth(screen.suspect_at);
    row.map(|row| row.actor)
}

/// Returns the row of an actor, or the first one.
pub(super) fn row_of(screen: &Screen, actor: Option<u64>) -> usize {
    let is_asked = |row: ReasonRow<'_>| Some(row.actor) == actor;
    rows(screen).position(is_asked).unwrap_or(0)
}

pub(super) fn draw(screen: &mut Screen, model: &Model, pane: &mut Pane<'_>) {
    screen.suspect_at = screen.suspect_at.min(count(screen).saturating_sub(1));
    let at = screen.suspect_at;
    pane.heading(0, &format!("Suspects: {}", count(screen)));
    let mut list = pane.within(0, 1, pane.width(), LIST);
    let top = (at + 1).saturating_sub(usize::from(list.height()));
    for (line, row) in rows(screen).skip(top).take(usize::from(LIST)).enumerate() {
        draw_reason_row(model, row, line as u16, &mut list);
        list.on_click_row(line as u16, top + line, at);
    }
    let Some(row) = rows(screen).nth(at) else {
        let text = "no actor is stuck, slow, growing or faulting; w at any actor explains it";
        list.put(1, 0, text, DIM);
        return;
    };
    list.fill((at - top) as u16, REVERSED);
    draw_chain(model, row.actor, &mut pane.below(LIST + 1));
}

fn draw_reason_row(model: &Model, row: ReasonRow<'_>, line: u16, pane: &mut Pane<'_>) {
    let column = pane.put(10, line, model.label(row.actor), PLAIN);
    match row.suspect {
        None => pane.put(1, line, "asked", PLAIN),
        Some(suspect) => {
            let style = trouble_style(suspect.trouble);
            pane.put(1, line, suspect.trouble.word(), style);
            pane.put(column + 1, line, &suspect.says, DIM)
        }
    };
}

/// Draws the causes of an actor.
fn draw_chain(model: &Model, actor: u64, pane: &mut Pane<'_>) {
    let chain = chain(model, actor);
    pane.heading(0, &format!("Why {}", model.label(actor)));
    let mut row = 1;
    if !chain.cycle.is_empty() {
        let mut names: Vec<_> = chain.cycle.iter().map(|id| model.label(*id)).collect();
        names.push(names[0].clone());
        let text = format!("A CYCLE: {}", names.join(" -> "));
        row = pane.put_wrapped(1, row, &text, ALARM);
    }
    for link in &chain.links {
        let column = 1 + 2 * link.depth.min(12) as u16;
        let mark = match link.kind {
            LinkKind::Step if link.depth == 0 => "",
            LinkKind::Step => "-> ",
            LinkKind::Remark => "   ",
            LinkKind::Cause => "=> ",
        };
        let text = format!("{mark}{}", link.text);
        row = pane.put_wrapped(column, row, &text, link_style(link.kind));
    }
    if chain.links.iter().all(|link| link.kind != LinkKind::Cause) {
        let has_messages = model.actor(actor).is_some_and(|actor| actor.mailbox > 0);
        let text = match has_messages {
            true => "No cause was found.",
            false => "No cause was found: it may just have nothing to do.",
        };
        pane.put(1, row, text, DIM);
    }
}
