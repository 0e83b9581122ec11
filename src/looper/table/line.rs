//! The state of a lock: its value, who holds it, and who waits in its line.
//!
//! The line is sorted by rank: the higher priority first, then exclusive before shared, then the
//! earlier request. Only a request that would be first in the line is granted at once, so no
//! request overtakes one of a higher rank. A holder is found by its looper, without a look at the
//! others. An exclusive one is alone.

use std::any::Any;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::sync::{look, mutant};
use crate::waiters::Waiters;

pub(in crate::looper) struct LockState {
    /// It is here unless a guard or the world has it.
    pub(in crate::looper) value: Option<Arc<dyn Any + Send + Sync>>,
    /// Most locks never have a second holder.
    holder: Option<LockHold>,
    rare: Option<Box<RareLockState>>,
    /// The number of requests that found the lock free and have booked it. A booking excludes no
    /// other one: the task that begins first takes the lock. The others enter the line when they
    /// begin, behind those of their priority. Meanwhile nothing else is granted.
    bookings: u32,
    pub(super) is_closed: bool,
    /// It was closed and free, so its value was given back.
    pub(in crate::looper) is_over: bool,
}

/// The lock in the hands of a looper, or of guards that were carried out of their task.
pub(super) struct LockHold {
    looper: u32,
    /// Tells apart the holds that a looper has at the same time. A later one may have the same ticket.
    ticket: u32,
    /// The uses of the value: one for each task that has the lock. A closure's use ends in `give_back`.
    /// That of an async task passes to its guard, and ends with it.
    pub(super) pins: u32,
    /// The looper has let go of the lock. Only guards hold it.
    has_left: bool,
    pub(super) is_exclusive: bool,
    /// The looper keeps the lock until it is unlocked.
    pub(super) is_kept: bool,
    /// The looper has unlocked it while its task uses the value.
    pub(super) is_given_up: bool,
}

/// What few locks have.
#[derive(Default)]
struct RareLockState {
    /// The holders beside the first one, all of them shared, by looper and ticket.
    others: BTreeMap<(u32, u32), LockHold>,
    /// The requests in the line, each with the hold that it becomes when it is granted.
    waiting: BTreeMap<Rank, LockHold>,
    /// The number of requests that were granted while others waited. 0 if none waits.
    turns: u32,
    /// The task that closes the lock.
    closer: Option<Arc<Waiters>>,
}

/// The rank of a request in the line. The highest rank sorts first: of two, the smaller value is the
/// higher rank. `below` is how far the priority is below the highest possible.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    below: u8,
    is_shared: bool,
    number: u64,
}

impl Rank {
    pub(super) fn new(priority: u8, is_exclusive: bool, number: u64) -> Self {
        Rank {
            below: u8::MAX - priority,
            is_shared: !is_exclusive,
            number,
        }
    }
}

impl LockHold {
    pub(super) fn new(looper: u32, pins: u32, is_exclusive: bool, is_kept: bool) -> Self {
        LockHold {
            looper,
            ticket: 0,
            pins,
            has_left: false,
            is_exclusive,
            is_kept,
            is_given_up: false,
        }
    }

    /// Returns the looper, or `None` if only guards hold the lock.
    pub(super) fn looper(&self) -> Option<u32> {
        (!self.has_left).then_some(self.looper)
    }

    fn id(&self) -> (u32, u32) {
        (self.looper, self.ticket)
    }
}

impl LockState {
    pub(in crate::looper) fn new(value: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        LockState {
            value,
            holder: None,
            rare: None,
            bookings: 0,
            is_closed: false,
            is_over: false,
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.holder.is_none() && !self.has_others()
    }

    fn has_others(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| !rare.others.is_empty())
    }

    fn has_line(&self) -> bool {
        let rare = self.rare.as_ref();
        rare.is_some_and(|rare| !rare.waiting.is_empty())
    }

    /// Refuses later requests. Returns whether it did not before.
    pub(in crate::looper) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.is_closed, true)
    }

    /// Returns whether nothing has the lock or is about to take it.
    pub(in crate::looper) fn is_unused(&self) -> bool {
        self.is_free() && self.bookings == 0
    }

    // -- holders --------------------------------------------------------------------------------

    /// Returns whether one more holder can be added.
    fn has_room(&self, is_exclusive: bool) -> bool {
        match &self.holder {
            Some(holder) => !holder.is_exclusive && !is_exclusive,
            None => !is_exclusive || !self.has_others(),
        }
    }

    pub(super) fn holds(&self) -> impl Iterator<Item = &LockHold> {
        let others = self.rare.iter().flat_map(|rare| rare.others.values());
        self.holder.iter().chain(others).inspect(|_| look())
    }

    /// Returns the latest hold of a looper, unless the looper has let go of it.
    pub(super) fn hold_of(&mut self, looper: u32) -> Option<&mut LockHold> {
        let first = self.holder.as_mut().filter(|hold| hold.looper == looper);
        let rare = self.rare.as_mut();
        let latest = rare.and_then(|rare| rare.latest_of(looper)).or(first);
        latest.inspect(|_| look()).filter(|hold| !hold.has_left)
    }

    pub(in crate::looper) fn is_held_by(&mut self, looper: u32) -> bool {
        self.hold_of(looper).is_some()
    }

    /// Returns the ticket of a looper's hold.
    pub(in crate::looper) fn ticket(&mut self, looper: u32) -> u32 {
        self.hold_of(looper).map_or(0, |hold| hold.ticket)
    }

    /// Adds a hold, and gives it a ticket that is greater than those of the same looper.
    fn add_hold(&mut self, mut hold: LockHold) {
        if self.is_free() {
            self.holder = Some(hold);
            return;
        }
        let rare = self.rare.get_or_insert_default();
        let first = self.holder.as_mut().filter(|it| it.looper == hold.looper);
        let latest = rare.latest_of(hold.looper).or(first);
        hold.ticket = latest.map_or(0, |latest| latest.ticket + 1);
        rare.others.insert(hold.id(), hold);
    }

    fn remove_hold(&mut self, id: (u32, u32)) {
        if self.holder.take_if(|hold| hold.id() == id).is_some() {
            return;
        }
        if let Some(rare) = &mut self.rare {
            rare.others.remove(&id);
        }
        self.free_rare();
    }

    /// Changes the hold of a looper, if it has one, by `update`, which returns whether the looper lets
    /// go of the lock. Returns whether it does and nothing uses the lock, so that it can be handed
    /// on; otherwise the last guard releases it.
    pub(super) fn let_go(
        &mut self,
        looper: u32,
        update: impl FnOnce(&mut LockHold) -> bool,
    ) -> bool {
        let Some(hold) = self.hold_of(looper) else {
            return false;
        };
        if !update(hold) {
            return false;
        }
        hold.has_left = true;
        let (id, has_no_use) = (hold.id(), hold.pins == 0);
        if has_no_use {
            self.remove_hold(id);
        }
        has_no_use
    }

    /// Notes that a guard was dropped, and removes its hold if that was the last use. Returns
    /// whether it was.
    pub(super) fn unpin(&mut self, looper: u32, ticket: u32) -> bool {
        look();
        let id = (looper, ticket);
        let hold = match &mut self.holder {
            Some(hold) if hold.id() == id => Some(hold),
            _ => self.rare.as_mut().and_then(|rare| rare.others.get_mut(&id)),
        };
        let is_over = hold.is_some_and(|hold| {
            hold.pins -= 1;
            hold.pins == 0 && !hold.is_kept
        });
        if is_over {
            self.remove_hold(id);
        }
        is_over
    }

    // -- the line -------------------------------------------------------------------------------

    /// Returns the list of the task that closes the lock, unless nothing uses the lock.
    pub(in crate::looper) fn closer(&mut self) -> Option<Arc<Waiters>> {
        if self.is_unused() {
            return None;
        }
        let rare = self.rare.get_or_insert_default();
        let new = || Arc::new(Waiters::new());
        Some(rare.closer.get_or_insert_with(new).clone())
    }

    /// Takes the list of the task that closes the lock, if nothing has the lock or has booked it.
    pub(super) fn take_closer(&mut self) -> Option<Arc<Waiters>> {
        if !self.is_closed || !self.is_unused() {
            return None;
        }
        let closer = self.rare.as_mut()?.closer.take();
        self.free_rare();
        closer
    }

    /// Returns the loopers in the line before this rank whose request does not go together with
    /// it, up to the nearest exclusive one. That one waits for all before it.
    pub(super) fn ahead(&self, rank: Rank) -> Vec<u32> {
        let mut ahead = Vec::new();
        let rare = self.rare.iter();
        let line = rare.flat_map(|rare| rare.waiting.range(..rank).rev());
        for (other, waiter) in line {
            if !(rank.is_shared && other.is_shared) {
                ahead.push(waiter.looper);
            }
            if !other.is_shared {
                break;
            }
        }
        ahead
    }

    /// Books the lock, if it has no holder and no line and is open. Returns whether it has.
    pub(super) fn book(&mut self) -> bool {
        let is_idle = self.is_free() && !self.has_line() && !self.is_closed;
        self.bookings += u32::from(is_idle);
        is_idle
    }

    /// Ends a booking, before the lock is taken or because it is not needed.
    pub(super) fn unbook(&mut self) {
        self.bookings -= 1;
    }

    /// Grants the lock to a looper, or puts its request into the line. Returns whether it was
    /// granted. A request that had booked the lock came before the others of its priority.
    pub(super) fn request(
        &mut self,
        hold: LockHold,
        rank: Rank,
        has_booked: bool,
        aging: Option<NonZeroU32>,
    ) -> bool {
        let rare = self.rare.as_ref();
        let first = rare.and_then(|rare| rare.first());
        // A booking yields to a higher priority alone. Others yield to bookings, to what is due, and to
        // higher ranks.
        let passes = if has_booked {
            first.is_none_or(|first| rank.below <= first.below)
        } else {
            let is_due = rare.is_some_and(|rare| rare.is_due(aging));
            self.bookings == 0 && !is_due && first.is_none_or(|first| rank < first)
        };
        if !passes || !self.has_room(hold.is_exclusive) {
            let rare = self.rare.get_or_insert_default();
            rare.waiting.insert(rank, hold);
            return false;
        }
        self.add_hold(hold);
        if let Some(rare) = &mut self.rare {
            rare.turns = rare.turns.saturating_add(1);
            self.free_rare();
        }
        true
    }

    /// Returns whether nothing is in the way of a request, and nothing waits.
    pub(super) fn would_grant(&self, is_exclusive: bool) -> bool {
        !self.has_line() && self.bookings == 0 && self.has_room(is_exclusive)
    }

    /// Adds the hold of a looper that keeps the lock, which [`would_grant`](LockState::would_grant)
    /// it.
    pub(super) fn keep(&mut self, looper: u32, is_exclusive: bool) {
        self.add_hold(LockHold::new(looper, 0, is_exclusive, true));
    }

    /// Grants the lock to the next request in the line, if it can be. Returns the looper.
    ///
    /// That is the request of the highest rank or, when it is due, the first one of the lowest
    /// priority and mode. Bookings come first.
    pub(super) fn hand_on(&mut self, aging: Option<NonZeroU32>) -> Option<u32> {
        let rare = self.rare.as_ref().filter(|_| self.bookings == 0)?;
        let is_due = rare.is_due(aging);
        let rank = if is_due { rare.lowest() } else { rare.first() }?;
        // The first one waits for room, and all others behind it.
        let has_room = self.has_room(!rank.is_shared);
        if !has_room && !mutant("a_writer_is_granted_a_lock_that_is_held") {
            return None;
        }
        let rare = self.rare.as_mut()?;
        let hold = rare.waiting.remove(&rank)?;
        rare.turns = match is_due {
            true => 0,
            false => rare.turns.saturating_add(1),
        };
        let looper = hold.looper;
        self.add_hold(hold);
        self.free_rare();
        Some(looper)
    }

    /// Removes a request from the line.
    pub(super) fn leave(&mut self, rank: Rank) {
        if let Some(rare) = &mut self.rare {
            rare.waiting.remove(&rank);
        }
        self.free_rare();
    }

    /// Frees what few locks have, if this lock has nothing of it.
    fn free_rare(&mut self) {
        let Some(rare) = &mut self.rare else { return };
        if rare.waiting.is_empty() {
            rare.turns = 0;
            if rare.others.is_empty() && rare.closer.is_none() {
                self.rare = None;
            }
        }
    }
}

impl RareLockState {
    /// Returns the latest of these holds of a looper.
    fn latest_of(&mut self, looper: u32) -> Option<&mut LockHold> {
        let mut own = self.others.range_mut((looper, 0)..=(looper, u32::MAX));
        own.next_back().map(|(_, hold)| hold)
    }

    /// Returns whether the next grant is due to the lowest rank.
    fn is_due(&self, aging: Option<NonZeroU32>) -> bool {
        let turn = self.turns.saturating_add(1);
        !self.waiting.is_empty() && aging.is_some_and(|aging| turn >= aging.get())
    }

    fn first(&self) -> Option<Rank> {
        self.waiting.first_key_value().map(|(rank, _)| *rank)
    }

    /// Returns the first rank of the lowest priority and mode.
    fn lowest(&self) -> Option<Rank> {
        let (last, _) = self.waiting.last_key_value()?;
        let from = Rank { number: 0, ..*last };
        self.waiting.range(from..).next().map(|(rank, _)| *rank)
    }
}
