//! The actor behind a supervisor: what happens to its children.
//!
//! This actor alone changes the children. It works through its inbox, the ends of children and its
//! alarms, then takes the next step of a round or of the stop. [`rounds`](super::rounds) has the
//! restarts, and [`stop`](super::stop) the orderly end.
//!
//! # Invariants
//! - SUPERVISE-1: a child in the phase `Dropping` was ordered to wait and has not reported that it is
//!   down. It gets no order until then, and no other child has such a report to make.
//! - SUPERVISE-2: `ready` has the children in the phase `Waiting`, and of those in `Dropping` the ones
//!   that `dropping` has, too.
//! - SUPERVISE-3: while `dropping` is not empty, no child of the round begins.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use futures_util::future::BoxFuture;

use super::child::{ChildState, ErasedChild};
use super::error::Escalated;
use super::options::SupervisorBuilder;
use super::tree::{Tree, TreeEvent};
use crate::actor::{BondOrder, BondReport, Context, History};
use crate::instant::Instant;
use crate::task::Unordered;
use crate::time::{Sleep, sleep};

pub(super) struct Supervising {
    pub(super) tree: Arc<Tree>,
    pub(super) options: SupervisorBuilder,
    pub(super) mode: SupervisorMode,
    /// Whether the supervisor ends. Children that wait begin, then each is stopped after the next one
    /// has ended.
    pub(super) is_stopping: bool,
    /// Whether it ends because it has given up. Children that wait are killed then.
    pub(super) has_given_up: bool,
    /// Whether each child ends after its message in hand. Children that wait are killed then.
    pub(super) stops_now: bool,
    /// By number, which is the order of their starts.
    pub(super) children: BTreeMap<u64, SupervisedChild>,
    ended: Unordered<BoxFuture<'static, u64>>,
    pub(super) failures: History,
    /// The children that begin when their turn comes.
    pub(super) ready: BTreeSet<u64>,
    /// The children of a round whose incarnations are not dropped yet.
    pub(super) dropping: BTreeSet<u64>,
    /// The child whose turn it is to begin.
    pub(super) beginning: Option<u64>,
    /// Until when a round waits, because of the back-off of the child that failed.
    pause: Option<Instant>,
    /// The instants at which something is due, for a child or for the round.
    alarms: BTreeSet<(Instant, u64)>,
    sleep: Option<(Instant, Sleep)>,
    /// Whether the supervisor above gets a report when all children have begun.
    pub(super) reports_begun: bool,
    /// How often the supervisor above has let this one run.
    pub(super) runs: u64,
    /// The child for which this supervisor has given up.
    pub(super) lost: Option<(u64, Escalated)>,
}

/// What a supervisor does.
pub(super) enum SupervisorMode {
    /// It waits for an order of the supervisor above. No child has an incarnation.
    Down,
    Running,
    /// It drops all incarnations. Then it reports its failure, and that it is down if that was
    /// ordered, to the supervisor above.
    Falling {
        failure: Option<BondReport>,
        is_ordered: bool,
    },
}

pub(super) struct SupervisedChild {
    pub(super) actor: Arc<dyn ErasedChild>,
    pub(super) phase: ChildPhase,
    /// Whether it was asked to end.
    pub(super) is_stopped: bool,
    pub(super) has_begun: bool,
    /// Whether it has used up its own intensity while it was being dropped.
    pub(super) is_spent: bool,
    /// The last faults, oldest first.
    pub(super) faults: VecDeque<Arc<str>>,
    /// When it is restarted after its back-off, or killed.
    pub(super) alarm: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildPhase {
    /// It has no incarnation, and is to begin when its turn comes.
    Waiting,
    /// As `Waiting`, when its alarm goes off.
    BackingOff,
    /// It was ordered to begin.
    Beginning,
    Up,
    /// It was ordered to drop its incarnation: by hand, so that it begins again at once, or not.
    Dropping {
        by_hand: bool,
    },
    /// It has no incarnation and ends without another one.
    Over,
}

/// The alarm of a round, instead of the number of a child. No child has this number.
const ROUND: u64 = 0;

/// The number of events in a turn, so that other tasks can run.
const EVENTS: usize = 100;

impl Supervising {
    pub(super) fn new(tree: Arc<Tree>, options: SupervisorBuilder) -> Self {
        // As any child, one with a supervisor above begins when that orders it to run.
        let mode = if tree.has_parent() {
            SupervisorMode::Down
        } else {
            SupervisorMode::Running
        };
        Supervising {
            tree,
            options,
            mode,
            is_stopping: false,
            has_given_up: false,
            stops_now: false,
            children: BTreeMap::new(),
            ended: Unordered::new(),
            failures: History::default(),
            ready: BTreeSet::new(),
            dropping: BTreeSet::new(),
            beginning: None,
            pause: None,
            alarms: BTreeSet::new(),
            sleep: None,
            reports_begun: false,
            runs: 0,
            lost: None,
        }
    }

    /// Keeps the children until all have ended after a stop.
    pub(super) async fn run(mut self, mut cx: Context<Infallible>) {
        self.tree.info_or(|| cx.address().info());
        poll_fn(|task| self.poll(&mut cx, task)).await;
    }

    fn poll(&mut self, cx: &mut Context<Infallible>, task: &mut TaskContext<'_>) -> Poll<()> {
        if !self.is_stopping && Pin::new(&mut *cx).poll_next(task).is_ready() {
            self.stop();
        }
        if !self.stops_now && cx.is_stopped_now() {
            self.stop_now();
        }
        let mut left = EVENTS;
        loop {
            while left > 0
                && let Some(event) = self.tree.pop(task.waker())
            {
                self.handle(event);
                left -= 1;
            }
            while let Poll::Ready(Some(id)) = self.ended.poll_next(task) {
                self.forget(id);
            }
            self.advance();
            if self.is_stopping && self.children.is_empty() && self.tree.is_quiet() {
                return Poll::Ready(());
            }
            let alarm = self.poll_alarm(task);
            if left == 0 {
                // Not before the other steps: children that always fail leave no end of events.
                task.waker().wake_by_ref();
                return Poll::Pending;
            }
            std::task::ready!(alarm);
        }
    }

    fn handle(&mut self, event: TreeEvent) {
        match event {
            TreeEvent::Start(id, actor) => self.add(id, actor),
            TreeEvent::BondReport(id, report) => self.take_report(id, report),
            TreeEvent::BondOrder(order) => self.obey(order),
            TreeEvent::Restart(id) => self.restart_by_hand(id),
            TreeEvent::StopChild(id) => self.stop_child(id),
        }
    }

    fn add(&mut self, id: u64, actor: Arc<dyn ErasedChild>) {
        self.ended.push(actor.ended(id));
        let child = SupervisedChild {
            actor,
            phase: ChildPhase::Waiting,
            is_stopped: false,
            has_begun: false,
            is_spent: false,
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
        let has_failed = self.tree.remove(id);
        let Some(child) = self.children.remove(&id).filter(|_| has_failed) else {
            return;
        };
        let is_why = matches!(self.lost, Some((lost, _)) if lost == id);
        if is_why || self.has_given_up {
            self.tree.keep(child.actor);
        } else if child.phase != ChildPhase::Over {
            // It was to be restarted.
            child.actor.take_fault();
        }
    }

    /// Takes a child out of the round, which does not wait for it any more.
    pub(super) fn leave_round(&mut self, id: u64) {
        self.ready.remove(&id);
        self.dropping.remove(&id);
        self.beginning.take_if(|beginning| *beginning == id);
    }

    pub(super) fn phase(&self, id: u64) -> Option<ChildPhase> {
        self.children.get(&id).map(|child| child.phase)
    }

    /// Sets what a child does, also in the list of the children.
    pub(super) fn set_phase(&mut self, id: u64, phase: ChildPhase) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        child.phase = phase;
        // A child that has never run is starting, however often it was begun.
        let state = match phase {
            _ if child.is_stopped || phase == ChildPhase::Over => ChildState::Stopping,
            ChildPhase::Waiting | ChildPhase::Beginning if !child.has_begun => ChildState::Starting,
            ChildPhase::Up => ChildState::Running,
            _ => ChildState::Restarting,
        };
        self.tree.update(id, |status| {
            status.state = state;
            status.until = None;
            let is_stopped = state == ChildState::Stopping;
            status.is_to_begin = phase == ChildPhase::Beginning && !is_stopped;
        });
    }

    pub(super) fn order(&self, id: u64, order: BondOrder) {
        if let Some(child) = self.children.get(&id) {
            child.actor.order(order);
        }
    }

    // -- alarms -----------------------------------------------------------------------------------

    pub(super) fn set_alarm(&mut self, id: u64, alarm: Option<Instant>) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        let before = std::mem::replace(&mut child.alarm, alarm);
        self.move_alarm(id, before, alarm);
    }

    /// Lets the round wait until this instant, or longer if it does.
    pub(super) fn prolong_pause(&mut self, until: Option<Instant>) {
        self.set_pause(self.pause.max(until));
    }

    pub(super) fn set_pause(&mut self, pause: Option<Instant>) {
        let before = std::mem::replace(&mut self.pause, pause);
        self.move_alarm(ROUND, before, pause);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.pause.is_some()
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
        // A child has one alarm at a time: the end of its back-off, or of its grace period.
        if id == ROUND {
            self.set_pause(None);
            return Poll::Ready(());
        }
        self.set_alarm(id, None);
        match self.phase(id) {
            Some(ChildPhase::BackingOff) => self.begin(id),
            _ => self.end_by_force(id),
        }
        Poll::Ready(())
    }
}

/// Kills the children of a supervisor that was killed or cancelled, youngest first.
impl Drop for Supervising {
    fn drop(&mut self) {
        if let Some((_, why)) = self.lost.take() {
            self.tree.escalate(why);
        }
        let late = self.tree.end();
        let children = std::mem::take(&mut self.children);
        let children = children.into_values().map(|child| child.actor);
        for child in children.chain(late).rev() {
            child.kill();
        }
    }
}
