//! Prints the commands and the checks of this repository: `cargo xtask help`.
//!
//! The commands are the text of `commands.txt`. The checks are the rows of `.ci/table.sh`, each with
//! the first sentence of its comment in `.ci/checks/`.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::{env, fs, process};

const COMMANDS: &str = include_str!("commands.txt");
const TABLE: &str = include_str!("../../.ci/table.sh");

/// A row of the table.
struct Check {
    name: &'static str,
    /// In which runs it is.
    runs: Runs,
    /// What it needs of the machine: tools, and folders of packages.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the tests read it"))]
    needs: Vec<&'static str>,
}

/// The runs that a check is a part of.
#[derive(Clone, Copy, PartialEq)]
enum Runs {
    /// Those without names.
    Gate,
    /// Those with `--all`, and no others.
    All,
    /// Those that name it.
    Named,
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let is_help = matches!(words.as_slice(), [] | [_]) && words.iter().all(|word| word == "help");
    if !is_help {
        eprintln!("usage: cargo xtask help");
        process::exit(2);
    }
    print!("{}", help());
}

/// Returns what `cargo xtask help` prints.
fn help() -> String {
    let sources = sources();
    let mut text = COMMANDS.to_owned();
    for (heading, runs) in [
        ("Checks of `bash .ci/run`", Runs::Gate),
        ("Checks of `bash .ci/run --all` alone", Runs::All),
        ("Checks that run only by name", Runs::Named),
    ] {
        text += &format!("\n{heading}\n");
        for check in checks().filter(|check| check.runs == runs) {
            let says = first_sentence(&sources, check.name).unwrap_or_default();
            text += &format!("  {:<17}  {says}\n", check.name);
        }
    }
    text
}

/// Returns the rows of the table.
fn checks() -> impl Iterator<Item = Check> {
    let (_, table) = TABLE.split_once("TABLE='\n").expect("a table");
    let (table, _) = table.split_once("\n'").expect("the end of the table");
    table.lines().map(|row| {
        let columns: Vec<&str> = row.split_whitespace().collect();
        Check {
            name: columns[0],
            runs: match columns[3] {
                "each" | "gate" => Runs::Gate,
                "all" => Runs::All,
                "named" => Runs::Named,
                other => panic!("{} is in no run: {other}", columns[0]),
            },
            needs: columns[5..].to_vec(),
        }
    })
}

/// Returns the text of all files of `.ci/checks/`.
fn sources() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/checks");
    let files = fs::read_dir(folder).expect("the checks");
    files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

/// Returns the first sentence of the comment above a function of the checks.
fn first_sentence(sources: &str, function: &str) -> Option<String> {
    let (before, _) = sources.split_once(&format!("\n{function}() {{\n"))?;
    let comment = before.lines().rev();
    let mut comment: Vec<&str> = comment.map_while(|line| line.strip_prefix("# ")).collect();
    comment.reverse();
    let comment = comment.join(" ");
    let sentence = comment.split(". ").next()?.trim_end_matches('.');
    (!sentence.is_empty()).then(|| sentence.to_owned())
}
