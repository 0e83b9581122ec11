//! One actor: its figures, its states over time, its waits and its faults.

use super::Screen;
use super::paint::{
    ALARM, BOLD, DIM, PLAIN, clock, sparkline, state_letter, thousands, wait_estimate,
};
use super::pane::Pane;
use crate::model::{ActorFacts, Model, TRAIL, mailbox_wait};
use crate::why::{duration, restarts_text, still_text, waits_text};

/// The children that are named.
const CHILDREN: usize = 8;

/// The column of the texts.
const TEXTS: u16 = 12;

pub(super) fn draw(screen: &mut Screen, model: &Model, pane: &mut Pane<'_>) {
    let Some(id) = screen.one else { return };
    pane.heading(0, &model.label(id));
    let Some(actor) = model.actor(id) else {
        pane.put(1, 1, "it has ended", ALARM);
        draw_faults(screen, model, id, 3, pane);
        return;
    };
    let mut row = 1;
    for (name, text) in figures(model, actor) {
        if !text.is_empty() {
            pane.put(1, row, name, DIM);
            row = pane.put_wrapped(TEXTS, row, &text, PLAIN);
        }
    }
    row = draw_states(model, actor, row, pane);
    pane.put(1, row, "now", DIM);
    let now = waits_text(model, actor) + &still_text(model, actor);
    row = pane.put_wrapped(TEXTS, row, &now, PLAIN);
    draw_faults(screen, model, id, row, pane);
}

/// Returns the names and texts of what is known. An empty text is not shown.
fn figures(model: &Model, actor: &ActorFacts) -> Vec<(&'static str, String)> {
    let text = |id| model.text(id).to_owned();
    let function = match model.text(actor.spawned_at) {
        "" => text(actor.function),
        location if actor.function.is_empty() => format!("spawned at {location}"),
        location => format!("{}  spawned at {location}", model.text(actor.function)),
    };
    let mut known = Vec::new();
    for (word, id) in [
        ("key", actor.key),
        ("names", actor.names),
        ("groups", actor.groups),
        ("machine", actor.machine),
        ("thread", actor.thread),
    ] {
        if !id.is_empty() {
            known.push(format!("{word} {}", model.text(id)));
        }
    }
    let bound = match actor.capacity {
        u32::MAX => String::new(),
        capacity => format!(" of {}", thousands(capacity.into())),
    };
    let mailbox = format!(
        "{}{bound}, highest {}, displaced {}{}",
        thousands(actor.mailbox.into()),
        thousands(actor.highest.into()),
        actor.displaced,
        model
            .growth(actor)
            .map_or(String::new(), |more| format!(", {more} more/s")),
    );
    let rate = model.handling_rate(actor);
    let wait = mailbox_wait(actor.mailbox.into(), rate).map(|wait| {
        let how = "the mailbox ÷ messages handled a second";
        format!("{}: {how}", wait_estimate(Some(wait)))
    });
    let turns = format!(
        "{} turns, {} messages, {} messages/s",
        thousands(actor.turns),
        thousands(actor.messages),
        model.message_rate(actor),
    );
    let share = model.busy_share(actor);
    let busy = format!(
        "{}.{} % of the time, a turn takes {}, the longest {}{}",
        share / 10,
        share % 10,
        duration(model.mean_turn_us(actor)),
        duration(actor.longest_us.into()),
        if actor.is_measured { "" } else { " (sampled)" },
    );
    let handle = match actor.has_handle {
        true => "with a handle",
        false => "no handle",
    };
    vec![
        ("function", function),
        ("known as", known.join("  ")),
        ("family", family(model, actor)),
        ("mailbox", mailbox),
        ("wait", wait.unwrap_or_default()),
        ("turns", turns),
        ("busy", busy),
        ("addresses", format!("{}, {handle}", actor.addresses)),
    ]
}

fn family(model: &Model, actor: &ActorFacts) -> String {
    let all = model.actors().iter();
    let children = all.filter(|other| other.parent == Some(actor.id));
    let (mut names, mut count) = (Vec::new(), 0);
    for child in children {
        count += 1;
        if names.len() < CHILDREN {
            names.push(model.label(child.id));
        }
    }
    let parent = actor.parent.map(|id| format!("parent {}", model.label(id)));
    let children = match count {
        0 => None,
        1 => Some(format!("1 child: {}", names[0])),
        _ => Some(format!("{count} children: {}", names.join(", "))),
    };
    let both: Vec<_> = parent.into_iter().chain(children).collect();
    both.join("; ")
}

/// Draws the states of the last refreshes, and the mailbox below. Returns the next row.
fn draw_states(model: &Model, actor: &ActorFacts, row: u16, pane: &mut Pane<'_>) -> u16 {
    pane.put(1, row, "states", DIM);
    let mut column = TEXTS;
    for state in model.states(actor) {
        let (letter, style) = state_letter(state);
        column = pane.put(column, row, letter, style);
    }
    pane.put(column, row, "  R running, r ready, w waiting", DIM);
    let Some(followed) = model.followed().filter(|followed| followed.id == actor.id) else {
        return row + 1;
    };
    let lines = [
        ("mailbox", &followed.mailbox),
        ("messages", &followed.messages),
    ];
    for ((name, values), row) in lines.into_iter().zip(row + 1..) {
        pane.put(1, row, name, DIM);
        let line = sparkline(values.iter(), TRAIL as usize);
        let line = format!("{line:>0$}", TRAIL as usize);
        let column = pane.put(TEXTS, row, line, PLAIN);
        let most = values.iter().max().copied().unwrap_or(0);
        pane.put(column, row, format!("  most {}", thousands(most)), DIM);
    }
    row + 3
}

/// Draws the lines of the log about an actor, the newest first.
fn draw_faults(screen: &mut Screen, model: &Model, id: u64, row: u16, pane: &mut Pane<'_>) {
    let actor = model.actor(id);
    match actor.filter(|actor| actor.restarts > 0 || !actor.fault.is_empty()) {
        Some(actor) => {
            let text = format!("Faults: {}", restarts_text(model, actor));
            pane.put(1, row, text, ALARM);
        }
        None => {
            pane.put(1, row, "Faults and warnings", BOLD);
        }
    }
    let lines = model.log().iter().rev();
    let lines: Vec<_> = lines.filter(|line| line.actor == Some(id)).collect();
    let room = usize::from(pane.height().saturating_sub(row + 1));
    screen.scroll = screen.scroll.min(lines.len().saturating_sub(room));
    for (line, row) in lines.iter().skip(screen.scroll).take(room).zip(row + 1..) {
        let text = format!("{} {} {}", clock(line.at_ms), line.level, line.text);
        pane.put(1, row, text, PLAIN);
    }
}
