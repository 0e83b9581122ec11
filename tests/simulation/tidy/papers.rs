//! What ARCHITECTURE.md says about the files of `src` is true.

use std::collections::BTreeSet;
use std::path::Path;

use super::{code_of, is_test, root, sources, top_level};

const LINES_MAX: usize = 200;
const COLUMNS_MAX: usize = 100;

/// Returns the path of a file of this package.
fn in_package(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the text of ARCHITECTURE.md.
fn architecture() -> String {
    std::fs::read_to_string(in_package("ARCHITECTURE.md")).unwrap()
}

/// Returns the files that a section of ARCHITECTURE.md lists, as paths below `src`.
fn listed(heading: &str) -> BTreeSet<String> {
    let text = architecture();
    let (_, section) = text
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("ARCHITECTURE.md has no section `{heading}`"));
    let section = section.split("\n## ").next().unwrap();
    let code = section.split('`').skip(1).step_by(2);
    let files = code.filter(|code| code.ends_with(".rs"));
    files.map(str::to_owned).collect()
}

/// Returns the files of `src`, without tests and models, whose code meets the condition.
fn files_with(condition: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let files = sources().into_iter().filter(|path| !is_test(path));
    let files = files.filter(|path| condition(&code_of(path)));
    let below = |path: &Path| {
        path.strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    files.map(|path| below(&path)).collect()
}

/// Returns whether the code names a function of `std::thread` that starts a thread.
fn starts_threads(code: &str) -> bool {
    let is_part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let starts = |item: &str| {
        let name = item.trim().split(|c| !is_part_of_name(c)).next().unwrap();
        ["Builder", "scope", "spawn"].contains(&name) || item.trim().starts_with('*')
    };
    code.match_indices("thread::").any(|(at, module)| {
        let rest = &code[at + module.len()..];
        let items = match rest.strip_prefix('{') {
            Some(list) => top_level(list),
            None => vec![rest],
        };
        !code[..at].ends_with(is_part_of_name) && items.into_iter().any(starts)
    })
}

#[test]
fn architecture_has_at_most_200_lines_of_100_columns() {
    let text = architecture();
    let lines = text.lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines of {LINES_MAX}");
    let is_long = |line: &&str| line.chars().count() > COLUMNS_MAX;
    let long: Vec<_> = text.lines().filter(is_long).collect();
    assert!(long.is_empty(), "longer than {COLUMNS_MAX}: {long:#?}");
}

#[test]
fn architecture_lists_the_files_that_start_threads() {
    let found = files_with(starts_threads);
    assert!(found.len() > 2, "too few files were found: {found:?}");
    assert_eq!(
        found,
        listed("Files that start threads"),
        "the files of `src`, and the list in ARCHITECTURE.md"
    );
}

#[test]
fn architecture_lists_the_files_with_unsafe_code() {
    // `unsafe_code` is denied for the crate, so each file that has any names the lint.
    let found = files_with(|code| code.contains("unsafe_code"));
    assert!(found.len() > 20, "too few files were found: {found:?}");
    assert_eq!(
        found,
        listed("Files with unsafe code"),
        "the files of `src`, and the list in ARCHITECTURE.md"
    );
}

#[test]
fn architecture_names_each_decision() {
    let text = architecture();
    let entries = std::fs::read_dir(in_package("docs/decisions")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let missing: Vec<_> = names
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "not named: {missing:?}");
}

#[test]
fn each_file_that_architecture_names_exists() {
    let text = architecture();
    let words = text.split(|c: char| !c.is_alphanumeric() && !"_/.-".contains(c));
    // A word that begins with a slash is the end of a pattern.
    let is_file =
        |word: &&str| (word.ends_with(".rs") || word.ends_with(".md")) && !word.starts_with('/');
    let named: BTreeSet<&str> = words.filter(is_file).collect();
    assert!(named.len() > 40, "too few files were found: {named:?}");
    let names: BTreeSet<String> = sources()
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let exists = |name: &&&str| {
        let folders = ["", "src", "docs/decisions"];
        let places = folders.map(|folder| in_package(folder).join(name));
        let is_short = !name.contains('/') && names.contains(**name) || **name == "sleep.md";
        is_short || places.iter().any(|path| path.exists())
    };
    let missing: Vec<_> = named.iter().filter(|name| !exists(name)).collect();
    assert_eq!(missing, [&""; 0], "files that do not exist");
}

#[test]
fn thread_starts_in_code_are_detected() {
    for code in [
        "std::thread::spawn(f)",
        "thread::Builder::new()",
        "use std::thread::{JoinHandle, spawn};",
        "use std::thread::*;",
        "thread::scope(|s| ())",
    ] {
        assert!(starts_threads(code), "{code}");
    }
    for code in [
        "worker_thread::spawn(f)",
        "use std::thread::{JoinHandle, ThreadId};",
        "thread::spawned()",
        "std::thread::current().id()",
    ] {
        assert!(!starts_threads(code), "{code}");
    }
}
