//! A directory tree to be searched, with a place for its index beside it.
//!
//! What is written has a modification time long past, so that a run never has a reason to read it
//! a second time because it is too fresh.

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
    /// An empty tree.
    pub fn new() -> Tree {
        let place = TempDir::new().expect("a temporary directory");
        fs::create_dir(place.path().join("tree")).expect("a directory");
        Tree { place }
    }

    /// A tree of random files: all sorts of text, some of them not text, in nested directories.
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

    /// The test's own directory.
    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// The directory that is searched.
    pub fn root(&self) -> PathBuf {
        self.place.path().join("tree")
    }

    /// Where the index is.
    pub fn index(&self) -> PathBuf {
        self.place.path().join("index.db")
    }

    /// The path of something in the tree.
    pub fn path(&self, below: &str) -> PathBuf {
        self.root().join(below)
    }

    /// Writes a file, and the directories it needs.
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

    /// Makes a pipe; whoever opens it to read waits for ever.
    pub fn pipe(&self, below: &str) {
        let made = Command::new("mkfifo").arg(self.path(below)).status();
        assert!(made.expect("mkfifo").success());
    }
}

/// Pieces of lines: words, operators of the query language, and characters that are hard to get
/// right.
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
