//! Polling before parking: the three phases of a worker that has run out of work.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::time::Duration;

/// The settings of a worker that polls for work before it parks.
///
/// A worker that has run out of work passes through three phases.
/// Each attempt checks the worker's own queue and the injector, where tasks from outside the
/// workers are queued. One attempt in every `steal_interval` also tries to steal.
///
/// | phase | attempts | before each attempt, the worker |
/// |---|---|---|
/// | aggressive | `aggressive_attempts` | executes a spin-loop hint |
/// | moderate | `moderate_attempts` | sleeps for `moderate_sleep` |
/// | relaxed | unlimited | sleeps for at most `relaxed_sleep` |
///
/// In the moderate phase a new task does not wake the worker. The task waits for up to
/// `moderate_sleep`, unless another worker takes it. Only the shutdown and a deadline that was
/// known before the sleep end it early. In the relaxed phase a new task wakes the worker.
/// A `relaxed_sleep` of zero keeps a core busy.
///
/// # Examples
///
/// ```
/// use greenroom::policy::{Polling, Stealing};
///
/// let eager = Stealing::polling(Polling { aggressive_attempts: 1000, ..Polling::default() });
/// let runtime = greenroom::Runtime::builder().policy(eager).build()?;
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polling {
    /// The number of attempts without a sleep between them; 100 by default.
    pub aggressive_attempts: u32,
    /// One of this many aggressive attempts steals, at least 1; 10 by default.
    pub aggressive_steal_interval: u32,
    /// The number of attempts after these, with a short sleep before each; 500 by default.
    pub moderate_attempts: u32,
    /// One of this many moderate attempts steals, at least 1; 5 by default.
    pub moderate_steal_interval: u32,
    /// The sleep before each moderate attempt; 50 µs by default.
    pub moderate_sleep: Duration,
    /// One of this many relaxed attempts steals, at least 1; 1 by default.
    pub relaxed_steal_interval: u32,
    /// The longest sleep before each relaxed attempt; 10 ms by default.
    pub relaxed_sleep: Duration,
}

impl Default for Polling {
    fn default() -> Self {
        Polling {
            aggressive_attempts: 100,
            aggressive_steal_interval: 10,
            moderate_attempts: 500,
            moderate_steal_interval: 5,
            moderate_sleep: Duration::from_micros(50),
            relaxed_steal_interval: 1,
            relaxed_sleep: Duration::from_millis(10),
        }
    }
}

/// What a worker does before its next attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PollingPhase {
    Aggressive { steals: bool },
    Moderate { steals: bool },
    Relaxed { steals: bool },
}

impl Polling {
    /// Checks the settings.
    ///
    /// # Errors
    /// Returns the first steal interval that is 0.
    pub(super) fn judge(&self) -> Result<(), String> {
        let intervals = [
            ("aggressive", self.aggressive_steal_interval),
            ("moderate", self.moderate_steal_interval),
            ("relaxed", self.relaxed_steal_interval),
        ];
        match intervals.iter().find(|(_, interval)| *interval == 0) {
            None => Ok(()),
            Some((phase, _)) => Err(format!(
                "has {phase}_steal_interval 0, but it must be at least 1"
            )),
        }
    }

    /// Returns the phase of this attempt, counted from 1 since the worker ran out of work.
    pub(super) fn phase(&self, attempt: u32) -> PollingPhase {
        let moderate = attempt.saturating_sub(self.aggressive_attempts);
        let relaxed = moderate.saturating_sub(self.moderate_attempts);
        if moderate == 0 {
            let steals = attempt.is_multiple_of(self.aggressive_steal_interval);
            PollingPhase::Aggressive { steals }
        } else if relaxed == 0 {
            let steals = moderate.is_multiple_of(self.moderate_steal_interval);
            PollingPhase::Moderate { steals }
        } else {
            let steals = relaxed.is_multiple_of(self.relaxed_steal_interval);
            PollingPhase::Relaxed { steals }
        }
    }
}
