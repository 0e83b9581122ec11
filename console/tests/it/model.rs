//! The lines of the protocol, and those that are none.

use greenroom_console::feed::read_record;
use greenroom_console::model::{Applied, BadLine, Model};

use crate::lines::Lines;

fn apply_all(model: &mut Model, lines: &Lines) {
    for line in lines.text().lines() {
        model.apply(line.as_bytes()).unwrap();
    }
}

#[test]
fn a_newer_version_is_refused_with_a_sentence() {
    let mut model = Model::default();
    // Nothing but the version is known of it.
    let error = model.apply(br#"{"protocol":2,"features":7}"#).unwrap_err();
    assert_eq!(error, BadLine::Protocol(2));
    assert!(
        error
            .to_string()
            .starts_with("the program speaks version 2"),
        "{error}"
    );
}

#[test]
fn a_gap_is_seen_and_a_new_connection_begins_anew() {
    let mut lines = Lines::new();
    lines.idle(1, "kept");
    lines.tick();
    let mut model = Model::default();
    apply_all(&mut model, &lines);
    let gap = model.apply(br#"{"seq":9,"event":"ended","id":1}"#);
    assert_eq!(
        gap,
        Err(BadLine::Gap {
            expected: 4,
            came: 9
        })
    );
    assert!(model.actor(1).is_some(), "the line was not applied");

    model.begin();
    assert!(!model.is_whole());
    apply_all(&mut model, &Lines::new());
    assert!(model.actor(1).is_none());
}

#[test]
fn unknown_events_and_fields_are_ignored() {
    let mut lines = Lines::new();
    lines.event("weather", r#""sun":true"#);
    lines.actor(
        1,
        "new",
        r#""state":"dancing","colour":"red","waits":[{"for":"rain"}]"#,
    );
    lines.tick();
    let mut model = Model::default();
    apply_all(&mut model, &lines);
    assert_eq!(model.label(1), "new #1");
    let unclear = model.apply(b"no JSON");
    assert!(matches!(unclear, Err(BadLine::Unclear(_))));
    let end = model.apply(br#"{"seq":5,"event":"end","why":"it is over"}"#);
    assert_eq!(end, Ok(Applied::Ends("it is over".to_owned())));
}

#[test]
fn a_reset_forgets_actors_and_an_end_removes_one() {
    let mut lines = Lines::new();
    for id in 1..=3 {
        lines.idle(id, "actor");
    }
    lines.event("ended", r#""id":1"#);
    lines.tick();
    let mut model = Model::default();
    apply_all(&mut model, &lines);
    let ids: Vec<_> = [1, 2, 3]
        .map(|id| model.actor(id).map(|actor| actor.id))
        .into();
    assert_eq!(ids, [None, Some(2), Some(3)]);
    model.apply(br#"{"seq":7,"event":"reset"}"#).unwrap();
    assert!(model.actors().is_empty() && !model.is_whole());
}

#[test]
fn rates_are_of_the_last_refresh() {
    let mut lines = Lines::new();
    for (turns, messages) in [(10, 100), (20, 350)] {
        let fields = format!(
            r#""state":"waiting","turns":{turns},"messages":{messages},"busy_us":{}"#,
            turns * 10_000
        );
        lines.actor(1, "a", &fields);
        lines.tick();
    }
    let mut model = Model::default();
    apply_all(&mut model, &lines);
    let actor = model.actor(1).unwrap();
    assert_eq!(model.message_rate(actor), 250);
    assert_eq!(model.busy_share(actor), 100);
    assert_eq!(model.mean_turn_us(actor), 10_000);
    lines.tick();
    let last = lines.text().lines().last().unwrap();
    model.apply(last.as_bytes()).unwrap();
    let actor = model.actor(1).unwrap();
    assert_eq!(
        (model.message_rate(actor), model.still_ms(actor)),
        (0, 1_000)
    );
}

#[test]
fn the_first_sample_makes_no_turn_longer() {
    let mut lines = Lines::new();
    for (turns, sampled, busy_us) in [(60, 0, 0), (70, 1, 8_000)] {
        let fields = format!(
            r#""state":"waiting","turns":{turns},"sampled":{{"turns":{sampled},"busy_us":{busy_us}}}"#
        );
        lines.actor(1, "a", &fields);
        lines.tick();
    }
    let mut model = Model::default();
    apply_all(&mut model, &lines);
    let actor = model.actor(1).unwrap();
    assert_eq!(model.mean_turn_us(actor), 8_000);
    assert_eq!(model.busy_share(actor), 80);
}

#[test]
fn a_fault_that_comes_again_after_a_break_is_logged_once() {
    let mut model = Model::default();
    for faults in [2, 3] {
        let mut lines = Lines::new();
        for number in 1..=faults {
            let fields = format!(r#""number":{number},"level":"error","text":"panicked""#);
            lines.event("log", &fields);
        }
        lines.tick();
        model.begin();
        apply_all(&mut model, &lines);
        assert_eq!(model.log().len(), faults);
    }
}

#[test]
fn how_long_an_actor_stands_still_is_known_after_a_break() {
    let mut lines = Lines::new();
    for turns in [7, 8] {
        lines.actor(1, "vault", r#""state":"waiting","turns":3"#);
        lines.actor(2, "cart", &format!(r#""state":"waiting","turns":{turns}"#));
        for _ in 0..9 {
            lines.tick();
        }
        lines.event("reset", "");
    }
    lines.actor(1, "vault", r#""state":"waiting","turns":3"#);
    lines.actor(2, "cart", r#""state":"waiting","turns":9"#);
    lines.tick();
    let mut model = Model::default();
    apply_all(&mut model, &lines);
    let still = |id| model.still_ms(model.actor(id).unwrap());
    assert_eq!((still(1), still(2)), (18_000, 0));
}

#[test]
fn a_fault_is_logged_once() {
    let mut lines = Lines::new();
    for restarts in 0..3 {
        let fields = format!(r#""state":"waiting","restarts":{restarts}"#);
        lines.actor(1, "a", &fields);
        if restarts == 2 {
            lines.event("log", r#""level":"warning","text":"a panicked","actor":1"#);
        }
        lines.tick();
    }
    let mut model = Model::default();
    apply_all(&mut model, &lines);
    let log: Vec<_> = model.log().iter().map(|line| &*line.text).collect();
    assert_eq!(log, ["a #1 has failed (restart 1)", "a panicked"]);
}

/// What a program of version 0.1.0 has sent. Lines that were published are never changed.
const SENT: &str = include_str!("formats/console-1.lines");

/// What a console of version 0.1.0 has recorded of it.
const RECORD: &str = include_str!("formats/record-1.lines");

#[test]
fn the_lines_of_a_program_of_version_0_1_0_are_read() {
    let mut model = Model::default();
    let mut lines = SENT.lines();
    let last = lines.next_back().unwrap();
    for line in lines {
        model.apply(line.as_bytes()).unwrap();
    }
    assert_eq!(model.program().unwrap().greenroom, "0.1.0");
    assert_eq!((model.actors().len(), model.refreshes()), (31, 3));
    let parser = model.actor(9).unwrap();
    assert_eq!(model.text(parser.name), "parser");
    assert_eq!(model.text(parser.fault), "bad digit in line 8");
    assert_eq!((parser.restarts, model.log().len()), (2, 2));
    let audit = model.actor(7).unwrap();
    assert_eq!((audit.capacity, audit.mailbox > 300), (1_000_000, true));
    assert_eq!(model.actor(1025).unwrap().parent, Some(31));
    assert_eq!(model.figures().workers.len(), 2);
    assert_eq!(model.sections()[0].rows, [["shop", "2"]]);
    let end = model.apply(last.as_bytes()).unwrap();
    assert_eq!(end, Applied::Ends("the program ends".into()));
}

#[test]
fn the_record_of_a_console_of_version_0_1_0_is_read() {
    let read: Vec<_> = RECORD
        .lines()
        .map(|line| read_record(line.as_bytes()))
        .collect();
    let times = [0, 250, 500].map(|ms| Some(1_764_000_000_000 + ms));
    let sent = SENT.lines().map(str::as_bytes);
    assert_eq!(read, times.into_iter().zip(sent).collect::<Vec<_>>());
}
