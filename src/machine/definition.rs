//! What a program says of its state machine, and the machine before its first message.

use std::fmt;
use std::future::{Future, ready};

use crate::actor::Context;

/// A value that handles messages depending on its state.
///
/// The value has what all states share. [`machine`](super::machine()) makes an actor of it. See the
/// [module](super) for an example.
#[doc(alias = "StateMachine")]
pub trait Machine: Send + Sized {
    /// The type of the states, usually an enum. A state may have data of its own.
    type State: Send + Sync;
    /// The type of the messages.
    type Message: Send;
    /// The type of the result with which the machine ends by itself.
    type Value: Send;

    /// Handles one message in this state, and returns what follows.
    ///
    /// The next message is handled after the returned future completes. A panic ends the machine,
    /// or lets it [begin anew](crate::ActorBuilder::restart).
    fn on(
        &mut self,
        state: &Self::State,
        message: Self::Message,
        cx: &mut Context<Self::Message>,
    ) -> impl Future<Output = Next<Self>> + Send;

    /// Runs before the first message is received; does nothing by default.
    #[doc(alias = "Start")]
    fn started(&mut self, cx: &mut Context<Self::Message>) -> impl Future<Output = ()> + Send {
        let _ = cx;
        ready(())
    }

    /// Returns the name of a state, as traces show it; by default it has none.
    fn state_name(state: &Self::State) -> &'static str {
        let _ = state;
        ""
    }
}

/// What follows after a message of a [`Machine`].
#[must_use = "a machine returns what follows"]
pub enum Next<A: Machine> {
    /// The state changes. Saved messages come again now, oldest first, and before any other one.
    ///
    /// The same state again counts as a change.
    To(A::State),
    /// The state stays.
    Stay,
    /// The state stays, and this message comes again when it changes.
    ///
    /// A message that is saved again keeps its turn among the saved ones. If [too
    /// many](crate::ActorBuilder::saved_capacity) are saved already, this one is refused: an `ask`
    /// in it ends with [`AskError::Refused`](crate::AskError::Refused), of the kind
    /// [`Overloaded`](crate::RefusalKind::Overloaded).
    Save(A::Message),
    /// The state stays, and this message is dropped.
    Ignore(A::Message),
    /// The machine ends at once with this value: it handles no other message.
    ///
    /// Messages that are left go to [`on_undelivered`](crate::ActorBuilder::on_undelivered), the
    /// saved ones first.
    #[doc(alias = "complete")]
    Done(A::Value),
}

impl<A: Machine> fmt::Debug for Next<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Next::To(_) => "To(..)",
            Next::Stay => "Stay",
            Next::Save(_) => "Save(..)",
            Next::Ignore(_) => "Ignore(..)",
            Next::Done(_) => "Done(..)",
        })
    }
}

/// A machine with its first state, as it is spawned.
///
/// [`machine`](super::machine()) creates it, and [`SpawnError`](crate::SpawnError) returns it.
pub struct Initial<A: Machine> {
    pub(super) machine: A,
    pub(super) state: A::State,
    /// The maximum number of saved messages.
    pub(super) saved: usize,
}

impl<A: Machine> Initial<A> {
    /// Returns the value and the state.
    pub fn into_inner(self) -> (A, A::State) {
        (self.machine, self.state)
    }
}

impl<A: Machine<State: Clone> + Clone> Clone for Initial<A> {
    fn clone(&self) -> Self {
        Initial {
            machine: self.machine.clone(),
            state: self.state.clone(),
            saved: self.saved,
        }
    }
}

impl<A: Machine> fmt::Debug for Initial<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initial").finish_non_exhaustive()
    }
}
