//! The requests of an actor that wait for their answers.
//!
//! Each request is one shared node, which is also the waker of its slot. An answer puts the key of
//! its request into a list, and wakes the actor if it waits. So a request is polled once, when its
//! answer is there, and the actor is woken once for many answers.
//!
//! The waker of a slot is registered before the question is delivered. A slot may wake its request
//! once too often; a key without a request is skipped.

use std::mem;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use slab::Slab;

use super::address::Address;
use super::ask::Answer;
use super::source::SourceOrigin;
use super::undelivered::detail_about;
use crate::contain::{KeptWaker, Panic, attempt, contain};
use crate::error::AskError;
use crate::lock::SpinLock;
use crate::sync::Mutex;
use crate::task::TaskInfo;
use crate::tracer::{MessageSource, SentSpan};

/// All requests of one actor that were delivered and not answered.
pub(super) struct InFlight<M> {
    requests: Slab<Arc<dyn Waiting<M>>>,
    /// The keys that the actor has taken out of the list, last one first.
    taken: Vec<u32>,
    answered: Arc<Mutex<AnsweredRequests>>,
    /// Keeps the actor open while a request waits.
    address: Option<Address<M>>,
}

/// The keys of the requests that were answered.
#[derive(Default)]
struct AnsweredRequests {
    keys: Vec<u32>,
    /// The waker of the actor, if it waits for an answer.
    actor: Option<KeptWaker>,
}

/// A request in flight.
pub(super) struct Flight<T, F> {
    key: u32,
    answered: Arc<Mutex<AnsweredRequests>>,
    /// `None` once the request was answered or given up. Used by the actor alone.
    parts: SpinLock<Option<FlightParts<T, F>>>,
}

/// The answer, the actor that was asked, the function that makes a message of the answer, and the
/// span in which the request was made.
pub(super) type FlightParts<T, F> = (Answer<T>, TaskInfo, F, SentSpan);

/// The message for an answer, or the panic of the function that makes it, and where it comes from.
type Answered<M> = (SourceOrigin, Result<M, Panic>);

/// A request in flight, without the type of its answer.
trait Waiting<M>: Send + Sync {
    /// Returns the message for the answer, or the panic of the function that makes it. Returns
    /// `None` if there is no answer.
    fn take(&self) -> Option<Answered<M>>;
    /// Does the same, and registers the waker again if there is no answer.
    fn poll(self: Arc<Self>) -> Option<Answered<M>>;
    /// Drops the request, so that its reply is not wanted. The slot may still have the waker.
    fn give_up(&self);
}

impl<M> InFlight<M> {
    pub(super) fn new() -> Self {
        InFlight {
            requests: Slab::new(),
            taken: Vec::new(),
            answered: Arc::new(Mutex::new(AnsweredRequests::default())),
            address: None,
        }
    }

    /// Keeps the actor open with the address that `own` returns, unless it is kept already.
    pub(super) fn keep_open(&mut self, own: impl FnOnce() -> Address<M>) {
        self.address.get_or_insert_with(own);
    }

    /// Adds a request, whose question is delivered after this call.
    pub(super) fn launch<T, F>(
        &mut self,
        (mut answer, asked, make, span): FlightParts<T, F>,
    ) -> Arc<Flight<T, F>>
    where
        M: 'static,
        T: Send + 'static,
        F: FnOnce(Result<T, AskError>) -> M + Send + 'static,
    {
        let vacant = self.requests.vacant_entry();
        let flight = Arc::new(Flight {
            key: u32::try_from(vacant.key()).expect("fewer than 2^32 requests"),
            answered: self.answered.clone(),
            parts: SpinLock::new(None),
        });
        vacant.insert(flight.clone());
        answer.register(Waker::from(flight.clone()).into());
        flight.put((answer, asked, make, span));
        flight
    }

    /// Removes a request that was not delivered, and returns its parts.
    pub(super) fn take_back<T, F>(&mut self, flight: &Flight<T, F>) -> Option<FlightParts<T, F>> {
        self.remove(flight.key);
        flight.parts.with(Option::take)
    }

    fn remove(&mut self, key: u32) {
        drop(self.requests.try_remove(key as usize));
        if self.requests.is_empty() {
            self.address = None;
        }
    }

    /// Returns the message for an answer, or the panic of the function that makes it. Returns `None`
    /// if no request is in flight.
    pub(super) fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<Option<Answered<M>>> {
        loop {
            while let Some(key) = self.taken.pop() {
                let Some(request) = self.requests.get(key as usize) else {
                    continue;
                };
                if let Some(item) = request.take().or_else(|| request.clone().poll()) {
                    self.remove(key);
                    return Poll::Ready(Some(item));
                }
            }
            if self.requests.is_empty() {
                return Poll::Ready(None);
            }
            // Wakers are cloned and dropped without the lock, since they are code of others.
            let mut waker = Some(KeptWaker::new(cx.waker()));
            let mut answered = self.answered.lock();
            if answered.keys.is_empty() {
                mem::swap(&mut answered.actor, &mut waker);
                drop(answered);
                return Poll::Pending;
            }
            mem::swap(&mut answered.keys, &mut self.taken);
            drop(answered);
            self.taken.reverse();
        }
    }
}

impl<M> Drop for InFlight<M> {
    fn drop(&mut self) {
        for (_, request) in &self.requests {
            contain(|| request.give_up());
        }
    }
}

impl<T, F> Flight<T, F> {
    fn put(&self, flight: FlightParts<T, F>) {
        self.parts.with(|parts| *parts = Some(flight));
    }
}

impl<T, F> Wake for Flight<T, F>
where
    T: Send + 'static,
    F: Send + 'static,
{
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut answered = self.answered.lock();
        answered.keys.push(self.key);
        let actor = answered.actor.take();
        drop(answered);
        if let Some(actor) = actor {
            actor.wake();
        }
    }
}

impl<M, T, F> Waiting<M> for Flight<T, F>
where
    T: Send + 'static,
    F: FnOnce(Result<T, AskError>) -> M + Send + 'static,
{
    fn take(&self) -> Option<Answered<M>> {
        let parts = |parts: &mut Option<FlightParts<T, F>>| {
            parts
                .as_ref()?
                .0
                .is_complete()
                .then(|| parts.take())
                .flatten()
        };
        let (mut answer, asked, make, span) = self.parts.with(parts)?;
        Some(message(answer.take_outcome(), asked, make, span))
    }

    #[cold]
    fn poll(self: Arc<Self>) -> Option<Answered<M>> {
        let (mut answer, asked, make, span) = self.parts.with(Option::take)?;
        let waker = Waker::from(self.clone());
        match answer.poll_now(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(answer) => Some(message(answer, asked, make, span)),
            Poll::Pending => {
                self.put((answer, asked, make, span));
                None
            }
        }
    }

    fn give_up(&self) {
        drop(self.parts.with(Option::take));
    }
}

/// Makes a message of an answer, or returns the panic of `make`.
fn message<M, T>(
    mut answer: Result<T, AskError>,
    asked: TaskInfo,
    make: impl FnOnce(Result<T, AskError>) -> M,
    span: SentSpan,
) -> Answered<M> {
    if let Err(AskError::NoReply(detail)) = &mut answer {
        detail.name_actor(|why| detail_about(asked, why));
    }
    let kind = MessageSource::Answer;
    (SourceOrigin { kind, span }, attempt(|| make(answer)))
}
