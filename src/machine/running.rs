//! A machine as an actor: the loop that drives it, and its result.

use super::definition::{Machine, Next};
use super::intake::Intake;
use crate::actor::Context;

/// A [machine](Machine) that has ended, as [`join`](crate::Handle::join) returns it.
#[derive(Debug)]
pub struct Ended<A: Machine> {
    /// The value with which the machine [has ended](Next::Done) by itself. `None` if its mailbox
    /// was closed first.
    pub value: Option<A::Value>,
    /// The machine.
    pub machine: A,
}

pub(super) async fn drive<A: Machine>(
    (mut machine, mut state): (A, A::State),
    context: Context<A::Message>,
) -> Ended<A> {
    let mut intake = Intake::<A>::new(context, machine.saved_capacity());
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
