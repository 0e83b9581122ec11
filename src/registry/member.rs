//! An actor under a name or in a group, and how it loses its names and groups at its end.
//!
//! It is known by a weak address, so it is not kept open.

use std::any::{Any, type_name};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use super::late::LateMessages;
use crate::actor::{Address, WeakAddress};
use crate::directory::{Directory, NamedActor};
use crate::runtime::{DueEffects, Inner, context};
use crate::task::TaskInfo;
use crate::waiters::Ticket;

/// An actor that receives messages of type `M`, by a name or in a group.
pub(super) struct RegisteredActor<M> {
    pub(super) address: WeakAddress<M>,
    /// What a group knows it by, of any type.
    pub(super) tag: Option<Box<dyn Any + Send + Sync>>,
    /// What a group sends it while it is told the history.
    pub(super) late: Option<Arc<LateMessages<M>>>,
    ticket: Ticket,
}

impl<M> RegisteredActor<M> {
    /// Creates a member. `removal` is woken when the actor ends, unless the member is dropped
    /// before.
    pub(super) fn new(address: &Address<M>, removal: &Waker) -> Self {
        let mut member = RegisteredActor {
            address: address.downgrade(),
            tag: None,
            late: None,
            ticket: Ticket::default(),
        };
        member.address.wake_at_end(&mut member.ticket, removal);
        member
    }
}

impl<M> Drop for RegisteredActor<M> {
    fn drop(&mut self) {
        self.address.forget_end(&mut self.ticket);
    }
}

impl<M: Send + 'static> NamedActor for RegisteredActor<M> {
    fn id(&self) -> u64 {
        self.address.id()
    }

    fn info(&self) -> TaskInfo {
        self.address.info()
    }

    fn has_ended(&self) -> bool {
        self.address.has_ended_now()
    }

    fn message_type(&self) -> &'static str {
        type_name::<M>()
    }
}

/// Calls `f` with the runtime that was set or, without one, with the current runtime. Returns
/// `None` if there is none in this process.
#[inline]
pub(super) fn with_runtime<R>(
    set: Option<&Arc<Inner>>,
    f: impl FnOnce(&Arc<Inner>) -> R,
) -> Option<R> {
    let here = |runtime: &&Arc<Inner>| runtime.is_here();
    match set {
        Some(runtime) => Some(runtime).filter(here).map(f),
        None => context::with_runtime(|runtime| runtime.filter(here).map(f)),
    }
}

/// Applies the pending effects of this thread and of these actors, before this thread looks at
/// them or changes what others see. Only a simulation has any.
pub(super) fn observe<I: IntoIterator<Item = u64>>(actors: impl FnOnce() -> I) {
    let _ = context::simulated(|engine, runtime| {
        engine.apply(runtime, DueEffects::Own);
        for actor in actors() {
            engine.apply(runtime, DueEffects::ByActor(actor));
        }
    });
}

/// Removes an actor from a name or a group when it is woken, at the actor's end.
struct Removal {
    runtime: Weak<Inner>,
    /// Removes the actor with this id from what has this name.
    remove: fn(&Directory, name: &str, actor: u64),
    name: Box<str>,
    actor: u64,
}

/// Returns the waker that removes this actor with `remove`.
pub(super) fn removal<M>(
    runtime: &Arc<Inner>,
    remove: fn(&Directory, name: &str, actor: u64),
    name: &str,
    actor: &Address<M>,
) -> Waker {
    Waker::from(Arc::new(Removal {
        runtime: Arc::downgrade(runtime),
        remove,
        name: name.into(),
        actor: actor.id(),
    }))
}

impl Wake for Removal {
    fn wake(self: Arc<Self>) {
        observe(|| None);
        let Some(runtime) = self.runtime.upgrade().filter(|runtime| runtime.is_here()) else {
            return;
        };
        if let Some(directory) = runtime.directory() {
            (self.remove)(directory, &self.name, self.actor);
        }
    }
}
