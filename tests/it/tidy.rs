//! The rules of the tree that no compiler checks: imports point down the layers, what may be shared
//! between threads comes from `sync.rs` alone, and time from `instant.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules of the crate, lowest layer first. `lib.rs` names them all and is above them.
const LAYERS: [&[&str]; 6] = [
    &[
        "sync", "blocks", "contain", "error", "instant", "lock", "waiters",
    ],
    &["park", "task", "timers"],
    &["runtime", "pinned", "time", "signal"],
    &["mailbox"],
    &["actor"],
    &["sim"],
];

/// The mailbox is above the executor only in order: it knows no runtime.
const MAILBOX_KNOWS: &[&str] = &[
    "sync", "blocks", "contain", "error", "instant", "lock", "waiters", "mailbox",
];

fn sources() -> Vec<PathBuf> {
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
    let mut found = Vec::new();
    walk(&root(), &mut found);
    found.sort();
    assert!(found.len() > 20, "these are not all sources: {found:?}");
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The module below the crate that a file belongs to.
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

/// Whether a file is a test or a model, which may name anything.
fn is_test(path: &Path) -> bool {
    let inside = path.strip_prefix(root()).unwrap();
    inside.components().any(|part| {
        let name = part.as_os_str().to_str().unwrap().trim_end_matches(".rs");
        ["tests", "loom", "litmus", "mutants"].contains(&name)
    })
}

/// The text without comments: what the compiler reads.
fn code_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules of the crate that a text names after `crate::`, also in braces.
fn named_modules(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` is for the macro's user, and names what is public.
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let list = match rest.strip_prefix('{') {
            Some(list) => top_level(list),
            None => vec![rest],
        };
        let name = |item: &str| -> String {
            item.trim()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        };
        named.extend(list.into_iter().map(name).filter(|name| !name.is_empty()));
    }
    named
}

/// The items of a list in braces, without those of the braces in it.
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

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

#[test]
fn imports_point_down_the_layers() {
    let mut faults = Vec::new();
    for path in sources().into_iter().filter(|path| !is_test(path)) {
        let module = module_of(&path);
        if module == "lib" {
            continue;
        }
        let layer = layer_of(&module)
            .unwrap_or_else(|| panic!("`{module}` is in no layer; say in which one it is"));
        for named in named_modules(&code_of(&path)) {
            // What is no module is a public name, which `lib.rs` has from one of them.
            let Some(below) = layer_of(&named) else {
                continue;
            };
            let known = module != "mailbox" || MAILBOX_KNOWS.contains(&&*named);
            if below > layer || !known {
                faults.push(format!("{} names `{named}`", path.display()));
            }
        }
    }
    assert_eq!(faults, [""; 0], "imports that do not point down");
}

#[test]
fn atomics_mutexes_and_conditions_come_from_sync_alone() {
    let mut faults = Vec::new();
    for path in sources().into_iter().filter(|path| !is_test(path)) {
        let module = module_of(&path);
        if module == "sync" {
            continue;
        }
        let code = code_of(&path);
        for root in ["std::sync::", "core::sync::"] {
            for (at, _) in code.match_indices(root) {
                let rest = &code[at + root.len()..];
                let items = match rest.strip_prefix('{') {
                    Some(list) => top_level(list),
                    None => vec![rest],
                };
                for item in items {
                    let item = item.trim();
                    let shared = ["atomic", "Mutex", "Condvar", "RwLock", "Barrier", "mpsc"];
                    if shared.iter().any(|name| item.starts_with(name)) {
                        faults.push((module.clone(), path.clone()));
                    }
                }
            }
        }
    }
    // One exception, which says why: a mutex that is never locked.
    let exception = |fault: &(String, PathBuf)| fault.0 == "contain";
    assert_eq!(
        faults.iter().filter(|fault| exception(fault)).count(),
        2,
        "named twice there"
    );
    faults.retain(|fault| !exception(fault));
    assert!(
        faults.is_empty(),
        "these name `std::sync` for what `crate::sync` has: {faults:?}"
    );
}

#[test]
fn the_systems_clock_is_read_in_one_place() {
    let mut faults = Vec::new();
    for path in sources().into_iter().filter(|path| !is_test(path)) {
        let code = code_of(&path);
        for (at, root) in code.match_indices("std::time::") {
            let rest = &code[at + root.len()..];
            let items = match rest.strip_prefix('{') {
                Some(list) => top_level(list),
                None => vec![rest],
            };
            if !items.iter().all(|item| item.trim().starts_with("Duration")) {
                faults.push(module_of(&path));
            }
        }
    }
    assert_eq!(
        faults,
        ["instant"],
        "elsewhere a simulation would not see its own time"
    );
}

#[test]
fn the_checks_see_what_they_look_for() {
    let code =
        "use crate::{actor::Address, task::{Header, Key}, Fault};\nlet a = crate::time::now();";
    let named: Vec<_> = named_modules(code).into_iter().collect();
    assert_eq!(named, ["Fault", "actor", "task", "time"]);
    assert_eq!(named_modules("$crate::actor(f)").len(), 0);
    assert_eq!(layer_of("actor"), Some(4));
    assert_eq!(layer_of("nothing"), None);
    assert_eq!(
        top_level("Arc, atomic::{A, B}, Mutex}; more"),
        ["Arc", " atomic::{A, B}", " Mutex"]
    );
}
