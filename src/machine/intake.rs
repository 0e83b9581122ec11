//! The messages of a machine: the saved ones, and the mailbox.
//!
//! A saved message is in one of two lists. Those that come again now are newer than those that were
//! saved since the state has changed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;

use crate::actor::Context;
use crate::error::{Refusal, RefusalKind};
use crate::task::loss;
use crate::tracer::MessageSender;

pub(super) struct Intake<M: Send> {
    pub(super) context: Context<M>,
    lists: Lists<M>,
    /// The senders of all messages in `lists`, in the same order, if the machine is traced.
    senders: Option<Box<Lists<MessageSender>>>,
    /// The name of the state that was noted last; empty for none.
    state: &'static str,
    /// The maximum number of saved messages.
    limit: usize,
}

/// The messages that were saved, or their senders.
struct Lists<T> {
    /// Those that wait for a change of the state, oldest first.
    saved: VecDeque<T>,
    /// Those that come again before any other, oldest first.
    due: VecDeque<T>,
}

impl<T> Lists<T> {
    const EMPTY: Self = Lists {
        saved: VecDeque::new(),
        due: VecDeque::new(),
    };

    /// Makes all that were saved due.
    fn changed(&mut self) {
        if self.due.is_empty() {
            mem::swap(&mut self.saved, &mut self.due);
        } else {
            while let Some(newest) = self.saved.pop_back() {
                self.due.push_front(newest);
            }
        }
    }

    /// Takes all, oldest first.
    fn take(&mut self) -> VecDeque<T> {
        self.saved.append(&mut self.due);
        mem::take(&mut self.saved)
    }
}

impl<M: Send> Intake<M> {
    pub(super) fn new(context: Context<M>, limit: usize) -> Self {
        let senders = context.is_traced().then(|| Box::new(Lists::EMPTY));
        Intake {
            context,
            lists: Lists::EMPTY,
            senders,
            state: "",
            limit,
        }
    }

    /// Returns whether saved messages come before those of the context.
    #[inline]
    pub(super) fn has_due(&self) -> bool {
        !self.lists.due.is_empty()
    }

    /// Returns the next saved message, or `None` if the machine is killed or stopped at once.
    pub(super) async fn next_due(&mut self) -> Option<M> {
        let context = &mut self.context;
        match poll_fn(|cx| context.poll_turn(cx.waker())).await {
            true => {
                let message = self.lists.due.pop_front()?;
                if let Some(senders) = &mut self.senders {
                    let from = senders.due.pop_front();
                    self.context
                        .handles_again(&message, from.unwrap_or_default());
                }
                Some(message)
            }
            false => None,
        }
    }

    /// Lets saved messages come again, after the state has changed to one of this name.
    #[inline]
    pub(super) fn changed(&mut self, state_name: impl FnOnce() -> &'static str) {
        self.entered(state_name);
        if self.lists.saved.is_empty() {
            return;
        }
        self.lists.changed();
        if let Some(senders) = &mut self.senders {
            senders.changed();
        }
    }

    /// Saves a message, or refuses it if there are too many.
    pub(super) fn save(&mut self, message: M) {
        // A new message comes only when none is due, so one that is saved again keeps its turn.
        if self.lists.saved.len() < self.limit {
            if let Some(senders) = &mut self.senders {
                senders.saved.push_back(self.context.last_sender());
            }
            self.lists.saved.push_back(message);
        } else {
            self.refuse(message);
        }
    }

    #[cold]
    fn refuse(&self, message: M) {
        let limit = self.limit;
        let refusal = || {
            Refusal::of(
                RefusalKind::Overloaded,
                format!("the machine has saved as many messages as it may: {limit}"),
            )
        };
        loss::refusing(refusal, || self.dropped(message));
    }

    /// Drops a message that the machine does not handle.
    pub(super) fn dropped(&self, message: M) {
        self.context.trace_dropped(&message);
        drop(message);
    }

    /// Notes the state that the machine has now, for a trace and for a look, if its name is another one.
    #[inline]
    pub(super) fn entered(&mut self, state_name: impl FnOnce() -> &'static str) {
        let name = state_name();
        if self.senders.is_some() || name != self.state {
            self.state = name;
            self.context.note_state(name);
        }
    }
}

/// What was saved is received again by a next incarnation, or is undelivered.
impl<M: Send> Drop for Intake<M> {
    fn drop(&mut self) {
        // The next incarnation notes no state without a name. A trace goes on with the last one.
        if self.senders.is_none() && !self.state.is_empty() {
            self.context.note_state("");
        }
        let messages = self.lists.take();
        if !messages.is_empty() {
            let senders = self.senders.as_mut().map(|senders| senders.take());
            self.context.put_back(messages, senders.unwrap_or_default());
        }
    }
}
