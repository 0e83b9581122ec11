//! Why a server does not listen.

use std::fmt;
use std::io;

/// The reason why a server cannot listen at an address.
///
/// It is shown as `cannot listen at "127.0.0.1:5050" ([Errno 98] Address already in use)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenError {
    address: String,
    problem: ListenProblem,
}

/// What is wrong in a [`ListenError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenProblem {
    /// The system refuses, with this error number and text.
    System(Option<i32>, String),
    /// The address is not one of this machine alone, and the server is not
    /// [exposed](crate::ServerBuilder::expose).
    NotLoopback,
    /// An option of the builder is impossible, with the reason.
    Option(String),
}

impl ListenError {
    pub(crate) fn new(address: &str, problem: ListenProblem) -> Self {
        let address = address.to_owned();
        ListenError { address, problem }
    }

    /// Returns the address as it was given, or the path.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns what is wrong.
    pub fn problem(&self) -> &ListenProblem {
        &self.problem
    }
}

impl From<io::Error> for ListenProblem {
    fn from(error: io::Error) -> Self {
        let number = error.raw_os_error();
        let text = error.to_string();
        let suffix = number.map(|number| format!(" (os error {number})"));
        let text = suffix.and_then(|suffix| text.strip_suffix(&suffix).map(str::to_owned));
        ListenProblem::System(number, text.unwrap_or_else(|| error.to_string()))
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen at {:?} ({})", self.address, self.problem)
    }
}

impl fmt::Display for ListenProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenProblem::System(Some(number), text) => write!(f, "[Errno {number}] {text}"),
            ListenProblem::System(None, text) | ListenProblem::Option(text) => f.write_str(text),
            ListenProblem::NotLoopback => {
                f.write_str("other machines reach this address, and the server is not exposed")
            }
        }
    }
}

impl std::error::Error for ListenError {}

/// Returns what an error says, and what its causes say.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
