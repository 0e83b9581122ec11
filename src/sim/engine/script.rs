//! The order of a run, recorded so that it can be repeated in part or with changes.
//!
//! Each task and each call of `block_on` has a *key*, which its spawner draws from the seed. A key
//! does not change when other tasks run earlier or later; the number of a task may.

use std::collections::HashSet;

use super::ready::Draw;

/// The key of a task or of a call of `block_on`, and its series of drawn numbers.
#[derive(Clone)]
pub(super) struct TurnOrigin {
    pub(super) key: u64,
    draw: Draw,
    /// The number of turns so far.
    pub(super) turns: u64,
}

impl TurnOrigin {
    pub(super) fn new(key: u64) -> Self {
        TurnOrigin {
            key,
            draw: Draw::new(key),
            turns: 0,
        }
    }

    /// Draws a number.
    pub(super) fn draw(&mut self) -> u64 {
        self.draw.next()
    }

    /// Creates the origin of a task that this one spawns.
    pub(super) fn child(&mut self) -> Self {
        TurnOrigin::new(self.draw())
    }
}

/// The turns of a run in their order, and which of them were split.
#[derive(Clone, Default, Debug)]
pub(crate) struct TurnScript {
    /// The key of each step. The effect of a split turn is a step, with the key of that turn.
    pub(crate) steps: Vec<u64>,
    /// The key and the number of each split turn.
    pub(crate) splits: HashSet<(u64, u64)>,
}

impl TurnScript {
    /// Counts the steps whose task did not have the step before.
    pub(crate) fn switches(&self) -> usize {
        self.steps
            .windows(2)
            .filter(|pair| pair[0] != pair[1])
            .count()
    }

    /// Returns this script with only its first steps.
    pub(crate) fn prefix(&self, steps: usize) -> Self {
        TurnScript {
            steps: self.steps[..steps.min(self.steps.len())].to_vec(),
            splits: self.splits.clone(),
        }
    }

    /// Returns where each block of steps with one key begins and ends.
    pub(crate) fn blocks(&self) -> Vec<(usize, usize)> {
        let mut blocks: Vec<(usize, usize)> = Vec::new();
        for at in 0..self.steps.len() {
            match blocks.last_mut() {
                Some((first, end)) if self.steps[*first] == self.steps[at] => *end = at + 1,
                _ => blocks.push((at, at + 1)),
            }
        }
        blocks
    }

    /// Returns this script with the steps `from..end` moved to `to`, which is earlier.
    pub(crate) fn moved(&self, (from, end): (usize, usize), to: usize) -> Self {
        let mut moved = self.clone();
        moved.steps[to..end].rotate_right(end - from);
        moved
    }
}

/// A script that is being followed.
pub(super) struct Reading {
    script: TurnScript,
    /// The number of steps taken from it.
    at: usize,
}

impl Reading {
    pub(super) fn new(script: TurnScript) -> Self {
        Reading { script, at: 0 }
    }

    /// Returns the index of the next step among the ready keys, which are sorted by age.
    ///
    /// A key of the script that is not ready is skipped. After the end of the script, the task of
    /// the last step continues, or else the oldest one.
    pub(super) fn choose(&mut self, ready: &[u64], last: Option<u64>) -> usize {
        let index = |key: u64| ready.iter().position(|&other| other == key);
        while let Some(&key) = self.script.steps.get(self.at) {
            self.at += 1;
            if let Some(index) = index(key) {
                return index;
            }
        }
        last.and_then(index).unwrap_or(0)
    }

    pub(super) fn splits(&self, key: u64, turn: u64) -> bool {
        self.script.splits.contains(&(key, turn))
    }
}
