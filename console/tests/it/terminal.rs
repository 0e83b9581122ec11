//! The program in a terminal of 80 x 24.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

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
    _terminal: Box<dyn MasterPty + Send>,
}

impl InTerminal {
    pub fn new(arguments: &[&str]) -> Self {
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
            _terminal: pair.master,
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
