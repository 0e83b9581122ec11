//! A machine as an actor: how it is built, the loop that drives it, and its result.

use std::future::Future;

use super::definition::{Initial, Machine, Next};
use super::intake::Intake;
use crate::actor::{ActorBuilder, Context};

/// The default number of messages that a machine may save: as a limit, it is only met by a machine
/// that does not change its state any more.
const SAVED: usize = 16_384;

/// Creates a builder for an actor that is a state machine, with its first state.
///
/// All options of other actors are those of machines, too. [`join`](crate::Handle::join) returns an
/// [`Ended`].
///
/// With [`restart`](ActorBuilder::restart), the machine begins anew from a clone of value and state
/// after a panic. Saved messages then come again first, oldest first. Only the message in hand is
/// lost.
pub fn machine<A: Machine>(
    value: A,
    initial: A::State,
) -> ActorBuilder<A::Message, Initial<A>, impl Future<Output = Ended<A>> + Send> {
    let initial = Initial {
        machine: value,
        state: initial,
        saved: SAVED,
    };
    ActorBuilder::new(initial, drive)
}

impl<A: Machine, Fut, On> ActorBuilder<A::Message, Initial<A>, Fut, On> {
    /// Sets how many messages a machine may have saved at a time, by default 16 384.
    ///
    /// One more is refused, see [`Next::Save`](super::Next::Save). With 0 each is.
    ///
    /// ```
    /// use greenroom::machine::{Machine, Next, machine};
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
    /// }
    ///
    /// greenroom::run(async {
    ///     let mute = machine(Mute, ()).saved_capacity(0).spawn();
    ///     let Err(AskError::Refused(refusal)) = mute.ask(|reply| reply).await else {
    ///         panic!("it saves nothing");
    ///     };
    ///     let text = "overloaded (the machine has saved as many messages as it may: 0)";
    ///     assert_eq!(refusal.to_string(), text);
    /// });
    /// ```
    pub fn saved_capacity(mut self, messages: usize) -> Self {
        self.actor_mut().saved = messages;
        self
    }
}

/// A [machine](super::machine()) that has ended, as [`join`](crate::Handle::join) returns it.
#[derive(Debug)]
pub struct Ended<A: Machine> {
    /// The value with which the machine [has ended](Next::Done) by itself. `None` if its mailbox
    /// was closed first.
    pub value: Option<A::Value>,
    /// The machine.
    pub machine: A,
}

pub(super) async fn drive<A: Machine>(
    initial: Initial<A>,
    context: Context<A::Message>,
) -> Ended<A> {
    let Initial {
        mut machine,
        mut state,
        saved,
    } = initial;
    let mut intake = Intake::<A>::new(context, saved);
    intake.entered(&state);
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
                intake.changed(&state);
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
