//! Tests the program as its user sees it: a window on a screen of its own, a mouse, its close
//! button.
//!
//! The content of the screen is read from the X server, with the parts of the SDL example's tests.

#[path = "../../sdl/tests/window/picture.rs"]
#[expect(dead_code, reason = "what is about boards is for the SDL example")]
mod picture;
#[path = "../../sdl/tests/window/screen.rs"]
#[expect(dead_code, reason = "what is about boards is for the SDL example")]
mod screen;

use std::process::Command;

use screen::{Process, Screen, until};

/// The colours of the lamp: red, green, blue.
const ON: [u8; 3] = [0xff, 0xd0, 0x40];
const OFF: [u8; 3] = [0x30, 0x20, 0x18];
/// The size of the screen, and of the window.
const SCREEN: (usize, usize) = (1280, 1024);
const SIZE: (usize, usize) = (240, 160);
/// A loop that polls has as many idle turns in some milliseconds. X has a few of its own.
const IDLE: u64 = 100;

fn start(screen: &Screen, options: &[&str]) -> Process {
    Process::start(screen.command(env!("CARGO_BIN_EXE_lamp")).args(options))
}

/// Waits until a whole window has this colour, and returns its upper left pixel.
fn shows(screen: &Screen, colour: [u8; 3]) -> (usize, usize) {
    until("the lamp has the colour", || {
        let picture = screen.picture();
        let pixels = (0..SCREEN.0 * SCREEN.1).map(|at| (at % SCREEN.0, at / SCREEN.0));
        let mut lamp = pixels.filter(|&(x, y)| picture.pixel(x, y) == colour);
        let corner = lamp.next()?;
        (lamp.count() + 1 == SIZE.0 * SIZE.1).then_some(corner)
    })
}

/// Returns how often the lamp was switched, and the number of idle turns of the loop.
fn numbers(text: &str) -> (u32, u64) {
    let (switched, turns) = text.split_once(" times, ").unwrap();
    let (_, idle) = turns.split_once(" turns of the loop, ").unwrap();
    let idle = idle.strip_suffix(" idle").unwrap();
    (switched.parse().unwrap(), idle.parse().unwrap())
}

#[test]
fn lamp_blinks_and_closes_by_itself_and_its_loop_sleeps_meanwhile() {
    let screen = Screen::new();
    let mut lamp = start(&screen, &[]);
    lamp.line("closed");
    let (switched, idle) = numbers(&lamp.line("switched "));
    assert_eq!(switched, 20);
    // It takes two seconds. A loop that looked sixty times a second would have more.
    assert!(idle < IDLE, "{idle} idle turns");
    assert!(lamp.end().success());
}

#[test]
fn lamp_that_stays_obeys_mouse_and_close() {
    let screen = Screen::new();
    let mut lamp = start(&screen, &["--stay"]);
    let corner = shows(&screen, OFF);
    for colour in [ON, OFF, ON] {
        screen.click((corner.0 + SIZE.0 / 2, corner.1 + SIZE.1 / 2));
        assert_eq!(shows(&screen, colour), corner);
    }
    screen.close(corner, SIZE.0);
    lamp.line("closed");
    let (switched, idle) = numbers(&lamp.line("switched "));
    assert_eq!(switched, 3);
    assert!(idle < IDLE, "{idle} idle turns");
    assert!(lamp.end().success());
}

#[test]
fn program_without_a_screen_says_so() {
    let mut lamp = Command::new(env!("CARGO_BIN_EXE_lamp"));
    let output = lamp
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with("lamp: ") && error.lines().count() == 1,
        "{error:?}"
    );
}
