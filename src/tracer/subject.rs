//! What an event of a trace is about.

use std::borrow::Cow;

use super::event::{Event, EventKind};
use crate::info::TaskInfo;

/// What an event is about: an actor or, with id 0, code outside actors. That has the name of its
/// plain task, or none.
#[derive(Default)]
pub(crate) struct Subject {
    /// `None` outside actors.
    pub(crate) actor: Option<TaskInfo>,
    /// The name for an actor without one.
    pub(crate) called: Cow<'static, str>,
    pub(crate) state: Option<&'static str>,
}

impl Subject {
    /// Returns the subject of what a plain task does: its name, or else that of its type.
    pub(crate) fn of_task(task: &TaskInfo) -> Self {
        Subject {
            called: task.called().into_owned().into(),
            ..Subject::default()
        }
    }

    /// Returns the name of the actor, or that of its function or type.
    pub(crate) fn name(&self) -> &str {
        let named = self.actor.as_ref().and_then(TaskInfo::name);
        named.unwrap_or(&self.called)
    }

    pub(super) fn event<'a>(&'a self, kind: EventKind<'a>) -> Event<'a> {
        Event {
            id: self.actor.as_ref().map_or(0, TaskInfo::id),
            name: self.name(),
            state: self.state,
            kind,
        }
    }
}
