//! Imports point down the layers of the crate, and one way between the parts of a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{code_of, is_test, root, sources, top_level};

/// The modules of the crate, lowest layer first. `lib.rs` names them all and is above them.
const LAYERS: [&[&str]; 8] = [
    &[
        "sync",
        "blocks",
        "contain",
        "error",
        "info",
        "instant",
        "lock",
        "outcome",
        "stderr",
        "task_local",
        "tracer",
        "waiters",
    ],
    &["park", "task", "timers"],
    &["directory", "scheduler"],
    &["runtime"],
    &["pinned", "time", "signal", "mailbox"],
    &["actor", "request", "task_set"],
    &[
        "looper",
        "machine",
        "market",
        "registry",
        "spool",
        "supervise",
    ],
    &["sim", "docs"],
];

/// The modules that the mailbox may import. It is in a layer above the runtime and does not know
/// it.
const MAILBOX_KNOWS: &[&str] = &[
    "sync", "blocks", "contain", "error", "info", "instant", "lock", "stderr", "tracer", "waiters",
    "mailbox",
];

/// The cycles of imports that are allowed, each with its reason.
const CYCLES: &[(&[&str], &str)] = &[
    (
        &["runtime/engine", "runtime/host", "runtime/inner"],
        "a runtime owns its engine and its hosts, whose functions take the runtime as an argument",
    ),
    (
        &["runtime/blocking", "runtime/worker_thread"],
        "a pool thread can become a worker, and a worker that waited becomes a pool thread",
    ),
    (
        &[
            "looper/cell",
            "looper/job",
            "looper/monitor",
            "looper/table",
        ],
        "a table owns the cells of its loopers, which have jobs and lead back to the table's lock",
    ),
];

/// The maximum number of files in a cycle.
const CYCLE_MAX: usize = 5;

/// A path in the crate: the names of its modules, and perhaps of an item.
type Names = Vec<String>;

/// The files of the crate, each with the files that it imports from. Re-exports are followed.
struct Imports(BTreeMap<Names, BTreeSet<Names>>);

impl Imports {
    /// Reads all files of `src` that are not tests.
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

    /// Returns the imports between the parts of a folder. A nested folder and its files count as
    /// one part.
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

    /// Returns the files that a file imports, directly or through other files.
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

    /// Returns the sets of files that reach each other.
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

/// The paths in the crate that a file names, and those that it re-exports.
struct Paths {
    named: Vec<Names>,
    exported: BTreeMap<String, Names>,
}

impl Paths {
    /// Parses the code of a file.
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
                // `$crate::` is part of a public macro and names public items.
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

/// Returns whether a `use` that follows this text begins a statement.
fn starts_a_use(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap().trim_start();
    line.is_empty() || line == "pub " || line.starts_with("pub(") && line.ends_with(") ")
}

/// Returns the paths of an import tree, one for each name.
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

/// Returns a path relative to the root of the crate, or `None` for a path into another crate.
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

/// Returns the file that defines the item of a path.
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

/// Returns the module path of a file, which is empty for `lib.rs`.
fn names_of(path: &Path) -> Names {
    let inside = path.strip_prefix(root()).unwrap().with_extension("");
    let names = inside.iter().map(|name| name.to_str().unwrap().to_owned());
    names.filter(|name| name != "lib").collect()
}

/// Returns the index of a module's layer.
fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

#[test]
fn imports_point_down_the_layers() {
    let mut faults = Vec::new();
    for (file, imports) in &Imports::read().0 {
        let Some(module) = file.first() else { continue };
        let layer = layer_of(module).unwrap_or_else(|| panic!("`{module}` is missing in `LAYERS`"));
        for import in imports {
            // `lib.rs` defines no items of its own.
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
    assert!(
        folders.len() > 10,
        "too few folders were found: {folders:?}"
    );
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
                "these parts of a folder import each other: {full:?}"
            );
        }
    }
}

#[test]
fn each_cycle_of_imports_is_small_and_has_a_reason() {
    let cycles = Imports::read().cycles();
    let known: BTreeSet<Vec<String>> = CYCLES
        .iter()
        .map(|(files, _)| files.iter().map(|file| file.to_string()).collect())
        .collect();
    assert_eq!(
        cycles, known,
        "the cycles that were found, and those that are allowed"
    );
    assert!(known.iter().all(|cycle| cycle.len() <= CYCLE_MAX));
}

#[test]
fn the_parser_finds_imports_and_re_exports() {
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
