//! The messages of a machine: the saved ones, and the mailbox.
//!
//! A saved message is in one of two lists. Those that come again now are newer than those that were
//! saved since the state has changed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;

use super::definition::Machine;
use crate::actor::Context;
use crate::error::{Refusal, RefusalKind};
use crate::task::loss;

/// A message that was received, and its sender for a trace.
type Saved<A> = (<A as Machine>::Message, u64);

pub(super) struct Intake<A: Machine> {
    pub(super) context: Context<A::Message>,
    /// The messages that wait for a change of the state, oldest first.
    saved: VecDeque<Saved<A>>,
    /// The messages that come again before any other, oldest first.
    due: VecDeque<Saved<A>>,
    /// The maximum number of saved messages.
    limit: usize,
    is_traced: bool,
}

impl<A: Machine> Intake<A> {
    pub(super) fn new(context: Context<A::Message>, limit: usize) -> Self {
        let is_traced = context.is_traced();
        Intake {
            context,
            saved: VecDeque::new(),
            due: VecDeque::new(),
            limit,
            is_traced,
        }
    }

    /// Returns whether saved messages come before those of the context.
    #[inline]
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the next saved message, or `None` if the machine is killed.
    pub(super) async fn next_due(&mut self) -> Option<A::Message> {
        let context = &mut self.context;
        match poll_fn(|cx| context.poll_turn(cx.waker())).await {
            true => {
                let (message, from) = self.due.pop_front()?;
                self.context.set_last_sender(from);
                Some(message)
            }
            false => None,
        }
    }

    /// Lets saved messages come again, after the state has changed.
    #[inline]
    pub(super) fn changed(&mut self, state: &A::State) {
        self.entered(state);
        if self.saved.is_empty() {
            return;
        }
        if self.due.is_empty() {
            mem::swap(&mut self.saved, &mut self.due);
        } else {
            while let Some(message) = self.saved.pop_back() {
                self.due.push_front(message);
            }
        }
    }

    /// Saves a message, or refuses it if there are too many.
    pub(super) fn save(&mut self, message: A::Message) {
        // A new message comes only when none is due, so one that is saved again has its place.
        if self.saved.len() < self.limit {
            let from = self.context.last_sender();
            self.saved.push_back((message, from));
        } else {
            self.refuse(message);
        }
    }

    #[cold]
    fn refuse(&self, message: A::Message) {
        let limit = self.limit;
        let refusal = Refusal::of(
            RefusalKind::Overloaded,
            format!("the machine has saved as many messages as it may: {limit}"),
        );
        loss::refusing(&refusal, || self.dropped(message));
    }

    /// Drops a message that the machine does not handle.
    pub(super) fn dropped(&self, message: A::Message) {
        self.context.trace_dropped(&message);
        drop(message);
    }

    /// Notes the state that the machine has now, for a trace.
    #[inline]
    pub(super) fn entered(&self, state: &A::State) {
        if self.is_traced {
            self.context.trace_state(A::state_name(state));
        }
    }
}

/// What was saved is received again by a next incarnation, or is undelivered.
impl<A: Machine> Drop for Intake<A> {
    fn drop(&mut self) {
        if !(self.saved.is_empty() && self.due.is_empty()) {
            self.saved.append(&mut self.due);
            self.context.put_back(mem::take(&mut self.saved));
        }
    }
}
