//! Hits: the program prints the same lines as a plain scan, in the same order and format.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fastrand::Rng;

use crate::program::Run;
use crate::scan;
use crate::tree::{PIECES, Tree};

/// Asserts that one search gives the same hits as a plain scan of the same tree.
fn assert_like_a_plain_scan(tree: &Tree, root: &Path, query: &str) {
    let run = Run::of(tree.command().arg("--").arg(root).arg(query));
    let expected = scan::hits(root, query);
    assert_eq!(run.hits, expected, "for {query:?}: {}", run.said);
    assert_eq!(
        run.status,
        Some(i32::from(expected.is_empty())),
        "for {query:?}: {}",
        run.said
    );
}

/// Returns a piece, `length` characters long, of some line of the tree, if there is such a piece.
fn piece_of(texts: &[(Vec<u8>, String)], length: usize, rng: &mut Rng) -> Option<String> {
    let (_, text) = rng.choice(texts)?;
    let line: Vec<char> = rng
        .choice(text.split('\n').collect::<Vec<_>>())?
        .chars()
        .collect();
    let start = rng.usize(..=line.len().checked_sub(length)?);
    Some(line[start..start + length].iter().collect())
}

#[test]
fn hits_equal_a_plain_scan_on_generated_trees() {
    for seed in 0..4 {
        let tree = Tree::random(seed);
        let mut rng = Rng::with_seed(seed);
        let texts = scan::texts(&tree.root());
        for length in [1, 1, 2, 2, 3, 3, 3, 4, 5, 8, 13, 21] {
            if let Some(query) = piece_of(&texts, length, &mut rng) {
                assert_like_a_plain_scan(&tree, &tree.root(), &query);
            }
        }
        for _ in 0..12 {
            let pieces = (0..rng.usize(1..4)).map(|_| PIECES[rng.usize(..PIECES.len())]);
            assert_like_a_plain_scan(&tree, &tree.root(), &pieces.collect::<String>());
        }
    }
}

#[test]
fn hits_equal_a_plain_scan_on_the_crates_own_sources() {
    let tree = Tree::new();
    for directory in ["src", "examples", "tests"] {
        // A copy, because the sources might change during the test.
        for (path, text) in scan::texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)) {
            let path = String::from_utf8(path).expect("a path in UTF-8");
            tree.write(&format!("{directory}/{path}"), text);
        }
    }
    for query in [
        "}",
        "//",
        "fn ",
        "Context",
        "use std::sync::",
        "\"'\"",
        "no such\tline at all",
    ] {
        assert_like_a_plain_scan(&tree, &tree.root(), query);
    }
}

#[test]
fn queries_are_literal_even_if_they_are_operators_of_the_index() {
    let tree = Tree::new();
    let odd = [
        "abc OR xyz",
        "\"abc\"",
        "abc*",
        "^abc",
        "NEAR(abc xyz)",
        "text:abc",
        "-abc",
        "%abc_",
    ];
    tree.write("odd", odd.join("\n"));
    tree.write("plain", "abc\nxyz\nABC\nab\nc\n");
    for query in odd
        .into_iter()
        .chain(["abc", "ABC", "aBc", "xyz AND abc", "\"", "\"\"", "bc*"])
    {
        assert_like_a_plain_scan(&tree, &tree.root(), query);
    }
}

#[test]
fn a_query_is_found_in_lines_and_not_across_them() {
    let tree = Tree::new();
    tree.write("file", "one\r\ntwo\n\n\nthree");
    let root = tree.root().display().to_string();
    assert_eq!(tree.search("one\r").hits, format!("{root}/file:1: one\r\n"));
    assert_eq!(tree.search("two").hits, format!("{root}/file:2: two\n"));
    assert_eq!(tree.search("three").hits, format!("{root}/file:5: three\n"));
    assert_eq!(tree.search("onetwo").status, Some(1));
}

#[test]
fn a_query_may_be_longer_than_the_index_needs() {
    let tree = Tree::new();
    let long: String = (0..5000).map(|number| format!("{number} ")).collect();
    tree.write("same", format!("before {long}\nafter\n"));
    tree.write(
        "other",
        format!("before {}\n", long.replace("4321", "4312")),
    );
    assert_like_a_plain_scan(&tree, &tree.root(), &long);
}

#[test]
fn short_and_long_lines_and_files_are_all_indexed() {
    let tree = Tree::new();
    tree.write("empty", "");
    tree.write("newlines", "\n".repeat(100_000));
    tree.write("one", "x");
    tree.write(
        "long",
        format!("{}needle{}", "hay ".repeat(500_000), " hay".repeat(500_000)),
    );
    for query in ["needle", "x", "ne"] {
        assert_like_a_plain_scan(&tree, &tree.root(), query);
    }
    assert_eq!(tree.search("x").account().files, 4);
}

#[test]
fn a_file_of_16_mib_is_indexed_and_a_larger_one_is_not() {
    let tree = Tree::new();
    let size = 16 * 1024 * 1024;
    // A line in each KiB, since an index of a million lines takes long without optimization.
    let lines = "\n".repeat(1008) + "0123456789abcde\n";
    let mut text = lines.repeat(size / 1024).into_bytes();
    text[size - 7..size - 1].copy_from_slice(b"needle");
    tree.write("just", &text);
    text.push(b'\n');
    tree.write("more", &text);
    let run = tree.search("needle");
    assert_eq!(
        run.hits,
        format!(
            "{}/just:{}: 012345678needle\n",
            tree.root().display(),
            size / 1024 * 1009
        )
    );
    assert_eq!(
        (run.account().files, run.left_out("larger than 16 MiB")),
        (1, 1)
    );
}

#[test]
fn every_text_file_is_counted_even_if_it_is_hidden() {
    for seed in 10..14 {
        let tree = Tree::random(seed);
        let texts = scan::texts(&tree.root());
        let account = tree.search("abc").account();
        assert_eq!(account.files, texts.len() as u64);
        let lines = texts.iter().flat_map(|(_, text)| text.split('\n'));
        assert_eq!(
            account.rows,
            lines.filter(|line| !line.is_empty()).count() as u64
        );
    }
}

#[test]
fn paths_need_not_be_utf8() {
    let tree = Tree::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xE9.txt");
    if fs::write(tree.root().join(name), "needle\n").is_err() {
        return; // A file system that accepts only UTF-8.
    }
    let output = tree
        .command()
        .arg(tree.root())
        .arg("needle")
        .output()
        .expect("a run");
    let expected = [
        tree.root().as_os_str().as_bytes(),
        b"/caf\xE9.txt:1: needle\n",
    ]
    .concat();
    assert_eq!(output.stdout, expected);
}

#[test]
fn hits_begin_with_the_directory_as_it_was_typed() {
    let tree = Tree::new();
    tree.write("a/file", "needle\n");
    for (dir, expected) in [
        ("tree", "tree/a/file:1: needle\n"),
        ("tree/", "tree/a/file:1: needle\n"),
        ("./tree/a", "./tree/a/file:1: needle\n"),
        ("tree/../tree", "tree/../tree/a/file:1: needle\n"),
    ] {
        let run = Run::of(
            tree.command()
                .current_dir(tree.place())
                .args([dir, "needle"]),
        );
        assert_eq!(run.hits, expected);
    }
}

#[test]
fn a_closed_stdout_ends_the_search_quietly() {
    let tree = Tree::new();
    tree.write("many", "needle in a line of some length\n".repeat(200_000));
    let mut child = tree.start("needle", Stdio::piped());
    let mut first = String::new();
    let mut hits = BufReader::new(child.stdout.take().expect("a pipe"));
    hits.read_line(&mut first).expect("a line");
    drop(hits);
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut said)
        .expect("messages");
    assert_eq!(child.wait().expect("an end").code(), Some(0), "{said}");
    assert!(
        first.ends_with("many:1: needle in a line of some length\n"),
        "{first:?}"
    );
    assert!(!said.contains("anic") && !said.contains("ipe"), "{said}");
}

#[test]
fn a_full_disk_behind_stdout_is_trouble() {
    let full = PathBuf::from("/dev/full");
    let Ok(full) = fs::File::options().write(true).open(full) else {
        return;
    };
    let tree = Tree::new();
    tree.write("file", "needle\n");
    let run = Run::of(tree.command().arg(tree.root()).arg("needle").stdout(full));
    assert_eq!(run.status, Some(2), "{}", run.said);
    assert!(run.said.contains("stdout"), "{}", run.said);
}
