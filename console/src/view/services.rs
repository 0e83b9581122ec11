//! What services and packages show, and the states of machines: a table each.

use std::collections::BTreeMap;

use super::Screen;
use super::actors::group_of;
use super::paint::{BOLD, DIM, PLAIN};
use super::pane::Pane;
use crate::model::{Model, ServiceTable};

/// The widest column. What is longer is cut.
const WIDTH_MAX: usize = 40;

pub(super) fn draw(screen: &mut Screen, model: &Model, pane: &mut Pane<'_>) {
    let machines = machines(model);
    let tables: Vec<_> = model.sections().iter().chain(&machines).collect();
    if tables.is_empty() {
        let text = "the program shows no services, and has no machines";
        pane.put(1, 1, text, DIM);
        return;
    }
    // All tables below each other, from the line on to which it was scrolled.
    let height = |table: &ServiceTable| table.rows.len() + 3;
    let all: usize = tables.iter().map(|table| height(table)).sum();
    let room = usize::from(pane.height());
    screen.scroll = screen.scroll.min(all.saturating_sub(room));
    let mut line = 0;
    for table in tables {
        let widths = widths(table);
        for at in 0..height(table) {
            let row = usize::checked_sub(line, screen.scroll);
            if let Some(row) = row.filter(|row| *row < room) {
                draw_line(table, &widths, at, row as u16, pane);
            }
            line += 1;
        }
    }
}

/// Counts the machines of each function that are in a state.
fn machines(model: &Model) -> Option<ServiceTable> {
    let mut counts = BTreeMap::<_, u64>::new();
    for actor in model.actors() {
        if !actor.machine.is_empty() {
            let function = model.text(group_of(actor));
            *counts
                .entry((function, model.text(actor.machine)))
                .or_default() += 1;
        }
    }
    let rows = counts.into_iter().map(|((function, state), count)| {
        vec![function.to_owned(), state.to_owned(), count.to_string()]
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| ServiceTable {
        name: "machines".to_owned(),
        columns: ["function", "state", "count"].map(str::to_owned).to_vec(),
        rows,
    })
}

fn widths(table: &ServiceTable) -> Vec<usize> {
    let rows = || table.rows.iter().chain([&table.columns]);
    let width = |at: usize| {
        let cells = rows().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).min(WIDTH_MAX)
    };
    let count = rows().map(Vec::len).max().unwrap_or(0);
    (0..count).map(width).collect()
}

/// Draws a line of a table: its name, its heads, a row, or the empty line behind it.
fn draw_line(table: &ServiceTable, widths: &[usize], at: usize, row: u16, pane: &mut Pane<'_>) {
    let (cells, style) = match at {
        0 => return pane.heading(row, &table.name),
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
        column = pane.put(column, row, text, style) + 2;
    }
}
