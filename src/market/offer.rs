//! A job on its way to the board, and the producer's place in the line.
//!
//! Only the first producer in the line may add its job, so the others wait for it. A place that is
//! dropped lets the next producer go first.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::board::{Keyed, Ticket};
use super::cell::{JobCell, Work};
use super::core::{Aftermath, Core, Phase, State, Waiting};
use super::error::TryOfferError;
use super::job::Job;
use super::job_handle::JobHandle;

/// A job that is being offered.
pub(super) struct Offered<K: Eq + Send + 'static, F, T> {
    core: Arc<Core<K>>,
    key: Option<Keyed<K>>,
    priority: u32,
    cell: Arc<JobCell<F, T>>,
    /// The place in the line.
    place: Option<u64>,
}

/// An accepted job, or one that was not.
type Added<K, F, T> = Result<JobHandle<T>, TryOfferError<Job<K, F>>>;

/// The reason why a job was not accepted.
#[derive(Clone, Copy)]
enum Refused {
    Full,
    Stopping,
    KeyBusy,
}

impl<K, F, T> Offered<K, F, T>
where
    K: Hash + Eq + Send + 'static,
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    pub(super) fn new(core: &Arc<Core<K>>, job: Job<K, F>) -> Self {
        let hash = |key: &K| core.hasher.hash_one(key);
        Offered {
            key: job.key.map(|key| Keyed::new(hash(&key), key)),
            priority: job.priority,
            cell: JobCell::new(job.work),
            core: core.clone(),
            place: None,
        }
    }

    /// Puts the job on the board now, or gives it back.
    pub(super) fn now(mut self) -> Added<K, F, T> {
        let core = self.core.clone();
        match core.change(|state, _| self.add(state)) {
            Ok(ticket) => Ok(self.handle(ticket)),
            Err(why) => Err(self.refused(why)),
        }
    }

    /// Puts the job on the board when there is room, or gives it back. It is never full then.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<Added<K, F, T>> {
        let mut waker = Some(cx.waker().clone());
        let core = self.core.clone();
        let added = core.change(|state, after| {
            let added = self.add(state);
            if !matches!(added, Err(Refused::Full)) {
                self.leave(state, after);
                return Some(added);
            }
            let place = *self.place.get_or_insert_with(|| state.arrive());
            after
                .stale
                .extend(state.line.insert(place, waker.take()).flatten());
            None
        });
        match added {
            None => Poll::Pending,
            Some(Ok(ticket)) => Poll::Ready(Ok(self.handle(ticket))),
            Some(Err(why)) => Poll::Ready(Err(self.refused(why))),
        }
    }

    fn add(&mut self, state: &mut State<K>) -> Result<Ticket, Refused> {
        if state.phase > Phase::Open {
            return Err(Refused::Stopping);
        }
        let first = state.line.first_key_value().map(|(place, _)| *place);
        if state.board.len() >= self.core.limits.jobs || first.is_some() && first != self.place {
            return Err(Refused::Full);
        }
        let seat = state.board.seat(&mut self.key);
        if !seat.is_admitted() {
            return Err(Refused::KeyBusy);
        }
        let work: Arc<dyn Work> = self.cell.clone();
        Ok(seat.add(self.priority, Waiting::new(work)))
    }

    fn handle(&self, ticket: Ticket) -> JobHandle<T> {
        JobHandle::new(self.cell.clone(), self.core.clone(), ticket)
    }

    fn refused(&mut self, why: Refused) -> TryOfferError<Job<K, F>> {
        let work = self.cell.recover();
        let job = Job {
            work: work.expect("a job that was not accepted has its work"),
            key: self.key.take().map(Keyed::into_inner),
            priority: self.priority,
        };
        match why {
            Refused::Full => TryOfferError::Full(job),
            Refused::Stopping => TryOfferError::Stopping(job),
            Refused::KeyBusy => TryOfferError::KeyBusy(job),
        }
    }
}

impl<K: Eq + Send + 'static, F, T> Offered<K, F, T> {
    /// Leaves the line.
    fn leave(&mut self, state: &mut State<K>, after: &mut Aftermath<K>) {
        if let Some(place) = self.place.take() {
            after.stale.extend(state.line.remove(&place).flatten());
        }
    }
}

impl<K: Eq + Send + 'static, F, T> Drop for Offered<K, F, T> {
    fn drop(&mut self) {
        if self.place.is_some() {
            let core = self.core.clone();
            core.change(|state, after| self.leave(state, after));
        }
    }
}
