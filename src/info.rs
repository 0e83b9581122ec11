//! The identity of a task: its number, its name and its priority.

use std::fmt;
use std::sync::Arc;

/// The identity of a task or an actor, as policies and observers receive it. A copy, which outlives
/// the task.
#[derive(Clone)]
pub struct TaskInfo {
    id: u64,
    name: Option<Arc<Box<str>>>,
    priority: u8,
    actor: bool,
}

impl TaskInfo {
    pub(crate) fn of_actor(id: u64, name: Option<Arc<Box<str>>>, priority: u8) -> Self {
        TaskInfo {
            id,
            name,
            priority,
            actor: true,
        }
    }

    pub(crate) fn of_task(number: u64) -> Self {
        TaskInfo {
            id: number,
            name: None,
            priority: 0,
            actor: false,
        }
    }

    /// Replaces the number, for texts.
    pub(crate) fn numbered(self, number: u64) -> Self {
        TaskInfo { id: number, ..self }
    }

    /// Returns the number of the task or actor.
    ///
    /// An actor has the [`id`](crate::Address::id) of its addresses, which no other actor ever has.
    /// A plain task has a number that no other plain task has while it lives.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the name of the actor, or `None` if it has no name or this is a plain task.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref().map(|name| &**name)
    }

    /// Returns the priority of the actor: 0, the lowest, unless set. A plain task has priority 0.
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Returns whether this is an actor, not a plain task.
    pub fn is_actor(&self) -> bool {
        self.actor
    }
}

/// Two are equal if they are of the same task or actor.
impl PartialEq for TaskInfo {
    fn eq(&self, other: &Self) -> bool {
        (self.actor, self.id) == (other.actor, other.id)
    }
}

impl Eq for TaskInfo {}

/// Displays the name or, without one, `actor #` or `task #` and the number.
impl fmt::Display for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.actor) {
            (Some(name), _) => f.write_str(name),
            (None, true) => write!(f, "actor #{}", self.id),
            (None, false) => write!(f, "task #{}", self.id),
        }
    }
}

impl fmt::Debug for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(if self.actor { "Actor" } else { "Task" })
            .field("id", &self.id)
            .field("name", &self.name())
            .field("priority", &self.priority)
            .finish()
    }
}
