//! Addresses for one message type out of several: a function before an actor's mailbox.
//!
//! A place is reserved before the function is called, so what is refused was not mapped; it is
//! filled when the function returns, and given up if it panics.

use std::any::{Any, type_name};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::Core;
use super::held::Held;
use crate::contain::contain;
use crate::mailbox::{Doom, Flags, Refused, Ticket};
use crate::task::{Passage, TaskInfo};
use crate::waiters::Waiters;

/// What can be said and done of an actor, whatever its messages are.
pub(super) trait Live {
    fn id(&self) -> u64;
    fn name(&self) -> Option<&str>;
    fn info(&self) -> TaskInfo;
    fn is_closed(&self) -> bool;
    fn has_ended(&self) -> bool;
    fn ended(&self) -> &Waiters;
    fn close(&self);
    fn kill(&self);
    fn add_sender(&self);
    fn revive_sender(&self) -> bool;
    /// Gives up an address; the caller holds the actor by other means.
    fn give_up_sender(&self);
}

impl<M> Live for Core<M> {
    fn id(&self) -> u64 {
        self.header.id()
    }

    fn name(&self) -> Option<&str> {
        self.name()
    }

    fn info(&self) -> TaskInfo {
        self.info()
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }

    fn has_ended(&self) -> bool {
        self.mailbox.peek().has(Flags::ENDED)
    }

    fn ended(&self) -> &Waiters {
        self.ended()
    }

    fn close(&self) {
        self.close();
    }

    fn kill(&self) {
        self.doom(Doom::Killed);
    }

    fn add_sender(&self) {
        self.add_sender();
    }

    fn revive_sender(&self) -> bool {
        self.revive_sender()
    }

    fn give_up_sender(&self) {
        self.give_up_sender();
    }
}

/// A wait for a place: the ticket of whatever mailbox it is.
pub(super) type Wait = Option<Box<dyn Any + Send + Sync>>;

/// Where places for messages of type `M` can be reserved.
pub(super) trait Places<M>: Send + Sync {
    fn actor(&self) -> &dyn Live;
    fn reserve(&self) -> Result<(), Refused>;
    fn poll_reserve(&self, wait: &mut Wait, cx: &mut Context<'_>) -> Poll<Result<(), Refused>>;
    /// Gives up a wait, or what it came to.
    fn leave_line(&self, wait: Wait);
    /// Fills a place that was reserved.
    fn fill(&self, message: M);
    /// Gives up a place that was reserved.
    fn give_up_place(&self);
}

impl<M: Send + 'static> Places<M> for Held<M> {
    fn actor(&self) -> &dyn Live {
        &**self
    }

    fn reserve(&self) -> Result<(), Refused> {
        self.mailbox.reserve()
    }

    fn poll_reserve(&self, wait: &mut Wait, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        if wait.is_none() {
            let reserved = self.mailbox.reserve();
            if reserved != Err(Refused::Full) {
                return Poll::Ready(reserved);
            }
        }
        let wait = wait.get_or_insert_with(|| Box::new(None::<Ticket<M>>));
        let ticket = ticket(wait);
        let before = ticket.as_ref().map(Ticket::key);
        let reserved = self.mailbox.poll_reserve(ticket, cx);
        let now = ticket.as_ref().map(Ticket::key);
        match (before, now, &reserved) {
            (None, Some(key), Poll::Pending) => {
                self.trace(|| Passage::AwaitsRoom(type_name::<M>(), key));
            }
            (Some(key), _, Poll::Ready(Ok(()))) => self.trace(|| Passage::HasPlace(key)),
            (Some(key), _, Poll::Ready(Err(_))) => self.trace(|| Passage::GivenUp(key)),
            _ => {}
        }
        reserved
    }

    fn leave_line(&self, wait: Wait) {
        if let Some(ticket) = wait.and_then(|mut wait| ticket(&mut wait).take()) {
            self.trace(|| Passage::GivenUp(ticket.key()));
            self.pass_on(self.mailbox.leave_line(ticket));
        }
    }

    fn fill(&self, message: M) {
        match self.mailbox.fill(message) {
            Ok(wake) => {
                self.trace(|| Passage::Sent(type_name::<M>()));
                self.pass_on(wake);
            }
            Err(refused) => {
                self.undelivered(1);
                contain(|| drop(refused));
            }
        }
    }

    fn give_up_place(&self) {
        self.pass_on(self.mailbox.give_up_place());
    }
}

/// The ticket stays where it is while it is used, since a waker's clone may panic.
fn ticket<M: Send + 'static>(wait: &mut Box<dyn Any + Send + Sync>) -> &mut Option<Ticket<M>> {
    (**wait)
        .downcast_mut()
        .expect("a wait goes back to where it began")
}

/// Places in front of others, with a function between them.
struct Mapped<M, F> {
    behind: Arc<dyn Places<M>>,
    map: F,
}

/// Places for messages that `map` makes of others.
pub(super) fn mapped<N, M, F>(behind: Arc<dyn Places<M>>, map: F) -> Arc<dyn Places<N>>
where
    N: 'static,
    M: 'static,
    F: Fn(N) -> M + Send + Sync + 'static,
{
    Arc::new(Mapped { behind, map })
}

impl<N, M, F> Places<N> for Mapped<M, F>
where
    F: Fn(N) -> M + Send + Sync,
{
    fn actor(&self) -> &dyn Live {
        self.behind.actor()
    }

    fn reserve(&self) -> Result<(), Refused> {
        self.behind.reserve()
    }

    fn poll_reserve(&self, wait: &mut Wait, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        self.behind.poll_reserve(wait, cx)
    }

    fn leave_line(&self, wait: Wait) {
        self.behind.leave_line(wait);
    }

    fn fill(&self, message: N) {
        struct Place<'a, M>(Option<&'a dyn Places<M>>);
        impl<M> Drop for Place<'_, M> {
            fn drop(&mut self) {
                if let Some(unfilled) = self.0 {
                    unfilled.give_up_place();
                }
            }
        }
        let mut place = Place(Some(&*self.behind));
        let message = (self.map)(message);
        place.0 = None;
        self.behind.fill(message);
    }

    fn give_up_place(&self) {
        self.behind.give_up_place();
    }
}
