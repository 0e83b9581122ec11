//! The cause that the asker of a lost reply receives.
//!
//! A reply is lost when it is dropped without an answer. The code that drops messages, or the
//! state of an actor that does not complete, names the cause by [`during`]. While the turn of an
//! actor unwinds, the cause is not known yet: the replies are kept until the panic was caught.
//!
//! The first of these completes them:
//! - [`complete_caught_for`]: code of the crate has caught the panic inside of the turn, and knows its
//!   cause.
//! - [`complete_kept`]: the turn has ended.
//! - [`complete_unless_unwinding`]: other code may have caught it unnoticed, since the thread loses a
//!   reply or blocks while it does not unwind.
//!
//! # Invariants
//! - LOSS-1: a slot that is not completed has no answer in it. So it may outlive the lifetimes in the
//!   type of its answer.
//! - LOSS-2: the innermost [`Cause`] of a thread is on its stack.
#![expect(
    unsafe_code,
    reason = "slots without their types, and a pointer to the stack; see LOSS-1 and LOSS-2"
)]

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use super::run;
use crate::error::{AskDetail, AskError, Refusal};

/// The slot of a lost reply.
pub(crate) trait Lost {
    /// Gives the asker this error.
    fn fail(self: Box<Self>, error: AskError);
}

/// A cause that replies on this thread are lost for.
struct Cause<'a> {
    /// The turn that was the innermost one when this began. Replies that a nested turn drops have
    /// another cause.
    turn: Option<NonNull<()>>,
    /// Returns the error that the asker receives.
    error: &'a dyn Fn() -> AskError,
}

/// A reply that was dropped while a turn unwinds.
struct KeptLoss {
    turn: NonNull<()>,
    reply: Box<dyn Lost>,
}

crate::sync::thread_local! {
    /// The innermost cause, whose lifetime is erased.
    static CAUSE: Cell<Option<NonNull<Cause<'static>>>> = const { Cell::new(None) };
}
crate::sync::thread_local! {
    static KEPT: RefCell<Vec<KeptLoss>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f`. Replies that it drops are lost for the cause that `detail` returns.
#[cold]
#[inline(never)]
pub(crate) fn during<R>(detail: impl Fn() -> AskDetail, f: impl FnOnce() -> R) -> R {
    named_by(&|| AskError::NoReply(detail()), f)
}

/// Calls `f`. Replies that it drops are refused, each with what `refusal` returns.
#[cold]
#[inline(never)]
pub(crate) fn refusing<R>(refusal: impl Fn() -> Refusal, f: impl FnOnce() -> R) -> R {
    named_by(&|| AskError::Refused(refusal()), f)
}

fn named_by<R>(error: &dyn Fn() -> AskError, f: impl FnOnce() -> R) -> R {
    /// Restores the outer cause, also if `f` panics.
    struct OuterCause(Option<NonNull<Cause<'static>>>);
    impl Drop for OuterCause {
        fn drop(&mut self) {
            let _ = CAUSE.try_with(|cause| cause.set(self.0));
        }
    }
    let cause = Cause {
        turn: run::innermost_turn(),
        error,
    };
    let pointer = NonNull::from(&cause).cast::<Cause<'static>>();
    let outer = CAUSE.try_with(|cause| cause.replace(Some(pointer)));
    let outer = OuterCause(outer.unwrap_or(None));
    let result = f();
    drop(outer);
    result
}

/// Completes the slot of a lost reply, or keeps it until the panic that unwinds was caught.
pub(crate) fn lose(lost: Box<dyn Lost + '_>) {
    if let Some(error) = named() {
        return lost.fail(error);
    }
    if !std::thread::panicking() {
        complete_unless_unwinding();
    } else if let Some(turn) = run::note_loss() {
        // SAFETY: (LOSS-1) nothing with a shorter lifetime is reached through the slot.
        let reply = unsafe { std::mem::transmute::<Box<dyn Lost + '_>, Box<dyn Lost>>(lost) };
        let mut kept = Some(KeptLoss { turn, reply });
        let _ = KEPT.try_with(|all| all.borrow_mut().extend(kept.take()));
        // It is left if the thread ends, without the list.
        if let Some(KeptLoss { reply, .. }) = kept {
            reply.fail(AskError::NoReply(AskDetail::default()));
        }
        return;
    }
    lost.fail(AskError::NoReply(AskDetail::default()));
}

/// Returns the error that was named for replies that the innermost turn loses now.
fn named() -> Option<AskError> {
    let cause = CAUSE.try_with(Cell::get).ok().flatten()?;
    // SAFETY: (LOSS-2) `during` has not returned, so the cause and its closure live.
    let cause = unsafe { cause.as_ref() };
    (cause.turn == run::innermost_turn()).then(|| (cause.error)())
}

/// Completes the replies that this thread keeps, unless it unwinds: code inside of a turn has caught
/// their panics.
#[inline]
pub(crate) fn complete_unless_unwinding() {
    let keeps = KEPT.try_with(|all| !all.borrow().is_empty());
    if keeps.unwrap_or(false) && !std::thread::panicking() {
        complete_all_of_thread();
    }
}

#[cold]
fn complete_all_of_thread() {
    // The code that has caught the panic of this turn may have named it, and now blocks.
    if let (Some(turn), Some(AskError::NoReply(detail))) = (run::innermost_turn(), named()) {
        complete_all(|kept| kept.turn == turn, detail);
    }
    complete_all(|_| true, AskDetail::default());
}

/// Completes the replies that were kept while `turn` unwound. `detail` is `None` if the panic was
/// caught inside of the turn.
#[cold]
#[inline(never)]
pub(crate) fn complete_kept(turn: NonNull<()>, detail: Option<AskDetail>) {
    complete_all(|kept| kept.turn == turn, detail.unwrap_or_default());
}

/// Completes the replies that were kept while the innermost turn unwound. The caller has caught the
/// panic inside of the turn, and knows its cause.
#[cold]
#[inline(never)]
pub(crate) fn complete_caught_for(detail: impl FnOnce() -> AskDetail) {
    let turn = run::innermost_turn();
    let keeps = KEPT.try_with(|all| all.borrow().iter().any(|kept| Some(kept.turn) == turn));
    if keeps.unwrap_or(false) {
        complete_all(|kept| Some(kept.turn) == turn, detail());
    }
}

/// Completes all kept replies that `chosen` chooses.
#[cold]
#[inline(never)]
fn complete_all(chosen: impl Fn(&KeptLoss) -> bool, detail: AskDetail) {
    let kept = KEPT.try_with(|all| {
        let mut all = all.borrow_mut();
        all.extract_if(.., |kept| chosen(kept)).collect::<Vec<_>>()
    });
    for KeptLoss { reply, .. } in kept.into_iter().flatten() {
        reply.fail(AskError::NoReply(detail.clone()));
    }
}
