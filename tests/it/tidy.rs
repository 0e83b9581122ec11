//! The rules of the tree that no compiler checks: imports point down the layers, what may be shared
//! between threads comes from `sync.rs` alone, and time from `instant.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules of the crate, lowest layer first. `lib.rs` names them all and is above them.
const LAYERS: [&[&str]; 7] = [
    &[
        "sync", "blocks", "contain", "error", "instant", "lock", "waiters",
    ],
    &["park", "task", "timers"],
    &["scheduler"],
    &["runtime"],
    &["pinned", "time", "signal", "mailbox"],
    &["actor"],
    &["sim"],
];

/// The mailbox is above the executor only in order: it knows no runtime.
const MAILBOX_KNOWS: &[&str] = &[
    "sync", "blocks", "contain", "error", "instant", "lock", "waiters", "mailbox",
];

/// The files that need each other, and why.
const CYCLES: &[(&[&str], &str)] = &[
    (
        &["runtime/engine", "runtime/host", "runtime/inner"],
        "a runtime keeps its engine and its hosts, and these are handed the runtime that they are for",
    ),
    (
        &["runtime/blocking", "runtime/worker_thread"],
        "a thread of the pool becomes a worker, and a worker that has waited a thread of the pool",
    ),
];

/// The most files of a cycle.
const CYCLE_MAX: usize = 5;

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

/// A path in the crate: the names of its modules, and perhaps of an item.
type Names = Vec<String>;

/// The files of the crate, and which of them each file imports from. Re-exports are followed.
struct Imports(BTreeMap<Names, BTreeSet<Names>>);

impl Imports {
    fn read() -> Self {
        let files = sources().into_iter().filter(|path| !is_test(path));
        let files: BTreeMap<Names, String> = files
            .map(|path| (names_of(&path), code_of(&path)))
            .collect();
        let paths = files
            .iter()
            .map(|(file, code)| (file, Paths::of(code, file, &files)));
        let paths: BTreeMap<&Names, Paths> = paths.collect();
        let imports = files.keys().map(|file| {
            let named = paths[file].named.iter();
            let targets = named.filter_map(|name| resolve(name, &paths, 0));
            let others = targets.filter(|target| target != file);
            (file.clone(), others.collect())
        });
        Imports(imports.collect())
    }

    /// The same for what is in a folder, where each folder in that is one with all its files.
    fn within(&self, folder: &[String]) -> Imports {
        let unit = |file: &Names| -> Option<Names> {
            let inside = file.strip_prefix(folder)?;
            Some(vec![inside.first()?.clone()])
        };
        let mut units: BTreeMap<Names, BTreeSet<Names>> = BTreeMap::new();
        for (file, imports) in &self.0 {
            let Some(own) = unit(file) else { continue };
            let others = imports
                .iter()
                .filter_map(unit)
                .filter(|other| *other != own);
            units.entry(own.clone()).or_default().extend(others);
        }
        Imports(units)
    }

    fn reaches(&self, from: &Names) -> BTreeSet<&Names> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&Names> = self.0[from].iter().collect();
        while let Some(next) = open.pop() {
            if reached.insert(next) {
                open.extend(&self.0[next]);
            }
        }
        reached
    }

    /// The sets of what reach each other.
    fn cycles(&self) -> BTreeSet<Vec<String>> {
        let reach: BTreeMap<_, _> = self
            .0
            .keys()
            .map(|file| (file, self.reaches(file)))
            .collect();
        let circular = reach.keys().filter(|file| reach[*file].contains(**file));
        let cycle = |file: &&Names| {
            let members = reach[*file]
                .iter()
                .filter(|other| reach[**other].contains(*file));
            members.map(|member| member.join("/")).collect()
        };
        circular.map(cycle).collect()
    }
}

/// The paths in the crate that a file names, and those that it gives on under another name.
struct Paths {
    named: Vec<Names>,
    exported: BTreeMap<String, Names>,
}

impl Paths {
    fn of(code: &str, file: &Names, files: &BTreeMap<Names, String>) -> Self {
        let (mut named, mut exported) = (Vec::new(), BTreeMap::new());
        let mut rest = String::new();
        for statement in code.split_inclusive(';') {
            let at = statement
                .match_indices("use ")
                .map(|(at, _)| at)
                .find(|&at| starts_a_use(&statement[..at]));
            let Some(at) = at else {
                rest.push_str(statement);
                continue;
            };
            let line = statement[..at].rsplit('\n').next().unwrap();
            let is_public = line.trim_start().starts_with("pub");
            let tree = statement[at + "use ".len()..].trim_end_matches(';');
            for leaf in leaves(tree) {
                let Some(path) = absolute(&leaf, file, files) else {
                    continue;
                };
                if is_public {
                    exported.insert(leaf.last().unwrap().clone(), path);
                } else {
                    named.push(path);
                }
            }
        }
        for root in ["crate::", "super::"] {
            for (at, _) in rest.match_indices(root) {
                // `$crate::` is for the macro's user, and names what is public.
                if rest[..at].ends_with(['$', ':']) {
                    continue;
                }
                let path = rest[at..]
                    .split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
                    .next();
                let leaf = path.unwrap().split("::").map(str::to_owned).collect();
                named.extend(absolute(&leaf, file, files));
            }
        }
        Paths { named, exported }
    }
}

/// Whether `use` after this begins a statement.
fn starts_a_use(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap().trim_start();
    line.is_empty() || line == "pub " || line.starts_with("pub(") && line.ends_with(") ")
}

/// The paths of a tree of imports, one for each name.
fn leaves(tree: &str) -> Vec<Names> {
    let tree = tree.trim();
    match tree.split_once('{') {
        Some((root, list)) => {
            let root = root.trim_end_matches("::").split("::");
            let root: Names = root
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect();
            let inner = top_level(list)
                .into_iter()
                .filter(|item| !item.trim().is_empty());
            let inner = inner.flat_map(leaves);
            inner.map(|leaf| [root.clone(), leaf].concat()).collect()
        }
        None => {
            let path = tree.split(" as ").next().unwrap();
            vec![path.trim().split("::").map(str::to_owned).collect()]
        }
    }
}

/// A path from the root of the crate, if it is one into the crate.
fn absolute(path: &Names, file: &Names, files: &BTreeMap<Names, String>) -> Option<Names> {
    let mut base = file.clone();
    let mut rest = path.as_slice();
    match rest.first()?.as_str() {
        "crate" => return Some(rest[1..].to_vec()),
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        _ if !files.contains_key(&[&base[..], &rest[..1]].concat()) => return None,
        _ => {}
    }
    Some([&base[..], rest].concat())
}

/// The file that has what a path names.
fn resolve(path: &Names, paths: &BTreeMap<&Names, Paths>, depth: usize) -> Option<Names> {
    let known = (0..=path.len()).rev().map(|length| &path[..length]);
    let file = known
        .map(<[_]>::to_vec)
        .find(|file| paths.contains_key(file))?;
    let name = path.get(file.len());
    match name.and_then(|name| paths[&file].exported.get(name)) {
        Some(exported) if depth < 9 => {
            let rest = &path[file.len() + 1..];
            resolve(&[&exported[..], rest].concat(), paths, depth + 1)
        }
        _ => Some(file),
    }
}

/// The names of the modules that lead to a file; none for `lib.rs`.
fn names_of(path: &Path) -> Names {
    let inside = path.strip_prefix(root()).unwrap().with_extension("");
    let names = inside.iter().map(|name| name.to_str().unwrap().to_owned());
    names.filter(|name| name != "lib").collect()
}

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

#[test]
fn imports_point_down_the_layers() {
    let mut faults = Vec::new();
    for (file, imports) in &Imports::read().0 {
        let Some(module) = file.first() else { continue };
        let layer = layer_of(module)
            .unwrap_or_else(|| panic!("`{module}` is in no layer; say in which one it is"));
        for import in imports {
            // What `lib.rs` has of its own is nothing.
            let Some(named) = import.first().map(String::as_str) else {
                continue;
            };
            let is_down = layer_of(named).is_some_and(|below| below <= layer);
            let is_known = module != "mailbox" || MAILBOX_KNOWS.contains(&named);
            if !is_down || !is_known {
                faults.push(format!("{} names {}", file.join("/"), import.join("/")));
            }
        }
    }
    assert_eq!(faults, [""; 0], "imports that do not point down");
}

#[test]
fn imports_between_the_parts_of_a_folder_point_one_way() {
    let imports = Imports::read();
    let folders = imports.0.keys();
    let folders: BTreeSet<_> = folders
        .flat_map(|file| (0..file.len()).map(|length| &file[..length]))
        .collect();
    assert!(folders.len() > 10, "these are not all folders: {folders:?}");
    for folder in folders {
        for cycle in imports.within(folder).cycles() {
            let prefix = folder.join("/");
            let full = cycle.iter().map(|unit| match prefix.is_empty() {
                true => unit.clone(),
                false => format!("{prefix}/{unit}"),
            });
            let full: Vec<_> = full.collect();
            let is_known = CYCLES.iter().any(|(files, _)| *files == full);
            assert!(
                is_known,
                "these parts of a folder need each other: {full:?}"
            );
        }
    }
}

#[test]
fn files_that_need_each_other_are_few_and_have_a_reason() {
    let cycles = Imports::read().cycles();
    let known: BTreeSet<Vec<String>> = CYCLES
        .iter()
        .map(|(files, _)| files.iter().map(|file| file.to_string()).collect())
        .collect();
    assert_eq!(
        cycles, known,
        "the cycles of imports, and those with a reason"
    );
    assert!(known.iter().all(|cycle| cycle.len() <= CYCLE_MAX));
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
    // It is named once for this crate's own use, and once for that of others.
    assert_eq!(
        faults, ["instant"; 2],
        "elsewhere a simulation would not see its own time"
    );
}

/// The labels in a text, such as `RING-1`.
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
fn each_invariant_has_one_name_and_each_name_an_invariant() {
    let (mut defined, mut cited) = (BTreeMap::new(), BTreeSet::new());
    let mut twice = Vec::new();
    for path in sources() {
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let definition = line
                .strip_prefix("//! - ")
                .and_then(|rest| rest.split_once(':'));
            let definition = definition.filter(|(label, _)| labels(label).next() == Some(label));
            if let Some((label, _)) = definition {
                twice.extend(
                    defined
                        .insert(label.to_owned(), path.clone())
                        .map(|_| label.to_owned()),
                );
            } else if line.trim_start().starts_with("//") || line.contains("reason = ") {
                cited.extend(labels(line).map(str::to_owned));
            }
        }
    }
    assert!(defined.len() > 50, "these are not all: {defined:?}");
    assert_eq!(twice, [""; 0], "defined twice");
    // The fences of `sleep.md`, names of threads, and an encoding.
    let others = ["SLEEP-", "NAME-", "UTF-"];
    let is_known = |label: &&String| {
        defined.contains_key(*label) || others.iter().any(|other| label.starts_with(other))
    };
    let unknown: Vec<_> = cited.iter().filter(|label| !is_known(label)).collect();
    assert_eq!(unknown, [&""; 0], "cited and defined nowhere");
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    const LINES_MAX: usize = 500;
    let long = sources().into_iter().filter(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().count() > LINES_MAX
    });
    let long: Vec<_> = long.collect();
    assert!(long.is_empty(), "longer than {LINES_MAX} lines: {long:?}");
}

#[test]
fn the_files_that_the_architecture_names_exist() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(package.join("ARCHITECTURE.md")).unwrap();
    let words = text.split(|c: char| !c.is_alphanumeric() && !"_/.-".contains(c));
    // Not the end of a pattern.
    let is_file =
        |word: &&str| (word.ends_with(".rs") || word.ends_with(".md")) && !word.starts_with('/');
    let named: BTreeSet<&str> = words.filter(is_file).collect();
    assert!(named.len() > 40, "these are not all: {named:?}");
    let names: BTreeSet<String> = sources()
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let exists = |name: &&&str| match name.contains('/') {
        true => package.join("src").join(name).exists() || package.join(name).exists(),
        false => names.contains(**name) || package.join(name).exists() || **name == "sleep.md",
    };
    let gone: Vec<_> = named.iter().filter(|name| !exists(name)).collect();
    assert_eq!(gone, [&""; 0], "files that are gone");
}

#[test]
fn the_checks_see_what_they_look_for() {
    let files = [
        ("lib", "pub use top::{inner::Deep as Deeper, Flat};"),
        (
            "low",
            "use crate::Flat;\nfn f() { crate::top::inner::go() }",
        ),
        (
            "top",
            "use std::rc::Rc;\npub use inner::Deep;\nuse crate::{low::{self, A}, x::B};",
        ),
        ("top/inner", "use super::super::low;"),
    ];
    let files = files.map(|(name, code)| {
        let names = name.split('/').map(str::to_owned);
        let names: Names = names.filter(|name| name != "lib").collect();
        (names, code.to_owned())
    });
    let files = BTreeMap::from(files);
    let paths = files
        .iter()
        .map(|(file, code)| (file, Paths::of(code, file, &files)));
    let paths: BTreeMap<_, _> = paths.collect();
    let imports = |file: &str| -> Vec<String> {
        let file: Names = file.split('/').map(str::to_owned).collect();
        let named = paths[&file].named.iter();
        let found = named.filter_map(|name| resolve(name, &paths, 0));
        found.map(|file| file.join("/")).collect()
    };
    assert_eq!(imports("low"), ["top", "top/inner"]);
    assert_eq!(imports("top"), ["low", "low", ""]);
    assert_eq!(imports("top/inner"), ["low"]);
    assert_eq!(layer_of("actor"), Some(5));
    assert_eq!(layer_of("nothing"), None);
    assert_eq!(
        top_level("Arc, atomic::{A, B}, Mutex}; more"),
        ["Arc", " atomic::{A, B}", " Mutex"]
    );
}
