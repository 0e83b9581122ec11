//! Runs the programs of a case in turns, each in its own process.

use crate::cases::Case;
use crate::figures::WORST;
use crate::roster::Peer;
use peers::{child, machine::median};

/// A peer that has hung this often in a case is not run again.
const PATIENCE: usize = 2;

/// The results of one case.
pub struct Outcome {
    /// The case.
    pub case: Case,
    /// The names of its figures, and for each peer the values.
    pub rows: Vec<(String, Vec<Vec<f64>>)>,
    /// How often each peer was started.
    pub runs: Vec<usize>,
    /// How often each peer hung.
    pub hangs: Vec<usize>,
}

/// Runs every peer once a round, or twice (see [`Case::rounds`]). The peer that begins changes from
/// round to round. Errors other than hangs are added to `failures`.
pub fn measure(case: Case, peers: &[&Peer], rounds: usize, failures: &mut Vec<String>) -> Outcome {
    let mut outcome = Outcome {
        case,
        rows: Vec::new(),
        runs: vec![0; peers.len()],
        hangs: vec![0; peers.len()],
    };
    let at_once = if case.side_by_side() { peers.len() } else { 1 };
    for round in 0..case.rounds(rounds) {
        let turns: Vec<usize> = (0..peers.len())
            .map(|turn| (round + turn) % peers.len())
            .filter(|&peer| outcome.hangs[peer] < PATIENCE)
            .collect();
        for together in turns.chunks(at_once) {
            let children = together.iter().map(|&peer| {
                let words = ["case", peers[peer].name, case.name()];
                (peer, child::start(&words, case.limit()))
            });
            for (peer, child) in children.collect::<Vec<_>>() {
                outcome.runs[peer] += 1;
                match child.and_then(child::finish) {
                    Ok(Some(figures)) => outcome.add(peer, figures),
                    Ok(None) => outcome.hangs[peer] += 1,
                    Err(error) => {
                        failures.push(format!("{} {}: {error}", peers[peer].name, case.name()));
                    }
                }
            }
        }
    }
    if case.worst_counts() {
        outcome.add_worst();
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

    /// Adds a row with the worst run of each peer for the first figure, divided by its median.
    fn add_worst(&mut self) {
        let Some((_, values)) = self.rows.first() else {
            return;
        };
        let worst = values.iter().map(|values| {
            let median = median(values);
            median.map(|of| of.least / of.middle).into_iter().collect()
        });
        let row = (WORST.to_owned(), worst.collect());
        self.rows.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_run_gets_its_own_row() {
        let mut outcome = Outcome {
            case: Case::Meetings,
            rows: vec![(
                "meetings/s".to_owned(),
                vec![vec![4.0, 3.0, 8.0], Vec::new()],
            )],
            runs: vec![3, 0],
            hangs: vec![0, 0],
        };
        outcome.add_worst();
        let (name, values) = &outcome.rows[1];
        assert_eq!(name, WORST);
        assert_eq!(*values, [vec![0.75], Vec::new()]);
    }
}
