//! Addresses whose messages go to a function instead of the mailbox of their actor.
//!
//! The address keeps the actor open, and closes with it. No place is reserved in the mailbox: a
//! message is accepted while the actor is open.
#![expect(
    unsafe_code,
    reason = "counts senders of the actor; see ADDRESS-1 in address.rs"
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::address::Address;
use super::lead::{ActorView, Lead, MappedActor, MessageMap, PlaceBehindMap};
use crate::error::{AskError, End};
use crate::mailbox::Refused;
use crate::sync::Process;

/// An actor whose mailbox is passed by.
struct Bypassed<C> {
    actor: Arc<dyn MappedActor>,
    closed: C,
}

impl<C: Fn() -> AskError + Send + Sync> MappedActor for Bypassed<C> {
    fn view(&self) -> &dyn ActorView {
        self.actor.view()
    }

    fn process(&self) -> Process {
        self.actor.process()
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = End> + Send>> {
        self.actor.end()
    }

    fn close(&self) {
        self.actor.close();
    }

    fn kill(&self) {
        self.actor.kill();
    }

    fn revive_sender(&self) -> bool {
        self.actor.revive_sender()
    }

    /// Uncounts an address.
    ///
    /// # Safety
    /// As in the trait.
    unsafe fn remove_sender(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.actor.remove_sender() };
    }

    fn reserve(&self) -> Result<(), Refused> {
        if self.view().is_closed() {
            return Err(Refused::Closed);
        }
        Ok(())
    }

    fn poll_reserve(
        &self,
        _wait: &mut PlaceBehindMap,
        _cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        Poll::Ready(self.reserve())
    }

    fn leave_line(&self, _wait: PlaceBehindMap) {}

    fn give_up_place(&self) {}

    fn trace_passed_by(&self, type_name: &'static str) {
        self.actor.trace_passed_by(type_name);
    }

    fn closed_error(&self) -> AskError {
        (self.closed)()
    }
}

struct Front<F> {
    actor: Arc<dyn MappedActor>,
    /// The type that a trace shows, if there is a trace.
    traced_as: Option<&'static str>,
    take: F,
}

impl<M, F: Fn(M) + Send + Sync> MessageMap<M> for Front<F> {
    fn actor(&self) -> &Arc<dyn MappedActor> {
        &self.actor
    }

    fn steps(&self) -> usize {
        0
    }

    fn fill(&self, message: M) {
        if let Some(type_name) = self.traced_as {
            self.actor.trace_passed_by(type_name);
        }
        (self.take)(message);
    }
}

impl<N: Send + 'static> Address<N> {
    /// Returns an address of the same actor whose messages go to `take`, on the sender's thread.
    ///
    /// An ask that finds the actor closed ends with `closed`. A trace shows the messages as those of
    /// the type `traced_as`; without it, it does not show them.
    pub(crate) fn fronted<M: 'static>(
        &self,
        traced_as: Option<&'static str>,
        take: impl Fn(M) + Send + Sync + 'static,
        closed: impl Fn() -> AskError + Send + Sync + 'static,
    ) -> Address<M> {
        let actor = self.lead().actor();
        let front: Arc<dyn MessageMap<M>> = Arc::new(Front {
            actor: Arc::new(Bypassed { actor, closed }),
            traced_as,
            take,
        });
        self.lead().view().add_sender();
        // SAFETY: (ADDRESS-1) the sender was counted just now, at the actor behind the front.
        unsafe { Address::from_lead(Lead::Map(&front)) }
    }
}
