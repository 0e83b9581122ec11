//! Where a measurement was made.

use std::fs;
use std::process::Command;

/// One line a fact: processor, system, compiler, commit. What can't be found out is left empty.
pub fn header() -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
        .unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "CPU    {model}, {cores} cores\nOS     Linux {}\nrustc  {}\ncommit {}\n",
        system.trim(),
        first_line("rustc", &["--version"]),
        first_line("git", &["describe", "--always", "--dirty", "--abbrev=10"]),
    )
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The middle of an odd number of measurements, with the least and the greatest.
#[derive(Clone, Copy, Debug)]
pub struct Median {
    /// The middle one.
    pub middle: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

/// The median of `figures`; `None` if there are none.
pub fn median(figures: &[f64]) -> Option<Median> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Median {
        middle: *sorted.get(sorted.len() / 2)?,
        least: *sorted.first()?,
        greatest: *sorted.last()?,
    })
}
