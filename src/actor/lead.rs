//! Where an address leads: straight to an actor, or to a function before its mailbox.
//!
//! What is done through an address, strong or weak, is done by way of its lead. A lead is borrowed; a way has a
//! reference of its own, and counts as no address.

use std::any::Any;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::{At, Core, Held};
use crate::error::TellError;
use crate::mailbox::{Flags, Refused};
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

    /// The process that has the threads of the actor's executor.
    ///
    /// # Panics
    /// If that is another one.
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

    /// Whether that is this process. If not, no lock of the actor may be taken.
    pub(super) fn is_here(self) -> bool {
        Process::is_first()
            || match self {
                Lead::Actor(core) => core.process().is_current(),
                Lead::Map(map) => map.actor().process().is_current(),
            }
    }

    pub(super) fn tell(self, message: M) -> Result<(), TellError<M>> {
        match self {
            Lead::Actor(core) => core.tell(message),
            // What is refused is not made into another message.
            Lead::Map(map) => match map.actor().reserve() {
                Ok(()) => {
                    map.fill(message);
                    Ok(())
                }
                Err(Refused::Full) => Err(TellError::Full(message)),
                Err(Refused::Closed) => Err(TellError::Closed(message)),
            },
        }
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

    /// Counts an address more, where there may be none; false if the mailbox is closed.
    pub(super) fn revive_sender(self) -> bool {
        self.view().observe();
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
            ended.until(has_ended).await;
        }
    }
}

/// A lead with a reference of its own.
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

/// An actor without the type of its messages: what it can be asked.
pub(super) trait ActorView {
    fn id(&self) -> u64;
    fn name(&self) -> Option<&str>;
    fn info(&self) -> TaskInfo;
    fn is_closed(&self) -> bool;
    fn len(&self) -> usize;
    fn capacity(&self) -> Option<usize>;
    fn has_ended(&self) -> bool;
    /// Returns the list of those who wait for its end.
    fn ended(&self) -> &Waiters;
    /// Notes that this thread is about to look at it.
    fn observe(&self);
    /// Notes that this thread waits for its end.
    fn awaits_end(&self);
    /// Counts an address more. The caller has one.
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

/// A wait for room: a `PlaceInLine`, of the type of the messages behind the map.
pub(super) type PlaceBehindMap = Option<Box<dyn Any + Send + Sync>>;

/// The actor behind a map, without the type of its messages.
pub(super) trait MappedActor: Send + Sync {
    fn view(&self) -> &dyn ActorView;
    /// The process that has the threads of its executor.
    fn process(&self) -> Process;
    fn close(&self);
    fn kill(&self);
    /// Counts an address more, where there may be none; false if the mailbox is closed.
    fn revive_sender(&self) -> bool;
    /// Counts an address less.
    ///
    /// # Safety
    /// The caller gives that address up.
    #[expect(unsafe_code, reason = "a count that the caller owns")]
    unsafe fn remove_sender(&self);
    fn reserve(&self) -> Result<(), Refused>;
    fn poll_reserve(
        &self,
        wait: &mut PlaceBehindMap,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>>;
    /// Leaves the line, and gives up the place in the mailbox if it came to one.
    fn leave_line(&self, wait: PlaceBehindMap);
    /// Gives up a place that was reserved.
    fn give_up_place(&self);
}

/// Makes messages of type `M` into those of an actor, for places that were reserved at its [`MappedActor`].
pub(super) trait MessageMap<M>: Send + Sync {
    fn actor(&self) -> &Arc<dyn MappedActor>;
    /// How many maps there are from here to the actor.
    fn steps(&self) -> usize;
    /// Fills a place that was reserved.
    fn fill(&self, message: M);
}
