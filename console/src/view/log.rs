//! The log: what the program warns of, faults, and what the console says of the connection.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Screen;
use super::paint::{ALARM, DIM, PLAIN, REVERSED, clock, fill, put};
use crate::input::Action;
use crate::model::Model;

/// Returns the actor of the line that is so many lines before the last one.
pub(super) fn actor_at(model: &Model, at: usize) -> Option<u64> {
    model.log().iter().rev().nth(at)?.actor
}

pub(super) fn draw(screen: &mut Screen, model: &Model, area: Rect, buffer: &mut Buffer) {
    let log = model.log();
    if log.is_empty() {
        put(
            buffer,
            area,
            1,
            1,
            "nothing was logged since the console has begun",
            DIM,
        );
        return;
    }
    let room = usize::from(area.height);
    let at = log.len() - 1 - screen.log_at.min(log.len() - 1);
    // The last lines, unless the cursor is above them.
    let top = at.min(log.len().saturating_sub(room));
    for (row, (number, line)) in log.iter().enumerate().skip(top).take(room).enumerate() {
        let row = row as u16;
        let style = match &*line.level {
            "error" | "warning" => ALARM,
            _ => DIM,
        };
        let column = put(buffer, area, 0, row, &clock(line.at_ms), DIM);
        let column = put(
            buffer,
            area,
            column + 1,
            row,
            &format!("{:<8}", line.level),
            style,
        );
        put(buffer, area, column, row, &line.text, PLAIN);
        if number == at {
            fill(buffer, area, row, REVERSED);
        }
        let place = Rect::new(area.x, area.y + row, area.width, 1);
        screen
            .spots
            .push((place, Action::Move(number as i32 - at as i32)));
    }
}
