//! The example `five_messages`: what it prints, and how long it is.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::child::{example, finish};

const SOURCE: &str = include_str!("../../examples/five_messages.rs");

/// The most lines that the example may have, without blank lines and comments.
const LINES: usize = 50;

#[test]
fn five_messages_are_handled() {
    let mut command = Command::new(example("five_messages"));
    let command = command.env_remove("GREENROOM_LOG").stdout(Stdio::piped());
    let output = finish(command.stderr(Stdio::piped()));
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!((&*out, &*err), ("Ada has 70\n", ""));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn five_messages_take_few_lines() {
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    let lines = SOURCE.lines().map(str::trim).filter(is_code).count();
    assert!(lines <= LINES, "{lines} lines are more than {LINES}");
}

/// `cargo fmt` leaves the braces of a macro alone, so their content is formatted as a module.
#[test]
fn five_messages_are_formatted() {
    let plain = SOURCE
        .replace("greenroom::handlers! {", "mod handlers {")
        .replace("pub impl Account as Bank, Message {", "impl Account {");
    assert_ne!(plain, SOURCE);
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition=2024", "--config=max_width=100"]);
    let rustfmt = rustfmt.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut rustfmt = rustfmt.expect("rustfmt is installed");
    let mut input = rustfmt.stdin.take().unwrap();
    input.write_all(plain.as_bytes()).unwrap();
    drop(input);
    let formatted = rustfmt.wait_with_output().unwrap().stdout;
    assert_eq!(String::from_utf8(formatted).unwrap(), plain);
}
