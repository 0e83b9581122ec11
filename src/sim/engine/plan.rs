//! What is asked of a simulation: the options of `Simulated`.

use std::fmt;
use std::time::Duration;

use super::ready::{Draw, Schedule};

/// How many steps a run may take by default: a hundred times what most tests need, and still less
/// than a second.
const STEPS: u64 = 1_000_000;
/// How many steps a trace shows by default.
const TRACE: usize = 200;
/// How late timers fire at most by default: about as late as an operating system wakes a thread.
const TIMER_JITTER: Duration = Duration::from_millis(1);
/// A schedule lowers a priority fewer times than this, where the seed says how often: few bugs take more
/// than four orders at once.
const CHANGES_END: u64 = 4;
/// How many of `TURNS` turns are split, where the seed says it: in three runs of four none, so that these have
/// nothing but the schedule in them.
const SPLITS: [u64; 8] = [0, 0, 0, 0, 0, 0, 2, TURNS];
pub(crate) const TURNS: u64 = 4;
/// Over how many steps these are spread, where the seed says it: a power of two from 2⁴ to 2¹².
const WITHIN: std::ops::Range<u64> = 4..13;

/// What a simulation is made with.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// `None`: drawn from the seed.
    pub(in crate::sim) schedule: Option<Schedule>,
    pub(crate) timer_jitter: Duration,
    pub(crate) steps: u64,
    pub(crate) trace: usize,
    /// No turn is split.
    pub(in crate::sim) whole_turns: bool,
    /// A deadlock, a panic that nobody joined, an actor that had to be cancelled end the run.
    pub(crate) judged: bool,
}

impl Plan {
    pub(in crate::sim) fn new(seed: u64) -> Self {
        Plan {
            seed,
            schedule: None,
            timer_jitter: TIMER_JITTER,
            steps: STEPS,
            trace: TRACE,
            whole_turns: false,
            judged: false,
        }
    }

    /// What it begins with: the numbers drawn from the seed, and the schedule.
    pub(crate) fn begin(&self) -> (Draw, Schedule) {
        let mut draw = Draw::new(self.seed);
        let drawn = match draw.below(2) {
            0 => Schedule::Random,
            _ => Schedule::Priorities {
                changes: draw.below(CHANGES_END) as u32,
                within: 1 << (WITHIN.start + draw.below(WITHIN.end - WITHIN.start)),
                keeps: draw.below(2) == 0,
            },
        };
        (draw, self.schedule.unwrap_or(drawn))
    }

    /// How many of [`TURNS`] turns are split.
    pub(crate) fn splits(&self, draw: &mut Draw) -> u64 {
        let choice = SPLITS[draw.below(SPLITS.len() as u64) as usize];
        if self.whole_turns { 0 } else { choice }
    }
    /// The call that runs the same again.
    pub(crate) fn again(&self) -> String {
        let usual = Plan {
            judged: self.judged,
            ..Plan::new(self.seed)
        };
        match *self == usual {
            true => format!("greenroom::sim::run({}, ..)", self.seed),
            false => format!("greenroom::policy::{self}.try_run(..)"),
        }
    }
}

/// As it is made in a program.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Plan::new(self.seed);
        write!(f, "Simulated::new({})", self.seed)?;
        match self.schedule {
            None => {}
            Some(Schedule::Random) => f.write_str(".random()")?,
            Some(Schedule::Priorities {
                changes, within, ..
            }) => {
                write!(f, ".priorities({changes}, {within})")?;
            }
        }
        if self.timer_jitter != usual.timer_jitter {
            write!(
                f,
                ".timer_jitter(Duration::from_nanos({}))",
                self.timer_jitter.as_nanos()
            )?;
        }
        if self.steps != usual.steps {
            write!(f, ".steps({})", self.steps)?;
        }
        if self.whole_turns {
            f.write_str(".whole_turns()")?;
        }
        if self.trace != usual.trace {
            write!(f, ".trace({})", self.trace)?;
        }
        Ok(())
    }
}
