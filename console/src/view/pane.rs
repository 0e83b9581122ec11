//! A part of the screen that is drawn into. Rows and columns count from its corner.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::{Block, Clear, Widget};

use super::paint::{BOLD, DIM};
use crate::input::Action;

/// A part of the screen, and what a click there does.
pub(super) type Spot = (Rect, Action);

/// A part of the screen. What does not fit into it is not drawn.
pub(super) struct Pane<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
    spots: &'a mut Vec<Spot>,
}

impl<'a> Pane<'a> {
    pub fn new(area: Rect, buffer: &'a mut Buffer, spots: &'a mut Vec<Spot>) -> Self {
        Pane {
            area,
            buffer,
            spots,
        }
    }

    pub fn width(&self) -> u16 {
        self.area.width
    }

    pub fn height(&self) -> u16 {
        self.area.height
    }

    /// Returns a part of this one.
    pub fn within(&mut self, column: u16, row: u16, width: u16, height: u16) -> Pane<'_> {
        let (x, y) = (self.area.x + column, self.area.y + row);
        let area = Rect::new(x, y, width, height).intersection(self.area);
        Pane::new(area, self.buffer, self.spots)
    }

    /// Returns the part from a row on.
    pub fn below(&mut self, row: u16) -> Pane<'_> {
        let row = row.min(self.area.height);
        self.within(0, row, self.area.width, self.area.height - row)
    }

    /// Draws a border in the middle, and returns the empty part within.
    pub fn framed(&mut self, title: &str, width: u16, height: u16) -> Pane<'_> {
        let (width, height) = (width.min(self.area.width), height.min(self.area.height));
        let column = (self.area.width - width) / 2;
        let row = (self.area.height - height) / 2;
        let Pane {
            area,
            buffer,
            spots,
        } = self.within(column, row, width, height);
        Clear.render(area, buffer);
        let block = Block::bordered().title(title);
        let inner = block.inner(area);
        block.render(area, buffer);
        Pane::new(inner, buffer, spots)
    }

    /// Writes a text that ends with the pane, and returns the column behind it.
    pub fn put(&mut self, column: u16, row: u16, text: impl AsRef<str>, style: Style) -> u16 {
        let (area, text) = (self.area, text.as_ref());
        if column >= area.width || row >= area.height {
            return column;
        }
        let room = usize::from(area.width - column);
        let (x, y) = (area.x + column, area.y + row);
        let (end, _) = self.buffer.set_stringn(x, y, text, room, style);
        // A text that was cut says so.
        if Span::raw(text).width() > room
            && let Some(cell) = self.buffer.cell_mut((area.right() - 1, y))
        {
            cell.set_symbol("…");
        }
        end - area.x
    }

    /// Writes a text in as many rows as it needs, and returns the row behind it.
    pub fn put_wrapped(&mut self, column: u16, mut row: u16, text: &str, style: Style) -> u16 {
        const INDENT: u16 = 3;
        let room = usize::from(self.area.width.saturating_sub(column)).max(10);
        let (mut line, mut indent) = (String::new(), 0);
        for word in text.split(' ') {
            let needs = Span::raw(&*line).width() + 1 + Span::raw(word).width();
            if needs + usize::from(indent) > room && !line.trim().is_empty() {
                self.put(column + indent, row, &line, style);
                (row, indent) = (row + 1, INDENT);
                line.clear();
            } else if !line.is_empty() || word.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.put(column + indent, row, &line, style);
        row + 1
    }

    /// Gives a row a style.
    pub fn fill(&mut self, row: u16, style: Style) {
        let line = self.within(0, row, self.area.width, 1).area;
        self.buffer.set_style(line, style);
    }

    /// Writes a heading with a rule behind it.
    pub fn heading(&mut self, row: u16, text: &str) {
        let end = self.put(0, row, text, BOLD);
        let rest = usize::from(self.area.width.saturating_sub(end + 1));
        self.put(end + 1, row, "─".repeat(rest), DIM);
    }

    /// Lets a click at a part of a row do something.
    pub fn on_click(&mut self, columns: Range<u16>, row: u16, action: Action) {
        let width = columns.end.saturating_sub(columns.start);
        let part = self.within(columns.start, row, width, 1).area;
        self.spots.push((part, action));
    }

    /// Lets a click at a row of a list move the cursor there.
    pub fn on_click_row(&mut self, row: u16, at: usize, cursor: usize) {
        let by = at as i32 - cursor as i32;
        self.on_click(0..self.area.width, row, Action::Move(by));
    }
}
