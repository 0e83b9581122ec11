//! A set of keyed actors behind its handles: the shards with the keys, and what callers find there.
//!
//! A key has at most one actor that is open or ends. User code runs under the lock of a shard for
//! `Eq` of keys, which changes nothing, and for the clones of [`KeyedCore::list`]. All other user
//! code runs without a lock: the function of the builder, `Hash`, and drops.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::state::{EndCall, EndRequest, KeyShard, KeyState, Tenant, drop_all};
use crate::actor::Address;
use crate::contain::contain;
use crate::directory::{HashSeeds, KeySlot};
use crate::error::SpawnProblem;
use crate::runtime::{Inner, context};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{CachePadded, Mutex, MutexGuard};
use crate::waiters::Waiters;

/// The number of locks on threads, a power of two: more than threads that use a set at one time.
const SHARDS: usize = 16;

/// How many of the released actors, and of those that the set holds, a call looks at to find one that
/// can go. So a call that is refused takes no longer in a large set.
pub(super) const MOST_LOOKS: usize = 512;

/// What starts the actor of a key.
pub(super) type Make<K, M> = Box<
    dyn Fn(K, KeyGuard<K, M>) -> Result<(Address<M>, Option<Box<EndCall>>), SpawnProblem>
        + Send
        + Sync,
>;

/// Makes the text of a key.
pub(super) type KeyLabel<K> = Box<dyn Fn(&K) -> String + Send + Sync>;

type LockedShard<K, M> = CachePadded<Mutex<KeyShard<K, M>>>;

pub(super) struct KeyedCore<K, M> {
    pub(super) runtime: Arc<Inner>,
    pub(super) make: Make<K, M>,
    /// Is called when the state of an actor was dropped. It is here, so that a guard needs no bounds.
    pub(super) leave: fn(&Arc<Self>, KeySite),
    pub(super) label: Option<KeyLabel<K>>,
    pub(super) idle: Option<Duration>,
    pub(super) limit: usize,
    pub(super) seeds: HashSeeds,
    /// One in a simulation, so that its order does not depend on hashes.
    pub(super) shards: Box<[LockedShard<K, M>]>,
    /// Goes on at each use if there is a limit, and with each step of the time that actors idle.
    pub(super) clock: AtomicU64,
    /// The number of actors that count.
    open: AtomicUsize,
    /// The number of keys.
    pub(super) known: AtomicUsize,
    /// Is woken when no key is known any more.
    pub(super) emptied: Waiters,
    /// The capacity of the last actor's mailbox, as a bound for messages that wait for an actor.
    pub(super) capacity: AtomicUsize,
    /// Whether the runtime has shut down.
    is_over: AtomicBool,
    pub(super) idling: Mutex<Idling>,
}

/// What is known of the task that releases idle actors.
#[derive(Default)]
pub(super) struct Idling {
    pub(super) is_running: bool,
    /// Whether an actor was held since the task has looked.
    pub(super) is_needed: bool,
}

/// Where the state of a key is.
#[derive(Clone, Copy)]
pub(super) struct KeySite {
    pub(super) shard: u32,
    pub(super) slot: KeySlot,
}

/// Notifies the set when the state of the actor is dropped.
pub(super) struct KeyGuard<K, M> {
    core: Arc<KeyedCore<K, M>>,
    at: KeySite,
}

impl<K, M> KeyGuard<K, M> {
    pub(super) fn new(core: &Arc<KeyedCore<K, M>>, at: KeySite) -> Self {
        KeyGuard {
            core: core.clone(),
            at,
        }
    }
}

impl<K, M> Drop for KeyGuard<K, M> {
    fn drop(&mut self) {
        if self.core.runtime.is_here() {
            (self.core.leave)(&self.core, self.at);
        }
    }
}

impl<K, M> KeyedCore<K, M> {
    #[inline]
    pub(super) fn shard_of(&self, hash: u64) -> usize {
        // The tables of the shards use the low half.
        (hash >> 32) as usize & (self.shards.len() - 1)
    }

    #[inline]
    pub(super) fn shard(&self, hash: u64) -> MutexGuard<'_, KeyShard<K, M>> {
        self.shards[self.shard_of(hash)].lock()
    }

    /// Locks the shard of a key. Earlier effects of a simulated turn come first.
    pub(super) fn at(&self, at: KeySite) -> MutexGuard<'_, KeyShard<K, M>> {
        context::apply_effects();
        self.shards[at.shard as usize].lock()
    }

    /// Returns the time of a use.
    #[inline]
    pub(super) fn stamp(&self) -> u64 {
        // Relaxed: a use is ordered with others of its shard by the lock, and with all by the RMW.
        match self.limit {
            usize::MAX => self.clock.load(Ordering::Relaxed),
            _ => self.clock.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns the number of actors that are open, or are being started.
    pub(super) fn len(&self) -> usize {
        // Relaxed: a snapshot, which publishes nothing.
        self.open.load(Ordering::Relaxed)
    }

    /// Returns whether no key is known.
    pub(super) fn is_empty(&self) -> bool {
        // Relaxed: the lock of `emptied` orders it before the wake-up.
        self.known.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_over(&self) -> bool {
        // Acquire pairs with the Release in `end_with_runtime`.
        self.is_over.load(Ordering::Acquire)
    }

    /// Stops to count an actor.
    pub(super) fn uncount(&self, state: &mut KeyState<K, M>) {
        if std::mem::take(&mut state.is_counted) {
            // Relaxed: only the count matters.
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Marks an actor as one that ends, as [`KeyShard::stop`] does.
    pub(super) fn stop_in(&self, shard: &mut KeyShard<K, M>, slot: KeySlot) -> Option<Tenant<M>> {
        let before = shard.stop(slot);
        if before.is_some() {
            self.uncount(&mut shard.keys[slot]);
        }
        before
    }

    /// Counts one more actor, if the limit has room for it. The caller locks the shard of its key:
    /// so another caller finds the key, or the room.
    pub(super) fn count(&self) -> bool {
        let one_more = |open: usize| (open < self.limit).then(|| open + 1);
        // Relaxed: only the count matters.
        let counted = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.is_ok()
    }

    /// Asks all actors to end, and accepts no more messages.
    pub(super) fn close(&self, how: EndRequest) {
        for shard in &self.shards {
            let (mut ends, mut waits) = (Vec::new(), Vec::new());
            let mut shard = shard.lock();
            shard.is_closed = true;
            let slots: Vec<_> = shard.keys.iter().map(|(slot, ..)| slot).collect();
            for slot in slots {
                let open = self.stop_in(&mut shard, slot);
                let state = &mut shard.keys[slot];
                ends.extend(open.or_else(|| state.tenant.unsettled()));
                waits.extend(state.take_list());
            }
            drop(shard);
            ends.iter().for_each(|tenant| tenant.end(how));
            waits.iter().for_each(|waits| waits.wake_all());
        }
    }

    /// Accepts messages again.
    pub(super) fn reopen(&self) {
        for shard in &self.shards {
            shard.lock().is_closed = false;
        }
    }

    /// Lets all that wait go, since the runtime has shut down.
    pub(super) fn end_with_runtime(&self) {
        // Release pairs with the Acquire in `is_over`. Those that wait look at it under the lock of
        // their shard, before they are in a list.
        self.is_over.store(true, Ordering::Release);
        for shard in &self.shards {
            let mut shard = shard.lock();
            let slots: Vec<_> = shard.keys.iter().map(|(slot, ..)| slot).collect();
            let waits = slots.into_iter();
            let waits = waits.filter_map(|slot| shard.keys[slot].take_list());
            let waits: Vec<_> = waits.collect();
            drop(shard);
            waits.iter().for_each(|waits| waits.wake_all());
        }
        self.emptied.wake_all();
    }

    /// Removes a key, for which no actor is there any more, and drops what waits for one.
    pub(super) fn forget(&self, mut shard: MutexGuard<'_, KeyShard<K, M>>, slot: KeySlot) {
        self.uncount(&mut shard.keys[slot]);
        let mut state = std::mem::replace(&mut shard.keys[slot], KeyState::starting());
        let key = shard.keys.remove(slot);
        drop(shard);
        let waits = state.take_list();
        contain(|| drop(key));
        drop_all(state.take_messages());
        contain(|| drop(state));
        waits.inspect(|waits| waits.wake_all());
        // Relaxed: the lock of `emptied` orders it before the wake-up.
        if self.known.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.emptied.wake_all();
        }
    }

    /// Returns the addresses of the open actors.
    pub(super) fn addresses(&self) -> Vec<Address<M>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            all.extend(
                shard
                    .keys
                    .iter()
                    .filter_map(|(.., state)| match &state.tenant {
                        Tenant::Held(address) => Some(address.clone()),
                        Tenant::Released(address) => address.upgrade_now(),
                        Tenant::Starting(_) | Tenant::Stopped(_) => None,
                    }),
            );
        }
        all
    }

    /// Returns the keys whose actors count.
    pub(super) fn list(&self) -> Vec<K>
    where
        K: Clone,
    {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let counted = shard.keys.iter().filter(|(.., state)| state.is_counted);
            all.extend(counted.map(|(_, key, _)| key.clone()));
        }
        all
    }

    pub(super) fn set_capacity(&self, messages: Option<usize>) {
        // Relaxed: a number, which publishes nothing.
        self.capacity
            .store(messages.unwrap_or(usize::MAX), Ordering::Relaxed);
    }
}

impl<K, M> KeyedCore<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    pub(super) fn new(
        runtime: Arc<Inner>,
        make: Make<K, M>,
        label: Option<KeyLabel<K>>,
        idle: Option<Duration>,
        limit: usize,
    ) -> Arc<Self> {
        let shards = if runtime.is_simulated() { 1 } else { SHARDS };
        let shard = || CachePadded(Mutex::new(KeyShard::new()));
        Arc::new(KeyedCore {
            runtime,
            make,
            leave: Self::leave,
            label,
            idle,
            limit,
            seeds: HashSeeds::new(),
            shards: (0..shards).map(|_| shard()).collect(),
            clock: AtomicU64::new(1),
            open: AtomicUsize::new(0),
            known: AtomicUsize::new(0),
            emptied: Waiters::new(),
            capacity: AtomicUsize::new(usize::MAX),
            is_over: AtomicBool::new(false),
            idling: Mutex::new(Idling::default()),
        })
    }
}
