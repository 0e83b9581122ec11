//! The example `supervise`, run as its users run it.

use std::fs::{File, write};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::child::{example, finish, interrupt_child};
use crate::support::{WATCH, within};

fn run(arguments: &[&Path]) -> Output {
    let mut command = Command::new(example("supervise"));
    command.args(arguments);
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_file_that_is_not_text_panics_its_reader_and_all_others_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("c")).unwrap();
    write(path("a.txt"), "The cat, the dog").unwrap();
    write(path("b.bin"), [0xff; 100]).unwrap();
    write(path("c/d.bin"), [0xff; 100]).unwrap();
    write(path("c/e.txt"), "the bird").unwrap();
    let output = run(&[folder.path()]);
    let printed = text(output.stdout);
    for (name, number) in [("b.bin", 1), ("c/d.bin", 2)] {
        let lost = format!("{}: \"reader\" #3 panicked: not text", path(name).display());
        let restart = format!("\"reader\" #3 begins anew ({number}): panicked: not text");
        for line in [lost, restart] {
            assert!(printed.lines().any(|printed| printed == line), "{printed}");
        }
    }
    let end = "the reader ends\n\
               the index ends: files 2, words 4, most frequent \"the\"\n\
               reader: restarts 2, last fault: not text\n";
    assert!(printed.ends_with(end), "{printed}");
    assert_eq!(text(output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn an_interrupt_stops_the_children_in_reverse_order() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path().join("a.txt"), "a").unwrap();
    let pipe = folder.path().join("b");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let mut command = Command::new(example("supervise"));
    command.arg(folder.path());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    // The program reads from the pipe by now, and notices Ctrl-C.
    let open = within(WATCH, move || File::create(pipe).unwrap());
    interrupt_child(&child);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut line = || lines.next().map(Result::unwrap);
    assert_eq!(line().as_deref(), Some("Ctrl-C: stopping"));
    drop(open);
    assert_eq!(line().as_deref(), Some("the reader ends"));
    let end = "the index ends: files 2, words 1, most frequent \"a\"";
    assert_eq!(line().as_deref(), Some(end));
    assert_eq!(line(), None);
    let output = child.wait_with_output().unwrap();
    let fault = "supervise: aborted (user or software interrupt)\n";
    assert_eq!(text(output.stderr), fault);
    assert_eq!(output.status.code(), Some(71));
}

#[test]
fn a_fault_exits_with_71_and_bad_arguments_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let option = Path::new("--all");
    let unlisted = format!(
        "supervise: cannot list ({}: No such file or directory (os error 2))\n",
        missing.display()
    );
    for (arguments, status, message) in [
        (&[&*missing][..], 71, &*unlisted),
        (&[], 2, "supervise: usage: supervise FOLDER\n"),
        (&[option], 2, "supervise: invalid option '--all'\n"),
        (&[folder.path(); 2], 2, "supervise: unexpected argument"),
    ] {
        let output = run(arguments);
        let printed = text(output.stderr);
        assert!(printed.starts_with(message), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert_eq!(output.status.code(), Some(status), "{printed}");
        assert!(output.stdout.is_empty());
    }
}
