//! What callers do with a key: tell its actor, wait for it, and stop it.
//!
//! A call looks under the lock of a shard, and acts when the lock is free. What it has found may have
//! changed by then: so it looks again until it could act.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::core::{KeySite, KeyedCore, MOST_LOOKS};
use super::error::{KeyError, KeyedTellError};
use super::state::{EndRequest, KeyShard, KeyState, Tenant};
use crate::actor::Address;
use crate::contain::contain;
use crate::directory::{HashedKey, KeySlot};
use crate::error::{Deadlock, SpawnProblem};
use crate::registry::member::observe;
use crate::runtime::span_of_current;
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering;
use crate::task::{TaskInfo, run};
use crate::waiters::Waiters;

/// What a caller finds under a key.
enum KeyLook<M> {
    Open(Address<M>),
    /// No actor was started, or it has ended.
    Absent,
    /// An actor is being started, or ends.
    Busy,
}

/// The list of those that wait for an actor of a key, and the actor that ends before.
type KeyAwaited = (Arc<Waiters>, Option<TaskInfo>);

/// Why a message was not put into the line of a key.
enum NotLined {
    /// The key has changed meanwhile.
    Again,
    Full,
    Refused(KeyError),
}

impl<K, M> KeyedCore<K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    #[inline]
    pub(super) fn hash(&self, key: &K) -> u64 {
        (&self.seeds).hash_one(key)
    }

    /// Applies the pending effects of this thread and of the actor of this key, in a simulation.
    #[inline]
    fn observe(&self, hash: u64, key: &K) {
        observe(|| {
            let shard = self.shard(hash);
            let slot = shard.keys.find_key(hash, key)?;
            shard.keys[slot].tenant.id()
        });
    }

    /// Returns the open actor of this key, which is used so.
    #[inline]
    fn look(self: &Arc<Self>, hash: u64, key: &K) -> KeyLook<M> {
        let mut shard = self.shard(hash);
        let Some(slot) = shard.keys.find_key(hash, key) else {
            return KeyLook::Absent;
        };
        match &shard.keys[slot].tenant {
            Tenant::Held(address) if !address.is_closed_now() => {
                let address = address.clone();
                if self.idle.is_some() || self.limit < usize::MAX {
                    let stamp = self.stamp();
                    shard.touch(slot, stamp);
                }
                KeyLook::Open(address)
            }
            Tenant::Starting(_) | Tenant::Stopped(_) => KeyLook::Busy,
            Tenant::Held(_) | Tenant::Released(_) => self.hold_again(shard, slot),
        }
    }

    /// Holds an actor that was released, unless it has closed.
    #[cold]
    #[inline(never)]
    fn hold_again(
        self: &Arc<Self>,
        mut shard: MutexGuard<'_, KeyShard<K, M>>,
        slot: KeySlot,
    ) -> KeyLook<M> {
        let address = match &shard.keys[slot].tenant {
            Tenant::Released(address) => address.upgrade_now(),
            _ => None,
        };
        let Some(address) = address else {
            let closed = self.stop_in(&mut shard, slot);
            drop(shard);
            drop(closed);
            return KeyLook::Busy;
        };
        let released = shard.hold(slot, address.clone(), self.stamp());
        drop(shard);
        drop(released);
        self.tend();
        KeyLook::Open(address)
    }

    /// Makes a key known, whose actor the caller starts with the returned key. Returns `None` if it
    /// is known already.
    fn begin(&self, hash: u64, key: &K) -> Result<Option<(KeySite, K)>, KeyError> {
        let (own, given) = (key.clone(), key.clone());
        let mut has_made_room = true;
        loop {
            let mut shard = self.shard(hash);
            if shard.is_closed {
                drop(shard);
                return Err(KeyError::Stopped);
            }
            if shard.keys.find_key(hash, key).is_some() {
                drop(shard);
                return Ok(None);
            }
            if self.count() {
                let keyed = HashedKey::new(hash, own);
                let slot = shard.keys.insert(keyed, KeyState::starting());
                // Relaxed: ordered as in `forget`.
                self.known.fetch_add(1, Ordering::Relaxed);
                let shard = self.shard_of(hash) as u32;
                return Ok(Some((KeySite { shard, slot }, given)));
            }
            drop(shard);
            self.make_room_again(hash, key, &mut has_made_room)?;
        }
    }

    /// Makes room for one more actor, of this key. If there is none, the caller looks at its key once
    /// more, which another caller may have made known meanwhile. Then it is refused.
    fn make_room_again(
        &self,
        hash: u64,
        key: &K,
        has_made_room: &mut bool,
    ) -> Result<(), KeyError> {
        if !*has_made_room {
            return Err(KeyError::Limit { limit: self.limit });
        }
        *has_made_room = self.make_room(hash, key);
        Ok(())
    }

    /// Stops the actor that was used longest ago, of those that no other code has an address of.
    /// Returns whether there was one among those that it has looked at.
    fn make_room(&self, hash: u64, key: &K) -> bool {
        let unused = |shard: &mut KeyShard<K, M>| {
            shard.oldest_unused(MOST_LOOKS / self.shards.len(), || self.stamp())
        };
        let oldest = self.shards.iter().enumerate().filter_map(|(index, shard)| {
            let (stamp, _) = unused(&mut shard.lock())?;
            Some((stamp, index))
        });
        let Some((_, index)) = oldest.min() else {
            return false;
        };
        let stopped = {
            let mut shard = self.shards[index].lock();
            let oldest = unused(&mut shard).map(|(_, slot)| slot);
            // Another caller may have started the actor of this key meanwhile.
            let is_own = |slot: &KeySlot| {
                index == self.shard_of(hash) && shard.keys.find_key(hash, key) == Some(*slot)
            };
            let other = oldest.filter(|slot| !is_own(slot));
            other.and_then(|slot| self.stop_in(&mut shard, slot))
        };
        if let Some(stopped) = stopped {
            stopped.end(EndRequest::Stop);
        }
        true
    }

    pub(super) fn tell(self: &Arc<Self>, key: &K, mut message: M) -> Result<(), KeyedTellError<M>> {
        if !self.runtime.is_here() {
            let forked = KeyError::Spawn(SpawnProblem::Forked);
            return Err(KeyedTellError::new(message, forked));
        }
        let hash = self.hash(key);
        loop {
            self.observe(hash, key);
            match self.look(hash, key) {
                KeyLook::Open(address) => match address.tell(message) {
                    Ok(()) => return Ok(()),
                    Err(full) if full.is_full() => {
                        return Err(KeyedTellError::full(full.into_inner()));
                    }
                    Err(closed) => message = closed.into_inner(),
                },
                KeyLook::Absent => match self.begin(hash, key) {
                    Ok(Some((at, key))) => match self.start(at, key, Some(message)) {
                        (Ok(_), None) | (Err(_), None) => return Ok(()),
                        (Ok(_), Some(back)) => message = back,
                        (Err(why), Some(back)) => return Err(KeyedTellError::new(back, why)),
                    },
                    Ok(None) => {}
                    Err(why) => return Err(KeyedTellError::new(message, why)),
                },
                KeyLook::Busy => match self.line_up(hash, key, message) {
                    Ok(()) => return Ok(()),
                    Err((back, NotLined::Again)) => message = back,
                    Err((back, NotLined::Full)) => return Err(KeyedTellError::full(back)),
                    Err((back, NotLined::Refused(why))) => {
                        return Err(KeyedTellError::new(back, why));
                    }
                },
            }
        }
    }

    /// Keeps a message for the actor that is being started, or for the next one.
    fn line_up(&self, hash: u64, key: &K, message: M) -> Result<(), (M, NotLined)> {
        let mut own = Some(key.clone());
        let mut has_made_room = true;
        let span = span_of_current();
        loop {
            let mut shard = self.shard(hash);
            let Some(slot) = shard.keys.find_key(hash, key) else {
                drop(shard);
                return Err((message, NotLined::Again));
            };
            let refused = self.why_refused(&shard);
            let state = &mut shard.keys[slot];
            if let Tenant::Held(_) | Tenant::Released(_) = state.tenant {
                drop(shard);
                return Err((message, NotLined::Again));
            }
            if let Some(why) = refused {
                drop(shard);
                return Err((message, NotLined::Refused(why)));
            }
            // Relaxed: a number, which publishes nothing.
            if state.waiting() >= self.capacity.load(Ordering::Relaxed) {
                drop(shard);
                return Err((message, NotLined::Full));
            }
            // The next actor counts from now on, so that it can be started.
            if !state.is_counted {
                if !self.count() {
                    drop(shard);
                    match self.make_room_again(hash, key, &mut has_made_room) {
                        Ok(()) => continue,
                        Err(why) => return Err((message, NotLined::Refused(why))),
                    }
                }
                state.is_counted = true;
            }
            state.push(&mut own, (message, span));
            drop(shard);
            // The message is accepted, whether the key was needed or not.
            contain(|| drop(own));
            return Ok(());
        }
    }

    /// Returns why no other actor is started in a shard.
    fn why_refused(&self, shard: &KeyShard<K, M>) -> Option<KeyError> {
        match (shard.is_closed, self.is_over()) {
            (_, true) => Some(KeyError::Spawn(SpawnProblem::ShutDown)),
            (true, _) => Some(KeyError::Stopped),
            _ => None,
        }
    }

    /// Returns an address of the actor of this key, which is started if there is none. While one is
    /// being started or ends, returns what is waited for.
    pub(super) fn enter(
        self: &Arc<Self>,
        hash: u64,
        key: &K,
    ) -> Result<Result<Address<M>, KeyAwaited>, KeyError> {
        loop {
            self.observe(hash, key);
            match self.look(hash, key) {
                KeyLook::Open(address) => return Ok(Ok(address)),
                KeyLook::Absent => {
                    if let Some((at, key)) = self.begin(hash, key)? {
                        return self.start(at, key, None).0.map(Ok);
                    }
                }
                KeyLook::Busy => {
                    if let Some(waits) = self.waits(hash, key)? {
                        return Ok(Err(waits));
                    }
                }
            }
        }
    }

    /// Returns what is waited for. Returns `None` if the key has changed meanwhile.
    fn waits(&self, hash: u64, key: &K) -> Result<Option<KeyAwaited>, KeyError> {
        let mut shard = self.shard(hash);
        let Some(slot) = shard.keys.find_key(hash, key) else {
            return Ok(None);
        };
        if let Some(why) = self.why_refused(&shard) {
            return Err(why);
        }
        let state = &mut shard.keys[slot];
        let ending = match &state.tenant {
            Tenant::Held(_) | Tenant::Released(_) => return Ok(None),
            Tenant::Stopped(address) => Some(address.info()),
            Tenant::Starting(Some(actor)) if actor.id() == run::actor_id() => {
                let own = run::current_actor().map(|own| format!("{own} → {own}"));
                let own = Deadlock::new(own.unwrap_or_default(), true);
                return Err(KeyError::Deadlock(own));
            }
            Tenant::Starting(_) => None,
        };
        Ok(Some((state.waits(), ending)))
    }

    /// Returns whether the actor of this key counts. That is no use of it.
    pub(super) fn contains(&self, key: &K) -> bool {
        let hash = self.hash(key);
        self.observe(hash, key);
        let shard = self.shard(hash);
        let slot = shard.keys.find_key(hash, key);
        slot.is_some_and(|slot| shard.keys[slot].is_counted)
    }

    /// Stops the actor of this key. Returns whether it was open, or was being started.
    pub(super) fn remove(&self, key: &K) -> bool {
        let hash = self.hash(key);
        self.observe(hash, key);
        let mut shard = self.shard(hash);
        let Some(slot) = shard.keys.find_key(hash, key) else {
            return false;
        };
        let state = &mut shard.keys[slot];
        let (stopped, is_removed) = if let Tenant::Starting(_) = state.tenant {
            let is_removed = !std::mem::replace(&mut state.is_removed, true);
            (state.tenant.unsettled(), is_removed)
        } else {
            let stopped = self.stop_in(&mut shard, slot);
            let is_removed = stopped.is_some();
            (stopped, is_removed)
        };
        drop(shard);
        stopped.inspect(|tenant| tenant.end(EndRequest::Stop));
        is_removed
    }
}
