//! A whole run: the request, the measurement, and where the results go.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, io};

use crate::cases::{CASES, Case};
use crate::roster::{PEERS, Peer};
use crate::rounds::{Outcome, measure};
use crate::{chart, table};
use peers::{machine, results};

/// The measurements to make.
pub struct Request {
    /// The number of rounds.
    pub rounds: usize,
    /// The cases.
    pub cases: Vec<Case>,
    /// The peers that take part.
    pub peers: Vec<&'static Peer>,
    /// Whether the repository keeps the results.
    pub record: bool,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            rounds: 5,
            cases: CASES.to_vec(),
            peers: PEERS.iter().collect(),
            record: false,
        }
    }
}

impl Request {
    /// Returns whether all cases of all peers are to be measured.
    fn is_whole(&self) -> bool {
        self.cases == CASES && self.peers.len() == PEERS.len()
    }
}

/// Measures, and prints each line as soon as it is known; fails if a program failed.
pub fn run(request: &Request) -> ExitCode {
    let machine = format!(
        "{}rounds {}, in turns, a process each\n",
        machine::header(),
        request.rounds
    );
    let mut text = format!("{}\n", table::heading(&request.peers));
    print!("{machine}\n{text}");
    let (mut failures, mut outcomes) = (Vec::new(), Vec::new());
    let others = machine::Others::now();
    for &case in &request.cases {
        let outcome = measure(case, &request.peers, request.rounds, &mut failures);
        for line in table::lines(&outcome, &request.peers) {
            println!("{}", line.text());
            writeln!(text, "{}", line.text()).expect("a string has room");
        }
        outcomes.push(outcome);
    }
    let others = format!(
        "Other processes used {:.2} cores meanwhile.",
        others.cores()
    );
    println!("\n{others}");
    let entry = format!("```text\n{machine}```\n\n{text}\n{others}\n");
    match keep(request, &outcomes, &entry) {
        Ok(chart) => println!("Chart: {}", chart.display()),
        Err(error) => failures.push(error.to_string()),
    }
    failures.iter().for_each(|failure| eprintln!("{failure}"));
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Records the results, if they are to be kept, and draws the chart.
///
/// A whole run replaces the newest one and its chart. A run of some cases or peers is added to the
/// results of the day. Every chart that is not recorded is drawn beside this program.
fn keep(request: &Request, outcomes: &[Outcome], entry: &str) -> io::Result<PathBuf> {
    let lines: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| table::lines(outcome, &request.peers))
        .collect();
    let chart = if request.record && request.is_whole() {
        let figures: Vec<_> = lines.iter().filter_map(table::Line::figures).collect();
        results::replace_newest(entry, &figures)?;
        results::folder().join("results.svg")
    } else {
        if request.record {
            results::archive("Some cases", entry)?;
        }
        env::current_exe()?.with_file_name("results.svg")
    };
    chart::draw(&chart, &lines, &request.peers).map_err(io::Error::other)?;
    Ok(chart)
}
