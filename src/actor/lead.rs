//! Where an address leads: straight to an actor, or to a function before its mailbox.
//!
//! What is done through an address, strong or weak, is done by way of its lead. A lead is borrowed; a way has a
//! reference of its own, and counts as no address.

use std::sync::Arc;

use super::core::At;
use super::held::Held;
use super::map::{Live, Places};
use crate::error::TellError;
use crate::mailbox::Refused;
use crate::sync::Process;

pub(super) enum Lead<'a, M> {
    Actor(At<'a, M>),
    Map(&'a Arc<dyn Places<M>>),
}

impl<M> Clone for Lead<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Lead<'_, M> {}

impl<'a, M> Lead<'a, M> {
    pub(super) fn live(self) -> &'a dyn Live {
        match self {
            Lead::Actor(core) => core.core(),
            Lead::Map(places) => places.root().live(),
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
                Lead::Map(places) => places.root().process(),
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
                Lead::Map(places) => places.root().process().is_current(),
            }
    }

    pub(super) fn tell(self, message: M) -> Result<(), TellError<M>> {
        match self {
            Lead::Actor(core) => core.tell(message),
            // What is refused is not made into another message.
            Lead::Map(places) => match places.root().reserve() {
                Ok(()) => {
                    places.fill(message);
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
            Lead::Map(places) => places.root().close(),
        }
    }

    pub(super) fn kill(self) {
        match self {
            Lead::Actor(core) => core.kill(),
            Lead::Map(places) => places.root().kill(),
        }
    }

    /// Counts an address more, where there may be none; false if the mailbox is closed.
    pub(super) fn revive_sender(self) -> bool {
        self.live().observe();
        match self {
            Lead::Actor(core) => core.revive_sender(false),
            Lead::Map(places) => places.root().revive_sender(),
        }
    }

    /// Waits until the actor has ended.
    pub(super) async fn closed(self) {
        let has_ended = || {
            let has_ended = self.live().has_ended();
            if !has_ended {
                self.checked_process();
                self.live().awaits_end();
            }
            has_ended
        };
        if !has_ended() {
            let ended = self.live().ended();
            ended.until(has_ended).await;
        }
    }
}

/// A lead with a reference of its own.
pub(super) enum Way<M> {
    Actor(Held<M>),
    Map(Arc<dyn Places<M>>),
}

impl<M> Way<M> {
    pub(super) fn lead(&self) -> Lead<'_, M> {
        match self {
            Way::Actor(core) => Lead::Actor(core.at()),
            Way::Map(places) => Lead::Map(places),
        }
    }
}

impl<M> From<Lead<'_, M>> for Way<M> {
    fn from(lead: Lead<'_, M>) -> Self {
        match lead {
            Lead::Actor(core) => Way::Actor(Held::from(core)),
            Lead::Map(places) => Way::Map(places.clone()),
        }
    }
}
