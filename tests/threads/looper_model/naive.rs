//! Tasks of one lane that are posted before its first turn: who runs when is known.
//!
//! [`Predicted`] works it out by scanning lists. Priorities order loopers, equals go in turn, and a
//! lock goes to the request of the highest priority, exclusive before shared. With aging, every
//! n-th choice is the other way round. Nothing runs before the world.

use std::collections::VecDeque;
use std::ops::Range;
use std::task::Poll;

use greenroom::Runtime;
use greenroom::looper::{Claim, Controller, Lock, Looper, Posted};
use greenroom::policy::Simulated;

use super::Draws;
use super::book::Outcome;
use crate::support::{Log, WATCH, poll_once, within};

const SEEDS: Range<u64> = 0..2000;

#[derive(Debug, Clone, Copy)]
struct Want {
    lock: usize,
    is_exclusive: bool,
    is_kept: bool,
    is_held: bool,
}

/// What a task does.
#[derive(Debug, Clone, Copy)]
enum Act {
    Nothing,
    Unlock(usize),
    /// Post the task with this number.
    Post(usize),
    /// Post a task of the world with this number.
    StopTheWorld(usize),
}

#[derive(Debug, Clone)]
struct Spec {
    looper: usize,
    priority: u8,
    /// The locks, in the order in which they were made.
    wants: Vec<Want>,
    act: Act,
}

#[derive(Debug)]
struct Scenario {
    highest: u8,
    aging: u32,
    loopers: usize,
    locks: usize,
    /// Attempts before the first post: the looper, the lock, and whether it is exclusive.
    attempts: Vec<(usize, usize, bool)>,
    tasks: Vec<Spec>,
    /// The number of tasks that are posted first; tasks post the others.
    first: usize,
}

impl Scenario {
    fn draw(seed: u64) -> Scenario {
        let mut draws = Draws::of(seed, 0);
        let (loopers, locks) = (1 + draws.below(5), 1 + draws.below(3));
        let highest = draws.below(4) as u8;
        let is_simple = draws.one_in(4);
        let (first, count) = (draws.below(25), 30);
        let mut scenario = Scenario {
            highest,
            aging: [0, 0, 1, 2, 3, 5][draws.below(6)],
            loopers,
            locks,
            attempts: Vec::new(),
            tasks: Vec::new(),
            first,
        };
        for _ in 0..draws.below(4) {
            let attempt = (draws.below(loopers), draws.below(locks), draws.one_in(2));
            scenario.attempts.push(attempt);
        }
        let mut next = first;
        for _ in 0..count {
            let mut wants = Vec::new();
            for lock in 0..locks {
                if !is_simple && draws.one_in(2) {
                    wants.push(Want {
                        lock,
                        is_exclusive: draws.one_in(2),
                        is_kept: draws.one_in(8),
                        is_held: draws.one_in(10),
                    });
                }
            }
            let act = match draws.below(8) {
                0 | 1 => Act::Unlock(draws.below(locks)),
                2 | 3 if next < count => {
                    next += 1;
                    Act::Post(next - 1)
                }
                4 => Act::StopTheWorld(1000 + scenario.tasks.len()),
                _ => Act::Nothing,
            };
            scenario.tasks.push(Spec {
                looper: draws.below(loopers),
                priority: draws.below(usize::from(highest) + 1) as u8,
                wants,
                act,
            });
        }
        scenario
    }
}

/// A request in the line of a lock.
#[derive(Clone, Copy)]
struct Request {
    looper: usize,
    priority: u8,
    want: Want,
}

#[derive(Default)]
struct LockState {
    /// The loopers that hold it: whether for themselves, and whether they keep it.
    holders: Vec<(usize, bool, bool)>,
    /// In order of arrival.
    line: Vec<Request>,
    /// The number of grants while others waited, since the last one to the lowest.
    grants: u32,
    /// The number of tasks that are ready and found the lock free.
    bookings: u32,
}

impl LockState {
    fn has_room(&self, is_exclusive: bool) -> bool {
        let mut holders = self.holders.iter();
        holders.all(|holder| !holder.1 && !is_exclusive)
    }
}

/// The way of a scenario, step by step.
struct Predicted<'a> {
    scenario: &'a Scenario,
    queues: Vec<VecDeque<usize>>,
    /// The number of locks that the first task of a looper has; `None` if there is none.
    taken: Vec<Option<usize>>,
    /// Whether that task takes its locks when it is chosen, since they were free.
    bookings: Vec<bool>,
    ready: Vec<usize>,
    turns: u32,
    locks: Vec<LockState>,
    granted: VecDeque<usize>,
    worlds: VecDeque<usize>,
    order: Vec<usize>,
    outcomes: Vec<Option<Outcome>>,
}

impl Predicted<'_> {
    fn of(scenario: &Scenario) -> Predicted<'_> {
        let mut predicted = Predicted {
            scenario,
            queues: vec![VecDeque::new(); scenario.loopers],
            taken: vec![None; scenario.loopers],
            bookings: vec![false; scenario.loopers],
            ready: Vec::new(),
            turns: 0,
            locks: (0..scenario.locks).map(|_| LockState::default()).collect(),
            granted: VecDeque::new(),
            worlds: VecDeque::new(),
            order: Vec::new(),
            outcomes: vec![None; scenario.tasks.len()],
        };
        for &(looper, lock, is_exclusive) in &scenario.attempts {
            let state = &mut predicted.locks[lock];
            if state.has_room(is_exclusive) && !state.holders.iter().any(|it| it.0 == looper) {
                state.holders.push((looper, is_exclusive, true));
            }
        }
        (0..scenario.first).for_each(|task| predicted.post(task));
        while predicted.turn() {}
        predicted
    }

    fn post(&mut self, task: usize) {
        let looper = self.scenario.tasks[task].looper;
        self.queues[looper].push_back(task);
        if self.queues[looper].len() == 1 {
            self.begin_head(looper);
        }
        self.go_on();
    }

    /// Requests the locks of the next task of a looper, or books them if all are free.
    fn begin_head(&mut self, looper: usize) {
        while !self.queues[looper].is_empty() {
            self.taken[looper] = Some(0);
            let wants = &self.scenario.tasks[self.queues[looper][0]].wants;
            let is_free = |want: &Want| {
                let state = &self.locks[want.lock];
                !want.is_held && state.holders.is_empty() && state.line.is_empty()
            };
            if wants.iter().all(is_free) {
                wants
                    .iter()
                    .for_each(|want| self.locks[want.lock].bookings += 1);
                self.bookings[looper] = true;
                return self.ready.push(looper);
            }
            match self.request(looper) {
                Ok(true) => return self.ready.push(looper),
                Ok(false) => return,
                Err(outcome) => self.refuse(looper, outcome),
            }
        }
        self.taken[looper] = None;
    }

    /// Takes the locks that a looper has booked. Returns whether its task runs.
    fn take_booked(&mut self, looper: usize) -> bool {
        let wants = &self.scenario.tasks[self.queues[looper][0]].wants;
        wants
            .iter()
            .for_each(|want| self.locks[want.lock].bookings -= 1);
        let requested = self.request(looper);
        self.bookings[looper] = false;
        // The bookings have kept the locks from others.
        wants.iter().for_each(|want| self.pass_on(want.lock));
        if let Err(outcome) = requested {
            self.refuse(looper, outcome);
            self.begin_head(looper);
        }
        requested == Ok(true)
    }

    /// Returns whether the first task of a looper has all of its locks.
    fn request(&mut self, looper: usize) -> Result<bool, Outcome> {
        let task = &self.scenario.tasks[self.queues[looper][0]];
        while let Some(&want) = task.wants.get(self.taken[looper].unwrap()) {
            let aging = self.scenario.aging;
            let state = &mut self.locks[want.lock];
            let hold = state.holders.iter().find(|it| it.0 == looper);
            match (hold, want.is_held) {
                (Some(hold), true) if hold.1 || !want.is_exclusive => {}
                (_, true) => return Err(Outcome::NotHeld),
                (Some(_), false) => return Err(Outcome::AlreadyHeld),
                (None, false) => {
                    let request = Request {
                        looper,
                        priority: task.priority,
                        want,
                    };
                    let is_first = state.line.iter().all(|it| goes_before(&request, it));
                    let is_due = aging > 0 && state.grants + 1 >= aging;
                    let waits = match self.bookings[looper] {
                        true => state.line.iter().any(|it| it.priority > task.priority),
                        false => {
                            let has_line = !state.line.is_empty();
                            state.bookings > 0 || has_line && (!is_first || is_due)
                        }
                    };
                    if waits || !state.has_room(want.is_exclusive) {
                        state.line.push(request);
                        return Ok(false);
                    }
                    state.grants += u32::from(!state.line.is_empty());
                    state
                        .holders
                        .push((looper, want.is_exclusive, want.is_kept));
                }
            }
            *self.taken[looper].as_mut().unwrap() += 1;
        }
        Ok(true)
    }

    /// Ends the first task of a looper without a run.
    fn refuse(&mut self, looper: usize, outcome: Outcome) {
        let task = self.queues[looper].pop_front().unwrap();
        self.outcomes[task] = Some(outcome);
        let taken = self.taken[looper].unwrap();
        for want in &self.scenario.tasks[task].wants[..taken] {
            if !want.is_held {
                self.release(looper, want.lock);
            }
        }
    }

    /// Gives a lock back. Nothing happens if the looper does not hold it.
    fn release(&mut self, looper: usize, lock: usize) {
        let holders = &mut self.locks[lock].holders;
        if let Some(at) = holders.iter().position(|it| it.0 == looper) {
            holders.remove(at);
            self.pass_on(lock);
        }
    }

    /// Grants a lock to those in its line that can have it.
    fn pass_on(&mut self, lock: usize) {
        let aging = self.scenario.aging;
        let state = &mut self.locks[lock];
        while state.bookings == 0 {
            let is_due = aging > 0 && state.grants + 1 >= aging;
            let rank = |it: &Request| (it.priority, it.want.is_exclusive);
            let ranks = state.line.iter().map(rank);
            let chosen = if is_due { ranks.min() } else { ranks.max() };
            let at = state.line.iter().position(|it| Some(rank(it)) == chosen);
            let Some(at) = at.filter(|&at| state.has_room(state.line[at].want.is_exclusive)) else {
                return;
            };
            let request = state.line.remove(at);
            state.grants = if is_due { 0 } else { state.grants + 1 };
            if state.line.is_empty() {
                state.grants = 0;
            }
            let want = request.want;
            state
                .holders
                .push((request.looper, want.is_exclusive, want.is_kept));
            self.granted.push_back(request.looper);
        }
    }

    /// Lets loopers go on that were granted a lock.
    fn go_on(&mut self) {
        while let Some(looper) = self.granted.pop_front() {
            *self.taken[looper].as_mut().unwrap() += 1;
            match self.request(looper) {
                Ok(true) => self.ready.push(looper),
                Ok(false) => {}
                Err(outcome) => {
                    self.refuse(looper, outcome);
                    self.begin_head(looper);
                }
            }
        }
    }

    /// Runs the next task, if there is one.
    fn turn(&mut self) -> bool {
        if let Some(world) = self.worlds.pop_front() {
            self.order.push(world);
            return true;
        }
        self.turns += u32::from(!self.ready.is_empty());
        let aging = self.scenario.aging;
        let is_lowest = aging > 0 && self.turns.is_multiple_of(aging);
        let priority = |&at: &usize| self.scenario.tasks[self.queues[at][0]].priority;
        let priorities = self.ready.iter().map(priority);
        let chosen = match is_lowest {
            true => priorities.min(),
            false => priorities.max(),
        };
        let Some(at) = self
            .ready
            .iter()
            .position(|it| Some(priority(it)) == chosen)
        else {
            self.go_on();
            return !self.ready.is_empty();
        };
        let looper = self.ready.remove(at);
        if self.bookings[looper] && !self.take_booked(looper) {
            return true;
        }
        self.go_on();
        let task = self.queues[looper][0];
        self.order.push(task);
        self.outcomes[task] = Some(Outcome::Done);
        match self.scenario.tasks[task].act {
            Act::Nothing => {}
            Act::Unlock(lock) => self.release(looper, lock),
            Act::Post(other) => self.post(other),
            Act::StopTheWorld(world) => self.worlds.push_back(world),
        }
        self.go_on();
        self.queues[looper].pop_front();
        for want in &self.scenario.tasks[task].wants {
            let holders = &self.locks[want.lock].holders;
            if holders.iter().any(|it| it.0 == looper && !it.2) {
                self.release(looper, want.lock);
            }
        }
        self.begin_head(looper);
        self.go_on();
        true
    }
}

/// Returns whether a newcomer goes before a request.
fn goes_before(new: &Request, other: &Request) -> bool {
    (new.priority, new.want.is_exclusive) > (other.priority, other.want.is_exclusive)
}

/// What the tasks of a scenario share.
#[derive(Clone)]
struct Setup {
    tasks: std::sync::Arc<Vec<Spec>>,
    controller: Controller,
    loopers: Vec<Looper>,
    locks: Vec<Lock>,
    order: Log<usize>,
    posted: Log<(usize, Posted<()>)>,
}

impl Setup {
    fn claim(&self, want: &Want) -> Claim<()> {
        let lock = &self.locks[want.lock];
        let claim = match (want.is_held, want.is_exclusive) {
            (true, true) => lock.held_exclusive(),
            (true, false) => lock.held_shared(),
            (false, true) => lock.exclusive(),
            (false, false) => lock.shared(),
        };
        if want.is_kept { claim.keep() } else { claim }
    }

    fn post(&self, task: usize) {
        let spec = &self.tasks[task];
        // The order in which a set is written does not matter.
        let set: Vec<_> = spec.wants.iter().rev().map(|it| self.claim(it)).collect();
        let own = self.clone();
        let run = move || own.run(task);
        let posting = self.loopers[spec.looper].priority(spec.priority);
        let posted = match set.is_empty() {
            true => posting.post(run).unwrap(),
            false => posting.with(set).post(move |_| run()).unwrap(),
        };
        self.posted.add((task, posted));
    }

    fn run(&self, task: usize) {
        self.order.add(task);
        let spec = &self.tasks[task];
        match spec.act {
            Act::Nothing => {}
            Act::Unlock(lock) => drop(self.loopers[spec.looper].unlock(&self.locks[lock])),
            Act::Post(other) => self.post(other),
            Act::StopTheWorld(world) => {
                let order = self.order.clone();
                drop(self.controller.stop_the_world(move |_| order.add(world)));
            }
        }
    }
}

/// Runs a scenario. Returns the order of its tasks, and their outcomes.
fn actual(scenario: &Scenario, seed: u64) -> (Vec<usize>, Vec<Option<Outcome>>) {
    let runtime = Runtime::builder()
        .policy(Simulated::new(seed))
        .build()
        .unwrap();
    let builder = Controller::builder().lanes(1).on(&runtime);
    let builder = builder.priorities(scenario.highest).aging(scenario.aging);
    let controller = builder.detect_deadlocks(false).build().unwrap();
    let setup = Setup {
        tasks: std::sync::Arc::new(scenario.tasks.clone()),
        loopers: (0..scenario.loopers).map(|_| controller.looper()).collect(),
        locks: (0..scenario.locks).map(|_| controller.lock()).collect(),
        controller,
        order: Log::default(),
        posted: Log::default(),
    };
    for &(looper, lock, is_exclusive) in &scenario.attempts {
        let lock = &setup.locks[lock];
        let claim = match is_exclusive {
            true => lock.exclusive(),
            false => lock.shared(),
        };
        drop(setup.loopers[looper].attempt(claim));
    }
    (0..scenario.first).for_each(|task| setup.post(task));
    runtime.run_until_quiescent();
    let mut outcomes = vec![None; scenario.tasks.len()];
    for (task, mut posted) in setup.posted.take() {
        outcomes[task] = match poll_once(&mut posted) {
            Poll::Pending => None,
            Poll::Ready(Ok(())) => Some(Outcome::Done),
            Poll::Ready(Err(error)) => Some(Outcome::of(&error)),
        };
    }
    (setup.order.take(), outcomes)
}

#[test]
fn one_lane_runs_tasks_in_the_order_that_a_naive_model_predicts() {
    within(WATCH, || {
        for seed in SEEDS {
            let scenario = Scenario::draw(seed);
            let predicted = Predicted::of(&scenario);
            let (order, outcomes) = actual(&scenario, seed);
            let is_same = (&order, &outcomes) == (&predicted.order, &predicted.outcomes);
            assert!(
                is_same,
                "seed {seed}, {scenario:#?}:\n{order:?}, not {:?}\n{outcomes:?}, not {:?}",
                predicted.order, predicted.outcomes
            );
        }
    });
}
