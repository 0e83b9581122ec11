//! Examples without arguments, run as their users run them: each prints what its head says.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::child::{example, finish};

fn prints_what_its_head_says(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"));
    let source = std::fs::read_to_string(path).unwrap();
    let head: Vec<_> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .collect();
    let is_fence = |line: &&str| line.trim() == "```";
    let end = head
        .iter()
        .rposition(is_fence)
        .expect("it shows what it prints");
    let start = head[..end]
        .iter()
        .rposition(|line| line.trim() == "```text")
        .unwrap();
    let said: String = head[start + 1..end]
        .iter()
        .map(|line| format!("{}\n", &line[1..]))
        .collect();

    let mut command = Command::new(example(name));
    let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{out}{err}");
    assert_eq!((out, err), (said, String::new()));
}

#[test]
fn back_pressure_prints_what_its_head_says() {
    prints_what_its_head_says("back_pressure");
}

#[test]
fn cache_prints_what_its_head_says() {
    prints_what_its_head_says("cache");
}

#[test]
fn job_market_prints_what_its_head_says() {
    prints_what_its_head_says("job_market");
}

#[test]
fn pipeline_prints_what_its_head_says() {
    prints_what_its_head_says("pipeline");
}

#[test]
fn save_on_quit_prints_what_its_head_says() {
    prints_what_its_head_says("save_on_quit");
}

#[test]
fn shut_down_prints_what_its_head_says() {
    prints_what_its_head_says("shut_down");
}
