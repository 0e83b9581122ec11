//! Runs a program with many seeds until one run fails.
//!
//! Every eighth run is repeated and must do the same again. A failing run is shortened before it is
//! reported.

use std::future::Future;
use std::panic::Location;

use super::failure::Failure;
use super::shrink::shrink;
use super::simulated::Simulated;

/// One run in this many, and the last one, is repeated. That finds nondeterminism early enough and
/// costs an eighth of the time.
const REPEATED: usize = 8;
/// The environment variable that selects a single seed.
const VARIABLE: &str = "GREENROOM_SEED";

/// Runs a program with each of the seeds, until one run fails.
///
/// The closure is called inside the run, with the seed. For some seeds it is called more than once: every eighth
/// run, and the last one, is repeated and must do the same again. A run that fails is repeated to
/// find a shorter one, which the panic reports. Numbers in its text may therefore differ from those
/// of the original run.
///
/// With `GREENROOM_SEED=n` in the environment, only that seed is run.
///
/// # Panics
/// If a run fails: the text contains the seed and the call that repeats the run. Also if
/// `GREENROOM_SEED` is not a number from 0 to 2⁶⁴ - 1.
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
/// sim::explore(0..100, |_| async {
///     let sum = spawn!(sum(_), name = "sum");
///     for number in 1..=4 {
///         let sum = sum.address();
///         greenroom::spawn(async move { sum.tell(number).unwrap() }).detach();
///     }
///     assert_eq!(sum.join().await.unwrap(), 10);
/// });
/// ```
#[track_caller]
pub fn explore<F>(seeds: impl IntoIterator<Item = u64>, program: impl FnMut(u64) -> F)
where
    F: Future<Output = ()>,
{
    if let Err((seed, failure)) = try_all(&Simulated::new(0), seeds, program) {
        let here = Location::caller();
        panic!(
            "{failure}or, at {here}: greenroom::sim::explore([{seed}], ..), \
             or with {VARIABLE}={seed}"
        );
    }
}

impl Simulated {
    /// Runs a program with each of the seeds and these options, until one run fails, as
    /// [`explore`] does.
    ///
    /// The seed of the options is ignored. `GREENROOM_SEED` has the same effect.
    ///
    /// # Panics
    /// As [`explore`].
    ///
    /// ```
    /// use greenroom::policy::Simulated;
    /// use greenroom::time;
    /// use std::time::Duration;
    ///
    /// // A busy machine, on which timers are up to 20 ms late.
    /// let busy = Simulated::new(0).timer_jitter(Duration::from_millis(20));
    /// busy.explore(0..100, |seed| async move {
    ///     let nap = Duration::from_millis(seed % 10);
    ///     let slept = time::timeout(Duration::from_millis(50), time::sleep(nap)).await;
    ///     assert!(slept.is_ok());
    /// });
    /// ```
    #[track_caller]
    pub fn explore<F>(&self, seeds: impl IntoIterator<Item = u64>, program: impl FnMut(u64) -> F)
    where
        F: Future<Output = ()>,
    {
        if let Err((seed, failure)) = try_all(self, seeds, program) {
            let here = Location::caller();
            panic!(
                "{failure}or, at {here}: Simulated::explore(.., [{seed}], ..), \
                 or with {VARIABLE}={seed}"
            );
        }
    }
}

/// Runs the program with all seeds until one run fails.
#[track_caller]
fn try_all<F>(
    options: &Simulated,
    seeds: impl IntoIterator<Item = u64>,
    mut program: impl FnMut(u64) -> F,
) -> Result<(), (u64, Failure)>
where
    F: Future<Output = ()>,
{
    if let Some(seed) = chosen_seed() {
        return try_seed(options, seed, true, &mut program).map_err(|failure| (seed, failure));
    }
    let mut seeds = seeds.into_iter().enumerate().peekable();
    while let Some((at, seed)) = seeds.next() {
        let repeats = (at + 1) % REPEATED == 0 || seeds.peek().is_none();
        try_seed(options, seed, repeats, &mut program).map_err(|failure| (seed, failure))?;
    }
    Ok(())
}

#[track_caller]
fn chosen_seed() -> Option<u64> {
    let value = std::env::var_os(VARIABLE)?;
    let seed = value.to_str().and_then(|value| value.parse().ok());
    match seed {
        Some(seed) => Some(seed),
        None => panic!(
            "{VARIABLE} is {value:?}, but must be a number from 0 to {}",
            u64::MAX
        ),
    }
}

fn try_seed<F>(
    options: &Simulated,
    seed: u64,
    repeats: bool,
    program: &mut impl FnMut(u64) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = ()>,
{
    // The closure is called inside the run, so that the report of its panic has the seed, too.
    let mut run = |simulated: Simulated| simulated.try_run(async { program(seed).await });
    let first = match run(options.with_seed(seed)) {
        Ok(first) => first,
        Err(failure) => return Err(shrink(failure, options, run)),
    };
    if !repeats {
        return Ok(());
    }
    let second = run(options.with_seed(seed));
    match second {
        Ok(second) if second.fingerprint == first.fingerprint => Ok(()),
        Ok(second) => Err(options.with_seed(seed).not_deterministic(second)),
        Err(failure) => Err(failure.not_again()),
    }
}
