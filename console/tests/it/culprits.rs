//! The example `culprits`, whose actors are looked at in a terminal.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;

use crate::screen::squeeze;
use crate::terminal::{InTerminal, WATCHDOG, signal};

/// Keys that a terminal sends.
const END: &str = "\x1b[F";
const HOME: &str = "\x1b[H";

/// The running example, which ends with this.
struct Program {
    child: Child,
    /// Its input. The program ends with it.
    _input: ChildStdin,
    url: String,
    /// The names of the culprits: of the stuck, the slow, the growing and the faulting one.
    culprits: Vec<(String, String)>,
}

impl Program {
    fn new(actors: usize) -> Self {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().and_then(Path::parent).unwrap();
        let example = profile.join("examples/culprits");
        assert!(
            example.is_file(),
            "{} is not built: `cargo test` builds it, `cargo test --test it` alone does not",
            example.display(),
        );
        let mut child = Command::new(example)
            .args(["--actors", &actors.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.take(5).map(|line| line.unwrap());
        let url = lines.next().unwrap();
        let culprits = lines.map(|line| {
            let (trouble, label) = line.split_once(' ').unwrap();
            (trouble.to_owned(), label.to_owned())
        });
        Program {
            culprits: culprits.collect(),
            _input: child.stdin.take().unwrap(),
            child,
            url,
        }
    }

    /// Returns the number of a culprit, such as `#7`.
    fn number(&self, culprit: usize) -> &str {
        let (_, label) = &self.culprits[culprit];
        label.split(' ').nth(1).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether a row of the start view names the first suspect of a kind.
fn names(screen: &str, trouble: &str, label: &str) -> bool {
    screen.lines().map(squeeze).any(|row| {
        let mut words = row.splitn(3, ' ');
        let is_row = words.next() == Some(trouble);
        is_row && words.nth(1) == Some(label)
    })
}

/// Returns the pages that have screens of this program. The package alone has not the guide.
fn pages() -> Vec<String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![package.join("README.md")];
    if package.join("../src").is_dir() {
        pages.push(package.join("../src/docs/guide/look.md"));
    }
    let texts = pages.iter().map(std::fs::read_to_string);
    texts.collect::<Result<_, _>>().unwrap()
}

/// Checks that the pictures of the pages are among these screens, but for their figures.
fn assert_pictures(screens: &[String]) {
    let is_of = |picture: &[String], screen: &String| {
        let rows: Vec<_> = screen.lines().map(squeeze).collect();
        let is_there = |key: &String| rows.iter().any(|row| row.contains(key));
        picture.iter().all(is_there)
    };
    let pages = pages();
    let pictures = pages
        .iter()
        .flat_map(|page| page.split("```text\n").skip(1));
    for picture in pictures {
        let picture = picture.split("```").next().unwrap();
        let rows = picture.lines().filter(|row| {
            let signs = ["─", "->", "=>", " #", " NAME "];
            signs.iter().any(|sign| row.contains(sign))
        });
        // What is before the first figure.
        let keys = rows.map(|row| squeeze(row.split(|c: char| c.is_ascii_digit()).next().unwrap()));
        let keys: Vec<_> = keys.collect();
        assert!(!keys.is_empty(), "it is no screen:\n{picture}");
        assert!(
            screens.iter().any(|screen| is_of(&keys, screen)),
            "no screen has {keys:?}; with --nocapture this test prints the present ones"
        );
    }
}

#[test]
fn three_keys_lead_to_each_culprit_of_a_program_and_its_cause() {
    let program = Program::new(100_000);
    let mut console = InTerminal::new(&[&program.url]);
    // Without a key.
    for (trouble, label) in &program.culprits {
        console.until_screen(label, |screen| names(screen, trouble, label));
    }
    let mut screens = vec![console.until("Look at")];
    let causes = [
        ("\r", "it keeps the reply, and has not answered"),
        ("j\r", "=> its turns are long: up to"),
        ("jj\r", "wait in its mailbox"),
        (&format!("{END}\r"), "=> it has failed:"),
    ];
    for ((keys, cause), (_, label)) in causes.into_iter().zip(&program.culprits) {
        console.press(&format!("1{HOME}"));
        console.until("Look at");
        console.press(keys);
        let why = format!("Why {label} ");
        let screen = console.until_screen(cause, |screen| {
            let screen = squeeze(screen);
            let mut all = program.culprits.iter();
            let has_all =
                all.all(|(trouble, label)| screen.contains(&format!("{trouble} {label}")));
            has_all && screen.contains(&why) && screen.contains(cause)
        });
        screens.push(screen);
    }
    for (keys, text) in [
        ("\r", "Faults:"),
        ("2T", "LONGEST▼"),
        (&format!("M{HOME}"), "audit"),
        ("\r", "waits for a timer"),
        ("2t", "LONGEST"),
        ("5", program.number(3)),
    ] {
        console.press(keys);
        screens.push(console.until(text));
    }
    console.assert_small();
    console.end();
    println!("{}", screens.join("\n\n"));
    assert_pictures(&screens);
}

#[test]
fn a_stopped_program_is_silent_until_it_goes_on() {
    let program = Program::new(1_000);
    let mut console = InTerminal::new(&[&program.url]);
    let (trouble, label) = &program.culprits[0];
    console.until_screen(label, |screen| names(screen, trouble, label));
    signal("STOP", program.child.id());
    let silent = console.until("silent for");
    assert!(names(&silent, trouble, label), "{silent}");
    signal("CONT", program.child.id());
    console.until_screen("live", |screen| {
        let mut rows = screen.lines();
        rows.next()
            .is_some_and(|row| row.trim_end().ends_with("live"))
    });
    console.end();
}

/// Returns a screen without its first line, which has the origin of the lines.
fn body(screen: &str) -> String {
    let rows = screen.lines().skip(1);
    rows.map(|row| row.trim_end().to_owned() + "\n").collect()
}

/// Waits until two consoles show the same view.
fn assert_same(live: &mut InTerminal, replay: &mut InTerminal, view: &str) {
    let begin = Instant::now();
    loop {
        let [left, right] = [live.screen(), replay.screen()].map(|screen| body(&screen));
        if left == right && left.contains(view) {
            return;
        }
        assert!(begin.elapsed() < WATCHDOG, "{view}:\n{left}\n{right}");
        live.read();
        replay.read();
    }
}

#[test]
fn a_replay_shows_what_was_recorded_of_a_program() {
    let program = Program::new(1_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let path = path.to_str().unwrap();
    let mut live = InTerminal::new(&["--record", path, &program.url]);
    for (trouble, label) in &program.culprits {
        live.until_screen(label, |screen| names(screen, trouble, label));
    }
    live.press("Z");
    live.until("paused");
    let mut replay = InTerminal::new(&["--replay", path]);
    replay.until("the record is over");
    for (keys, view) in [
        ("1".to_owned(), "Look at"),
        ("2M".to_owned(), "LONGEST"),
        (format!("3{HOME}"), "Why vault"),
        ("5".to_owned(), "Enter opens"),
    ] {
        live.press(&keys);
        replay.press(&keys);
        assert_same(&mut live, &mut replay, view);
    }
    live.end();
    replay.end();
}
