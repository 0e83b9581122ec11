//! The example `bank`, run as its users run it.

use std::ffi::OsStr;
use std::fs::{read_to_string, write};
use std::process::{Command, Stdio};

use crate::child::{example, finish};

/// The output of a finished run, and its exit status.
struct Run {
    status: Option<i32>,
    out: String,
    err: String,
}

fn run(arguments: &[&OsStr]) -> Run {
    let mut command = Command::new(example("bank"));
    command.args(arguments).env_remove("GREENROOM_LOG");
    let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Run {
        status: output.status.code(),
        out,
        err,
    }
}

/// Runs the example with a file of this content.
fn run_with(content: &[u8]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("transfers");
    write(&file, content).unwrap();
    run(&[file.as_ref()])
}

#[test]
fn transfers_of_a_client_are_made_in_order_and_overdrafts_are_refused() {
    let run = run_with(b"ann,bob,600\nann,bob,600\nann, cem ,400\nann,cem,1\n");
    assert_eq!(run.out, "ann,0\nbob,1600\ncem,1400\n");
    let refused = "line 2: refused: the balance is 400, not 600\n\
                   line 4: refused: the balance is 0, not 1\n\
                   2 transfers were made, and 0 audits found 3000\n";
    assert_eq!((&*run.err, run.status), (refused, Some(0)));
}

#[test]
fn wrong_lines_are_reported_and_skipped() {
    let run = run_with(
        b"ann,bob\n\nann,bob,ten\nann,bob,-1\nann,bob,0\nann,ann,5\n,bob,5\n\xff,bob,5\n\
          ann,bob,18446744073709551616\nann,bob,5",
    );
    assert_eq!(run.out, "ann,995\nbob,1005\n");
    let skipped = "line 1: skipped: it is not from,to,amount\n\
                   line 2: skipped: it is not from,to,amount\n\
                   line 3: skipped: \"ten\" is no amount: invalid digit found in string\n\
                   line 4: skipped: \"-1\" is no amount: invalid digit found in string\n\
                   line 5: skipped: the amount is 0\n\
                   line 6: skipped: no transfer from \"ann\" to \"ann\"\n\
                   line 7: skipped: no transfer from \"\" to \"bob\"\n\
                   line 8: skipped: stream did not contain valid UTF-8\n\
                   line 9: skipped: \"18446744073709551616\" is no amount: \
                   number too large to fit in target type\n\
                   1 transfers were made, and 0 audits found 2000\n";
    assert_eq!((&*run.err, run.status), (skipped, Some(0)));
}

#[test]
fn made_up_transfers_keep_the_sum_and_go_to_the_file_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("balances");
    let run = run(&["--out".as_ref(), out.as_ref()]);
    let audited = ", and 10 audits found 8000\n";
    assert!(run.err.ends_with(audited), "{}", run.err);
    assert_eq!((&*run.out, run.status), ("", Some(0)));
    let balances = read_to_string(out).unwrap();
    let balances = balances.lines().map(|line| line.split_once(',').unwrap().1);
    let balances: Vec<u64> = balances.map(|balance| balance.parse().unwrap()).collect();
    assert_eq!((balances.len(), balances.iter().sum()), (8, 8000));
}

#[test]
fn a_deadlock_is_refused_with_the_names_of_its_loopers_and_locks() {
    let run = run(&["--deadlock".as_ref()]);
    assert_eq!((&*run.err, run.status), ("", Some(0)));
    let [line] = run.out.lines().collect::<Vec<_>>()[..] else {
        panic!("exactly one is refused: {}", run.out);
    };
    for name in ["ann", "bob", "ann's account", "bob's account"] {
        assert!(line.contains(name), "{name} is missing in {line}");
    }
}

#[test]
fn wrong_arguments_and_missing_files_are_faults() {
    for (arguments, error) in [
        (&["/no/such/file"][..], "bank: /no/such/file: "),
        (&["one", "two"], "bank: unexpected argument \"two\""),
        (&["--out"], "bank: missing argument for option '--out'"),
        (&["--out=/no/such/file"], "bank: /no/such/file: "),
    ] {
        let arguments: Vec<&OsStr> = arguments.iter().map(|word| word.as_ref()).collect();
        let run = run(&arguments);
        assert!(run.err.contains(error), "{}", run.err);
        assert_eq!((&*run.out, run.status), ("", Some(1)));
    }
}
