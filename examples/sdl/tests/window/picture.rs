//! The content of the screen, and the board that it shows.

use std::fmt;

/// The colours of cells, and their width and height in pixels.
const LIVE: [u8; 3] = [0xf0, 0xc0, 0x40];
const DEAD: [u8; 3] = [0x10, 0x20, 0x30];
pub const CELL: usize = 4;

/// Red, green and blue of every pixel.
pub struct Picture {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Reads an X window dump of Xvfb: a header of big-endian numbers, a colour table, 32-bit
    /// pixels.
    pub fn from_dump(dump: &[u8]) -> Picture {
        let number = |at: usize| {
            let bytes = dump[4 * at..][..4].try_into().unwrap();
            u32::from_be_bytes(bytes) as usize
        };
        let (head, width, height) = (number(0), number(4), number(5));
        let (bits, line, colours) = (number(11), number(12), number(19));
        let is_little_endian = number(7) == 0;
        assert_eq!((bits, is_little_endian), (32, true), "another format");
        let lines = dump[head + 12 * colours..].chunks_exact(line).take(height);
        let pixels = lines.flat_map(|line| line[..4 * width].chunks_exact(4));
        Picture {
            width,
            pixels: pixels.map(|bgr| [bgr[2], bgr[1], bgr[0]]).collect(),
        }
    }

    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        self.pixels[y * self.width + x]
    }

    fn is_cell(&self, x: usize, y: usize) -> bool {
        let is_inside = x < self.width && y < self.pixels.len() / self.width;
        is_inside && [LIVE, DEAD].contains(&self.pixel(x, y))
    }

    /// Returns the upper left pixel of the board, if there is one.
    pub fn corner(&self) -> Option<(usize, usize)> {
        let is_cell = |pixel| [LIVE, DEAD].contains(pixel);
        let at = self.pixels.iter().position(is_cell)?;
        Some((at % self.width, at / self.width))
    }

    /// Returns the board, if all its cells are whole.
    pub fn board(&self) -> Option<Cells> {
        let (left, top) = self.corner()?;
        let width = (left..).take_while(|&x| self.is_cell(x, top)).count();
        let height = (top..).take_while(|&y| self.is_cell(left, y)).count();
        let cell = |x: usize, y: usize| {
            let first = self.pixel(x, y);
            let mut all = (0..CELL * CELL).map(|at| self.pixel(x + at % CELL, y + at / CELL));
            let is_whole = [LIVE, DEAD].contains(&first) && all.all(|pixel| pixel == first);
            is_whole.then_some(first == LIVE)
        };
        let xs = || (left..left + width).step_by(CELL);
        let row = |y| xs().map(|x| cell(x, y)).collect();
        let rows = (top..top + height).step_by(CELL).map(row);
        rows.collect::<Option<_>>().map(Cells)
    }
}

/// The cells of a board, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells(pub Vec<Vec<bool>>);

impl Cells {
    pub fn size(&self) -> (usize, usize) {
        (self.0[0].len(), self.0.len())
    }

    pub fn live(&self) -> usize {
        self.0.iter().flatten().filter(|&&lives| lives).count()
    }

    /// Returns the next generation on a torus, computed in the simplest way.
    pub fn next(&self) -> Cells {
        let (width, height) = self.size();
        let lives_next = |x: usize, y: usize| {
            let around = (0..9).filter(|at| {
                let (dx, dy) = (at % 3, at / 3);
                let (x, y) = ((x + width + dx - 1) % width, (y + height + dy - 1) % height);
                *at != 4 && self.0[y][x]
            });
            matches!((around.count(), self.0[y][x]), (3, _) | (2, true))
        };
        let row = |y| (0..width).map(|x| lives_next(x, y)).collect();
        Cells((0..height).map(row).collect())
    }
}

/// Formats the board as the program saves it.
impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.0 {
            let line = row.iter().map(|&lives| if lives { 'O' } else { '.' });
            writeln!(f, "{}", line.collect::<String>())?;
        }
        Ok(())
    }
}
