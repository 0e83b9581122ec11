//! How loopers get locks, keep them and give them back.
//!
//! A looper waits for one lock at a time. A lock that is given back goes to the next request in its
//! line, whose looper is noted and goes on when the change is over.

use std::collections::VecDeque;
use std::sync::Arc;

use super::LooperTable;
use super::line::{LockHold, LockState, Rank};
use crate::looper::cell::{LockCell, LooperCell, LooperPhase, LooperState, Want};
use crate::looper::error::{LockDetail, LockError, TaskError};
use crate::looper::job::PostedJob;
use crate::looper::monitor::FollowUp;
use crate::sync::mutant;

impl LooperTable {
    /// Takes the locks that a looper's head has booked, as [`LooperTable::take_locks`] does.
    ///
    /// The bookings of a set end before its first lock is requested. That of a single lock ends in
    /// `take_lock`, in the section of its request, which also passes a shared lock on.
    pub(super) fn take_booked(&mut self, job: &Arc<PostedJob>, follow_up: &mut FollowUp) -> bool {
        let wants = job.wants();
        let is_set = wants.len() > 1;
        if is_set {
            job.unbook_locks();
        }
        if self.take_locks(job, 0, true, follow_up) {
            // The bookings of a set have kept shared locks from others; a single one was passed on.
            for want in wants.iter().filter(|want| is_set && !want.is_exclusive) {
                self.pass_on(&want.lock, follow_up);
            }
            return true;
        }
        // A lock that the booking has kept from others may be free.
        for want in wants {
            self.pass_on(&want.lock, follow_up);
        }
        if job.looper.with(|state| state.head.is_none()) {
            self.prepare(job.looper.key, follow_up);
        }
        false
    }

    /// Removes a head that is ready and whose work was taken.
    pub(super) fn drop_ready(
        &mut self,
        job: &Arc<PostedJob>,
        has_locks: bool,
        follow_up: &mut FollowUp,
    ) {
        let key = job.looper.key;
        self.ready.remove(job.priority, key);
        self.halted.retain(|it| *it != key);
        if has_locks {
            return self.drop_head(job, usize::MAX, follow_up);
        }
        job.unbook_locks();
        self.drop_head(job, 0, follow_up);
        for want in job.wants() {
            self.pass_on(&want.lock, follow_up);
        }
    }

    /// Takes the locks of a looper's head, from this one on. Returns whether it has all of them.
    ///
    /// Otherwise the looper waits, or the task was refused and the looper has no head.
    pub(super) fn take_locks(
        &mut self,
        job: &Arc<PostedJob>,
        from: usize,
        has_booked: bool,
        follow_up: &mut FollowUp,
    ) -> bool {
        for at in from..job.wants().len() {
            let error = match self.take_lock(job, at, has_booked, follow_up) {
                Ok(None) => continue,
                Ok(Some(number)) => {
                    let key = job.looper.key;
                    let waits = u32::try_from(at).expect("a set of fewer than 2^32 locks");
                    let phase = LooperPhase::Waiting { at: waits, number };
                    job.looper.set_phase(phase);
                    // Nothing but the line depends on a looper without locks.
                    let is_needed = at > 0 || self.is_needed(&job.looper);
                    match is_needed.then(|| self.judge(key)).flatten() {
                        None => return false,
                        Some(deadlock) => TaskError::Deadlock(deadlock),
                    }
                }
                Err(error) => TaskError::Lock(error),
            };
            job.body.take(error, false);
            self.drop_head(job, at, follow_up);
            return false;
        }
        true
    }

    /// Takes one of the locks. If the request is in the line instead, returns its number.
    ///
    /// A booking on a single lock ends here, in the same section; others with whom the lock is shared
    /// get it at once.
    fn take_lock(
        &mut self,
        job: &PostedJob,
        at: usize,
        has_booked: bool,
        follow_up: &mut FollowUp,
    ) -> Result<Option<u64>, LockError> {
        let (wants, looper) = (job.wants(), &job.looper);
        let want = &wants[at];
        let detail = || LockDetail::new(&**looper, &*want.lock);
        if at > 0 && Arc::ptr_eq(&wants[at - 1].lock, &want.lock) {
            return Err(LockError::AlreadyHeld(detail()));
        }
        let pins = u32::from(want.lock.has_value);
        let ends_booking = has_booked && wants.len() == 1;
        want.lock.with(|state| {
            if ends_booking {
                state.unbook();
            }
            let hold = state.hold_of(looper.key);
            // A lock that the looper keeps is used once more, in its mode or a lower one.
            if want.is_held {
                let Some(hold) = hold.filter(|hold| hold.is_exclusive || !want.is_exclusive) else {
                    return Err(LockError::NotHeld(detail()));
                };
                if hold.is_exclusive && hold.pins > 0 {
                    return Err(LockError::AlreadyHeld(detail()));
                }
                hold.pins += pins;
                return Ok(None);
            }
            if hold.is_some() {
                return Err(LockError::AlreadyHeld(detail()));
            }
            if state.is_closed && !has_booked {
                return Err(LockError::Closed(detail()));
            }
            // Any other request is granted, or gets a rank in the line.
            let number = self.number();
            let rank = Rank::new(job.priority, want.is_exclusive, number);
            let hold = LockHold::new(looper.key, pins, want.is_exclusive, want.is_kept);
            let was_free = state.is_free();
            if !state.request(hold, rank, has_booked, self.aging) {
                return Ok(Some(number));
            }
            self.held += usize::from(was_free);
            if ends_booking && !want.is_exclusive {
                self.grant(state, follow_up);
            }
            Ok(None)
        })
    }

    /// Lets a looper go on that was granted the lock for which it waited.
    pub(super) fn was_granted(&mut self, key: u32, follow_up: &mut FollowUp) {
        let (phase, head) = self.at(key).with(|state| (state.phase, state.head.clone()));
        let (LooperPhase::Waiting { at, .. }, Some(job)) = (phase, head) else {
            return;
        };
        if self.take_locks(&job, at as usize + 1, false, follow_up) {
            self.make_ready(&job, follow_up);
        } else if job.looper.with(|state| state.head.is_none()) {
            self.prepare(key, follow_up);
        }
    }

    /// Removes a head whose work was taken, and gives back the locks that it has: so many. The
    /// caller prepares the next one.
    pub(super) fn drop_head(
        &mut self,
        job: &Arc<PostedJob>,
        taken: usize,
        follow_up: &mut FollowUp,
    ) {
        let phase = job.looper.with(|state| {
            state.head = None;
            // Not idle, so that a post leaves the table alone until the looper is prepared.
            std::mem::replace(&mut state.phase, LooperPhase::Posted)
        });
        // If this lock was granted and the next one refused, the request has left the line already.
        if let LooperPhase::Waiting { at, number } = phase {
            let want = &job.wants()[at as usize];
            want.lock.with(|state| {
                state.leave(Rank::new(job.priority, want.is_exclusive, number));
                if !mutant("a_cancelled_request_frees_nothing") {
                    self.grant(state, follow_up);
                }
            });
        }
        self.give_back(job, taken, false, follow_up);
        self.meets(job, follow_up);
        follow_up.over(job.clone());
    }

    /// Gives back the first locks of a task: so many. `ran`: a lane has called it.
    pub(super) fn give_back(
        &mut self,
        job: &PostedJob,
        count: usize,
        ran: bool,
        follow_up: &mut FollowUp,
    ) {
        let looper = &job.looper;
        let uses_guards = ran && job.is_owning;
        for want in job.wants().iter().take(count) {
            let mut is_kept = false;
            want.lock.with(|state| {
                // A task may have unlocked it, and its guard may have released it since. The use of a task
                // with guards has passed to its guard, which ends it.
                let was_removed = state.let_go(looper.key, |hold| {
                    if want.lock.has_value && !uses_guards {
                        hold.pins -= 1;
                    }
                    if !ran && !want.is_held {
                        hold.is_kept = false;
                    }
                    is_kept = hold.is_kept;
                    !is_kept
                });
                if was_removed {
                    self.released(state, follow_up);
                }
            });
            if is_kept {
                looper.with(|state| state.keep(&want.lock));
            }
        }
    }

    /// Hands on a lock whose hold was removed.
    fn released(&mut self, state: &mut LockState, follow_up: &mut FollowUp) {
        self.held -= usize::from(state.is_free());
        self.grant(state, follow_up);
    }

    /// Grants a lock to the requests in its line that can have it now.
    fn grant(&mut self, state: &mut LockState, follow_up: &mut FollowUp) {
        let was_free = state.is_free();
        while let Some(key) = state.hand_on(self.aging) {
            self.granted.push_back(key);
        }
        self.held += usize::from(was_free && !state.is_free());
        follow_up.wake_all(state.take_closer());
    }

    fn pass_on(&mut self, lock: &LockCell, follow_up: &mut FollowUp) {
        lock.with(|state| self.grant(state, follow_up));
    }

    /// Takes locks for a looper that keeps them, all or none. Returns whether it has them.
    pub(in crate::looper) fn attempt(
        &mut self,
        looper: &LooperCell,
        wants: &[Want],
    ) -> Result<bool, LockError> {
        let is_open = looper.with(|state| !state.is_closed);
        // First all locks are looked at, then all are taken, in one change of the table.
        let mut is_free = true;
        for (at, want) in wants.iter().enumerate() {
            let detail = || LockDetail::new(looper, &*want.lock);
            if !is_open {
                return Err(LockError::Closed(detail()));
            }
            let is_twice = at > 0 && Arc::ptr_eq(&wants[at - 1].lock, &want.lock);
            want.lock.with(|state| {
                match state.hold_of(looper.key) {
                    Some(hold) if want.is_held && (hold.is_exclusive || !want.is_exclusive) => {
                        return Ok(());
                    }
                    _ if is_twice => return Err(LockError::AlreadyHeld(detail())),
                    None if !want.is_held => {}
                    Some(_) if !want.is_held => return Err(LockError::AlreadyHeld(detail())),
                    _ => return Err(LockError::NotHeld(detail())),
                }
                if state.is_closed {
                    return Err(LockError::Closed(detail()));
                }
                is_free &= state.would_grant(want.is_exclusive);
                Ok(())
            })?;
        }
        for want in wants.iter().filter(|want| is_free && !want.is_held) {
            want.lock.with(|state| {
                self.held += usize::from(state.is_free());
                state.keep(looper.key, want.is_exclusive);
            });
            looper.with(|state| state.keep(&want.lock));
        }
        Ok(is_free)
    }

    /// Gives up a lock of a looper: at once or, if its value is in use, when that use ends.
    pub(in crate::looper) fn unlock(
        &mut self,
        looper: &LooperCell,
        lock: &LockCell,
        follow_up: &mut FollowUp,
    ) -> Result<(), LockError> {
        let not_held = || LockError::NotHeld(LockDetail::new(looper, lock));
        let (uses, kept) = looper.with(|state| (state.uses(lock), state.kept.remove(&lock.id)));
        let unlocked = lock.with(|state| {
            let mut unlocked = Err(not_held());
            let was_removed = state.let_go(looper.key, |hold| {
                if hold.is_given_up {
                    return false;
                }
                // What uses the value keeps the lock; its end releases it.
                unlocked = Ok(());
                hold.is_kept = false;
                hold.is_given_up = uses;
                !uses || hold.pins == 0
            });
            if was_removed {
                self.released(state, follow_up);
            }
            unlocked
        });
        if let Some(kept) = kept {
            follow_up.release_lock(kept);
        }
        unlocked
    }

    /// Gives up a lock that a looper kept, at the looper's end.
    pub(super) fn end_hold(&mut self, key: u32, lock: Arc<LockCell>, follow_up: &mut FollowUp) {
        lock.with(|state| {
            let was_removed = state.let_go(key, |hold| {
                hold.is_kept = false;
                true
            });
            if was_removed {
                self.released(state, follow_up);
            }
        });
        follow_up.release_lock(lock);
    }

    /// Notes that a guard was dropped.
    pub(in crate::looper) fn drop_guard(
        &mut self,
        lock: &LockCell,
        looper: u32,
        ticket: u32,
        follow_up: &mut FollowUp,
    ) {
        self.guards -= 1;
        lock.with(|state| {
            if state.unpin(looper, ticket) {
                self.released(state, follow_up);
            }
        });
        if self.world_task_may_run() {
            self.summon(follow_up);
        }
    }
}

impl PostedJob {
    /// Books all locks of the job, or none. Returns whether it has. Others may book them, too.
    ///
    /// A job with a deadline takes its locks instead, since the deadline is met by that. So does one
    /// that uses a lock which its looper holds.
    pub(super) fn book_locks(&self) -> bool {
        let wants = self.wants();
        let book = |want: &Want| !want.is_held && want.lock.with(LockState::book);
        let booked = wants.iter().take_while(|want| book(want)).count();
        if booked < wants.len() {
            let bookings = wants[..booked].iter();
            bookings.for_each(|want| want.lock.with(LockState::unbook));
        }
        booked == wants.len()
    }

    /// Ends the bookings on all locks of the job.
    fn unbook_locks(&self) {
        let wants = self.wants().iter();
        wants.for_each(|want| want.lock.with(LockState::unbook));
    }
}

impl LooperState {
    /// Makes the next job that was not taken the head, if there is none.
    pub(super) fn find_head(&mut self, follow_up: &mut FollowUp) {
        while self.head.is_none()
            && let Some(job) = self.rest.pop_front()
        {
            if job.body.is_over() {
                self.taken_in_rest -= 1;
                follow_up.release(job);
            } else {
                self.head = Some(job);
            }
        }
        if self.rest.is_empty() && self.rest.capacity() > 0 {
            self.rest = VecDeque::new();
        }
    }

    fn keep(&mut self, lock: &Arc<LockCell>) {
        let kept = self.kept.entry(lock.id);
        kept.or_insert_with(|| lock.clone());
    }

    /// Returns whether the head has this lock in its set, and has it already.
    fn uses(&self, lock: &LockCell) -> bool {
        let taken = match self.phase {
            LooperPhase::Waiting { at, .. } => at as usize,
            LooperPhase::Ready { has_locks: false } | LooperPhase::Posted => 0,
            _ => usize::MAX,
        };
        let wants = self.head.iter().flat_map(|job| job.wants());
        let mut wants = wants.take(taken);
        wants.any(|want| std::ptr::eq(&*want.lock, lock))
    }
}
