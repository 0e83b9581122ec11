//! The example `far_search`, run as its users run it.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const FILES: usize = 30;

/// Returns the command of the example, which cargo builds beside the tests.
fn far_search() -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent);
    let example: PathBuf = profile.unwrap().join("examples/far_search");
    assert!(
        example.is_file(),
        "{} is not built: `cargo test` builds it, `cargo test --test far_search` alone does not, \
         so run `cargo build --example far_search` with the same options first",
        example.display(),
    );
    let mut command = Command::new(example);
    command.stdin(Stdio::null());
    command
}

/// Makes a folder of files that have the needle in their second line, and of some that have not.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    for file in 0..FILES {
        let text = format!("needles of file {file}\nthe needle, a needle\n");
        fs::write(folder.path().join(format!("sub/{file:02}.txt")), text).unwrap();
    }
    fs::write(folder.path().join("hay.txt"), "hay\n").unwrap();
    fs::write(folder.path().join("bytes.txt"), b"needle \xff\n").unwrap();
    folder
}

/// Returns the lines in which the needle is to be found.
fn needles() -> Vec<String> {
    let line = |file| format!("sub/{file:02}.txt:2: the needle, a needle");
    (0..FILES).map(line).collect()
}

fn text_of(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the lines that were found.
fn hits(text: &str) -> Vec<&str> {
    let hits = text.lines().filter(|line| line.contains(".txt:"));
    hits.collect()
}

/// Runs the demo, and looks at its three answers.
fn demo(options: &[&str]) {
    let folder = folder();
    let mut command = far_search();
    command.args(["demo", "--limit", "100"]).args(options);
    let output = command.arg(folder.path()).arg("needle").output().unwrap();
    let text = text_of(&output);
    assert!(output.status.success(), "{output:?}");
    let (before, rest) = text.split_once("\nkill -9 of shard 1\n").unwrap();
    let (meanwhile, after) = rest.split_once("\nshard 1 starts again\n").unwrap();
    for whole in [before, after] {
        assert_eq!(hits(whole), needles());
        assert!(whole.contains("30 of 30 lines, from 3 of 3 shards\n"));
        assert!(!whole.contains("missing"), "{whole}");
    }
    let missing = "shard 1 is missing: the node is out of reach\n";
    assert!(meanwhile.contains("from 2 of 3 shards\n"), "{meanwhile}");
    assert!(meanwhile.ends_with(missing), "{meanwhile}");
    let rest = hits(meanwhile);
    assert!(rest.len() < FILES && !rest.is_empty(), "{rest:?}");
    assert!(rest.iter().all(|hit| before.contains(hit)), "{rest:?}");
}

#[test]
fn a_shard_is_missing_only_while_its_node_is_dead() {
    demo(&[]);
}

#[test]
fn the_same_holds_with_certificates() {
    demo(&["--tls"]);
}

/// A node, which is killed when the test is over.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a node, and returns the address at which it listens.
fn node(shard: &str, seed: &[&str], folder: &TempDir) -> (Process, String) {
    let mut command = far_search();
    command.args(["node", "--of", "2", "--listen", "127.0.0.1:0"]);
    command.args(["--shard", shard]).args(seed);
    let child = command.arg(folder.path()).stdout(Stdio::piped()).spawn();
    let mut process = Process(child.unwrap());
    let mut line = String::new();
    let stdout = process.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let (_, address) = line.trim_end().split_once(" listening at ").unwrap();
    (process, address.to_owned())
}

fn ask(seed: &str) -> Output {
    let mut command = far_search();
    command.args(["ask", "--limit", "7", "--seeds", seed, "needle"]);
    command.output().unwrap()
}

#[test]
fn a_front_finds_all_shards_by_one_seed_and_tells_which_does_not_exist() {
    let folder = folder();
    let (_first, seed) = node("0", &[], &folder);
    let half = ask(&seed);
    assert_eq!(half.status.code(), Some(1), "{half:?}");
    let missing = "shard 1 is missing: no actor has the name \"index/1/2\"";
    assert!(text_of(&half).contains(missing), "{half:?}");

    let (_second, _) = node("1", &["--seeds", &seed], &folder);
    let whole = ask(&seed);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    assert_eq!(hits(&text_of(&whole)), needles()[..7]);
    assert!(text_of(&whole).ends_with("7 of 30 lines, from 2 of 2 shards\n"));
}

#[test]
fn without_any_shard_a_front_tells_why_its_seed_is_not_reached() {
    let none = ask("127.0.0.1:1");
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    let text = String::from_utf8(none.stderr).unwrap();
    let reason = "far_search: no shard was found: 127.0.0.1:1: Connection refused";
    assert!(text.starts_with(reason), "{text}");
}
