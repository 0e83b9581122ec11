//! A simulated runtime: everything on one thread, in an order drawn from a seed, in virtual time.
//!
//! The thread that built it runs tasks, pinned threads' tasks and blocking jobs while it waits in
//! `block_on`, each such call a *frame*: one *step* is the run of one thing that is ready, or a poll of
//! the innermost frame's future.
//!
//! # Invariants
//! - V1: only the thread that built the runtime takes anything out to run it, and only there is
//!   dropped what lives on its pinned threads (E1 in seat.rs).
//! - V2: no user code runs under the lock: wakers, runnables and futures are used outside.
//! - V3: each runnable that is ready is counted in the pulse from before it is until its turn has
//!   ended or it is dropped, and each frame while its future does not wait (K1 in quiescence.rs).

mod closing;
mod frames;
mod messages;
mod ready;
mod trace;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use closing::Closing;
use frames::Frame;
use messages::Lane;
pub(super) use ready::{Draw, Ready, Schedule};
use trace::{Trace, What};

use super::asks::{self, Edge, Who};
use super::chosen::Local;
use super::current::{Place, Role};
use super::inner::Inner;
use super::policy::Plan;
use crate::contain::contain;
use crate::error::Unjoined;
use crate::instant::{self, Instant};
use crate::pinned::Seat;
use crate::sync::Mutex;
use crate::task::{Runnable, TaskInfo};

/// How long a step takes in virtual time: about as long as a short turn takes on a real machine, so
/// that whoever waits for a time by yielding sees it come.
const STEP: Duration = Duration::from_micros(1);

pub(crate) struct Simulation {
    plan: Plan,
    /// The one that built it.
    thread: ThreadId,
    state: Mutex<State>,
}

struct State {
    ready: Ready<Entry>,
    draw: Draw,
    now: Instant,
    step: u64,
    /// After which step it has taken too many.
    last_step: u64,
    /// All tasks, actors and jobs that have not ended, by [`identity`].
    tasks: HashMap<u64, Tracked>,
    /// Of a judged run: the labels of all actors that there were, by their ids.
    actors: HashMap<u64, TaskInfo>,
    /// What is on its way to an actor, by its id.
    lanes: HashMap<u64, Lane>,
    /// How many tasks there were.
    tasks_born: u64,
    /// How many messages there were.
    messages_born: u64,
    /// How many frames there were.
    frames_born: u64,
    /// How many runnables became ready.
    pushed: u64,
    frames: Vec<Frame>,
    /// Who does what happens now.
    running: Who,
    trace: Trace,
    closing: Option<Closing>,
    failure: Option<Failed>,
}

/// Something that is ready.
enum Entry {
    Task {
        runnable: Runnable,
        identity: u64,
        /// How many became ready before it.
        age: u64,
    },
    Frame(u64),
}

/// What is known of a task, actor or job.
struct Tracked {
    /// Under its number in this simulation.
    label: TaskInfo,
    rank: u64,
    home: Lives,
}

/// Where a task lives.
#[derive(Clone)]
pub(crate) enum Lives {
    Workers,
    Seat(Arc<Seat>),
    Blocking,
}

/// What a step came to.
enum Step {
    /// Something has run, or time has passed.
    Done,
    /// It is the turn of the frame's future.
    Poll,
    /// Nothing is ready and no deadline is left.
    Rest,
    /// It has taken too many steps.
    TooMany,
    /// A judged run has failed.
    Failed,
}

/// Why a simulated run has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Somebody panicked, and nobody joined it: who, and the text.
    Panicked(String),
    /// Nothing was ready and no timer armed, but somebody waited: who waits for whom.
    Deadlock(String),
    /// These actors had to be cancelled by the shutdown that follows a run.
    Cancelled(Vec<String>),
    /// It has taken this many steps, and is not over.
    Steps(u64),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Panicked(text) => f.write_str(text),
            Problem::Deadlock(who) => write!(f, "deadlock: {who}"),
            Problem::Cancelled(actors) => {
                write!(f, "the shutdown had to cancel {}", actors.join(", "))
            }
            Problem::Steps(steps) => write!(f, "not over after {steps} steps"),
        }
    }
}

/// How and when a judged run has failed.
#[derive(Clone)]
pub(crate) struct Failed {
    pub(crate) problem: Problem,
    pub(crate) run: Ran,
    pub(crate) trace: String,
}

/// How far a run has come.
#[derive(Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) steps: u64,
    pub(crate) time: Duration,
    pub(crate) fingerprint: u64,
}

/// What tells a task or actor from all others that live.
fn identity(task: &TaskInfo) -> u64 {
    // A task's is an address, and so even.
    if task.is_actor() {
        task.id() << 1 | 1
    } else {
        task.id()
    }
}

impl Simulation {
    pub(super) fn new(plan: Plan) -> Self {
        let (draw, schedule) = plan.begin();
        let mut of_time = draw.clone();
        let of_order = Draw::new(of_time.next());
        Simulation {
            plan,
            thread: std::thread::current().id(),
            state: Mutex::new(State {
                ready: Ready::new(schedule, of_order),
                draw: of_time,
                now: Instant::ZERO,
                step: 0,
                last_step: 0,
                tasks: HashMap::new(),
                actors: HashMap::new(),
                lanes: HashMap::new(),
                tasks_born: 0,
                messages_born: 0,
                frames_born: 0,
                pushed: 0,
                frames: Vec::new(),
                running: Who::Other("outside"),
                trace: Trace::new(plan.trace),
                closing: None,
                failure: None,
            }),
        }
    }

    /// Whether this thread is the one that may run what there is (V1).
    fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    // -- what becomes ready -------------------------------------------------------------------

    /// Takes a runnable; `again`: it was woken in its own run.
    pub(crate) fn push(&self, inner: &Inner, runnable: Runnable, again: bool, home: &Lives) {
        let task = runnable.info();
        // (V3) First.
        inner.rise();
        self.state
            .lock()
            .push(runnable, &task, again, home, self.plan.judged);
        if inner.closing.is_settled() {
            self.drain(inner);
        }
    }

    /// When a timer fires that is due then.
    pub(super) fn fires_at(&self, deadline: Instant) -> Instant {
        let most = u64::try_from(self.plan.late.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        match state.draw.below(2) {
            0 => deadline,
            _ => deadline + Duration::from_nanos(state.draw.below(most)),
        }
    }

    /// A task or actor has come to its end.
    pub(super) fn completed(&self, task: &TaskInfo) {
        let mut state = self.state.lock();
        let ended = state.forget(task);
        drop(state);
        drop(ended);
    }

    /// How many tasks, actors and jobs are ready.
    pub(super) fn len(&self) -> usize {
        self.state.lock().ready_tasks()
    }

    // -- steps --------------------------------------------------------------------------------

    /// Does one thing; `frame` is the one that is driven, if any is.
    fn step(&self, inner: &Arc<Inner>, frame: Option<u64>) -> Step {
        self.see_to_closing(inner);
        let mut state = self.state.lock();
        if state.failure.is_some() {
            return Step::Failed;
        }
        if state.step >= state.last_step {
            return Step::TooMany;
        }
        let now = state.now;
        instant::simulate(Some(now));
        if inner.timers.is_due(now) {
            let before = std::mem::replace(&mut state.running, Who::Other("a timer"));
            drop(state);
            inner.fire(now);
            state = self.state.lock();
            state.running = before;
        }
        match state.next(frame) {
            Some(Next::Frame) => Step::Poll,
            Some(Next::Task(runnable, home)) => {
                drop(state);
                self.run(inner, runnable, &home);
                Step::Done
            }
            None => {
                let deadline = state.closing.as_ref().and_then(Closing::deadline);
                let next = inner.timers.next().into_iter().chain(deadline).min();
                let Some(next) = next else {
                    return Step::Rest;
                };
                state.now = next.max(now);
                Step::Done
            }
        }
    }

    /// Runs it where it lives.
    fn run(&self, inner: &Arc<Inner>, runnable: Runnable, home: &Lives) {
        let key = runnable.key();
        let job = match home {
            Lives::Blocking => Some(runnable.info()),
            _ => None,
        };
        match home {
            Lives::Seat(seat) => seat.visit(|place| seat.turn(place, runnable)),
            Lives::Workers => {
                let local = Local::new(inner, 0);
                let place = Place::new(inner, Role::Worker(&local));
                let _entered = place.enter();
                inner.counters[0].begin_run();
                place.running.set(Some(key));
                inner.run_observed(Some(&local), runnable);
            }
            Lives::Blocking => {
                let place = Place::new(inner, Role::Blocking);
                let _entered = place.enter();
                contain(|| runnable.run());
            }
        }
        job.inspect(|job| self.completed(job));
        self.state.lock().rests();
        // (V3) It was counted.
        inner.fall();
        if inner.closing.is_settled() {
            self.had_its_turn(inner, key);
        }
    }

    // -- what is said of it -------------------------------------------------------------------

    /// How far it has come.
    pub(crate) fn ran(&self) -> Ran {
        self.state.lock().ran()
    }

    pub(crate) fn failure(&self) -> Option<Failed> {
        self.state.lock().failure.clone()
    }

    /// Has a judged run end; the first problem counts.
    pub(crate) fn fail(&self, problem: Problem) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.failure = Some(Failed {
                problem,
                run: state.ran(),
                trace: state.trace.text(),
            });
        }
    }

    /// Somebody has panicked and nobody joined it; says whether that is all that is to be done.
    pub(super) fn judges(&self, unjoined: &Unjoined<'_>) -> bool {
        if !self.plan.judged {
            return false;
        }
        let state = self.state.lock();
        let actor = unjoined.id.and_then(|id| state.actors.get(&id));
        let who = actor.map_or_else(|| "a task".to_owned(), TaskInfo::to_string);
        drop(state);
        self.fail(Problem::Panicked(format!("{who} {}", unjoined.fault)));
        true
    }

    /// Nothing is left to run. In a judged run that somebody waits then is a failure; says whether that
    /// has ended the run.
    pub(super) fn judges_end(&self, inner: &Inner) -> bool {
        let waits = self.plan.judged.then(|| self.who_waits(inner)).flatten();
        waits
            .map(|waits| self.fail(Problem::Deadlock(waits)))
            .is_some()
    }

    /// Who waits for whom, by the asks and the sends: a cycle, if there is one.
    fn who_waits(&self, inner: &Inner) -> Option<String> {
        let asks = inner.asks.waiting();
        let sends = self.state.lock().waiting_sends();
        let edges: Vec<&Edge> = asks.iter().map(|ask| ask.edge()).chain(&sends).collect();
        let named = asks::walk::name_all(&edges);
        let found = named.iter().find(|waits| waits.is_cycle());
        found.or(named.first()).map(ToString::to_string)
    }

    /// What to say when nothing is ready and no deadline is left.
    fn rest_text(&self, inner: &Inner) -> String {
        self.who_waits(inner).unwrap_or_else(|| {
            let state = self.state.lock();
            let who = state
                .frames
                .last()
                .map_or(&state.running, |frame| &frame.who);
            let beneath = match state
                .frames
                .iter()
                .rev()
                .skip(1)
                .find(|frame| frame.is_ready())
            {
                Some(ready) => format!("; {} could go on, but waits beneath it", ready.who),
                None => String::new(),
            };
            format!("{who} waits, and nothing is left that could wake it{beneath}")
        })
    }

    /// The ask of `asker`, or of whoever runs, under the numbers of this simulation.
    pub(super) fn edge(&self, asker: Option<TaskInfo>, asked: TaskInfo) -> Edge {
        let mut state = self.state.lock();
        let from = match asker {
            Some(asker) => Who::Task(state.label(asker)),
            None => state.running.clone(),
        };
        let to = state.label(asked);
        Edge { from, to }
    }
}

/// What comes next.
enum Next {
    Frame,
    Task(Runnable, Lives),
}

impl State {
    fn push(&mut self, runnable: Runnable, task: &TaskInfo, again: bool, home: &Lives, keep: bool) {
        let identity = identity(task);
        let event = match self.tasks.get(&identity) {
            Some(tracked) if !again => Some(What::Wakes(Who::Task(tracked.label.clone()))),
            Some(_) => None,
            None => {
                self.tasks_born += 1;
                let label = task.clone().numbered(self.tasks_born);
                let tracked = Tracked {
                    label: label.clone(),
                    rank: self.ready.rank(),
                    home: home.clone(),
                };
                self.tasks.insert(identity, tracked);
                if keep && task.is_actor() {
                    self.actors.insert(task.id(), label.clone());
                }
                Some(What::Spawns(Who::Task(label)))
            }
        };
        if let Some(event) = event {
            self.add(event);
        }
        let lowered = again.then(|| self.ready.yielded()).flatten();
        let Some(tracked) = self.tasks.get_mut(&identity) else {
            unreachable!("added just now")
        };
        tracked.rank = lowered.unwrap_or(tracked.rank);
        let rank = tracked.rank;
        self.pushed += 1;
        let age = self.pushed;
        let entry = Entry::Task {
            runnable,
            identity,
            age,
        };
        self.ready.push(entry, rank);
    }

    /// Draws what comes next, of the frame that is driven and of all that is ready to run.
    fn next(&mut self, frame: Option<u64>) -> Option<Next> {
        loop {
            let (entry, lower) = self.ready.pop()?;
            if lower {
                let rank = self.ready.lowered();
                match &entry {
                    Entry::Task { identity, .. } => {
                        if let Some(tracked) = self.tasks.get_mut(identity) {
                            tracked.rank = rank;
                        }
                    }
                    Entry::Frame(id) => {
                        if let Some(frame) = self.frame(*id) {
                            frame.rank = rank;
                        }
                    }
                }
                self.ready.push(entry, rank);
                continue;
            }
            match entry {
                Entry::Frame(id) => {
                    if let Some(who) = self.take_frame(id, frame) {
                        self.begin_step(who);
                        return Some(Next::Frame);
                    }
                }
                Entry::Task {
                    runnable,
                    identity,
                    age,
                } => {
                    let tracked = self.tasks.get(&identity);
                    let home = tracked.map_or(Lives::Workers, |tracked| tracked.home.clone());
                    let label = tracked.map(|tracked| tracked.label.clone());
                    let who = label.unwrap_or_else(|| runnable.info());
                    self.count_out(age);
                    self.begin_step(Who::Task(who));
                    return Some(Next::Task(runnable, home));
                }
            }
        }
    }

    fn begin_step(&mut self, who: Who) {
        self.step += 1;
        self.now = self.now + STEP;
        instant::simulate(Some(self.now));
        self.running = who;
        self.add(What::Runs);
    }

    /// Whoever ran does not any more.
    fn rests(&mut self) {
        self.running = Who::Other("outside");
    }

    fn add(&mut self, what: What) {
        let State {
            trace,
            step,
            now,
            running,
            failure: None,
            ..
        } = self
        else {
            return;
        };
        trace.add(*step, *now, running, what);
    }

    /// It has come to its end.
    fn forget(&mut self, task: &TaskInfo) -> (Option<Tracked>, Option<Lane>) {
        let tracked = self.tasks.remove(&identity(task));
        if let Some(tracked) = &tracked {
            self.add(What::Ends(Who::Task(tracked.label.clone())));
        }
        let lane = if task.is_actor() {
            self.lanes.remove(&task.id())
        } else {
            None
        };
        (tracked, lane)
    }

    /// The actor under its number here, which it gets if it has none: one that somebody else runs.
    fn label(&mut self, actor: TaskInfo) -> TaskInfo {
        if let Some(tracked) = self.tasks.get(&identity(&actor)) {
            return tracked.label.clone();
        }
        let State {
            lanes, tasks_born, ..
        } = self;
        let lane = lanes.entry(actor.id()).or_insert_with(|| {
            *tasks_born += 1;
            Lane::new(actor.numbered(*tasks_born))
        });
        lane.to.clone()
    }

    fn ran(&self) -> Ran {
        Ran {
            steps: self.step,
            time: self.now.duration_since(Instant::ZERO),
            fingerprint: self.trace.fingerprint(),
        }
    }
}
