//! The program under test: finds the built example, runs it, and parses its account.
//!
//! A run uses no directory of the user: cache and home are in the test's directory.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::tree::Tree;

/// The outcome of a finished run.
pub struct Run {
    /// The exit status; none if a signal ended it.
    pub status: Option<i32>,
    /// The hits.
    pub hits: String,
    /// Everything on stderr.
    pub said: String,
}

/// The numbers in a run's account.
#[derive(Debug, PartialEq, Eq)]
pub struct Account {
    pub files: u64,
    pub read: u64,
    pub unchanged: u64,
    pub rows: u64,
    pub forgotten: u64,
}

/// Returns the path of the example, which cargo builds beside the tests.
pub fn executable() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    let profile = test
        .parent()
        .and_then(Path::parent)
        .expect("a test lies in target/*/deps");
    let example = profile.join("examples/code_search");
    assert!(
        example.is_file(),
        "{} is not built: `cargo test` builds it, `cargo test --test code_search` alone does \
         not, so run `cargo build --example code_search` with the same options first",
        example.display(),
    );
    example
}

impl Tree {
    /// Returns a command with this tree's index, ready for more arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(executable());
        command
            .env("HOME", self.place())
            .env("XDG_CACHE_HOME", self.place().join("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .arg("--index")
            .arg(self.index());
        command
    }

    /// Searches the tree and waits until the program ends.
    pub fn search(&self, query: impl AsRef<OsStr>) -> Run {
        Run::of(self.command().arg("--").arg(self.root()).arg(query))
    }

    /// Starts a search of the tree and sends the hits to `hits`.
    pub fn start(&self, query: &str, hits: Stdio) -> Child {
        let mut command = self.command();
        command
            .args(["--wait", "600", "--"])
            .arg(self.root())
            .arg(query)
            .stdout(hits);
        command.spawn().expect("the example starts")
    }
}

impl Run {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Run {
        Run::from(command.output().expect("the example starts"))
    }

    /// Returns the numbers of the account; panics if there is none.
    pub fn account(&self) -> Account {
        let line = self
            .said
            .lines()
            .find_map(|line| line.strip_prefix("code_search: text files: "));
        let line = line.unwrap_or_else(|| panic!("no account in {:?}", self.said));
        let words = line
            .split(|c: char| !c.is_ascii_digit())
            .filter(|word| !word.is_empty());
        let numbers: Vec<u64> = words.map(|word| word.parse().expect("digits")).collect();
        let [files, read, unchanged, rows, forgotten] = numbers[..] else {
            panic!("not five numbers in {line:?}")
        };
        Account {
            files,
            read,
            unchanged,
            rows,
            forgotten,
        }
    }

    /// Returns how many files were left out for this reason.
    pub fn left_out(&self, reason: &str) -> u64 {
        let start = format!("code_search: not searched, {reason}: ");
        let line = self.said.lines().find_map(|line| line.strip_prefix(&start));
        line.map_or(0, |count| count.parse().expect("a number"))
    }

    /// Panics unless the run failed with a one-line message that contains `text`.
    pub fn assert_trouble(&self, text: &str) {
        assert_eq!(self.status, Some(2), "{}", self.said);
        assert!(
            self.said.contains(text),
            "{:?} does not say {text:?}",
            self.said
        );
        assert_eq!(self.said.lines().count(), 1, "{:?}", self.said);
        assert_eq!(self.hits, "");
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run {
            status: output.status.code(),
            hits: String::from_utf8(output.stdout).expect("hits in UTF-8"),
            said: String::from_utf8(output.stderr).expect("messages in UTF-8"),
        }
    }
}
