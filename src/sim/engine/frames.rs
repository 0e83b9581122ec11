//! Frames: nested calls of `block_on` in a simulation, on the stack of its thread.
//!
//! The innermost loop polls the futures of all frames that are woken. A call returns when its
//! future is done and all calls above it have returned.
//!
//! # Invariants
//! - FRAME-1: The pointer of a frame points to data on the stack of its call, which stays there
//!   until the frame is closed. Only the thread of the simulation (SIM-1) uses it.
//! - FRAME-2: A frame that is being polled is in the state `Polled` or `Again` and is not drawn. So
//!   one loop at a time polls its future, and never within a poll of it.
#![expect(
    unsafe_code,
    reason = "pointers to futures on the stack; see FRAME-1 and FRAME-2"
)]

use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Wake, Waker};

use super::entry::{ReadyEntry, Runner, RunningTurn};
use super::frame::{FrameCall, FrameState, SimFrame};
use super::problem::RunProblem;
use super::simulation::Simulation;
use super::state::SimState;
use super::step::StepOutcome;
use super::trace::What;
use super::watch::Watching;
use crate::contain::{KeptWaker, contain};
use crate::instant::{self, Instant};
use crate::runtime::context::{self, Role, ThreadContext};
use crate::runtime::deadlock::Who;
use crate::runtime::{BlockingCall, Inner};

/// An open frame; dropping it closes the frame.
struct OpenFrame<'a> {
    simulation: &'a Simulation,
    inner: &'a Arc<Inner>,
    id: u64,
    /// The task or frame that waits counts already; its count is suspended while it waits.
    lent: bool,
    /// Opened after the run had failed, by a drop, which still gets what it waits for.
    is_late: bool,
    /// The simulated time that this thread saw before.
    outer: Option<Instant>,
    /// The task that ran before, and its turn.
    running: Who,
    turn: Option<RunningTurn>,
    /// The outermost call is watched.
    _watching: Option<Watching>,
}

impl Simulation {
    /// Polls the future whenever it is drawn, and runs other entries in between.
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
            waker: KeptWaker::from(Waker::from(Arc::new(FrameWaker {
                runtime: inner.clone(),
                id,
            }))),
            call,
        };
        let pointer = NonNull::from(&mut call).cast::<FrameCall<'static>>();
        let open = OpenFrame::new(self, inner, id, pointer);
        let context = ThreadContext::new(inner, Role::Outside);
        let entered = context.enter();
        let stuck = open.until_done();
        let who = self.state.lock().frame(id).map(|frame| frame.who.clone());
        drop(open);
        // Not in a drop during unwinding: the drop of the future may call this again.
        match stuck {
            Err(_) => self.as_who(who, || contain(|| call.call.discard())),
            Ok(()) => call.call.discard(),
        }
        drop(entered);
        stuck
    }

    /// Calls `f`, whose events are attributed to `who`.
    pub(super) fn as_who(&self, who: Option<Who>, f: impl FnOnce()) {
        let mut state = self.state.lock();
        let who = who.unwrap_or_else(|| state.running.clone());
        let running = std::mem::replace(&mut state.running, who);
        drop(state);
        f();
        self.state.lock().running = running;
    }

    /// Makes the pending effects of a frame's future happen.
    fn apply_of_frame(&self, inner: &Inner, id: u64) {
        self.apply_turn(inner, Runner::Frame(id), |_| true);
    }

    /// Polls a frame that was drawn.
    pub(super) fn poll(&self, inner: &Inner, id: u64, call: NonNull<FrameCall<'static>>) {
        // SAFETY: (FRAME-1) the frame is open and this is its thread; (FRAME-2) no other poll of it
        // is in progress.
        let done = unsafe { (*call.as_ptr()).poll() };
        let mut state = self.state.lock();
        state.rests();
        let rests = state.rest_frame(id, done);
        drop(state);
        if rests {
            // (SIM-3) It waits, so it no longer counts.
            inner.dec_activity();
        }
    }
}

impl<'a> OpenFrame<'a> {
    fn new(
        simulation: &'a Simulation,
        inner: &'a Arc<Inner>,
        id: u64,
        call: NonNull<FrameCall<'static>>,
    ) -> Self {
        // The future may wait for a result of earlier effects.
        simulation.apply_own(inner);
        let lent = context::lends_its_count(inner);
        if !lent {
            inner.inc_activity();
        }
        let mut state = simulation.state.lock();
        let is_outermost = state.frames.is_empty();
        let origin = state.origin().child();
        let (running, turn) = (state.running.clone(), state.turn.take());
        let is_late = state.failure.is_some();
        if is_outermost || is_late {
            state.last_step = state.step.saturating_add(simulation.plan.steps);
        }
        let who = match is_outermost {
            true => Who::Other("main"),
            false => running.clone(),
        };
        let rank = state.ready.rank();
        state.frames.push(SimFrame {
            id,
            who,
            rank,
            origin,
            state: FrameState::Ready,
            call,
        });
        state.ready.push(ReadyEntry::Frame(id), rank);
        let outer = instant::simulate(Some(state.now));
        drop(state);
        OpenFrame {
            simulation,
            inner,
            id,
            lent,
            is_late,
            outer,
            running,
            turn,
            _watching: is_outermost.then(|| Watching::begin(inner)),
        }
    }

    /// Runs steps until this frame is done, or returns an error that says why it never will be.
    /// `None`: the run is judged, and the failure is kept.
    fn until_done(&self) -> Result<(), Option<String>> {
        let OpenFrame {
            simulation, inner, ..
        } = self;
        let problem = loop {
            if simulation.state.lock().is_done(self.id) {
                simulation.apply_of_frame(inner, self.id);
                return Ok(());
            }
            match simulation.step(inner, self.is_late) {
                StepOutcome::Done => {}
                StepOutcome::Failed => return Err(None),
                StepOutcome::TooMany => break simulation.too_many(inner),
                StepOutcome::Rest => break RunProblem::Deadlock(simulation.rest_text(inner)),
            }
        };
        // A judged run keeps its failure for the verdict. Otherwise the caller panics with the text.
        if simulation.plan.judged && !self.is_late {
            simulation.fail_waiting(inner, problem);
            return Err(None);
        }
        let trace = simulation.state.lock().trace.text();
        let plan = &simulation.plan;
        Err(Some(format!("{problem}\n{trace}in a runtime of {plan}\n")))
    }
}

impl Drop for OpenFrame<'_> {
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
            // Between two calls of `block_on` the program may look at anything.
            self.simulation.apply_all(self.inner);
        }
        // The task or frame that waited counts again.
        match (self.lent, counted) {
            (true, false) => self.inner.inc_activity(),
            (false, true) => self.inner.dec_activity(),
            _ => {}
        }
    }
}

impl SimState {
    fn next_frame(&mut self) -> u64 {
        self.frames_born += 1;
        self.frames_born
    }

    pub(super) fn frame(&mut self, id: u64) -> Option<&mut SimFrame> {
        self.frames.iter_mut().find(|frame| frame.id == id)
    }

    fn is_done(&mut self, id: u64) -> bool {
        self.frame(id).is_none_or(|frame| frame.is_done())
    }

    /// Marks a drawn frame as being polled; returns its name and its call, unless it is closed by
    /// now.
    pub(super) fn take_frame(&mut self, id: u64) -> Option<(Who, NonNull<FrameCall<'static>>)> {
        let frame = self.frame(id)?;
        frame.state = FrameState::Polled;
        Some((frame.who.clone(), frame.call))
    }

    /// Sets the state of a frame after a poll; returns whether it waits from now on.
    fn rest_frame(&mut self, id: u64, done: bool) -> bool {
        let SimState { frames, ready, .. } = self;
        let Some(frame) = frames.iter_mut().find(|frame| frame.id == id) else {
            return false;
        };
        // A frame that was woken while it was polled is ready again, as a task that yields.
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

    /// Wakes a frame; returns whether it was waiting.
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
        // (SIM-3) Counted before it is ready. The waking turn counts itself, or is outside.
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
