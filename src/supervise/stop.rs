//! The orderly end of a supervisor and of its children.
//!
//! A stop first lets the round come to its end, so that each child can handle what it has accepted
//! and finds those it depends on. Then the youngest child is stopped, and so on. What takes longer
//! than the grace period is ended by force.

use super::supervising::{ChildPhase, Supervising};
use crate::instant::Instant;

impl Supervising {
    /// Begins to stop the tree.
    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        self.tree.refuse();
        self.set_pause(None);
        self.end_back_offs();
        let busy = self.children.iter().filter(|(_, child)| {
            matches!(
                child.phase,
                ChildPhase::Beginning | ChildPhase::Dropping { .. }
            )
        });
        for id in busy.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.begin_grace(id);
        }
    }

    /// Stops the tree at once. A child that was stopped before does not handle what is left.
    pub(super) fn stop_now(&mut self) {
        self.stops_now = true;
        for child in self.children.values().filter(|child| child.is_stopped) {
            child.actor.stop_now();
        }
    }

    /// Stops the youngest child, unless it was stopped before.
    pub(super) fn stop_next(&mut self) {
        let Some((&id, child)) = self.children.last_key_value() else {
            return;
        };
        match child.phase {
            ChildPhase::Beginning | ChildPhase::Up => self.stop_child(id),
            ChildPhase::Over => {}
            _ if !self.has_given_up && !self.stops_now => self.stop_child(id),
            _ => {
                let actor = child.actor.clone();
                self.leave_round(id);
                self.set_phase(id, ChildPhase::Over);
                actor.kill();
            }
        }
    }

    /// Stops a child, which is ended by force after the grace period. One that waits begins in its
    /// turn first, so that it can handle what it has accepted.
    pub(super) fn stop_child(&mut self, id: u64) {
        let Some(child) = self.children.get_mut(&id) else {
            return;
        };
        if child.is_stopped || child.phase == ChildPhase::Over {
            return;
        }
        child.is_stopped = true;
        let (actor, phase) = (child.actor.clone(), child.phase);
        self.set_phase(id, phase);
        self.set_alarm(id, None);
        match self.stops_now {
            true => actor.stop_now(),
            false => actor.stop(),
        }
        match phase {
            ChildPhase::BackingOff => self.begin(id),
            // Its grace period starts when it begins.
            ChildPhase::Waiting if !self.is_stopping => {}
            _ => self.begin_grace(id),
        }
    }

    /// Begins the grace period of a child, if it has one: for its end, or for what it was ordered while
    /// the tree stops. A supervisor that was stopped has none: its own children have.
    pub(super) fn begin_grace(&mut self, id: u64) {
        let Some(child) = self.children.get(&id) else {
            return;
        };
        let is_limited = match child.is_stopped {
            true => child.alarm.is_none() && child.actor.has_grace(),
            false => self.is_stopping,
        };
        if is_limited {
            self.set_alarm(id, Some(Instant::now() + self.options.grace));
        }
    }

    /// Ends the grace period of a child that has done what it was ordered. If it was stopped, it still
    /// has to end.
    pub(super) fn end_grace(&mut self, id: u64) {
        if !self.is_stopped(id) {
            self.set_alarm(id, None);
        }
    }

    fn is_stopped(&self, id: u64) -> bool {
        self.children.get(&id).is_some_and(|child| child.is_stopped)
    }

    /// Ends a child that has not done in time what it was ordered.
    pub(super) fn end_by_force(&mut self, id: u64) {
        match self.children.get(&id) {
            Some(child) if child.actor.has_grace() => child.actor.kill(),
            // Its own children are killed instead.
            _ => self.stop_child(id),
        }
    }
}
