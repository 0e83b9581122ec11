//! A run that failed: what happened, and how to repeat it.

use std::fmt;

use super::engine::{Failed, Plan, RunProblem, TurnScript};

/// A run that failed. Its text says what failed, when, what happened before, and how to repeat the
/// run.
#[derive(Clone)]
pub struct Failure {
    failed: Box<Failed>,
    plan: Plan,
    /// The length of the original run, if this is a shorter one.
    shortened_from: Option<Length>,
    /// Whether another run with the same seed did something else.
    is_unsteady: bool,
}

/// The length of a run: its context switches are compared first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Length {
    pub(super) switches: usize,
    pub(super) steps: u64,
}

impl Failure {
    pub(super) fn new(failed: Failed, plan: Plan) -> Self {
        Failure {
            failed: Box::new(failed),
            plan,
            shortened_from: None,
            is_unsteady: false,
        }
    }

    pub(super) fn script(&self) -> &TurnScript {
        &self.failed.script
    }

    pub(super) fn length(&self) -> Length {
        Length {
            switches: self.script().switches(),
            steps: self.failed.run.steps,
        }
    }

    /// Replaces this failure by a shorter run with the same plan.
    pub(super) fn shorten(&mut self, shorter: Failure) {
        self.failed = shorter.failed;
    }

    /// Notes the length of the original run, of which this is a shorter one.
    pub(super) fn shortened_from(mut self, length: Length) -> Self {
        self.shortened_from = Some(length);
        self
    }

    /// Notes that another run with the same seed did something else.
    pub(super) fn not_again(mut self) -> Self {
        self.is_unsteady = true;
        self
    }

    /// Returns what was wrong.
    pub fn problem(&self) -> &RunProblem {
        &self.failed.problem
    }

    /// Returns the seed of the run.
    pub fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// Returns the last steps: for each its number, its virtual time in seconds, the task, and its
    /// events.
    pub fn trace(&self) -> &str {
        &self.failed.trace
    }

    /// Returns the [fingerprint](super::Run::fingerprint) of the run up to the failure.
    pub fn fingerprint(&self) -> u64 {
        self.failed.run.fingerprint
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failed {
            problem,
            run,
            trace,
            waits,
            script: _,
        } = &*self.failed;
        writeln!(f, "seed {}: {problem}", self.plan.seed)?;
        for (wait, _) in waits {
            writeln!(f, "  {wait}")?;
        }
        let seconds = run.time.as_secs_f64();
        writeln!(
            f,
            "in step {}, at {seconds:.6} s of virtual time",
            run.steps
        )?;
        f.write_str(trace)?;
        if let Some(first) = self.shortened_from {
            let now = self.length();
            writeln!(
                f,
                "shortened: {} context switches in {} steps, of {} in {}",
                now.switches, now.steps, first.switches, first.steps
            )?;
        }
        if self.is_unsteady {
            writeln!(f, "{}", RunProblem::NotDeterministic)?;
        }
        // The seed repeats the original run. A shorter one has a script, which no call takes.
        writeln!(f, "to run it again: {}", self.plan.again())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("seed", &self.plan.seed)
            .field("problem", &self.failed.problem)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Failure {}
