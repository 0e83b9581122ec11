//! Errors: exit status 2, one line on stderr with the reason, and no file damaged.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use rusqlite::Connection;

use crate::program::Run;
use crate::tree::Tree;

#[test]
fn an_impossible_query_is_refused() {
    let tree = Tree::new();
    tree.search("").assert_trouble("QUERY is empty");
    tree.search("a\nb").assert_trouble("newline");
    tree.search(OsStr::from_bytes(b"\xFF"))
        .assert_trouble("not valid UTF-8");
    assert!(!tree.index().exists(), "refused before anything is made");
}

#[test]
fn a_wrong_command_line_is_refused() {
    let tree = Tree::new();
    for (arguments, text) in [
        (&[][..], "two arguments are needed, 0 given"),
        (&["tree"], "two arguments are needed, 1 given"),
        (
            &["tree", "abc", "more"],
            "two arguments are needed, 3 given",
        ),
        (&["tree", "--frobnicate"], "after '--'"),
        (&["tree", "abc", "--wait", "soon"], "--wait"),
        (&["tree", "abc", "--wait"], "--wait"),
        (&["", "abc"], "DIR is empty"),
        (&["tree", "abc", "--index", ""], "--index is empty"),
    ] {
        let run = Run::of(tree.command().current_dir(tree.place()).args(arguments));
        run.assert_trouble(text);
        run.assert_trouble("--help");
    }
}

#[test]
fn help_explains_the_usage_on_stdout() {
    let run = Run::of(Tree::new().command().arg("--help"));
    assert_eq!((run.status, run.said.as_str()), (Some(0), ""));
    for word in [
        "Usage: code_search",
        "DIR",
        "QUERY",
        "--index FILE",
        "Exit status",
        "16 MiB",
    ] {
        assert!(run.hits.contains(word), "no {word} in {}", run.hits);
    }
}

#[test]
fn a_path_that_is_not_a_directory_is_refused() {
    let tree = Tree::new();
    tree.write("file", "abc\n");
    for (dir, text) in [("missing", "No such file"), ("file", "Not a directory")] {
        Run::of(tree.command().arg(tree.path(dir)).arg("abc")).assert_trouble(text);
    }
}

#[test]
fn a_file_that_is_no_index_is_refused_and_left_as_it_is() {
    for content in [
        "x".to_owned(),
        "precious ".repeat(20),
        "precious\n".repeat(10_000),
    ] {
        let tree = Tree::new();
        fs::write(tree.index(), &content).expect("a written file");
        tree.search("abc")
            .assert_trouble("not an index of code_search");
        assert_eq!(fs::read_to_string(tree.index()).expect("the file"), content);
    }
}

#[test]
fn another_programs_database_is_refused_and_left_as_it_is() {
    let tree = Tree::new();
    let foreign = Connection::open(tree.index()).expect("a database");
    foreign
        .execute_batch("CREATE TABLE precious(x); INSERT INTO precious VALUES(1)")
        .expect("a row");
    drop(foreign);
    let before = fs::read(tree.index()).expect("the file");
    tree.search("abc")
        .assert_trouble("not an index of code_search");
    assert_eq!(fs::read(tree.index()).expect("the file"), before);
}

#[test]
fn an_index_of_another_version_is_refused() {
    let tree = Tree::new();
    tree.search("abc");
    let index = Connection::open(tree.index()).expect("the index");
    index
        .pragma_update(None, "user_version", 99)
        .expect("a changed version");
    drop(index);
    tree.search("abc").assert_trouble("version 99");
}

#[test]
fn a_damaged_index_is_refused_and_not_deleted() {
    let tree = Tree::random(3);
    tree.write("large", "needle in a haystack\n".repeat(20_000));
    assert_eq!(tree.search("needle").status, Some(0));
    let mut bytes = fs::read(tree.index()).expect("the index");
    let length = bytes.len();
    bytes[4096..].fill(0xAA);
    fs::write(tree.index(), &bytes).expect("a written file");
    tree.search("needle").assert_trouble("damaged");
    assert_eq!(
        fs::metadata(tree.index()).expect("the file").len(),
        length as u64
    );

    bytes.truncate(length / 2 + 100);
    fs::write(tree.index(), &bytes).expect("a written file");
    tree.search("needle").assert_trouble("damaged");
}

#[test]
fn an_index_path_that_is_no_regular_file_is_refused() {
    let tree = Tree::new();
    let directory = tree.place();
    let index = |path| {
        Run::of(
            tree.command()
                .arg("--index")
                .arg(path)
                .arg(tree.root())
                .arg("abc"),
        )
    };
    index(directory.to_owned()).assert_trouble("regular file");
    tree.pipe("pipe");
    index(tree.path("pipe")).assert_trouble("regular file");
    tree.write("file", "");
    index(tree.path("file/index.db")).assert_trouble("the index");
}

#[test]
fn a_locked_index_is_waited_for_at_most_as_long_as_wait_says() {
    let tree = Tree::new();
    tree.write("file", "needle\n");
    tree.search("needle");
    let other = Connection::open(tree.index()).expect("the index");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let impatient = || {
        Run::of(
            tree.command()
                .args(["--wait", "0"])
                .arg(tree.root())
                .arg("needle"),
        )
    };
    assert_eq!(impatient().status, Some(0), "there is nothing to write");
    tree.write("more", "needle\n");
    impatient().assert_trouble("busy");
    other
        .execute_batch("ROLLBACK")
        .expect("the lock given back");
    assert_eq!(impatient().account().files, 2);
}

#[test]
fn an_index_that_is_being_read_can_be_searched_in_any_journal_mode() {
    let tree = Tree::new();
    tree.write("file", "needle\n");
    tree.search("needle");
    let other = Connection::open(tree.index()).expect("the index");
    // The index has this mode for a moment when it is created; SQLite changes it only while no
    // other connection uses it.
    other
        .pragma_update(None, "journal_mode", "DELETE")
        .expect("a changed journal");
    other
        .execute_batch("BEGIN; SELECT * FROM files")
        .expect("a lock");
    assert_eq!(tree.search("needle").status, Some(0));
    other
        .execute_batch("ROLLBACK")
        .expect("the lock given back");
    assert_eq!(tree.search("needle").status, Some(0));
    drop(other);
    let other = Connection::open(tree.index()).expect("the index");
    let journal = other.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    assert_eq!(journal.expect("a name"), "wal");
}
