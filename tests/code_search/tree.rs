//! A directory tree to be searched, with a place for its index beside it.
//!
//! Written files have a modification time long past. So a run never reads a file a second time
//! because it is too fresh.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use fastrand::Rng;
use tempfile::TempDir;

/// A tree, deleted when dropped.
pub struct Tree {
    place: TempDir,
}

impl Tree {
    /// Creates an empty tree.
    pub fn new() -> Tree {
        let place = TempDir::new().expect("a temporary directory");
        fs::create_dir(place.path().join("tree")).expect("a directory");
        Tree { place }
    }

    /// Creates a tree of random files in nested directories: all sorts of text, and some files that
    /// are not text.
    pub fn random(seed: u64) -> Tree {
        let tree = Tree::new();
        let mut rng = Rng::with_seed(seed);
        for number in 0..60 {
            let directory = rng.choice(["", "a/", "a/b/", ".hidden/", "with space/", "ü/"]);
            let stem = rng.choice(["file", ".dot", "quote'\"", "x:1: y", "Ä", "-dash"]);
            let path = format!("{}{}{number}", directory.unwrap_or(""), stem.unwrap_or(""));
            tree.write(&path, random_content(&mut rng));
        }
        tree
    }

    /// Returns the test's own directory.
    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// Returns the directory that is searched.
    pub fn root(&self) -> PathBuf {
        self.place.path().join("tree")
    }

    /// Returns the path of the index.
    pub fn index(&self) -> PathBuf {
        self.place.path().join("index.db")
    }

    /// Returns the path of a file or directory in the tree.
    pub fn path(&self, below: &str) -> PathBuf {
        self.root().join(below)
    }

    /// Writes a file, and creates the directories that it needs.
    pub fn write(&self, below: &str, content: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, content).expect("a written file");
        let long_past = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = File::options()
            .write(true)
            .open(&path)
            .expect("the written file");
        file.set_modified(long_past).expect("a changed time");
    }

    /// Deletes a file.
    pub fn delete(&self, below: &str) {
        fs::remove_file(self.path(below)).expect("a deleted file");
    }

    /// Creates a pipe. A process that opens it for reading never returns.
    pub fn pipe(&self, below: &str) {
        let made = Command::new("mkfifo").arg(self.path(below)).status();
        assert!(made.expect("mkfifo").success());
    }
}

/// Pieces of lines: words, operators of the query language, and characters that are hard to handle.
pub const PIECES: [&str; 32] = [
    "a",
    "b",
    "ab",
    "aab",
    "abc",
    "Abc",
    "fn main()",
    "AND",
    " OR ",
    "NOT",
    "NEAR(a b, 3)",
    "\"",
    "\"\"",
    "'",
    "*",
    "^",
    "-",
    "+",
    "text:",
    "(",
    "{}",
    "\\",
    "%_",
    "\t",
    " ",
    "ü",
    "日本語",
    "e\u{301}",
    "\u{1F600}",
    "\u{FFFE}",
    "\u{FEFF}",
    "\r",
];

fn random_content(rng: &mut Rng) -> Vec<u8> {
    let mut content = Vec::new();
    let ending = if rng.bool() { "\n" } else { "\r\n" };
    for _ in 0..rng.usize(0..40) {
        let pieces = if rng.u8(..) == 0 {
            5000
        } else {
            rng.usize(0..8)
        };
        for _ in 0..pieces {
            content.extend_from_slice(PIECES[rng.usize(..PIECES.len())].as_bytes());
        }
        content.extend_from_slice(ending.as_bytes());
    }
    match rng.u8(0..10) {
        0 => content.push(0),
        1 => content.extend_from_slice(b"\xFF\n"),
        2 => content.truncate(content.len() / 2), // Perhaps in the middle of a character.
        3 => content.extend_from_slice(b"no newline at the end"),
        _ => {}
    }
    content
}
