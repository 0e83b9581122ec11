//! The comparison: runs two builds in turns, and tells which cases became slower.
//!
//! Each run is a process of its own. A round has one run of each build for each case, so a
//! disturbance meets both builds, and a long one does not fill the series of one case. Who comes
//! first alternates.

use std::process::{Command, Stdio};

use crate::judge::{LEAST, SERIES, Series, lags, median};

/// A build of this program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Build {
    /// On the greenroom of the working tree.
    Head,
    /// On the greenroom of the base commit.
    Base,
}

/// A case with its series so far.
struct Record {
    case: &'static str,
    series: Vec<Series>,
}

impl Record {
    /// Returns a line of the table.
    fn line(&self) -> String {
        let first = &self.series[0];
        let [head, base] = [&first.head, &first.base].map(|runs| median(runs.clone()) / 1e6);
        format!(
            "{:<16}{head:>8.2}{base:>8.2}   {}",
            self.case,
            self.ratios()
        )
    }

    /// Returns the ratio of each series.
    fn ratios(&self) -> String {
        let ratios = self
            .series
            .iter()
            .map(|series| format!("{:.2}", series.ratio()));
        ratios.collect::<Vec<_>>().join(" ")
    }
}

/// Compares the cases, `run` running one of them once, and prints a table. Returns the cases that
/// lag in all series.
///
/// # Errors
/// What a run failed with.
pub fn compare(
    cases: impl Iterator<Item = &'static str>,
    mut run: impl FnMut(Build, &str) -> Result<f64, String>,
) -> Result<Vec<&'static str>, String> {
    let new = |case| Record {
        case,
        series: Vec::new(),
    };
    let mut records: Vec<_> = cases.map(new).collect();
    for rounds in SERIES {
        let suspects = records.iter_mut().filter(|record| lags(&record.series));
        measure(suspects.collect(), rounds, &mut run)?;
    }
    println!("million operations a second, and HEAD / base for each series");
    println!("{:<16}{:>8}{:>8}   ratio", "case", "HEAD", "base");
    records
        .iter()
        .for_each(|record| println!("{}", record.line()));
    let slow: Vec<_> = records
        .iter()
        .filter(|record| lags(&record.series))
        .collect();
    for record in &slow {
        println!(
            "slower: {}, {} times the base, below {LEAST} in each series",
            record.case,
            record.ratios()
        );
    }
    Ok(slow.iter().map(|record| record.case).collect())
}

/// Adds a series of so many rounds to each of these cases.
fn measure(
    mut records: Vec<&mut Record>,
    rounds: usize,
    run: &mut impl FnMut(Build, &str) -> Result<f64, String>,
) -> Result<(), String> {
    records
        .iter_mut()
        .for_each(|record| record.series.push(Series::default()));
    for round in 0..rounds {
        for (index, record) in records.iter_mut().enumerate() {
            let mut order = [Build::Head, Build::Base];
            if (round + index) % 2 == 1 {
                order.reverse();
            }
            for build in order {
                let figure = run(build, record.case)?;
                let series = record.series.last_mut().expect("it was added above");
                match build {
                    Build::Head => series.head.push(figure),
                    Build::Base => series.base.push(figure),
                }
            }
        }
    }
    Ok(())
}

/// Runs a case of a program once, and returns its figure.
///
/// # Errors
/// The program could not be started, failed, or printed something else.
pub fn run(program: &str, case: &str) -> Result<f64, String> {
    let output = Command::new(program)
        .arg(case)
        .stderr(Stdio::inherit())
        .output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().parse() {
        Ok(figure) if output.status.success() => Ok(figure),
        _ => Err(format!(
            "{program} {case}: {}, printed {text:?}",
            output.status
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the cases `even` and `odd`; `odd` runs at what `rate` returns for the number of its
    /// run, and all else at 1. Returns what lags, and how often each build of each case ran.
    fn compared(rate: impl Fn(Build, usize) -> f64) -> (Vec<&'static str>, [[usize; 2]; 2]) {
        let mut runs = [[0; 2]; 2];
        let slow = compare(["even", "odd"].into_iter(), |build, case| {
            let count = &mut runs[usize::from(case == "odd")][build as usize];
            *count += 1;
            Ok(if case == "odd" {
                rate(build, *count - 1)
            } else {
                1.0
            })
        });
        (slow.expect("no run fails"), runs)
    }

    const ALL: usize = SERIES[0] + SERIES[1] + SERIES[2];

    #[test]
    fn a_slower_case_is_found_and_only_that_one_runs_again() {
        let (slow, runs) = compared(|build, _| if build == Build::Head { 0.8 } else { 1.0 });
        assert_eq!(slow, ["odd"]);
        assert_eq!(runs, [[SERIES[0]; 2], [ALL; 2]]);
    }

    #[test]
    fn a_faster_case_passes_at_once() {
        let (slow, runs) = compared(|build, _| if build == Build::Base { 0.8 } else { 1.0 });
        assert_eq!((slow.len(), runs), (0, [[SERIES[0]; 2]; 2]));
    }

    #[test]
    fn a_case_that_was_slow_in_its_first_series_passes_after_its_second() {
        let first = |build, run| build == Build::Head && run < SERIES[0];
        let (slow, runs) = compared(|build, run| if first(build, run) { 0.5 } else { 1.0 });
        assert_eq!((slow.len(), runs[1]), (0, [SERIES[0] + SERIES[1]; 2]));
    }

    #[test]
    fn a_case_that_was_slow_in_two_series_passes_after_its_third() {
        let two = |build, run| build == Build::Head && run < SERIES[0] + SERIES[1];
        let (slow, runs) = compared(|build, run| if two(build, run) { 0.5 } else { 1.0 });
        assert_eq!((slow.len(), runs[1]), (0, [ALL; 2]));
    }

    #[test]
    fn the_builds_take_turns_at_being_first() {
        let mut order = Vec::new();
        let run = |build, _: &str| {
            order.push(build);
            Ok(1.0)
        };
        assert_eq!(compare(["one"].into_iter(), run), Ok(Vec::new()));
        let (head, base) = (Build::Head, Build::Base);
        assert_eq!(order[..6], [head, base, base, head, head, base]);
    }

    #[test]
    fn a_failed_run_ends_the_comparison() {
        let failed = compare(["one"].into_iter(), |_, _| Err("wrong sum".to_owned()));
        assert_eq!(failed, Err("wrong sum".to_owned()));
    }
}
