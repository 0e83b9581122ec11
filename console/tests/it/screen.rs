//! The screen, on a terminal of 80 x 24 that only a test sees.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use greenroom_console::feed::{Fed, LineOrigin};
use greenroom_console::input::action;
use greenroom_console::session::{Demand, Session};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::lines::{Lines, program};

/// A session with its screen.
pub struct Shown {
    pub session: Session,
    terminal: Terminal<TestBackend>,
}

impl Shown {
    /// Shows lines.
    pub fn new(lines: &str) -> Self {
        let origin = LineOrigin::Live("http://127.0.0.1:5050".parse().unwrap(), None);
        let mut shown = Shown {
            session: Session::new(&origin, None),
            terminal: Terminal::new(TestBackend::new(80, 24)).unwrap(),
        };
        shown.session.take(Fed::Begins);
        let demand = shown.session.take(Fed::Lines(lines.as_bytes().to_vec()));
        assert_eq!(demand, Demand::Draw);
        shown
    }

    /// Presses keys: characters, or `Enter`, `Esc`, `Down`.
    pub fn press(&mut self, keys: &[&str]) -> String {
        for key in keys {
            let code = match *key {
                "Enter" => KeyCode::Enter,
                "Esc" => KeyCode::Esc,
                "Down" => KeyCode::Down,
                "Tab" => KeyCode::Tab,
                other => KeyCode::Char(other.chars().next().unwrap()),
            };
            let event = Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
            let typing = self.session.screen.is_typing();
            if let Some(action) = action(&event, typing) {
                self.session.act(action);
            }
        }
        self.text()
    }

    /// Returns the text of the screen.
    pub fn text(&mut self) -> String {
        let Session { model, screen, .. } = &mut self.session;
        let drawn = self
            .terminal
            .draw(|frame| screen.draw(model, frame.area(), frame.buffer_mut()));
        drawn.unwrap();
        let buffer = self.terminal.backend().buffer();
        let rows = buffer.content().chunks(80);
        let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
        rows.map(|row| row.trim_end().to_owned() + "\n").collect()
    }
}

#[track_caller]
pub fn assert_shows(screen: &str, parts: &[&str]) {
    for part in parts {
        assert!(screen.contains(part), "no {part:?} in\n{screen}");
    }
}

#[test]
fn the_start_view_names_each_culprit_among_100_000_actors() {
    let (lines, culprits) = program(7, 100_000);
    let mut shown = Shown::new(lines.text());
    let screen = shown.text();
    println!("{screen}");
    let names = [
        format!("stuck          1 vault #{}", culprits.stuck),
        format!("slow           1 report #{}", culprits.slow),
        format!("growing        1 audit #{}", culprits.growing),
        format!("faulting       1 parser #{}", culprits.faulting),
    ];
    let squeezed: Vec<String> = screen.lines().map(squeeze).collect();
    for name in &names {
        let name = squeeze(name);
        assert!(
            squeezed.iter().any(|row| row.contains(&name)),
            "no {name}:\n{screen}"
        );
    }
    assert_shows(
        &screen,
        &[
            "waits for a lock for 11 s; 5 actors wait for it; 12 messages wait",
            "in one turn for 1.2 s on worker 1",
            "1820 messages in the mailbox, 120 more each second; takes 40",
            "14 restarts, the last after: bad digit in line 28",
            "100 000",
        ],
    );
}

/// Returns a text with single spaces.
pub fn squeeze(text: impl AsRef<str>) -> String {
    let words: Vec<_> = text.as_ref().split_whitespace().collect();
    words.join(" ")
}

#[test]
fn one_key_explains_the_first_suspect() {
    let (lines, culprits) = program(7, 1_000);
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["Enter"]);
    println!("{screen}");
    let why = format!("Why vault #{}", culprits.stuck);
    assert_shows(
        &screen,
        &[&why, "=> until then it takes no message: a lock"],
    );
    let screen = shown.press(&["Down"]);
    println!("{screen}");
    let why = format!("Why report #{}", culprits.slow);
    assert_shows(&screen, &[&why, "worker 1 runs nothing else"]);
    // The start view has a cursor of its own.
    let why = format!("Why vault #{}", culprits.stuck);
    assert_shows(&shown.press(&["1", "Enter"]), &[&why]);
}

#[test]
fn the_cursor_stays_at_its_suspect_when_others_come() {
    let slow = |busy_us: u64| {
        format!(
            r#""state":"waiting","sampled":{{"turns":1,"busy_us":{busy_us},"longest_us":{busy_us}}}"#
        )
    };
    let mut lines = Lines::new();
    lines.actor(1, "first", &slow(90_000));
    lines.actor(2, "second", &slow(80_000));
    lines.tick();
    let mut shown = Shown::new(lines.text());
    assert_shows(&shown.press(&["3", "Down"]), &["Why second #2"]);
    let before = lines.text().len();
    lines.actor(3, "worse", &slow(200_000));
    lines.tick();
    let more = lines.text().as_bytes()[before..].to_vec();
    shown.session.take(Fed::Lines(more));
    let screen = shown.text();
    assert_shows(&screen, &["Suspects: 3", "Why second #2"]);
}

#[test]
fn actors_are_filtered_grouped_and_opened() {
    let (lines, culprits) = program(7, 1_000);
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["2", "M"]);
    println!("{screen}");
    assert_shows(screen.lines().nth(3).unwrap(), &["audit", "1820"]);
    let screen = shown.press(&["\\", "t", "e", "l", "l", "Enter"]);
    assert_shows(&screen, &["5 of 1 000"]);
    let screen = shown.press(&["Esc", "g"]);
    println!("{screen}");
    assert_shows(
        &screen,
        &["6 groups", "991 shop::session", "5 shop::teller"],
    );
    let screen = shown.press(&["g", "/", "p", "a", "r", "s", "e", "Enter", "Enter"]);
    println!("{screen}");
    let label = format!("parser #{}", culprits.faulting);
    assert_shows(
        &screen,
        &[
            &label,
            "Faults: 14 restarts, the last after: bad digit in line 28",
        ],
    );
    assert_shows(&screen, &["has failed (restart 13)"]);
}

#[test]
fn the_tree_has_children_below_their_parents() {
    let mut lines = Lines::new();
    lines.idle(1, "root");
    lines.actor(2, "late", r#""state":"waiting","parent":3"#);
    lines.actor(3, "child", r#""state":"waiting","parent":1"#);
    lines.tick();
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["t", "N"]);
    let rows: Vec<_> = screen.lines().skip(3).take(3).collect();
    assert!(rows[0].ends_with(" root"), "{screen}");
    assert!(rows[1].ends_with("   child"), "{screen}");
    assert!(rows[2].ends_with("     late"), "{screen}");
}

#[test]
fn services_the_log_and_the_keys_are_shown() {
    let (lines, _) = program(7, 1_000);
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["4"]);
    assert_shows(&screen, &["nodes ─", "shop  up", "bank  down"]);
    let screen = shown.press(&["5"]);
    assert_shows(
        &screen,
        &["06:00:10 error   parser #", "bad digit in line 28"],
    );
    let screen = shown.press(&["?"]);
    println!("{screen}");
    assert_shows(
        &screen,
        &["tree of parents", "F10  q            end", "one turn in 64"],
    );
}

#[test]
fn the_start_view_says_that_actors_have_ended_by_a_panic() {
    let mut lines = Lines::new();
    lines.idle(1, "cart");
    let panic = r#""number":1,"at_ms":1732860000000,"level":"error","text":"\"press\" #2 panicked: no paper","actor":2"#;
    lines.event("log", panic);
    lines.tick();
    let mut shown = Shown::new(lines.text());
    assert_shows(&shown.text(), &["1 ended by a panic: the log (5) has them"]);
    assert_shows(
        &shown.press(&["5"]),
        &["06:00:00 error", "panicked: no paper"],
    );
}

#[test]
fn an_actor_with_a_full_mailbox_is_not_said_to_have_nothing_to_do() {
    let mut lines = Lines::new();
    let waits =
        r#""state":"waiting","mailbox":2,"capacity":2,"waits":[{"for":"noted","what":"a timer"}]"#;
    lines.actor(1, "full", waits);
    lines.tick();
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["2", "w"]);
    assert_shows(
        &screen,
        &["its mailbox is full: 2 of 2", "No cause was found."],
    );
    assert!(!screen.contains("nothing to do"), "{screen}");
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let mut lines = Lines::new();
    lines.idle(1, r"red\u001b[31m\u202ename");
    lines.event("log", r#""level":"warning","text":"bell\u0007""#);
    lines.tick();
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["2"]);
    assert_shows(&screen, &[r"red\u{1b}[31m\u{20"]);
    assert_shows(&shown.press(&["5"]), &[r"bell\u{7}"]);
}

#[test]
fn a_small_terminal_is_no_fault() {
    let (lines, _) = program(7, 1_000);
    let mut shown = Shown::new(lines.text());
    for key in ["1", "2", "3", "4", "5", "?"] {
        shown.press(&[key]);
        for (width, height) in [(1, 1), (20, 6), (30, 8), (200, 60)] {
            let area = ratatui::layout::Rect::new(0, 0, width, height);
            let mut buffer = ratatui::buffer::Buffer::empty(area);
            let Session { model, screen, .. } = &mut shown.session;
            screen.draw(model, area, &mut buffer);
        }
    }
}
