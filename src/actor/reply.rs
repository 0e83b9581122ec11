//! The slot of an answer: a `Reply` settles it once, and the asker's `Answer` waits for that.
//!
//! Each owns an end of the slot. The asker observes exactly one outcome: an answer, a refusal, a
//! lost reply, or an end by deadlock. A reply that is lost while its actor unwinds is settled when
//! the panic has been caught (see [`loss`]).

#[cfg(all(test, greenroom_loom))]
mod loom;

use std::fmt;
use std::mem::ManuallyDrop;
use std::task::Waker;

use crate::contain::contain;
use crate::error::{AskDetail, Refusal};
use crate::lock::{OneshotEnd, TakeableEnd};
use crate::runtime::deadlock::Listing;
use crate::runtime::{Deferred, context};
use crate::sync::mutant;
use crate::task::loss;

/// An end of a slot.
pub(super) type Slot<T> = OneshotEnd<AskState<T>>;

pub(super) enum AskState<T> {
    /// Not answered yet; the asker may have left its waker.
    Open(Option<Waker>),
    Answered(T),
    /// Behind a pointer, so that the slot of a plain ask is dropped inline.
    Rare(Box<RareState<T>>),
    /// The asker was dropped, or has its outcome.
    Unwanted,
}

pub(super) enum RareState<T> {
    /// Not answered yet, on a runtime that detects deadlocks. The listing holds the waker, and the
    /// end by deadlock if that came first.
    Listed(Listing),
    Refused(Refusal),
    /// The reply was dropped without an answer.
    Lost(AskDetail),
    /// Settled with this outcome in a split turn of a simulation. It takes effect as that turn's
    /// effect with this number.
    Deferred(AskState<T>, u32),
}

impl<T> AskState<T> {
    /// Returns the state of a new ask.
    pub(super) fn new(listing: Option<Listing>) -> Self {
        match listing {
            None => AskState::Open(None),
            Some(listing) => AskState::rare(RareState::Listed(listing)),
        }
    }

    fn rare(state: RareState<T>) -> Self {
        AskState::Rare(Box::new(state))
    }

    fn is_lost(&self) -> bool {
        matches!(self, AskState::Rare(rare) if matches!(**rare, RareState::Lost(_)))
    }

    /// Returns the listing of an ask that is not settled yet.
    pub(super) fn listing(&self) -> Option<&Listing> {
        match self {
            AskState::Rare(rare) => match &**rare {
                RareState::Listed(listing) => Some(listing),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The right to answer an [`ask`](crate::Address::ask), once.
///
/// A reply can be sent to another actor, stored, and answered later, from any thread. Dropping it
/// without an answer ends the ask with [`AskError::NoReply`](crate::AskError::NoReply).
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
    pub(super) fn new(slot: Slot<T>) -> Self {
        Reply {
            slot: TakeableEnd::new(slot),
        }
    }

    /// Sends the answer to the asker, without waiting. If the asker is gone, the answer is dropped.
    pub fn send(self, answer: T) {
        if let Some(slot) = self.into_slot() {
            settle(slot, AskState::Answered(answer));
        }
    }

    /// Refuses the request, without waiting.
    ///
    /// The ask ends with [`AskError::Refused`](crate::AskError::Refused). If the asker is gone, the
    /// refusal is dropped.
    ///
    /// ```
    /// use greenroom::{AskError, Context, Refusal, Reply, spawn};
    ///
    /// async fn printer(mut cx: Context<Reply<()>>) {
    ///     while let Some(reply) = cx.recv().await {
    ///         reply.refuse(Refusal::new("out of paper", "tray 2").code(503));
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
            settle(slot, AskState::rare(RareState::Refused(why)));
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

    /// Returns whether the asker still waits.
    ///
    /// It is false once the ask was dropped or has timed out, and after [`take`](Reply::take). An
    /// actor can then skip the work for the answer.
    pub fn is_wanted(&self) -> bool {
        let looked = self.slot.look(|slot| match slot {
            AskState::Open(_) => true,
            other => other.listing().is_some_and(Listing::is_waiting),
        });
        looked.unwrap_or(false)
    }

    #[inline]
    fn into_slot(self) -> Option<Slot<T>> {
        ManuallyDrop::new(self).slot.take_mut()
    }
}

/// Settles the slot and wakes the asker. Unneeded values are dropped after the lock is released.
// Inlined by force, so that the outcome is written in place.
#[inline(always)]
fn settle<T>(slot: Slot<T>, outcome: AskState<T>) {
    let mut listed = Told::Nobody;
    let previous = slot.finish(|slot| match slot {
        AskState::Open(_) => std::mem::replace(slot, outcome),
        AskState::Rare(_) => {
            let (previous, told) = settle_listed(slot, outcome);
            listed = told;
            previous
        }
        _ => outcome,
    });
    match previous {
        AskState::Open(Some(_)) if mutant("asker_is_not_woken") => {}
        AskState::Open(Some(waker)) => contain(|| waker.wake()),
        AskState::Open(None) => {}
        unneeded => wake_or_drop(unneeded, listed),
    }
}

/// How the asker is woken after its reply was settled.
pub(super) enum Told {
    Nobody,
    Now(Waker),
    /// As an effect of a split turn; the waker is there if the asker waits.
    Later(Option<Waker>),
}

#[cold]
#[inline(never)]
pub(super) fn wake_or_drop<T>(unneeded: AskState<T>, told: Told) {
    match told {
        Told::Later(waker) => {
            let _ = context::simulated(|engine, runtime| {
                engine.defer(runtime, Deferred::Answer(waker))
            });
            contain(|| drop(unneeded));
        }
        Told::Nobody => contain(|| drop(unneeded)),
        Told::Now(waker) => {
            contain(|| drop(unneeded));
            contain(|| waker.wake());
        }
    }
}

/// Settles a listed ask. An end by deadlock wins if it came first.
#[cold]
#[inline(never)]
fn settle_listed<T>(slot: &mut AskState<T>, outcome: AskState<T>) -> (AskState<T>, Told) {
    let listing = slot.listing();
    let settled = listing.and_then(|listing| Some((listing.settle()?, listing.key())));
    let Some((waker, key)) = settled else {
        return (outcome, Told::Nobody);
    };
    if outcome.is_lost() {
        let _ = context::simulated(|engine, _| engine.reply_dropped(key));
    }
    let number = context::simulated(|engine, _| engine.next_effect()).flatten();
    let (outcome, told) = match number {
        Some(number) => {
            let deferred = RareState::Deferred(outcome, number);
            (AskState::rare(deferred), Told::Later(waker))
        }
        None => (outcome, waker.map_or(Told::Nobody, Told::Now)),
    };
    (std::mem::replace(slot, outcome), told)
}

impl<T> Drop for Reply<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take_mut() {
            lose(slot);
        }
    }
}

/// Settles the slot of a reply that was not answered, now or after the panic that unwinds.
#[cold]
#[inline(never)]
fn lose<T>(slot: Slot<T>) {
    loss::settle(Box::new(slot));
}

impl<T> loss::Lost for Slot<T> {
    fn settle(self: Box<Self>, detail: AskDetail) {
        settle(*self, AskState::rare(RareState::Lost(detail)));
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("wanted", &self.is_wanted())
            .finish()
    }
}
