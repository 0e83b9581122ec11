//! The table of the results: medians, ratios beside the peers, and their bars.

use crate::{Bar, Pair};

/// Returns the middle one of these figures.
fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the median, and between what all are.
fn spread(figures: &[f64], digits: usize) -> String {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(0.0, f64::max);
    let median = median(figures);
    format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
}

/// Returns the lines of the table, in Markdown. The figures are ours and those of the peer.
pub fn lines(pairs: &[Pair], figures: &[(Vec<f64>, Vec<f64>)]) -> Vec<String> {
    let mut lines = vec![
        "| figure | ours | peer | its figure | ratio | bar | met |".to_owned(),
        "|---|---:|---|---:|---:|---:|---|".to_owned(),
    ];
    for (pair, (own, theirs)) in pairs.iter().zip(figures) {
        let ratios = own.iter().zip(theirs).map(|(own, theirs)| own / theirs);
        let ratios: Vec<_> = ratios.collect();
        let (peer, their, ratio) = match pair.peer {
            Some(side) => (side, spread(theirs, 0), spread(&ratios, 2)),
            None => Default::default(),
        };
        let (bar, is_met) = match pair.bar {
            Bar::Rate(least) => (format!("≥ {least}"), Some(median(own) >= least)),
            Bar::Times(least) => (format!("≥ {least} times"), Some(median(&ratios) >= least)),
            Bar::None => Default::default(),
        };
        let met = is_met.map_or("", |is_met| if is_met { "met" } else { "missed" });
        let (name, own) = (pair.name, spread(own, 0));
        lines.push(format!(
            "| {name} | {own} | {peer} | {their} | {ratio} | {bar} | {met} |"
        ));
    }
    lines
}
