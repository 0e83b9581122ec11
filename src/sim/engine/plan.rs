//! `Plan`: the options of a simulation.

use std::fmt;
use std::time::Duration;

use super::ready::{Draw, Schedule};

/// The default maximum number of steps: a hundred times what most tests need, and less than a
/// second.
const STEPS: u64 = 1_000_000;
/// The default number of steps that a trace shows.
const TRACE: usize = 200;
/// The default lateness of timers: about as late as an operating system wakes a thread.
const TIMER_JITTER: Duration = Duration::from_millis(1);
/// If the seed decides, a schedule changes fewer priorities than this. Few bugs need more than four
/// orderings at once.
const CHANGES_END: u64 = 4;
/// How many of `TURNS` turns are split, if the seed decides. Three runs in four split no turn, so
/// in these only the schedule varies.
const SPLITS: [u64; 8] = [0, 0, 0, 0, 0, 0, 2, TURNS];
pub(crate) const TURNS: u64 = 4;
/// The binary logarithm of the number of steps over which changes are spread, if the seed decides:
/// 2⁴ to 2¹².
const WITHIN: std::ops::Range<u64> = 4..13;

/// The options of a simulation.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// `None`: drawn from the seed.
    pub(in crate::sim) schedule: Option<Schedule>,
    pub(crate) timer_jitter: Duration,
    pub(crate) steps: u64,
    pub(crate) trace: usize,
    /// Whether no turn is split.
    pub(in crate::sim) whole_turns: bool,
    /// Whether the run is judged: a deadlock, a panic without a join, or a cancelled actor ends it.
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

    /// Returns the initial state of the draw, and the schedule.
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

    /// Returns how many of [`TURNS`] turns are split.
    pub(crate) fn splits(&self, draw: &mut Draw) -> u64 {
        let choice = SPLITS[draw.below(SPLITS.len() as u64) as usize];
        if self.whole_turns { 0 } else { choice }
    }
    /// Returns the source code of the call that repeats the run.
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

/// Formats the options as the source code that creates them.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Plan::new(self.seed);
        write!(f, "Simulated::new({})", self.seed)?;
        match self.schedule {
            None => {}
            Some(Schedule::Random) => f.write_str(".random()")?,
            // `keeps` needs no call: it is false here, and true only in drawn schedules.
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
