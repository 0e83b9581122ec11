//! Runs the programs, each in a process of its own, in turns.

use std::io;
use std::process::{self, Child, Command, Stdio};

use crate::cases::Case;
use crate::roster::Peer;

/// What `timeout` returns if the time is over.
const TIMED_OUT: i32 = 124;
/// A peer that has hung so often in a case is not waited for again.
const PATIENCE: usize = 2;

/// How the programs of one case went.
pub struct Outcome {
    /// The case.
    pub case: Case,
    /// Its figures' names, and for each peer the values.
    pub rows: Vec<(String, Vec<Vec<f64>>)>,
    /// How often each peer was started.
    pub runs: Vec<usize>,
    /// How often each peer hung.
    pub hangs: Vec<usize>,
}

/// Every peer once a round; the peer that begins changes from round to round. What goes wrong, but
/// for a hang, is added to `failures`.
pub fn measure(case: Case, peers: &[&Peer], rounds: usize, failures: &mut Vec<String>) -> Outcome {
    let mut outcome = Outcome {
        case,
        rows: Vec::new(),
        runs: vec![0; peers.len()],
        hangs: vec![0; peers.len()],
    };
    let at_once = if case.side_by_side() { peers.len() } else { 1 };
    for round in 0..rounds {
        let turns: Vec<usize> = (0..peers.len())
            .map(|turn| (round + turn) % peers.len())
            .filter(|&peer| outcome.hangs[peer] < PATIENCE)
            .collect();
        for together in turns.chunks(at_once) {
            let children = together
                .iter()
                .map(|&peer| (peer, start(peers[peer].name, case)));
            for (peer, child) in children.collect::<Vec<_>>() {
                outcome.runs[peer] += 1;
                match child.and_then(finish) {
                    Ok(Some(figures)) => outcome.add(peer, figures),
                    Ok(None) => outcome.hangs[peer] += 1,
                    Err(error) => {
                        failures.push(format!("{} {}: {error}", peers[peer].name, case.name()));
                    }
                }
            }
        }
    }
    outcome
}

impl Outcome {
    fn add(&mut self, peer: usize, figures: Vec<(String, f64)>) {
        for (what, value) in figures {
            let row = self.rows.iter().position(|(name, _)| *name == what);
            let row = row.unwrap_or_else(|| {
                self.rows.push((what, vec![Vec::new(); self.runs.len()]));
                self.rows.len() - 1
            });
            self.rows[row].1[peer].push(value);
        }
    }
}

fn start(peer: &str, case: Case) -> io::Result<Child> {
    // This program, even if it is built anew meanwhile.
    let program = format!("/proc/{}/exe", process::id());
    Command::new("timeout")
        .args(["--kill-after=5", &case.limit().as_secs().to_string()])
        .args([&program, "case", peer, case.name()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// The figures that a program has printed; `None` if it hung.
fn finish(child: Child) -> io::Result<Option<Vec<(String, f64)>>> {
    let output = child.wait_with_output()?;
    if output.status.code() == Some(TIMED_OUT) {
        return Ok(None);
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
    Ok(Some(figures.collect()))
}
