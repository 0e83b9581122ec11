//! The table: medians with minimum and maximum, and greenroom beside its goals.

use crate::bars::bar;
use crate::figures::{is_compared, more_is_better};
use crate::roster::{OURS, Peer};
use crate::rounds::Outcome;
use peers::machine::{Median, median};

/// One line: a figure of a case, with the values of all peers.
pub struct Line<'a> {
    outcome: &'a Outcome,
    peers: &'a [&'a Peer],
    /// The name of the figure, with its unit.
    pub figure: &'a str,
    /// The value of each peer, if it has one.
    pub medians: Vec<Option<Median>>,
}

/// Returns the lines of one case.
pub fn lines<'a>(outcome: &'a Outcome, peers: &'a [&'a Peer]) -> Vec<Line<'a>> {
    let rows = outcome.rows.iter();
    rows.map(|(figure, values)| Line {
        outcome,
        peers,
        figure,
        medians: values.iter().map(|values| median(values)).collect(),
    })
    .collect()
}

/// Returns the first two lines of the table.
pub fn heading(peers: &[&Peer]) -> String {
    let mut names = vec!["case", "figure"];
    for peer in peers {
        names.push(peer.name);
        if peer.name == OURS {
            names.extend(["goal", "beside the best"]);
        }
    }
    let rule = "---|".repeat(names.len());
    format!("| {} |\n|{rule}", names.join(" | "))
}

impl Line<'_> {
    /// Formats the line.
    pub fn text(&self) -> String {
        let mut cells = vec![self.outcome.case.name().to_owned(), self.figure.to_owned()];
        for (index, peer) in self.peers.iter().enumerate() {
            cells.push(self.cell(index));
            if peer.name == OURS {
                cells.push(self.verdict().unwrap_or_default());
                cells.push(self.best().unwrap_or_default());
            }
        }
        format!("| {} |", cells.join(" | "))
    }

    /// Returns the names of the case and the figure.
    pub fn name(&self) -> String {
        format!("{}, {}", self.outcome.case.name(), self.figure)
    }

    /// Returns the name, greenroom's cell and the cell beside the best, if there is a best peer.
    pub fn figures(&self) -> Option<[String; 3]> {
        let ours = self.peers.iter().position(|peer| peer.name == OURS)?;
        Some([self.name(), self.cell(ours), self.best()?])
    }

    /// Returns how many times as good as the peer with this index greenroom is, if that is known.
    pub fn ratio(&self, index: usize) -> Option<f64> {
        let (own, other) = (self.own()?.middle, self.medians[index]?.middle);
        let ratio = if more_is_better(self.figure) {
            own / other
        } else {
            other / own
        };
        (is_compared(self.figure) && ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }

    /// Returns whether the chart shows this: the first figure of its case, or one with a goal.
    pub fn is_charted(&self) -> bool {
        let first = self.outcome.rows.first();
        let is_first = first.is_some_and(|(figure, _)| figure == self.figure);
        let compared = (0..self.peers.len()).any(|peer| self.ratio(peer).is_some());
        compared && (is_first || bar(self.outcome.case, self.figure).is_some())
    }

    fn own(&self) -> Option<Median> {
        let ours = self.peers.iter().position(|peer| peer.name == OURS)?;
        self.medians[ours]
    }

    fn verdict(&self) -> Option<String> {
        let beside = |name: &str| {
            let index = self.peers.iter().position(|peer| peer.name == name)?;
            self.ratio(index)
        };
        let bar = bar(self.outcome.case, self.figure)?;
        Some(bar.verdict(self.own()?.middle, beside))
    }

    /// Returns the best of the other peers, and how many times as good greenroom is.
    fn best(&self) -> Option<String> {
        let others = self.peers.iter().enumerate();
        let ratios = others
            .filter(|(_, peer)| peer.name != OURS)
            .filter_map(|(index, peer)| Some((self.ratio(index)?, peer.name)));
        let (ratio, name) = ratios.min_by(|one, other| one.0.total_cmp(&other.0))?;
        Some(format!("{ratio:.2} × {name}"))
    }

    fn cell(&self, index: usize) -> String {
        let (runs, hangs) = (self.outcome.runs[index], self.outcome.hangs[index]);
        match self.medians[index].map(|median| median.to_string()) {
            Some(text) if hangs > 0 => format!("{text}, hung {hangs} of {runs}"),
            Some(text) => text,
            None if hangs > 0 => format!("hung {hangs} of {runs}"),
            None => "–".to_owned(),
        }
    }
}
