//! Functions that a program may call while a simulation runs it.

use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};

use super::engine::Simulation;

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
