//! Tests the program as its user sees it: a window on a screen, a mouse, a keyboard, a file.
//!
//! The content of the screen is read from the X server, not from the program. Every test has its
//! own screen, and waits for a line that the program prints or for a picture.

mod picture;
mod screen;

use std::fs;
use std::path::Path;
use std::process::Command;

use picture::CELL;
use screen::{Process, Screen, read, run, until};

/// The number of cells of a new board.
const SIZE: (usize, usize) = (240, 160);

fn start(screen: &Screen, file: &Path) -> Process {
    Process::start(screen.command(env!("CARGO_BIN_EXE_life")).arg(file))
}

/// Parses the numbers of "generation 17, 345 live cells".
fn world(text: &str) -> (u64, usize) {
    let numbers = text.strip_prefix("generation ").and_then(|rest| {
        let (generation, live) = rest.strip_suffix(" live cells")?.split_once(", ")?;
        Some((generation.parse().ok()?, live.parse().ok()?))
    });
    numbers.unwrap_or_else(|| panic!("{text:?} is not about a world"))
}

#[test]
fn window_shows_the_world_and_obeys_keys_mouse_and_close() {
    let screen = Screen::new();
    let file = screen.file("board");
    let mut life = start(&screen, &file);
    let (left, top) = screen.window(SIZE);

    screen.press((left + 1, top + 1), "space");
    let (generation, live) = world(&life.line("paused: "));
    let mut seen = screen.board(|board| board.live() == live);
    assert_eq!(seen.size(), SIZE);

    let (x, y) = (17, 42);
    screen.click((left + x * CELL + 1, top + y * CELL + 2));
    seen.0[y][x] ^= true;
    let paused = world(&life.line("paused: "));
    assert_eq!(paused, (generation, seen.live()));
    // No other cell has changed.
    screen.board(|board| *board == seen);

    screen.press((left + 1, top + 1), "n");
    seen = seen.next();
    let paused = world(&life.line("paused: "));
    assert_eq!(paused, (generation + 1, seen.live()));
    screen.board(|board| *board == seen);

    screen.close((left, top), SIZE.0 * CELL);
    assert_eq!(world(&life.line("saved: ")), paused);
    assert!(life.end().success());
    assert_eq!(fs::read_to_string(file).unwrap(), seen.to_string());
}

#[test]
fn program_ends_only_after_the_save() {
    let screen = Screen::new();
    let file = screen.file("board");
    // The save continues when the test reads from this pipe.
    let pipe = screen.file("board.new");
    run(Command::new("mkfifo").arg(&pipe));
    let mut life = start(&screen, &file);
    let corner = screen.window(SIZE);

    screen.close(corner, SIZE.0 * CELL);
    life.line("closed");
    until("the window has gone", || {
        screen.picture().corner().is_none().then_some(())
    });
    assert!(!life.has_ended());
    let saved = read(pipe);
    assert!(life.end().success());
    let (_, live) = world(&life.line("saved: "));
    assert_eq!(saved.matches('O').count(), live);
    assert_eq!(saved.lines().count(), SIZE.1);
}

#[test]
fn saved_board_is_loaded_and_ctrl_c_saves_it_again() {
    let screen = Screen::new();
    let file = screen.file("board");
    // A block, which never changes.
    let empty = ".".repeat(60);
    let block = format!("{}OO{}", &empty[..20], &empty[22..]);
    let rows = |y| if y == 7 || y == 8 { &block } else { &empty };
    let text: String = (0..30).map(|y| format!("{}\n", rows(y))).collect();
    fs::write(&file, &text).unwrap();
    let mut life = start(&screen, &file);
    screen.window((60, 30));
    screen.board(|board| board.to_string() == text);

    run(Command::new("kill").args(["-INT", &life.id()]));
    assert_eq!(world(&life.line("saved: ")).1, 4);
    assert!(life.end().success());
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn file_without_a_board_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter");
    fs::write(&file, "Dear John").unwrap();
    let mut life = Command::new(env!("CARGO_BIN_EXE_life"));
    let output = life.arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.ends_with("row 1 has a cell 'D'\n"), "{error:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "Dear John");
}
