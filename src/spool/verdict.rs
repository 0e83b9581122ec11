//! Why a spool does not have a request answered, and the refusals that tell it.
//!
//! The texts are those of layer_cake.

use std::time::Duration;

use crate::error::{Load, Refusal, RefusalKind};

/// Why the spool refuses a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// This many requests wait.
    Overloaded(usize),
    /// The average time until an answer.
    Busy(Duration),
    /// The limit that has passed.
    TimedOut(Duration),
    Unavailable,
    Aborted,
    /// The spool has lost a worker and does not replace it.
    Lost,
}

/// The last refusal, since an overloaded spool refuses many requests with the same text.
#[derive(Default)]
pub(super) struct LastRefusal(Option<(Verdict, Refusal)>);

impl LastRefusal {
    pub(super) fn of(&mut self, verdict: Verdict) -> Refusal {
        match &self.0 {
            Some((last, refusal)) if *last == verdict => refusal.clone(),
            _ => {
                let refusal = Refusal::from(verdict);
                self.0 = Some((verdict, refusal.clone()));
                refusal
            }
        }
    }
}

const REJECTED: &str = "message rejected by spool";

impl From<Verdict> for Refusal {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Overloaded(pending) => Refusal::of_spool(
                RefusalKind::Overloaded,
                REJECTED,
                format!("overloaded, {pending} pending"),
                Some(Load::Pending(pending)),
            ),
            Verdict::Busy(average) => Refusal::of_spool(
                RefusalKind::Busy,
                REJECTED,
                format!("average response time {:.2}", average.as_secs_f64()),
                Some(Load::Average(average)),
            ),
            Verdict::TimedOut(limit) => Refusal::of(
                RefusalKind::TimedOut,
                format!("no answer within {} s", limit.as_secs_f64()),
            ),
            Verdict::Unavailable => Refusal::of_spool(
                RefusalKind::Unavailable,
                "Service temporarily unavailable",
                "no worker and no immediate prospects of one".to_owned(),
                None,
            ),
            Verdict::Aborted => Refusal::of(RefusalKind::Aborted, "user or software interrupt"),
            Verdict::Lost => Refusal::of(
                RefusalKind::Aborted,
                "the spool has lost a worker and does not replace it",
            ),
        }
    }
}

/// Why a spool stops, or has ended.
#[derive(Clone, Copy)]
pub(super) enum Stopped {
    Asked,
    /// A worker was lost that is not replaced.
    Lost,
}

impl Stopped {
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Stopped::Asked => Verdict::Aborted,
            Stopped::Lost => Verdict::Lost,
        }
    }
}
