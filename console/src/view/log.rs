//! The log: what the program warns of, faults, and what the console says of the connection.

use super::Screen;
use super::paint::{ALARM, DIM, PLAIN, REVERSED, clock};
use super::pane::Pane;
use crate::model::Model;

/// Returns the actor of the line that is so many lines before the last one.
pub(super) fn actor_at(model: &Model, at: usize) -> Option<u64> {
    model.log().iter().rev().nth(at)?.actor
}

pub(super) fn draw(screen: &Screen, model: &Model, pane: &mut Pane<'_>) {
    let log = model.log();
    let Some(last) = log.len().checked_sub(1) else {
        pane.put(1, 1, "nothing was logged since the console has begun", DIM);
        return;
    };
    let room = usize::from(pane.height());
    let at = last - screen.log_at.min(last);
    // The last lines, unless the cursor is above them.
    let top = at.min(log.len().saturating_sub(room));
    for (row, (number, line)) in log.iter().enumerate().skip(top).take(room).enumerate() {
        let row = row as u16;
        let style = match &*line.level {
            "error" | "warning" => ALARM,
            _ => DIM,
        };
        let column = pane.put(0, row, clock(line.at_ms), DIM);
        let column = pane.put(column + 1, row, format!("{:<8}", line.level), style);
        pane.put(column, row, &line.text, PLAIN);
        if number == at {
            pane.fill(row, REVERSED);
        }
        pane.on_click_row(row, number, at);
    }
}
