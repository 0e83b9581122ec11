//! The screen, on a terminal of 80 x 24 that only a test sees.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use greenroom_console::feed::{Fed, LineOrigin};
use greenroom_console::input::action;
use greenroom_console::session::{Demand, Session};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

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
    assert_shows(&screen, &["ACTORS", "6 groups"]);
    for (count, function) in [("991 ", " shop::session"), ("5 ", " shop::teller")] {
        let is_row = |row: &str| row.trim_start().starts_with(count) && row.ends_with(function);
        assert!(screen.lines().any(is_row), "no {function} in\n{screen}");
    }
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
    // Parents of each other are there, too.
    let mut lines = Lines::new();
    lines.actor(1, "elder", r#""state":"waiting","parent":2"#);
    lines.actor(2, "younger", r#""state":"waiting","parent":1"#);
    lines.tick();
    let screen = Shown::new(lines.text()).press(&["t", "N"]);
    assert_shows(&screen, &["younger\n", "  elder\n"]);
}

/// Returns the cells of the rows of a list.
fn cells(screen: &str) -> Vec<Vec<&str>> {
    let rows = screen.lines().skip(3).take(20);
    let rows = rows.map(|row| row.split_whitespace().collect());
    rows.filter(|row: &Vec<_>| !row.is_empty()).collect()
}

#[test]
fn a_wait_is_estimated_from_the_mailbox_and_the_messages_of_the_last_refreshes() {
    let mut lines = Lines::new();
    for at in 0..8 {
        // Ten messages in every other refresh: five a second.
        let handled = 10 * (at / 2);
        for (id, name, mailbox, messages) in [
            (1, "late", 20, handled),
            (2, "held", 7, 3),
            (3, "calm", 0, handled),
            (4, "late", 20, handled),
            // Its first message has just come.
            (5, "fresh", at / 7, 0),
        ] {
            let fields = format!(
                r#""function":"{name}","state":"ready","mailbox":{mailbox},"messages":{messages}"#
            );
            lines.actor(id, name, &fields);
        }
        lines.tick();
    }
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["2", "W"]);
    println!("{screen}");
    let rows = cells(&screen);
    let waits: Vec<_> = rows.iter().map(|row| (row[0], row[3])).collect();
    let expected = [
        ("2", "stalled"),
        ("1", "≈4.0"),
        ("4", "≈4.0"),
        ("3", "–"),
        ("5", "–"),
    ];
    assert_eq!(waits, expected, "{screen}");
    assert_shows(screen.lines().nth(2).unwrap(), &["WAIT▼"]);
    // That of a group is the mean of its messages.
    let rows = shown.press(&["g"]);
    assert_eq!(cells(&rows)[1][..3], ["2", "40", "≈4.0"], "{rows}");
    let screen = shown.press(&["g", "Down", "Enter"]);
    assert_shows(
        &screen,
        &["wait       ≈4.0 s: the mailbox ÷ messages handled a second"],
    );
    assert_shows(
        &shown.press(&["?"]),
        &["WAIT   estimates how long a message waits"],
    );

    // At the first refresh no rate is known.
    let one = lines
        .text()
        .lines()
        .take(8)
        .map(|line| line.to_owned() + "\n");
    let one: String = one.collect();
    let mut shown = Shown::new(&one);
    let screen = shown.press(&["2", "W"]);
    assert!(
        cells(&screen)[..5].iter().all(|row| row[3] == "–"),
        "{screen}"
    );
}

#[test]
fn the_column_that_sorts_has_a_sign_and_colours_can_be_dropped() {
    let (lines, _) = program(7, 1_000);
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["2", "M"]);
    assert_shows(&screen, &["MAILBOX▼"]);
    assert_shows(&shown.press(&["I"]), &["MAILBOX▲"]);
    shown.session.screen.drop_colors();
    for (view, cursor) in [("1", 3), ("2", 3), ("3", 3), ("4", 0), ("5", 0), ("?", 0)] {
        shown.press(&[view]);
        let buffer = shown.terminal.backend().buffer();
        let cells = buffer.content().iter();
        let mut colored = cells.filter(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset));
        assert_eq!(colored.next(), None, "{view}");
        let is_reversed = |at: (u16, u16)| buffer[at].modifier.contains(Modifier::REVERSED);
        assert!(is_reversed((0, 0)), "the first line stands out");
        let message = "so does the row of the cursor";
        assert!(is_reversed((78, cursor)), "{message}: {buffer:?}");
    }
}

#[test]
fn one_actor_is_shown_with_all_that_is_known_of_it() {
    let mut lines = Lines::new();
    let known = r#""state":"waiting","waits":[{"for":"message"}],"machine":"OPEN\u001b[2J","thread":"nail\u202e","key":"k\u0007","names":["till","desk\u0085"],"groups":["shop\u200b"],"parent":2"#;
    lines.actor(1, "cart", known);
    lines.idle(2, "shop");
    lines.tick();
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["2", "N", "Enter"]);
    println!("{screen}");
    let squeezed = squeeze(&screen);
    let known = r"known as key k\u{7} names till, desk\u{85} groups shop\u{200b} machine OPEN\u{1b}[2J thread nail\u{202e}";
    assert_shows(&squeezed, &[known, "family parent shop #2"]);
    let is_plain = |c: char| !c.is_control() && !"\u{202e}\u{200b}".contains(c);
    assert!(screen.replace('\n', "").chars().all(is_plain));
    // Each of these is found by the filter.
    for text in ["k\\", "desk", "shop\\", "OPEN", "nail"] {
        shown.press(&["2", "Esc", "\\"]);
        let keys: Vec<_> = text.chars().map(String::from).collect();
        shown.press(&keys.iter().map(|key| &**key).collect::<Vec<_>>());
        assert_shows(&shown.press(&["Enter"]), &["1 of 2", "cart"]);
    }
}

#[test]
fn machines_are_counted_by_function_and_state() {
    let mut lines = Lines::new();
    for (id, function, state) in [
        (1, "shop::order", "PAID"),
        (2, "shop::order", "OPEN"),
        (3, "shop::order", "PAID"),
        (4, "shop::lift", "UP\\u001b"),
    ] {
        let fields = format!(r#""function":"{function}","state":"waiting","machine":"{state}""#);
        lines.actor(id, function, &fields);
    }
    lines.idle(5, "plain");
    lines.tick();
    let mut shown = Shown::new(lines.text());
    let screen = shown.press(&["4"]);
    println!("{screen}");
    let rows: Vec<_> = screen.lines().skip(2).take(5).map(squeeze).collect();
    assert!(rows[0].starts_with("machines ─"), "{screen}");
    let expected = [
        "function state count",
        r"shop::lift UP\u{1b} 1",
        "shop::order OPEN 1",
        "shop::order PAID 2",
    ];
    assert_eq!(rows[1..], expected);
}

#[test]
fn a_program_that_sends_nothing_is_said_to_be_silent() {
    let mut lines = Lines::new();
    lines.idle(1, "cart");
    lines.tick();
    lines.tick();
    let mut shown = Shown::new(lines.text());
    assert_shows(&shown.text(), &[" live\n"]);
    // It may be late.
    assert_eq!(shown.session.take(Fed::Silence(2)), Demand::Nothing);
    for seconds in [3, 4] {
        assert_eq!(shown.session.take(Fed::Silence(seconds)), Demand::Draw);
        let text = format!("silent for {seconds} s\n");
        assert_shows(&shown.text(), &[&text]);
        assert_shows(&shown.press(&["2"]), &["cart"]);
    }
    let before = lines.text().len();
    lines.tick();
    let more = lines.text().as_bytes()[before..].to_vec();
    assert_eq!(shown.session.take(Fed::Lines(more)), Demand::Draw);
    assert_shows(&shown.text(), &[" live\n"]);
}

#[test]
fn a_program_with_rare_refreshes_is_not_silent_between_them() {
    let mut lines = Lines::new();
    lines.tick();
    lines.tick_after(5);
    let mut shown = Shown::new(lines.text());
    // Five seconds are between two refreshes.
    assert_eq!(shown.session.take(Fed::Silence(14)), Demand::Nothing);
    assert_eq!(shown.session.take(Fed::Silence(15)), Demand::Draw);
}

#[test]
fn pinned_threads_and_the_longest_turn_are_shown() {
    let mut lines = Lines::new();
    lines.actor(
        1,
        "cart",
        r#""state":"waiting","turns":3,"longest_us":7000,"busy_us":9000"#,
    );
    lines.event(
        "runtime",
        r#""tasks":5,"pinned":3,"blocking":{"threads":2,"idle":1,"waiting":4}"#,
    );
    lines.tick();
    let mut shown = Shown::new(lines.text());
    let totals = "tasks 5   timers 0   injector 0   pinned 3   blocking 2, idle 1, waiting 4";
    assert_shows(&shown.text(), &[totals]);
    assert_shows(&shown.press(&["2"]), &["LONGEST", "7.0 ms"]);
    assert_shows(
        &shown.press(&["Enter"]),
        &["a turn takes 3.0 ms, the longest 7.0 ms"],
    );
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
    assert_shows(&screen, &[r"red\u{1b}[31m"]);
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
