//! One actor: its figures, its states over time, its waits and its faults.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Screen;
use super::paint::{
    ALARM, BOLD, DIM, PLAIN, clock, heading, put, sparkline, state_letter, thousands,
};
use super::reasons::put_wrapped;
use crate::model::{ActorFacts, Model, TRAIL};
use crate::why::{duration, restarts_text, waits_text};

/// The children that are named.
const CHILDREN: usize = 8;

pub(super) fn draw(screen: &mut Screen, model: &Model, area: Rect, buffer: &mut Buffer) {
    let Some(id) = screen.one else { return };
    heading(buffer, area, 0, &model.label(id));
    let Some(actor) = model.actor(id) else {
        put(buffer, area, 1, 1, "it has ended", ALARM);
        draw_faults(screen, model, id, 3, area, buffer);
        return;
    };
    let mut row = 1;
    for (name, text) in figures(model, actor) {
        if text.is_empty() {
            continue;
        }
        put(buffer, area, 1, row, name, DIM);
        put(buffer, area, 12, row, &text, PLAIN);
        row += 1;
    }
    row = draw_states(model, actor, row, area, buffer);
    put(buffer, area, 1, row, "now", DIM);
    let still = match model.still_ms(actor) {
        0..1_000 => String::new(),
        ms => format!(", without a turn for {}", duration(ms * 1_000)),
    };
    let now = waits_text(model, actor) + &still;
    row += put_wrapped(buffer, area, 12, row, &now, PLAIN);
    draw_faults(screen, model, id, row, area, buffer);
}

/// Returns the names and texts of what is known. An empty text is not shown.
fn figures(model: &Model, actor: &ActorFacts) -> Vec<(&'static str, String)> {
    let text = |id| model.text(id).to_owned();
    let place = match model.text(actor.spawned_at) {
        "" => text(actor.function),
        place if actor.function.is_empty() => format!("spawned at {place}"),
        place => format!("{}  spawned at {place}", model.text(actor.function)),
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
            .map_or(String::new(), |more| format!(", {more} more each second")),
    );
    let turns = format!(
        "{} turns, {} messages ({} a second)",
        thousands(actor.turns),
        thousands(actor.messages),
        model.message_rate(actor),
    );
    let share = model.busy_share(actor);
    let busy = format!(
        "{}.{} % of the time, a turn takes {}, at most {}{}",
        share / 10,
        share % 10,
        duration(model.mean_turn_us(actor)),
        duration(actor.longest_us.into()),
        if actor.is_measured { "" } else { " (samples)" },
    );
    let handle = if actor.has_handle {
        "with a handle"
    } else {
        "no handle"
    };
    vec![
        ("function", place),
        ("known as", known.join("  ")),
        ("family", family(model, actor)),
        ("mailbox", mailbox),
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
    let parent = actor
        .parent
        .map(|id| format!("child of {}", model.label(id)));
    let children = match count {
        0 => None,
        1 => Some(format!("1 child: {}", names[0])),
        _ => Some(format!("{count} children: {}", names.join(", "))),
    };
    let both: Vec<_> = parent.into_iter().chain(children).collect();
    both.join("; ")
}

/// Draws the states of the last refreshes, and the mailbox below. Returns the next row.
fn draw_states(
    model: &Model,
    actor: &ActorFacts,
    row: u16,
    area: Rect,
    buffer: &mut Buffer,
) -> u16 {
    put(buffer, area, 1, row, "states", DIM);
    let mut column = 12;
    for state in model.states(actor) {
        let (letter, style) = state_letter(state);
        column = put(buffer, area, column, row, letter, style);
    }
    let legend = "  R running, r ready, w waiting";
    put(buffer, area, column, row, legend, DIM);
    let Some(followed) = model.followed().filter(|followed| followed.id == actor.id) else {
        return row + 1;
    };
    let lines = [
        ("mailbox", &followed.mailbox),
        ("messages", &followed.messages),
    ];
    for (at, (name, values)) in lines.into_iter().enumerate() {
        let row = row + 1 + at as u16;
        put(buffer, area, 1, row, name, DIM);
        let line = sparkline(values.iter(), TRAIL as usize);
        put(
            buffer,
            area,
            12,
            row,
            &format!("{line:>0$}", TRAIL as usize),
            PLAIN,
        );
        let most = values.iter().max().copied().unwrap_or(0);
        let text = format!("  most {}", thousands(most));
        put(buffer, area, 12 + TRAIL as u16, row, &text, DIM);
    }
    row + 3
}

/// Draws the lines of the log about an actor, the newest first.
fn draw_faults(
    screen: &mut Screen,
    model: &Model,
    id: u64,
    row: u16,
    area: Rect,
    buffer: &mut Buffer,
) {
    let faults = match model.actor(id) {
        Some(actor) if actor.restarts > 0 || !actor.fault.is_empty() => {
            format!("Faults: {}", restarts_text(model, actor))
        }
        _ => "Faults and warnings".to_owned(),
    };
    let style = if faults.starts_with("Faults:") {
        ALARM
    } else {
        BOLD
    };
    put(buffer, area, 1, row, &faults, style);
    let lines: Vec<_> = model
        .log()
        .iter()
        .rev()
        .filter(|line| line.actor == Some(id))
        .collect();
    let room = usize::from(area.height.saturating_sub(row + 1));
    screen.scroll = screen.scroll.min(lines.len().saturating_sub(room));
    for (at, line) in lines.iter().skip(screen.scroll).take(room).enumerate() {
        let text = format!("{} {} {}", clock(line.at_ms), line.level, line.text);
        put(buffer, area, 1, row + 1 + at as u16, &text, PLAIN);
    }
}
