//! The rules of the tree that no compiler checks.
//!
//! The parts check the imports, the names of types, the modules that may use `std` directly, how wakers
//! are kept, and what ARCHITECTURE.md says about the files of `src`.

mod imports;
mod names;
mod papers;
mod std_use;
mod wakers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Adds the paths of all Rust files of a folder.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

/// Returns the paths of all Rust files of the library and of the packages beside it, as far as they are
/// here: a published package has only its own.
fn package_sources() -> Vec<PathBuf> {
    let mut found = sources();
    for package in ["cluster", "console", "durable", "http", "soak", "tokio"] {
        let folder = root().with_file_name(package).join("src");
        if folder.is_dir() {
            walk(&folder, &mut found);
        }
    }
    found
}

/// Returns the paths of all Rust files of `src`.
pub(crate) fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root(), &mut found);
    found.sort();
    assert!(found.len() > 20, "too few files were found: {found:?}");
    found
}

/// Returns the path of `src`.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the top-level module that a file belongs to.
fn module_of(path: &Path) -> String {
    let inside = path.strip_prefix(root()).unwrap();
    let first = inside
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_str()
        .unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Returns whether a file contains tests or models, to which most rules do not apply.
pub(crate) fn is_test(path: &Path) -> bool {
    let inside = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
    inside.components().any(|part| {
        let name = part.as_os_str().to_str().unwrap().trim_end_matches(".rs");
        ["tests", "loom", "litmus", "mutants", "fuzzing"].contains(&name)
    })
}

/// Returns the text of a file without line comments.
pub(crate) fn code_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the items of a list, up to its closing brace. A nested list is part of its item.
fn top_level(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(&list[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

/// Returns the labels in a text, such as `RING-1`.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| {
        let Some((name, number)) = word.rsplit_once('-') else {
            return false;
        };
        let is_name = |c: char| c.is_ascii_uppercase() || c == '-';
        let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        name.len() > 2 && name.chars().all(is_name) && is_number
    })
}

#[test]
fn each_label_is_defined_once_and_each_cited_label_is_defined() {
    let (mut defined, mut cited) = (BTreeMap::new(), BTreeSet::new());
    let mut twice = Vec::new();
    for path in sources() {
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let line = line.trim_start();
            let item = line.strip_prefix("//! - ").or(line.strip_prefix("/// - "));
            let definition = item.and_then(|item| item.split_once(':'));
            let definition = definition.filter(|(label, _)| labels(label).next() == Some(label));
            if let Some((label, _)) = definition {
                twice.extend(
                    defined
                        .insert(label.to_owned(), path.clone())
                        .map(|_| label.to_owned()),
                );
            } else if line.starts_with("//") || line.contains("reason = ") {
                cited.extend(labels(line).map(str::to_owned));
            }
        }
    }
    assert!(defined.len() > 50, "too few labels were found: {defined:?}");
    assert_eq!(twice, [""; 0], "labels that are defined twice");
    // The fences in `sleep.md`, a prefix of thread names, and an encoding.
    let others = ["SLEEP-", "PREFIX-", "UTF-"];
    let is_known = |label: &&String| {
        defined.contains_key(*label) || others.iter().any(|other| label.starts_with(other))
    };
    let unknown: Vec<_> = cited.iter().filter(|label| !is_known(label)).collect();
    assert_eq!(unknown, [&""; 0], "labels that are cited and not defined");
}

#[test]
fn no_source_file_has_more_than_500_lines() {
    const LINES_MAX: usize = 500;
    let long = sources().into_iter().filter(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().count() > LINES_MAX
    });
    let long: Vec<_> = long.collect();
    assert!(long.is_empty(), "longer than {LINES_MAX} lines: {long:?}");
}
