//! The table that a run prints, in Markdown.

use std::process::Command;

use super::jobs::JobLedger;
use super::options::RunOptions;
use super::roles::{ACTORS, VISITOR};
use super::samples::Course;
use super::ward::Ward;
use crate::report::Tallies;

/// What is wanted of two hours: messages and asks, durable jobs, and requests.
const WANTED: [u64; 3] = [1_000_000_000, 1_000_000, 10_000_000];

/// Returns the table of a run.
pub fn table(options: &RunOptions, wards: &[Ward], jobs: &JobLedger, steps: u64) -> String {
    let RunOptions { minutes, seed, .. } = options;
    let commit = commit().unwrap_or_else(|| "unknown".to_owned());
    let mut text = format!(
        "# A long run under faults\n\n\
         `cargo run --release -p soak -- run {minutes} --seed {seed}` at commit {commit}, as \
         `soak/src/main.rs` explains. \
         A ledger that is not even has a sentence at the end. The date made {steps} steps.\n\n\
         | of all | counted | wanted of 120 minutes |\n|---|---|---|\n"
    );
    let of = |name: &str| {
        let ward = wards.iter().find(|ward| ward.role.name == name);
        ward.map(Ward::counts).unwrap_or_default()
    };
    let count = |counts: &Tallies, name: &str| counts.get(name).copied().unwrap_or_default();
    let actors = of(ACTORS);
    let messages = count(&actors, "sent") + count(&actors, "asked");
    let requests = count(&of(VISITOR), "answered");
    let rows = [
        "messages and asks",
        "durable jobs that were done",
        "requests that were answered",
    ];
    let counted = [messages, jobs.jobs, requests];
    for ((row, counted), wanted) in rows.into_iter().zip(counted).zip(WANTED) {
        text += &format!("| {row} | {} | {} |\n", spaced(counted), spaced(wanted));
    }
    let (puts, again) = (spaced(jobs.puts), spaced(jobs.again));
    text += &format!(
        "\nOf the durable jobs {puts} were put with an answer, and {again} were done again after a \
         kill or a stop.\n\n\
         | process | lives | counts | faults | memory in MiB | threads | descriptors |\n\
         |---|---|---|---|---|---|---|\n"
    );
    wards.iter().for_each(|ward| text += &row(ward));
    text += "\nMemory, threads and descriptors: the median from 20 % to 30 % of the time, that of the \
             last tenth, and the most of all. A process tells its counts once a second, so that those of \
             a killed life lack its last moments. The durable jobs of the first table are those of the \
             ledger.\n";
    text
}

/// Returns the commit of the sources, if this is a clone of their repository.
fn commit() -> Option<String> {
    let options = [
        "describe",
        "--always",
        "--dirty",
        "--exclude=*",
        "--abbrev=10",
    ];
    let output = Command::new("git").args(options).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !commit.is_empty()).then(|| commit.trim().to_owned())
}

/// Returns the row of a process.
fn row(ward: &Ward) -> String {
    let list = |counts: Vec<(String, u64)>| {
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let counts = counts.map(|(name, count)| format!("{name} {}", spaced(count)));
        counts.collect::<Vec<_>>().join(", ")
    };
    let counts = list(ward.counts().into_iter().collect());
    let faults = ward.faults.iter();
    let faults = list(
        faults
            .map(|(fault, count)| (fault.name().to_owned(), *count))
            .collect(),
    );
    let [memory, threads, descriptors] = ward.samples.courses();
    let [memory, threads, descriptors] =
        [(memory, 1024), (threads, 1), (descriptors, 1)].map(course);
    let (name, lives) = (ward.role.name, ward.lives);
    format!("| {name} | {lives} | {counts} | {faults} | {memory} | {threads} | {descriptors} |\n")
}

/// Returns a course. A process whose lives are short is never seen, and has none.
fn course((course, unit): (Course, u64)) -> String {
    let Course { early, late, most } = course;
    if most == 0 {
        return "-".to_owned();
    }
    let values = [early, late, most].map(|value| match unit {
        1 => value.to_string(),
        _ => format!("{:.1}", value as f64 / unit as f64),
    });
    values.join(", ")
}

/// Returns a number with a space behind each three digits, counted from its end.
fn spaced(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::spaced;

    #[test]
    fn a_large_number_is_read_by_its_thousands() {
        let texts = [0, 12, 123, 1234, 1_234_567].map(spaced);
        assert_eq!(texts, ["0", "12", "123", "1 234", "1 234 567"]);
    }
}
