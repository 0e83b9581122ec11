//! Checks that the models find mutations: each mutation is enabled in turn, and a model must fail.
//!
//! A mutation is a wrong line of the sources behind `sync::mutant("name")`. Each model runs in its
//! own process, since loom may abort when it reports a deadlock.

mod table;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use table::MUTANTS;

#[test]
fn loom_mutants_are_caught() {
    let mut missed = Vec::new();
    for &(mutant, model, text) in MUTANTS {
        // Most need one preemption, and a slow model takes an hour with two.
        let said = run(mutant, model, "1").or_else(|_| run(mutant, model, "2"));
        if !said.as_ref().is_ok_and(|said| said.contains(text)) {
            let (Ok(said) | Err(said)) = said;
            missed.push(format!("{mutant}: {model} did not say {text:?}:\n{said}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Runs a model with a mutation and this number of preemptions. Returns what it says, as an error if
/// it passes.
fn run(mutant: &str, model: &str, preemptions: &str) -> Result<String, String> {
    let run = Command::new(std::env::current_exe().unwrap())
        .args([model, "--nocapture", "--test-threads=1"])
        .env("GREENROOM_MUTANT", mutant)
        .env("LOOM_MAX_PREEMPTIONS", preemptions)
        .output()
        .unwrap();
    let said = [run.stdout, run.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    match run.status.success() {
        true => Err(said),
        false => Ok(said),
    }
}

#[test]
fn loom_every_mutation_has_its_model_and_every_model_its_mutation() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let after = |text: &'static str| {
        let found = sources.split(text).skip(1);
        found.map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')))
    };
    let faults: BTreeSet<_> = after("mutant(\"")
        .filter_map(|mut words| words.next())
        .collect();
    assert_eq!(faults, MUTANTS.iter().map(|row| row.0).collect());
    let models = after("fn model_").filter_map(|mut words| words.next()?.get(..2));
    let models: BTreeSet<_> = models.filter(|model| model.parse::<u8>().is_ok()).collect();
    let number = |row: &(&str, &'static str, &str)| row.1.strip_prefix("model_")?.get(..2);
    assert_eq!(models, MUTANTS.iter().filter_map(number).collect());
}

/// Reads all sources in `folder`, except this one.
fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &sources(&path);
        } else if path.file_name().is_some_and(|name| name != "mutants.rs") {
            all += &std::fs::read_to_string(&path).unwrap();
        }
    }
    all
}
