//! How loopers get locks, keep them and give them back.
//!
//! A looper waits for one lock at a time. A lock that is given back goes to the next request in its
//! line, whose looper is noted and goes on when the change is over.

use std::sync::Arc;

use super::{Entry, Phase, Table};
use crate::looper::effects::Effects;
use crate::looper::error::{LockDetail, LockError, TaskError};
use crate::looper::holders::Hold;
use crate::looper::identity::Key;
use crate::looper::job::Job;
use crate::looper::line::{LockState, Rank};
use crate::looper::place::Place;
use crate::looper::seat::Seat;
use crate::looper::want::{Mode, Want};
use crate::sync::{MutexGuard, mutant};

/// The answer to a request of one lock.
enum Taken {
    Yes,
    /// The request is in the line, with this number.
    Waits(u64),
    No(LockError),
}

impl Table {
    /// Takes the locks that a looper's head has claimed, as [`Table::take_locks`] does.
    pub(super) fn take_claimed(&mut self, key: Key, job: &Arc<Job>, effects: &mut Effects) -> bool {
        job.unclaim_locks();
        let has_all = self.take_locks(key, job, 0, true, effects);
        if has_all {
            // The claim has kept a lock from others that may share it.
            for want in job.wants.as_slice() {
                if !want.mode.is_exclusive {
                    self.pass_on(want.place.state(), effects);
                }
            }
            return true;
        }
        // A lock that the claim has kept from others may be free.
        self.pass_on_all(job, effects);
        if self.at(key).head.is_none() {
            self.prepare(key, effects);
        }
        false
    }

    /// Passes on the locks of a job that are free.
    fn pass_on_all(&mut self, job: &Job, effects: &mut Effects) {
        for want in job.wants.as_slice() {
            self.pass_on(want.place.state(), effects);
        }
    }

    /// Removes a head that is ready and whose work was taken.
    pub(super) fn drop_ready(&mut self, key: Key, effects: &mut Effects) {
        let entry = self.at(key);
        let (Phase::Ready { has_locks }, Some(job)) = (entry.phase, entry.head.clone()) else {
            return;
        };
        self.ready.remove(job.priority, key);
        self.halted.retain(|it| *it != key);
        if has_locks {
            return self.drop_head(key, usize::MAX, effects);
        }
        job.unclaim_locks();
        self.drop_head(key, 0, effects);
        self.pass_on_all(&job, effects);
    }

    /// Takes the locks of a looper's head, from this one on. Returns whether it has all of them.
    ///
    /// Otherwise the looper waits, or the task was refused and the looper has no head.
    pub(super) fn take_locks(
        &mut self,
        key: Key,
        job: &Arc<Job>,
        from: usize,
        has_claimed: bool,
        effects: &mut Effects,
    ) -> bool {
        for at in from..job.wants.as_slice().len() {
            let error = match self.take_lock(key, job, at, has_claimed) {
                Taken::Yes => continue,
                Taken::Waits(number) => {
                    let at = u32::try_from(at).expect("a set of fewer than 2^32 locks");
                    self.at(key).phase = Phase::Waiting { at, number };
                    // Nothing but the line depends on a looper without locks.
                    let is_needed = at > 0 || self.is_needed(key);
                    match is_needed.then(|| self.judge(key)).flatten() {
                        None => return false,
                        Some(deadlock) => TaskError::Deadlock(deadlock),
                    }
                }
                Taken::No(error) => TaskError::Lock(error),
            };
            job.body.take(error, false);
            self.drop_head(key, at, effects);
            return false;
        }
        true
    }

    fn take_lock(&mut self, key: Key, job: &Job, at: usize, has_claimed: bool) -> Taken {
        let wants = job.wants.as_slice();
        let Want { place, mode } = &wants[at];
        let is_twice =
            at > 0 && std::ptr::addr_eq(&raw const *wants[at - 1].place, &raw const **place);
        let detail = |table: &Table| table.detail(key, place);
        if is_twice {
            return Taken::No(LockError::AlreadyHeld(detail(self)));
        }
        let mut state = place.state();
        let pins = u32::from(place.has_value());
        if mode.is_held {
            return match state.holders.of(key) {
                Some(hold) if !has_mode(hold, *mode) => Taken::No(LockError::NotHeld(detail(self))),
                Some(hold) if hold.is_exclusive && hold.pins > 0 => {
                    Taken::No(LockError::AlreadyHeld(detail(self)))
                }
                Some(hold) => {
                    hold.pins += pins;
                    Taken::Yes
                }
                None => Taken::No(LockError::NotHeld(detail(self))),
            };
        }
        if state.holders.of(key).is_some() {
            return Taken::No(LockError::AlreadyHeld(detail(self)));
        }
        if state.is_closed && !has_claimed {
            return Taken::No(LockError::Closed(detail(self)));
        }
        let number = self.number();
        let rank = Rank::new(job.priority, mode.is_exclusive, number);
        let was_free = state.is_free();
        let how = (mode.is_kept, pins);
        if !state.request(key, rank, how, has_claimed, self.aging) {
            return Taken::Waits(number);
        }
        self.held += usize::from(was_free);
        Taken::Yes
    }

    fn detail(&self, key: Key, place: &Place) -> LockDetail {
        let looper = &self.loopers[key as usize].seat.identity;
        LockDetail::new(looper, &place.identity)
    }

    /// Lets a looper go on that was granted the lock for which it waited.
    pub(super) fn go_on(&mut self, key: Key, effects: &mut Effects) {
        let entry = self.at(key);
        let (Phase::Waiting { at, .. }, Some(job)) = (entry.phase, entry.head.clone()) else {
            return;
        };
        if self.take_locks(key, &job, at as usize + 1, false, effects) {
            self.is_ready(key, true, effects);
        } else if self.at(key).head.is_none() {
            self.prepare(key, effects);
        }
    }

    /// Removes a head whose work was taken, and gives back the locks that it has: so many.
    pub(super) fn drop_head(&mut self, key: Key, taken: usize, effects: &mut Effects) {
        let entry = self.at(key);
        let Some(job) = entry.head.take() else { return };
        let phase = std::mem::replace(&mut entry.phase, Phase::Idle);
        if let Phase::Waiting { at, number } = phase {
            let want = &job.wants.as_slice()[at as usize];
            let rank = Rank::new(job.priority, want.mode.is_exclusive, number);
            let mut state = want.place.state();
            state.leave(rank);
            if !mutant("a_cancelled_request_frees_nothing") {
                self.pass_on(state, effects);
            }
        }
        self.give_back(key, &job, taken, false, effects);
        self.meets(job.deadline(), effects);
        effects.over(job);
    }

    /// Gives back the first locks of a task: so many. `has_begun`: the task ran.
    pub(super) fn give_back(
        &mut self,
        key: Key,
        job: &Job,
        count: usize,
        has_begun: bool,
        effects: &mut Effects,
    ) {
        let uses_guards = has_begun && job.is_owning;
        for Want { place, mode } in job.wants.as_slice().iter().take(count) {
            let mut state = place.state();
            let Some(hold) = state.holders.of(key) else {
                continue;
            };
            if place.has_value() && !uses_guards {
                hold.pins -= 1;
            }
            if !has_begun && !mode.is_held {
                hold.is_kept = false;
            }
            if hold.is_kept {
                self.at(key).keep(place);
                continue;
            }
            if let Some(ticket) = hold.let_go() {
                self.release(state, ticket, effects);
            }
        }
    }

    /// Removes a hold, and hands the lock on.
    fn release(
        &mut self,
        mut state: MutexGuard<'_, LockState>,
        ticket: u32,
        effects: &mut Effects,
    ) {
        state.holders.remove(ticket);
        self.released(state, effects);
    }

    /// Hands on a lock whose hold was removed.
    fn released(&mut self, state: MutexGuard<'_, LockState>, effects: &mut Effects) {
        self.held -= usize::from(state.is_free());
        self.pass_on(state, effects);
    }

    /// Grants a lock to the requests in its line that can have it now.
    fn pass_on(&mut self, mut state: MutexGuard<'_, LockState>, effects: &mut Effects) {
        let was_free = state.is_free();
        while let Some(key) = state.hand_on(self.aging) {
            self.granted.push_back(key);
        }
        self.held += usize::from(was_free && !state.is_free());
        effects.wake_all(state.take_closer());
    }

    /// Takes locks for a looper that keeps them, all or none. Returns whether it has them.
    pub(in crate::looper) fn attempt(
        &mut self,
        seat: &Arc<Seat>,
        wants: &[Want],
    ) -> Result<bool, LockError> {
        let is_open = self.entry(seat).is_some_and(|entry| !entry.is_closed) && !self.is_closed;
        let mut is_free = true;
        for (at, Want { place, mode }) in wants.iter().enumerate() {
            let detail = || LockDetail::new(&seat.identity, &place.identity);
            if !is_open {
                return Err(LockError::Closed(detail()));
            }
            let is_twice = at > 0 && Arc::ptr_eq(&wants[at - 1].place, place);
            let mut state = place.state();
            match state.holders.of(seat.key) {
                Some(hold) if mode.is_held && has_mode(hold, *mode) => continue,
                _ if is_twice => return Err(LockError::AlreadyHeld(detail())),
                None if !mode.is_held => {}
                Some(_) if !mode.is_held => return Err(LockError::AlreadyHeld(detail())),
                _ => return Err(LockError::NotHeld(detail())),
            }
            if state.is_closed {
                return Err(LockError::Closed(detail()));
            }
            is_free &= state.would_grant(mode.is_exclusive);
        }
        for Want { place, mode } in wants.iter().filter(|want| is_free && !want.mode.is_held) {
            let mut state = place.state();
            self.held += usize::from(state.is_free());
            state.attempt(seat.key, mode.is_exclusive);
            self.at(seat.key).keep(place);
        }
        Ok(is_free)
    }

    /// Gives up a lock of a looper: at once or, if its value is in use, when that use ends.
    pub(in crate::looper) fn unlock(
        &mut self,
        seat: &Arc<Seat>,
        place: &Place,
        effects: &mut Effects,
    ) -> Result<(), LockError> {
        let not_held = || LockError::NotHeld(LockDetail::new(&seat.identity, &place.identity));
        let entry = self.entry(seat).ok_or_else(not_held)?;
        let uses = entry.uses(place);
        let kept = entry.forget(place);
        let mut state = place.state();
        let hold = state.holders.of(seat.key).filter(|hold| !hold.is_given_up);
        let hold = hold.ok_or_else(not_held)?;
        hold.is_kept = false;
        hold.is_given_up = uses;
        let released = if uses && hold.pins > 0 {
            None
        } else {
            hold.let_go()
        };
        if let Some(ticket) = released {
            self.release(state, ticket, effects);
        }
        if let Some(kept) = kept {
            effects.release_place(kept);
        }
        Ok(())
    }

    /// Gives up a lock that a looper kept, at the looper's end.
    pub(super) fn end_hold(&mut self, key: Key, place: Arc<Place>, effects: &mut Effects) {
        let mut state = place.state();
        let released = state.holders.of(key).and_then(|hold| {
            hold.is_kept = false;
            hold.let_go()
        });
        match released {
            Some(ticket) => self.release(state, ticket, effects),
            None => drop(state),
        }
        effects.release_place(place);
    }

    /// Notes that a guard was dropped.
    pub(in crate::looper) fn drop_guard(
        &mut self,
        place: &Place,
        ticket: u32,
        effects: &mut Effects,
    ) {
        self.guards -= 1;
        let mut state = place.state();
        if state.holders.unpin(ticket) {
            self.released(state, effects);
        }
        if self.world_may_run() {
            self.summon(effects);
        }
    }
}

impl Job {
    /// Claims all locks of the job if they are free. Returns whether they are.
    ///
    /// A job with a deadline takes its locks instead, since the deadline is met by that.
    pub(super) fn claim_locks(&self) -> bool {
        let wants = self.wants.as_slice();
        let is_claimed = |want: &Want| !want.mode.is_held && want.place.state().claim();
        let claimed = match self.deadline() {
            None => wants.iter().take_while(|want| is_claimed(want)).count(),
            Some(_) => 0,
        };
        if claimed < wants.len() {
            let claims = wants[..claimed].iter();
            claims.for_each(|want| want.place.state().unclaim());
        }
        claimed == wants.len()
    }

    /// Ends the claims on all locks of the job.
    fn unclaim_locks(&self) {
        let wants = self.wants.as_slice();
        wants.iter().for_each(|want| want.place.state().unclaim());
    }
}

/// Returns whether a lock is held in a mode that serves the request.
fn has_mode(hold: &Hold, mode: Mode) -> bool {
    hold.is_exclusive || !mode.is_exclusive
}

impl Entry {
    pub(super) fn keeps_locks(&self) -> bool {
        let extras = self.extras.as_ref();
        extras.is_some_and(|extras| !extras.kept.is_empty())
    }

    fn keep(&mut self, place: &Arc<Place>) {
        let kept = self.extras().kept.entry(place.identity.id);
        kept.or_insert_with(|| place.clone());
    }

    /// Removes a lock from those that the looper keeps.
    fn forget(&mut self, place: &Place) -> Option<Arc<Place>> {
        self.extras.as_mut()?.kept.remove(&place.identity.id)
    }

    /// Returns whether the head has this lock in its set, and has it already.
    fn uses(&self, place: &Place) -> bool {
        let taken = match self.phase {
            Phase::Waiting { at, .. } => at as usize,
            Phase::Ready { has_locks: false } => 0,
            _ => usize::MAX,
        };
        let wants = self.head.iter().flat_map(|job| job.wants.as_slice());
        let is_it = |want: &Want| std::ptr::addr_eq(Arc::as_ptr(&want.place), &raw const *place);
        wants.take(taken).any(is_it)
    }
}
