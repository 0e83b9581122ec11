//! The example `requests`, run as its users run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::child::{example, finish};

fn run(arguments: &[&Path]) -> Output {
    let mut command = Command::new(example("requests"));
    command.args(arguments);
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// Returns a folder that has one file for each of these numbers of lines, and another folder.
fn folder(files: &[usize]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for lines in files {
        std::fs::write(file(&folder, *lines), "line\n".repeat(*lines)).unwrap();
    }
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    folder
}

fn file(folder: &TempDir, lines: usize) -> PathBuf {
    folder.path().join(format!("{lines} lines"))
}

#[test]
fn every_request_has_its_outcome_and_every_actor_its_end() {
    let folder = folder(&[3, 0, 20, 7, 1, 2]);
    let output = run(&[folder.path()]);
    let longest = file(&folder, 20);
    let expected = format!(
        "reading 6 files, at most 4 at a time\n\
         the index answered at attempt 3\n\
         printed: {} is the longest of 6 files\n\
         printer: refused: out of paper (add some)\n\
         plotter: no answer came in time\n\
         the plotter ended: Killed\n\
         the children ended: index 3, printer 1, reader 6\n",
        longest.display()
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
}

#[test]
fn a_refusal_that_would_be_repeated_forever_ends_the_report() {
    let folder = tempfile::tempdir().unwrap();
    // The first byte of this file cannot be read.
    std::os::unix::fs::symlink("/proc/self/mem", folder.path().join("mem")).unwrap();
    let output = run(&[folder.path()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("mem: refused: not readable ("), "{text}");
    let end = "index: refused: no files (none was readable)\n\
               the plotter ended: Killed\n\
               the children ended: index 3, printer 0, reader 1\n";
    assert!(text.ends_with(end), "{text}");
    assert!(output.status.success());
}

#[test]
fn bad_arguments_are_refused_in_one_line() {
    let folder = folder(&[1]);
    let (empty, file) = (folder.path().join("empty"), file(&folder, 1));
    let missing = folder.path().join("missing");
    for (arguments, message) in [
        (&[&*missing][..], "missing: No such file or directory"),
        (&[&*file], "1 lines: Not a directory"),
        (&[&*empty], "empty has no files"),
        (&[&*empty, &*empty], "usage: requests [FOLDER]"),
    ] {
        let output = run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(message), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(output.stdout.is_empty());
    }
}
