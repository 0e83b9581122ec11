//! A state machine: what a program says of it, the loop that drives it, and its result.

use std::fmt;
use std::future::{Future, ready};

use super::intake::Intake;
use crate::actor::{ActorBuilder, Context};

/// A value that handles messages depending on its state.
///
/// The value has what all states share. [`into_builder`](Machine::into_builder) makes an actor of it.
/// See the [module](super) for an example.
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

    /// Returns the name of a state, as traces and the [status](crate::ActorStatus::state) of the actor show
    /// it; by default it has none.
    ///
    /// A name that is another one than before is noted when the state begins, under the lock of the
    /// mailbox, which then has memory for it.
    fn state_name(state: &Self::State) -> &'static str {
        let _ = state;
        ""
    }

    /// Returns how many messages may be saved at a time, by default 16 384.
    ///
    /// It is asked once, before the first message. One more is refused, see [`Next::Save`]. With 0
    /// each is.
    ///
    /// ```
    /// use greenroom::machine::{Machine, Next};
    /// use greenroom::{AskError, Context, Reply};
    ///
    /// /// Answers no request.
    /// struct Mute;
    ///
    /// impl Machine for Mute {
    ///     type State = ();
    ///     type Message = Reply<()>;
    ///     type Value = ();
    ///
    ///     async fn on(
    ///         &mut self,
    ///         _state: &(),
    ///         message: Reply<()>,
    ///         _cx: &mut Context<Reply<()>>,
    ///     ) -> Next<Self> {
    ///         Next::Save(message)
    ///     }
    ///
    ///     fn saved_capacity(&self) -> usize {
    ///         0
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let mute = Mute.into_builder(()).spawn();
    ///     let Err(AskError::Refused(refusal)) = mute.ask(|reply| reply).await else {
    ///         panic!("it saves nothing");
    ///     };
    ///     let text = "overloaded (the machine has saved as many messages as it may: 0)";
    ///     assert_eq!(refusal.to_string(), text);
    /// });
    /// ```
    fn saved_capacity(&self) -> usize {
        SAVED
    }

    /// Creates a builder for an actor that is this machine, in its first state.
    ///
    /// All options of other actors are those of machines, too. [`join`](crate::Handle::join) returns
    /// an [`Ended`].
    ///
    /// With [`restart`](ActorBuilder::restart), the machine begins anew from a clone of value and
    /// state after a panic. Saved messages then come again first, oldest first. Only the message in
    /// hand is lost.
    fn into_builder(
        self,
        initial: Self::State,
    ) -> ActorBuilder<Self::Message, (Self, Self::State), impl Future<Output = Ended<Self>> + Send>
    {
        ActorBuilder::new((self, initial), drive)
    }
}

/// The default number of messages that a machine may save: as a limit, it is only met by a machine
/// that does not change its state any more.
const SAVED: usize = 16_384;

/// What follows after a message of a [`Machine`].
#[must_use = "a machine returns what follows"]
#[non_exhaustive]
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
    /// many](Machine::saved_capacity) are saved already, this one is refused: an `ask`
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

/// A [machine](Machine) that has ended, as [`join`](crate::Handle::join) returns it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended<A: Machine> {
    /// The value with which the machine [has ended](Next::Done) by itself. `None` if its mailbox
    /// was closed first.
    pub value: Option<A::Value>,
    /// The machine.
    pub machine: A,
}

async fn drive<A: Machine>(
    (mut machine, mut state): (A, A::State),
    context: Context<A::Message>,
) -> Ended<A> {
    let mut intake = Intake::new(context, machine.saved_capacity());
    intake.entered(|| A::state_name(&state));
    machine.started(&mut intake.context).await;
    let mut value = None;
    loop {
        // The message is in a block that ends before the second wait. Otherwise the compiler keeps
        // room for it in the future, and copies it there and back.
        let handling = {
            let message = match intake.has_due() {
                true => intake.next_due().await,
                false => intake.context.recv().await,
            };
            let Some(message) = message else { break };
            machine.on(&state, message, &mut intake.context)
        };
        match handling.await {
            Next::Stay => {}
            Next::To(next) => {
                state = next;
                intake.changed(|| A::state_name(&state));
            }
            Next::Save(message) => intake.save(message),
            Next::Ignore(message) => intake.dropped(message),
            Next::Done(done) => {
                value = Some(done);
                break;
            }
        }
    }
    Ended { value, machine }
}
