//! The example `copy`, run as its users run it.

use std::ffi::OsStr;
use std::fs::{OpenOptions, read, write};
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use crate::child::{example, finish, interrupt_child};
use crate::support::{WATCH, within};

fn run(arguments: &[&OsStr]) -> Output {
    let mut command = Command::new(example("copy"));
    command.args(arguments).env_remove("GREENROOM_LOG");
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Returns bytes that differ from part to part.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 / 65_536 + n) as u8).collect()
}

#[test]
fn a_file_is_copied_in_parts_and_in_several_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (from, to, content) = (path("from"), path("to"), content(200_000));
    write(&from, &content).unwrap();

    let limit = OsStr::new("--at-most=70000");
    for there in [70_000, 140_000] {
        let stopped = run(&[limit, from.as_ref(), to.as_ref()]);
        let says = format!("copy: aborted ({there} of 200000 bytes are there)\n");
        assert_eq!(text(stopped.stderr), says);
        assert_eq!(stopped.status.code(), Some(71));
        assert!(!to.exists());
        assert_eq!(read(path("to.part")).unwrap(), content[..there]);
    }
    let done = run(&[
        OsStr::new("--debug-level=debug"),
        from.as_ref(),
        to.as_ref(),
    ]);
    let printed = text(done.stdout);
    // A line before tells how far the copy was, unless it was complete before the question.
    assert!(printed.ends_with("copied 60000 bytes\n"), "{printed}");
    let trace = text(done.stderr);
    for line in [
        ">copy[Opening] - Received Opened from",
        ">copy[Copying] - Received Copied from",
        ">copy[Naming] - Received Named from",
        ">copy[Naming] - Destroyed",
    ] {
        assert!(trace.contains(line), "{line:?} is missing in {trace}");
    }
    assert!(done.status.success());
    assert_eq!(read(&to).unwrap(), content);
    assert!(!path("to.part").exists());
}

#[test]
fn an_empty_file_is_copied_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    write(&from, []).unwrap();
    let done = run(&[from.as_ref(), to.as_ref()]);
    assert!(text(done.stdout).ends_with("copied 0 bytes\n"));
    assert!(done.status.success());
    assert_eq!(read(&to).unwrap(), []);
}

#[test]
fn a_copy_does_not_go_on_if_the_original_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (from, to, mut content) = (path("from"), path("to"), content(200_000));
    write(&from, &content).unwrap();
    run(&[OsStr::new("--at-most=140000"), from.as_ref(), to.as_ref()]);
    let there = read(path("to.part")).unwrap();
    assert_eq!(there, content[..140_000]);
    // The first and the last byte of the last part.
    for changed in [140_000 - 65_536, 139_999] {
        content[changed] ^= 1;
        write(&from, &content).unwrap();
        let output = run(&[from.as_ref(), to.as_ref()]);
        let says = "copy: cannot copy (the original has changed)\n";
        assert_eq!(text(output.stderr), says);
        assert_eq!(output.status.code(), Some(71));
        assert!(!to.exists());
        assert_eq!(read(path("to.part")).unwrap(), there);
        content[changed] ^= 1;
    }
    write(&from, &content).unwrap();
    assert!(run(&[from.as_ref(), to.as_ref()]).status.success());
    assert_eq!(read(&to).unwrap(), content);
}

#[test]
fn a_stop_while_the_files_are_opened_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    // A pipe, whose opening waits for a writer.
    let made = Command::new("mkfifo").arg(&from).status().unwrap();
    assert!(made.success());
    let mut command = Command::new(example("copy"));
    command.arg("-dl=debug").args([&from, &to]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let trace = BufReader::new(child.stderr.take().unwrap());
    let (status, last) = within(WATCH, move || {
        let mut lines = trace.lines().map(Result::unwrap);
        let mut until = |part| lines.find(|line| line.contains(part)).unwrap();
        until("copy[Opening] - Received Progress");
        interrupt_child(&child);
        until("copy[Opening] - Received Stop");
        OpenOptions::new().write(true).open(from).unwrap();
        let status = child.wait().unwrap();
        (status, lines.last().unwrap())
    });
    assert_eq!(status.code(), Some(71));
    let says = "copy: cannot copy (the original is not a regular file)";
    assert_eq!(last, says);
    assert!(!folder.path().join("to.part").exists());
}

#[test]
fn faults_exit_with_71_and_bad_arguments_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (from, to, missing) = (path("from"), path("to"), path("missing"));
    write(&from, "short").unwrap();
    write(path("to.part"), "longer than that").unwrap();
    let os = OsStr::new;
    let usage = "copy: usage: copy [--at-most=BYTES] [--debug-level=LEVEL] FROM TO\n";
    for (arguments, status, message) in [
        (
            &[missing.as_ref(), path("other").as_ref()][..],
            71,
            "copy: cannot copy (No such file or directory (os error 2))\n",
        ),
        (
            &[from.as_ref(), to.as_ref()],
            71,
            "copy: cannot copy (there are more bytes than in the original)\n",
        ),
        (
            &[os("/dev/zero"), path("zeros").as_ref()],
            71,
            "copy: cannot copy (the original is not a regular file)\n",
        ),
        (
            &[folder.path().as_ref(), path("folders").as_ref()],
            71,
            "copy: cannot copy (the original is not a regular file)\n",
        ),
        (&[from.as_ref()], 2, usage),
        (&[], 2, usage),
        (&[os("--all")], 2, "copy: invalid option '--all'\n"),
        (
            &[os("--debug-level=loud")],
            2,
            "copy: cannot parse argument \"loud\": \"loud\" is none of",
        ),
        (
            &[os("-dl=loud")],
            2,
            "copy: cannot parse argument \"loud\": \"loud\" is none of",
        ),
        (&[os("-d"), os("debug")], 2, "copy: invalid option '-d'\n"),
        (&[os("--at-most=few")], 2, "copy: "),
        (
            &[os("a"), os("b"), os("c")],
            2,
            "copy: unexpected argument \"c\"\n",
        ),
    ] {
        let output = run(arguments);
        let printed = text(output.stderr);
        assert!(printed.starts_with(message), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert_eq!(output.status.code(), Some(status), "{printed}");
        assert!(output.stdout.is_empty());
    }
    assert!(!path("zeros.part").exists() && !path("folders.part").exists());
}
