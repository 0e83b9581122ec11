//! The last faults of a runtime: panics of its actors, and those of tasks that nothing has joined.
//!
//! Only so many are kept, and the beginning of each text. They have numbers without gaps, from 1 on.
//! So who has seen the fault with a number finds those that came later, and whether some are lost.

use std::collections::VecDeque;

use super::handle::Runtime;
use super::inner::Inner;
use super::status::beginning;
use crate::error::{Fault, UnhandledFault};
use crate::instant::Instant;
use crate::sync::Mutex;
use crate::task::TaskInfo;

/// The number of faults that are kept.
const KEPT: usize = 64;

/// A fault that is not long ago, as [`Runtime::faults`] returns it.
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

impl Runtime {
    /// Returns the last faults of this runtime, at most 64, the oldest first.
    ///
    /// These are the panics of actors, whether an actor was restarted, has ended, or was joined. Panics
    /// of plain tasks are among them if they were reported to [`on_fault`](crate::Builder::on_fault).
    ///
    /// # Blocking
    /// Only for a short critical section.
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// async fn divider(mut cx: Context<u32>) {
    ///     while let Some(number) = cx.recv().await {
    ///         println!("{}", 1 / number);
    ///     }
    /// }
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let divider = spawn!(divider(_), on = &runtime);
    /// divider.tell(0).unwrap();
    /// let id = divider.id();
    /// assert!(runtime.block_on(divider.join()).is_err());
    /// let faults = runtime.faults();
    /// assert_eq!(faults[0].actor.as_ref().unwrap().id(), id);
    /// assert!(faults[0].text.ends_with("panicked: attempt to divide by zero") && !faults[0].goes_on);
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn faults(&self) -> Vec<RecentFault> {
        self.inner.check_process();
        self.inner.faults.after(0)
    }
}

/// The last faults, oldest first.
pub(super) struct FaultLog(Mutex<VecDeque<RecentFault>>);

impl FaultLog {
    pub(super) fn new() -> Self {
        FaultLog(Mutex::new(VecDeque::new()))
    }

    fn add(&self, actor: Option<&TaskInfo>, goes_on: bool, text: String) {
        let mut fault = RecentFault {
            number: 1,
            at: Instant::now(),
            actor: actor.cloned(),
            goes_on,
            text,
        };
        let mut faults = self.0.lock();
        let last = faults.back().map_or(0, |last| last.number);
        fault.number += last;
        let oldest = match faults.len() {
            KEPT => faults.pop_front(),
            _ => None,
        };
        faults.push_back(fault);
        drop(faults);
        drop(oldest);
    }

    /// Returns the faults with higher numbers.
    pub(super) fn after(&self, number: u64) -> Vec<RecentFault> {
        let faults = self.0.lock();
        let later = faults.iter().filter(|fault| fault.number > number);
        later.cloned().collect()
    }
}

impl Inner {
    /// Notes a panic of an actor, which begins anew or ends.
    #[cold]
    pub(super) fn note_fault(&self, actor: &TaskInfo, fault: &Fault, goes_on: bool) {
        let Fault::Panicked(panic) = fault else {
            return;
        };
        let text = beginning(panic.text().unwrap_or_default());
        let then = if goes_on { ", and begins anew" } else { "" };
        let text = format!("{actor} panicked: {text}{then}");
        self.faults.add(Some(actor), goes_on, text);
    }

    /// Notes a fault that was reported, unless it is that of a whole actor, which was noted.
    pub(super) fn note_reported(&self, unhandled: &UnhandledFault<'_>) {
        let Fault::Panicked(panic) = unhandled.fault else {
            return;
        };
        let (part, subject) = (unhandled.part(), unhandled.subject());
        if unhandled.actor.is_none() || !part.is_empty() {
            let text = beginning(panic.text().unwrap_or_default());
            let text = format!("{part}{subject} panicked: {text}");
            self.faults.add(unhandled.actor, !part.is_empty(), text);
        }
    }
}
