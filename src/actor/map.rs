//! Mapped addresses: a function in front of an actor's mailbox, which converts another message type
//! or, in a proxy, takes the messages.
//!
//! A permit is taken before the function is called, so a refused message was not converted. It is
//! used when the function returns, and given up if it panics.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::address::Address;
use super::core::CoreArc;
use super::recipient::{ActorView, MappedActor, Recipient, RecipientRef};
use crate::error::{AskError, End};
use crate::mailbox::{LineEntry, Refused};
use crate::runtime::context;
use crate::sync::Process;
use crate::task::{MessageEvent, MessageInfo};

impl<M: Send + 'static> MappedActor for CoreArc<M> {
    fn view(&self) -> &dyn ActorView {
        &**self
    }

    fn process(&self) -> Process {
        self.at().process()
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = End> + Send>> {
        let core = self.clone();
        Box::pin(async move { RecipientRef::Actor(core.at()).ended().await })
    }

    fn stop(&self) {
        self.at().stop();
    }

    fn kill(&self) {
        self.at().kill();
    }

    fn revive_sender(&self) -> bool {
        self.at().revive_sender(false)
    }

    /// Uncounts an address.
    ///
    /// # Safety
    /// As in the trait.
    #[expect(unsafe_code, reason = "as in the trait")]
    unsafe fn remove_sender(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.at().remove_sender() };
    }

    fn reserve(&self) -> Result<(), Refused> {
        self.at().reserve()
    }

    fn poll_reserve(
        &self,
        wait: &mut Option<Box<dyn Any + Send + Sync>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if wait.is_none() {
            let reserved = self.at().reserve();
            if reserved != Err(Refused::Full) {
                return Poll::Ready(reserved);
            }
        }
        // From the first wait on, the entry in the line decides.
        let wait = wait.get_or_insert_with(|| Box::new(None::<LineEntry<M>>));
        let entry = entry_in(wait);
        let before = entry.as_ref().map(LineEntry::key);
        let reserved = self.mailbox.poll_reserve(entry, cx);
        let now = entry.as_ref().map(LineEntry::key);
        match (before, now, &reserved) {
            (None, Some(key), Poll::Pending) => {
                self.at()
                    .trace(|| MessageEvent::AwaitsRoom(MessageInfo::of::<M>(), key));
            }
            (Some(key), _, Poll::Ready(Ok(()))) => self.at().trace(|| MessageEvent::HasPermit(key)),
            (Some(key), _, Poll::Ready(Err(_))) => self.at().trace(|| MessageEvent::GivenUp(key)),
            _ => {}
        }
        reserved
    }

    fn leave_line(&self, wait: Option<Box<dyn Any + Send + Sync>>) {
        if let Some(entry) = wait.and_then(|mut wait| entry_in(&mut wait).take()) {
            context::apply_effects();
            self.at().trace(|| MessageEvent::GivenUp(entry.key()));
            self.at().pass_on(self.mailbox.leave_line(entry));
            self.at().pass_undelivered();
        }
    }

    fn give_up_permit(&self) {
        self.at().give_up_permit();
    }

    fn trace_passed_by(&self, type_name: &'static str) {
        self.at().passed_by(type_name);
    }
}

/// Returns the entry in the line inside a wait. It is used there, since a waker's clone may panic.
fn entry_in<M: Send + 'static>(wait: &mut Box<dyn Any + Send + Sync>) -> &mut Option<LineEntry<M>> {
    (**wait)
        .downcast_mut()
        .expect("a wait belongs to the actor where it began")
}

impl<M: Send + 'static> RecipientRef<'_, M> {
    /// Returns the actor, without the functions in front of it.
    pub(super) fn actor(self) -> Arc<dyn MappedActor> {
        match self {
            RecipientRef::Actor(core) => Arc::new(CoreArc::from(core)),
            RecipientRef::Map(map) => map.actor().clone(),
        }
    }
}

/// The maximum number of maps in a row. Each uses some of the sender's stack.
const STEPS_MAX: usize = 1000;

/// A function in front of an actor, of a map or of a proxy.
///
/// It is called for accepted messages only. A *proxy* takes no permit of the mailbox: its messages
/// pass it by, and are accepted while the actor is open.
pub(super) struct Map<F: ?Sized> {
    actor: Arc<dyn MappedActor>,
    /// The number of maps from here to the actor.
    steps: usize,
    /// Of a proxy: returns the error of an ask that finds the actor closed.
    passes_by: Option<Arc<dyn Fn() -> AskError + Send + Sync>>,
    fill: F,
}

/// A map of messages of type `M`.
pub(super) type AnyMap<M> = Map<dyn Fn(M) + Send + Sync>;

impl<M> AnyMap<M> {
    /// Creates a map that converts messages with `map` and passes them on to `recipient`.
    ///
    /// # Panics
    /// If `recipient` already goes through [`STEPS_MAX`] maps.
    #[track_caller]
    pub(super) fn new<N>(
        recipient: RecipientRef<'_, N>,
        map: impl Fn(M) -> N + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        M: 'static,
        N: Send + 'static,
    {
        let (steps, passes_by) = match recipient {
            RecipientRef::Actor(_) => (0, None),
            RecipientRef::Map(map) => (map.steps, map.passes_by.clone()),
        };
        assert!(
            steps < STEPS_MAX,
            "an address that was mapped {STEPS_MAX} times, the limit, cannot be mapped again"
        );
        // A proxy gives no permit, so there is none to give up.
        let actor = recipient.actor();
        let reserved = passes_by.is_none().then(|| actor.clone());
        let behind = Recipient::from(recipient);
        Arc::new(Map {
            actor,
            steps: steps + 1,
            passes_by,
            fill: move |message| {
                let mut unfilled = Unfilled(reserved.as_deref());
                let message = map(message);
                unfilled.0 = None;
                behind.fill(message);
            },
        })
    }

    pub(super) fn actor(&self) -> &Arc<dyn MappedActor> {
        &self.actor
    }

    /// Passes an accepted message on.
    pub(super) fn fill(&self, message: M) {
        (self.fill)(message);
    }

    /// Takes a permit for a message, if it needs one.
    pub(super) fn reserve(&self) -> Result<(), Refused> {
        match self.passes_by {
            None => self.actor.reserve(),
            Some(_) if self.actor.view().is_closed() => Err(Refused::Closed),
            Some(_) => Ok(()),
        }
    }

    /// Does the same, and waits for room.
    pub(super) fn poll_reserve(
        &self,
        wait: &mut Option<Box<dyn Any + Send + Sync>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        match self.passes_by {
            None => self.actor.poll_reserve(wait, cx),
            Some(_) => Poll::Ready(self.reserve()),
        }
    }

    /// Gives up a permit that `reserve` took.
    pub(super) fn give_up_permit(&self) {
        if self.passes_by.is_none() {
            self.actor.give_up_permit();
        }
    }

    /// Returns the error of an ask whose message was refused.
    pub(super) fn closed_error(&self) -> AskError {
        match &self.passes_by {
            None => AskError::Closed(self.actor.view().closed_detail()),
            Some(closed) => closed(),
        }
    }
}

/// A permit of an actor, which is given up if the map panics.
struct Unfilled<'a>(Option<&'a dyn MappedActor>);

impl Drop for Unfilled<'_> {
    fn drop(&mut self) {
        if let Some(actor) = self.0 {
            actor.give_up_permit();
        }
    }
}

impl<N: Send + 'static> Address<N> {
    /// Returns a proxy: an address of the same actor whose messages go to `take`, on the sender's
    /// thread.
    ///
    /// An ask that finds the actor closed ends with `closed`. A trace shows the messages as those of
    /// the type `traced_as`; without it, it does not show them.
    pub(crate) fn proxy<M: 'static>(
        &self,
        traced_as: Option<&'static str>,
        take: impl Fn(M) + Send + Sync + 'static,
        closed: impl Fn() -> AskError + Send + Sync + 'static,
    ) -> Address<M> {
        let actor = self.recipient().actor();
        let of_trace = traced_as.map(|type_name| (actor.clone(), type_name));
        let proxy: Arc<AnyMap<M>> = Arc::new(Map {
            actor,
            steps: 0,
            passes_by: Some(Arc::new(closed)),
            fill: move |message| {
                if let Some((actor, type_name)) = &of_trace {
                    actor.trace_passed_by(type_name);
                }
                take(message);
            },
        });
        self.mapped_by(&proxy)
    }
}
