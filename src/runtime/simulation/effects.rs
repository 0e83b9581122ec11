//! What a turn does to others, and what has not taken effect yet.
//!
//! A turn runs to its end at once, and on threads others run between two things that it does. So in a turn that is
//! *split* each message, answer, stop and wake-up is kept here. It takes effect in a step of its own. What was
//! promised holds from the call on: a message has its place in the mailbox, an answer is in its slot.
//!
//! # Invariants
//! - V4: the effects of a turn take place in the order in which it called for them, and its task runs again
//!   only after the last. Whatever else would show that the turn is further has them take place first.
//! - V5: each effect is counted in the pulse (K1 in quiescence.rs), as what is ready is (V3).

use std::collections::VecDeque;
use std::task::Waker;

use super::messages::Sent;
use super::ready::below;
use super::state::{Due, Entry, State, identity, identity_of_actor};
use super::{Lives, Simulation};
use crate::contain::contain;
use crate::runtime::asks::Who;
use crate::runtime::inner::Inner;
use crate::runtime::policy::TURNS;
use crate::task::{Delivery, MessageInfo, TaskInfo};

/// Whose turn it is, by a number of this simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Runner {
    Frame(u64),
    /// With what it is tracked by.
    Task {
        number: u64,
        identity: u64,
    },
}

/// The turn under way on the thread of the simulation.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) runner: Runner,
    /// Whether it is split; `None` until it does something to others.
    pub(super) is_split: Option<bool>,
}

impl Turn {
    pub(super) fn new(runner: Runner) -> Self {
        Turn {
            runner,
            is_split: None,
        }
    }
}

impl Pending {
    /// Returns which turn it is, if another key goes on before all of it has taken effect.
    pub(super) fn overtaken_by(&self, key: u64) -> Option<(u64, u64)> {
        (self.turn.0 != key && !self.effects.is_empty()).then_some(self.turn)
    }
}

/// The effects of a turn that are still to come.
pub(super) struct Pending {
    who: Who,
    rank: u64,
    /// Its key, and which of its turns it is.
    turn: (u64, u64),
    effects: VecDeque<Effect>,
    /// The actors that it has closed since it had no effects.
    closes: Vec<u64>,
    /// It is among what is ready.
    is_ready: bool,
}

struct Effect {
    /// Among all of the run.
    number: u32,
    kind: Kind,
}

enum Kind {
    Message(Sent, Delivery),
    /// The mailbox of the actor with this id is closed.
    Close(u64, Delivery),
    /// An address is given up.
    Leave(Delivery),
    Answer(Option<Waker>),
    Ready(Due, Lives),
    /// A frame is woken that waits, or is ready for its next poll.
    WakesFrame(u64),
    FrameIsReady(u64),
}

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
        // (V5)
        inner.rise();
        let mut state = self.state.lock();
        let sent = state.sent(to, info);
        state.defer(Kind::Message(sent, deliver));
    }

    /// Keeps the close of the mailbox of an actor. Only where this [defers](Simulation::defers).
    pub(crate) fn defer_close(&self, inner: &Inner, actor: u64, deliver: Delivery) {
        // (V5)
        inner.rise();
        self.state.lock().defer(Kind::Close(actor, deliver));
    }

    /// Keeps the end of an address. Only where this [has effects](Simulation::has_own) that are to come.
    pub(crate) fn defer_leave(&self, inner: &Inner, leave: Delivery) {
        // (V5)
        inner.rise();
        self.state.lock().defer(Kind::Leave(leave));
    }

    /// Returns the number of the next effect of this thread's turn, where this [defers](Simulation::defers).
    pub(crate) fn next_effect(&self) -> Option<u32> {
        self.defers()
            .then(|| self.state.lock().effects_born.wrapping_add(1))
    }

    /// Keeps the wake-up for an answer, which is in its slot already and was given its number by
    /// [`next_effect`](Simulation::next_effect).
    pub(crate) fn defer_answer(&self, inner: &Inner, asker: Option<Waker>) {
        // (V5)
        inner.rise();
        self.state.lock().defer(Kind::Answer(asker));
    }

    /// Keeps the wake-up of a frame where this [defers](Simulation::defers), which is counted; otherwise says
    /// false.
    pub(super) fn defers_wake(&self, frame: u64) -> bool {
        let is_here = self.is_here();
        let mut state = self.state.lock();
        let defers = is_here && state.has_own();
        if defers {
            state.defer(Kind::WakesFrame(frame));
        }
        defers
    }

    // -- effects take place -------------------------------------------------------------------

    /// Has what the running turn did take place, before it looks at others (V4).
    pub(crate) fn settle_own(&self, inner: &Inner) {
        if !self.is_here() {
            return;
        }
        let turn = self.state.lock().turn;
        if let Some(Turn { runner, .. }) = turn {
            self.settle(inner, runner, |_| true);
        }
    }

    /// Returns whether the running turn has done something that has not taken effect.
    pub(crate) fn has_own(&self) -> bool {
        self.is_here() && self.state.lock().has_own()
    }

    /// Has what a task or actor, and this thread, did take place, before this thread looks at it (V4).
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

    /// Has what a turn did up to an answer take place, before this thread sees that (V4).
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

    fn take_effect(&self, inner: &Inner, kind: Kind) {
        let is_here = self.is_here();
        let mut state = self.state.lock();
        let deliver = match kind {
            Kind::Message(sent, deliver) => {
                state.arriving = Some(sent);
                deliver
            }
            Kind::Close(_, deliver) | Kind::Leave(deliver) => deliver,
            Kind::Answer(None) => {
                drop(state);
                // (V5) It was counted.
                return inner.fall();
            }
            Kind::Answer(Some(waker)) => Box::new(|| waker.wake()),
            Kind::Ready(due, home) => return state.enqueue(due, &home),
            Kind::FrameIsReady(id) => return state.offer_frame(id),
            Kind::WakesFrame(id) => {
                let waited = state.wake_frame(id);
                drop(state);
                if !waited {
                    // (V3) It is counted already.
                    inner.fall();
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
        // (V5) It was counted.
        inner.fall();
    }
}

impl State {
    fn defers(&mut self) -> bool {
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
        // Drawn also where a script says it: what is drawn next is to be the same.
        let is_split = splits > 0 && below(origin.draw(), TURNS) < splits;
        let (key, turn) = (origin.key, origin.turns);
        match &self.reading {
            Some(reading) => reading.splits(key, turn),
            None => is_split,
        }
    }

    /// Returns whether the turn is of the task or actor with this identity.
    fn runs(&self, own: u64) -> bool {
        let runner = self.turn.map(|turn| turn.runner);
        matches!(runner, Some(Runner::Task { identity, .. }) if identity == own)
    }

    /// Returns whether the running turn has effects that are to come.
    pub(super) fn has_own(&self) -> bool {
        self.own()
            .is_some_and(|pending| !pending.effects.is_empty())
    }

    /// Returns whether the running turn has closed this actor, or is about to.
    fn own_closes(&self, actor: u64) -> bool {
        self.own()
            .is_some_and(|pending| pending.closes.contains(&actor))
    }

    fn own(&self) -> Option<&Pending> {
        self.pending.get(&self.turn?.runner)
    }

    /// Adds an effect to those of the running turn.
    fn defer(&mut self, kind: Kind) {
        let Some(Turn { runner, .. }) = self.turn else {
            unreachable!("a turn that is split is under way")
        };
        self.defer_to(runner, kind);
    }

    fn defer_to(&mut self, runner: Runner, kind: Kind) {
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
            pending.turn = turn;
            pending.closes.clear();
        }
        if let Kind::Close(actor, _) = kind {
            pending.closes.push(actor);
        }
        pending.effects.push_back(Effect { number, kind });
        self.offer(runner);
    }

    /// Puts the effects of a turn, if there are any, among what is ready.
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

    /// Forgets what has ended in this turn, if the turn is over and all of it has taken effect.
    pub(super) fn forget_ended(&mut self, runner: Runner) {
        let is_running = self.turn.is_some_and(|turn| turn.runner == runner);
        if !is_running && !self.has_pending(runner) {
            self.ended.retain(|_, ended| *ended != runner);
        }
    }

    /// Takes the effects of a turn out of what is ready; returns who does them, if there are any.
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

    /// Returns the key of effects; 0, which no key is, if there are none any more.
    pub(super) fn key_of(&self, runner: Runner) -> u64 {
        let pending = self.pending.get(&runner);
        let pending = pending.filter(|pending| !pending.effects.is_empty());
        pending.map_or(0, |pending| pending.turn.0)
    }

    /// Lowers the rank of these effects, and of the task that they are of.
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

    fn first_pending(&self) -> Option<Runner> {
        let mut turns = self.pending.iter();
        turns
            .find(|(_, pending)| !pending.effects.is_empty())
            .map(|(&runner, _)| runner)
    }

    fn take_next(&mut self, runner: Runner, goes_on: &impl Fn(u32) -> bool) -> Option<(Kind, Who)> {
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

    /// Keeps what has become ready, if that is an effect of the running turn, or of a task whose own effects are
    /// still to come; otherwise gives it back.
    pub(super) fn defer_ready(&mut self, due: Due, home: &Lives, is_here: bool) -> Option<Due> {
        let own = self.runner_of(due.identity);
        let runner = match (own, self.turn) {
            (Some(own), _) if self.has_pending(own) => own,
            (_, Some(turn)) if is_here && self.has_own() => turn.runner,
            _ => return Some(due),
        };
        self.defer_to(runner, Kind::Ready(due, home.clone()));
        None
    }

    /// Puts a frame that is ready among what is, once its own effects have taken place.
    pub(super) fn offer_frame(&mut self, id: u64) {
        let runner = Runner::Frame(id);
        if self.has_pending(runner) {
            return self.defer_to(runner, Kind::FrameIsReady(id));
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

    /// Returns who that is, if it has not ended.
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
