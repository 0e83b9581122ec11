//! What a simulation knows: what is ready, who there is, who runs, and what time it is.
//!
//! Whatever is kept by the number of the process or by an address is looked up and never listed: in what
//! is drawn and told, tasks and actors have the numbers of this simulation, in the order of their births.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::closing::Closing;
use super::frames::{Frame, Pointer};
use super::judging::Failed;
use super::messages::Lane;
use super::trace::{Trace, What};
use super::{Draw, Lives, Ready};
use crate::instant::{self, Instant};
use crate::runtime::asks::Who;
use crate::runtime::policy::Plan;
use crate::task::{Runnable, TaskInfo};

/// How long a step takes in virtual time: about as long as a short turn takes on a real machine, so
/// that whoever waits for a time by yielding sees it come.
const STEP: Duration = Duration::from_micros(1);

pub(super) struct State {
    pub(super) ready: Ready<Entry>,
    pub(super) draw: Draw,
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
    /// What is due on each pinned thread, by the key of its seat.
    pub(super) seats: HashMap<usize, VecDeque<Due>>,
    /// Who does what happens now.
    pub(super) running: Who,
    pub(super) trace: Trace,
    pub(super) closing: Option<Closing>,
    pub(super) failure: Option<Failed>,
    /// A judged run was judged.
    pub(super) is_over: bool,
}

/// Something that is ready.
pub(super) enum Entry {
    Task(Due),
    /// The oldest of what is due on the seat with this key: a pinned thread takes turns in order. There
    /// are as many of these as are due there.
    Seat(usize),
    Frame(u64),
}

/// A runnable whose turn is to come.
pub(super) struct Due {
    pub(super) runnable: Runnable,
    pub(super) identity: u64,
    /// How many became ready before it.
    pub(super) age: u64,
}

/// What is known of a task, actor or job.
pub(super) struct Tracked {
    /// Under its number in this simulation.
    pub(super) label: TaskInfo,
    pub(super) rank: u64,
    pub(super) home: Lives,
}

/// What tells a task or actor from all others that live.
pub(super) fn identity(task: &TaskInfo) -> u64 {
    // A task's is an address, and so even.
    if task.is_actor() {
        task.id() << 1 | 1
    } else {
        task.id()
    }
}

/// What comes next.
pub(super) enum Next {
    Frame(u64, Pointer),
    Task(Runnable, Lives),
}

impl State {
    pub(super) fn new(plan: &Plan) -> Self {
        let (draw, schedule) = plan.begin();
        let mut of_time = draw.clone();
        let of_order = Draw::new(of_time.next());
        State {
            ready: Ready::new(schedule, of_order),
            draw: of_time,
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
            seats: HashMap::new(),
            running: Who::Other("outside"),
            trace: Trace::new(plan.trace),
            closing: None,
            failure: None,
            is_over: false,
        }
    }

    pub(super) fn push(
        &mut self,
        runnable: Runnable,
        task: &TaskInfo,
        again: bool,
        home: &Lives,
        keep: bool,
    ) {
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
        let due = Due {
            runnable,
            identity,
            age,
        };
        let entry = match home {
            Lives::Seat(seat) => {
                let key = seat.key();
                self.seats.entry(key).or_default().push_back(due);
                Entry::Seat(key)
            }
            Lives::Workers | Lives::Blocking => Entry::Task(due),
        };
        self.ready.push(entry, rank);
    }

    /// Draws what comes next of all that is ready.
    pub(super) fn next(&mut self) -> Option<Next> {
        loop {
            let (entry, lower) = self.ready.pop()?;
            if lower {
                let rank = self.ready.changed();
                match &entry {
                    Entry::Task(due) => {
                        if let Some(tracked) = self.tasks.get_mut(&due.identity) {
                            tracked.rank = rank;
                        }
                    }
                    Entry::Seat(_) => {}
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
                        self.begin_step(who);
                        return Some(Next::Frame(id, call));
                    }
                    None => continue,
                },
                Entry::Task(due) => due,
                Entry::Seat(key) => self.take_first(key),
            };
            let tracked = self.tasks.get(&due.identity);
            let home = tracked.map_or(Lives::Workers, |tracked| tracked.home.clone());
            let label = tracked.map(|tracked| tracked.label.clone());
            let who = label.unwrap_or_else(|| due.runnable.info());
            self.count_out(due.age);
            self.begin_step(Who::Task(who));
            return Some(Next::Task(due.runnable, home));
        }
    }

    /// The oldest of what is due on a seat.
    pub(super) fn take_first(&mut self, seat: usize) -> Due {
        let due = self.seats.get_mut(&seat);
        let (first, is_last) = match due {
            Some(due) => (due.pop_front(), due.is_empty()),
            None => (None, false),
        };
        if is_last {
            self.seats.remove(&seat);
        }
        first.expect("as many are due as there are entries")
    }

    pub(super) fn begin_step(&mut self, who: Who) {
        self.step += 1;
        self.now = self.now + STEP;
        instant::simulate(Some(self.now));
        self.running = who;
        self.add(What::Runs);
    }

    /// Whoever ran does not any more.
    pub(super) fn rests(&mut self) {
        self.running = Who::Other("outside");
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
        let tracked = self.tasks.remove(&identity(task));
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
