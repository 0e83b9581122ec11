//! Examples without arguments, run as their users run them: each prints what its head says.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::child::{example, finish};

/// Returns what the head of an example says that it prints: its last block of text.
fn said_by(source: &str) -> Option<String> {
    let head: Vec<_> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .collect();
    if !head.iter().any(|line| line.ends_with("prints:")) {
        return None;
    }
    let end = head.iter().rposition(|line| line.trim() == "```")?;
    let start = head[..end]
        .iter()
        .rposition(|line| line.trim() == "```text")?;
    let said = head[start + 1..end].iter();
    Some(said.map(|line| format!("{}\n", &line[1..])).collect())
}

/// Returns whether this warning only tells that the machine is busy.
fn is_late(line: &str) -> bool {
    let is_of_time = line.contains(" held ") || line.contains("the shutdown waits for ");
    line.starts_with("greenroom: ") && is_of_time
}

#[test]
fn each_example_that_says_what_it_prints_prints_that() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(source) = std::fs::read_to_string(&path) else {
            continue;
        };
        let Some(said) = said_by(&source) else {
            continue;
        };
        let name = path.file_stem().unwrap().to_str().unwrap();
        let mut command = Command::new(example(name));
        let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{name}: {out}{err}");
        let mistakes = err.lines().filter(|line| !is_late(line));
        let mistakes: String = mistakes.collect();
        assert_eq!((out, mistakes), (said, String::new()), "{name}");
        count += 1;
    }
    assert!(count > 8, "too few examples were found: {count}");
}
