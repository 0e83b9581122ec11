//! The slot of an answer: a `Reply` completes it once, and the asker's `Answer` waits for that.
//!
//! Each owns an end of the slot. The asker observes exactly one outcome: an answer, a refusal, a
//! lost reply, or an end by deadlock. A reply that is lost while its actor unwinds is completed when
//! the panic has been caught (see [`loss`]).

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::any::{Any, type_name};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use crate::contain::{KeptWaker, contain};
use crate::error::{AskDetail, AskError, Refusal};
use crate::lock::{OneshotEnd, TakeableEnd};
use crate::runtime::deadlock::Listing;
use crate::runtime::{Deferred, DueEffects, context, trace_answer};
use crate::sync::mutant;
use crate::task::loss;

/// An end of a slot.
pub(super) type ReplySlot<T> = OneshotEnd<AskState<T>>;

pub(super) enum AskState<T> {
    /// Not answered yet; the asker may have left its waker.
    Open(Option<KeptWaker>),
    Answered(T),
    /// Refused, or lost without an answer.
    Failed(AskError),
    /// The runtime detects deadlocks, traces messages or is simulated. Until the outcome replaces this,
    /// the waker is in its listing, which may end as a deadlock. In a box, so that the slot of a plain
    /// ask is dropped inline.
    Listed(Box<ListedSlot<T>>),
    /// Not answered yet. There is no asker: the outcome goes to the relay.
    Relayed(Arc<dyn Relay<T>>),
    /// The asker was dropped, or has its outcome.
    Unwanted,
}

/// An ask of a runtime that detects deadlocks, traces messages or is simulated.
pub(super) struct ListedSlot<T> {
    /// Holds the waker, and the end by deadlock if that came first.
    listing: Listing,
    /// The outcome from a split turn of a simulation. It takes effect as that turn's effect with
    /// this number.
    deferred: Option<(Result<T, AskError>, u32)>,
}

/// What receives the outcome of a reply instead of an asker.
pub(crate) trait Relay<T>: Send + Sync {
    /// Receives the outcome, once: an answer, a refusal or the cause of a loss.
    fn complete(self: Arc<Self>, outcome: Result<T, AskError>);

    /// Returns whether an asker waits. If a lock is held elsewhere, waits for it, or returns true.
    fn is_wanted(&self, waits: bool) -> bool;

    /// Returns this as a value of its own type.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T> AskState<T> {
    /// Returns the state of a new ask.
    pub(super) fn new(listing: Option<Listing>) -> Self {
        match listing {
            None => AskState::Open(None),
            Some(listing) => AskState::Listed(Box::new(ListedSlot {
                listing,
                deferred: None,
            })),
        }
    }

    /// Returns the name of the type of an answer or a refusal.
    fn type_name(&self) -> Option<&'static str> {
        match self {
            AskState::Answered(_) => Some(type_name::<T>()),
            AskState::Failed(AskError::Refused(_)) => Some(type_name::<Refusal>()),
            _ => None,
        }
    }

    /// Returns the listing of an ask that has no outcome yet.
    pub(super) fn listing(&self) -> Option<&Listing> {
        match self {
            AskState::Listed(ask) if ask.deferred.is_none() => Some(&ask.listing),
            _ => None,
        }
    }
}

/// The right to answer an [`ask`](crate::Address::ask), once.
///
/// A reply can be sent to another actor, stored, and answered later, from any thread. Dropping it
/// without an answer ends the ask with [`AskError::NoReply`].
///
/// A reply has no serde of its own. In a message to other machines, its field has
/// `#[serde(with = "greenroom_cluster::reply")]`.
///
/// If it is dropped while its actor unwinds, the ask ends when the actor has caught the panic. Code
/// inside of the turn may catch the panic first. The ask then ends when the turn ends or blocks in
/// greenroom, or when it drops another reply.
///
/// ```
/// use greenroom::{Context, Reply, spawn};
///
/// enum Slot {
///     Set(u32),
///     Get(Reply<u32>),
/// }
///
/// /// Keeps the replies until it has a value.
/// async fn slot(mut cx: Context<Slot>) {
///     let (mut value, mut waiting) = (None, Vec::new());
///     while let Some(message) = cx.recv().await {
///         match message {
///             Slot::Set(number) => value = Some(number),
///             Slot::Get(reply) => waiting.push(reply),
///         }
///         if let Some(value) = value {
///             for reply in waiting.drain(..) {
///                 reply.send(value);
///             }
///         }
///     }
/// }
///
/// greenroom::run(async {
///     let slot = spawn!(slot(_));
///     let set = async { slot.tell(Slot::Set(42)) };
///     let (answer, told) = futures::join!(slot.ask(Slot::Get), set);
///     assert_eq!(answer, Ok(42));
///     told.unwrap();
/// });
/// ```
#[must_use = "dropping a reply without an answer ends the ask with an error"]
pub struct Reply<T> {
    slot: TakeableEnd<AskState<T>>,
}

impl<T> Reply<T> {
    pub(super) fn new(slot: ReplySlot<T>) -> Self {
        Reply {
            slot: TakeableEnd::new(slot),
        }
    }

    /// Creates a reply whose outcome goes to a relay.
    pub(crate) fn relayed(relay: Arc<dyn Relay<T>>) -> Self {
        Reply::new(OneshotEnd::alone(AskState::Relayed(relay)))
    }

    /// Returns where the outcome goes, if this is a reply that was relayed and not taken.
    pub(crate) fn relay(&self) -> Option<Arc<dyn Relay<T>>> {
        let relay = self.slot.look(|slot| match slot {
            AskState::Relayed(relay) => Some(relay.clone()),
            _ => None,
        });
        relay.flatten()
    }

    /// Passes an outcome on.
    pub(crate) fn complete(self, outcome: Result<T, AskError>) {
        let slot = self.into_slot();
        match (outcome, slot) {
            (Ok(answer), Some(slot)) => complete(slot, AskState::Answered(answer)),
            (Err(error @ (AskError::Refused(_) | AskError::NoReply(_))), Some(slot)) => {
                complete(slot, AskState::Failed(error));
            }
            (Err(_), Some(slot)) => lose(slot),
            (outcome, None) => contain(|| drop(outcome)),
        }
    }

    /// Sends the answer to the asker, without waiting. If the asker is gone, the answer is dropped.
    pub fn send(self, answer: T) {
        if let Some(slot) = self.into_slot() {
            complete(slot, AskState::Answered(answer));
        }
    }

    /// Refuses the request, without waiting.
    ///
    /// The ask ends with [`AskError::Refused`]. If the asker is gone, the refusal is dropped.
    ///
    /// ```
    /// use greenroom::{AskError, Context, Refusal, Reply, spawn};
    ///
    /// async fn printer(mut cx: Context<Reply<()>>) {
    ///     while let Some(reply) = cx.recv().await {
    ///         reply.refuse(Refusal::new("out of paper", "tray 2").with_error_code(503));
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let printer = spawn!(printer(_));
    ///     let Err(AskError::Refused(refusal)) = printer.ask(|reply| reply).await else {
    ///         panic!("the printer refuses");
    ///     };
    ///     assert_eq!(refusal.error_code(), Some(503));
    /// });
    /// ```
    pub fn refuse(self, why: Refusal) {
        if let Some(slot) = self.into_slot() {
            complete(slot, AskState::Failed(AskError::Refused(why)));
        }
    }

    /// Moves the right to answer out of a shared reference, once.
    ///
    /// The first call returns the right. Later calls, from any thread, return `None`. A reply
    /// without the right is not wanted, and dropping it does nothing.
    ///
    /// ```
    /// use greenroom::{Context, Reply, spawn};
    /// use std::sync::Arc;
    ///
    /// /// Gives each request to two tasks. The faster one answers.
    /// async fn race(mut cx: Context<Reply<&'static str>>) {
    ///     while let Some(reply) = cx.recv().await {
    ///         let reply = Arc::new(reply);
    ///         for name in ["tortoise", "hare"] {
    ///             let reply = reply.clone();
    ///             let answer = async move { reply.take().map(|reply| reply.send(name)) };
    ///             greenroom::spawn(answer).detach();
    ///         }
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let race = spawn!(race(_));
    ///     let winner = race.ask(|reply| reply).await.unwrap();
    ///     assert!(["tortoise", "hare"].contains(&winner));
    /// });
    /// ```
    pub fn take(&self) -> Option<Reply<T>> {
        self.slot.take().map(Reply::new)
    }

    /// Returns a number that this reply has in common with its [`Answer`](crate::Answer) alone. It
    /// is `None` after [`take`](Reply::take).
    ///
    /// Another reply may have the number later, when this reply and its answer are gone.
    ///
    /// ```
    /// use greenroom::Reply;
    ///
    /// let (reply, answer) = Reply::<u32>::pair();
    /// assert_eq!(reply.id(), answer.id());
    /// let taken = reply.take().unwrap();
    /// assert_eq!((reply.id(), taken.id()), (None, answer.id()));
    /// ```
    pub fn id(&self) -> Option<usize> {
        self.slot.id()
    }

    /// Returns whether the asker still waits.
    ///
    /// It is false once the ask was dropped or has timed out, and after [`take`](Reply::take). An
    /// actor can then skip the work for the answer. Nothing wakes the actor at that moment, so long
    /// work looks at this between its parts. It may be true for a moment longer if the ask went through
    /// several spools.
    pub fn is_wanted(&self) -> bool {
        self.looks_wanted(true)
    }

    fn looks_wanted(&self, waits: bool) -> bool {
        let looked = self.slot.look(|slot| match slot {
            AskState::Open(_) => Ok(true),
            AskState::Relayed(relay) => Err(relay.clone()),
            other => Ok(other.listing().is_some_and(Listing::is_waiting)),
        });
        match looked {
            Some(Ok(is_wanted)) => is_wanted,
            Some(Err(relay)) => relay.is_wanted(waits),
            None => false,
        }
    }

    /// Returns whether the asker is known to be gone, with one look at the slot if it is not. Waits
    /// for no lock of a relay.
    #[inline]
    pub(crate) fn is_abandoned(&mut self) -> bool {
        self.slot.is_alone() && !self.looks_wanted(false)
    }

    #[inline]
    fn into_slot(self) -> Option<ReplySlot<T>> {
        ManuallyDrop::new(self).slot.take_mut()
    }
}

/// Completes the slot and wakes the asker. Unneeded values are dropped after the lock is released.
// Inlined by force, so that the outcome is written in place.
#[inline(always)]
fn complete<T>(slot: ReplySlot<T>, outcome: AskState<T>) {
    // What does not stay in the slot: its previous state, an outcome without an asker, or that for
    // a relay.
    let mut notified = Notified::Nobody;
    let left = slot.finish(|slot| match slot {
        AskState::Open(_) => std::mem::replace(slot, outcome),
        AskState::Listed(_) => {
            let (left, of_listed) = complete_listed(slot, outcome);
            notified = of_listed;
            left
        }
        AskState::Relayed(relay) => {
            notified = Notified::Relay(relay.clone());
            outcome
        }
        _ => outcome,
    });
    match left {
        AskState::Open(Some(_)) if mutant("asker_is_not_woken") => {}
        AskState::Open(Some(waker)) => waker.wake(),
        AskState::Open(None) => {}
        unneeded => wake_or_drop(unneeded, notified),
    }
}

/// How the asker is notified of the outcome of its reply. The waker is there if the asker waits.
pub(super) enum Notified<T> {
    Nobody,
    Now(Option<KeptWaker>, Option<TracedAnswer>),
    /// As an effect of a split turn.
    Later(Option<KeptWaker>, Option<TracedAnswer>),
    /// Gives the relay the outcome, which was taken out of the slot.
    Relay(Arc<dyn Relay<T>>),
}

/// An answer that is traced: the name of its type, and the actor that has asked.
pub(super) type TracedAnswer = (&'static str, u64);

#[cold]
#[inline(never)]
pub(super) fn wake_or_drop<T>(unneeded: AskState<T>, notified: Notified<T>) {
    if let Notified::Now(_, Some(answer)) | Notified::Later(_, Some(answer)) = notified {
        trace_answer(answer);
    }
    // The asker is woken last, when nothing is left to be dropped here.
    match notified {
        Notified::Later(waker, _) => {
            let _ = context::simulated(|engine, runtime| {
                engine.defer(runtime, Deferred::Answer(waker))
            });
            contain(|| drop(unneeded));
        }
        Notified::Nobody => contain(|| drop(unneeded)),
        Notified::Relay(relay) => contain(|| relay.complete(outcome_of(unneeded))),
        Notified::Now(waker, _) => {
            contain(|| drop(unneeded));
            waker.into_iter().for_each(KeptWaker::wake);
        }
    }
}

/// Completes a listed ask. An end by deadlock wins if it came first.
#[cold]
#[inline(never)]
fn complete_listed<T>(slot: &mut AskState<T>, outcome: AskState<T>) -> (AskState<T>, Notified<T>) {
    let AskState::Listed(ask) = slot else {
        return (outcome, Notified::Nobody);
    };
    let Some(waker) = ask.listing.finish() else {
        return (outcome, Notified::Nobody);
    };
    let traced = outcome.type_name().zip(ask.listing.asker());
    if let AskState::Failed(AskError::NoReply(_)) = &outcome {
        let key = ask.listing.key();
        let _ = context::simulated(|engine, _| engine.reply_dropped(key));
    }
    let number = context::simulated(|engine, _| engine.next_effect()).flatten();
    match number {
        // The asker may not see it before that effect.
        Some(number) => {
            ask.deferred = Some((outcome_of(outcome), number));
            (AskState::Unwanted, Notified::Later(waker, traced))
        }
        None => (
            std::mem::replace(slot, outcome),
            Notified::Now(waker, traced),
        ),
    }
}

/// Returns the outcome of a slot.
#[cold]
pub(super) fn outcome_of<T>(state: AskState<T>) -> Result<T, AskError> {
    let ask = match state {
        AskState::Answered(answer) => return Ok(answer),
        AskState::Failed(error) => return Err(error),
        AskState::Listed(ask) => *ask,
        _ => return Err(AskError::NoReply(AskDetail::default())),
    };
    match ask.deferred {
        // Without an outcome it has ended as a deadlock, or was taken before.
        None => Err(ask.listing.swap_waker(&mut None).map_or_else(
            || AskError::NoReply(AskDetail::default()),
            AskError::Deadlock,
        )),
        Some((outcome, number)) => {
            let _ = context::simulated(|engine, runtime| {
                engine.apply(runtime, DueEffects::ToAnswer(number))
            });
            outcome
        }
    }
}

impl<T> Drop for Reply<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take_mut() {
            lose(slot);
        }
    }
}

/// Completes the slot of a reply that was not answered, now or after the panic that unwinds.
#[cold]
#[inline(never)]
fn lose<T>(slot: ReplySlot<T>) {
    loss::lose(Box::new(slot));
}

impl<T> loss::Lost for ReplySlot<T> {
    fn fail(self: Box<Self>, error: AskError) {
        complete(*self, AskState::Failed(error));
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("wanted", &self.is_wanted())
            .finish()
    }
}
