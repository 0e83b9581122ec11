//! From an actor along its waits to the cause.

use greenroom_console::model::Model;
use greenroom_console::why::{LinkKind, Trouble, chain, cycles, suspects};

use crate::lines::Lines;

fn model(lines: &Lines) -> Model {
    let mut model = Model::default();
    for line in lines.text().lines() {
        model.apply(line.as_bytes()).unwrap();
    }
    model
}

/// Adds an actor that waits for others.
fn waits(lines: &mut Lines, id: u64, name: &str, waits: &str) {
    let fields = format!(r#""state":"waiting","waits":[{waits}]"#);
    lines.actor(id, name, &fields);
}

fn causes(model: &Model, id: u64) -> Vec<String> {
    let links = chain(model, id).links.into_iter();
    let causes = links.filter(|link| link.kind == LinkKind::Cause);
    causes.map(|link| link.text).collect()
}

#[test]
fn actors_that_ask_each_other_are_a_cycle_and_come_first() {
    let mut lines = Lines::new();
    waits(&mut lines, 3, "c", r#"{"for":"answer","of":1}"#);
    waits(&mut lines, 1, "a", r#"{"for":"answer","of":2}"#);
    waits(&mut lines, 2, "b", r#"{"for":"room","of":3}"#);
    waits(&mut lines, 9, "outside", r#"{"for":"answer","of":3}"#);
    lines.actor(
        5,
        "other",
        r#""state":"waiting","mailbox":99,"waits":[{"for":"other"}]"#,
    );
    lines.tick();
    lines.tick_after(90);
    let model = model(&lines);
    assert_eq!(cycles(&model), [[1, 2, 3]]);
    assert_eq!(chain(&model, 9).cycle, [1, 2, 3]);
    let found = suspects(&model);
    let stuck: Vec<_> = found
        .of(Trouble::Stuck)
        .iter()
        .map(|suspect| suspect.actor)
        .collect();
    assert_eq!(stuck, [3, 1, 2, 5]);
    assert!(
        found.of(Trouble::Stuck)[0].says.contains("a cycle of 3"),
        "{found:?}"
    );
}

#[test]
fn an_actor_that_a_message_would_wake_is_in_no_cycle() {
    let mut lines = Lines::new();
    waits(&mut lines, 1, "a", r#"{"for":"answer","of":2}"#);
    waits(
        &mut lines,
        2,
        "b",
        r#"{"for":"answer","of":1},{"for":"message"}"#,
    );
    lines.tick();
    assert!(cycles(&model(&lines)).is_empty());
}

#[test]
fn a_full_mailbox_and_a_long_turn_are_found_behind_a_wait() {
    let mut lines = Lines::new();
    waits(&mut lines, 1, "cart", r#"{"for":"answer","of":2}"#);
    waits(&mut lines, 2, "stock", r#"{"for":"room","of":3}"#);
    lines.tick();
    let press = r#""state":"running","mailbox":64,"capacity":64"#;
    lines.actor(3, "press", press);
    let runtime = r#""workers":[{"turns":1,"runs":{"id":3,"for_us":2500000}}]"#;
    lines.event("runtime", runtime);
    lines.tick_after(5);
    let model = model(&lines);
    let texts: Vec<_> = chain(&model, 1)
        .links
        .into_iter()
        .map(|link| link.text)
        .collect();
    assert_eq!(
        texts,
        [
            "cart #1 waits for the answer of stock #2 for 5.0 s",
            "stock #2 waits for room in press #3 for 5.0 s",
            "press #3 is in a turn",
            "its mailbox is full: 64 of 64; it takes 0 messages a second",
            "its turn has taken 2.5 s: worker 0 runs nothing else meanwhile",
        ]
    );
    assert_eq!(causes(&model, 1), texts[4..]);
}

#[test]
fn a_forgotten_reply_leads_to_its_keeper() {
    let mut lines = Lines::new();
    waits(&mut lines, 1, "reader", r#"{"for":"answer","of":2}"#);
    waits(&mut lines, 2, "holder", r#"{"for":"answer","of":3}"#);
    lines.idle(3, "keeper");
    lines.tick();
    lines.tick_after(5);
    let causes = causes(&model(&lines), 1);
    assert_eq!(
        causes,
        ["it has nothing to do: it keeps the reply, and has not answered"]
    );
}

#[test]
fn an_actor_that_is_ready_waits_for_the_turns_on_the_workers() {
    let mut lines = Lines::new();
    lines.actor(1, "late", r#""state":"ready""#);
    lines.actor(2, "hog", r#""state":"running""#);
    let runtime = r#""queued":1,"workers":[{"turns":1,"runs":{"id":2,"for_us":900000}}]"#;
    lines.event("runtime", runtime);
    lines.tick();
    let causes = causes(&model(&lines), 1);
    assert_eq!(causes, ["worker 0 is in a turn of hog #2 for 900 ms"]);
}

#[test]
fn an_actor_without_trouble_is_no_suspect() {
    let mut lines = Lines::new();
    lines.idle(1, "idle");
    waits(
        &mut lines,
        2,
        "sleeper",
        r#"{"for":"noted","what":"a timer"}"#,
    );
    waits(&mut lines, 3, "main", r#"{"for":"end","of":1}"#);
    for _ in 0..5 {
        lines.tick();
    }
    let found = suspects(&model(&lines));
    assert_eq!(found.all().count(), 0, "{found:?}");
}
