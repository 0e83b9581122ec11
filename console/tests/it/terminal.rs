//! The program in a terminal of 80 x 24.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::MouseProtocolMode;

use crate::lines::program;
use crate::screen::squeeze;

/// Only a program that hangs takes so long.
pub const WATCHDOG: Duration = Duration::from_secs(300);

/// The most memory of the console with 100 000 actors.
const MEMORY_MAX_KB: u64 = 64 << 10;

/// The program, and its screen.
pub struct InTerminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    terminal: Box<dyn MasterPty + Send>,
    modes_before: String,
}

/// Returns the local modes of a terminal.
fn modes(terminal: &dyn MasterPty) -> String {
    format!("{:?}", terminal.get_termios().unwrap().local_flags)
}

impl InTerminal {
    pub fn new(arguments: &[&str]) -> Self {
        Self::with(arguments, &[])
    }

    /// Starts the program with these variables.
    fn with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let size = PtySize {
            rows: 24,
            cols: 80,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_greenroom-console"));
        command.args(arguments);
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        for (name, value) in variables {
            command.env(name, value);
        }
        let modes_before = modes(&*pair.master);
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        InTerminal {
            child,
            keys: pair.master.take_writer().unwrap(),
            output,
            parser: vt100::Parser::new(24, 80, 0),
            terminal: pair.master,
            modes_before,
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the screen has a text, in which spaces do not count.
    pub fn until(&mut self, text: &str) -> String {
        self.until_screen(text, |screen| squeeze(screen).contains(text))
    }

    /// Waits until the screen is as it should be, and returns it.
    pub fn until_screen(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(begin.elapsed() < WATCHDOG, "no {what:?} in\n{screen}");
            self.read();
        }
    }

    /// Returns the text of the screen.
    pub fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Reads what the program writes, or nothing for a while.
    pub fn read(&mut self) {
        match self.output.recv_timeout(Duration::from_millis(100)) {
            Ok(bytes) => self.parser.process(&bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(error) => panic!("{error}:\n{}", self.screen()),
        }
    }

    /// Presses a button of the mouse at a place, or turns its wheel.
    fn click(&mut self, button: u8, column: u16, row: u16) {
        let (column, row) = (column + 1, row + 1);
        self.press(&format!("\x1b[<{button};{column};{row}M"));
    }

    /// Returns whether a cell is reversed.
    fn is_reversed(&self, column: u16, row: u16) -> bool {
        let cell = self.parser.screen().cell(row, column);
        cell.is_some_and(|cell| cell.inverse())
    }

    /// Waits until the cursor is in this row of the screen.
    fn until_cursor(&mut self, row: u16) {
        let begin = Instant::now();
        while !self.is_reversed(0, row) {
            assert!(
                begin.elapsed() < WATCHDOG,
                "no cursor at {row}:\n{}",
                self.screen()
            );
            self.read();
        }
    }

    /// Waits for the end of the program, and reads what it has written.
    fn ended(&mut self) -> u32 {
        let status = self.child.wait().unwrap();
        // The reader ends with the terminal.
        while let Ok(bytes) = self.output.recv_timeout(WATCHDOG) {
            self.parser.process(&bytes);
        }
        status.exit_code()
    }

    /// Checks the most memory that the program has had.
    #[cfg(target_os = "linux")]
    pub fn assert_small(&self) {
        let pid = self.child.process_id().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let mut lines = status.lines();
        let peak = lines.find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        println!("at most {peak} kB");
        assert!(peak <= MEMORY_MAX_KB, "{peak} kB");
    }

    #[cfg(not(target_os = "linux"))]
    pub fn assert_small(&self) {}

    /// Presses a key that ends the program, and waits for that.
    pub fn end(mut self) {
        self.press("q");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// Writes a record in which all refreshes come at once.
fn record(path: &Path, actors: u64) -> crate::lines::Culprits {
    let (lines, culprits) = program(7, actors);
    let mut text = String::new();
    for line in lines.text().lines() {
        text += &format!("{{\"at_ms\":1732860000000,\"line\":{line}}}\n");
    }
    std::fs::write(path, text).unwrap();
    culprits
}

#[test]
fn a_reader_names_each_culprit_within_three_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let culprits = record(&path, 100_000);
    let mut console = InTerminal::new(&["--replay", path.to_str().unwrap()]);
    // The start view, without a key.
    console.until("the record is over");
    for text in [
        format!("stuck 1 vault #{}", culprits.stuck),
        format!("slow 1 report #{}", culprits.slow),
        format!("growing 1 audit #{}", culprits.growing),
        format!("faulting 1 parser #{}", culprits.faulting),
    ] {
        console.until(&text);
    }
    console.assert_small();
    // Each cause with Enter, and as many steps down.
    for (keys, text) in [
        ("\r", "until then it takes no message: a lock".to_owned()),
        ("j", format!("Why report #{}", culprits.slow)),
        ("j", format!("Why audit #{}", culprits.growing)),
        ("\r", "function shop::audit".to_owned()),
        (
            "5",
            "has failed (restart 14): bad digit in line 28".to_owned(),
        ),
    ] {
        console.press(keys);
        let screen = console.until(&text);
        println!("{screen}\n");
    }
    console.end();
}

/// Sends a signal to a process.
pub fn signal(name: &str, pid: u32) {
    let kill = format!("kill -{name} {pid}");
    let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(status.success(), "{kill}");
}

/// The buttons of a mouse, as terminals send them.
const LEFT: u8 = 0;
const WHEEL_UP: u8 = 64;
const WHEEL_DOWN: u8 = 65;

#[test]
fn the_mouse_chooses_views_rows_and_columns_and_the_wheel_moves_the_cursor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let culprits = record(&path, 1_000);
    let mut console = InTerminal::new(&["--replay", path.to_str().unwrap()]);
    console.until("the record is over");
    // " 1 Runtime  2 Actors "
    console.click(LEFT, 14, 1);
    console.until("MAILBOX");
    console.until_cursor(3);
    console.click(WHEEL_DOWN, 40, 10);
    console.until_cursor(6);
    console.click(WHEEL_UP, 40, 10);
    console.until_cursor(3);
    // The head of a column, and the first row below it.
    console.click(LEFT, 17, 2);
    // A frame may come in parts.
    console.until_screen("the most messages first", |screen| {
        let first = screen.lines().nth(3);
        squeeze(screen).contains("MAILBOX▼") && first.is_some_and(|row| row.contains("audit"))
    });
    console.click(LEFT, 30, 4);
    console.until_cursor(4);
    console.click(LEFT, 30, 4);
    console.until(&format!("vault #{}", culprits.stuck));
    console.until("function shop::vault");
    // A name at the foot.
    console.click(LEFT, 2, 23);
    console.until("tree of parents");
    console.click(LEFT, 2, 1);
    console.end();
}

#[test]
fn a_signal_ends_the_program_and_restores_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    record(&path, 1_000);
    for (name, status) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let mut console = InTerminal::new(&["--replay", path.to_str().unwrap()]);
        console.until("the record is over");
        let screen = console.parser.screen();
        assert!(screen.alternate_screen() && screen.hide_cursor(), "{name}");
        assert_ne!(screen.mouse_protocol_mode(), MouseProtocolMode::None);
        assert!(!modes(&*console.terminal).contains("ICANON"), "{name}");
        signal(name, console.child.process_id().unwrap());
        assert_eq!(console.ended(), status, "{name}");
        let screen = console.parser.screen();
        assert!(
            !screen.alternate_screen() && !screen.hide_cursor(),
            "{name}"
        );
        assert_eq!(screen.mouse_protocol_mode(), MouseProtocolMode::None);
        assert!(console.modes_before.contains("ICANON"));
        assert_eq!(modes(&*console.terminal), console.modes_before, "{name}");
    }
}

#[test]
fn without_colours_the_cursor_and_the_heads_are_reversed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    record(&path, 1_000);
    let arguments = ["--replay", path.to_str().unwrap()];
    for (value, has_colors) in [("1", false), ("", true)] {
        let mut console = InTerminal::with(&arguments, &[("NO_COLOR", value)]);
        console.until("the record is over");
        console.press("2");
        console.until("MAILBOX");
        console.until_cursor(3);
        let screen = console.parser.screen();
        let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
        let mut cells = cells.filter_map(|(row, column)| screen.cell(row, column));
        let is_colored =
            |cell: &vt100::Cell| [cell.fgcolor(), cell.bgcolor()] != [vt100::Color::Default; 2];
        assert_eq!(cells.any(is_colored), has_colors, "{value}");
        assert_eq!(console.is_reversed(0, 0), !has_colors, "{value}");
        console.end();
    }
}

#[test]
fn a_newer_version_ends_the_program_with_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    std::fs::write(&path, "{\"protocol\":2}\n").unwrap();
    let mut console = InTerminal::new(&["--replay", path.to_str().unwrap()]);
    console.until("greenroom-console: the program speaks version 2 of the protocol");
    let status = console.child.wait().unwrap();
    assert_eq!(status.exit_code(), 1);
}

#[test]
fn an_unreachable_program_is_said_and_the_keys_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no_socket");
    let mut console = InTerminal::new(&[path.to_str().unwrap()]);
    console.until("lost: No such file or directory (os error 2); again in");
    console.press("?");
    console.until("tree of parents");
    console.press("?");
    console.end();
}
