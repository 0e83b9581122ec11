//! The error of starting or resizing a spool.

use std::fmt;

use crate::error::SpawnProblem;

/// An error of [`SpoolBuilder::spawn`](super::SpoolBuilder::spawn) and of
/// [`Spool::resize`](super::Spool::resize).
///
/// The text shows all parameters, then the one that is out of range:
///
/// ```
/// use greenroom::spool::{Spool, SpoolProblem};
///
/// greenroom::run(async {
///     let error = Spool::<u32, u32>::external().busy_pass_rate(0).spawn().unwrap_err();
///     assert_eq!(*error.problem(), SpoolProblem::Parameters);
///     assert_eq!(
///         error.to_string(),
///         "unexpected parameters (count=8, size=None, responsiveness=5.0), stand_down=30.0): \
///          busy_pass_rate=0 is less than 1",
///     );
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolError {
    problem: SpoolProblem,
    text: String,
}

/// The reason in a [`SpoolError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpoolProblem {
    /// A parameter is out of range. The text names it, its value and the limit.
    Parameters,
    /// The actor of the spool was not spawned.
    Spawn(SpawnProblem),
}

impl SpoolError {
    pub(super) fn parameters(text: String) -> Self {
        SpoolError {
            problem: SpoolProblem::Parameters,
            text,
        }
    }

    pub(super) fn spawn(problem: SpawnProblem) -> Self {
        SpoolError {
            problem: SpoolProblem::Spawn(problem),
            text: problem.to_string(),
        }
    }

    /// Returns the reason.
    pub fn problem(&self) -> &SpoolProblem {
        &self.problem
    }
}

impl fmt::Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SpoolError {}
