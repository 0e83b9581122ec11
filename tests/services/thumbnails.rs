//! The example `thumbnails`, run as its users run it.

use std::fs::{create_dir_all, hard_link, read, read_dir, read_to_string, write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::child::{example, finish, interrupt_child};
use crate::support::until;

/// The output of a finished run, and its exit status.
struct Run {
    status: Option<i32>,
    out: String,
    err: String,
}

fn command(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(example("thumbnails"));
    command
        .args(arguments)
        .args([folder.join("in"), folder.join("out")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finished(command: Command) -> Run {
    let mut command = command;
    let output = finish(&mut command);
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Run {
        status: output.status.code(),
        out,
        err,
    }
}

/// Returns an image of two colours, one above the other.
fn image(width: usize, height: usize) -> Vec<u8> {
    let mut image = format!("P6\n# two colours\n{width} {height}\n255\n").into_bytes();
    for row in 0..height {
        let colour = if row < height / 2 {
            [200, 0, 10]
        } else {
            [0, 100, 30]
        };
        image.extend(colour.repeat(width));
    }
    image
}

/// Makes a folder with these files in `in`.
fn folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join("in").join(path);
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, content).unwrap();
    }
    folder
}

#[test]
fn images_become_small_and_those_of_a_folder_are_in_its_index() {
    let folder = folder(&[
        ("wide.ppm", image(40, 20)),
        ("sub/high.ppm", image(2, 80)),
        ("sub/small.ppm", image(3, 2)),
    ]);
    let run = finished(command(&["--size=10"], folder.path()));
    assert_eq!(
        (&*run.out, &*run.err, run.status),
        ("3 made, 0 skipped\n", "", Some(0))
    );
    let out = |path: &str| folder.path().join("out").join(path);
    let mut wide = b"P6\n10 5\n255\n".to_vec();
    for row in 0..5 {
        let colour = match row {
            0 | 1 => [200, 0, 10],
            // The mean of two rows of each colour.
            2 => [100, 50, 20],
            _ => [0, 100, 30],
        };
        wide.extend(colour.repeat(10));
    }
    assert_eq!(read(out("wide.ppm")).unwrap(), wide);
    // Smaller than it may be, so it stays as it is.
    let small = read(out("sub/small.ppm")).unwrap();
    assert_eq!(small[..11], *b"P6\n3 2\n255\n");
    let index = read_to_string(out("sub/index.txt")).unwrap();
    let mut lines: Vec<_> = index.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["high.ppm 1 x 10", "small.ppm 3 x 2"]);
}

#[test]
fn broken_files_are_named_and_skipped() {
    let folder = folder(&[
        ("good.ppm", image(4, 4)),
        ("text.txt", b"no image".to_vec()),
        ("short.ppm", b"P6 2 2 255\n12345".to_vec()),
        ("huge.ppm", b"P6 99999999 99999999 255\n".to_vec()),
        ("empty.ppm", Vec::new()),
        ("deep.ppm", b"P6 1 1 65535\n123456".to_vec()),
    ]);
    let run = finished(command(&[], folder.path()));
    assert_eq!((&*run.out, run.status), ("1 made, 5 skipped\n", Some(1)));
    let mut lines: Vec<_> = run.err.lines().collect();
    lines.sort_unstable();
    let skipped = [
        "deep.ppm: skipped: its values go to 65535, not to 255",
        "empty.ppm: skipped: failed to fill whole buffer",
        "huge.ppm: skipped: it is 99999999 x 99999999 pixels",
        "short.ppm: skipped: it has 5 of 12 bytes of pixels",
        "text.txt: skipped: it is no binary PPM file",
    ];
    assert_eq!(lines, skipped);
    // A folder that is not there is named, too.
    let run = finished(command(&[], &folder.path().join("nowhere")));
    assert_eq!((&*run.out, run.status), ("0 made, 1 skipped\n", Some(1)));
    assert!(run.err.contains("nowhere/in/: skipped: "), "{}", run.err);
}

#[test]
fn wrong_arguments_are_named() {
    let folder = folder(&[]);
    for (argument, problem) in [
        ("--size=0", "it is not a number from 1 to 512"),
        ("--workers=many", "it is not a number from 1 to 512"),
        ("--depth=1", "invalid option '--depth'"),
        ("third", "unexpected argument"),
    ] {
        let run = finished(command(&[argument], folder.path()));
        assert_eq!((&*run.out, run.status), ("", Some(2)));
        assert!(run.err.contains(problem), "{}", run.err);
    }
}

#[test]
fn the_images_are_not_replaced_by_small_ones() {
    let folder = folder(&[("a/wide.ppm", image(40, 20))]);
    let from = folder.path().join("in");
    for to in [from.clone(), from.join("a/new/small"), from.join("a/../.")] {
        let mut command = Command::new(example("thumbnails"));
        command.args(["--size=10".into(), from.clone(), to]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = finished(command);
        assert_eq!((&*run.out, run.status), ("", Some(2)));
        assert!(run.err.contains("TO is in FROM"), "{}", run.err);
    }
    assert_eq!(read(from.join("a/wide.ppm")).unwrap(), image(40, 20));
    assert_eq!(read_dir(from.join("a")).unwrap().count(), 1);
}

/// Returns a folder with an image under this many names.
fn equal_images(count: usize, image: Vec<u8>) -> tempfile::TempDir {
    let folder = folder(&[("a/0.ppm", image)]);
    let first = folder.path().join("in/a/0.ppm");
    for number in 1..count {
        let link = folder.path().join(format!("in/a/{number}.ppm"));
        hard_link(&first, link).unwrap();
    }
    folder
}

#[test]
fn an_interrupted_run_finishes_the_images_that_were_accepted() {
    // Far more than are made before the signal.
    let folder = equal_images(2000, image(300, 300));
    let child = command(&["--workers=1"], folder.path()).spawn().unwrap();
    let index = folder.path().join("out/a/index.txt");
    until(|| index.exists());
    interrupt_child(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let made = read_to_string(index).unwrap().lines().count();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("{made} made, 0 skipped\n"));
    // Each is complete.
    let sizes = read_dir(folder.path().join("out/a")).unwrap();
    let images = sizes
        .filter(|entry| entry.as_ref().unwrap().path() != folder.path().join("out/a/index.txt"));
    let whole = b"P6\n128 128\n255\n".len() as u64 + 3 * 128 * 128;
    let lengths: Vec<_> = images
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .collect();
    assert_eq!(lengths, vec![whole; made]);
}

#[test]
fn a_run_is_interrupted_when_all_files_were_offered() {
    // All of them have room on the board.
    let folder = equal_images(60, image(700, 700));
    let child = command(&["--workers=1"], folder.path()).spawn().unwrap();
    let index = folder.path().join("out/a/index.txt");
    until(|| index.exists());
    // The second one discards what waits, unless the system takes both for one.
    interrupt_child(&child);
    interrupt_child(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let made = read_to_string(index).unwrap().lines().count();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with(&format!("{made} made, ")), "{said}");
}
