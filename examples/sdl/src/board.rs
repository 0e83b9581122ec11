//! Conway's Game of Life on a torus, and its text format: one line for each row, `O` for a live
//! cell.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    width: usize,
    height: usize,
    /// The cells, row by row.
    cells: Vec<bool>,
}

impl Board {
    pub fn empty(width: usize, height: usize) -> Board {
        assert!(width > 0 && height > 0, "a board of {width} by {height}");
        Board {
            width,
            height,
            cells: vec![false; width * height],
        }
    }

    /// Creates a board on which about every third cell lives.
    pub fn random(width: usize, height: usize, seed: u64) -> Board {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut board = Board::empty(width, height);
        board.cells.fill_with(|| random.u8(..3) == 0);
        board
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    pub fn cells(&self) -> &[bool] {
        &self.cells
    }

    /// Returns the number of live cells.
    pub fn live(&self) -> usize {
        self.cells.iter().filter(|&&lives| lives).count()
    }

    /// Toggles a cell; does nothing outside the board.
    pub fn toggle(&mut self, x: usize, y: usize) {
        if x < self.width && y < self.height {
            self.cells[y * self.width + x] ^= true;
        }
    }

    pub fn clear(&mut self) {
        self.cells.fill(false);
    }

    /// Returns the board of the next generation, which has these cells.
    pub fn with_cells(&self, cells: Vec<bool>) -> Board {
        assert_eq!(cells.len(), self.cells.len(), "wrong number of cells");
        Board { cells, ..*self }
    }

    /// Returns the cells of these rows in the next generation.
    pub fn next(&self, rows: Range<usize>) -> Vec<bool> {
        let mut next = Vec::with_capacity(rows.len() * self.width);
        for y in rows {
            let row = |y: usize| &self.cells[y * self.width..][..self.width];
            let above = row((y + self.height - 1) % self.height);
            let (here, below) = (row(y), row((y + 1) % self.height));
            let column = |x: usize| u8::from(above[x]) + u8::from(here[x]) + u8::from(below[x]);
            let (mut left, mut middle) = (column(self.width - 1), column(0));
            for (x, &lives) in here.iter().enumerate() {
                let right = column((x + 1) % self.width);
                // The sum includes the cell itself.
                next.push(match left + middle + right {
                    3 => true,
                    4 => lives,
                    _ => false,
                });
                (left, middle) = (middle, right);
            }
        }
        next
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.cells.chunks(self.width) {
            let line = row.iter().map(|&lives| if lives { 'O' } else { '.' });
            writeln!(f, "{}", line.collect::<String>())?;
        }
        Ok(())
    }
}

impl FromStr for Board {
    type Err = String;

    fn from_str(text: &str) -> Result<Board, String> {
        let width = text.lines().next().unwrap_or_default().len();
        let mut cells = Vec::with_capacity(text.len());
        for (number, line) in (1..).zip(text.lines()) {
            if line.len() != width {
                return Err(format!("row {number} is not {width} cells wide"));
            }
            for cell in line.chars() {
                cells.push(match cell {
                    'O' => true,
                    '.' => false,
                    other => return Err(format!("row {number} has a cell {other:?}")),
                });
            }
        }
        match cells.len() {
            0 => Err("there are no cells".into()),
            all => Ok(Board {
                width,
                height: all / width,
                cells,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(text: &str) -> Board {
        text.parse().unwrap()
    }

    fn after(board: &Board, generations: usize) -> Board {
        (0..generations).fold(board.clone(), |board, _| {
            board.with_cells(board.next(0..board.height()))
        })
    }

    #[test]
    fn a_blinker_blinks() {
        let lying = board(".....\n.....\n.OOO.\n.....\n.....\n");
        let standing = board(".....\n..O..\n..O..\n..O..\n.....\n");
        assert_eq!(after(&lying, 1), standing);
        assert_eq!(after(&lying, 2), lying);
    }

    #[test]
    fn a_glider_goes_round_the_torus() {
        let glider = board(".O....\n..O...\nOOO...\n......\n......\n......\n");
        assert_ne!(after(&glider, 4), glider);
        assert_eq!(after(&glider, 4 * 6), glider);
    }

    #[test]
    fn bands_of_any_height_make_the_same_board() {
        let whole = Board::random(31, 20, 7);
        let next = whole.next(0..20);
        for height in 1..=20 {
            let rows = (0..20).step_by(height);
            let bands = rows.flat_map(|top| whole.next(top..20.min(top + height)));
            assert_eq!(bands.collect::<Vec<_>>(), next, "of {height} rows");
        }
    }

    #[test]
    fn text_of_a_board_parses_back() {
        let random = Board::random(13, 5, 1);
        assert_eq!(random.to_string().parse(), Ok(random.clone()));
        assert_eq!(random.to_string().matches('O').count(), random.live());
    }

    #[test]
    fn text_without_a_board_is_refused() {
        for (text, why) in [
            ("", "there are no cells"),
            ("\n\n", "there are no cells"),
            ("..\n.\n", "row 2 is not 2 cells wide"),
            ("..\n.x\n", "row 2 has a cell 'x'"),
        ] {
            assert_eq!(text.parse::<Board>(), Err(why.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn toggle_changes_cells_inside_the_board_only() {
        let mut board = Board::empty(3, 2);
        board.toggle(2, 1);
        board.toggle(3, 0);
        board.toggle(0, 2);
        assert_eq!(board.to_string(), "...\n..O\n");
        board.toggle(2, 1);
        assert_eq!(board.live(), 0);
    }
}
