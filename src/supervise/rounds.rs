//! Restarts: which children begin anew after a failure, and in which order.
//!
//! A round has the children that a failure restarts. First all of their incarnations are dropped.
//! Then, after the back-off, they begin in the order of their start, each after the one before has
//! begun. With one-for-one, each child is restarted for itself.

use std::sync::Arc;
use std::time::Duration;

use super::error::Escalated;
use super::keeper::{Keeper, Mode, Phase};
use super::supervisor::Strategy;
use crate::actor::{Order, Report};
use crate::instant::Instant;

/// The options of a supervisor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) strategy: Strategy,
    /// At most this many failures within the window.
    pub(super) failures: u32,
    pub(super) window: Duration,
    pub(super) grace: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            strategy: Strategy::default(),
            failures: 5,
            window: Duration::from_secs(5),
            grace: Duration::from_secs(5),
        }
    }
}

/// The number of faults of a child that are kept.
const FAULTS: usize = 10;

impl Keeper {
    /// Takes the next step of a round, or of the stop.
    pub(super) fn advance(&mut self) {
        if let Mode::Stopping { has_given_up } = self.mode {
            return self.stop_next(has_given_up);
        }
        if !self.dropping.is_empty() {
            return;
        }
        if let Mode::Falling(_) = self.mode
            && let Mode::Falling(report) = std::mem::replace(&mut self.mode, Mode::Down)
        {
            self.tree.report(report);
        }
        let may_begin = self.pause.is_none() && self.beginning.is_none();
        if !matches!(self.mode, Mode::Running) || !may_begin {
            return;
        }
        if let Some(id) = self.ready.pop_first() {
            self.beginning = Some(id);
            self.begin(id);
        } else if std::mem::take(&mut self.tells_begun) {
            self.tree.report(Report::Begun(self.runs));
            self.runs += 1;
        }
    }

    /// Lets a child begin.
    pub(super) fn begin(&mut self, id: u64) {
        self.set_phase(id, Phase::Beginning);
        self.order(id, Order::Run);
    }

    pub(super) fn take_report(&mut self, id: u64, report: Report) {
        match report {
            Report::Begun(number) => self.note_begun(id, number),
            Report::Down => self.note_down(id),
            Report::Failed(text, delay) => {
                self.note_fault(id, text);
                self.beginning.take_if(|beginning| *beginning == id);
                match self.children.get(&id).map(|child| child.phase) {
                    Some(Phase::Dropping { .. }) => self.note_down(id),
                    Some(Phase::Ending) => self.retry(id, delay),
                    Some(Phase::Beginning | Phase::Up) => self.fail(id, delay),
                    Some(Phase::Waiting | Phase::BackingOff) | None => {}
                }
            }
        }
    }

    fn note_begun(&mut self, id: u64, number: u64) {
        self.beginning.take_if(|beginning| *beginning == id);
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        let restarts = u64::from(std::mem::replace(&mut child.has_begun, true));
        let phase = child.phase;
        if phase == Phase::Beginning {
            self.set_phase(id, Phase::Up);
        }
        self.tree.update(id, |status| {
            status.incarnation = number;
            status.restarts += restarts;
        });
    }

    /// Notes that the incarnation of a child was dropped.
    fn note_down(&mut self, id: u64) {
        self.dropping.remove(&id);
        self.beginning.take_if(|beginning| *beginning == id);
        let Some(child) = self.children.get(&id) else {
            return;
        };
        match child.phase {
            Phase::Dropping { by_hand: true } => self.begin(id),
            Phase::Dropping { by_hand: false } => self.set_phase(id, Phase::Waiting),
            _ => {}
        }
    }

    fn note_fault(&mut self, id: u64, text: Option<Arc<str>>) {
        let (Some(child), Some(text)) = (self.children.get_mut(&id), text) else {
            return;
        };
        if child.faults.len() == FAULTS {
            child.faults.pop_front();
        }
        child.faults.push_back(text.clone());
        self.tree
            .update(id, |status| status.last_fault = Some(text));
    }

    /// Decides about a child that has failed by itself. `delay` is its back-off, or `None` if its
    /// own intensity is used up.
    fn fail(&mut self, id: u64, delay: Option<Duration>) {
        if self.is_stopping() {
            return self.retry(id, delay);
        }
        match delay.filter(|_| self.count_failure()) {
            Some(delay) => self.restart(id, delay),
            None => self.give_up(id),
        }
    }

    fn count_failure(&mut self) -> bool {
        let Rules {
            failures, window, ..
        } = self.rules;
        self.failures.count(failures, window)
    }

    /// Restarts a child while the tree stops, so that it handles what it has accepted. A child that
    /// fails too often ends.
    fn retry(&mut self, id: u64, delay: Option<Duration>) {
        match delay.filter(|_| self.count_failure()) {
            Some(_) => self.order(id, Order::Run),
            None => self.order(id, Order::GiveUp),
        }
    }

    /// Restarts the children that the strategy selects after the failure of this one.
    fn restart(&mut self, id: u64, delay: Duration) {
        let until = (!delay.is_zero()).then(|| Instant::now() + delay);
        let first = match self.rules.strategy {
            Strategy::OneForOne => {
                if until.is_none() {
                    return self.begin(id);
                }
                self.set_phase(id, Phase::BackingOff);
                self.tree.update(id, |status| status.until = until);
                return self.set_alarm(id, until);
            }
            Strategy::OneForAll => 0,
            Strategy::RestForOne => id,
        };
        self.set_phase(id, Phase::Waiting);
        self.tree.update(id, |status| status.until = until);
        self.ready.insert(id);
        self.set_pause(self.pause.max(until));
        self.drop_from(first);
    }

    /// Drops the incarnations of this child and all later ones, which then wait to begin.
    fn drop_from(&mut self, first: u64) {
        let later: Vec<_> = self.children.range(first..).map(|(id, _)| *id).collect();
        for id in later {
            match self.children[&id].phase {
                Phase::Up | Phase::Beginning => {
                    self.set_phase(id, Phase::Dropping { by_hand: false });
                    self.order(id, Order::Wait);
                    self.dropping.insert(id);
                    self.ready.insert(id);
                }
                Phase::Dropping { by_hand: true } => {
                    self.set_phase(id, Phase::Dropping { by_hand: false });
                    self.dropping.insert(id);
                    self.ready.insert(id);
                }
                Phase::Dropping { by_hand: false } | Phase::Waiting => {}
                Phase::BackingOff | Phase::Ending => {}
            }
        }
    }

    /// Lets the children that back off wait for their turn instead.
    pub(super) fn end_back_offs(&mut self) {
        let backing_off = self.children.iter();
        let backing_off = backing_off.filter(|(_, child)| child.phase == Phase::BackingOff);
        for id in backing_off.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.set_alarm(id, None);
            self.set_phase(id, Phase::Waiting);
            self.ready.insert(id);
        }
    }

    pub(super) fn restart_by_hand(&mut self, id: u64) {
        match self.children.get(&id).map(|child| child.phase) {
            Some(Phase::Up | Phase::Beginning) if !self.is_stopping() => {
                self.set_phase(id, Phase::Dropping { by_hand: true });
                self.order(id, Order::Wait);
            }
            Some(Phase::BackingOff) => {
                self.set_alarm(id, None);
                self.begin(id);
            }
            _ => {}
        }
    }

    // -- giving up --------------------------------------------------------------------------------

    /// Gives up because of this child, which has failed too often.
    fn give_up(&mut self, id: u64) {
        let child = &self.children[&id];
        let why = Escalated {
            child: child.member.info(),
            faults: child.faults.iter().cloned().collect(),
        };
        let text = child.faults.back().cloned();
        self.set_phase(id, Phase::Waiting);
        self.ready.insert(id);
        self.lost = Some((id, why));
        if self.tree.has_parent() {
            self.fall(Report::Failed(text, Some(Duration::ZERO)));
        } else {
            self.end_for_good();
        }
    }

    /// Drops all incarnations, then reports to the supervisor above.
    fn fall(&mut self, report: Report) {
        self.mode = Mode::Falling(report);
        self.set_pause(None);
        self.end_back_offs();
        self.drop_from(0);
    }

    /// Ends the child that has failed too often with its last fault, and then the others.
    fn end_for_good(&mut self) {
        let Some((id, why)) = self.lost.take() else {
            return;
        };
        self.tree.escalate(why);
        self.leave_round(id);
        self.set_phase(id, Phase::Ending);
        self.order(id, Order::GiveUp);
        self.stop(true);
    }

    /// Obeys the supervisor above.
    pub(super) fn obey(&mut self, order: Order) {
        match (order, &self.mode) {
            (Order::Wait, Mode::Running) => self.fall(Report::Down),
            (Order::Run, Mode::Down) => {
                self.mode = Mode::Running;
                self.tells_begun = true;
                self.lost = None;
                self.failures.clear();
            }
            (Order::GiveUp, Mode::Down) => self.end_for_good(),
            _ => {}
        }
    }
}
