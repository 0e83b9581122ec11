//! What services and packages show: a table each.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Screen;
use super::paint::{BOLD, DIM, PLAIN, heading, put};
use crate::model::{Model, ServiceTable};

/// The widest column. What is longer is cut.
const WIDTH_MAX: usize = 40;

pub(super) fn draw(screen: &mut Screen, model: &Model, area: Rect, buffer: &mut Buffer) {
    if model.sections().is_empty() {
        put(buffer, area, 1, 1, "the program shows no services", DIM);
        return;
    }
    // All tables below each other, from the line on to which it was scrolled.
    let height: usize = model
        .sections()
        .iter()
        .map(|table| table.rows.len() + 3)
        .sum();
    let room = usize::from(area.height);
    screen.scroll = screen.scroll.min(height.saturating_sub(room));
    let first = screen.scroll;
    let mut line = 0;
    let mut rows = 0..height;
    for table in model.sections() {
        let widths = widths(table);
        for at in 0..table.rows.len() + 3 {
            rows.next();
            if let Some(row) = line_row(line, first, room) {
                draw_line(table, &widths, at, row, area, buffer);
            }
            line += 1;
        }
    }
}

/// Returns the row of the screen of a line, if it is shown.
fn line_row(line: usize, first: usize, room: usize) -> Option<u16> {
    let row = line.checked_sub(first)?;
    (row < room).then_some(row as u16)
}

fn widths(table: &ServiceTable) -> Vec<usize> {
    let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    let count = count.max(table.columns.len());
    let width = |at: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(at));
        let all = cells.chain(table.columns.get(at));
        let widest = all.map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).min(WIDTH_MAX)
    };
    (0..count).map(width).collect()
}

/// Draws a line of a table: its name, its heads, a row, or the empty line behind it.
fn draw_line(
    table: &ServiceTable,
    widths: &[usize],
    at: usize,
    row: u16,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (cells, style) = match at {
        0 => return heading(buffer, area, row, &table.name),
        1 => (&table.columns, BOLD),
        _ => match table.rows.get(at - 2) {
            Some(cells) => (cells, PLAIN),
            None => return,
        },
    };
    let mut column = 1;
    for (cell, width) in cells.iter().zip(widths) {
        let is_number = cell.parse::<f64>().is_ok();
        let cell: String = cell.chars().take(*width).collect();
        let text = match is_number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        };
        column = put(buffer, area, column, row, &text, style) + 2;
    }
}
