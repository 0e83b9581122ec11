//! Where names are looked up, and how an actor that ends loses its own.

use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use crate::actor::Address;
use crate::runtime::{DueEffects, Inner, context};

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
        engine.settle(runtime, DueEffects::Own);
        for actor in actors() {
            engine.settle(runtime, DueEffects::ByActor(actor));
        }
    });
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Name,
    Group,
}

/// Removes an actor from a name or a group when it is woken, at the actor's end.
struct Removal {
    runtime: Weak<Inner>,
    kind: Kind,
    name: Box<str>,
    actor: u64,
}

/// Returns the waker that removes this actor.
pub(super) fn removal<M>(
    runtime: &Arc<Inner>,
    kind: Kind,
    name: &str,
    actor: &Address<M>,
) -> Waker {
    Waker::from(Arc::new(Removal {
        runtime: Arc::downgrade(runtime),
        kind,
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
        let Some(directory) = runtime.directory() else {
            return;
        };
        match self.kind {
            Kind::Name => drop(directory.names.change(&self.name, |entry| {
                entry.holder.take_if(|holder| holder.id() == self.actor)
            })),
            Kind::Group => drop(directory.groups.change(&self.name, |entry| {
                Arc::make_mut(&mut entry.members).remove(&self.actor)
            })),
        }
    }
}
