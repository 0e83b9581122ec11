//! The faults that the parent injects, and when: all of it is drawn from the seed before the run.

use fastrand::Rng;

/// A fault of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Injected {
    Killed,
    Stopped,
    NoDescriptors,
    NoThreads,
    /// The date of all processes makes a step.
    Stepped,
    /// The process has aborted, since it got no memory.
    Aborted,
}

impl Injected {
    pub fn name(self) -> &'static str {
        match self {
            Injected::Killed => "killed",
            Injected::Stopped => "stopped",
            Injected::NoDescriptors => "without descriptors",
            Injected::NoThreads => "without threads",
            Injected::Stepped => "date stepped",
            Injected::Aborted => "aborted",
        }
    }
}

/// A fault, and when it is injected, as a part of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planned {
    pub at: f64,
    /// The number of the process.
    pub process: usize,
    pub fault: Injected,
}

/// How often a fault is injected within an hour.
pub type Rates = &'static [(Injected, u64)];

/// The load begins and ends without faults.
const CALM: std::ops::Range<f64> = 0.05..0.95;

/// Plans the faults of a run. Each fault of a process comes at least once.
pub fn plan(rng: &mut Rng, minutes: u64, rates: &[Rates]) -> Vec<Planned> {
    let mut plan = Vec::new();
    for (process, rates) in rates.iter().enumerate() {
        for (fault, an_hour) in *rates {
            let count = (an_hour * minutes).div_ceil(60);
            let planned = (0..count).map(|_| Planned {
                at: CALM.start + rng.f64() * (CALM.end - CALM.start),
                process,
                fault: *fault,
            });
            plan.extend(planned);
        }
    }
    // The last one is the first that is taken.
    plan.sort_by(|a, b| b.at.total_cmp(&a.at));
    plan
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::{CALM, Injected, Rates, plan};

    const RATES: [Rates; 2] = [
        &[(Injected::Killed, 30), (Injected::Stopped, 1)],
        &[(Injected::NoDescriptors, 60)],
    ];

    #[test]
    fn a_plan_has_each_fault_as_often_as_its_rate_says() {
        let plan = plan(&mut Rng::with_seed(1), 120, &RATES);
        let count = |fault| plan.iter().filter(|it| it.fault == fault).count();
        let counts = [Injected::Killed, Injected::Stopped, Injected::NoDescriptors].map(count);
        assert_eq!(counts, [60, 2, 120]);
        assert!(plan.iter().all(|planned| CALM.contains(&planned.at)));
        assert!(plan.is_sorted_by(|a, b| a.at >= b.at), "{plan:?}");
    }

    #[test]
    fn a_short_run_has_each_fault_once_at_least() {
        assert_eq!(plan(&mut Rng::with_seed(1), 1, &RATES).len(), 3);
    }

    #[test]
    fn a_seed_repeats_its_plan() {
        let planned = |seed| plan(&mut Rng::with_seed(seed), 60, &RATES);
        assert_eq!(planned(7), planned(7));
        assert_ne!(planned(7), planned(8));
    }
}
