//! Calls of `block_on` in a simulation, one above the other on the stack of its thread.
//!
//! All that are woken are polled, by whichever loop is the innermost; a call comes back when its future
//! is done and those above it have come back.
//!
//! # Invariants
//! - FRAME-1: the pointer of a frame is to what its call has on the stack, which is there until the frame is
//!   closed; and only the thread of the simulation (SIM-1) uses it.
//! - FRAME-2: a frame that is being polled is in the state `Polled` or `Again`, and is not drawn; so its future is
//!   polled by one loop at a time, and not within itself.
#![expect(
    unsafe_code,
    reason = "pointers to futures on the stack; see FRAME-1 and FRAME-2"
)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Wake, Waker};

use super::entry::{Entry, Runner, Turn};
use super::frame::{Frame, FrameCall, FrameState, Pointer};
use super::problem::Problem;
use super::simulation::Simulation;
use super::state::State;
use super::step::Step;
use super::trace::What;
use crate::contain::contain;
use crate::instant::{self, Instant};
use crate::runtime::context::{self, Role, ThreadContext};
use crate::runtime::deadlock::Who;
use crate::runtime::{BlockingCall, Inner};

/// A frame that is driven; dropped, it is closed.
struct Open<'a> {
    simulation: &'a Simulation,
    inner: &'a Arc<Inner>,
    id: u64,
    /// A task or frame that waits like this is counted already, and not while it waits.
    lent: bool,
    /// It was opened when the run had failed: by a drop, which is to have what it waits for.
    is_late: bool,
    /// What time this thread saw before.
    outer: Option<Instant>,
    /// Who ran before, and in which turn.
    running: Who,
    turn: Option<Turn>,
}

impl Simulation {
    /// Polls the future whenever that is drawn, and runs whatever else is meanwhile.
    pub(crate) fn block_on(
        &self,
        inner: &Arc<Inner>,
        call: &mut dyn BlockingCall,
    ) -> Result<(), Option<String>> {
        if !self.is_here() {
            let why = "a simulated runtime runs on the thread that built it, and on no other";
            return Err(Some(why.into()));
        }
        let id = self.state.lock().next_frame();
        let mut call = FrameCall {
            inner,
            waker: Waker::from(Arc::new(FrameWaker {
                runtime: inner.clone(),
                id,
            })),
            call,
        };
        let pointer = NonNull::from(&mut call).cast::<FrameCall<'static>>();
        let open = Open::new(self, inner, id, Pointer(pointer));
        let context = ThreadContext::new(inner, Role::Outside);
        let entered = context.enter();
        let stuck = open.until_done();
        let who = self.state.lock().frame(id).map(|frame| frame.who.clone());
        drop(open);
        // Not while this unwinds: its drop may come here again.
        match stuck {
            Err(_) => self.as_who(who, || contain(|| call.call.discard())),
            Ok(()) => call.call.discard(),
        }
        drop(entered);
        stuck
    }

    /// Calls something that is done by this one, whose turn it is not.
    pub(super) fn as_who(&self, who: Option<Who>, f: impl FnOnce()) {
        let mut state = self.state.lock();
        let who = who.unwrap_or_else(|| state.running.clone());
        let running = std::mem::replace(&mut state.running, who);
        drop(state);
        f();
        self.state.lock().running = running;
    }

    /// What the future of a frame has done takes place.
    fn settle_frame(&self, inner: &Inner, id: u64) {
        self.settle(inner, Runner::Frame(id), |_| true);
    }

    /// Polls a frame that was drawn.
    pub(super) fn poll(&self, inner: &Inner, id: u64, call: Pointer) {
        // SAFETY: (FRAME-1) open, and this is the thread; (FRAME-2) nobody else polls it.
        let done = unsafe { (*call.0.as_ptr()).poll() };
        let mut state = self.state.lock();
        state.rests();
        let rests = state.rest_frame(id, done);
        drop(state);
        if rests {
            // (SIM-3) It is counted no more.
            inner.dec_activity();
        }
    }
}

impl<'a> Open<'a> {
    fn new(simulation: &'a Simulation, inner: &'a Arc<Inner>, id: u64, call: Pointer) -> Self {
        // What is waited for may depend on what was done before.
        simulation.settle_own(inner);
        let lent = context::lends_its_count(inner);
        if !lent {
            inner.inc_activity();
        }
        let mut state = simulation.state.lock();
        let origin = state.origin().child();
        let (running, turn) = (state.running.clone(), state.turn.take());
        let is_late = state.failure.is_some();
        if state.frames.is_empty() || is_late {
            state.last_step = state.step.saturating_add(simulation.plan.steps);
        }
        let who = match state.frames.is_empty() {
            true => Who::Other("main"),
            false => running.clone(),
        };
        let rank = state.ready.rank();
        state.frames.push(Frame {
            id,
            who,
            rank,
            origin,
            state: FrameState::Ready,
            call,
        });
        state.ready.push(Entry::Frame(id), rank);
        let outer = instant::simulate(Some(state.now));
        drop(state);
        Open {
            simulation,
            inner,
            id,
            lent,
            is_late,
            outer,
            running,
            turn,
        }
    }

    /// Does what is drawn until this frame is done; or says why it will never be. `None`: the run is
    /// judged, and the failure is kept.
    fn until_done(&self) -> Result<(), Option<String>> {
        let Open {
            simulation, inner, ..
        } = self;
        let problem = loop {
            if simulation.state.lock().is_done(self.id) {
                simulation.settle_frame(inner, self.id);
                return Ok(());
            }
            match simulation.step(inner, self.is_late) {
                Step::Done => {}
                Step::Failed => return Err(None),
                Step::TooMany => break simulation.too_many(inner),
                Step::Rest => break Problem::Deadlock(simulation.rest_text(inner)),
            }
        };
        if simulation.plan.judged && !self.is_late {
            simulation.fail_waiting(inner, problem);
            return Err(None);
        }
        let trace = simulation.state.lock().trace.text();
        let plan = &simulation.plan;
        Err(Some(format!("{problem}\n{trace}in a runtime of {plan}\n")))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.simulation.state.lock();
        let closed = state.frames.pop();
        let counted = closed.is_some_and(|frame| frame.state != FrameState::Idle);
        state.running = self.running.clone();
        state.turn = self.turn;
        let is_inside = self.outer.is_some() && !state.frames.is_empty();
        instant::simulate(if is_inside {
            Some(state.now)
        } else {
            self.outer
        });
        let is_last = state.frames.is_empty();
        drop(state);
        if is_last {
            // Between two calls of `block_on` anything may be looked at.
            self.simulation.settle_all(self.inner);
        }
        // Whoever lent the count has it again.
        match (self.lent, counted) {
            (true, false) => self.inner.inc_activity(),
            (false, true) => self.inner.dec_activity(),
            _ => {}
        }
    }
}

impl State {
    fn next_frame(&mut self) -> u64 {
        self.frames_born += 1;
        self.frames_born
    }

    pub(super) fn frame(&mut self, id: u64) -> Option<&mut Frame> {
        self.frames.iter_mut().find(|frame| frame.id == id)
    }

    fn is_done(&mut self, id: u64) -> bool {
        self.frame(id).is_none_or(|frame| frame.is_done())
    }

    /// A frame was drawn, which may be closed by now: gives its name and its call.
    pub(super) fn take_frame(&mut self, id: u64) -> Option<(Who, Pointer)> {
        let frame = self.frame(id)?;
        frame.state = FrameState::Polled;
        Some((frame.who.clone(), frame.call))
    }

    /// After a poll: says whether the frame waits from now on.
    fn rest_frame(&mut self, id: u64, done: bool) -> bool {
        let State { frames, ready, .. } = self;
        let Some(frame) = frames.iter_mut().find(|frame| frame.id == id) else {
            return false;
        };
        frame.state = match frame.state {
            _ if done => FrameState::Done,
            FrameState::Again => {
                frame.rank = ready.yielded().unwrap_or(frame.rank);
                FrameState::Ready
            }
            _ => FrameState::Idle,
        };
        let (is_ready, is_idle) = (
            frame.state == FrameState::Ready,
            frame.state == FrameState::Idle,
        );
        if is_ready {
            self.offer_frame(id);
        }
        is_idle
    }

    /// Wakes a frame; says whether it had waited.
    pub(super) fn wake_frame(&mut self, id: u64) -> bool {
        let Some(frame) = self.frame(id) else {
            return false;
        };
        let waited = frame.state == FrameState::Idle;
        let who = frame.who.clone();
        match frame.state {
            FrameState::Idle => {
                frame.state = FrameState::Ready;
                self.offer_frame(id);
            }
            FrameState::Polled => frame.state = FrameState::Again,
            FrameState::Ready | FrameState::Again | FrameState::Done => return false,
        }
        self.add(What::Wakes(who));
        waited
    }
}

struct FrameWaker {
    runtime: Arc<Inner>,
    id: u64,
}

impl Wake for FrameWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(simulation) = Simulation::of(&self.runtime) else {
            return;
        };
        // (SIM-3) First; whoever wakes is counted, or from outside.
        self.runtime.inc_activity();
        if simulation.defers_wake(self.id) {
            return;
        }
        let waited = simulation.state.lock().wake_frame(self.id);
        if !waited {
            self.runtime.dec_activity();
        }
    }
}
