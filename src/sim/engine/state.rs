//! What a simulation knows: what is ready, who there is, who runs, and what time it is.
//!
//! Whatever is kept by the number of the process or by an address is looked up and never listed: in what
//! is drawn and told, tasks and actors have the numbers of this simulation, in the order of their births.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::effect::Pending;
use super::entry::{Due, Entry, Runner, Turn, identity};
use super::frame::{Frame, Pointer};
use super::lane::{Lane, Sent};
use super::plan::Plan;
use super::problem::Failed;
use super::ready::{Draw, Ready, Schedule, below};
use super::script::{Origin, Reading, TurnScript};
use super::trace::{Trace, What};
use crate::instant::{self, Instant};
use crate::runtime::deadlock::Who;
use crate::runtime::{RunsOn, key_of};
use crate::task::{Runnable, TaskInfo};

/// How long a step takes in virtual time: about as long as a short turn takes on a real machine, so
/// that whoever waits for a time by yielding sees it come.
const STEP: Duration = Duration::from_micros(1);

/// A timer may fire with one of this many that fire soon after it. More would cost time for each timer, and few
/// programs have more that matter to each other.
const NEAR: usize = 16;

pub(super) struct State {
    pub(super) ready: Ready<Entry>,
    pub(super) now: Instant,
    pub(super) step: u64,
    /// After which step it has taken too many.
    pub(super) last_step: u64,
    /// All tasks, actors and jobs that have not ended, by [`identity`].
    pub(super) tasks: HashMap<u64, Tracked>,
    /// Of a judged run: the labels of all actors that there were, by their ids.
    pub(super) actors: HashMap<u64, TaskInfo>,
    /// What is on its way to an actor, by its id.
    pub(super) lanes: HashMap<u64, Lane>,
    /// How many wait for room, in all lanes.
    pub(super) sends_waiting: usize,
    /// How many tasks there were.
    pub(super) tasks_born: u64,
    /// How many messages there were.
    pub(super) messages_born: u64,
    /// How many frames there were.
    pub(super) frames_born: u64,
    /// How many runnables became ready.
    pub(super) pushed: u64,
    pub(super) frames: Vec<Frame>,
    /// The innermost turn under way, if none of its effects takes place just now.
    pub(super) turn: Option<Turn>,
    /// How many of [`TURNS`](super::plan::TURNS) turns are split.
    pub(super) splits: u64,
    /// What draws and spawns in no turn.
    pub(super) outside: Origin,
    /// Who had turns until now.
    pub(super) record: TurnScript,
    /// Who is to have them, if that is not drawn.
    pub(super) reading: Option<Reading>,
    /// When the timers fire that are armed.
    pub(super) fires: BTreeSet<Instant>,
    /// What turns have done that is still to take effect.
    pub(super) pending: BTreeMap<Runner, Pending>,
    /// How many effects were kept; begins again when there are too many.
    pub(super) effects_born: u32,
    /// Of which of these the task or actor has ended.
    pub(super) ended: HashMap<u64, Runner>,
    /// What the pending futures of each wait for.
    pub(super) waits: BTreeMap<Runner, Vec<PendingWait>>,
    /// The message that comes into its mailbox just now.
    pub(super) arriving: Option<Sent>,
    /// What is due on each pinned thread, by the key of its host.
    pub(super) hosts: HashMap<usize, VecDeque<Due>>,
    /// Who does what happens now.
    pub(super) running: Who,
    pub(super) trace: Trace,
    pub(super) closing: Option<Closing>,
    pub(super) failure: Option<Failed>,
    /// A judged run was judged.
    pub(super) is_over: bool,
    /// A shutdown has begun: no turn is split from then on.
    pub(super) has_closed: bool,
    /// Turns are recorded.
    records: bool,
    /// Which turn each pinned thread had last, by the key of its host.
    pub(super) last_turns: HashMap<usize, Runner>,
}

/// What is known of a task, actor or job.
pub(super) struct Tracked {
    /// Under its number in this simulation.
    pub(super) label: TaskInfo,
    pub(super) rank: u64,
    pub(super) runs_on: RunsOn,
    pub(super) origin: Origin,
}

/// A shutdown that has begun and has no report.
pub(super) struct Closing {
    /// How many actors lived when it began.
    pub(super) alive: usize,
    /// When actors are waited for no more; `None`: never.
    pub(super) deadline: Option<Instant>,
    /// What became ready up to this one was queued before.
    pub(super) last_before: u64,
    /// How many of those have not had their run.
    pub(super) before: usize,
}

/// What a pending future waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    Message,
    /// Of the task or actor.
    End,
}

/// A wait of a pending future.
pub(super) struct PendingWait {
    pub(super) what: Awaited,
    pub(super) of: Option<Who>,
}

/// What comes next.
pub(super) enum Next {
    Frame(u64, Pointer),
    Task(Runnable, RunsOn),
    Effect(Runner),
}

impl State {
    pub(super) fn new(plan: &Plan, script: Option<TurnScript>) -> Self {
        let (mut draw, drawn) = plan.begin();
        let schedule = match script {
            Some(_) => Schedule::Random,
            None => drawn,
        };
        let of_order = Draw::new(draw.next());
        State {
            ready: Ready::new(schedule, of_order),
            splits: plan.splits(&mut draw),
            outside: Origin::new(draw.next()),
            record: TurnScript::default(),
            reading: script.map(Reading::new),
            fires: BTreeSet::new(),
            now: Instant::ZERO,
            step: 0,
            last_step: 0,
            tasks: HashMap::new(),
            actors: HashMap::new(),
            lanes: HashMap::new(),
            sends_waiting: 0,
            tasks_born: 0,
            messages_born: 0,
            frames_born: 0,
            pushed: 0,
            frames: Vec::new(),
            turn: None,
            pending: BTreeMap::new(),
            effects_born: 0,
            ended: HashMap::new(),
            waits: BTreeMap::new(),
            arriving: None,
            hosts: HashMap::new(),
            running: Who::Other("outside"),
            trace: Trace::new(plan.trace),
            closing: None,
            failure: None,
            is_over: false,
            has_closed: false,
            records: plan.judged,
            last_turns: HashMap::new(),
        }
    }

    pub(super) fn push(
        &mut self,
        runnable: Runnable,
        task: &TaskInfo,
        again: bool,
        runs_on: &RunsOn,
        (keep, is_here): (bool, bool),
    ) {
        let identity = identity(task);
        let event = match self.tasks.get(&identity) {
            Some(tracked) if !again => Some(What::Wakes(Who::Task(tracked.label.clone()))),
            Some(_) => None,
            None => {
                self.tasks_born += 1;
                self.ended.remove(&identity);
                let label = task.clone().numbered(self.tasks_born);
                let origin = self.origin().child();
                let tracked = Tracked {
                    label: label.clone(),
                    rank: self.ready.rank(),
                    runs_on: runs_on.clone(),
                    origin,
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
        self.pushed += 1;
        let age = self.pushed;
        let due = Due {
            runnable,
            identity,
            age,
        };
        if let Some(due) = self.defer_ready(due, runs_on, is_here) {
            self.enqueue(due, runs_on);
        }
    }

    /// Puts a runnable among what is ready.
    pub(super) fn enqueue(&mut self, due: Due, runs_on: &RunsOn) {
        let tracked = self.tasks.get(&due.identity);
        let rank = tracked.map_or(0, |tracked| tracked.rank);
        let entry = match runs_on {
            RunsOn::Host(host) => {
                let key = key_of(host);
                self.hosts.entry(key).or_default().push_back(due);
                Entry::Host(key)
            }
            RunsOn::Workers | RunsOn::Blocking => Entry::Task(due),
        };
        self.ready.push(entry, rank);
    }

    /// Draws what comes next of all that is ready.
    pub(super) fn next(&mut self) -> Option<Next> {
        loop {
            let (entry, lower) = self.pop()?;
            if lower {
                let rank = self.ready.changed();
                match &entry {
                    Entry::Task(due) => {
                        if let Some(tracked) = self.tasks.get_mut(&due.identity) {
                            tracked.rank = rank;
                        }
                    }
                    Entry::Host(_) => {}
                    Entry::Effect(runner) => self.lower_pending(*runner, rank),
                    Entry::Frame(id) => {
                        if let Some(frame) = self.frame(*id) {
                            frame.rank = rank;
                        }
                    }
                }
                self.ready.push(entry, rank);
                continue;
            }
            let due = match entry {
                Entry::Frame(id) => match self.take_frame(id) {
                    Some((who, call)) => {
                        self.begin_turn(who, Some(Runner::Frame(id)));
                        return Some(Next::Frame(id, call));
                    }
                    None => continue,
                },
                Entry::Effect(runner) => match self.take_pending(runner) {
                    Some(who) => {
                        self.step += 1;
                        self.running = who;
                        self.record_step(self.key_of(runner));
                        return Some(Next::Effect(runner));
                    }
                    None => continue,
                },
                Entry::Task(due) => due,
                Entry::Host(key) => self.take_first(key),
            };
            let runner = self.runner_of(due.identity);
            let tracked = self.tasks.get(&due.identity);
            let runs_on = tracked.map_or(RunsOn::Workers, |tracked| tracked.runs_on.clone());
            let label = tracked.map(|tracked| tracked.label.clone());
            let who = label.unwrap_or_else(|| due.runnable.info());
            self.count_out(due.age);
            self.begin_turn(Who::Task(who), runner);
            return Some(Next::Task(due.runnable, runs_on));
        }
    }

    /// What comes next, and whether it is to be lowered instead: as the script says, or drawn.
    fn pop(&mut self) -> Option<(Entry, bool)> {
        let Some(mut reading) = self.reading.take() else {
            return self.ready.pop();
        };
        let keys: Vec<u64> = self
            .ready
            .unordered()
            .iter()
            .map(|entry| self.key(entry))
            .collect();
        let last = self.record.steps.last().copied();
        let at = reading.choose(&keys, last);
        self.reading = Some(reading);
        Some((self.ready.take_unordered(at)?, false))
    }

    /// The key of whoever goes on with this.
    fn key(&self, entry: &Entry) -> u64 {
        let task = |identity| self.tasks.get(&identity).map(|tracked| tracked.origin.key);
        let key = match entry {
            Entry::Task(due) => task(due.identity),
            Entry::Host(host) => {
                let first = self.hosts.get(host).and_then(VecDeque::front);
                first.and_then(|due| task(due.identity))
            }
            Entry::Frame(id) => {
                let mut frames = self.frames.iter();
                frames
                    .find(|frame| frame.id == *id)
                    .map(|frame| frame.origin.key)
            }
            Entry::Effect(runner) => Some(self.key_of(*runner)),
        };
        key.unwrap_or(0)
    }

    /// Somebody with this key goes on.
    fn record_step(&mut self, key: u64) {
        if !self.records {
            return;
        }
        self.record.steps.push(key);
        let overtaken = self
            .pending
            .values()
            .filter_map(|pending| pending.overtaken_by(key));
        self.record.splits.extend(overtaken);
    }

    /// Of whoever has the turn, or of what is outside.
    pub(super) fn origin(&mut self) -> &mut Origin {
        let State {
            turn,
            tasks,
            frames,
            outside,
            ..
        } = self;
        let of_turn = match turn.map(|turn| turn.runner) {
            Some(Runner::Task { identity, .. }) => {
                tasks.get_mut(&identity).map(|task| &mut task.origin)
            }
            Some(Runner::Frame(id)) => {
                let mut frames = frames.iter_mut();
                frames
                    .find(|frame| frame.id == id)
                    .map(|frame| &mut frame.origin)
            }
            None => None,
        };
        of_turn.unwrap_or(outside)
    }

    /// The oldest of what is due on a host.
    pub(super) fn take_first(&mut self, host: usize) -> Due {
        let due = self.hosts.get_mut(&host);
        let (first, is_last) = match due {
            Some(due) => (due.pop_front(), due.is_empty()),
            None => (None, false),
        };
        if is_last {
            self.hosts.remove(&host);
        }
        first.expect("as many are due as there are entries")
    }

    fn begin_turn(&mut self, who: Who, runner: Option<Runner>) {
        self.turn = runner.map(Turn::new);
        if let Some(runner) = runner {
            self.waits.remove(&runner);
        }
        self.origin().turns += 1;
        let key = self.origin().key;
        self.record_step(key);
        self.step += 1;
        self.now = self.now + STEP;
        instant::simulate(Some(self.now));
        self.running = who;
        self.add(What::Runs);
    }

    /// Whoever ran does not any more.
    pub(super) fn rests(&mut self) {
        self.running = Who::Other("outside");
        if let Some(turn) = self.turn.take() {
            self.forget_ended(turn.runner);
        }
    }

    /// When a timer fires that is due then: half of all in time, a quarter late by any amount up to so many
    /// nanoseconds, and a quarter, if it can be, when another one fires or up to two steps later.
    pub(super) fn fires_at(&mut self, deadline: Instant, most: u64) -> Instant {
        let (kind, amount) = (below(self.origin().draw(), 4), self.origin().draw());
        let last = deadline + Duration::from_nanos(most);
        self.fires = self.fires.split_off(&self.now);
        let meets: Vec<Instant> = match kind {
            2 => self
                .fires
                .range(deadline..last)
                .take(NEAR)
                .copied()
                .collect(),
            _ => Vec::new(),
        };
        let fires = match meets.get(below(amount, meets.len() as u64) as usize) {
            _ if kind < 2 => deadline,
            Some(&meets) => (meets + STEP * below(amount.rotate_left(32), 3) as u32).min(last),
            None => deadline + Duration::from_nanos(below(amount, most)),
        };
        self.fires.insert(fires);
        fires
    }

    pub(super) fn add(&mut self, what: What) {
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
    pub(super) fn forget(&mut self, task: &TaskInfo) -> (Option<Tracked>, Option<Lane>) {
        let identity = identity(task);
        // One that another executor runs has ended in the turn of that.
        let turn = self.turn.map(|turn| turn.runner);
        if let Some(runner) = self.runner_of(identity).or(turn) {
            self.waits.remove(&runner);
            self.ended.insert(identity, runner);
        }
        let tracked = self.tasks.remove(&identity);
        if let Some(tracked) = &tracked {
            self.add(What::Ends(Who::Task(tracked.label.clone())));
        }
        let lane = if task.is_actor() {
            self.lanes.remove(&task.id())
        } else {
            None
        };
        self.sends_waiting -= lane.as_ref().map_or(0, Lane::waiting);
        (tracked, lane)
    }

    /// The actor under its number here, which it gets if it has none: one that somebody else runs.
    pub(super) fn label(&mut self, actor: TaskInfo) -> TaskInfo {
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
}
