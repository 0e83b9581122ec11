//! The example `spool`, run as its users run it.

use std::ffi::OsStr;
use std::fs::write;
use std::process::{Command, Output, Stdio};

use sha2::{Digest, Sha256};

use crate::child::{example, finish};

fn run(arguments: &[&OsStr]) -> Output {
    let mut command = Command::new(example("spool"));
    command.args(arguments).env_remove("GREENROOM_LOG");
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_digest_is_that_of_one_pass_and_the_picture_shows_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let (file, picture) = (folder.path().join("file"), folder.path().join("out.svg"));
    let content: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
    write(&file, &content).unwrap();
    let output = run(&[
        "--block=1000".as_ref(),
        "--svg".as_ref(),
        picture.as_ref(),
        file.as_ref(),
    ]);
    let mut all = Sha256::new();
    for block in content.chunks(1000) {
        all.update(Sha256::digest(block));
    }
    let hex = all.finalize().into_iter().map(|byte| format!("{byte:02x}"));
    let digest = hex.collect::<String>();
    let printed = text(output.stdout);
    let last = printed.lines().last();
    assert_eq!(last, Some(&*format!("digest {digest}, as in one pass")));
    assert_eq!(text(output.stderr), "");
    assert!(output.status.success());
    let picture = std::fs::read_to_string(picture).unwrap();
    let picture = roxmltree::Document::parse(&picture).unwrap();
    let lines = picture
        .descendants()
        .filter(|node| node.has_tag_name("polyline"));
    assert!(lines.count() >= 4, "one line for each figure");
}

#[test]
fn the_trace_shows_requests_going_to_all_workers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    write(&file, [7; 1000]).unwrap();
    for level in [
        &["--debug-level=debug"][..],
        &["-dl=DEBUG"],
        &["-dl", "DEBUG"],
    ] {
        let mut arguments: Vec<&OsStr> = level.iter().map(|word| word.as_ref()).collect();
        arguments.extend(["--block=10".as_ref(), file.as_os_str()]);
        let output = run(&arguments);
        let trace = text(output.stderr);
        for worker in 0..8 {
            let name = format!(">worker {worker} - Received (Block, Reply<");
            assert!(trace.contains(&name), "{name} is missing in {trace}");
        }
        let received = ">spool[SPOOLING] - Received Block from";
        assert!(trace.contains(received), "{trace}");
        assert!(output.status.success());
    }
}

#[test]
fn a_fault_exits_with_71_and_bad_arguments_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let output = run(&[missing.as_ref()]);
    let error = text(output.stderr);
    let begin = format!("spool: cannot read ({}: ", missing.display());
    assert!(error.starts_with(&begin), "{error}");
    assert_eq!(output.status.code(), Some(71));
    for (arguments, error) in [
        (&["--block=0", "file"][..], "--block=0 is less than 1"),
        (&[], "usage: spool"),
        (&["--debug-level=loud", "file"], "\"loud\""),
        (&["-dl=loud", "file"], "\"loud\""),
        (&["-dx=debug", "file"], "invalid option '-d'"),
    ] {
        let arguments: Vec<&OsStr> = arguments.iter().map(|word| word.as_ref()).collect();
        let output = run(&arguments);
        let printed = text(output.stderr);
        assert!(printed.contains(error), "{printed}");
        assert_eq!(output.status.code(), Some(2));
    }
}
