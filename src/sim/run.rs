//! Judged runs: a simulation of a future to its end, including the shutdown, and its verdict.
//!
//! While a simulation runs a program, that may draw numbers and write into the trace.

use std::fmt::Display;
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};

use super::engine::{Failed, Run, RunProblem, Simulation, TurnScript};
use super::failure::Failure;
use super::simulated::Simulated;
use crate::contain::{attempt, contain};
use crate::runtime::Runtime;

/// Runs a future and everything that it starts under the schedule of a seed; then shuts down.
///
/// # Panics
/// If the run fails, with the text of its [`Failure`].
///
/// ```
/// use greenroom::{sim, time};
/// use std::time::Duration;
///
/// let answer = sim::run(7, async {
///     let task = greenroom::spawn(async { 40 + 2 });
///     time::sleep(Duration::from_secs(3600)).await; // takes no real time
///     task.await
/// });
/// assert_eq!(answer, 42);
/// ```
#[track_caller]
pub fn run<F: Future>(seed: u64, future: F) -> F::Output {
    match Simulated::new(seed).try_run(future) {
        Ok(run) => run.value,
        Err(failure) => panic!("{failure}"),
    }
}

impl Simulated {
    /// Returns the same options with another seed.
    pub(super) fn with_seed(&self, seed: u64) -> Self {
        let mut simulated = Simulated::new(seed);
        simulated.plan = self.plan;
        simulated.plan.seed = seed;
        simulated
    }

    /// Returns the same options, for a run in the order of this script.
    pub(super) fn with_script(mut self, script: TurnScript) -> Self {
        self.script = Some(script);
        self
    }

    /// Returns the failure of a program that did something else when its seed was repeated.
    pub(super) fn not_deterministic(&self, run: Run<()>) -> Failure {
        let failed = Failed {
            problem: RunProblem::NotDeterministic,
            run,
            trace: String::new(),
            waits: Vec::new(),
            script: TurnScript::default(),
        };
        Failure::new(failed, self.plan)
    }

    /// Runs a future and everything that it starts; then shuts down.
    ///
    /// # Errors
    /// The [`Failure`] if the run fails, as it happened. Only [`explore`](Simulated::explore)
    /// repeats a run and looks for a shorter one.
    ///
    /// ```
    /// use greenroom::policy::Simulated;
    ///
    /// let stuck = Simulated::new(3).try_run(std::future::pending::<()>()).unwrap_err();
    /// assert!(stuck.to_string().starts_with("seed 3: deadlock: main waits"));
    /// ```
    pub fn try_run<F: Future>(mut self, future: F) -> Result<Run<F::Output>, Failure> {
        self.plan.judged = true;
        let plan = self.plan;
        let runtime = match Runtime::builder().policy(self).build() {
            Ok(runtime) => runtime,
            Err(_) => unreachable!("no thread is started and no option is impossible"),
        };
        let ended = attempt(|| runtime.block_on(future));
        let inner = runtime.inner().clone();
        let Some(simulation) = Simulation::of(&inner) else {
            unreachable!("it was built as one")
        };
        let value = match ended {
            Ok(value) => Some(value),
            Err(panic) => {
                // A run that has failed already keeps its first problem.
                simulation.fail(RunProblem::Panicked(format!("main panicked: {panic}")));
                None
            }
        };
        inner.close_in_order();
        let run = simulation.ran();
        match (value, simulation.judge()) {
            (Some(value), None) => Ok(Run {
                value,
                steps: run.steps,
                time: run.time,
                fingerprint: run.fingerprint,
            }),
            (value, failed) => {
                contain(|| drop(value));
                let Some(failed) = failed else {
                    unreachable!("without a value it has failed")
                };
                Err(Failure::new(failed, plan))
            }
        }
    }
}

/// Returns a random number: in a simulation from its seed, elsewhere from the process.
///
/// A program that draws its random numbers here draws the same ones with the same seed. Each task
/// has its own series; all jobs of [`unblock`](crate::unblock()) share one.
///
/// ```
/// use greenroom::sim;
///
/// let roll = || sim::run(7, async { sim::random() % 6 + 1 });
/// assert_eq!(roll(), roll());
/// ```
pub fn random() -> u64 {
    let seeded = Simulation::current(Simulation::random);
    seeded.unwrap_or_else(|| RandomState::new().build_hasher().finish())
}

/// Writes a line to the trace of the simulation that runs the caller; does nothing elsewhere.
///
/// The text is formatted at once. It does not change the
/// [fingerprint](crate::sim::Run::fingerprint).
///
/// ```
/// use greenroom::{policy::Simulated, sim};
///
/// let run = Simulated::new(1).try_run(async {
///     sim::note(format_args!("{} tries are left", 3));
///     panic!("bomb");
/// });
/// assert!(run.unwrap_err().trace().contains("main: notes \"3 tries are left\""));
/// ```
pub fn note(text: impl Display) {
    let _ = Simulation::current(|simulation| simulation.note(text.to_string()));
}
