//! What may be known of a task without running it: its number, its name, its priority.

use std::fmt;
use std::sync::Arc;

use super::key::TaskKey;

/// What a policy or an observer is told of a task or an actor: a copy, which outlives it.
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

    pub(crate) fn of_task(key: TaskKey) -> Self {
        TaskInfo {
            id: key.number(),
            name: None,
            priority: 0,
            actor: false,
        }
    }

    /// The same under another number, for texts.
    pub(crate) fn numbered(self, number: u64) -> Self {
        TaskInfo { id: number, ..self }
    }

    /// An actor's is the [`id`](crate::Address::id) of its addresses, which no other actor ever has.
    /// A plain task's tells it from all plain tasks that live at the same time.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The name that an actor was given; a plain task has none.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref().map(|name| &**name)
    }

    /// The priority that an actor was given, 0 by default; a plain task has 0, the lowest.
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Whether this is an actor; otherwise it is a plain task.
    pub fn is_actor(&self) -> bool {
        self.actor
    }
}

/// Its name or, without one, its number.
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
