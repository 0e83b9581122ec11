//! How a set is notified of the end of an actor.
//!
//! The actor has a guard, which is dropped with its state. Only then the end is waited for, so that
//! an actor that lives takes no memory for that. The next actor of the key starts after the end.

use std::hash::Hash;
use std::sync::Arc;
use std::task::{Wake, Waker};

use super::core::{KeySite, KeyedCore};
use super::state::Tenant;
use crate::actor::WeakAddress;
use crate::contain::{Panic, attempt, contain};
use crate::error::{Fault, UnhandledFault};
use crate::registry::member::observe;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::task::TaskHooks;
use crate::waiters::Ticket;

/// Notifies the set of the end of an actor, once.
struct KeyEnd<K, M> {
    core: Arc<KeyedCore<K, M>>,
    at: KeySite,
    is_notified: AtomicBool,
}

impl<K, M> Wake for KeyEnd<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    fn wake(self: Arc<Self>) {
        // Relaxed: the end was seen, or its waiters are woken; either way the locks order it.
        if !self.is_notified.swap(true, Ordering::Relaxed) && self.core.runtime.is_here() {
            self.core.ended(self.at);
        }
    }
}

impl<K, M> KeyedCore<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    /// Sees to the end of an actor whose state was dropped, so that it receives nothing any more.
    pub(super) fn leave(self: &Arc<Self>, at: KeySite) {
        let mut shard = self.at(at);
        let before = self.stop_in(&mut shard, at.slot);
        let state = &mut shard.keys[at.slot];
        let address = match &state.tenant {
            Tenant::Stopped(address) => Some(WeakAddress::clone(address)),
            _ => None,
        };
        // The call that starts the actor waits for its end then.
        state.is_early = address.is_none();
        drop(shard);
        drop(before);
        if let Some(address) = address {
            self.watch_end(at, &address);
        }
    }

    /// Waits for the end of an actor whose state was dropped.
    pub(super) fn watch_end(self: &Arc<Self>, at: KeySite, address: &WeakAddress<M>) {
        let end = Arc::new(KeyEnd {
            core: self.clone(),
            at,
            is_notified: AtomicBool::new(false),
        });
        address.wake_at_end(&mut Ticket::default(), &Waker::from(end.clone()));
        if address.has_ended_now() {
            end.wake();
        }
    }

    /// Removes the key of an actor that has ended, or starts the next one.
    fn ended(self: &Arc<Self>, at: KeySite) {
        observe(|| None);
        let end = self.at(at).keys[at.slot].end.take();
        if let Some(end) = end
            && let Err(panic) = attempt(end)
        {
            self.report(panic);
        }
        let mut shard = self.at(at);
        let state = &mut shard.keys[at.slot];
        if state.waiting() == 0 {
            return self.forget(shard, at.slot);
        }
        let ended = std::mem::replace(&mut state.tenant, Tenant::Starting(None));
        let key = state.take_key();
        drop(shard);
        drop(ended);
        self.start_next(at, key);
    }

    /// Reports a panic of a function that the set has called for no caller.
    pub(super) fn report(&self, panic: Panic) {
        let fault = Fault::Panicked(panic);
        self.runtime.report(&UnhandledFault {
            actor: None,
            name: Some("a set of keyed actors"),
            id: None,
            fault: &fault,
            is_source: false,
            is_on_undelivered: false,
            is_on_displaced: false,
            task: None,
        });
        contain(|| drop(fault));
    }
}
