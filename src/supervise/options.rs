//! The options of a supervisor.

use std::time::Duration;

/// Which children are restarted when one of them fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// The child that failed.
    #[default]
    OneForOne,
    /// All children. The incarnations of the others are dropped before the first new one begins.
    /// The new ones begin in the order of their start.
    ///
    /// That waits without limit for an incarnation that blocks its thread, and for a context that was
    /// moved elsewhere.
    OneForAll,
    /// The child that failed and all that were started after it, as with `OneForAll`.
    RestForOne,
}

/// The options of a [`Supervisor`](super::Supervisor).
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `spawn`"]
pub struct SupervisorBuilder {
    pub(super) name: Option<String>,
    pub(super) strategy: Strategy,
    /// At most this many failures within the window.
    pub(super) failures: u32,
    pub(super) window: Duration,
    pub(super) grace: Duration,
}

impl SupervisorBuilder {
    pub(super) fn new() -> Self {
        SupervisorBuilder {
            name: None,
            strategy: Strategy::default(),
            failures: 5,
            window: Duration::from_secs(5),
            grace: Duration::from_secs(5),
        }
    }

    /// Sets which children are restarted when one fails. The default is [`Strategy::OneForOne`].
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets the intensity: at most this many failures of children within any window of this
    /// length, by default 5 within 5 seconds.
    ///
    /// With one more failure the supervisor gives up. The failures of all children count together,
    /// so a supervisor of many needs more. The window is longer than 0. A failure that restarts
    /// several children counts once.
    pub fn intensity(mut self, failures: u32, window: Duration) -> Self {
        self.failures = failures;
        self.window = window;
        self
    }

    /// Sets how long a stopped child may take to end before it is killed, by default 5 seconds.
    ///
    /// A child that is a supervisor takes as long as its own children do.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets a diagnostic name. By default the supervisor has none.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}
