//! Defers the effects of split turns.
//!
//! A simulated turn runs to its end at once. On real threads, other tasks may run between two of
//! its effects. So in a *split* turn each message, reply, stop and wake-up is deferred, and happens
//! in its own step. What the call has promised holds at once: a message has its permit in the
//! mailbox, a reply is in its slot.
//!
//! # Invariants
//! - SIM-4: The effects of a turn happen in the order of its calls, and its task runs again only
//!   after the last. Any other access that would reveal the progress of the turn makes them happen
//!   first. So do its own accesses to what other tasks can see.
//! - SIM-5: Each deferred effect counts as activity (ACTIVITY-1), as ready runnables do (SIM-3).

use std::collections::VecDeque;

use super::entry::{
    Due, Effect, PendingEffects, ReadyEntry, Runner, RunningTurn, TurnSplit, identity,
    identity_of_actor,
};
use super::plan::TURNS;
use super::ready::below;
use super::simulation::Simulation;
use super::state::SimState;
use crate::contain::{KeptWaker, contain};
use crate::runtime::deadlock::Who;
use crate::runtime::{Inner, RunsOn};
use crate::task::{Delivery, MessageInfo, TaskInfo};

impl Simulation {
    /// Returns whether the next effect of this thread's turn is deferred.
    fn defers(&self) -> bool {
        self.is_here() && self.state.lock().defers()
    }

    /// Returns whether the next effect on this actor is deferred.
    ///
    /// Messages of a turn to its own actor are not. If the turn has stopped the actor, that close
    /// happens first.
    pub(crate) fn defers_to(&self, inner: &Inner, actor: u64) -> bool {
        if !self.defers() {
            return false;
        }
        let state = self.state.lock();
        let to_itself = state.runs(identity_of_actor(actor));
        let applies = to_itself || state.own_closes(actor);
        drop(state);
        if applies {
            self.apply_own(inner);
        }
        !to_itself
    }

    /// Defers a message that has its permit already. Only if [`defers`](Simulation::defers) holds.
    pub(crate) fn defer_message(
        &self,
        inner: &Inner,
        to: TaskInfo,
        info: MessageInfo,
        deliver: Delivery,
    ) {
        // (SIM-5)
        inner.inc_activity();
        let mut state = self.state.lock();
        let sent = state.sent(to, info);
        state.defer(Effect::Message(sent, deliver));
    }

    /// Defers the close of an actor's mailbox. Only if [`defers`](Simulation::defers) holds.
    pub(crate) fn defer_close(&self, inner: &Inner, actor: u64, deliver: Delivery) {
        // (SIM-5)
        inner.inc_activity();
        self.state.lock().defer(Effect::Close(actor, deliver));
    }

    /// Defers what follows the pending effects. Only if [`has_own`](Simulation::has_own) holds.
    pub(crate) fn defer_act(&self, inner: &Inner, act: Delivery) {
        // (SIM-5)
        inner.inc_activity();
        self.state.lock().defer(Effect::Act(act));
    }

    /// Returns the number of the next effect of this thread's turn, if it is
    /// [deferred](Simulation::defers).
    pub(crate) fn next_effect(&self) -> Option<u32> {
        self.defers()
            .then(|| self.state.lock().effects_born.wrapping_add(1))
    }

    /// Defers the wake-up for a reply, which is in its slot already and has its number from
    /// [`next_effect`](Simulation::next_effect).
    pub(crate) fn defer_answer(&self, inner: &Inner, asker: Option<KeptWaker>) {
        // (SIM-5)
        inner.inc_activity();
        self.state.lock().defer(Effect::Answer(asker));
    }

    /// Defers the wake-up of a frame, which the caller has counted, if the turn has pending
    /// effects. Returns whether it did.
    pub(super) fn defers_wake(&self, frame: u64) -> bool {
        let is_here = self.is_here();
        let mut state = self.state.lock();
        let defers = is_here && state.has_own();
        if defers {
            state.defer(Effect::WakesFrame(frame));
        }
        defers
    }

    // -- effects happen -----------------------------------------------------------------------

    /// Makes the deferred effects of the running turn happen, before it looks at other tasks
    /// (SIM-4).
    pub(crate) fn apply_own(&self, inner: &Inner) {
        if !self.is_here() {
            return;
        }
        let turn = self.state.lock().turn;
        if let Some(RunningTurn { runner, .. }) = turn {
            self.apply_turn(inner, runner, |_| true);
        }
    }

    /// Does what `apply_own` does, unless the running turn is one of this actor.
    pub(crate) fn apply_elsewhere(&self, inner: &Inner, actor: u64) {
        let is_own = self.state.lock().runs(identity_of_actor(actor));
        if !is_own {
            self.apply_own(inner);
        }
    }

    /// Returns whether the running turn has pending effects.
    pub(crate) fn has_own(&self) -> bool {
        self.is_here() && self.state.lock().has_own()
    }

    /// Makes the pending effects of a task or actor, and of this turn, happen before this thread
    /// looks at it (SIM-4).
    pub(crate) fn apply_of_task(&self, inner: &Inner, task: &TaskInfo) {
        self.apply_own(inner);
        self.apply_of_identity(inner, identity(task));
    }

    /// Does what `apply_of_task` does, for the actor with this id.
    pub(crate) fn apply_of_actor(&self, inner: &Inner, id: u64) {
        self.apply_own(inner);
        self.apply_of_identity(inner, identity_of_actor(id));
    }

    fn apply_of_identity(&self, inner: &Inner, identity: u64) {
        let state = self.state.lock();
        let ended = state.ended.get(&identity).copied();
        let runner = state.runner_of(identity).or(ended);
        drop(state);
        if let Some(runner) = runner.filter(|_| self.is_here()) {
            self.apply_turn(inner, runner, |_| true);
        }
    }

    /// Makes the effects of a turn up to a reply happen, before this thread sees the reply (SIM-4).
    pub(crate) fn apply_to_answer(&self, inner: &Inner, number: u32) {
        if !self.is_here() {
            return;
        }
        let state = self.state.lock();
        let is_it = |(effect, _): &(u32, Effect)| *effect == number;
        let mut turns = state.pending.iter();
        let runner = turns
            .find(|(_, pending)| pending.effects.iter().any(is_it))
            .map(|(&runner, _)| runner);
        drop(state);
        if let Some(runner) = runner {
            // The numbers increase and may wrap around.
            self.apply_turn(inner, runner, |next| next.wrapping_sub(number) as i32 <= 0);
        }
    }

    /// Makes all pending effects happen.
    pub(crate) fn apply_all(&self, inner: &Inner) {
        loop {
            let Some(runner) = self.state.lock().first_pending() else {
                return;
            };
            self.apply_turn(inner, runner, |_| true);
        }
    }

    /// Makes the effects of a turn happen while `goes_on` returns true for their numbers.
    pub(super) fn apply_turn(&self, inner: &Inner, runner: Runner, goes_on: impl Fn(u32) -> bool) {
        loop {
            let mut state = self.state.lock();
            let next = state.take_next(runner, &goes_on);
            let Some((kind, who)) = next else { return };
            let outer = std::mem::replace(&mut state.running, who);
            drop(state);
            self.take_effect(inner, kind);
            self.state.lock().running = outer;
        }
    }

    /// Makes the first effect of a turn happen, after it was drawn as a step.
    pub(super) fn arrive(&self, inner: &Inner, runner: Runner) {
        let effect = self.state.lock().take_next(runner, &|_| true);
        if let Some((kind, _)) = effect {
            self.take_effect(inner, kind);
        }
        self.state.lock().rests();
    }

    fn take_effect(&self, inner: &Inner, kind: Effect) {
        let is_here = self.is_here();
        let mut state = self.state.lock();
        let deliver = match kind {
            Effect::Message(sent, deliver) => {
                state.arriving = Some(sent);
                deliver
            }
            Effect::Close(_, deliver) | Effect::Act(deliver) => deliver,
            Effect::Answer(None) => {
                drop(state);
                // (SIM-5) The effect was counted.
                return inner.dec_activity();
            }
            Effect::Answer(Some(waker)) => Box::new(|| waker.wake()),
            Effect::Ready(due, runs_on) => return state.enqueue(due, &runs_on),
            Effect::FrameIsReady(id) => return state.offer_frame(id),
            Effect::WakesFrame(id) => {
                let waited = state.wake_frame(id);
                drop(state);
                if !waited {
                    // (SIM-3) The frame counts already.
                    inner.dec_activity();
                }
                return;
            }
        };
        // Calls made meanwhile belong to this effect, not to the turn in progress.
        let turn = if is_here { state.turn.take() } else { None };
        drop(state);
        contain(deliver);
        let mut state = self.state.lock();
        if is_here {
            state.turn = turn;
        }
        state.arriving = None;
        drop(state);
        // (SIM-5) The effect was counted.
        inner.dec_activity();
    }
}

impl SimState {
    /// Returns whether the running turn is split.
    pub(super) fn defers(&mut self) -> bool {
        if self.has_closed || self.failure.is_some() {
            return false;
        }
        let Some(turn) = self.turn else {
            return false;
        };
        match turn.split {
            TurnSplit::Split => return true,
            TurnSplit::Whole => return false,
            TurnSplit::NotDrawn => {}
        }
        // Drawn at the first effect, for all of the turn. A turn without effects draws nothing.
        let is_split = self.draw_split();
        if let Some(turn) = &mut self.turn {
            turn.split = match is_split {
                true => TurnSplit::Split,
                false => TurnSplit::Whole,
            };
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
    fn own(&self) -> Option<&PendingEffects> {
        self.pending.get(&self.turn?.runner)
    }

    /// Adds an effect to the pending ones of the running turn.
    pub(super) fn defer(&mut self, kind: Effect) {
        let Some(RunningTurn { runner, .. }) = self.turn else {
            unreachable!("a split turn is in progress")
        };
        self.defer_to(runner, kind);
    }

    fn defer_to(&mut self, runner: Runner, kind: Effect) {
        self.effects_born = self.effects_born.wrapping_add(1);
        let number = self.effects_born;
        let (rank, who) = (self.rank_of(runner), self.running.clone());
        let origin = self.origin();
        let turn = (origin.key, origin.turns);
        let pending = self
            .pending
            .entry(runner)
            .or_insert_with(|| PendingEffects {
                who,
                rank,
                turn,
                effects: VecDeque::new(),
                closes: Vec::new(),
                is_ready: false,
            });
        // The effects of an earlier turn have all happened, so these are of the running one.
        if pending.effects.is_empty() {
            (pending.turn, pending.rank) = (turn, rank);
            pending.closes.clear();
        }
        if let Effect::Close(actor, _) = kind {
            pending.closes.push(actor);
        }
        pending.effects.push_back((number, kind));
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
            self.ready.push(ReadyEntry::Effect(runner), rank);
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
    ) -> Option<(Effect, Who)> {
        let pending = self.pending.get_mut(&runner)?;
        let (number, _) = pending.effects.front()?;
        if !goes_on(*number) {
            return None;
        }
        let (_, effect) = pending.effects.pop_front()?;
        let who = pending.who.clone();
        self.offer(runner);
        Some((effect, who))
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
        self.defer_to(runner, Effect::Ready(due, runs_on.clone()));
        None
    }

    /// Adds a frame to the ready entries, after its own effects have happened.
    pub(super) fn offer_frame(&mut self, id: u64) {
        let runner = Runner::Frame(id);
        if self.has_pending(runner) {
            return self.defer_to(runner, Effect::FrameIsReady(id));
        }
        let Some(rank) = self.frame(id).map(|frame| frame.rank) else {
            return;
        };
        self.ready.push(ReadyEntry::Frame(id), rank);
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
