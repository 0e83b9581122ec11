//! Runs everything in processes of their own, in turns, and prints one table.

use std::io;
use std::process::{self, Command, ExitCode};

use crate::PEERS;
use crate::cases::{Bar, CASES, Case};
use peers::machine::{self, Median, median};

/// A program that takes longer is ended and reported; the slowest ones take some ten seconds.
const HUNG_AFTER: &str = "120s";
/// What `timeout` returns then.
const TIMED_OUT: i32 = 124;

/// What was measured of one case: a figure's name, and for each peer its values.
type Rows = Vec<(String, Vec<Vec<f64>>)>;

/// Measures `cases` (all, if empty) and prints; fails if a program did.
pub fn run(rounds: usize, cases: &[Case]) -> ExitCode {
    let cases = if cases.is_empty() { CASES } else { cases };
    println!(
        "{}rounds {rounds}, in turns, a process each\n",
        machine::header()
    );
    println!("{}", heading());
    let mut failures = Vec::new();
    let others = machine::Others::now();
    for &case in cases {
        for line in lines(case, &measure(case, rounds, &mut failures)) {
            println!("{line}");
        }
    }
    println!(
        "\nOther processes used {:.2} cores meanwhile.",
        others.cores()
    );
    for failure in &failures {
        eprintln!("{failure}");
    }
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn heading() -> String {
    let mut names = String::from("| case | figure |");
    let mut rule = String::from("|---|---|");
    for (index, (name, _)) in PEERS.iter().enumerate() {
        names += &format!(" {name} |");
        rule += "---|";
        if index > 0 {
            names += &format!(" {name} / {} | bar |", PEERS[0].0);
            rule += "---|---|";
        }
    }
    format!("{names}\n{rule}")
}

/// Every peer once a round; the peer that begins changes from round to round.
fn measure(case: Case, rounds: usize, failures: &mut Vec<String>) -> Rows {
    let mut rows = Rows::new();
    for round in 0..rounds {
        for turn in 0..PEERS.len() {
            let peer = (round + turn) % PEERS.len();
            match child(PEERS[peer].0, case) {
                Ok(figures) => {
                    for (what, value) in figures {
                        place(&mut rows, what)[peer].push(value);
                    }
                }
                Err(error) => {
                    failures.push(format!("{} {}: {error}", PEERS[peer].0, case.name()));
                }
            }
        }
    }
    rows
}

fn place(rows: &mut Rows, what: String) -> &mut Vec<Vec<f64>> {
    let row = rows
        .iter()
        .position(|(name, _)| *name == what)
        .unwrap_or_else(|| {
            rows.push((what, vec![Vec::new(); PEERS.len()]));
            rows.len() - 1
        });
    &mut rows[row].1
}

/// The figures of one program, run in a process of its own.
fn child(peer: &str, case: Case) -> io::Result<Vec<(String, f64)>> {
    // This program, even if it is built anew meanwhile.
    let program = format!("/proc/{}/exe", process::id());
    let arguments = [HUNG_AFTER, &program, "case", peer, case.name()];
    let output = Command::new("timeout").args(arguments).output()?;
    if output.status.code() == Some(TIMED_OUT) {
        return Err(io::Error::other(format!(
            "still running after {HUNG_AFTER}"
        )));
    }
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("{}\n{text}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let figures = text.lines().filter_map(|line| {
        let (what, value) = line.split_once('\t')?;
        Some((what.to_owned(), value.parse().ok()?))
    });
    Ok(figures.collect())
}

fn lines(case: Case, rows: &Rows) -> Vec<String> {
    let row = |(what, peers): &(String, Vec<Vec<f64>>)| {
        let mut line = format!("| {} | {what} |", case.name());
        let medians: Vec<_> = peers.iter().map(|values| median(values)).collect();
        for (index, of_peer) in medians.iter().enumerate() {
            line += &format!(" {} |", of_peer.map_or("failed".to_owned(), cell));
            if index > 0 {
                let ratio = of_peer
                    .zip(medians[0])
                    .map(|(own, first)| own.middle / first.middle);
                let ratio = ratio.filter(|ratio| ratio.is_finite());
                let bar = case
                    .bar(what)
                    .zip(*of_peer)
                    .map(|(bar, own)| verdict(bar, own, ratio));
                let ratio = ratio.map(|ratio| format!("{ratio:.2}"));
                line += &format!(
                    " {} | {} |",
                    ratio.unwrap_or_default(),
                    bar.unwrap_or_default()
                );
            }
        }
        line
    };
    rows.iter().map(row).collect()
}

fn verdict(bar: Bar, own: Median, ratio: Option<f64>) -> String {
    let (met, text) = match bar {
        Bar::OfFirstPeer(least) => (
            ratio.is_some_and(|ratio| ratio >= least),
            format!("≥ {least:.2} ×"),
        ),
        Bar::AtMost(most) => (own.middle <= most, format!("≤ {most}")),
    };
    format!("{text}: {}", if met { "met" } else { "MISSED" })
}

fn cell(
    Median {
        middle,
        least,
        greatest,
    }: Median,
) -> String {
    format!(
        "{} ({} to {})",
        number(middle),
        number(least),
        number(greatest)
    )
}

/// Three digits or so, with k and M.
fn number(value: f64) -> String {
    match value.abs() {
        1e6.. => format!("{:.2}M", value / 1e6),
        1e4.. => format!("{:.0}k", value / 1e3),
        100.0.. => format!("{value:.0}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.2}"),
    }
}
