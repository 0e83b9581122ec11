//! A whole run: what is asked for, and where its results go.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, io};

use crate::cases::{CASES, Case};
use crate::roster::{PEERS, Peer};
use crate::rounds::{Outcome, measure};
use crate::{chart, table};
use peers::{machine, results};

/// What is to be measured.
pub struct Request {
    /// How often.
    pub rounds: usize,
    /// Which cases.
    pub cases: Vec<Case>,
    /// Who takes part.
    pub peers: Vec<&'static Peer>,
    /// Whether the results are to be kept in the repository.
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

/// Measures and prints a line as soon as it is known; fails if a program did.
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

/// Draws the chart, beside this program or, if it is to be recorded, beside the results.
fn keep(request: &Request, outcomes: &[Outcome], entry: &str) -> io::Result<PathBuf> {
    let chart = if request.record {
        results::record("", entry)?;
        results::folder().join("results.svg")
    } else {
        env::current_exe()?.with_file_name("results.svg")
    };
    let lines: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| table::lines(outcome, &request.peers))
        .collect();
    chart::draw(&chart, &lines, &request.peers).map_err(io::Error::other)?;
    Ok(chart)
}
