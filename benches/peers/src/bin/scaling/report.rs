//! A whole run: every point of every way in turns, and where the results go.

use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;
use std::{env, io};

use peers::{child, machine, results};

use crate::growth::instructions;
use crate::point::{BESIDE_MANY, Point, WAYS};
use crate::tables::{self, Results};
use crate::{chart, figures};

/// The time after which a program counts as hung.
const LIMIT: Duration = Duration::from_secs(180);

/// The measurements to make.
pub struct Request {
    /// The number of rounds.
    pub rounds: usize,
    /// Whether the repository keeps the results.
    pub record: bool,
    /// This program, compiled so that it counts lines, if there is one.
    pub lines: Option<String>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            rounds: 3,
            record: false,
            lines: None,
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
    let (mut results, mut failures) = measure(request.rounds);
    count(request, &mut results, &mut failures);
    failures.extend(tables::growth::failures(&results));
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

/// Measures every point once a round, long ones only in the first; the way that begins changes from
/// round to round. Returns the results and the errors.
fn measure(rounds: usize) -> (Results, Vec<String>) {
    let (mut results, mut failures) = (Results::default(), Vec::new());
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let points = Point::all().into_iter();
        for point in points.filter(|point| round == 0 || !point.is_long()) {
            for turn in 0..WAYS.len() {
                let (way, _) = WAYS[(round + turn) % WAYS.len()];
                if !point.is_in(way) {
                    continue;
                }
                match measured(way, point) {
                    Ok(figures) => results.add(way, point, figures),
                    Err(error) => failures.push(format!("{way} {point:?}: {error}")),
                }
            }
        }
    }
    (results, failures)
}

fn measured(way: &str, point: Point) -> io::Result<Vec<(String, f64)>> {
    let point = point.words();
    let mut words = vec!["one", way];
    words.extend(point.iter().map(String::as_str));
    finish(child::start(&words, LIMIT)?)
}

fn finish(child: Child) -> io::Result<Vec<(String, f64)>> {
    let figures = child::finish(child)?;
    figures.ok_or_else(|| io::Error::other("hung"))
}

/// Counts instructions and lines once, if the tools for that are there.
fn count(request: &Request, results: &mut Results, failures: &mut Vec<String>) {
    let can_count = instructions::can_count();
    for point in Point::all() {
        if let Point::Growth { item, count } = point
            && can_count
            && (request.record || !point.is_long())
        {
            eprintln!("instructions of {} {count}", item.name());
            match instructions::count(item, count) {
                Ok(figures) => results.add(WAYS[0].0, point, figures),
                Err(error) => failures.push(format!("instructions {point:?}: {error}")),
            }
        }
        if let (
            Point::Cost {
                live: BESIDE_MANY, ..
            },
            Some(program),
        ) = (point, &request.lines)
        {
            for (way, _) in WAYS {
                match lines(program, way, point) {
                    Ok(figures) => results.add(way, point, figures),
                    Err(error) => failures.push(format!("lines {way} {point:?}: {error}")),
                }
            }
        }
    }
}

/// Returns what a program has counted that was compiled for it. Its times mean nothing.
fn lines(program: &str, way: &str, point: Point) -> io::Result<Vec<(String, f64)>> {
    let child = Command::new("timeout")
        .args([&LIMIT.as_secs().to_string(), program, "one", way])
        .args(point.words())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let counts = figures::OPERATIONS.map(|operation| operation.counts);
    let is_count = |figure: &(String, f64)| counts.as_flattened().contains(&figure.0.as_str());
    Ok(finish(child)?.into_iter().filter(is_count).collect())
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
