//! A waker that is kept is a `KeptWaker`, whose functions are contained.

use super::{code_of, is_test, root, sources};

/// The files that may do otherwise, each with its reason.
const MAY: [(&str, &str); 2] = [
    ("contain.rs", "it contains the functions of a waker"),
    (
        "task/unordered.rs",
        "it gives code of another crate wakers that do not panic",
    ),
];

/// What stores wakers in another crate, or clones one without a `KeptWaker`.
const OTHERS: [&str; 8] = [
    "AtomicWaker",
    "FuturesUnordered",
    "FuturesOrdered",
    "SelectAll",
    "BufferUnordered",
    "waker().clone()",
    "waker.clone()",
    "Waker::clone",
];

/// Returns the lines of a file that keep a waker, or have a place for one, that is not contained.
fn keeps(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_kept = |line: &&str| {
        let owned = line.match_indices("Waker").any(|(at, name)| {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            let is_type = !before.ends_with(is_word) && !after.starts_with(is_word);
            // A reference, a function of the type, a value that is returned, one without a drop.
            let passes = before.ends_with('&')
                || before.ends_with("&'a ")
                || before.ends_with("-> ")
                || before.ends_with("ManuallyDrop<")
                || after.starts_with("::");
            is_type && !passes
        });
        owned || OTHERS.iter().any(|other| line.contains(other))
    };
    let lines = code.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("use ") && !line.starts_with("pub use "));
    lines.filter(is_kept).map(str::to_owned).collect()
}

#[test]
fn a_waker_is_kept_only_where_its_panics_are_contained() {
    let mut kept = 0;
    for path in sources().into_iter().filter(|path| !is_test(path)) {
        let file = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let code = code_of(&path);
        kept += code.matches("<KeptWaker>").count();
        let found = keeps(&code);
        match MAY.iter().find(|(other, _)| *other == file) {
            Some(_) => assert!(!found.is_empty(), "{file} needs no exception"),
            None => assert_eq!(found, [""; 0], "{file} keeps a waker, use `KeptWaker`"),
        }
    }
    assert!(kept > 30, "too few wakers were found: {kept}");
}

#[test]
fn the_search_for_wakers_finds_each_way_to_keep_one() {
    for line in [
        "waker: Option<Waker>,",
        "wakers: Vec<(usize, Waker)>,",
        "look: std::task::Waker,",
        "Foreign(Waker),",
        "let kept = cx.waker().clone();",
        "source: AtomicWaker,",
    ] {
        assert_eq!(keeps(line), [line]);
    }
    for line in [
        "use std::task::{Context, Poll, Waker};",
        "fn poll(&self, waker: &Waker) -> Poll<()> {",
        "waker: Option<KeptWaker>,",
        "let waker = Waker::from(parker);",
    ] {
        assert_eq!(keeps(line), [""; 0]);
    }
}
