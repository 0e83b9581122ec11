//! The identity of a task: its number, its name and its priority.
//!
//! All texts show a task in one form, which is the `Display` of [`TaskInfo`]. Only the lines of a
//! [trace](crate::trace) have a form of their own.

mod name;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub(crate) use name::{TypeNames, short};

/// The identity of a task or an actor, as policies and observers receive it. A copy, which outlives
/// the task.
///
/// It is displayed as all texts of greenroom show it:
///
/// | it is | displayed as |
/// |---|---|
/// | an actor with a name | `"tally" #7` |
/// | an actor without a name, by its function or type | `tally #7` |
/// | a plain task with a name | `"reader" #7` |
/// | a plain task without a name | `task #7` |
///
/// The number is the [`id`](TaskInfo::id). In the traces and failures of a
/// [simulation](crate::sim), and in the errors of asks there, it is the number of the task in that
/// run.
///
/// ```
/// use greenroom::{AskError, Context, Reply, spawn};
///
/// async fn forgetful(mut cx: Context<Reply<u32>>) {
///     while cx.recv().await.is_some() {}
/// }
///
/// greenroom::run(async {
///     let [unnamed, named] = [spawn!(forgetful(_)), spawn!(forgetful(_), name = "clerk")];
///     for (actor, shown) in [(unnamed, "forgetful"), (named, "\"clerk\"")] {
///         let Err(AskError::NoReply(detail)) = actor.ask(|reply| reply).await else {
///             panic!("it drops all replies")
///         };
///         assert_eq!(detail.actor().unwrap().called(), shown.trim_matches('"'));
///         let text = format!("{shown} #{} dropped the reply", actor.id());
///         assert_eq!(detail.to_string(), text); // "clerk" #2 dropped the reply
///     }
/// });
/// ```
#[derive(Clone)]
pub struct TaskInfo {
    id: u64,
    name: Option<Arc<Box<str>>>,
    /// `None` for a job.
    types: Option<fn() -> TypeNames>,
    priority: u8,
    is_actor: bool,
}

impl TaskInfo {
    pub(crate) fn of_actor(
        id: u64,
        name: Option<Arc<Box<str>>>,
        types: fn() -> TypeNames,
        priority: u8,
    ) -> Self {
        TaskInfo {
            id,
            name,
            types: Some(types),
            priority,
            is_actor: true,
        }
    }

    pub(crate) fn of_plain(id: u64, name: Option<Arc<Box<str>>>, types: fn() -> TypeNames) -> Self {
        TaskInfo {
            name,
            types: Some(types),
            ..TaskInfo::of_task(id)
        }
    }

    pub(crate) fn of_task(number: u64) -> Self {
        TaskInfo {
            id: number,
            name: None,
            types: None,
            priority: 0,
            is_actor: false,
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

    /// Returns the name of the actor or task, or `None` if it has none.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref().map(|name| &**name)
    }

    /// Returns the name of the actor or task or, without one, that of its function or type. For a
    /// call of a [`Hosted`](crate::Hosted) value it returns `task`.
    pub fn called(&self) -> Cow<'_, str> {
        match (self.name(), self.types) {
            (Some(name), _) => name.into(),
            (None, Some(types)) => types().called(),
            (None, None) => "task".into(),
        }
    }

    /// Returns the priority of the actor: 0, the lowest, unless set. A plain task has priority 0.
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Returns whether this is an actor, not a plain task.
    pub fn is_actor(&self) -> bool {
        self.is_actor
    }
}

/// Two are equal if they are of the same task or actor.
impl PartialEq for TaskInfo {
    fn eq(&self, other: &Self) -> bool {
        (self.is_actor(), self.id) == (other.is_actor(), other.id)
    }
}

impl Eq for TaskInfo {}

/// Displays an actor or task with a name as `"tally" #7`. An actor without one is `tally #7`, by
/// its function or type, and a plain task is `task #7`.
impl fmt::Display for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name:?}")?,
            None if self.is_actor => f.write_str(&self.called())?,
            None => f.write_str("task")?,
        }
        write!(f, " #{}", self.id)
    }
}

impl fmt::Debug for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(if self.is_actor() { "Actor" } else { "Task" })
            .field("id", &self.id)
            .field("name", &self.name())
            .field("priority", &self.priority)
            .finish()
    }
}
