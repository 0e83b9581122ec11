//! A whole run: every point of every way in turns, and where the results go.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, io};

use peers::{child, machine, results};

use crate::chart;
use crate::point::{Point, WAYS};
use crate::tables::{self, Results};

/// The time after which a program counts as hung.
const LIMIT: Duration = Duration::from_secs(60);

/// The measurements to make.
pub struct Request {
    /// The number of rounds.
    pub rounds: usize,
    /// Whether the repository keeps the results.
    pub record: bool,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            rounds: 3,
            record: false,
        }
    }
}

/// Measures and prints; fails if a program failed.
pub fn run(request: &Request) -> ExitCode {
    let machine = format!(
        "{}rounds {}, in turns, a process each\n",
        machine::header(),
        request.rounds
    );
    print!("{machine}");
    let others = machine::Others::now();
    let (results, mut failures) = measure(request.rounds);
    let others = format!(
        "Other processes used {:.2} cores meanwhile.",
        others.cores()
    );
    let tables = tables::all(&results);
    println!("\n{tables}\n{others}");
    let entry = format!("```text\n{machine}```\n\n{tables}\n{others}\n");
    match keep(request, &results, &entry) {
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

/// Measures every point once a round; the way that begins changes from round to round. Returns the
/// results and the errors.
fn measure(rounds: usize) -> (Results, Vec<String>) {
    let (mut results, mut failures) = (Results::default(), Vec::new());
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for point in Point::all() {
            for turn in 0..WAYS.len() {
                let (way, _) = WAYS[(round + turn) % WAYS.len()];
                match figures(way, point) {
                    Ok(figures) => results.add(way, point, figures),
                    Err(error) => failures.push(format!("{way} {point:?}: {error}")),
                }
            }
        }
    }
    (results, failures)
}

fn figures(way: &str, point: Point) -> io::Result<Vec<(String, f64)>> {
    let point = point.words();
    let mut words = vec!["one", way];
    words.extend(point.iter().map(String::as_str));
    let figures = child::finish(child::start(&words, LIMIT)?)?;
    figures.ok_or_else(|| io::Error::other("hung"))
}

/// Draws the chart: in `benches` if the results are recorded, otherwise beside this program.
fn keep(request: &Request, results: &Results, entry: &str) -> io::Result<PathBuf> {
    let chart = if request.record {
        results::archive("Memory and scaling", entry)?;
        results::folder().join("scaling.svg")
    } else {
        env::current_exe()?.with_file_name("scaling.svg")
    };
    chart::draw(&chart, results).map_err(io::Error::other)?;
    Ok(chart)
}
