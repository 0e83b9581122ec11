//! The keys of one shard: the actor of each, what waits for it, and the order of their last uses.
//!
//! A key is known from the start of an actor until that has ended and nothing waits for the next
//! one. Open actors are in a list, in the order of their last uses. Those that the set has
//! released are before all that it holds. User code runs in [`Keys`] alone. What a change replaces
//! goes back to the caller, who drops it when the lock is free.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use crate::actor::{Address, WeakAddress};
use crate::contain::contain;
use crate::directory::{KeySlot, Keys};
use crate::tracer::SentSpan;
use crate::waiters::Waiters;

/// The actor of a key.
pub(super) enum Tenant<M> {
    /// It is being started. Or it was, and has no room yet for all messages that wait.
    Starting(Option<Box<WeakAddress<M>>>),
    /// It is open, and the set has an address of it.
    Held(Address<M>),
    /// The set has given up its address. The actor is open while there is another one, a source or a
    /// message.
    Released(WeakAddress<M>),
    /// It was stopped or has closed, and may not have ended. In a box, since few keys are so for long,
    /// and all others are smaller then.
    Stopped(Box<WeakAddress<M>>),
}

impl<M> Tenant<M> {
    /// Returns the id of the actor, if it was started.
    pub(super) fn id(&self) -> Option<u64> {
        match self {
            Tenant::Starting(address) => address.as_ref().map(|address| address.id()),
            Tenant::Held(address) => Some(address.id()),
            Tenant::Released(address) => Some(address.id()),
            Tenant::Stopped(address) => Some(address.id()),
        }
    }

    fn weak(&self) -> Option<WeakAddress<M>> {
        match self {
            Tenant::Starting(_) => None,
            Tenant::Held(address) => Some(address.downgrade()),
            Tenant::Released(address) => Some(address.clone()),
            Tenant::Stopped(address) => Some(WeakAddress::clone(address)),
        }
    }

    /// Returns a copy of an actor that was stopped or has closed, or that has no room yet for all
    /// messages that wait.
    pub(super) fn unsettled(&self) -> Option<Self> {
        match self {
            Tenant::Starting(Some(address)) | Tenant::Stopped(address) => {
                Some(Tenant::Stopped(address.clone()))
            }
            _ => None,
        }
    }

    /// Asks the actor to end.
    pub(super) fn end(&self, how: EndRequest) {
        match (self, how) {
            (Tenant::Starting(_), _) => {}
            (Tenant::Held(address), EndRequest::Stop) => address.stop(),
            (Tenant::Held(address), EndRequest::Kill) => address.kill(),
            (Tenant::Released(address), EndRequest::Stop) => address.stop(),
            (Tenant::Released(address), EndRequest::Kill) => address.kill(),
            (Tenant::Stopped(address), EndRequest::Stop) => address.stop(),
            (Tenant::Stopped(address), EndRequest::Kill) => address.kill(),
        }
    }

    /// Returns whether no code outside the set has an address of the actor, which is open.
    fn is_unused(&self) -> bool {
        match self {
            Tenant::Held(address) => address.addresses() == 1,
            Tenant::Released(address) => address.addresses() == 0,
            Tenant::Starting(_) | Tenant::Stopped(_) => false,
        }
    }
}

/// How the actors of a set are asked to end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EndRequest {
    Stop,
    Kill,
}

/// What is called at the end of an actor, with its result.
pub(super) type EndCall = Box<dyn FnOnce() + Send>;

/// What is known of a key. Behind two pointers is what few keys have.
pub(super) struct KeyState<K, M> {
    pub(super) tenant: Tenant<M>,
    pub(super) end: Option<Box<EndCall>>,
    line: Option<Box<KeyLine<K, M>>>,
    older: Option<KeySlot>,
    newer: Option<KeySlot>,
    /// When it was used last, by the clock of the set.
    stamp: u64,
    /// Whether it counts against the limit.
    pub(super) is_counted: bool,
    /// Whether the state of the actor was dropped while it was being started.
    pub(super) is_early: bool,
    /// Whether the actor is to be stopped once it was started.
    pub(super) is_removed: bool,
}

/// A message that waits for an actor, and the span in which it was sent.
pub(super) type LinedMessage<M> = (M, SentSpan);

/// What waits for the next actor of a key.
struct KeyLine<K, M> {
    /// The messages for it, which were accepted.
    messages: VecDeque<LinedMessage<M>>,
    /// The key for the function that makes it, if there are messages.
    key: Option<K>,
    /// The tasks that wait until there is an address.
    waits: Option<Arc<Waiters>>,
}

impl<K, M> KeyState<K, M> {
    /// Creates the state of a key whose actor is being started, and counts.
    pub(super) fn starting() -> Self {
        KeyState {
            tenant: Tenant::Starting(None),
            end: None,
            line: None,
            older: None,
            newer: None,
            stamp: 0,
            is_counted: true,
            is_early: false,
            is_removed: false,
        }
    }

    fn line_made(&mut self) -> &mut KeyLine<K, M> {
        self.line.get_or_insert_with(|| {
            Box::new(KeyLine {
                messages: VecDeque::new(),
                key: None,
                waits: None,
            })
        })
    }

    /// Returns the number of messages that wait.
    pub(super) fn waiting(&self) -> usize {
        self.line.as_ref().map_or(0, |line| line.messages.len())
    }

    /// Adds a message for the next actor. Takes the key if none is there.
    pub(super) fn push(&mut self, key: &mut Option<K>, message: LinedMessage<M>) {
        let line = self.line_made();
        line.messages.push_back(message);
        if line.key.is_none() {
            line.key = key.take();
        }
    }

    /// Puts back the message that was taken.
    pub(super) fn push_front(&mut self, message: LinedMessage<M>) {
        self.line_made().messages.push_front(message);
    }

    pub(super) fn pop(&mut self) -> Option<LinedMessage<M>> {
        self.line.as_mut()?.messages.pop_front()
    }

    /// Takes the key for the next actor.
    pub(super) fn take_key(&mut self) -> Option<K> {
        self.line.as_mut()?.key.take()
    }

    /// Keeps the key for the actor after the next one. Returns it if there is one.
    pub(super) fn put_key(&mut self, key: K) -> Option<K> {
        self.line_made().key.replace(key)
    }

    /// Takes all that waits, without the list.
    pub(super) fn take_messages(&mut self) -> (VecDeque<LinedMessage<M>>, Option<K>) {
        match &mut self.line {
            Some(line) => (mem::take(&mut line.messages), line.key.take()),
            None => (VecDeque::new(), None),
        }
    }

    /// Returns the list of those that wait.
    pub(super) fn waits(&mut self) -> Arc<Waiters> {
        let waits = &mut self.line_made().waits;
        let made = || Arc::new(Waiters::new());
        waits.get_or_insert_with(made).clone()
    }

    /// Takes the list of those that wait. The messages stay, and the key for them. It stays without a
    /// message, too, since one may be under way.
    pub(super) fn take_list(&mut self) -> Option<Arc<Waiters>> {
        self.line.as_mut()?.waits.take()
    }

    /// Takes the list of those that wait. Keeps no memory for a line that is empty.
    pub(super) fn take_waits(&mut self) -> (Option<Arc<Waiters>>, Option<K>) {
        let Some(line) = &mut self.line else {
            return (None, None);
        };
        let waits = line.waits.take();
        if !line.messages.is_empty() {
            return (waits, None);
        }
        let key = line.key.take();
        self.line = None;
        (waits, key)
    }
}

/// Drops messages and their key, each by itself: a second panic of a drop would end the process.
pub(super) fn drop_all<K, M>((messages, key): (VecDeque<LinedMessage<M>>, Option<K>)) {
    for message in messages {
        contain(|| drop(message));
    }
    contain(|| drop(key));
}

/// The keys whose hashes lead to one lock.
pub(super) struct KeyShard<K, M> {
    pub(super) keys: Keys<K, KeyState<K, M>>,
    oldest: Option<KeySlot>,
    newest: Option<KeySlot>,
    /// The oldest one that the set holds.
    oldest_held: Option<KeySlot>,
    /// Whether no actor is started any more, and each that was being started is stopped.
    pub(super) is_closed: bool,
    /// Whether no handle of the set is left, so that no actor is held.
    pub(super) is_left: bool,
}

impl<K, M> KeyShard<K, M> {
    pub(super) fn new() -> Self {
        KeyShard {
            keys: Keys::new(),
            oldest: None,
            newest: None,
            oldest_held: None,
            is_closed: false,
            is_left: false,
        }
    }

    /// Holds an open actor, which was started or released. Returns what is to be dropped.
    pub(super) fn hold(&mut self, slot: KeySlot, address: Address<M>, stamp: u64) -> Tenant<M> {
        let before = mem::replace(&mut self.keys[slot].tenant, Tenant::Held(address));
        if let Tenant::Released(_) = before {
            self.unlink(slot);
        }
        self.link(slot, stamp);
        before
    }

    /// Notes a use of an actor that the set holds. It is not moved among those that were used at this
    /// time, which are at the end of the list.
    #[inline]
    pub(super) fn touch(&mut self, slot: KeySlot, stamp: u64) {
        let before = &mut self.keys[slot].stamp;
        if *before == stamp {
            return;
        }
        if self.newest == Some(slot) {
            *before = stamp;
        } else {
            self.unlink(slot);
            self.link(slot, stamp);
        }
    }

    /// Gives up the address of the actor that was used longest ago, if that was before this time.
    pub(super) fn release(&mut self, before: u64) -> Option<Address<M>> {
        let slot = self.oldest_held?;
        let state = &mut self.keys[slot];
        if state.stamp >= before {
            return None;
        }
        self.oldest_held = state.newer;
        let weak = state.tenant.weak()?;
        match mem::replace(&mut state.tenant, Tenant::Released(weak)) {
            Tenant::Held(address) => Some(address),
            _ => unreachable!("it is held, as all that are newer"),
        }
    }

    /// Marks an actor as one that ends. Returns what is to be asked to end, if it has not closed by
    /// itself, and to be dropped. Returns `None` if it was not open.
    pub(super) fn stop(&mut self, slot: KeySlot) -> Option<Tenant<M>> {
        let state = &mut self.keys[slot];
        if let Tenant::Starting(_) | Tenant::Stopped(_) = state.tenant {
            return None;
        }
        let weak = state.tenant.weak()?;
        let before = mem::replace(&mut state.tenant, Tenant::Stopped(Box::new(weak)));
        self.unlink(slot);
        Some(before)
    }

    /// Returns the open actor that was used longest ago, of those that no other code has an address
    /// of, and when that was. Looks at so many of the released ones, and of those that the set holds.
    ///
    /// One of which other code has an address counts as used now, so that the next call looks at
    /// others.
    pub(super) fn oldest_unused(
        &mut self,
        looks: usize,
        now: impl Fn() -> u64,
    ) -> Option<(u64, KeySlot)> {
        for is_held in [false, true] {
            let mut first = None;
            for _ in 0..looks {
                let oldest = self.oldest_of(is_held);
                // It was looked at, as were all others then.
                let Some(slot) = oldest.filter(|_| oldest != first) else {
                    break;
                };
                let state = &self.keys[slot];
                if state.tenant.is_unused() {
                    return Some((state.stamp, slot));
                }
                self.renew(slot, is_held, now());
                first = first.or(oldest);
            }
        }
        None
    }

    /// Returns the oldest one of those that the set holds, or of the released ones.
    fn oldest_of(&self, is_held: bool) -> Option<KeySlot> {
        match is_held {
            true => self.oldest_held,
            false => self.oldest.filter(|_| self.oldest != self.oldest_held),
        }
    }

    /// Makes an actor the newest one of those that the set holds, or of the released ones.
    fn renew(&mut self, slot: KeySlot, is_held: bool, stamp: u64) {
        self.unlink(slot);
        match is_held {
            true => self.link(slot, stamp),
            false => self.link_before(self.oldest_held, slot, stamp),
        }
    }

    /// Returns whether the set has an address of any actor.
    pub(super) fn holds_any(&self) -> bool {
        self.oldest_held.is_some()
    }

    /// Adds an actor that the set holds at the end of the list.
    fn link(&mut self, slot: KeySlot, stamp: u64) {
        self.link_before(None, slot, stamp);
        self.oldest_held.get_or_insert(slot);
    }

    /// Adds an actor before another one, or at the end of the list.
    fn link_before(&mut self, newer: Option<KeySlot>, slot: KeySlot, stamp: u64) {
        let older = match newer {
            Some(newer) => self.keys[newer].older.replace(slot),
            None => self.newest.replace(slot),
        };
        let state = &mut self.keys[slot];
        (state.older, state.newer, state.stamp) = (older, newer, stamp);
        match older {
            Some(older) => self.keys[older].newer = Some(slot),
            None => self.oldest = Some(slot),
        }
    }

    fn unlink(&mut self, slot: KeySlot) {
        let KeyState { older, newer, .. } = self.keys[slot];
        match older {
            Some(older) => self.keys[older].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.keys[newer].older = older,
            None => self.newest = older,
        }
        if self.oldest_held == Some(slot) {
            self.oldest_held = newer;
        }
    }
}
