//! No two types have one name, in the library or in the packages beside it.

use std::collections::{BTreeMap, BTreeSet};

use super::{code_of, is_test, package_sources};

/// The names that several types share, each with its reason.
const SHARED: [(&str, &str); 2] = [
    ("Job", "work for a market, or for a queue that outlives it"),
    ("Limits", "each package has its own, of one kind"),
];

/// Returns the name of the type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let is_indented = line.starts_with([' ', '\t']);
    // `pub(in crate::actor)` is two words.
    let is_before =
        |word: &&str| word.starts_with("pub") || word.ends_with(')') || *word == "unsafe";
    let mut words = line.split_whitespace().skip_while(is_before);
    let keyword = words.next()?;
    let is_type = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        // An indented one belongs to a trait.
        "type" => !is_indented,
        _ => false,
    };
    let name = words.next().filter(|_| is_type)?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &name[..end.unwrap_or(name.len())];
    name.starts_with(|c: char| c.is_uppercase()).then_some(name)
}

#[test]
fn no_two_types_have_one_name() {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in package_sources().into_iter().filter(|path| !is_test(path)) {
        let code = code_of(&path);
        let code = code.split("\nmod tests {").next().unwrap();
        for name in code.lines().filter_map(declared) {
            let file = path.display().to_string();
            files.entry(name.to_owned()).or_default().insert(file);
        }
    }
    assert!(files.len() > 500, "too few types were found");
    for (name, files) in &files {
        let is_shared = files.len() > 1;
        let may_be = SHARED.iter().any(|(shared, _)| shared == name);
        assert_eq!(is_shared, may_be, "{name} is a type of {files:?}");
    }
}

#[test]
fn a_declared_type_is_found_behind_its_visibility() {
    let found = [
        "struct Plain;",
        "    pub(super) enum Inner<T> {",
        "pub unsafe trait Careful: Sized {",
        "pub(in crate::actor) type Alias = u32;",
        "    type Output = u32;",
        "let structure = 1;",
    ]
    .map(declared);
    let expected = ["Plain", "Inner", "Careful", "Alias"].map(Some);
    assert_eq!(found[..4], expected);
    assert_eq!(found[4..], [None, None]);
}
