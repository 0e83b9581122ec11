//! The recipient of an address: the actor itself, or a function in front of its mailbox.
//!
//! `RecipientRef` borrows the recipient. `Recipient` owns it, and does not count as an address. The
//! function is called for accepted messages only: a map has a permit, which it uses or gives up.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::{Core, CoreArc, CoreRef};
use super::undelivered::{detail_about, simulated_label};
use crate::contain::OnDrop;
use crate::error::{AskDetail, AskError, Deadlock, End, RefusedMessage, SendError, TellError};
use crate::mailbox::{Flags, Refused};
use crate::runtime::{deadlock::WaitsFor, list_wait};
use crate::sync::Process;
use crate::task::{TaskInfo, run};
use crate::waiters::Waiters;

pub(super) enum RecipientRef<'a, M> {
    Actor(CoreRef<'a, M>),
    Map(&'a Arc<AnyMap<M>>),
}

impl<M> Clone for RecipientRef<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for RecipientRef<'_, M> {}

impl<'a, M> RecipientRef<'a, M> {
    pub(super) fn view(self) -> &'a dyn ActorView {
        match self {
            RecipientRef::Actor(core) => core.core(),
            RecipientRef::Map(map) => map.actor().view(),
        }
    }

    /// Returns the process that owns the threads of the actor's executor.
    ///
    /// # Panics
    /// If that is another process.
    #[inline(always)]
    pub(super) fn checked_process(self) -> Process {
        Process::of(|| {
            let process = match self {
                RecipientRef::Actor(core) => core.process(),
                RecipientRef::Map(map) => map.actor().process(),
            };
            process.check();
            process
        })
    }

    /// Returns whether the threads of the actor's executor are in this process. If not, no lock of
    /// the actor may be taken.
    pub(super) fn is_here(self) -> bool {
        Process::is_first()
            || match self {
                RecipientRef::Actor(core) => core.process().is_current(),
                RecipientRef::Map(map) => map.actor().process().is_current(),
            }
    }

    /// Returns the error of a message, or of a permit, that the mailbox refused.
    #[cold]
    #[inline(never)]
    pub(super) fn send_error<T>(self, why: Refused, message: T) -> SendError<T> {
        SendError(refused_by(self.view(), why, message))
    }

    /// Returns the error of an ask whose message the closed mailbox refused.
    #[cold]
    pub(super) fn closed_error(self) -> AskError {
        match self {
            RecipientRef::Actor(core) => AskError::Closed(core.closed_detail()),
            RecipientRef::Map(map) => map.closed_error(),
        }
    }

    /// Returns the error of an ask to the actor that asks, if that cannot receive before the ask
    /// ends.
    #[cold]
    #[inline(never)]
    pub(super) fn own_deadlock(self) -> Option<AskError> {
        let asked = self.view();
        run::is_own_without_context(asked.id()).then(|| {
            let actor = asked.info();
            AskError::Deadlock(Deadlock::new(format!("{actor} → {actor}"), true))
        })
    }

    /// Adds the name of the actor to the error of an ask that it did not answer.
    #[cold]
    pub(super) fn named(self, mut error: AskError) -> AskError {
        if let AskError::NoReply(detail) = &mut error {
            detail.name_actor(|why| detail_about(self.view().info(), why));
        }
        error
    }

    pub(super) fn stop(self) {
        match self {
            RecipientRef::Actor(core) => core.stop(),
            RecipientRef::Map(map) => map.actor().stop(),
        }
    }

    pub(super) fn stop_now(self) {
        match self {
            RecipientRef::Actor(core) => core.stop_now(),
            RecipientRef::Map(map) => map.actor().stop_now(),
        }
    }

    pub(super) fn kill(self) {
        match self {
            RecipientRef::Actor(core) => core.kill(),
            RecipientRef::Map(map) => map.actor().kill(),
        }
    }

    /// Counts another address, even if there was none. Returns false if the mailbox is closed.
    pub(super) fn revive_sender(self) -> bool {
        match self {
            RecipientRef::Actor(core) => core.revive_sender(false),
            RecipientRef::Map(map) => map.actor().revive_sender(),
        }
    }

    /// Waits until the actor has ended.
    pub(super) async fn closed(self) {
        let has_ended = || {
            let has_ended = self.view().has_ended();
            if !has_ended {
                self.checked_process();
                self.view().awaits_end();
            }
            has_ended
        };
        // An actor that has ended costs neither a listing nor an entry in the list of waiters.
        if !has_ended() {
            let ended = self.view().ended();
            let _listing = list_wait(WaitsFor::End, || self.view().info());
            let mut until = pin!(ended.until(has_ended));
            poll_fn(|cx| {
                let polled = until.as_mut().poll(cx);
                if polled.is_pending() {
                    run::note_wait_for(cx.waker(), WaitsFor::End, || self.view().id());
                }
                polled
            })
            .await;
        }
    }

    /// Waits until the actor has ended, and returns how it did.
    pub(super) async fn ended(self) -> End {
        self.closed().await;
        self.view().end().expect("it has ended")
    }
}

impl<M> CoreRef<'_, M> {
    /// Returns the error of a message that the mailbox refused.
    // One pointer, which is made here: so a message that is accepted has nothing of it.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_error(self, why: Refused, message: M) -> TellError<M> {
        TellError(refused_by(self.core(), why, message))
    }
}

/// Returns a message that this actor refused, with what an error says of it.
#[cold]
fn refused_by<T>(actor: &dyn ActorView, why: Refused, message: T) -> RefusedMessage<T> {
    let actor = actor.info();
    let label = simulated_label(&actor);
    RefusedMessage::new(message, actor, label, why == Refused::Full)
}

/// A recipient that holds a reference.
pub(super) enum Recipient<M> {
    Actor(CoreArc<M>),
    Map(Arc<AnyMap<M>>),
}

impl<M> Recipient<M> {
    pub(super) fn recipient(&self) -> RecipientRef<'_, M> {
        match self {
            Recipient::Actor(core) => RecipientRef::Actor(core.at()),
            Recipient::Map(map) => RecipientRef::Map(map),
        }
    }

    /// Uses a permit.
    pub(super) fn fill(&self, message: M) {
        match self {
            Recipient::Actor(core) => core.fill::<false>(message),
            Recipient::Map(map) => map.fill(message),
        }
    }
}

impl<M> From<RecipientRef<'_, M>> for Recipient<M> {
    fn from(recipient: RecipientRef<'_, M>) -> Self {
        match recipient {
            RecipientRef::Actor(core) => Recipient::Actor(CoreArc::from(core)),
            RecipientRef::Map(map) => Recipient::Map(map.clone()),
        }
    }
}

/// A view of an actor that does not depend on its message type.
pub(super) trait ActorView {
    fn id(&self) -> u64;
    fn name(&self) -> Option<&str>;
    fn info(&self) -> TaskInfo;
    /// Returns the detail for an ask that the closed mailbox refuses.
    fn closed_detail(&self) -> AskDetail;
    fn is_closed(&self) -> bool;
    /// Returns the same in a simulation without pending effects.
    fn is_closed_now(&self) -> bool;
    /// Returns the number of addresses at this moment.
    fn addresses(&self) -> usize;
    fn len(&self) -> usize;
    fn capacity(&self) -> Option<usize>;
    fn has_ended(&self) -> bool;
    /// Returns how the actor has ended, or `None` if it has not.
    fn end(&self) -> Option<End>;
    /// Returns the list of tasks that wait for the actor's end.
    fn ended(&self) -> &Waiters;
    /// Notes in a simulation that this thread is about to look at the actor.
    fn observe(&self);
    /// Notes in a simulation that this thread waits for the actor's end.
    fn awaits_end(&self);
    /// Counts another address. The caller holds one.
    fn add_sender(&self);
}

impl<M> ActorView for Core<M> {
    fn id(&self) -> u64 {
        self.header.id()
    }

    fn name(&self) -> Option<&str> {
        self.name()
    }

    fn info(&self) -> TaskInfo {
        self.info()
    }

    fn closed_detail(&self) -> AskDetail {
        self.closed_detail()
    }

    fn is_closed(&self) -> bool {
        self.observe();
        self.is_closed_now()
    }

    fn is_closed_now(&self) -> bool {
        self.mailbox.state.peek().has(Flags::CLOSED)
    }

    fn addresses(&self) -> usize {
        self.mailbox.addresses()
    }

    fn len(&self) -> usize {
        self.observe();
        self.mailbox.plain_len()
    }

    fn capacity(&self) -> Option<usize> {
        self.mailbox.capacity()
    }

    fn has_ended(&self) -> bool {
        self.observe();
        self.mailbox.state.peek().has(Flags::ENDED)
    }

    fn end(&self) -> Option<End> {
        self.mailbox.state.peek().end()
    }

    fn ended(&self) -> &Waiters {
        self.mailbox.ended_made()
    }

    fn observe(&self) {
        self.observe();
    }

    fn awaits_end(&self) {
        self.awaits_end();
    }

    fn add_sender(&self) {
        self.mailbox.add_sender();
    }
}

/// The actor behind a map, without its message type.
pub(super) trait MappedActor: Send + Sync {
    fn view(&self) -> &dyn ActorView;
    /// Returns the process that owns the threads of the actor's executor.
    fn process(&self) -> Process;
    /// Waits until the actor has ended, and returns how it did.
    fn end(&self) -> Pin<Box<dyn Future<Output = End> + Send>>;
    fn stop(&self);
    fn stop_now(&self);
    fn kill(&self);
    /// Counts another address, even if there was none. Returns false if the mailbox is closed.
    fn revive_sender(&self) -> bool;
    /// Uncounts an address.
    ///
    /// # Safety
    /// The caller gives up that address.
    #[expect(unsafe_code, reason = "a count that the caller owns")]
    unsafe fn remove_sender(&self);
    fn reserve(&self) -> Result<(), Refused>;
    /// Waits for a permit. `wait` is the entry in the line, for the actor's type of messages.
    fn poll_reserve(
        &self,
        wait: &mut Option<Box<dyn Any + Send + Sync>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>>;
    /// Leaves the line, and gives up the permit if one was given.
    fn leave_line(&self, wait: Option<Box<dyn Any + Send + Sync>>);
    /// Gives up a permit.
    fn give_up_permit(&self);
    /// Returns whether the permits are those of urgent messages.
    fn is_urgent(&self) -> bool {
        false
    }
    /// Traces a message of this type that the actor receives without its mailbox.
    fn trace_passed_by(&self, type_name: &'static str);
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
                // If the map panics, the permit is given up.
                let unfilled = OnDrop(|| reserved.iter().for_each(|it| it.give_up_permit()));
                let message = map(message);
                std::mem::forget(unfilled);
                behind.fill(message);
            },
        })
    }

    /// Creates a function in front of an actor, whose permit `fill` uses unless it `passes_by`.
    pub(super) fn of(
        actor: Arc<dyn MappedActor>,
        passes_by: Option<Arc<dyn Fn() -> AskError + Send + Sync>>,
        fill: impl Fn(M) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Map {
            actor,
            steps: 0,
            passes_by,
            fill,
        })
    }

    /// Returns whether this leads to the urgent messages of an actor, without a function before it.
    pub(super) fn is_urgent(&self) -> bool {
        self.steps == 0 && self.actor.is_urgent()
    }

    /// Creates a proxy, as [`Address::proxy`](super::Address::proxy) has it.
    pub(super) fn proxy(
        actor: Arc<dyn MappedActor>,
        traced_as: Option<&'static str>,
        take: impl Fn(M) + Send + Sync + 'static,
        closed: impl Fn() -> AskError + Send + Sync + 'static,
    ) -> Arc<Self> {
        let of_trace = traced_as.map(|type_name| (actor.clone(), type_name));
        AnyMap::of(actor, Some(Arc::new(closed)), move |message| {
            if let Some((actor, type_name)) = &of_trace {
                actor.trace_passed_by(type_name);
            }
            take(message);
        })
    }

    pub(super) fn actor(&self) -> &Arc<dyn MappedActor> {
        &self.actor
    }

    /// Passes the message on, unless the actor refuses it.
    // Not inlined: so the way to an actor itself is short enough to be part of its callers.
    #[inline(never)]
    pub(super) fn tell(&self, message: M) -> Result<(), TellError<M>> {
        // The map is called only for a message that is accepted, so a refused one is returned
        // unmapped.
        match self.reserve() {
            Ok(()) => {
                self.fill(message);
                Ok(())
            }
            Err(why) => Err(TellError(refused_by(self.actor.view(), why, message))),
        }
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
