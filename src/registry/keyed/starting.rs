//! How the actor of a key is started, and how it gets the messages that have waited for it.
//!
//! Until the last of these messages is in its mailbox, all others wait behind them. So the messages
//! of one sender stay in order. If a mailbox is full meanwhile, a task waits for room.

use std::future::poll_fn;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;

use super::core::{KeyGuard, KeySite, KeyedCore};
use super::error::KeyError;
use super::state::{EndCall, KeyShard, LinedMessage, Tenant, drop_all};
use crate::actor::Address;
use crate::contain::{Panic, attempt, attempt_uncounted, contain};
use crate::error::{Refusal, RefusalKind, SendError, SpawnProblem};
use crate::sync::MutexGuard;
use crate::task::loss;

impl<K, M> KeyedCore<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    /// Starts the actor of a key that the caller has made known, and tells it a message. Returns the
    /// message if it was not accepted. Passes a panic of `conflate` on.
    pub(super) fn start(
        self: &Arc<Self>,
        at: KeySite,
        key: K,
        message: Option<M>,
    ) -> (Result<Address<M>, KeyError>, Option<M>) {
        let guard = KeyGuard::new(self, at);
        let made = attempt(|| (self.make)(key, guard));
        let (address, end) = match made {
            Ok(Ok(made)) => made,
            Ok(Err(problem)) => {
                self.forget(self.at(at), at.slot);
                return (Err(KeyError::Spawn(problem)), message);
            }
            Err(panic) => {
                self.forget(self.at(at), at.slot);
                return (Err(KeyError::Panicked(panic)), message);
            }
        };
        self.set_capacity(address.capacity());
        self.set_end(at, end);
        // If `conflate` panics, the caller gets that when all find the actor.
        let told = attempt_uncounted(|| message.and_then(|message| address.tell(message).err()));
        self.flush(at, &address);
        match told {
            Ok(back) => (Ok(address), back.map(|refused| refused.into_inner())),
            Err(panic) => resume_unwind(panic.into_payload()),
        }
    }

    fn set_end(&self, at: KeySite, end: Option<Box<EndCall>>) {
        if end.is_some() {
            self.at(at).keys[at.slot].end = end;
        }
    }

    /// Tells an actor the messages that have waited for it. Then all find it. A panic of `conflate`
    /// loses its message, and is no matter of this caller.
    fn flush(self: &Arc<Self>, at: KeySite, address: &Address<M>) {
        while let Some((message, span)) = self.next_or_settle(at, address) {
            let tell = || span.call_within(false, || address.tell(message));
            let refused = match attempt(tell) {
                Ok(Ok(())) => continue,
                Ok(Err(refused)) => refused,
                Err(panic) => {
                    self.report(panic);
                    continue;
                }
            };
            let is_full = refused.is_full();
            let started = is_full.then(|| Box::new(address.downgrade()));
            let mut shard = self.at(at);
            shard.keys[at.slot].push_front((refused.into_inner(), span));
            if is_full {
                let state = &mut shard.keys[at.slot];
                state.tenant = Tenant::Starting(started);
                // The actor itself may wait, and would wait for ever.
                let (waits, is_removed) = (state.take_list(), state.is_removed);
                drop(shard);
                if is_removed {
                    address.stop();
                }
                waits.inspect(|waits| waits.wake_all());
                let rest = KeyForwarding::new(self, at, Some(address.clone()));
                return rest.spawn(None);
            }
            return self.settle(shard, at, address);
        }
    }

    /// Takes the next message that waits. If there is none, all find the actor from now on.
    fn next_or_settle(
        self: &Arc<Self>,
        at: KeySite,
        address: &Address<M>,
    ) -> Option<LinedMessage<M>> {
        let mut shard = self.at(at);
        let message = shard.keys[at.slot].pop();
        if message.is_none() {
            self.settle(shard, at, address);
        }
        message
    }

    /// Lets all find an actor that was started, or wait for its end if it is closed already.
    fn settle(
        self: &Arc<Self>,
        mut shard: MutexGuard<'_, KeyShard<K, M>>,
        at: KeySite,
        address: &Address<M>,
    ) {
        let is_closed = shard.is_closed;
        let state = &mut shard.keys[at.slot];
        let is_early = std::mem::take(&mut state.is_early);
        let is_stopped = std::mem::take(&mut state.is_removed) || is_closed;
        let (waits, key) = state.take_waits();
        let is_open = !is_stopped && !is_early && !address.is_closed_now();
        let before = if is_open {
            shard.hold(at.slot, address.clone(), self.stamp())
        } else {
            if state.waiting() == 0 {
                self.uncount(state);
            }
            let stopped = Tenant::Stopped(Box::new(address.downgrade()));
            std::mem::replace(&mut state.tenant, stopped)
        };
        // It was started for messages that were accepted before the last handle was dropped.
        let released = match shard.is_left {
            true => shard.release(u64::MAX),
            false => None,
        };
        drop(shard);
        drop((before, released));
        contain(|| drop(key));
        if is_stopped {
            address.stop();
        }
        waits.inspect(|waits| waits.wake_all());
        if is_open {
            self.tend();
        }
        if is_early {
            self.watch_end(at, &address.downgrade());
        }
    }

    /// Starts the next actor of a key, for which messages wait.
    pub(super) fn start_next(self: &Arc<Self>, at: KeySite, key: Option<K>) {
        KeyForwarding::new(self, at, None).spawn(key);
    }
}

/// A task that starts the next actor of a key, or that waits until an actor has room for the messages
/// of its key.
struct KeyForwarding<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    core: Arc<KeyedCore<K, M>>,
    at: KeySite,
    /// The actor that was started.
    address: Option<Address<M>>,
    is_done: bool,
}

impl<K, M> KeyForwarding<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    fn new(core: &Arc<KeyedCore<K, M>>, at: KeySite, address: Option<Address<M>>) -> Self {
        KeyForwarding {
            core: core.clone(),
            at,
            address,
            is_done: false,
        }
    }

    /// Spawns the task, unless the runtime is shutting down.
    fn spawn(self, key: Option<K>) {
        let runtime = self.core.runtime.clone();
        if runtime.shutdown.has_begun() {
            contain(|| drop(key));
            return;
        }
        crate::task::spawn_own(runtime, self.run(key)).detach();
    }

    async fn run(mut self, key: Option<K>) {
        if let Some(key) = key {
            let given = key.clone();
            let before = self.core.at(self.at).keys[self.at.slot].put_key(key);
            contain(|| drop(before));
            self.is_done = true;
            match self.core.start(self.at, given, None).0 {
                Ok(_) | Err(KeyError::Spawn(SpawnProblem::ShutDown)) => return,
                // As of any task, the panic goes to `on_fault`.
                Err(KeyError::Panicked(panic)) => resume_unwind(panic.into_payload()),
                Err(why) => panic!("no actor was started for messages that were accepted: {why}"),
            }
        }
        let Some(address) = self.address.clone() else {
            return;
        };
        while let Some((message, span)) = self.core.next_or_settle(self.at, &address) {
            let mut sent = address.send(message);
            let sent = poll_fn(|cx| span.call_within(false, || Pin::new(&mut sent).poll(cx)));
            let sent = AssertUnwindSafe(sent).catch_unwind().await;
            match sent {
                Ok(Ok(())) => {}
                Err(payload) => self.core.report(Panic::new(payload)),
                // Its `overflow` lets no message wait for room.
                Ok(Err(refused)) if refused.is_full() => drop_refused(refused),
                Ok(Err(closed)) => {
                    let mut shard = self.core.at(self.at);
                    shard.keys[self.at.slot].push_front((closed.into_inner(), span));
                    self.core.settle(shard, self.at, &address);
                    break;
                }
            }
        }
        self.is_done = true;
    }
}

/// Drops a message for which a mailbox has no room. An ask is refused so.
fn drop_refused<M>(refused: SendError<M>) {
    let why = refused.to_string();
    let refusal = || Refusal::of(RefusalKind::Overloaded, why.clone());
    contain(|| loss::refusing(refusal, || drop(refused)));
}

/// Drops the messages if the task was cancelled.
impl<K, M> Drop for KeyForwarding<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    fn drop(&mut self) {
        if self.is_done || !self.core.runtime.is_here() {
            return;
        }
        let Some(address) = self.address.take() else {
            return self.core.forget(self.core.at(self.at), self.at.slot);
        };
        let mut shard = self.core.at(self.at);
        let messages = shard.keys[self.at.slot].take_messages();
        self.core.settle(shard, self.at, &address);
        drop_all(messages);
    }
}
