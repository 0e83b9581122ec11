//! What a run came to: its value, or a failure that says how it was and how to have it again.

use std::fmt;
use std::time::Duration;

use super::engine::Plan;
use super::engine::{Failed, Problem, TurnScript};

/// A run that was in order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run<T> {
    /// What the future gave.
    pub value: T,
    /// How many runs of tasks there were, polls of the future, and effects of split turns.
    pub steps: u64,
    /// How much virtual time passed.
    pub time: Duration,
    /// A number that stands for all that happened: the same for the same program and seed, on any
    /// machine. Another version of greenroom may give another.
    pub fingerprint: u64,
}

/// A run that failed; its text says how, when, what happened before, and how to run it again.
#[derive(Clone)]
pub struct Failure {
    failed: Box<Failed>,
    plan: Plan,
    /// How long the run was of which this is a shorter one.
    shortened_from: Option<Length>,
    /// Another run with the same seed did something else.
    is_unsteady: bool,
}

/// How long a run is: by its context switches first.
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

    /// Takes the place of a longer run with the same plan.
    pub(super) fn shorten(&mut self, shorter: Failure) {
        self.failed = shorter.failed;
    }

    /// Notes how long the run was of which this is a shorter one.
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
    pub fn problem(&self) -> &Problem {
        &self.failed.problem
    }

    /// Returns the seed of the run.
    pub fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// Returns the last steps: the number of each, its virtual time in seconds, who ran, and what that did.
    pub fn trace(&self) -> &str {
        &self.failed.trace
    }

    /// Returns the [fingerprint](Run::fingerprint) of what happened until then.
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
        for wait in waits.iter() {
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
            writeln!(f, "{}", Problem::NotDeterministic)?;
        }
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
