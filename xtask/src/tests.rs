//! The help names each check, and what it names exists.

use std::path::{Path, PathBuf};

use super::{COMMANDS, checks, first_sentence, help, sources};

const COLUMNS_MAX: usize = 100;

/// Returns the path of a file of this repository.
fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

#[test]
fn each_check_is_a_function_and_listed_with_what_it_does() {
    let (help, sources) = (help(), sources());
    assert!(checks().count() > 20, "too few checks were found");
    for check in checks() {
        let says = first_sentence(&sources, check.name)
            .unwrap_or_else(|| panic!("`{}` is no function with a comment", check.name));
        let row = format!("\n  {:<17}  {says}\n", check.name);
        assert!(help.contains(&row), "not in the help:{row}");
    }
    let (_, named) = help.split_once("only by name\n").unwrap();
    assert!(named.starts_with("  loom_deep "), "{named}");
}

#[test]
fn the_help_fits_into_a_terminal_of_100_columns() {
    let help = help();
    let is_long = |line: &&str| line.chars().count() > COLUMNS_MAX;
    let long: Vec<_> = help.lines().filter(is_long).collect();
    assert!(long.is_empty(), "longer than {COLUMNS_MAX}: {long:#?}");
}

#[test]
fn each_need_is_a_tool_that_is_installed_or_a_package() {
    let install = std::fs::read_to_string(in_repository(".ci/install")).unwrap();
    for check in checks() {
        assert!(!check.needs.is_empty(), "{} needs nothing", check.name);
        for need in check.needs {
            let kind = need.split_once(':').map(|(kind, _)| format!("{kind}:*"));
            let tool = kind.as_deref().unwrap_or(need);
            let is_tool = install.contains(&format!("\n        {tool}) "));
            let is_package = in_repository(need).join("Cargo.toml").exists();
            assert!(is_tool || is_package, "{}: {need}", check.name);
        }
    }
}

#[test]
fn the_targets_and_checks_that_the_commands_name_exist() {
    let contributing = std::fs::read_to_string(in_repository("CONTRIBUTING.md")).unwrap();
    let mut count = 0;
    for line in COMMANDS.lines().chain(contributing.lines()) {
        // Packages beside the root have targets of their own.
        if line.contains("cd ") || line.contains(" -p ") {
            continue;
        }
        let words: Vec<&str> = line.split([' ', '`']).collect();
        for pair in words.windows(2) {
            let folder = match pair[0] {
                "--test" => "tests",
                "--bench" => "benches",
                "--example" => "examples",
                _ => continue,
            };
            let ends = [".rs", "/main.rs"].map(|end| format!("{folder}/{}{end}", pair[1]));
            let exists = ends.iter().any(|path| in_repository(path).exists());
            assert!(exists, "there is no {} {}: {line}", pair[0], pair[1]);
            count += 1;
        }
    }
    assert!(count > 10, "too few targets were found: {count}");
}

#[test]
fn the_names_that_the_commands_give_to_a_check_are_checks() {
    let contributing = std::fs::read_to_string(in_repository("CONTRIBUTING.md")).unwrap();
    let mut count = 0;
    for line in COMMANDS.lines().chain(contributing.lines()) {
        let after = ["bash .ci/run ", "bash .ci/install "].map(|command| line.split_once(command));
        for (_, names) in after.into_iter().flatten() {
            // What it does follows after two spaces, or the command ends in a sentence.
            let ends = names.find("  ").or(names.find('`')).unwrap_or(names.len());
            for name in names[..ends].split_whitespace() {
                let is_known = checks().any(|check| check.name == name);
                let is_other = matches!(name, "--all" | "NAME" | "..");
                assert!(is_known || is_other, "there is no check {name}: {line}");
                count += 1;
            }
        }
    }
    assert!(count > 5, "too few names were found: {count}");
}
