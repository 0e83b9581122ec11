//! A typed refusal: what an asker gets instead of an answer.
//!
//! It is one pointer, so that it does not enlarge [`AskError`](super::AskError).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The reason why a request is refused, as an answer of [`Reply::refuse`](crate::Reply::refuse).
///
/// A refusal has a [kind](RefusalKind), a condition and an explanation, and may have an error code
/// and an exit status. It is shown as `condition (explanation)`. A clone is cheap.
///
/// The [guide](crate::docs::guide#refusal-or-result) tells when to refuse, and when to answer with
/// a `Result`.
///
/// ```
/// use greenroom::{Refusal, RefusalKind};
///
/// let refusal = Refusal::new("out of paper", "tray 2").with_error_code(503);
/// assert_eq!(refusal.to_string(), "out of paper (tray 2)");
/// assert_eq!(refusal.kind(), RefusalKind::Fault);
///
/// let refusal = Refusal::of(RefusalKind::Overloaded, "40 jobs wait");
/// assert_eq!(refusal.to_string(), "overloaded (40 jobs wait)");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[doc(alias = "Faulted")]
pub struct Refusal(Arc<RefusalParts>);

#[derive(Clone, PartialEq, Eq)]
struct RefusalParts {
    kind: RefusalKind,
    condition: Cow<'static, str>,
    explanation: String,
    error_code: Option<i64>,
    exit_status: Option<i32>,
    load: Option<Load>,
}

/// The load of a spool that refuses a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// The number of requests that wait.
    Pending(usize),
    /// The average time until an answer.
    Average(Duration),
}

/// The kinds of a [`Refusal`].
///
/// A `match` over them has an arm for all other kinds, since more may come. It is the last one: the
/// compiler refuses or reports a `match` that lacks it, or has it before the arm of a kind.
///
/// ```compile_fail,E0004
/// use greenroom::RefusalKind;
///
/// fn waits(kind: RefusalKind) -> bool {
///     match kind {
///         RefusalKind::Busy | RefusalKind::Overloaded | RefusalKind::Unavailable => true,
///         RefusalKind::Fault | RefusalKind::Aborted | RefusalKind::TimedOut => false,
///         RefusalKind::OutOfService | RefusalKind::ToBeConfirmed => false,
///         RefusalKind::NotListening | RefusalKind::NotConnected => false,
///         RefusalKind::NotAccepted => false,
///         // `_ => false` is missing
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// A fault of any other kind.
    Fault,
    /// The work was interrupted by a user or by other software.
    Aborted,
    /// A limit of time was exceeded.
    TimedOut,
    /// A service that this one needs cannot be reached at the moment.
    Unavailable,
    /// The load is heavy, and a recovery is expected.
    Busy,
    /// The load is heavy, and a recovery is not known.
    Overloaded,
    /// The service is not available until further notice.
    OutOfService,
    /// The exchange is incomplete, and an update is expected.
    ToBeConfirmed,
    /// A server cannot listen.
    NotListening,
    /// A client cannot connect.
    NotConnected,
    /// A server cannot accept a client.
    NotAccepted,
}

impl RefusalKind {
    /// Returns the condition of refusals that have no other.
    fn condition(self) -> &'static str {
        match self {
            RefusalKind::Fault => "fault",
            RefusalKind::Aborted => "aborted",
            RefusalKind::TimedOut => "timed out",
            RefusalKind::Unavailable => "temporarily unavailable",
            RefusalKind::Busy => "busy",
            RefusalKind::Overloaded => "overloaded",
            RefusalKind::OutOfService => "out of service",
            RefusalKind::ToBeConfirmed => "to be confirmed",
            RefusalKind::NotListening => "not listening",
            RefusalKind::NotConnected => "not connected",
            RefusalKind::NotAccepted => "not accepted",
        }
    }
}

impl Refusal {
    /// Creates a refusal of the kind [`Fault`](RefusalKind::Fault) with a condition of its own. An
    /// empty condition becomes "fault".
    pub fn new(condition: impl Into<String>, explanation: impl Into<String>) -> Self {
        let condition = match condition.into() {
            none if none.is_empty() => Cow::Borrowed(RefusalKind::Fault.condition()),
            condition => Cow::Owned(condition),
        };
        Self::with(RefusalKind::Fault, condition, explanation.into())
    }

    /// Creates a refusal of this kind, whose condition is the kind's name, such as "overloaded".
    pub fn of(kind: RefusalKind, explanation: impl Into<String>) -> Self {
        let condition = Cow::Borrowed(kind.condition());
        Self::with(kind, condition, explanation.into())
    }

    /// Creates a refusal of a spool, with a condition of its own.
    pub(crate) fn of_spool(
        kind: RefusalKind,
        condition: &'static str,
        explanation: String,
        load: Option<Load>,
    ) -> Self {
        let mut refusal = Self::with(kind, Cow::Borrowed(condition), explanation);
        Arc::make_mut(&mut refusal.0).load = load;
        refusal
    }

    fn with(kind: RefusalKind, condition: Cow<'static, str>, explanation: String) -> Self {
        Refusal(Arc::new(RefusalParts {
            kind,
            condition,
            explanation,
            error_code: None,
            exit_status: None,
            load: None,
        }))
    }

    /// Returns the refusal with this error code, a number that programs agree on.
    pub fn with_error_code(mut self, error_code: i64) -> Self {
        Arc::make_mut(&mut self.0).error_code = Some(error_code);
        self
    }

    /// Returns the refusal with the status with which a program should exit because of it.
    pub fn with_exit_status(mut self, status: i32) -> Self {
        Arc::make_mut(&mut self.0).exit_status = Some(status);
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> RefusalKind {
        self.0.kind
    }

    /// Returns the condition, a few words such as "out of paper".
    pub fn condition(&self) -> &str {
        &self.0.condition
    }

    /// Returns the explanation, which may be empty.
    pub fn explanation(&self) -> &str {
        &self.0.explanation
    }

    /// Returns the error code, if it has one.
    pub fn error_code(&self) -> Option<i64> {
        self.0.error_code
    }

    /// Returns the exit status, if it has one.
    pub fn exit_status(&self) -> Option<i32> {
        self.0.exit_status
    }

    /// Returns the number of requests that waited, if a [`Spool`](crate::spool::Spool) refused this
    /// one as [`Overloaded`](RefusalKind::Overloaded).
    pub fn pending(&self) -> Option<usize> {
        match self.0.load {
            Some(Load::Pending(pending)) => Some(pending),
            _ => None,
        }
    }

    /// Returns the average time until an answer, if a [`Spool`](crate::spool::Spool) refused this
    /// request as [`Busy`](RefusalKind::Busy).
    pub fn average(&self) -> Option<Duration> {
        match self.0.load {
            Some(Load::Average(average)) => Some(average),
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.explanation() {
            "" => f.write_str(self.condition()),
            explanation => write!(f, "{} ({explanation})", self.condition()),
        }
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("kind", &self.kind())
            .field("condition", &self.condition())
            .field("explanation", &self.explanation())
            .field("error_code", &self.error_code())
            .field("exit_status", &self.exit_status())
            .finish()
    }
}

impl std::error::Error for Refusal {}
