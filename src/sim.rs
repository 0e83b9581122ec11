//! The same program under a seeded schedule and virtual time.

mod probe;

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::time::Duration;

pub use probe::TestProbe;

use crate::contain::{Panic, contain};
use crate::policy::Simulated;
use crate::runtime::Runtime;
use crate::runtime::simulation::Failed;
pub use crate::runtime::simulation::Problem;

/// Runs a future, and all that comes of it, as the seed says; then shuts down in order.
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
///     time::sleep(Duration::from_secs(3600)).await; // takes no time
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

/// Runs what `make` gives with each of the seeds, until one fails.
///
/// # Panics
/// With the first that fails: it says which seed that is, and how to run it again.
///
/// ```
/// use greenroom::{Context, sim, spawn};
///
/// async fn sum(mut cx: Context<u32>) -> u32 {
///     let mut sum = 0;
///     while let Some(number) = cx.recv().await {
///         sum += number;
///     }
///     sum
/// }
///
/// sim::explore(0..100, || async {
///     let sum = spawn!(sum(_), name = "sum");
///     for number in 1..=4 {
///         let sum = sum.address();
///         greenroom::spawn(async move { sum.tell(number).unwrap() }).detach();
///     }
///     assert_eq!(sum.join().await.unwrap(), 10);
/// });
/// ```
#[track_caller]
pub fn explore<F: Future>(seeds: impl IntoIterator<Item = u64>, mut make: impl FnMut() -> F) {
    for seed in seeds {
        if let Err(failure) = Simulated::new(seed).try_run(make()) {
            let here = Location::caller();
            panic!("{failure}or, at {here}: greenroom::sim::explore([{seed}], ..)");
        }
    }
}

/// A run that was in order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run<T> {
    /// What the future gave.
    pub value: T,
    /// How many runs of tasks there were, and polls of the future.
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
    seed: u64,
    again: String,
}

impl Failure {
    /// What was wrong.
    pub fn problem(&self) -> &Problem {
        &self.failed.problem
    }

    /// The seed with which it was.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The last steps: the number of each, its virtual time in seconds, who ran, and what that did.
    pub fn trace(&self) -> &str {
        &self.failed.trace
    }

    /// As [`Run::fingerprint`], of what happened until then.
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
        } = &*self.failed;
        writeln!(f, "seed {}: {problem}", self.seed)?;
        let seconds = run.time.as_secs_f64();
        writeln!(
            f,
            "in step {}, at {seconds:.6} s of virtual time",
            run.steps
        )?;
        f.write_str(trace)?;
        writeln!(f, "to run it again: {}", self.again)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("seed", &self.seed)
            .field("problem", &self.failed.problem)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Failure {}

impl Simulated {
    /// Runs a future, and all that comes of it; then shuts down in order.
    ///
    /// # Errors
    /// The [`Failure`], if it is not in order.
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
        let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(future)));
        let Some(simulation) = runtime.inner().simulation() else {
            unreachable!("it was built as one")
        };
        let value = match ended {
            Ok(value) => {
                runtime.close();
                Some(value)
            }
            Err(payload) => {
                // If it has failed already the payload only says so.
                let panic = Panic::new(payload);
                simulation.fail(Problem::Panicked(format!("main panicked: {panic}")));
                None
            }
        };
        let run = simulation.ran();
        match (value, simulation.failure()) {
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
                Err(Failure {
                    failed: Box::new(failed),
                    seed: plan.seed,
                    again: plan.again(),
                })
            }
        }
    }
}
