//! The actor behind a supervisor: what happens to its children, and their orderly end.
//!
//! The keeper alone changes the children. It works through its inbox, the ends of children and its
//! alarms, then takes the next step of a round or of the stop. [`rounds`](super::rounds) has the
//! restarts.
//!
//! # Invariants
//! - KEEPER-1: a child that reported that it is down, or that it failed, waits for an order.
//! - KEEPER-2: `ready` has the children that wait to begin, `dropping` those of a round whose
//!   incarnations are not dropped yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;

use super::error::Escalated;
use super::member::{Ended, Member};
use super::rounds::Rules;
use super::status::ChildState;
use super::tree::{Event, Tree};
use crate::actor::{Context, History, Order, Report};
use crate::instant::Instant;
use crate::time::{Sleep, sleep};

pub(super) struct Keeper {
    pub(super) tree: Arc<Tree>,
    pub(super) rules: Rules,
    pub(super) mode: Mode,
    /// By number, which is the order of their starts.
    pub(super) children: BTreeMap<u64, Child>,
    ended: FuturesUnordered<Ended>,
    pub(super) failures: History,
    pub(super) ready: BTreeSet<u64>,
    pub(super) dropping: BTreeSet<u64>,
    /// The child that was told to begin and has not.
    pub(super) beginning: Option<u64>,
    /// Until when a round waits, because of the back-off of the child that failed.
    pub(super) pause: Option<Instant>,
    /// The instants at which something is due, for a child or for the round (0).
    alarms: BTreeSet<(Instant, u64)>,
    sleep: Option<(Instant, Sleep)>,
    /// Whether the supervisor above is to be told when all children have begun.
    pub(super) tells_begun: bool,
    /// How often the supervisor above has let this one run.
    pub(super) runs: u64,
    /// The child for which this supervisor has given up.
    pub(super) lost: Option<(u64, Escalated)>,
}

/// What a supervisor does.
pub(super) enum Mode {
    /// It waits for an order of the supervisor above.
    Down,
    Running,
    /// It drops all incarnations, then reports this to the supervisor above.
    Falling(Report),
    /// It stops its children. If it has given up, those that wait are killed.
    Stopping {
        has_given_up: bool,
    },
}

pub(super) struct Child {
    pub(super) member: Arc<dyn Member>,
    pub(super) phase: Phase,
    pub(super) has_begun: bool,
    /// The last faults, oldest first.
    pub(super) faults: VecDeque<Arc<str>>,
    /// When it is killed, or restarted after its back-off.
    alarm: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has no incarnation, and is to begin when its turn comes.
    Waiting,
    /// As `Waiting`, when its alarm goes off.
    BackingOff,
    /// It was told to begin.
    Beginning,
    Up,
    /// It was told to drop its incarnation: by hand, so that it begins again at once, or not.
    Dropping {
        by_hand: bool,
    },
    /// It was told to end.
    Ending,
}

/// The alarm of a round, instead of the number of a child. No child has this number.
const ROUND: u64 = 0;

impl Keeper {
    pub(super) fn new(tree: Arc<Tree>, rules: Rules) -> Self {
        let mode = if tree.has_parent() {
            Mode::Down
        } else {
            Mode::Running
        };
        Keeper {
            tree,
            rules,
            mode,
            children: BTreeMap::new(),
            ended: FuturesUnordered::new(),
            failures: History::default(),
            ready: BTreeSet::new(),
            dropping: BTreeSet::new(),
            beginning: None,
            pause: None,
            alarms: BTreeSet::new(),
            sleep: None,
            tells_begun: false,
            runs: 0,
            lost: None,
        }
    }

    /// Keeps the children until all have ended after a stop.
    pub(super) async fn keep(mut self, mut cx: Context<Infallible>) {
        self.tree.info_or(|| cx.address().info());
        poll_fn(|task| self.poll(&mut cx, task)).await;
    }

    fn poll(&mut self, cx: &mut Context<Infallible>, task: &mut TaskContext<'_>) -> Poll<()> {
        if !self.is_stopping() && Pin::new(cx).poll_next(task).is_ready() {
            self.stop(false);
        }
        loop {
            while let Some(event) = self.tree.pop(task.waker()) {
                self.handle(event);
            }
            while let Poll::Ready(Some(id)) = Pin::new(&mut self.ended).poll_next(task) {
                self.forget(id);
            }
            self.advance();
            if self.is_stopping() && self.children.is_empty() && self.tree.is_quiet() {
                return Poll::Ready(());
            }
            if self.poll_alarm(task).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Start(id, member) => self.add(id, member),
            Event::Report(id, report) => self.take_report(id, report),
            Event::Order(order) => self.obey(order),
            Event::Restart(id) => self.restart_by_hand(id),
            Event::StopChild(id) => self.stop_child(id),
        }
    }

    fn add(&mut self, id: u64, member: Arc<dyn Member>) {
        self.ended.push(member.ended(id));
        let child = Child {
            member,
            phase: Phase::Waiting,
            has_begun: false,
            faults: VecDeque::new(),
            alarm: None,
        };
        self.children.insert(id, child);
        self.ready.insert(id);
    }

    /// Forgets a child that has ended.
    fn forget(&mut self, id: u64) {
        self.set_alarm(id, None);
        self.leave_round(id);
        self.children.remove(&id);
        self.tree.remove(id);
    }

    /// Takes a child out of the round, which does not wait for it any more.
    pub(super) fn leave_round(&mut self, id: u64) {
        self.ready.remove(&id);
        self.dropping.remove(&id);
        self.beginning.take_if(|beginning| *beginning == id);
    }

    /// Sets what a child does, and what is told of it.
    pub(super) fn set_phase(&mut self, id: u64, phase: Phase) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        child.phase = phase;
        let state = match phase {
            Phase::Waiting | Phase::Beginning if !child.has_begun => ChildState::Starting,
            Phase::Up => ChildState::Running,
            Phase::Ending => ChildState::Stopping,
            _ => ChildState::Restarting,
        };
        self.tree.update(id, |status| {
            status.state = state;
            status.until = None;
        });
    }

    pub(super) fn order(&self, id: u64, order: Order) {
        if let Some(child) = self.children.get(&id) {
            child.member.order(order);
        }
    }

    // -- the stop ---------------------------------------------------------------------------------

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.mode, Mode::Stopping { .. })
    }

    /// Begins to stop the children, of which each is stopped after the next one has ended.
    pub(super) fn stop(&mut self, has_given_up: bool) {
        self.mode = Mode::Stopping { has_given_up };
        self.tree.refuse();
        self.set_pause(None);
        self.end_back_offs();
    }

    /// Stops the youngest child, unless it was stopped before.
    pub(super) fn stop_next(&mut self, has_given_up: bool) {
        let Some((&id, child)) = self.children.last_key_value() else {
            return;
        };
        let has_incarnation = matches!(child.phase, Phase::Beginning | Phase::Up);
        if child.phase == Phase::Ending {
            return;
        } else if has_given_up && !has_incarnation {
            let member = child.member.clone();
            self.set_phase(id, Phase::Ending);
            member.kill();
        } else {
            self.stop_child(id);
        }
    }

    /// Stops a child, which is killed after the grace period.
    fn stop_child(&mut self, id: u64) {
        let Some(child) = self.children.get(&id) else {
            return;
        };
        if child.phase == Phase::Ending {
            return;
        }
        let member = child.member.clone();
        self.leave_round(id);
        self.set_phase(id, Phase::Ending);
        let alarm = member
            .has_grace()
            .then(|| Instant::now() + self.rules.grace);
        self.set_alarm(id, alarm);
        member.stop();
    }

    // -- alarms -----------------------------------------------------------------------------------

    pub(super) fn set_alarm(&mut self, id: u64, alarm: Option<Instant>) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut child.alarm, alarm);
        self.move_alarm(id, before, alarm);
    }

    pub(super) fn set_pause(&mut self, pause: Option<Instant>) {
        let before = std::mem::replace(&mut self.pause, pause);
        self.move_alarm(ROUND, before, pause);
    }

    fn move_alarm(&mut self, id: u64, before: Option<Instant>, after: Option<Instant>) {
        if let Some(before) = before {
            self.alarms.remove(&(before, id));
        }
        self.alarms.extend(after.map(|after| (after, id)));
    }

    /// Waits for the first alarm, and does what is due then.
    fn poll_alarm(&mut self, task: &mut TaskContext<'_>) -> Poll<()> {
        let Some(&(first, id)) = self.alarms.first() else {
            self.sleep = None;
            return Poll::Pending;
        };
        if !matches!(&self.sleep, Some((until, _)) if *until == first) {
            self.sleep = Some((first, sleep(first - Instant::now())));
        }
        if let Some((_, sleep)) = &mut self.sleep {
            std::task::ready!(Pin::new(sleep).poll(task));
        }
        self.sleep = None;
        if id == ROUND {
            self.set_pause(None);
            return Poll::Ready(());
        }
        self.set_alarm(id, None);
        match self.children.get(&id) {
            Some(child) if child.phase == Phase::Ending => child.member.kill(),
            Some(_) => self.begin(id),
            None => {}
        }
        Poll::Ready(())
    }
}

/// Kills the children of a supervisor that was killed or cancelled, youngest first.
impl Drop for Keeper {
    fn drop(&mut self) {
        let late = self.tree.end();
        let children = std::mem::take(&mut self.children);
        let children = children.into_values().map(|child| child.member);
        for child in children.chain(late).rev() {
            child.kill();
        }
    }
}
