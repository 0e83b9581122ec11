//! Restarts: which children begin anew after a failure, and in which order.
//!
//! A round has the children that a failure restarts. First all of their incarnations are dropped.
//! Then, after the back-off, they begin in the order of their start, each after the one before has
//! begun. With one-for-one, each child is restarted for itself.

use std::sync::Arc;
use std::time::Duration;

use super::error::Escalated;
use super::options::Strategy;
use super::supervising::{ChildPhase, Supervising, SupervisorMode};
use crate::actor::{BondOrder, BondReport};
use crate::instant::Instant;

/// The number of faults of a child that are kept.
const FAULTS: usize = 10;

impl Supervising {
    /// Takes the next step of a round, or of the stop.
    pub(super) fn advance(&mut self) {
        if self.has_given_up || self.stops_now {
            return self.stop_next();
        }
        // SUPERVISE-3: first all incarnations are dropped, then one child at a time begins.
        if !self.dropping.is_empty() {
            return;
        }
        if let SupervisorMode::Falling { .. } = self.mode {
            self.report_down();
        }
        let may_begin = !self.is_paused() && self.beginning.is_none();
        if !matches!(self.mode, SupervisorMode::Running) || !may_begin {
            return;
        }
        if let Some(id) = self.ready.pop_first() {
            self.beginning = Some(id);
            return self.begin(id);
        }
        self.report_begun();
        if self.is_stopping {
            self.stop_next();
        }
    }

    /// Reports to the supervisor above that the children have begun, if it was not reported.
    fn report_begun(&mut self) {
        if std::mem::take(&mut self.reports_begun) {
            self.tree.report(BondReport::Started);
        }
    }

    /// Lets a child begin.
    pub(super) fn begin(&mut self, id: u64) {
        self.set_phase(id, ChildPhase::Beginning);
        // Only while the child or the tree stops: otherwise nothing limits a begin.
        self.begin_grace(id);
        self.order(id, BondOrder::Run);
    }

    pub(super) fn take_report(&mut self, id: u64, report: BondReport) {
        match report {
            // `Tree::take_report` has put it into the list, and passes it on to nobody.
            BondReport::Starting(_) => {}
            BondReport::Started => self.note_begun(id),
            BondReport::Down => self.note_down(id),
            BondReport::Failed(text, delay) => {
                self.note_fault(id, text);
                match self.phase(id) {
                    Some(ChildPhase::Beginning | ChildPhase::Up) => {
                        self.beginning.take_if(|beginning| *beginning == id);
                        self.fail(id, delay);
                    }
                    // It reports that it is down as well, and begins again without a delay.
                    Some(ChildPhase::Dropping { .. }) => {
                        self.set_spent(id, delay.is_none());
                    }
                    _ => {}
                }
            }
        }
    }

    fn note_begun(&mut self, id: u64) {
        self.beginning.take_if(|beginning| *beginning == id);
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        child.has_begun = true;
        if child.phase == ChildPhase::Beginning {
            self.set_phase(id, ChildPhase::Up);
            self.end_grace(id);
        }
    }

    /// Notes that the incarnation of a child was dropped.
    fn note_down(&mut self, id: u64) {
        let Some(ChildPhase::Dropping { by_hand }) = self.phase(id) else {
            return;
        };
        let is_spent = self.set_spent(id, false);
        self.dropping.remove(&id);
        if by_hand && !is_spent {
            return self.begin(id);
        }
        self.set_phase(id, ChildPhase::Waiting);
        self.set_alarm(id, None);
        if is_spent && matches!(self.mode, SupervisorMode::Running) {
            self.fail(id, None);
        }
    }

    /// Notes whether a child has used up its own intensity, and returns what was noted before.
    fn set_spent(&mut self, id: u64, is_spent: bool) -> bool {
        let child = self.children.get_mut(&id);
        child.is_some_and(|child| std::mem::replace(&mut child.is_spent, is_spent))
    }

    fn note_fault(&mut self, id: u64, text: Option<Arc<str>>) {
        let (Some(child), Some(text)) = (self.children.get_mut(&id), text) else {
            return;
        };
        if child.faults.len() == FAULTS {
            child.faults.pop_front();
        }
        child.faults.push_back(text);
    }

    /// Decides about a child that has failed by itself. `delay` is its back-off, or `None` if its
    /// own intensity is used up.
    fn fail(&mut self, id: u64, delay: Option<Duration>) {
        let is_to_end = self.is_stopping || self.children[&id].is_stopped;
        match delay.filter(|_| self.count_failure()) {
            // It handles what it has accepted.
            Some(_) if is_to_end => self.begin(id),
            Some(delay) => self.restart(id, delay),
            None if is_to_end => self.let_go(id),
            None => self.give_up(id),
        }
    }

    fn count_failure(&mut self) -> bool {
        let (failures, window) = (self.options.failures, self.options.window);
        self.failures.count(failures, window)
    }

    /// Restarts the children that the strategy selects after the failure of this one.
    fn restart(&mut self, id: u64, delay: Duration) {
        let until = (!delay.is_zero()).then(|| Instant::now() + delay);
        // One-for-one needs no round: the child waits for its own back-off, then begins.
        let first = match self.options.strategy {
            Strategy::OneForOne => {
                if until.is_none() {
                    return self.begin(id);
                }
                self.set_phase(id, ChildPhase::BackingOff);
                self.tree.update(id, |status| status.until = until);
                return self.set_alarm(id, until);
            }
            Strategy::OneForAll => 0,
            Strategy::RestForOne => id,
        };
        self.set_phase(id, ChildPhase::Waiting);
        self.tree.update(id, |status| status.until = until);
        self.ready.insert(id);
        self.prolong_pause(until);
        self.drop_from(first);
    }

    /// Drops the incarnations of this child and all later ones, which then wait to begin.
    fn drop_from(&mut self, first: u64) {
        let later: Vec<_> = self.children.range(first..).map(|(id, _)| *id).collect();
        for id in later {
            match self.children[&id].phase {
                ChildPhase::Up | ChildPhase::Beginning => self.order(id, BondOrder::Wait),
                ChildPhase::Dropping { by_hand: true } => {}
                _ => continue,
            }
            self.beginning.take_if(|beginning| *beginning == id);
            self.set_phase(id, ChildPhase::Dropping { by_hand: false });
            self.begin_grace(id);
            self.dropping.insert(id);
            self.ready.insert(id);
        }
    }

    /// Lets the children that back off wait for their turn instead.
    pub(super) fn end_back_offs(&mut self) {
        let backing_off = self.children.iter();
        let backing_off = backing_off.filter(|(_, child)| child.phase == ChildPhase::BackingOff);
        for id in backing_off.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.set_alarm(id, None);
            self.set_phase(id, ChildPhase::Waiting);
            self.ready.insert(id);
        }
    }

    pub(super) fn restart_by_hand(&mut self, id: u64) {
        let Some(child) = self.children.get(&id) else {
            return;
        };
        match child.phase {
            _ if child.is_stopped || self.is_stopping => {}
            ChildPhase::Up | ChildPhase::Beginning => {
                self.set_phase(id, ChildPhase::Dropping { by_hand: true });
                self.order(id, BondOrder::Wait);
            }
            ChildPhase::BackingOff => {
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
            child: child.actor.info(),
            faults: child.faults.iter().cloned().collect(),
        };
        let text = child.faults.back().cloned();
        self.set_phase(id, ChildPhase::Waiting);
        self.ready.insert(id);
        self.lost = Some((id, why));
        if self.tree.has_parent() {
            let failure = BondReport::Failed(text, Some(Duration::ZERO));
            self.fall(Some(failure), false);
        } else {
            self.end_for_good();
        }
    }

    /// Drops all incarnations, before it reports to the supervisor above.
    fn fall(&mut self, failure: Option<BondReport>, is_ordered: bool) {
        self.mode = SupervisorMode::Falling {
            failure,
            is_ordered,
        };
        self.set_pause(None);
        self.end_back_offs();
        self.drop_from(0);
    }

    /// Reports to the supervisor above that all incarnations were dropped.
    fn report_down(&mut self) {
        let SupervisorMode::Falling {
            failure,
            is_ordered,
        } = std::mem::replace(&mut self.mode, SupervisorMode::Down)
        else {
            return;
        };
        if failure.is_some() {
            self.report_begun();
        }
        let down = is_ordered.then_some(BondReport::Down);
        for report in failure.into_iter().chain(down) {
            self.tree.report(report);
        }
    }

    /// Ends the child that has failed too often with its last fault, and then the others.
    fn end_for_good(&mut self) {
        let Some((id, why)) = self.lost.take() else {
            return;
        };
        self.tree.escalate(why);
        self.mode = SupervisorMode::Running;
        self.let_go(id);
        self.has_given_up = true;
        self.stop();
    }

    /// Lets a child that waits after its failure end with its last fault.
    fn let_go(&mut self, id: u64) {
        self.leave_round(id);
        self.set_phase(id, ChildPhase::Over);
        self.order(id, BondOrder::GiveUp);
    }

    /// Obeys the supervisor above.
    pub(super) fn obey(&mut self, order: BondOrder) {
        // An order that does not fit the mode was overtaken by what has happened here.
        match (order, &mut self.mode) {
            (BondOrder::Wait, SupervisorMode::Running) => self.fall(None, true),
            (BondOrder::Wait, SupervisorMode::Falling { is_ordered, .. }) => *is_ordered = true,
            (BondOrder::Wait, SupervisorMode::Down) => self.tree.report(BondReport::Down),
            (BondOrder::Run, SupervisorMode::Down) => {
                self.mode = SupervisorMode::Running;
                self.tree.report(BondReport::Starting(self.runs));
                self.runs += 1;
                self.reports_begun = true;
                self.lost = None;
                self.tree.take_faults();
                self.failures.clear();
            }
            (BondOrder::GiveUp, SupervisorMode::Down) => self.end_for_good(),
            _ => {}
        }
    }
}
