//! The target of an address: the actor itself, or a function in front of its mailbox.
//!
//! Every operation of a strong or weak address goes through its lead. `Lead` borrows the target.
//! `Way` owns a reference to it, and does not count as an address.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::{At, Core, Held};
use crate::error::{AskDetail, AskError, End, TellError};
use crate::mailbox::{Flags, Refused};
use crate::runtime::deadlock::WaitsFor;
use crate::runtime::list_wait;
use crate::sync::Process;
use crate::task::TaskInfo;
use crate::waiters::Waiters;

pub(super) enum Lead<'a, M> {
    Actor(At<'a, M>),
    Map(&'a Arc<dyn MessageMap<M>>),
}

impl<M> Clone for Lead<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Lead<'_, M> {}

impl<'a, M> Lead<'a, M> {
    pub(super) fn view(self) -> &'a dyn ActorView {
        match self {
            Lead::Actor(core) => core.core(),
            Lead::Map(map) => map.actor().view(),
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
                Lead::Actor(core) => core.process(),
                Lead::Map(map) => map.actor().process(),
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
                Lead::Actor(core) => core.process().is_current(),
                Lead::Map(map) => map.actor().process().is_current(),
            }
    }

    #[inline]
    pub(super) fn tell(self, message: M) -> Result<(), TellError<M>> {
        match self {
            Lead::Actor(core) => core.tell(message),
            // The map is called only for a message that is accepted, so a refused one is returned
            // unmapped.
            Lead::Map(map) => match map.actor().reserve() {
                Ok(()) => {
                    map.fill(message);
                    Ok(())
                }
                Err(why) => Err(why.with(message)),
            },
        }
    }

    /// Returns the error of an ask whose message the closed mailbox refused.
    #[cold]
    pub(super) fn closed_error(self) -> AskError {
        match self {
            Lead::Actor(core) => AskError::Closed(core.closed_detail()),
            Lead::Map(map) => map.actor().closed_error(),
        }
    }

    /// Adds the name of the actor to the error of an ask that it did not answer.
    #[cold]
    pub(super) fn named(self, mut error: AskError) -> AskError {
        if let AskError::NoReply(detail) = &mut error {
            detail.name_actor(|| self.view().info());
        }
        error
    }

    pub(super) fn close(self) {
        match self {
            Lead::Actor(core) => core.stop(),
            Lead::Map(map) => map.actor().close(),
        }
    }

    pub(super) fn kill(self) {
        match self {
            Lead::Actor(core) => core.kill(),
            Lead::Map(map) => map.actor().kill(),
        }
    }

    /// Counts another address, even if there was none. Returns false if the mailbox is closed.
    pub(super) fn revive_sender(self) -> bool {
        match self {
            Lead::Actor(core) => core.revive_sender(false),
            Lead::Map(map) => map.actor().revive_sender(),
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
        if !has_ended() {
            let ended = self.view().ended();
            let _listing = list_wait(WaitsFor::End, || self.view().info());
            ended.until(has_ended).await;
        }
    }

    /// Waits until the actor has ended, and returns how it did.
    pub(super) async fn ended(self) -> End {
        self.closed().await;
        self.view().end().expect("it has ended")
    }
}

/// A lead that holds a reference.
pub(super) enum Way<M> {
    Actor(Held<M>),
    Map(Arc<dyn MessageMap<M>>),
}

impl<M> Way<M> {
    pub(super) fn lead(&self) -> Lead<'_, M> {
        match self {
            Way::Actor(core) => Lead::Actor(core.at()),
            Way::Map(map) => Lead::Map(map),
        }
    }
}

impl<M> From<Lead<'_, M>> for Way<M> {
    fn from(lead: Lead<'_, M>) -> Self {
        match lead {
            Lead::Actor(core) => Way::Actor(Held::from(core)),
            Lead::Map(map) => Way::Map(map.clone()),
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
        self.mailbox.state.peek().has(Flags::CLOSED)
    }

    fn len(&self) -> usize {
        self.observe();
        self.mailbox.len()
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

/// A place in the line for room: a `PlaceInLine` for the message type behind the map.
pub(super) type PlaceBehindMap = Option<Box<dyn Any + Send + Sync>>;

/// The actor behind a map, without its message type.
pub(super) trait MappedActor: Send + Sync {
    fn view(&self) -> &dyn ActorView;
    /// Returns the process that owns the threads of the actor's executor.
    fn process(&self) -> Process;
    /// Waits until the actor has ended, and returns how it did.
    fn end(&self) -> Pin<Box<dyn Future<Output = End> + Send>>;
    fn close(&self);
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
    fn poll_reserve(
        &self,
        wait: &mut PlaceBehindMap,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>>;
    /// Leaves the line, and gives up the place in the mailbox if one was granted.
    fn leave_line(&self, wait: PlaceBehindMap);
    /// Gives up a reserved place.
    fn give_up_place(&self);
    /// Traces a message of this type that the actor receives without its mailbox.
    fn trace_passed_by(&self, type_name: &'static str);
    /// Returns the error of an ask whose message was refused.
    fn closed_error(&self) -> AskError {
        AskError::Closed(self.view().closed_detail())
    }
}

/// A conversion of messages of type `M` into an actor's messages, for places reserved at its
/// [`MappedActor`].
pub(super) trait MessageMap<M>: Send + Sync {
    fn actor(&self) -> &Arc<dyn MappedActor>;
    /// Returns the number of maps between this address and the actor.
    fn steps(&self) -> usize;
    /// Converts the message and fills a reserved place with it.
    fn fill(&self, message: M);
}
