//! What a turn does to others, and what has not taken effect yet.
//!
//! A turn runs to its end at once, and on threads others run between two things that it does. So in a turn that is
//! *split* each message, answer, stop and wake-up is kept here. It takes effect in a step of its own. What was
//! promised holds from the call on: a message has its place in the mailbox, an answer is in its slot.
//!
//! # Invariants
//! - SIM-4: the effects of a turn take place in the order in which it called for them, and its task runs again
//!   only after the last. Whatever else would show that the turn is further has them take place first.
//! - SIM-5: each effect is counted as activity (ACTIVITY-1), as what is ready is (SIM-3).

use std::task::Waker;

use super::effect::{Effect, EffectKind};
use super::entry::{Runner, Turn, identity, identity_of_actor};
use super::simulation::Simulation;
use crate::contain::contain;
use crate::runtime::Inner;
use crate::task::{Delivery, MessageInfo, TaskInfo};

impl Simulation {
    /// Returns whether what this thread does to others next takes effect later.
    fn defers(&self) -> bool {
        self.is_here() && self.state.lock().defers()
    }

    /// Returns the same for what is sent to an actor. One that the turn has stopped is closed first; what it sends to
    /// itself comes at once.
    pub(crate) fn defers_to(&self, inner: &Inner, actor: u64) -> bool {
        if !self.defers() {
            return false;
        }
        let state = self.state.lock();
        let to_itself = state.runs(identity_of_actor(actor));
        let settles = to_itself || state.own_closes(actor);
        drop(state);
        if settles {
            self.settle_own(inner);
        }
        !to_itself
    }

    /// Keeps a message, which has its place already. Only where this [defers](Simulation::defers).
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
        state.defer(EffectKind::Message(sent, deliver));
    }

    /// Keeps the close of the mailbox of an actor. Only where this [defers](Simulation::defers).
    pub(crate) fn defer_close(&self, inner: &Inner, actor: u64, deliver: Delivery) {
        // (SIM-5)
        inner.inc_activity();
        self.state.lock().defer(EffectKind::Close(actor, deliver));
    }

    /// Keeps the end of an address. Only where this [has effects](Simulation::has_own) that are to come.
    pub(crate) fn defer_leave(&self, inner: &Inner, leave: Delivery) {
        // (SIM-5)
        inner.inc_activity();
        self.state.lock().defer(EffectKind::Leave(leave));
    }

    /// Returns the number of the next effect of this thread's turn, where this [defers](Simulation::defers).
    pub(crate) fn next_effect(&self) -> Option<u32> {
        self.defers()
            .then(|| self.state.lock().effects_born.wrapping_add(1))
    }

    /// Keeps the wake-up for an answer, which is in its slot already and was given its number by
    /// [`next_effect`](Simulation::next_effect).
    pub(crate) fn defer_answer(&self, inner: &Inner, asker: Option<Waker>) {
        // (SIM-5)
        inner.inc_activity();
        self.state.lock().defer(EffectKind::Answer(asker));
    }

    /// Keeps the wake-up of a frame where this [defers](Simulation::defers), which is counted; otherwise says
    /// false.
    pub(super) fn defers_wake(&self, frame: u64) -> bool {
        let is_here = self.is_here();
        let mut state = self.state.lock();
        let defers = is_here && state.has_own();
        if defers {
            state.defer(EffectKind::WakesFrame(frame));
        }
        defers
    }

    // -- effects take place -------------------------------------------------------------------

    /// Has what the running turn did take place, before it looks at others (SIM-4).
    pub(crate) fn settle_own(&self, inner: &Inner) {
        if !self.is_here() {
            return;
        }
        let turn = self.state.lock().turn;
        if let Some(Turn { runner, .. }) = turn {
            self.settle(inner, runner, |_| true);
        }
    }

    /// Does the same unless it is a turn of this actor.
    pub(crate) fn settle_elsewhere(&self, inner: &Inner, actor: u64) {
        let is_own = self.state.lock().runs(identity_of_actor(actor));
        if !is_own {
            self.settle_own(inner);
        }
    }

    /// Returns whether the running turn has done something that has not taken effect.
    pub(crate) fn has_own(&self) -> bool {
        self.is_here() && self.state.lock().has_own()
    }

    /// Has what a task or actor, and this thread, did take place, before this thread looks at it (SIM-4).
    pub(crate) fn settle_task(&self, inner: &Inner, task: &TaskInfo) {
        self.settle_own(inner);
        self.settle_identity(inner, identity(task));
    }

    /// Does the same for the actor with this id.
    pub(crate) fn settle_actor(&self, inner: &Inner, id: u64) {
        self.settle_own(inner);
        self.settle_identity(inner, identity_of_actor(id));
    }

    fn settle_identity(&self, inner: &Inner, identity: u64) {
        let state = self.state.lock();
        let ended = state.ended.get(&identity).copied();
        let runner = state.runner_of(identity).or(ended);
        drop(state);
        if let Some(runner) = runner.filter(|_| self.is_here()) {
            self.settle(inner, runner, |_| true);
        }
    }

    /// Has what a turn did up to an answer take place, before this thread sees that (SIM-4).
    pub(crate) fn settle_answer(&self, inner: &Inner, number: u32) {
        if !self.is_here() {
            return;
        }
        let state = self.state.lock();
        let is_it = |effect: &Effect| effect.number == number;
        let mut turns = state.pending.iter();
        let runner = turns
            .find(|(_, pending)| pending.effects.iter().any(is_it))
            .map(|(&runner, _)| runner);
        drop(state);
        if let Some(runner) = runner {
            // The numbers go up, and may begin again.
            self.settle(inner, runner, |next| next.wrapping_sub(number) as i32 <= 0);
        }
    }

    /// Has all that was done take place.
    pub(crate) fn settle_all(&self, inner: &Inner) {
        loop {
            let Some(runner) = self.state.lock().first_pending() else {
                return;
            };
            self.settle(inner, runner, |_| true);
        }
    }

    /// Has the effects of a turn take place as long as `goes_on` says so of their numbers.
    pub(super) fn settle(&self, inner: &Inner, runner: Runner, goes_on: impl Fn(u32) -> bool) {
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

    /// Has the first effect of a turn that was drawn take place.
    pub(super) fn arrive(&self, inner: &Inner, runner: Runner) {
        let effect = self.state.lock().take_next(runner, &|_| true);
        if let Some((kind, _)) = effect {
            self.take_effect(inner, kind);
        }
        self.state.lock().rests();
    }

    fn take_effect(&self, inner: &Inner, kind: EffectKind) {
        let is_here = self.is_here();
        let mut state = self.state.lock();
        let deliver = match kind {
            EffectKind::Message(sent, deliver) => {
                state.arriving = Some(sent);
                deliver
            }
            EffectKind::Close(_, deliver) | EffectKind::Leave(deliver) => deliver,
            EffectKind::Answer(None) => {
                drop(state);
                // (SIM-5) It was counted.
                return inner.dec_activity();
            }
            EffectKind::Answer(Some(waker)) => Box::new(|| waker.wake()),
            EffectKind::Ready(due, runs_on) => return state.enqueue(due, &runs_on),
            EffectKind::FrameIsReady(id) => return state.offer_frame(id),
            EffectKind::WakesFrame(id) => {
                let waited = state.wake_frame(id);
                drop(state);
                if !waited {
                    // (SIM-3) It is counted already.
                    inner.dec_activity();
                }
                return;
            }
        };
        // What is done meanwhile is part of it, and not of the turn that is under way.
        let turn = if is_here { state.turn.take() } else { None };
        drop(state);
        contain(deliver);
        let mut state = self.state.lock();
        if is_here {
            state.turn = turn;
        }
        state.arriving = None;
        drop(state);
        // (SIM-5) It was counted.
        inner.dec_activity();
    }
}
