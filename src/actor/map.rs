//! Mapped addresses: a function in front of an actor's mailbox, which converts another message
//! type.
//!
//! A place is reserved before the function is called, so a refused message was not converted. The
//! place is filled when the function returns, and given up if it panics.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::Held;
use super::lead::{ActorView, Lead, MappedActor, MessageMap, PlaceBehindMap, Way};
use crate::error::End;
use crate::mailbox::{PlaceInLine, Refused};
use crate::runtime::context;
use crate::sync::Process;
use crate::task::{MessageEvent, MessageInfo};

impl<M: Send + 'static> MappedActor for Held<M> {
    fn view(&self) -> &dyn ActorView {
        &**self
    }

    fn process(&self) -> Process {
        self.at().process()
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = End> + Send>> {
        let core = self.clone();
        Box::pin(async move { Lead::Actor(core.at()).ended().await })
    }

    fn close(&self) {
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
        wait: &mut PlaceBehindMap,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if wait.is_none() {
            let reserved = self.at().reserve();
            if reserved != Err(Refused::Full) {
                return Poll::Ready(reserved);
            }
        }
        let wait = wait.get_or_insert_with(|| Box::new(None::<PlaceInLine<M>>));
        let place = place_in(wait);
        let before = place.as_ref().map(PlaceInLine::key);
        let reserved = self.mailbox.poll_reserve(place, cx);
        let now = place.as_ref().map(PlaceInLine::key);
        match (before, now, &reserved) {
            (None, Some(key), Poll::Pending) => {
                self.at()
                    .trace(|| MessageEvent::AwaitsRoom(MessageInfo::of::<M>(), key));
            }
            (Some(key), _, Poll::Ready(Ok(()))) => self.at().trace(|| MessageEvent::HasPlace(key)),
            (Some(key), _, Poll::Ready(Err(_))) => self.at().trace(|| MessageEvent::GivenUp(key)),
            _ => {}
        }
        reserved
    }

    fn leave_line(&self, wait: PlaceBehindMap) {
        if let Some(place) = wait.and_then(|mut wait| place_in(&mut wait).take()) {
            context::settle();
            self.at().trace(|| MessageEvent::GivenUp(place.key()));
            self.at().pass_on(self.mailbox.leave_line(place));
            self.at().pass_undelivered();
        }
    }

    fn give_up_place(&self) {
        self.at().give_up_place();
    }

    fn trace_passed_by(&self, type_name: &'static str) {
        self.at().passed_by(type_name);
    }
}

/// Returns the place in line inside a wait. It is used in place, since a waker's clone may panic.
fn place_in<M: Send + 'static>(
    wait: &mut Box<dyn Any + Send + Sync>,
) -> &mut Option<PlaceInLine<M>> {
    (**wait)
        .downcast_mut()
        .expect("a wait belongs to the actor where it began")
}

impl<M: Send + 'static> Lead<'_, M> {
    /// Returns the actor, without the functions in front of it.
    pub(super) fn actor(self) -> Arc<dyn MappedActor> {
        match self {
            Lead::Actor(core) => Arc::new(Held::from(core)),
            Lead::Map(map) => map.actor().clone(),
        }
    }
}

/// The maximum number of maps in a row. Each uses some of the sender's stack.
const STEPS_MAX: usize = 1000;

/// A function in front of an actor or of another map.
struct Mapped<M, F> {
    actor: Arc<dyn MappedActor>,
    steps: usize,
    behind: Way<M>,
    map: F,
}

/// Creates a map that converts messages with `map` and passes them on to `lead`.
///
/// # Panics
/// If `lead` already goes through [`STEPS_MAX`] maps.
#[track_caller]
pub(super) fn mapped<N, M, F>(lead: Lead<'_, M>, map: F) -> Arc<dyn MessageMap<N>>
where
    N: 'static,
    M: Send + 'static,
    F: Fn(N) -> M + Send + Sync + 'static,
{
    let steps = match lead {
        Lead::Actor(_) => 0,
        Lead::Map(map) => map.steps(),
    };
    assert!(
        steps < STEPS_MAX,
        "an address that was mapped {STEPS_MAX} times, the limit, cannot be mapped again"
    );
    Arc::new(Mapped {
        actor: lead.actor(),
        steps: steps + 1,
        behind: Way::from(lead),
        map,
    })
}

impl<N, M, F> MessageMap<N> for Mapped<M, F>
where
    M: Send,
    F: Fn(N) -> M + Send + Sync,
{
    fn actor(&self) -> &Arc<dyn MappedActor> {
        &self.actor
    }

    fn steps(&self) -> usize {
        self.steps
    }

    fn fill(&self, message: N) {
        struct ReservedPlace<'a>(Option<&'a dyn MappedActor>);
        impl Drop for ReservedPlace<'_> {
            fn drop(&mut self) {
                if let Some(unfilled) = self.0 {
                    unfilled.give_up_place();
                }
            }
        }
        let mut place = ReservedPlace(Some(&*self.actor));
        let message = (self.map)(message);
        place.0 = None;
        match &self.behind {
            Way::Actor(core) => core.fill(message),
            Way::Map(map) => map.fill(message),
        }
    }
}
