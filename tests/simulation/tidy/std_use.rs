//! Only `sync.rs` uses the atomics and locks of `std`, and only `instant.rs` its clock.

use std::path::PathBuf;

use super::{code_of, is_test, module_of, sources, top_level};

#[test]
fn only_sync_names_the_atomics_and_locks_of_std() {
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
    // `contain.rs` has one exception, with its reason: a mutex that is never locked.
    let exception = |fault: &(String, PathBuf)| fault.0 == "contain";
    assert_eq!(
        faults.iter().filter(|fault| exception(fault)).count(),
        2,
        "the exception in `contain.rs` names `Mutex` twice"
    );
    faults.retain(|fault| !exception(fault));
    assert!(
        faults.is_empty(),
        "these files use `std::sync` instead of `crate::sync`: {faults:?}"
    );
}

#[test]
fn only_instant_reads_the_clock_of_the_system() {
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
    // `instant.rs` names the clocks once for this crate, once for its users, and once for dates.
    assert_eq!(
        faults, ["instant"; 3],
        "a simulation replaces the clock in `instant.rs` only"
    );
}
