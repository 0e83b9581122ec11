//! `SimState`: the ready entries, the tasks, the running turn, and the time of a simulation.
//!
//! Maps whose keys are numbers of the process or addresses are only looked up, never iterated.
//! Whatever is drawn or reported uses the numbers of this simulation, in the order in which tasks
//! and actors were spawned.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ptr::NonNull;
use std::sync::Weak;
use std::time::Duration;

use super::entry::PendingEffects;
use super::entry::{Due, ReadyEntry, Runner, RunningTurn, identity};
use super::frame::{FrameCall, SimFrame};
use super::mirror::{MailboxMirror, SentMessage, urgent_mirror};
use super::plan::Plan;
use super::problem::Failed;
use super::ready::{Draw, Ready, Schedule, below};
use super::script::{Reading, TurnOrigin, TurnScript};
use super::trace::{Trace, What};
use crate::instant::{self, Instant};
use crate::runtime::deadlock::Who;
use crate::runtime::{RunsOn, WaitSource, key_of};
use crate::task::{Runnable, TaskInfo};

/// The virtual time of a step: about as long as a short turn takes on a real machine. So a task
/// that waits for a time by yielding reaches it.
const STEP: Duration = Duration::from_micros(1);

/// A timer may fire together with one of this many timers that fire soon after it. More would take
/// time for each timer, and few programs have more timers that interact.
const NEAR: usize = 16;

pub(super) struct SimState {
    pub(super) ready: Ready<ReadyEntry>,
    pub(super) now: Instant,
    pub(super) step: u64,
    /// The last step before the run has taken too many.
    pub(super) last_step: u64,
    /// All tasks, actors and jobs that have not ended, by [`identity`].
    pub(super) tasks: HashMap<u64, Tracked>,
    /// Of a judged run: the labels of all actors ever spawned, by their ids.
    pub(super) actors: HashMap<u64, TaskInfo>,
    /// The messages in flight to an actor, by its id.
    pub(super) mirrors: HashMap<u64, MailboxMirror>,
    /// The number of sends that wait for room, in all mirrors.
    pub(super) sends_waiting: usize,
    /// What else tasks wait for, such as locks.
    pub(super) wait_sources: Vec<Weak<dyn WaitSource>>,
    /// The number of tasks ever spawned.
    pub(super) tasks_born: u64,
    /// The number of messages ever sent.
    pub(super) messages_born: u64,
    /// The number of frames ever opened.
    pub(super) frames_born: u64,
    /// The number of runnables that ever became ready.
    pub(super) pushed: u64,
    pub(super) frames: Vec<SimFrame>,
    /// The innermost turn in progress; `None` while one of its effects happens.
    pub(super) turn: Option<RunningTurn>,
    /// How many of [`TURNS`](super::plan::TURNS) turns are split.
    pub(super) splits: u64,
    /// The origin of numbers and tasks outside all turns.
    pub(super) outside: TurnOrigin,
    /// The turns of the run so far.
    pub(super) record: TurnScript,
    /// The turns to follow, if they are not drawn.
    pub(super) reading: Option<Reading>,
    /// The times at which armed timers fire.
    pub(super) fires: BTreeSet<Instant>,
    /// The effects of turns that have not happened yet.
    pub(super) pending: BTreeMap<Runner, PendingEffects>,
    /// The number of effects ever deferred; it wraps around.
    pub(super) effects_born: u32,
    /// Tasks and actors that have ended, by [`identity`], each with the runner whose effects may
    /// still be pending.
    pub(super) ended: HashMap<u64, Runner>,
    /// What the pending futures of each turn wait for: the end of this task or actor or, without
    /// one, a message.
    pub(super) waits: BTreeMap<Runner, Vec<Option<Who>>>,
    /// The message that is put into its mailbox now.
    pub(super) arriving: Option<SentMessage>,
    /// The runnables that are due on each pinned thread, by the key of its host.
    pub(super) hosts: HashMap<usize, VecDeque<Due>>,
    /// The task to which events are attributed now.
    pub(super) running: Who,
    pub(super) trace: Trace,
    pub(super) closing: Option<Closing>,
    pub(super) failure: Option<Failed>,
    /// Whether a judged run was judged.
    pub(super) is_over: bool,
    /// Whether a shutdown has begun; from then on no turn is split.
    pub(super) has_closed: bool,
    /// Whether turns are recorded.
    records: bool,
    /// The last turn of each pinned thread, by the key of its host.
    pub(super) last_turns: HashMap<usize, Runner>,
}

/// The record of a live task, actor or job.
pub(super) struct Tracked {
    /// Its label, with its number in this simulation.
    pub(super) label: TaskInfo,
    pub(super) rank: u64,
    pub(super) runs_on: RunsOn,
    pub(super) origin: TurnOrigin,
}

/// A shutdown that has begun and has no report yet.
pub(super) struct Closing {
    /// The number of actors that lived when it began.
    pub(super) alive: usize,
    /// The time at which waiting for actors ends; `None`: never.
    pub(super) deadline: Option<Instant>,
    /// The age of the last runnable that was queued before the shutdown.
    pub(super) last_before: u64,
    /// How many of those runnables have not run yet.
    pub(super) before: usize,
}

/// The next step.
pub(super) enum NextStep {
    Frame(u64, NonNull<FrameCall<'static>>),
    Task(Runnable, RunsOn),
    Effect(Runner),
}

impl SimState {
    pub(super) fn new(plan: &Plan, script: Option<TurnScript>) -> Self {
        let (mut draw, drawn) = plan.begin();
        // A script chooses among entries in the order of their ages, which only this schedule has.
        let schedule = match script {
            Some(_) => Schedule::Random,
            None => drawn,
        };
        // Drawn in this order with a script, too: the keys that it names come from `outside`.
        let of_order = Draw::new(draw.next());
        SimState {
            ready: Ready::new(schedule, of_order),
            splits: plan.splits(&mut draw),
            outside: TurnOrigin::new(draw.next()),
            record: TurnScript::default(),
            reading: script.map(Reading::new),
            fires: BTreeSet::new(),
            now: Instant::ZERO,
            step: 0,
            last_step: 0,
            tasks: HashMap::new(),
            actors: HashMap::new(),
            mirrors: HashMap::new(),
            sends_waiting: 0,
            wait_sources: Vec::new(),
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
        // A task that is not known was spawned. A known one was woken, by itself if `again`.
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

    /// Adds a runnable to the ready entries.
    pub(super) fn enqueue(&mut self, due: Due, runs_on: &RunsOn) {
        let tracked = self.tasks.get(&due.identity);
        let rank = tracked.map_or(0, |tracked| tracked.rank);
        let entry = match runs_on {
            RunsOn::Host(host) => {
                let key = key_of(host);
                self.hosts.entry(key).or_default().push_back(due);
                ReadyEntry::Host(key)
            }
            RunsOn::Workers | RunsOn::Blocking => ReadyEntry::Task(due),
        };
        self.ready.push(entry, rank);
    }

    /// Draws the next step from all ready entries.
    pub(super) fn next(&mut self) -> Option<NextStep> {
        loop {
            let (entry, lower) = self.pop()?;
            // The schedule changes a priority here: the entry goes back with a lower rank.
            if lower {
                let rank = self.ready.changed();
                match &entry {
                    ReadyEntry::Task(due) => {
                        if let Some(tracked) = self.tasks.get_mut(&due.identity) {
                            tracked.rank = rank;
                        }
                    }
                    ReadyEntry::Host(_) => {}
                    ReadyEntry::Effect(runner) => self.lower_pending(*runner, rank),
                    ReadyEntry::Frame(id) => {
                        if let Some(frame) = self.frame(*id) {
                            frame.rank = rank;
                        }
                    }
                }
                self.ready.push(entry, rank);
                continue;
            }
            let due = match entry {
                ReadyEntry::Frame(id) => match self.take_frame(id) {
                    Some((who, call)) => {
                        self.begin_turn(who, Some(Runner::Frame(id)));
                        return Some(NextStep::Frame(id, call));
                    }
                    // The frame was closed meanwhile.
                    None => continue,
                },
                ReadyEntry::Effect(runner) => match self.take_pending(runner) {
                    Some(who) => {
                        self.step += 1;
                        self.running = who;
                        self.record_step(self.key_of(runner));
                        return Some(NextStep::Effect(runner));
                    }
                    None => continue,
                },
                ReadyEntry::Task(due) => due,
                ReadyEntry::Host(key) => self.take_first(key),
            };
            let runner = self.runner_of(due.identity);
            let tracked = self.tasks.get(&due.identity);
            let runs_on = tracked.map_or(RunsOn::Workers, |tracked| tracked.runs_on.clone());
            let label = tracked.map(|tracked| tracked.label.clone());
            let who = label.unwrap_or_else(|| due.runnable.info());
            self.count_out(due.age);
            self.begin_turn(Who::Task(who), runner);
            return Some(NextStep::Task(due.runnable, runs_on));
        }
    }

    /// Takes the next entry, as the script says or drawn; the flag says that it must be lowered
    /// instead.
    fn pop(&mut self) -> Option<(ReadyEntry, bool)> {
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

    /// Returns the key of the task or frame that continues with this entry.
    fn key(&self, entry: &ReadyEntry) -> u64 {
        let task = |identity| self.tasks.get(&identity).map(|tracked| tracked.origin.key);
        let key = match entry {
            ReadyEntry::Task(due) => task(due.identity),
            ReadyEntry::Host(host) => {
                let first = self.hosts.get(host).and_then(VecDeque::front);
                first.and_then(|due| task(due.identity))
            }
            ReadyEntry::Frame(id) => {
                let mut frames = self.frames.iter();
                frames
                    .find(|frame| frame.id == *id)
                    .map(|frame| frame.origin.key)
            }
            ReadyEntry::Effect(runner) => Some(self.key_of(*runner)),
        };
        // 0 is no key: no script names what has ended meanwhile.
        key.unwrap_or(0)
    }

    /// Records a step of the task or frame with this key.
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

    /// Returns the origin of the turn in progress, or the one outside all turns.
    pub(super) fn origin(&mut self) -> &mut TurnOrigin {
        let SimState {
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
        // A task may have ended in its turn: what else happens in that counts as outside.
        of_turn.unwrap_or(outside)
    }

    /// Takes the oldest runnable that is due on a host.
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
        self.turn = runner.map(RunningTurn::new);
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

    /// Ends the turn in progress.
    pub(super) fn rests(&mut self) {
        self.running = Who::Other("outside");
        if let Some(turn) = self.turn.take() {
            self.forget_ended(turn.runner);
        }
    }

    /// Returns when a timer with this deadline fires, at most `most` nanoseconds late.
    ///
    /// Half of all timers fire in time, and a quarter late by any amount up to `most`. A quarter
    /// fires together with another timer, or up to two steps later, if there is one in reach.
    pub(super) fn fires_at(&mut self, deadline: Instant, most: u64) -> Instant {
        let (kind, amount) = (below(self.origin().draw(), 4), self.origin().draw());
        let last = deadline + Duration::from_nanos(most);
        self.fires = self.fires.split_off(&self.now);
        // Timers that fire soon after the deadline, one of which this one meets.
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
        let SimState {
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

    /// Forgets a task or actor that has ended.
    pub(super) fn forget(&mut self, task: &TaskInfo) -> (Option<Tracked>, Option<MailboxMirror>) {
        let identity = identity(task);
        // An actor that another executor runs has ended during the turn of that executor's task.
        let turn = self.turn.map(|turn| turn.runner);
        if let Some(runner) = self.runner_of(identity).or(turn) {
            self.waits.remove(&runner);
            self.ended.insert(identity, runner);
        }
        let tracked = self.tasks.remove(&identity);
        if let Some(tracked) = &tracked {
            self.add(What::Ends(Who::Task(tracked.label.clone())));
        }
        let mirror = if task.is_actor() {
            let urgent = self.mirrors.remove(&urgent_mirror(task.id()));
            self.sends_waiting -= urgent.map_or(0, |urgent| urgent.waiting());
            self.mirrors.remove(&task.id())
        } else {
            None
        };
        self.sends_waiting -= mirror.as_ref().map_or(0, MailboxMirror::waiting);
        (tracked, mirror)
    }

    /// Returns the label of an actor that has not ended or, in a judged run, of any.
    pub(super) fn known_label(&self, actor: &TaskInfo) -> Option<TaskInfo> {
        let tracked = self.tasks.get(&identity(actor));
        let label = tracked.map(|tracked| &tracked.label);
        label.or_else(|| self.actors.get(&actor.id())).cloned()
    }

    /// Returns the label of an actor. An actor that another executor runs gets its number here.
    pub(super) fn label(&mut self, actor: TaskInfo) -> TaskInfo {
        if let Some(tracked) = self.tasks.get(&identity(&actor)) {
            return tracked.label.clone();
        }
        let SimState {
            mirrors,
            tasks_born,
            ..
        } = self;
        let mirror = mirrors.entry(actor.id()).or_insert_with(|| {
            *tasks_born += 1;
            MailboxMirror::new(actor.numbered(*tasks_born))
        });
        mirror.to.clone()
    }
}
