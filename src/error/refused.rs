//! A message that an actor refused, with what the errors say of it, behind one pointer.
//!
//! The result of a `tell` is then one word. Its drop is a look at this word, since all else is out
//! of line: a `Box` would make it a call, which costs a tell 5 % of its instructions.
//!
//! # Invariants
//! - REFUSED-1: the box is there until the drop, or until its contents are taken.
#![expect(unsafe_code, reason = "a box that is taken once; see REFUSED-1")]

use std::fmt;
use std::mem::ManuallyDrop;

use crate::info::TaskInfo;

pub(crate) struct RefusedMessage<M>(ManuallyDrop<Box<RefusedParts<M>>>);

struct RefusedParts<M> {
    message: M,
    actor: TaskInfo,
    /// How the text shows the actor, if a simulation numbers it.
    label: Option<TaskInfo>,
    /// It had no room. Otherwise it is closed.
    is_full: bool,
}

impl<M> RefusedMessage<M> {
    pub(crate) fn new(message: M, actor: TaskInfo, label: Option<TaskInfo>, is_full: bool) -> Self {
        let refused = RefusedParts {
            message,
            actor,
            label,
            is_full,
        };
        RefusedMessage(ManuallyDrop::new(Box::new(refused)))
    }

    pub(super) fn into_message(self) -> M {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: (REFUSED-1) `this` is not dropped, and not used afterwards.
        unsafe { ManuallyDrop::take(&mut this.0) }.message
    }

    pub(super) fn actor(&self) -> &TaskInfo {
        &self.0.actor
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.is_full
    }
}

impl<M> Drop for RefusedMessage<M> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: (REFUSED-1) the value is not used after its drop. By value: so the word can stay in
        // a register.
        discard(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

#[cold]
#[inline(never)]
fn discard<M>(refused: Box<RefusedParts<M>>) {
    drop(refused);
}

impl<M> fmt::Display for RefusedMessage<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusedParts {
            actor,
            label,
            is_full,
            ..
        } = &**self.0;
        let state = if *is_full { "full" } else { "closed" };
        write!(
            f,
            "the mailbox of {} is {state}",
            label.as_ref().unwrap_or(actor)
        )
    }
}
