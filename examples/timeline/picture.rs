//! The picture of a recording: workers over time, counters over time, actors, longest turns.
//!
//! Its size is bounded: a lane has a bounded number of shapes (see `columns.rs`), and of all else
//! there is a fixed number.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use greenroom::WorkerStats;

use super::columns::{KINDS, Scale, merge, parked_gaps};
use super::counters;
use super::record::{Actor, Lane, Recording, Turn};
use super::svg::Canvas;

const WIDTH: usize = 1200;
pub const MARGIN: f64 = 20.0;
/// Where the plot begins: to the left of it are the labels.
pub const LEFT: f64 = 160.0;
/// The width of the plot.
pub const PLOT: usize = 1020;
const LEGEND: f64 = 18.0;
const LANE: f64 = 44.0;
const LANE_STEP: f64 = 54.0;

/// The most lanes that are drawn.
pub const LANES_MAX: usize = 32;
/// The most characters of a name that are drawn.
const NAME_MAX: usize = 22;

/// Returns a recording as an SVG.
pub fn render(recording: &Recording, title: &str) -> String {
    let mut picture = Picture::new(recording);
    picture.head(title);
    picture.legend();
    picture.axis();
    picture.lanes();
    picture.counters();
    picture.tables();
    picture.notes();
    picture.canvas.finish(picture.y, title)
}

/// A picture in the making. The rows of counters and the tables are in files of their own.
pub struct Picture<'a> {
    pub recording: &'a Recording,
    pub canvas: Canvas,
    pub scale: Scale,
    /// The names of the kinds of actors, the busiest first.
    kinds: Vec<String>,
    /// The kind of each actor.
    pub kind_of: Vec<usize>,
    /// Where the next part begins.
    pub y: f64,
}

impl<'a> Picture<'a> {
    fn new(recording: &'a Recording) -> Self {
        let (kinds, kind_of) = kinds(&recording.actors);
        let scale = Scale {
            width: PLOT,
            span: recording.took,
        };
        Picture {
            recording,
            canvas: Canvas::new(WIDTH),
            scale,
            kinds,
            kind_of,
            y: MARGIN,
        }
    }

    fn drawn(&self) -> &'a [Lane] {
        &self.recording.lanes[..self.recording.lanes.len().min(LANES_MAX)]
    }

    fn head(&mut self, title: &str) {
        self.canvas.text("title", MARGIN, self.y + 16.0, title);
        let Recording {
            took,
            lanes,
            actors,
            samples,
        } = self.recording;
        let turns: u64 = actors.iter().map(|actor| actor.runs).sum();
        let totals = self.totals();
        let facts = format!(
            "{}: {turns} turns of {} actors, {} steals, {} parks; {} samples of the counters",
            Time(*took),
            actors.len(),
            totals.iter().map(|stats| stats.steals).sum::<u64>(),
            totals.iter().map(|stats| stats.parks).sum::<u64>(),
            samples.len(),
        );
        self.canvas.text("mute", MARGIN, self.y + 36.0, facts);
        self.y += 50.0;
        let left_out: u64 = lanes.iter().map(|lane| lane.left_out).sum();
        let mut warn = |text: String| {
            self.canvas.text("warn", MARGIN, self.y + 8.0, text);
            self.y += 20.0;
        };
        if left_out > 0 {
            warn(format!(
                "{left_out} turns found no room in the recording: they are in no lane and no list \
                 of turns, but in the sums"
            ));
        }
        if lanes.len() > LANES_MAX {
            warn(format!(
                "{} more workers are not drawn",
                lanes.len() - LANES_MAX
            ));
        }
    }

    /// Returns the last sample of each worker.
    fn totals(&self) -> &'a [WorkerStats] {
        let last = self.recording.samples.last();
        last.map_or(&[], |sample| &sample.workers)
    }

    fn legend(&mut self) {
        let mut x = LEFT;
        let kinds = self.kinds.iter().enumerate();
        let kinds = kinds.map(|(kind, name)| (format!("k{kind}"), short(name)));
        let parked = ("stripes".to_owned(), "parked".to_owned());
        let free = ("lane".to_owned(), "no turn".to_owned());
        for (class, name) in kinds.chain([parked, free]) {
            let width = 36.0 + 7.0 * name.chars().count() as f64;
            if x + width > WIDTH as f64 {
                (x, self.y) = (LEFT, self.y + LEGEND);
            }
            let y = self.y;
            self.canvas.rect(&class, [x, y, 14.0, 12.0], "");
            self.canvas.text("", x + 19.0, y + 10.0, &name);
            x += width;
        }
        self.y += 30.0;
    }

    /// Draws the times above the lanes, and a line for each down to the last row of counters.
    fn axis(&mut self) {
        let height = self.drawn().len() as f64 * LANE_STEP + counters::HEIGHT;
        let step = step(self.scale.span);
        let mut at = Duration::ZERO;
        while at <= self.scale.span {
            let x = LEFT + self.scale.x(at);
            self.canvas.vertical(x, self.y + 16.0, height - 10.0);
            self.canvas
                .text("mute small mid", x, self.y + 10.0, Time(at));
            at += step;
        }
        self.y += 20.0;
    }

    fn lanes(&mut self) {
        for (index, lane) in self.drawn().iter().enumerate() {
            self.lane(index, lane);
            self.y += LANE_STEP;
        }
        self.y += 4.0;
    }

    fn lane(&mut self, index: usize, lane: &Lane) {
        let (scale, y) = (self.scale, self.y);
        self.canvas.rect("lane", [LEFT, y, PLOT as f64, LANE], "");
        let span = |from: Duration, to: Duration| {
            let x = scale.x(from);
            [LEFT + x, y, scale.x(to) - x, LANE]
        };
        let gaps = parked_gaps(lane, index, &self.recording.samples, scale);
        let gaps = gaps.into_iter().map(|(from, to)| span(from, to));
        self.canvas.rects("stripes", gaps);
        let merged = merge(lane, &self.kind_of, scale, self.drawn().len());
        for (kind, rects) in stacks(&merged.columns, y).into_iter().enumerate() {
            self.canvas.rects(&format!("k{kind}"), rects);
        }
        for turn in &merged.boxes {
            let class = format!("box k{}", self.kind_of[turn.actor]);
            let title = self.told(turn);
            let place = span(turn.start, turn.end());
            self.canvas.rect(&class, place, &title);
        }
        if lane.left_out > 0 {
            let from = lane.turns.last().map_or(Duration::ZERO, Turn::end);
            let title = format!("{} turns that found no room", lane.left_out);
            self.canvas.rect("lost", span(from, scale.span), &title);
        }
        self.lane_label(index, lane);
    }

    fn lane_label(&mut self, index: usize, lane: &Lane) {
        let y = self.y;
        self.canvas.text("head", MARGIN, y + 13.0, &lane.name);
        let share = lane.busy.as_secs_f64() / self.scale.span.as_secs_f64().max(1e-9);
        let turns = lane.turns.len() as u64 + lane.left_out;
        let facts = format!("{turns} turns, {:.0} % busy", share.min(1.0) * 100.0);
        self.canvas.text("mute small", MARGIN, y + 28.0, facts);
        if let Some(stats) = self.totals().get(index) {
            let facts = format!("{} steals, {} parks", stats.steals, stats.parks);
            self.canvas.text("mute small", MARGIN, y + 42.0, facts);
        }
    }

    /// Describes a turn in a line.
    fn told(&self, turn: &Turn) -> String {
        let name = short(&self.recording.actors[turn.actor].name);
        format!("{name}: {} from {}", Time(turn.took), Time(turn.start))
    }

    /// Says how the picture came about.
    fn notes(&mut self) {
        const NOTES: [&str; 5] = [
            "A box is a turn: one poll of an actor by a worker, as the observer received it. It is time \
             on the clock, also when the system ran another thread.",
            "Turns too short for a box fill each pixel column as far as the worker spent its time in \
             them.",
            "Steals and parks are differences between two samples of the runtime's counters; queued is \
             the largest number that a sample found. A grey field had no sample.",
            "Parked is derived: a gap between two turns in which a sample found the worker asleep. It \
             has the search before and the wake-up after. Gaps below a pixel are left blank.",
            "The observer and the sampler take time themselves.",
        ];
        for note in NOTES {
            self.canvas.text("mute small", MARGIN, self.y, note);
            self.y += 15.0;
        }
        self.y += 5.0;
    }
}

/// Groups actors by kind, and returns the kinds with the kind of each actor.
///
/// A kind is what the names of its actors begin with, up to a number at the end: `reader 7` is a
/// `reader`. The busiest kinds have a colour each, and all further ones share one.
fn kinds(actors: &[Actor]) -> (Vec<String>, Vec<usize>) {
    fn stem(actor: &Actor) -> &str {
        let name = actor.name.trim_end_matches(|c: char| c.is_ascii_digit());
        name.trim_end_matches([' ', '-', '_', '#'])
    }
    let mut busy: HashMap<&str, Duration> = HashMap::new();
    for actor in actors {
        *busy.entry(stem(actor)).or_default() += actor.busy;
    }
    let mut order: Vec<_> = busy.into_iter().collect();
    order.sort_by_key(|(kind, busy)| (Reverse(*busy), *kind));
    let order = order.into_iter().map(|(kind, _)| kind);
    let mut kinds: Vec<_> = order.clone().take(KINDS).map(str::to_owned).collect();
    let indices: HashMap<&str, usize> = order.zip(0..).collect();
    if indices.len() > KINDS {
        kinds.push("others".to_owned());
    }
    let kind_of = |actor| indices[stem(actor)].min(KINDS);
    (kinds, actors.iter().map(kind_of).collect())
}

/// Returns for each kind its part of every column, one upon the other from the bottom of a lane.
fn stacks(columns: &[[f64; KINDS + 1]], y: f64) -> Vec<Vec<[f64; 4]>> {
    let mut stacks = vec![Vec::new(); KINDS + 1];
    for (column, shares) in columns.iter().enumerate() {
        let mut from = 0.0;
        for (stack, share) in stacks.iter_mut().zip(shares) {
            let to = (from + share * LANE).min(LANE);
            // Whole pixels keep the edges sharp. What is cut off here is added to the next kind.
            let (bottom, top) = (f64::round(from), f64::round(to));
            if top > bottom {
                let x = LEFT + column as f64;
                stack.push([x, y + LANE - top, 1.0, top - bottom]);
            }
            from = to;
        }
    }
    stacks
}

/// Returns the distance of the times on the axis: about ten of them, in round numbers.
fn step(span: Duration) -> Duration {
    let least = span.as_nanos() / 10;
    let mut step = 1;
    while step < least {
        let leading = step.to_string().starts_with('2');
        step = if leading { step / 2 * 5 } else { step * 2 };
    }
    Duration::from_nanos(u64::try_from(step).unwrap_or(u64::MAX))
}

/// Returns a name that fits where names are drawn.
pub fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some(_) => name.chars().take(NAME_MAX - 1).chain(['…']).collect(),
        None => name.to_owned(),
    }
}

/// A time with three digits and a unit.
pub struct Time(pub Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return f.write_str("0");
        }
        let (nanos, unit) = (self.0.as_nanos() as f64, ["ns", "µs", "ms", "s"]);
        let (mut value, mut index) = (nanos, 0);
        while value >= 999.5 && index + 1 < unit.len() {
            value /= 1000.0;
            index += 1;
        }
        let digits = match value {
            v if v == v.trunc() || v >= 99.95 => 0,
            v if v >= 9.995 => 1,
            _ => 2,
        };
        write!(f, "{value:.digits$} {}", unit[index])
    }
}
