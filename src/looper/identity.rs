//! The number and the name of a looper or a lock.
//!
//! Numbers are those of one controller. They begin at 1 and are never used again.

use std::fmt;

/// The place of a looper in the table of its controller.
pub(super) type Key = u32;

pub(super) struct Identity {
    pub(super) id: u64,
    pub(super) name: Option<Box<str>>,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Looper,
    Lock,
    /// A lock with a value.
    Guarded,
}

impl Identity {
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Displays the name or, without one, what it is and its number.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.kind) {
            (Some(name), _) => f.write_str(name),
            (None, Kind::Looper) => write!(f, "looper {}", self.id),
            (None, Kind::Lock | Kind::Guarded) => write!(f, "lock {}", self.id),
        }
    }
}
