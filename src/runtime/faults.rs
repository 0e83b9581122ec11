//! The last faults of a runtime: panics of its actors, and those of tasks that nothing has joined.
//!
//! Only so many are kept, and the beginning of each text. They have numbers without gaps, from 1 on.
//! So who has seen the fault with a number finds those that came later, and whether some are lost.

use std::collections::VecDeque;

use crate::instant::Instant;
use crate::sync::Mutex;
use crate::task::TaskInfo;

/// The number of faults that are kept.
pub(super) const FAULTS_KEPT: usize = 64;

/// The most characters of a panic's text that are kept.
pub(super) const FAULT_CHARACTERS: usize = 200;

/// A fault that is not long ago, as [`Runtime::faults`](crate::Runtime::faults) returns it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecentFault {
    /// Its number among all faults of the runtime: 1 for the first.
    pub number: u64,
    /// When it was noted.
    pub at: Instant,
    /// The actor that has panicked, or a part of it; `None` for a task.
    pub actor: Option<TaskInfo>,
    /// Whether the actor goes on: it has begun anew, or only a [part](crate::UnhandledFault) of it has
    /// panicked.
    pub goes_on: bool,
    /// What has happened, such as `"tally" #7 panicked: overflow`, with at most 200 characters of the
    /// panic's text.
    pub text: String,
}

/// The last faults, oldest first.
pub(super) struct FaultLog(pub(super) Mutex<VecDeque<KeptFault>>);

/// A fault as it is kept. Most are never read, so its text is made for those who read it.
pub(super) struct KeptFault {
    pub(super) number: u64,
    pub(super) at: Instant,
    pub(super) actor: Option<TaskInfo>,
    /// What has panicked, if it is not the actor as a whole.
    pub(super) subject: Option<String>,
    pub(super) goes_on: bool,
    /// The beginning of the panic's text.
    pub(super) text: String,
}

impl FaultLog {
    pub(super) fn new() -> Self {
        FaultLog(Mutex::new(VecDeque::new()))
    }

    /// Returns the faults with higher numbers.
    pub(super) fn after(&self, number: u64) -> Vec<RecentFault> {
        let faults = self.0.lock();
        let later = faults.iter().filter(|fault| fault.number > number);
        later.map(KeptFault::read).collect()
    }
}

impl KeptFault {
    fn read(&self) -> RecentFault {
        let text = beginning(&self.text);
        let then = match self.subject {
            None if self.goes_on => ", and begins anew",
            _ => "",
        };
        let actor = self.actor.as_ref().map(TaskInfo::to_string);
        let subject = self.subject.clone().or(actor).unwrap_or_default();
        RecentFault {
            number: self.number,
            at: self.at,
            actor: self.actor.clone(),
            goes_on: self.goes_on,
            text: format!("{subject} panicked: {text}{then}"),
        }
    }
}

/// Returns the beginning of the text of a panic, or what stands for a text.
pub(super) fn beginning(text: &str) -> String {
    match text {
        "" => "a panic without a text".to_owned(),
        text => text.chars().take(FAULT_CHARACTERS).collect(),
    }
}
