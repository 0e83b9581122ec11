//! The beginning and the end of a turn: what it may handle, how many messages it has handled and, of
//! one turn in 64, how long it took.
//!
//! Only the run of a cell writes its counts, so a step is a load and a store. What is rare is decided by
//! the count of turns alone: the hot path has one branch for it.
#![expect(
    unsafe_code,
    reason = "notes of a cell by its header; see CELL-1 in cell.rs"
)]

use std::ptr::NonNull;

use super::base::Base;
use crate::instant::Instant;
use crate::mailbox::{RunStart, Termination};
use crate::sync::global::Ordering::Relaxed;
use crate::task::quota::Quota;
use crate::task::run::{self, CurrentTurn};
use crate::task::{ActorExecutor, Header, as_run};

/// The number of turns of which one is timed, a power of two.
const SAMPLED_EVERY: u32 = 64;

/// The quota of the turn that runs, with what it allows on this executor.
pub(super) struct TurnQuota {
    batch: u32,
    quota: Quota,
    /// When the turn began, if it is timed.
    begun: Instant,
}

impl TurnQuota {
    /// Begins a turn that may handle so many messages on this executor. Also returns how many more it
    /// may handle if nothing else waits.
    #[inline(always)]
    fn of(quota: Quota, batch: u32) -> (Self, u32) {
        if quota.is_special() {
            return Self::of_special(quota, batch);
        }
        let begun = Instant::ZERO;
        (
            TurnQuota {
                batch,
                quota,
                begun,
            },
            0,
        )
    }

    #[cold]
    #[inline(never)]
    fn of_special(quota: Quota, batch: u32) -> (Self, u32) {
        let begun = match quota.is_timed() || quota.is_sampled() {
            true => Instant::now(),
            false => Instant::ZERO,
        };
        let batch = batch.min(quota.messages());
        (
            TurnQuota {
                batch,
                quota,
                begun,
            },
            quota.more(),
        )
    }
}

impl<M, H> Base<M, H>
where
    M: Send + 'static,
    H: ActorExecutor,
{
    /// Begins a run, which has the lifecycle until `rest` or `end` (CELL-3). Returns the turn in which
    /// the future is polled or, if the actor was terminated, how: then this run drops the cell.
    ///
    /// # Safety
    /// (CELL-1, RUN-3) The header and the reader are of this cell. (CELL-3) Called by the run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) unsafe fn begin(
        &self,
        header: NonNull<Header>,
        reader: NonNull<()>,
        quota: Quota,
    ) -> Result<(CurrentTurn, TurnQuota), Termination> {
        // Before `begin`: a termination that this misses is counted later, and then disturbs the turn.
        let terminations = run::terminations();
        let looks_first = match self.core.mailbox.state.begin() {
            // Tracing reports every message, so a traced run takes the slow path for each.
            RunStart::Usual => self.core.header.is_traced(),
            RunStart::StoppedNow => true,
            RunStart::Drop(termination) => return Err(termination),
        };
        let (allowed, more) = TurnQuota::of(quota, self.executor.batch());
        let terminations = (!looks_first).then_some(terminations);
        // SAFETY: guaranteed by the caller.
        let run = unsafe {
            CurrentTurn::of_actor(as_run(header), reader, (allowed.batch, more), terminations)
        };
        Ok((run, allowed))
    }

    /// Counts a turn of an actor that is pending, and passes on what it waits for. Returns the quota of
    /// the next turn, if that differs.
    ///
    /// # Safety
    /// (CELL-1) It is the header of this cell. (CELL-3) Called by the run.
    #[inline(always)]
    pub(super) unsafe fn count(
        &self,
        header: NonNull<Header>,
        turn: &CurrentTurn,
        allowed: TurnQuota,
    ) -> Option<Quota> {
        let is_due = match self.core.header.is_noted_or_uncounted() {
            false => self.add_turn(turn),
            // SAFETY: guaranteed by the caller.
            true => unsafe { self.count_and_note(header, turn) },
        };
        match is_due || turn.notes() & (run::SPENT | run::LOST) != 0 {
            false => None,
            // SAFETY: guaranteed by the caller.
            true => unsafe { self.learn(header, turn, allowed) },
        }
    }

    /// Returns whether this turn or the next one is timed.
    #[inline(always)]
    fn add_turn(&self, turn: &CurrentTurn) -> bool {
        let (turns, messages) = (&self.core.mailbox.turns, &self.messages);
        // Relaxed: numbers that only the run writes, and which publish nothing.
        let number = turns.load(Relaxed).wrapping_add(1);
        turns.store(number, Relaxed);
        let handled = u64::from(turn.handled());
        messages.store(messages.load(Relaxed).wrapping_add(handled), Relaxed);
        number & (SAMPLED_EVERY - 2) == 0
    }

    /// # Safety
    /// As in `count`.
    #[cold]
    #[inline(never)]
    unsafe fn count_and_note(&self, header: NonNull<Header>, turn: &CurrentTurn) -> bool {
        let is_due = self.core.header.is_counted() && self.add_turn(turn);
        if self.core.header.is_noted() {
            self.note_waits(header, turn);
        }
        is_due
    }

    /// # Safety
    /// As in `count`.
    #[cold]
    #[inline(never)]
    unsafe fn learn(
        &self,
        header: NonNull<Header>,
        turn: &CurrentTurn,
        allowed: TurnQuota,
    ) -> Option<Quota> {
        self.complete_lost(header, turn, None);
        let TurnQuota {
            batch,
            quota,
            begun,
        } = allowed;
        let mut next = quota.unsampled();
        if quota.is_sampled() {
            self.executor.sampled(header, Some(begun.elapsed()));
        }
        if turn.notes() & run::SPENT != 0 && !self.executor.hooks().is_batch_chosen() {
            next = match quota.is_timed() {
                true => next.after_timed(batch, begun.elapsed()),
                false => next.after_untimed(),
            };
        }
        if self.core.header.is_counted() {
            // Relaxed: as above.
            match self.core.mailbox.turns.load(Relaxed) {
                0 => self.executor.sampled(header, None),
                number if number % SAMPLED_EVERY == 0 => next = next.sampled(),
                _ => {}
            }
        }
        (next != quota).then_some(next)
    }
}
