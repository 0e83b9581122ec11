//! Polling before parking: the three phases of a worker that has run out of work.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::time::Duration;

/// Document 3's three phases of a worker that has run out of work: seven numbers.
///
/// In each phase an attempt looks at the worker's own queue and at what is from outside; in one of so
/// many it steals. The relaxed phase has no end; who sleeps in it is woken when there is something
/// for it (in the document it sleeps on). In the moderate phase nobody is woken for what
/// comes: that waits for up to `moderate_sleep`, but for the shutdown
/// and for deadlines that were known before. A `relaxed_sleep` of zero keeps a core busy.
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
    /// Attempts without a sleep between them; 100 by default.
    pub aggressive_attempts: u32,
    /// Of so many of these one steals, at least 1; 10 by default.
    pub aggressive_steal_interval: u32,
    /// Attempts after these, with a short sleep between them; 500 by default.
    pub moderate_attempts: u32,
    /// Of so many of these one steals, at least 1; 5 by default.
    pub moderate_steal_interval: u32,
    /// The short sleep; 50 µs by default.
    pub moderate_sleep: Duration,
    /// Of so many attempts after these one steals, at least 1; 1 by default.
    pub relaxed_steal_interval: u32,
    /// The long sleep between them; 10 ms by default.
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

/// What a worker does before its next look.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Aggressive { steals: bool },
    Moderate { steals: bool },
    Relaxed { steals: bool },
}

impl Polling {
    pub(super) fn judge(&self) -> Result<(), String> {
        let intervals = [
            ("aggressive", self.aggressive_steal_interval),
            ("moderate", self.moderate_steal_interval),
            ("relaxed", self.relaxed_steal_interval),
        ];
        match intervals.iter().find(|(_, interval)| *interval == 0) {
            None => Ok(()),
            Some((phase, _)) => Err(format!(
                "has a {phase}_steal_interval of 0, but must steal in one of at least 1 attempts"
            )),
        }
    }

    /// What goes before the attempt of this number, from 1, since the worker ran out of work.
    pub(super) fn phase(&self, attempt: u32) -> Phase {
        let moderate = attempt.saturating_sub(self.aggressive_attempts);
        let relaxed = moderate.saturating_sub(self.moderate_attempts);
        if moderate == 0 {
            let steals = attempt.is_multiple_of(self.aggressive_steal_interval);
            Phase::Aggressive { steals }
        } else if relaxed == 0 {
            let steals = moderate.is_multiple_of(self.moderate_steal_interval);
            Phase::Moderate { steals }
        } else {
            let steals = relaxed.is_multiple_of(self.relaxed_steal_interval);
            Phase::Relaxed { steals }
        }
    }
}
