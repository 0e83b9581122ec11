//! A job on its way to the board, and the producer's turn in the line.
//!
//! While producers wait, all others wait behind them. Room is given to the first in the line, who
//! then leaves it. Room that is given and not used goes to the next one.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::board::{JobPlace, JobTicket};
use super::cell::{JobCell, Labor, Work};
use super::core::MarketCore;
use super::error::TryOfferError;
use super::job::{Job, JobHandle};
use super::state::{MarketPhase, MarketState, WaitingJob};
use crate::contain::{KeptWaker, contain};
use crate::directory::HashedKey;
use crate::runtime::span_of_current;

/// A job that is being offered.
pub(super) struct Offered<K: Eq + Send + 'static, F, T> {
    core: Arc<MarketCore<K>>,
    key: Option<HashedKey<K>>,
    priority: u32,
    delay: Duration,
    cell: Arc<JobCell<F, T>>,
    /// The number of the job. It keeps its number while it waits for room.
    number: Option<u64>,
    /// The producer waits for room, or was given some.
    is_in_line: bool,
}

impl<K, F, T> Offered<K, F, T>
where
    K: Hash + Eq + Send + 'static,
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    pub(super) fn new(core: &Arc<MarketCore<K>>, job: Job<K, F>) -> Self {
        let hash = |key: &K| core.hasher.hash_one(key);
        Offered {
            key: job.key.map(|key| HashedKey::new(hash(&key), key)),
            priority: job.priority,
            delay: job.delay,
            cell: JobCell::new(Labor {
                work: job.work,
                retry: job.retry,
                span: span_of_current(),
            }),
            core: core.clone(),
            number: None,
            is_in_line: false,
        }
    }

    /// Puts the job on the board now, or gives it back.
    pub(super) fn now(mut self) -> Result<JobHandle<T>, TryOfferError<Job<K, F>>> {
        let core = self.core.clone();
        let added = core.change(|state, _| self.add(state));
        self.finish(added)
    }

    /// Puts the job on the board when there is room, or says why not, for [`finish`](Self::finish). It
    /// is never full then.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<JobTicket, TryOfferError<()>>> {
        let mut waker = Some(KeptWaker::new(cx.waker()));
        let core = self.core.clone();
        core.change(|state, after| {
            let added = self.add(state);
            // The waker goes into the line under the lock, so no room is given in between.
            if matches!(added, Err(TryOfferError::Full(()))) {
                let number = self.number(state);
                self.is_in_line = true;
                let own = waker.take().expect("it was just made");
                after.stale.extend(state.line.insert(number, own));
                return Poll::Pending;
            }
            after.stale.extend(waker.take());
            Poll::Ready(added)
        })
    }

    /// Puts the job on the board, or says why not.
    fn add(&mut self, state: &mut MarketState<K>) -> Result<JobTicket, TryOfferError<()>> {
        if state.phase > MarketPhase::Open {
            self.leave(state);
            return Err(TryOfferError::Stopping(()));
        }
        // A producer that waited may add its job when it was given room, any other one if there is
        // more.
        let number = self.number(state);
        let has_room = match self.is_in_line {
            true => !state.line.contains_key(&number),
            false => state.line.is_empty() && state.has_room(&self.core.limits),
        };
        if !has_room {
            return Err(TryOfferError::Full(()));
        }
        let found = state.board.find(&self.key);
        let added = match state.board.is_admitted(found) {
            true => {
                let work: Arc<dyn Work> = self.cell.clone();
                let place = JobPlace {
                    number,
                    priority: self.priority,
                    due: state.now + self.delay,
                };
                let since = place.due;
                let job = WaitingJob { work, since };
                Ok(state.board.add(found, &mut self.key, place, state.now, job))
            }
            false => Err(TryOfferError::KeyBusy(())),
        };
        self.leave(state);
        added
    }

    /// Returns the handle of a job that was added, or gives the job back.
    pub(super) fn finish(
        &mut self,
        added: Result<JobTicket, TryOfferError<()>>,
    ) -> Result<JobHandle<T>, TryOfferError<Job<K, F>>> {
        let why = match added {
            Ok(ticket) => {
                // A key that the board knows is left over, and its drop may panic.
                let key = self.key.take();
                contain(|| drop(key));
                let (cell, core) = (self.cell.clone(), self.core.clone());
                return Ok(JobHandle::new(cell, core, ticket));
            }
            Err(why) => why,
        };
        let labor = self.cell.recover();
        let Labor { work, retry, .. } = labor.expect("a job that was not accepted has its work");
        let job = Job {
            work,
            key: self.key.take().map(HashedKey::into_inner),
            priority: self.priority,
            delay: self.delay,
            retry,
        };
        Err(match why {
            TryOfferError::Full(()) => TryOfferError::Full(job),
            TryOfferError::Stopping(()) => TryOfferError::Stopping(job),
            TryOfferError::KeyBusy(()) => TryOfferError::KeyBusy(job),
        })
    }
}

impl<K: Eq + Send + 'static, F, T> Offered<K, F, T> {
    /// Returns the number of the job. It has one from its first try on.
    fn number(&mut self, state: &mut MarketState<K>) -> u64 {
        *self.number.get_or_insert_with(|| state.board.number())
    }

    /// Leaves the line, or uses the room that was given. Returns the waker that was in the line.
    fn leave(&mut self, state: &mut MarketState<K>) -> Option<KeptWaker> {
        if !std::mem::take(&mut self.is_in_line) {
            return None;
        }
        let number = self.number(state);
        let waker = state.line.remove(&number);
        if state.phase == MarketPhase::Open {
            state.given -= usize::from(waker.is_none());
        }
        waker
    }
}

impl<K: Eq + Send + 'static, F, T> Drop for Offered<K, F, T> {
    fn drop(&mut self) {
        if self.is_in_line && self.core.is_here() {
            let core = self.core.clone();
            core.change(|state, after| after.stale.extend(self.leave(state)));
        }
    }
}
