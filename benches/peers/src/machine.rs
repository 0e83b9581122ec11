//! The machine on which a measurement was made.

use std::fmt;
use std::fs;
use std::process::Command;
use std::time::Instant;

/// Returns processor, system, compiler and commit, one line each. Unknown facts are left empty.
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

/// Returns the date of today, as in the headings of the results.
pub fn today() -> String {
    first_line("date", &["+%F"])
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

/// The activity of foreign processes, which disturbs a measurement.
pub struct Others {
    begin: Instant,
    ticks: f64,
}

impl Others {
    /// Starts to measure.
    pub fn now() -> Self {
        Self {
            begin: Instant::now(),
            ticks: foreign_ticks(),
        }
    }

    /// Returns how many cores foreign processes have kept busy on average.
    pub fn cores(&self) -> f64 {
        let ticks = foreign_ticks() - self.ticks;
        (ticks / TICKS_A_SECOND / self.begin.elapsed().as_secs_f64()).max(0.0)
    }
}

/// The unit of CPU time in `/proc`: always this on Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// Returns the CPU time that was neither idle nor spent by this process or by children that have
/// ended.
fn foreign_ticks() -> f64 {
    let sum = |text: &str, fields: std::ops::Range<usize>| -> f64 {
        let fields = text
            .split_whitespace()
            .skip(fields.start)
            .take(fields.len());
        fields.filter_map(|field| field.parse::<f64>().ok()).sum()
    };
    let all = fs::read_to_string("/proc/stat").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // `cpu user nice system idle iowait irq softirq steal ..`
    let all = all.lines().next().unwrap_or_default();
    let busy = sum(all, 1..4) + sum(all, 6..9);
    // `pid (name) state ..`: after the name, user and system time of the process and its children.
    let own = own.rsplit_once(')').map_or("", |(_, rest)| rest);
    busy - sum(own, 11..15)
}

/// The median of an odd number of measurements, with the minimum and the maximum.
#[derive(Clone, Copy, Debug)]
pub struct Median {
    /// The median.
    pub middle: f64,
    /// The minimum.
    pub least: f64,
    /// The maximum.
    pub greatest: f64,
}

/// Returns the median of `figures`, or `None` if there are none.
pub fn median(figures: &[f64]) -> Option<Median> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Median {
        middle: *sorted.get(sorted.len() / 2)?,
        least: *sorted.first()?,
        greatest: *sorted.last()?,
    })
}

impl fmt::Display for Median {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [middle, least, greatest] = [self.middle, self.least, self.greatest].map(number);
        write!(f, "{middle} ({least} to {greatest})")
    }
}

/// Formats about three digits, with k and M.
pub fn number(value: f64) -> String {
    match value.abs() {
        1e6.. => format!("{:.2}M", value / 1e6),
        1e4.. => format!("{:.0}k", value / 1e3),
        100.0.. => format!("{value:.0}"),
        ..0.005 => "0".to_owned(),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_written_with_its_range_and_three_digits() {
        let figures = [12_345.0, -0.001, 1.0 / 3.0, 2_500_000.0, 312.4];
        let text = median(&figures).map(|median| median.to_string());
        assert_eq!(text.as_deref(), Some("312 (0 to 2.50M)"));
        assert_eq!([figures[0], figures[2]].map(number), ["12k", "0.33"]);
    }
}
