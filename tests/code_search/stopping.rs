//! Ctrl-C: the first stops the program in order and keeps the files read so far, the second ends it
//! at once.
//!
//! The test stops the program in the middle of its work by holding the index's lock. It continues
//! only when stderr says that the program has received Ctrl-C.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use rusqlite::Connection;

use crate::program::Run;
use crate::scan;
use crate::tree::Tree;

/// More files than all mailboxes together can hold.
const FILES: i64 = 2000;

/// A run that waits for the lock of its index.
struct Held {
    tree: Tree,
    lock: Connection,
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Held {
    fn new() -> Held {
        let tree = Tree::new();
        tree.search("needle"); // Makes the index.
        for number in 0..FILES {
            tree.write(
                &format!("{}/{number}", number % 7),
                format!("needle {number}\n"),
            );
        }
        let lock = Connection::open(tree.index()).expect("the index");
        lock.execute_batch("BEGIN IMMEDIATE").expect("the lock");
        let mut child = tree.start("needle", Stdio::null());
        let said = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut held = Held {
            tree,
            lock,
            child,
            said,
        };
        held.wait_for("waiting");
        held
    }

    /// Reads the program's messages until a line contains `text`.
    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(
                self.said.read_line(&mut line).expect("a line"),
                0,
                "ended before {text:?}"
            );
        }
    }

    fn press_ctrl_c(&self) {
        let kill = format!("kill -INT {}", self.child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .expect("a shell")
                .success()
        );
    }
}

/// Returns how many files the index has, after SQLite has found it intact.
fn files_in_order(tree: &Tree) -> i64 {
    // A separate connection, because FTS5 checks the state that its connection remembers, not the
    // file.
    let index = Connection::open(tree.index()).expect("the index");
    let check = index.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(check.expect("a check"), "ok");
    index
        .query_row("SELECT count(*) FROM files", [], |row| row.get(0))
        .expect("a number")
}

#[test]
fn ctrl_c_keeps_what_was_read_and_the_next_run_completes_it() {
    let mut held = Held::new();
    held.press_ctrl_c();
    held.wait_for("stopping in order");
    held.lock
        .execute_batch("ROLLBACK")
        .expect("the lock given back");
    let mut rest = String::new();
    held.said.read_to_string(&mut rest).expect("messages");
    assert_eq!(
        held.child.wait().expect("an end").code(),
        Some(130),
        "{rest}"
    );
    assert!(rest.contains("stopped by Ctrl-C"), "{rest}");

    let kept = files_in_order(&held.tree);
    assert!(0 < kept && kept < FILES, "{kept} files were kept");
    let next = held.tree.search("needle");
    assert_eq!(next.hits, scan::hits(&held.tree.root(), "needle"));
    let account = next.account();
    assert_eq!(
        (account.unchanged, account.files),
        (kept as u64, FILES as u64),
        "{}",
        next.said
    );
}

#[test]
fn an_interrupted_walk_forgets_no_file() {
    let mut held = Held::new();
    held.lock
        .execute_batch("ROLLBACK")
        .expect("the lock given back");
    held.wait_for("lines found");
    assert_eq!(held.child.wait().expect("an end").code(), Some(0));

    // All files are known; some were deleted, some have changed, and the walk does not finish.
    for number in 0..FILES {
        let path = format!("{}/{number}", number % 7);
        match number % 20 {
            0 => held.tree.delete(&path),
            _ => held.tree.write(&path, "changed\n"),
        }
    }
    held.lock
        .execute_batch("BEGIN IMMEDIATE")
        .expect("the lock");
    let mut child = held.tree.start("needle", Stdio::null());
    held.said = BufReader::new(child.stderr.take().expect("a pipe"));
    held.child = child;
    held.wait_for("waiting");
    held.press_ctrl_c();
    held.wait_for("stopping in order");
    held.lock
        .execute_batch("ROLLBACK")
        .expect("the lock given back");
    assert_eq!(held.child.wait().expect("an end").code(), Some(130));
    assert_eq!(files_in_order(&held.tree), FILES);

    assert_eq!(held.tree.search("needle").status, Some(1));
    assert_eq!(files_in_order(&held.tree), FILES - FILES / 20);
}

#[test]
fn ctrl_c_twice_quits_at_once_and_leaves_the_index_in_order() {
    let mut held = Held::new();
    held.press_ctrl_c();
    held.wait_for("stopping in order");
    held.press_ctrl_c();
    assert_eq!(held.child.wait().expect("an end").code(), Some(130));
    held.lock
        .execute_batch("ROLLBACK")
        .expect("the lock given back");
    assert_eq!(files_in_order(&held.tree), 0);
    let next: Run = held.tree.search("needle");
    assert_eq!(next.account().read, FILES as u64);
    assert_eq!(next.hits, scan::hits(&held.tree.root(), "needle"));
}
