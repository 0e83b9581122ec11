//! Proof that the models find what they look for: each fault is switched on, and must be found.
//!
//! A fault is a line in the sources behind `sync::mutant("name")`. Each runs in a process of its
//! own, since loom's report of a deadlock may abort it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const DEADLOCK: &str = "deadlock; threads";
const RACE: &str = "Causality violation";
const ORDER: &str = "once, in order";
const TAKEN: &str = "taken once each";
const FAILED: &str = "panicked at src/";

/// The fault, the model that finds it, and what that says.
const MUTANTS: &[(&str, &str, &str)] = &[
    ("word_release", "model_04", RACE),
    ("word_taken_without_exchange", "model_01_two", RACE),
    ("block_is_not_linked", "model_02", ORDER),
    ("closed_still_accepts", "model_06", ORDER),
    ("rest_without_a_look", "model_04", ORDER),
    (
        "room_is_not_passed_on",
        "model_08_a_sender_that_forgets",
        FAILED,
    ),
    (
        "accepted_sender_is_not_woken",
        "model_08_a_sender_that_waits",
        DEADLOCK,
    ),
    ("close_forgets_the_line", "model_08_a_close", DEADLOCK),
    ("asker_is_not_woken", "model_09_a_dropped_reply", DEADLOCK),
    ("lock_release", "model_09_the_lock", RACE),
    ("notify_without_fence", "model_10_a_push", DEADLOCK),
    ("sleep_without_fence", "model_10_a_push", DEADLOCK),
    ("no_chain_wake", "model_11", DEADLOCK),
    ("search_ends_without_fence", "model_11", DEADLOCK),
    ("two_thieves", "model_11", FAILED),
    ("only_the_searcher_looks_again", "model_12", DEADLOCK),
    ("slot_unwatched", "model_12", DEADLOCK),
    ("slots_are_not_looked_at", "model_12", DEADLOCK),
    ("watcher_takes_nothing", "model_12", DEADLOCK),
    ("ring_push_relaxed", "model_14", TAKEN),
    ("head_moved_without_exchange", "model_14", TAKEN),
    ("slot_filled_relaxed", "model_14", TAKEN),
    ("slot_taken_without_exchange", "model_14", TAKEN),
    (
        "wake_looks_without_the_lock",
        "model_15_what",
        "the last run has seen all",
    ),
    ("drain_looks_once", "model_16", FAILED),
    ("drain_ends_without_fence", "model_16", FAILED),
    ("late_push_stays", "model_16", FAILED),
    (
        "fired_stays_in_the_table",
        "model_28_a_deadline_is_fired_once",
        FAILED,
    ),
    (
        "keeper_hears_of_no_deadline",
        "model_28_a_sleeper_hears_of_an_earlier",
        DEADLOCK,
    ),
    (
        "no_keeper_for_a_deadline",
        "model_28_a_sleeper_hears_of_the_first",
        DEADLOCK,
    ),
    (
        "no_keeper_for_a_deadline_of_a_worker",
        "model_28_a_deadline_is_not_missed_by_a_worker_that_is_blocked_from_outside",
        DEADLOCK,
    ),
];

#[test]
fn loom_mutants_are_caught() {
    let mut missed = Vec::new();
    for &(mutant, model, text) in MUTANTS {
        let run = Command::new(std::env::current_exe().unwrap())
            .args([model, "--nocapture", "--test-threads=1"])
            .env("GREENROOM_MUTANT", mutant)
            .output()
            .unwrap();
        let said = [run.stdout, run.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        // Which of its reports loom reaches first may change with the model.
        let found = [text, FAILED, DEADLOCK, RACE]
            .iter()
            .any(|text| said.contains(text));
        if run.status.success() || !found {
            missed.push(format!("{mutant}: {model} did not say {text:?}:\n{said}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn loom_every_mutant_has_its_model() {
    let mut found = BTreeSet::new();
    find(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    let listed = MUTANTS
        .iter()
        .map(|&(mutant, ..)| mutant.to_owned())
        .collect();
    assert_eq!(found, listed);
}

/// The names of all faults in the sources below `folder`.
fn find(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, found);
        } else if path.file_name().is_some_and(|name| name != "mutants.rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            let names = source
                .match_indices("mutant(\"")
                .map(|(at, call)| &source[at + call.len()..]);
            found.extend(names.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
}
