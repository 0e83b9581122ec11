//! The example `ledger`, run as its users run it, and killed in the middle.
//!
//! Every test has its own file. A run to be killed has far more transfers to make than it can
//! finish before the kill, and no test waits for a fixed time.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::child::{example, finish};
use crate::support::{WATCH, within};

/// More transfers than a run makes in ten seconds, which is enough time for the kill. A run spawns
/// a customer for each of them at first, so more would only take longer.
const ENDLESS: &str = if cfg!(debug_assertions) {
    "100000"
} else {
    "300000"
};

/// A ledger's file; runs of the program use it.
struct Ledger(TempDir);

/// The output of a finished run, and whether it succeeded.
struct Run {
    is_success: bool,
    out: String,
    err: String,
}

impl Ledger {
    fn new() -> Ledger {
        Ledger(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("file")
    }

    /// Returns a command with the file, then these arguments, and captured output.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(example("ledger"));
        command.arg(self.file()).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let output = finish(&mut self.command(arguments));
        Run {
            is_success: output.status.success(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Kills a run once it has reported this many transfers. Returns the number that it reported.
    fn kill_after(&self, transfers: u64) -> u64 {
        let mut command = self.command(&[ENDLESS]);
        within(WATCH, move || {
            let mut child = command.spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let made = lines.find_map(|line| {
                let made = number_before(&line.unwrap(), " transfers are made")?;
                (made >= transfers).then_some(made)
            });
            child.kill().unwrap();
            assert_eq!(
                child.wait().unwrap().signal(),
                Some(libc::SIGKILL),
                "the run ended before it was killed"
            );
            made.expect("the run reports its progress")
        })
    }

    /// Changes the file without the program.
    fn tamper(&self, sql: &str) {
        let connection = Connection::open(self.file()).unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

impl Run {
    /// Returns how many transfers the consistent journal had when the run began.
    fn at_the_start(&self) -> u64 {
        self.consistent("consistent at the start: ")
    }

    /// Returns how many transfers the consistent journal had when the run ended.
    fn at_the_end(&self) -> u64 {
        assert!(self.is_success, "{}{}", self.out, self.err);
        self.consistent("consistent at the end: ")
    }

    fn consistent(&self, when: &str) -> u64 {
        let line = self.out.lines().find_map(|line| line.strip_prefix(when));
        let line = line.unwrap_or_else(|| panic!("not {when}{}{}", self.out, self.err));
        let transfers = line.strip_prefix("100 accounts, ").unwrap();
        assert!(transfers.ends_with(" transfers, sum 100000"), "{line}");
        number_before(transfers, " transfers, sum 100000").unwrap()
    }

    fn assert_refused(&self, text: &str) {
        assert!(!self.is_success, "{}", self.out);
        assert!(self.err.contains(text), "{:?}", self.err);
        // On a slow machine the runtime says that its shutdown waits.
        let lines = self.err.lines();
        let lines = lines.filter(|line| !line.starts_with("greenroom: the shutdown waits"));
        assert_eq!(lines.count(), 1, "{:?}", self.err);
        assert_eq!(self.out, "");
    }
}

fn number_before(line: &str, rest: &str) -> Option<u64> {
    line.strip_suffix(rest)?.parse().ok()
}

#[test]
fn ten_thousand_transfers_at_once_conserve_the_sum() {
    let ledger = Ledger::new();
    let run = ledger.run(&[]);
    let made = run.at_the_end();
    assert_eq!(run.at_the_start(), 0);
    let account = format!("{made} made, {} refused, ", 10_000 - made);
    assert!(run.out.contains(&account), "{}", run.out);
    assert_ne!(made, 10_000, "some transfers are refused");
    assert_eq!(ledger.run(&["0"]).at_the_start(), made);
}

#[test]
fn a_killed_run_leaves_a_consistent_file_with_all_reported_transfers() {
    let ledger = Ledger::new();
    let told = ledger.kill_after(1000);
    let next = ledger.run(&["2000"]);
    let kept = next.at_the_start();
    assert!(
        kept >= told,
        "only {kept} of {told} reported transfers were kept"
    );
    assert!(next.at_the_end() > kept);
}

#[test]
fn repeated_kills_lose_no_reported_transfer() {
    let ledger = Ledger::new();
    let mut told = 0;
    for after in [1000, 2000, 3000, 1000, 1000, 1000, 1000, 1000, 1000, 1000] {
        told += ledger.kill_after(after);
        let kept = ledger.run(&["0"]).at_the_start();
        assert!(
            kept >= told,
            "only {kept} of {told} reported transfers were kept"
        );
        told = kept;
    }
    assert!(ledger.run(&["100"]).at_the_end() > told);
}

#[test]
fn a_wrong_sum_is_refused_at_the_start() {
    let ledger = Ledger::new();
    ledger.run(&["100"]).at_the_end();
    ledger.tamper("UPDATE accounts SET balance = balance + 1 WHERE id = 7");
    ledger
        .run(&["100"])
        .assert_refused("the sum is wrong: 100001");
}

#[test]
fn a_transfer_missing_from_the_journal_is_refused_at_the_start() {
    let ledger = Ledger::new();
    ledger.run(&["100"]).at_the_end();
    ledger.tamper(
        "UPDATE accounts SET balance = balance + 1 WHERE id = 7;
         UPDATE accounts SET balance = balance - 1 WHERE id = 8;",
    );
    ledger.run(&["100"]).assert_refused("2 accounts differ");
}

#[test]
fn a_file_of_another_program_is_left_as_it_is() {
    let ledger = Ledger::new();
    ledger.tamper("CREATE TABLE recipes(cake TEXT)");
    let before = std::fs::read(ledger.file()).unwrap();
    ledger.run(&[]).assert_refused("is no ledger");
    assert_eq!(std::fs::read(ledger.file()).unwrap(), before);

    std::fs::write(ledger.file(), "dear diary").unwrap();
    ledger.run(&[]).assert_refused("file is not a database");
    assert_eq!(std::fs::read(ledger.file()).unwrap(), b"dear diary");
}

#[test]
fn bad_arguments_are_refused_in_one_line() {
    let ledger = Ledger::new();
    for bad in ["many", "-1", "1000001", ""] {
        ledger
            .run(&[bad])
            .assert_refused("is not a number from 0 to 1000000");
    }
    ledger
        .run(&["1", "1"])
        .assert_refused("is not a number from 2 to 1000000");
    ledger.run(&["1", "2", "3"]).assert_refused("usage: ledger");
    assert!(!ledger.file().exists());
}
