//! The example `thumbnails`, killed and started again.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const FILES: usize = 60;
const KILLED: usize = 5;
const WORKERS: usize = 4;

/// Returns the command of the example, which cargo builds beside the tests.
fn thumbnails(folder: &Path) -> Command {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().and_then(Path::parent).unwrap();
    let example = example.join("examples/durable_thumbnails");
    assert!(
        example.is_file(),
        "{} is not built: run `cargo build -p greenroom-durable --example durable_thumbnails` \
         with the same options first",
        example.display(),
    );
    let mut command = Command::new(example);
    command.args(["store.db", "from", "to"].map(|name| folder.join(name)));
    command.stdin(Stdio::null());
    command
}

/// Makes images of 300 x 200 pixels in two folders, and a file that is none.
fn make_images(folder: &Path) {
    for name in ["a", "b"] {
        fs::create_dir_all(folder.join("from").join(name)).unwrap();
    }
    for number in 0..FILES {
        let mut image = b"P6\n300 200\n255\n".to_vec();
        image.extend((0..300 * 200 * 3).map(|at| (at * number) as u8));
        let name = format!("from/{}/{number}.ppm", ["a", "b"][number % 2]);
        fs::write(folder.join(name), image).unwrap();
    }
    fs::write(folder.join("from/a/none.ppm"), "not an image").unwrap();
}

#[test]
fn nothing_is_lost_and_nothing_that_was_finished_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    make_images(folder.path());
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    for run in 0..KILLED {
        let mut child = thumbnails(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        // Killed while it works, after some images.
        for line in lines.by_ref().take(3 + run) {
            *made.entry(line).or_default() += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            *made.entry(line).or_default() += 1;
        }
    }
    let output = thumbnails(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.ends_with("made, 1 are dead letters\n"), "{output}");
    let last = output.lines().filter(|line| line.starts_with("made "));
    last.for_each(|line| *made.entry(line.to_owned()).or_default() += 1);
    made.retain(|line, _| line.starts_with("made "));

    assert_eq!(made.len(), FILES);
    let again: usize = made.values().map(|count| count - 1).sum();
    assert!(again <= KILLED * WORKERS, "{again} images were made again");
    for number in 0..FILES {
        let name = format!("to/{}/{number}.ppm", ["a", "b"][number % 2]);
        let small = fs::read(folder.path().join(name)).unwrap();
        assert!(small.starts_with(b"P6\n128 85\n255\n"));
    }
    let output = thumbnails(folder.path()).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output, "0 made, 1 are dead letters\n");
}
