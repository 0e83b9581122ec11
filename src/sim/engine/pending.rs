//! The pending effects of turns, and the order in which they happen.

use std::collections::VecDeque;

use super::effect::{Effect, EffectKind, Pending};
use super::entry::{Due, Entry, Runner, Turn};
use super::plan::TURNS;
use super::ready::below;
use super::state::State;
use crate::runtime::RunsOn;
use crate::runtime::deadlock::Who;

impl State {
    /// Returns whether the running turn is split.
    pub(super) fn defers(&mut self) -> bool {
        if self.has_closed || self.failure.is_some() {
            return false;
        }
        let Some(turn) = self.turn else {
            return false;
        };
        if let Some(is_split) = turn.is_split {
            return is_split;
        }
        let is_split = self.draw_split();
        if let Some(turn) = &mut self.turn {
            turn.is_split = Some(is_split);
        }
        is_split
    }

    fn draw_split(&mut self) -> bool {
        let splits = self.splits;
        let origin = self.origin();
        // Drawn even if a script decides, so that later draws stay the same.
        let is_split = splits > 0 && below(origin.draw(), TURNS) < splits;
        let (key, turn) = (origin.key, origin.turns);
        match &self.reading {
            Some(reading) => reading.splits(key, turn),
            None => is_split,
        }
    }

    /// Returns whether the turn in progress is one of the task or actor with this identity.
    pub(super) fn runs(&self, own: u64) -> bool {
        let runner = self.turn.map(|turn| turn.runner);
        matches!(runner, Some(Runner::Task { identity, .. }) if identity == own)
    }

    /// Returns whether the running turn has pending effects.
    pub(super) fn has_own(&self) -> bool {
        self.own()
            .is_some_and(|pending| !pending.effects.is_empty())
    }

    /// Returns whether the running turn has closed this actor or will do so.
    pub(super) fn own_closes(&self, actor: u64) -> bool {
        self.own()
            .is_some_and(|pending| pending.closes.contains(&actor))
    }

    /// Returns the effects of the running turn.
    fn own(&self) -> Option<&Pending> {
        self.pending.get(&self.turn?.runner)
    }

    /// Adds an effect to the pending ones of the running turn.
    pub(super) fn defer(&mut self, kind: EffectKind) {
        let Some(Turn { runner, .. }) = self.turn else {
            unreachable!("a split turn is in progress")
        };
        self.defer_to(runner, kind);
    }

    fn defer_to(&mut self, runner: Runner, kind: EffectKind) {
        self.effects_born = self.effects_born.wrapping_add(1);
        let number = self.effects_born;
        let (rank, who) = (self.rank_of(runner), self.running.clone());
        let origin = self.origin();
        let turn = (origin.key, origin.turns);
        let pending = self.pending.entry(runner).or_insert_with(|| Pending {
            who,
            rank,
            turn,
            effects: VecDeque::new(),
            closes: Vec::new(),
            is_ready: false,
        });
        if pending.effects.is_empty() {
            (pending.turn, pending.rank) = (turn, rank);
            pending.closes.clear();
        }
        if let EffectKind::Close(actor, _) = kind {
            pending.closes.push(actor);
        }
        pending.effects.push_back(Effect { number, kind });
        self.offer(runner);
    }

    /// Adds the effects of a turn, if there are any, to the ready entries.
    fn offer(&mut self, runner: Runner) {
        let Some(pending) = self.pending.get_mut(&runner) else {
            return;
        };
        if pending.effects.is_empty() {
            if !pending.is_ready {
                self.pending.remove(&runner);
                self.forget_ended(runner);
            }
        } else if !std::mem::replace(&mut pending.is_ready, true) {
            let rank = pending.rank;
            self.ready.push(Entry::Effect(runner), rank);
        }
    }

    /// Forgets the ends in this turn, if the turn is over and all its effects have happened.
    pub(super) fn forget_ended(&mut self, runner: Runner) {
        let is_running = self.turn.is_some_and(|turn| turn.runner == runner);
        if !is_running && !self.has_pending(runner) {
            self.ended.retain(|_, ended| *ended != runner);
        }
    }

    /// Removes the effects of a turn from the ready entries; returns their task, if there are
    /// effects.
    pub(super) fn take_pending(&mut self, runner: Runner) -> Option<Who> {
        let pending = self.pending.get_mut(&runner)?;
        pending.is_ready = false;
        let who = pending.who.clone();
        let is_empty = pending.effects.is_empty();
        if is_empty {
            self.offer(runner);
        }
        (!is_empty).then_some(who)
    }

    /// Returns the key of the turn with these effects; 0, which is no key, if none are left.
    pub(super) fn key_of(&self, runner: Runner) -> u64 {
        let pending = self.pending.get(&runner);
        let pending = pending.filter(|pending| !pending.effects.is_empty());
        pending.map_or(0, |pending| pending.turn.0)
    }

    /// Lowers the rank of these effects and of their task.
    pub(super) fn lower_pending(&mut self, runner: Runner, rank: u64) {
        if let Some(pending) = self.pending.get_mut(&runner) {
            pending.rank = rank;
        }
        if let Some(own) = self.rank_mut(runner) {
            *own = rank;
        }
    }

    fn rank_of(&mut self, runner: Runner) -> u64 {
        self.rank_mut(runner).map_or(0, |rank| *rank)
    }

    fn rank_mut(&mut self, runner: Runner) -> Option<&mut u64> {
        match runner {
            Runner::Frame(id) => self.frame(id).map(|frame| &mut frame.rank),
            Runner::Task { number, identity } => {
                let tracked = self.tasks.get_mut(&identity);
                tracked
                    .filter(|tracked| tracked.label.id() == number)
                    .map(|tracked| &mut tracked.rank)
            }
        }
    }

    pub(super) fn first_pending(&self) -> Option<Runner> {
        let mut turns = self.pending.iter();
        turns
            .find(|(_, pending)| !pending.effects.is_empty())
            .map(|(&runner, _)| runner)
    }

    pub(super) fn take_next(
        &mut self,
        runner: Runner,
        goes_on: &impl Fn(u32) -> bool,
    ) -> Option<(EffectKind, Who)> {
        let pending = self.pending.get_mut(&runner)?;
        let number = pending.effects.front()?.number;
        if !goes_on(number) {
            return None;
        }
        let effect = pending.effects.pop_front()?;
        let who = pending.who.clone();
        self.offer(runner);
        Some((effect.kind, who))
    }

    /// Defers a runnable that becomes ready, or returns it.
    ///
    /// It is deferred if it is an effect of the running turn, or if its own task has pending
    /// effects.
    pub(super) fn defer_ready(&mut self, due: Due, runs_on: &RunsOn, is_here: bool) -> Option<Due> {
        let own = self.runner_of(due.identity);
        let runner = match (own, self.turn) {
            (Some(own), _) if self.has_pending(own) => own,
            (_, Some(turn)) if is_here && self.has_own() => turn.runner,
            _ => return Some(due),
        };
        self.defer_to(runner, EffectKind::Ready(due, runs_on.clone()));
        None
    }

    /// Adds a frame to the ready entries, after its own effects have happened.
    pub(super) fn offer_frame(&mut self, id: u64) {
        let runner = Runner::Frame(id);
        if self.has_pending(runner) {
            return self.defer_to(runner, EffectKind::FrameIsReady(id));
        }
        let Some(rank) = self.frame(id).map(|frame| frame.rank) else {
            return;
        };
        self.ready.push(Entry::Frame(id), rank);
    }

    fn has_pending(&self, runner: Runner) -> bool {
        let pending = self.pending.get(&runner);
        pending.is_some_and(|pending| !pending.effects.is_empty())
    }

    /// Returns the task or frame of this turn, if it has not ended.
    pub(super) fn who(&self, runner: Runner) -> Option<Who> {
        match runner {
            Runner::Task { identity, .. } => {
                let tracked = self.tasks.get(&identity)?;
                Some(Who::Task(tracked.label.clone()))
            }
            Runner::Frame(id) => {
                let frame = self.frames.iter().find(|frame| frame.id == id)?;
                Some(frame.who.clone())
            }
        }
    }

    pub(super) fn runner_of(&self, identity: u64) -> Option<Runner> {
        let tracked = self.tasks.get(&identity)?;
        let number = tracked.label.id();
        Some(Runner::Task { number, identity })
    }
}
