//! Calls of `block_on` in a simulation, one above the other on the stack of its thread.
//!
//! Only the innermost is polled. One beneath it that is woken goes on when those above have ended.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::state::{Entry, State};
use super::trace::What;
use super::{Problem, Simulation, Step};
use crate::contain::contain;
use crate::instant::{self, Instant};
use crate::runtime::asks::Who;
use crate::runtime::current::{self, Place, Role};
use crate::runtime::inner::Inner;

/// A call of `block_on`.
pub(super) struct Frame {
    id: u64,
    pub(super) who: Who,
    pub(super) rank: u64,
    state: Progress,
    /// It is among what is ready.
    queued: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// To be polled.
    Ready,
    /// Being polled; or polled and done.
    Polled,
    /// Woken while it is polled.
    Again,
    /// It waits, and is not counted.
    Idle,
}

impl Frame {
    pub(super) fn is_ready(&self) -> bool {
        self.state == Progress::Ready
    }

    pub(super) fn is_queued(&self) -> bool {
        self.queued
    }
}

/// What a judged run unwinds with when it has failed; nobody is told of it.
struct Stopped;

/// A frame that is driven; dropped, it is closed.
struct Open<'a> {
    simulation: &'a Simulation,
    inner: &'a Arc<Inner>,
    id: u64,
    /// A task or frame that waits like this is counted already, and not while it waits.
    lent: bool,
    /// What time this thread saw before.
    outer: Option<Instant>,
    /// Who ran before.
    running: Who,
}

impl Simulation {
    /// Polls the future whenever that is drawn, and runs whatever else is meanwhile.
    #[track_caller]
    pub(in crate::runtime) fn block_on<F: Future>(
        &self,
        inner: &Arc<Inner>,
        future: F,
    ) -> F::Output {
        if !self.is_here() {
            panic!("a simulated runtime runs on the thread that built it, and on no other");
        }
        let open = Open::new(self, inner);
        let place = Place::new(inner, Role::Outside);
        let _entered = place.enter();
        let waker = Waker::from(Arc::new(FrameWaker {
            runtime: inner.clone(),
            id: open.id,
        }));
        let mut future = pin!(Some(future));
        // No closure: the panic is the caller's.
        let stuck = loop {
            if let Err(stuck) = open.until_polled() {
                break stuck;
            }
            let polled = future.as_mut().as_pin_mut();
            let polled = polled.map(|future| future.poll(&mut Context::from_waker(&waker)));
            match polled {
                Some(Poll::Ready(value)) => return value,
                _ => open.rest(),
            }
        };
        // Not while this unwinds: its drop may come here again.
        contain(|| future.set(None));
        match stuck {
            None => resume_unwind(Box::new(Stopped)),
            Some(why) => panic!("{why}"),
        }
    }
}

impl<'a> Open<'a> {
    fn new(simulation: &'a Simulation, inner: &'a Arc<Inner>) -> Self {
        let lent = current::lends_its_count(inner);
        if !lent {
            inner.rise();
        }
        let mut state = simulation.state.lock();
        state.frames_born += 1;
        let id = state.frames_born;
        let running = state.running.clone();
        let who = match (&running, state.frames.is_empty()) {
            (_, true) => {
                state.last_step = state.step.saturating_add(simulation.plan.steps);
                Who::Other("main")
            }
            (who, false) => who.clone(),
        };
        let rank = state.ready.rank();
        state.frames.push(Frame {
            id,
            who,
            rank,
            state: Progress::Ready,
            queued: true,
        });
        state.ready.push(Entry::Frame(id), rank);
        let outer = instant::simulate(Some(state.now));
        drop(state);
        Open {
            simulation,
            inner,
            id,
            lent,
            outer,
            running,
        }
    }

    /// Does what is drawn until that is this frame; or says why it will never be. `None`: the run is
    /// judged, and the failure is kept.
    fn until_polled(&self) -> Result<(), Option<String>> {
        let Open {
            simulation, inner, ..
        } = self;
        let problem = loop {
            match simulation.step(inner, Some(self.id)) {
                Step::Done => {}
                Step::Poll => return Ok(()),
                Step::Failed => return Err(None),
                Step::TooMany => break simulation.too_many(inner),
                Step::Rest => break Problem::Deadlock(simulation.rest_text(inner)),
            }
        };
        if simulation.plan.judged {
            simulation.fail(problem);
            return Err(None);
        }
        let trace = simulation.state.lock().trace.text();
        Err(Some(format!("{problem}\n{trace}")))
    }

    /// The future waits, unless it was woken in its poll.
    fn rest(&self) {
        let mut state = self.simulation.state.lock();
        state.running = self.running.clone();
        let rests = state.rest_frame(self.id);
        drop(state);
        if rests {
            // (V3) It is counted no more.
            self.inner.fall();
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.simulation.state.lock();
        let closed = state.frames.pop();
        let counted = closed.is_some_and(|frame| frame.state != Progress::Idle);
        state.running = self.running.clone();
        state.queue_innermost();
        let is_inside = self.outer.is_some() && !state.frames.is_empty();
        instant::simulate(if is_inside {
            Some(state.now)
        } else {
            self.outer
        });
        drop(state);
        // Whoever lent the count has it again.
        match (self.lent, counted) {
            (true, false) => self.inner.rise(),
            (false, true) => self.inner.fall(),
            _ => {}
        }
    }
}

impl State {
    pub(super) fn frame(&mut self, id: u64) -> Option<&mut Frame> {
        self.frames.iter_mut().find(|frame| frame.id == id)
    }

    /// A frame was drawn: gives its name if it is the one that is driven, and so to be polled.
    pub(super) fn take_frame(&mut self, id: u64, driven: Option<u64>) -> Option<Who> {
        let frame = self.frame(id)?;
        frame.queued = false;
        if driven != Some(id) {
            return None;
        }
        frame.state = Progress::Polled;
        Some(frame.who.clone())
    }

    /// After a poll: says whether the frame waits from now on.
    fn rest_frame(&mut self, id: u64) -> bool {
        let State { frames, ready, .. } = self;
        let Some(frame) = frames.iter_mut().find(|frame| frame.id == id) else {
            return false;
        };
        let rests = frame.state == Progress::Polled;
        if rests {
            frame.state = Progress::Idle;
        } else {
            frame.state = Progress::Ready;
            frame.rank = ready.yielded().unwrap_or(frame.rank);
            self.queue_innermost();
        }
        rests
    }

    /// Has the innermost frame among what is ready, if it is.
    fn queue_innermost(&mut self) {
        let State { frames, ready, .. } = self;
        if let Some(frame) = frames.last_mut()
            && frame.is_ready()
            && !std::mem::replace(&mut frame.queued, true)
        {
            ready.push(Entry::Frame(frame.id), frame.rank);
        }
    }

    /// Wakes a frame; says whether it had waited.
    fn wake_frame(&mut self, id: u64) -> bool {
        let Some(frame) = self.frame(id) else {
            return false;
        };
        let waited = frame.state == Progress::Idle;
        match frame.state {
            Progress::Idle => frame.state = Progress::Ready,
            Progress::Polled => frame.state = Progress::Again,
            Progress::Ready | Progress::Again => return false,
        }
        let who = frame.who.clone();
        self.queue_innermost();
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
        let Some(simulation) = self.runtime.simulation() else {
            return;
        };
        // (V3) First; whoever wakes is counted, or from outside.
        self.runtime.rise();
        let waited = simulation.state.lock().wake_frame(self.id);
        if !waited {
            self.runtime.fall();
        }
    }
}
