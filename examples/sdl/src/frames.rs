//! Statistics of the frames: their number, and the times between them.

use std::fmt;
use std::time::Duration;

use greenroom::time::Instant;

/// The resolution of the statistics.
const STEP: Duration = Duration::from_micros(100);
/// Frames that take this many steps or more, a fifth of a second, are counted together.
const STEPS: usize = 2000;

pub struct Frames {
    renderer: &'static str,
    last: Option<Instant>,
    /// The number of frames that showed a new world.
    new: u64,
    /// The number of frames for each number of steps.
    counts: Vec<u64>,
    longest: Duration,
}

impl Frames {
    pub fn new(renderer: &'static str) -> Frames {
        Frames {
            renderer,
            last: None,
            new: 0,
            counts: vec![0; STEPS + 1],
            longest: Duration::ZERO,
        }
    }

    /// Records a frame that is on the screen.
    pub fn presented(&mut self, is_new: bool) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            self.count(now.duration_since(last), is_new);
        }
    }

    fn count(&mut self, time: Duration, is_new: bool) {
        let steps = time.as_nanos().div_ceil(STEP.as_nanos());
        let steps = usize::try_from(steps).map_or(STEPS, |steps| steps.min(STEPS));
        self.counts[steps] += 1;
        self.new += u64::from(is_new);
        self.longest = self.longest.max(time);
    }

    /// Returns the time that this percentage of the frames took at most, rounded up to a step.
    pub fn percentile(&self, percent: u64) -> Duration {
        let (all, mut seen) = (self.counts.iter().sum::<u64>(), 0);
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen * 100 >= all * percent
        });
        let steps = at.expect("the last count completes the sum");
        match u32::try_from(steps) {
            Ok(steps) if (steps as usize) < STEPS => STEP * steps,
            _ => self.longest,
        }
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, new, renderer) = (self.counts.iter().sum::<u64>(), self.new, self.renderer);
        let [p50, p99] = [50, 99].map(|percent| self.percentile(percent));
        let longest = self.longest;
        write!(f, "{all} frames, {new} of them new ({renderer}): ")?;
        write!(f, "p50 {p50:.1?}, p99 {p99:.1?}, max {longest:.1?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_all_frames() {
        let mut frames = Frames::new("none");
        for ms in 1..=100 {
            frames.count(Duration::from_millis(ms), ms % 2 == 0);
        }
        assert_eq!(frames.percentile(50), Duration::from_millis(50));
        assert_eq!(frames.percentile(99), Duration::from_millis(99));
        assert_eq!(
            frames.to_string(),
            "100 frames, 50 of them new (none): p50 50.0ms, p99 99.0ms, max 100.0ms"
        );
    }

    #[test]
    fn percentile_of_a_too_long_frame_is_the_longest_time() {
        let mut frames = Frames::new("none");
        assert_eq!(frames.percentile(99), Duration::ZERO);
        frames.count(Duration::from_secs(3), false);
        assert_eq!(frames.percentile(99), Duration::from_secs(3));
    }
}
