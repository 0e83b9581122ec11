//! Later runs: they read the changed files, forget the deleted ones, and leave the rest alone.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::program::{Account, Run, executable};
use crate::scan;
use crate::tree::Tree;

/// Searches the tree and asserts that the hits are those of a plain scan.
fn search(tree: &Tree, query: &str) -> Run {
    let run = tree.search(query);
    assert_eq!(run.hits, scan::hits(&tree.root(), query), "{}", run.said);
    run
}

#[test]
fn a_second_run_reads_only_what_changed() {
    let tree = Tree::random(1);
    let first = search(&tree, "abc").account();
    let second = search(&tree, "abc").account();
    let unchanged = Account {
        read: 0,
        unchanged: first.files,
        rows: 0,
        ..first
    };
    assert_eq!(second, unchanged);

    tree.write("a/new", "abc and more\n\nabc\n");
    let third = search(&tree, "abc").account();
    let files = first.files + 1;
    assert_eq!(
        third,
        Account {
            files,
            read: 1,
            rows: 2,
            ..unchanged
        }
    );

    tree.write("a/new", "ABC AND MORE\n\nabc\n");
    let fourth = search(&tree, "abc").account();
    assert_eq!(
        fourth,
        Account {
            files,
            read: 1,
            unchanged: first.files,
            rows: 2,
            forgotten: 0
        }
    );
}

#[test]
fn files_that_are_not_text_are_not_read_again() {
    let tree = Tree::new();
    tree.write("nul", "abc\0\n");
    tree.write("latin1", b"caf\xE9\n");
    for _ in 0..2 {
        let run = search(&tree, "abc");
        assert_eq!(
            (run.left_out("contains NUL"), run.left_out("not UTF-8")),
            (1, 1)
        );
    }
    let index = rusqlite::Connection::open(tree.index()).expect("the index");
    // Only a file that is stored anew gets a new number.
    let highest = "SELECT max(id) FROM files";
    let highest: i64 = index
        .query_row(highest, [], |row| row.get(0))
        .expect("a number");
    assert_eq!(highest, 2);
}

#[test]
fn a_change_is_noticed_even_if_size_and_modification_time_are_the_same() {
    let tree = Tree::new();
    tree.write("file", "before\n");
    search(&tree, "before");
    tree.write("file", "behind\n"); // `write` sets the same old time.
    assert_eq!(search(&tree, "behind").status, Some(0));
    assert_eq!(search(&tree, "before").status, Some(1));
}

#[test]
fn a_file_read_just_after_it_was_written_is_read_again() {
    let tree = Tree::new();
    tree.write("file", "needle\n");
    let file = File::options()
        .write(true)
        .open(tree.path("file"))
        .expect("the file");
    let stored = |_| -> i64 {
        // As fresh as possible: a clock that runs ahead gives a time in the future.
        let soon = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
        file.set_modified(soon).expect("a changed time");
        assert_eq!(search(&tree, "needle").account().read, 1);
        let index = rusqlite::Connection::open(tree.index()).expect("the index");
        let size = "SELECT size FROM files";
        index.query_row(size, [], |row| row.get(0)).expect("a size")
    };
    // A slow machine may read it when it is no longer fresh.
    assert!(
        (0..60).map(stored).any(|size| size == -1),
        "stored with the size that makes the next run read it again"
    );
    assert_eq!(search(&tree, "needle").account().read, 1);
}

#[test]
fn deleted_files_are_forgotten() {
    let tree = Tree::new();
    for name in ["keep", "a/one", "a/two", "b"] {
        tree.write(name, format!("needle in {name}\n"));
    }
    search(&tree, "needle");
    tree.delete("b");
    fs::remove_dir_all(tree.path("a")).expect("a deleted directory");
    let run = search(&tree, "needle");
    assert_eq!((run.account().files, run.account().forgotten), (1, 3));
    let index = rusqlite::Connection::open(tree.index()).expect("the index");
    let rows: i64 = index
        .query_row("SELECT count(*) FROM lines", [], |row| row.get(0))
        .expect("a number");
    assert_eq!(rows, 1);
}

#[test]
fn files_that_are_no_longer_text_are_forgotten() {
    let tree = Tree::new();
    let names = [
        "link",
        "pipe",
        "directory",
        "nul",
        "latin1",
        "large",
        "renamed",
    ];
    for name in names {
        tree.write(name, "needle\n");
    }
    assert_eq!(search(&tree, "needle").account().files, names.len() as u64);
    for name in ["link", "pipe", "directory"] {
        tree.delete(name);
    }
    symlink(tree.path("renamed"), tree.path("link")).expect("a link");
    tree.pipe("pipe");
    tree.write("directory/inside", "needle\n");
    tree.write("nul", "needle\n\0");
    tree.write("latin1", b"needle\n\xE9");
    let large = File::options()
        .write(true)
        .open(tree.path("large"))
        .expect("the file");
    large.set_len(16 * 1024 * 1024 + 1).expect("a hole");
    fs::rename(tree.path("renamed"), tree.path("other")).expect("a renamed file");
    let run = search(&tree, "needle");
    assert_eq!(run.account().files, 2, "{}", run.said);
    for reason in [
        "symbolic link",
        "device, pipe or socket",
        "contains NUL",
        "not UTF-8",
        "larger than 16 MiB",
    ] {
        assert_eq!(run.left_out(reason), 1, "{reason}: {}", run.said);
    }
    assert!(
        search(&tree, "ne").status == Some(0),
        "the stored lines are searched as well"
    );
}

#[test]
fn links_pipes_and_sockets_are_counted_and_not_opened() {
    let tree = Tree::new();
    tree.write("file", "needle\n");
    symlink("file", tree.path("to a file")).expect("a link");
    symlink("..", tree.path("to a directory")).expect("a link");
    symlink("nothing", tree.path("to nothing")).expect("a link");
    symlink("to itself", tree.path("to itself")).expect("a link");
    tree.pipe("pipe");
    let _socket = UnixListener::bind(tree.path("socket")).expect("a socket");
    let run = search(&tree, "needle");
    assert_eq!(run.left_out("symbolic link"), 4);
    assert_eq!(run.left_out("device, pipe or socket"), 2);
    assert!(
        run.said.contains("    pipe\n") && run.said.contains("    and 1 more\n"),
        "{}",
        run.said
    );
}

#[test]
fn unreadable_paths_are_named_and_only_directories_keep_their_lines() {
    let tree = Tree::new();
    tree.write("open", "needle\n");
    tree.write("file", "needle\n");
    tree.write("directory/inside", "needle\n");
    // Root may read everything, so root's tests run the program as another user.
    //
    // `cp` writes the copy: a child of another test could inherit a file that this process writes
    // to, and a file that is open for writing can't be executed.
    let program = tree.place().join("code_search");
    let copied = std::process::Command::new("cp")
        .arg(executable())
        .arg(&program)
        .status()
        .expect("cp starts");
    assert!(copied.success(), "{copied}");
    let place = tree.place().join("index");
    fs::create_dir(&place).expect("a directory");
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| {
        use std::os::unix::fs::MetadataExt;
        me.uid() == 0
    });
    for open in [tree.place(), &place] {
        fs::set_permissions(open, Permissions::from_mode(0o777)).expect("a mode");
    }
    let run = || {
        let mut command = std::process::Command::new(&program);
        command
            .arg("--index")
            .arg(place.join("db"))
            .arg(tree.root())
            .arg("needle");
        if is_root {
            command.uid(65534).gid(65534);
        }
        Run::of(&mut command)
    };
    assert_eq!(run().account().files, 3);
    let modes = |file, directory| {
        for (name, mode) in [("file", file), ("directory", directory)] {
            fs::set_permissions(tree.path(name), Permissions::from_mode(mode)).expect("a mode");
        }
    };
    modes(0o000, 0o000);
    let closed = run();
    modes(0o644, 0o755);
    assert_eq!(closed.status, Some(0));
    assert_eq!(closed.left_out("unreadable"), 2, "{}", closed.said);
    assert!(
        closed.said.contains("    file: Permission denied"),
        "{}",
        closed.said
    );
    assert!(
        closed.said.contains("    directory: Permission denied"),
        "{}",
        closed.said
    );
    let root = tree.root().display().to_string();
    let expected = format!("{root}/directory/inside:1: needle\n{root}/open:1: needle\n");
    assert_eq!(closed.hits, expected);
    assert_eq!(run().account().files, 3);
}

#[test]
fn one_index_serves_several_directories() {
    let tree = Tree::new();
    tree.write("a/file", "needle in a\n");
    tree.write("b/file", "needle in b\n");
    let search = |directory: &str| {
        let root = tree.place().join(directory);
        let run = Run::of(tree.command().arg(&root).arg("needle"));
        assert_eq!(run.hits, scan::hits(&root, "needle"));
        run.account()
    };
    assert_eq!(search("tree/a").read, 1);
    assert_eq!(search("tree/b").read, 1);
    assert_eq!(search("tree").read, 2);
    tree.delete("a/file");
    assert_eq!(search("tree/b").forgotten, 0);
    assert_eq!(search("tree/a").forgotten, 1);
    assert_eq!(search("tree").forgotten, 1);
}

#[test]
fn an_index_below_the_directory_is_not_searched() {
    let tree = Tree::new();
    tree.write("file", "needle\n");
    for _ in 0..2 {
        let run = Run::of(
            tree.command()
                .arg("--index")
                .arg(tree.path("index.db"))
                .arg(tree.root())
                .arg("needle"),
        );
        assert_eq!(run.account().files, 1, "{}", run.said);
        assert!(run.left_out("the index itself") >= 1, "{}", run.said);
    }
}

#[test]
fn several_processes_may_use_a_new_index_at_once() {
    for seed in 0..3 {
        let tree = Tree::random(seed);
        let expected = scan::hits(&tree.root(), "abc");
        let children: Vec<_> = (0..4).map(|_| tree.start("abc", Stdio::piped())).collect();
        for child in children {
            let run = Run::from(child.wait_with_output().expect("an end"));
            assert_eq!(run.hits, expected, "{}", run.said);
        }
        let last = search(&tree, "abc").account();
        assert_eq!((last.read, last.forgotten), (0, 0));
        let index = rusqlite::Connection::open(tree.index()).expect("the index");
        let check = index.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
        assert_eq!(check.expect("a check"), "ok");
    }
}

#[test]
fn the_default_index_is_in_the_cache_directory_for_its_owner_only() {
    let tree = Tree::new();
    tree.write("file", "needle\n");
    let cache = tree.place().join("cache");
    let run = Run::of(
        std::process::Command::new(executable())
            .env("XDG_CACHE_HOME", &cache)
            .arg(tree.root())
            .arg("needle"),
    );
    assert_eq!(run.status, Some(0), "{}", run.said);
    let index = fs::metadata(cache.join("greenroom/code_search.db")).expect("the index");
    assert_eq!(index.permissions().mode() & 0o777, 0o600);
}
