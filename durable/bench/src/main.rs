//! Measures greenroom-durable beside loops that are written by hand, and beside apalis.
//!
//! Each side is a program of its own. They are built, and run in turns.

mod table;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "durable-bench run [ROUNDS [COUNT]]

COUNT: the jobs or events of a case; `job` has a quarter of it, a replay ten times as many";

/// What a figure has to reach.
#[derive(Clone, Copy)]
enum Bar {
    /// So many a second.
    Rate(f64),
    /// So many times as many a second as a peer.
    Times(f64),
    None,
}

/// A case of our side, and the peer that it is held against.
struct Pair {
    case: &'static str,
    name: &'static str,
    /// Per `COUNT`.
    scale: f64,
    peer: Option<&'static str>,
    bar: Bar,
}

const fn pair((case, name): (&'static str, &'static str), peer: &'static str, bar: Bar) -> Pair {
    Pair {
        case,
        name,
        scale: 1.0,
        peer: Some(peer),
        bar,
    }
}

const PUT: (&str, &str) = ("put", "put by 64 callers, jobs a second");
const APPEND: (&str, &str) = ("append", "append by 64 actors, events a second");

const PAIRS: [Pair; 5] = [
    pair(PUT, "by_hand", Bar::Times(0.8)),
    pair(PUT, "apalis", Bar::None),
    Pair {
        case: "job",
        name: "put, take and finish, jobs a second",
        // A job of apalis costs the more the more are done.
        scale: 0.25,
        peer: Some("apalis"),
        bar: Bar::Times(2.0),
    },
    pair(APPEND, "by_hand", Bar::Times(0.8)),
    Pair {
        case: "replay",
        name: "replay, events a second",
        scale: 10.0,
        peer: None,
        bar: Bar::Rate(500_000.0),
    },
];

/// Where the programs are.
struct Programs(PathBuf);

impl Programs {
    /// Builds them as this one was built, beside it.
    fn build() -> Outcome<Programs> {
        let own = std::env::current_exe()?;
        let folder = own.parent().ok_or("no folder")?.to_owned();
        let target = folder.parent().ok_or("no folder")?;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let ours = ["--bin", "ours"].as_slice();
        for (package, target, options) in [
            (sources.to_owned(), target.to_owned(), ours),
            (sources.join("by_hand"), target.to_owned(), &[]),
            (sources.join("apalis"), target.join("apalis"), &[]),
        ] {
            let mut cargo = Command::new(std::env::var_os("CARGO").ok_or("run it by cargo")?);
            cargo.args(["build", "--quiet", "--locked"]).args(options);
            cargo.arg("--manifest-path").arg(package.join("Cargo.toml"));
            cargo.arg("--target-dir").arg(target);
            if !cfg!(debug_assertions) {
                cargo.arg("--release");
            }
            if !cargo.status()?.success() {
                return Err(format!("{} was not built", package.display()).into());
            }
        }
        Ok(Programs(folder))
    }

    fn path(&self, side: &str) -> PathBuf {
        match side {
            "apalis" => {
                let profile = self.0.file_name().unwrap_or_default();
                let target = self.0.with_file_name("apalis").join(profile);
                target.join("durable-bench-apalis")
            }
            "by_hand" => self.0.join("durable-bench-by-hand"),
            side => self.0.join(side),
        }
    }

    /// Runs a case once. Returns how many there were in a second.
    fn figure(&self, side: &str, case: &str, count: usize) -> Outcome<f64> {
        let mut program = Command::new(self.path(side));
        let output = program.args([case, &count.to_string()]).output()?;
        let text = String::from_utf8(output.stdout)?;
        let figure = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        match figure {
            Some(figure) if output.status.success() => Ok(figure),
            _ => {
                let error = String::from_utf8_lossy(&output.stderr);
                Err(format!("{side} {case}: {}: {error}", output.status).into())
            }
        }
    }
}

/// Runs the rounds, and prints what was found.
fn run(rounds: usize, count: usize) -> Outcome<()> {
    let programs = Programs::build()?;
    println!("The files are in {}.", std::env::temp_dir().display());
    let mut figures: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); PAIRS.len()];
    for round in 0..rounds {
        for (pair, (own, theirs)) in PAIRS.iter().zip(&mut figures) {
            let count = (count as f64 * pair.scale) as usize;
            // Who comes first changes with each round.
            let is_first = round % 2 == 0;
            if is_first {
                own.push(programs.figure("ours", pair.case, count)?);
            }
            if let Some(side) = pair.peer {
                theirs.push(programs.figure(side, pair.case, count)?);
            }
            if !is_first {
                own.push(programs.figure("ours", pair.case, count)?);
            }
        }
        println!("round {} of {rounds}", round + 1);
    }
    for line in table::lines(&PAIRS, &figures) {
        println!("{line}");
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["run"] => run(9, 20_000),
        ["run", rounds] => run(rounds.parse()?, 20_000),
        ["run", rounds, count] => run(rounds.parse()?, count.parse()?),
        _ => Err(USAGE.into()),
    }
}
