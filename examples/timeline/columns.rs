//! The turns of one worker, merged to what can be seen at so many pixels.
//!
//! A turn of at least [`BOX_MIN`] pixels is drawn as it is. All shorter ones are added up per pixel
//! column: how much of its time the worker spent in turns of which kind. So a picture has a bounded
//! number of shapes, however many turns there were.

use std::time::Duration;

use super::record::{Lane, Sample, Turn};

/// The width in pixels from which a turn has a box of its own, in a picture of a few lanes.
const BOX_MIN: f64 = 2.0;

/// How many kinds of actors are told apart; those that were busy for less time are one more kind.
pub const KINDS: usize = 8;

/// The width of the plot in pixels, and the time that it shows.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub width: usize,
    pub span: Duration,
}

impl Scale {
    /// Returns the pixel of a moment, counted from the left edge of the plot.
    pub fn x(&self, at: Duration) -> f64 {
        let span = self.span.max(Duration::from_nanos(1));
        let share = at.as_secs_f64() / span.as_secs_f64();
        share.min(1.0) * self.width as f64
    }
}

/// What is drawn of a lane.
#[derive(Debug)]
pub struct Merged {
    /// The turns with a box of their own.
    pub boxes: Vec<Turn>,
    /// For each pixel column, the share of its time that went to shorter turns of each kind.
    pub columns: Vec<[f64; KINDS + 1]>,
}

/// Merges the turns of a lane. `kinds` has the kind of each actor, at most [`KINDS`].
///
/// `lanes` is how many lanes the picture has: the more, the wider is the narrowest box.
pub fn merge(lane: &Lane, kinds: &[usize], scale: Scale, lanes: usize) -> Merged {
    let box_min = BOX_MIN.max(lanes as f64 / 4.0);
    let mut merged = Merged {
        boxes: Vec::new(),
        columns: vec![[0.0; KINDS + 1]; scale.width],
    };
    for turn in &lane.turns {
        let (from, to) = (scale.x(turn.start), scale.x(turn.end()));
        if to - from >= box_min {
            merged.boxes.push(*turn);
            continue;
        }
        for column in from as usize..=(to as usize).min(scale.width - 1) {
            let overlap = to.min(column as f64 + 1.0) - from.max(column as f64);
            merged.columns[column][kinds[turn.actor]] += overlap;
        }
    }
    merged
}

/// Returns the gaps between the turns of a worker in which a sample found it parked.
///
/// Such a gap also has the search for work before the worker parked, and the time that it took to
/// wake up. Gaps narrower than a pixel are left out.
pub fn parked_gaps(
    lane: &Lane,
    worker: usize,
    samples: &[Sample],
    scale: Scale,
) -> Vec<(Duration, Duration)> {
    let parked = samples.iter().filter(|sample| sample.is_parked(worker));
    let mut parked = parked.map(|sample| sample.at).peekable();
    let mut turns: Vec<_> = lane
        .turns
        .iter()
        .map(|turn| (turn.start, turn.end()))
        .collect();
    turns.sort_unstable();
    // Nothing is known of the time after the first turn that was left out.
    let last = match lane.left_out {
        0 => scale.span,
        _ => turns.last().map_or(Duration::ZERO, |turn| turn.1),
    };
    turns.push((last, last));
    let (mut gaps, mut from) = (Vec::new(), Duration::ZERO);
    for (start, end) in turns {
        while parked.next_if(|at| *at < from).is_some() {}
        let is_parked = parked.peek().is_some_and(|at| *at < start);
        if is_parked && scale.x(start) - scale.x(from) >= 1.0 {
            gaps.push((from, start));
        }
        from = from.max(end);
    }
    gaps
}
