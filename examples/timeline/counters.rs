//! The rows of counters below the lanes: steals, parks and queued tasks over time.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom::WorkerStats;

use super::picture::{LANES_MAX, LEFT, MARGIN, PLOT, Picture, Time};

/// How high all rows are.
pub const HEIGHT: f64 = ROWS.len() as f64 * STEP;

const STEP: f64 = 48.0;
/// How high the highest bar is.
const BAR: f64 = 34.0;
/// The most bars of a row. In a short run there are fewer, so that each has some samples.
const BARS_MAX: usize = 102;
/// How many samples a bar has at least, on average.
const SAMPLES_MIN: usize = 3;

const ROWS: [(&str, Read); 3] = [
    ("steals", Read::Counter(|stats| stats.steals)),
    ("parks", Read::Counter(|stats| stats.parks)),
    ("queued", Read::Queued),
];

/// What the bars of a row show.
#[derive(Clone, Copy)]
enum Read {
    /// By how much this counter grew, in all workers.
    Counter(fn(&WorkerStats) -> u64),
    /// The most tasks that were ready and waited for a worker.
    Queued,
}

/// A bar, and how much of it is of which worker.
#[derive(Clone, Default)]
struct Bar {
    value: u64,
    /// How many samples fell in its time. Without any, nothing is known of it.
    samples: usize,
    workers: BTreeMap<usize, u64>,
}

impl Picture<'_> {
    pub fn counters(&mut self) {
        for (name, read) in ROWS {
            let bars = self.bars(read);
            let interval = self.scale.span / bars.len() as u32;
            let when = match read {
                Read::Counter(_) => format!("in {}", Time(interval)),
                Read::Queued => "at a sample".to_owned(),
            };
            self.row(name, &when, interval, &bars);
            self.y += STEP;
        }
        self.y += 12.0;
    }

    /// Adds up the samples. What was counted between two samples is in the bar of the later one.
    fn bars(&self, read: Read) -> Vec<Bar> {
        let count = (self.recording.samples.len() / SAMPLES_MIN).clamp(1, BARS_MAX);
        let mut bars = vec![Bar::default(); count];
        let mut counted: Vec<u64> = Vec::new();
        for sample in &self.recording.samples {
            let share = self.scale.x(sample.at) / PLOT as f64;
            let bar = &mut bars[((share * count as f64) as usize).min(count - 1)];
            bar.samples += 1;
            let Read::Counter(counter) = read else {
                bar.value = bar.value.max(sample.queued as u64);
                continue;
            };
            counted.resize(sample.workers.len(), 0);
            for (worker, stats) in sample.workers.iter().enumerate() {
                let more = counter(stats).saturating_sub(counted[worker]);
                counted[worker] += more;
                bar.value += more;
                if more > 0 {
                    *bar.workers.entry(worker).or_default() += more;
                }
            }
        }
        bars
    }

    fn row(&mut self, name: &str, when: &str, interval: Duration, bars: &[Bar]) {
        let (y, width) = (self.y, PLOT as f64 / bars.len() as f64);
        let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0);
        let base = [LEFT, y + BAR, PLOT as f64, 1.0];
        self.canvas.rect("lane", base, "");
        self.canvas.text("head", MARGIN, y + 17.0, name);
        let facts = format!("at most {most} {when}");
        self.canvas.text("mute small", MARGIN, y + 32.0, facts);
        let bars = || bars.iter().zip(0..);
        let x = |index: u32| LEFT + f64::from(index) * width;
        let unknown = bars().filter(|(bar, _)| bar.samples == 0);
        let unknown = unknown.map(|(_, index)| [x(index), y, width, BAR]);
        self.canvas.rects("lane", unknown);
        for (bar, index) in bars().filter(|(bar, _)| bar.value > 0) {
            let height = (BAR * bar.value as f64 / most as f64).max(1.0);
            let place = [x(index) + 0.5, y + BAR - height, width - 1.0, height];
            let title = bar.told(name, interval * index);
            self.canvas.rect("bar", place, &title);
        }
    }
}

impl Bar {
    /// Describes it in a line.
    fn told(&self, name: &str, from: Duration) -> String {
        let workers = self.workers.iter().take(LANES_MAX);
        let workers = workers.map(|(worker, more)| format!("; worker {worker}: {more}"));
        let workers: String = workers.collect();
        format!("from {}: {} {name}{workers}", Time(from), self.value)
    }
}
