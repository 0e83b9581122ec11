//! Waits that never end, which are reported when nothing has run for two seconds.
//!
//! The last thread that parks does so for that time, once after each activity, and then looks. It
//! is awake for that look alone: the time is no deadline, and no activity.
//!
//! An actor is *stuck* if it does not receive, greenroom knows each waker of it, and each of them
//! is left with an actor that is stuck too. The references to its cell tell how many wakers there
//! are. An actor is *kept* if it only receives, and its context has made all of its addresses. A wait
//! for its end never ends, unless one of these was given away.
//!
//! An actor has the requests that it has received, as far as this can be known. With a driver, or
//! on threads with a context of another runtime, something else may have one. So only an ask of an
//! actor to itself counts there.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::deadlock::{Edge, Who, wait_cycles};
use super::inner::Inner;
use super::live_cells::ActorStatus;
use super::warning::Warning;
use crate::error::Deadlock;
use crate::scheduler::PolicyImpl;
use crate::sync::atomic::{Ordering, fence};
use crate::task::{Look, NotedWait, NotedWaits, TaskInfo, WaitsFor};
use crate::timers::Left;

/// How long nothing runs before a thread looks. The tests here look themselves.
const SILENCE: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 2 });

/// An actor, as it is at a look.
pub(super) struct SeenActor {
    pub(super) info: TaskInfo,
    pub(super) look: Look,
    pub(super) waits: NotedWaits,
}

/// All actors of a runtime, by their numbers.
pub(super) struct SeenActors {
    pub(super) actors: BTreeMap<u64, SeenActor>,
    kept: BTreeSet<u64>,
    stuck: BTreeSet<u64>,
}

impl Inner {
    /// Returns how long this thread parks before it [looks](Inner::find_silent), if nothing else
    /// runs and nothing has happened since the last look.
    pub(crate) fn until_silence(&self) -> Option<Duration> {
        if !self.silence.is_reported || !self.is_here() {
            return None;
        }
        // Relaxed: a thread that counts itself later parks later, and sees to it then.
        let reading = self.scheduler.activity.read(Ordering::Relaxed);
        let is_last = !self.scheduler.activity.is_active(reading);
        (is_last && self.silence.begins(reading)).then_some(SILENCE)
    }

    /// Makes a worker park anew for that time, after the end of an activity of no thread that parks.
    pub(crate) fn begin_silence(&self) {
        if let PolicyImpl::Stealing(stealing) = &self.scheduler.policy
            && self.until_silence().is_some()
        {
            stealing.queues.sleep.appoint(false);
        }
    }

    /// Reports the waits that never end, where wakers may be called: after such a time.
    #[cold]
    pub(crate) fn report_silence(&self) {
        let found = self.find_silent().unwrap_or_default();
        if !found.is_empty() {
            // The function that gets a warning may create work.
            self.inc_activity();
            self.warn_of(&found);
            self.dec_activity();
        }
    }

    /// Finds the waits that never end from a worker that sleeps already; the worker wakes up to
    /// report them.
    #[cold]
    pub(super) fn find_silent_from_sleep(&self) {
        let found = self.find_silent().unwrap_or_default();
        if !found.is_empty() {
            self.silence.keep(found);
            // Release pairs with the Acquire in `is_declared`.
            self.declared.is_declared.store(true, Ordering::Release);
        }
    }

    /// Reports what this or another worker has found while it slept.
    pub(super) fn report_found(&self) {
        if self.silence.is_reported {
            self.warn_of(&self.silence.take());
        }
    }

    fn warn_of(&self, found: &[Warning]) {
        for warning in found {
            self.warnings.warn(warning);
        }
        if !found.is_empty() {
            let reading = self.scheduler.activity.read(Ordering::Relaxed);
            self.silence.has_reported(reading);
        }
    }

    /// Warns that an actor waits for an answer of its own, once.
    pub(super) fn warn_of_own_ask(&self, actor: &TaskInfo) {
        if self.silence.is_reported && self.silence.is_news(actor.id()) {
            let mut found = Vec::new();
            self.describe_actors(|status| {
                found.extend((status.task == *actor).then_some(status));
            });
            let path = Deadlock::new(format!("{actor} → {actor}"), true);
            self.warnings.warn(&Warning::EndlessWait(path, found));
        }
    }

    /// Looks for waits that never end and were not reported yet. Returns `None` if it has not looked,
    /// because something runs or has run since a thread parked for this.
    fn find_silent(&self) -> Option<Vec<Warning>> {
        let activity = &self.scheduler.activity;
        // Acquire: sees what threads no longer counted have put into queues (ACTIVITY-1).
        let before = activity.read(Ordering::Acquire);
        if !self.is_here() || activity.is_active(before) || !self.silence.looks(before) {
            return None;
        }
        // What ends, wakes or fires later parks later, and sees to the next look.
        if self.shutdown.has_begun()
            || self.timers.left() != Left::Nothing
            || self.scheduler.has_uncounted()
        {
            return Some(Vec::new());
        }
        let seen = self.see_actors();
        let mut found = self.endless_cycles(&seen);
        found.extend(self.endless_joins(&seen));
        // Acquire pairs with the Release of each removal that was seen, as for quiescence.
        fence(Ordering::Acquire);
        if activity.read(Ordering::Relaxed) != before {
            return None;
        }
        found.retain(|(actor, _)| self.silence.is_news(*actor));
        Some(found.into_iter().map(|(_, warning)| warning).collect())
    }

    pub(super) fn see_actors(&self) -> SeenActors {
        let mut actors = BTreeMap::new();
        self.describe_cells(&[], |info, look| {
            let waits = NotedWaits::NONE;
            actors.insert(info.id(), SeenActor { info, look, waits });
        });
        let hosted = self.hosts.noted_waits();
        for (actor, waits) in self.live.noted_waits().into_iter().chain(hosted) {
            if let Some(actor) = actors.get_mut(&actor) {
                actor.waits = waits;
            }
        }
        let keeps_itself = |actor: &SeenActor| {
            let look = &actor.look;
            let own = self.silence.own_addresses(actor.info.id());
            // The look itself holds a reference.
            look.is_receiving && look.others == 1 && own > 0 && own == look.addresses
        };
        let dormant = actors.iter().filter(|(_, actor)| actor.look.is_dormant);
        let kept = dormant.filter(|(_, actor)| keeps_itself(actor));
        let kept = kept.map(|(&id, _)| id).collect();
        let mut seen = SeenActors {
            stuck: BTreeSet::new(),
            actors,
            kept,
        };
        seen.find_stuck(self.options.around.is_some());
        seen
    }

    /// Returns the cycles of stuck actors, each with the number of its oldest actor.
    fn endless_cycles(&self, seen: &SeenActors) -> Vec<(u64, Warning)> {
        let edges = seen.edges();
        let cycles = wait_cycles(&edges.iter().collect::<Vec<_>>()).into_iter();
        let warnings = cycles.filter_map(|(path, waits)| {
            let from = waits.iter().map(|&at| edges[at].from.number());
            let actors = BTreeSet::from_iter(from);
            let statuses = actors.iter().filter_map(|id| seen.actors.get(id));
            let statuses = statuses.map(|actor| self.status_of(actor)).collect();
            Some((*actors.first()?, Warning::EndlessWait(path, statuses)))
        });
        warnings.collect()
    }

    /// Returns the waits for the ends of kept actors, each with the number of that actor.
    fn endless_joins(&self, seen: &SeenActors) -> Vec<(u64, Warning)> {
        let calls = self.silence.calls().into_iter();
        let calls = calls.filter(|waits| seen.are_endless(waits));
        let calls = calls.map(|waits| ("block_on".to_owned(), waits));
        let stuck = seen.stuck.iter().filter_map(|id| seen.actors.get(id));
        let stuck = stuck.map(|actor| (actor.info.to_string(), actor.waits));
        let mut found = Vec::new();
        for (who, waits) in calls.chain(stuck) {
            for wait in waits.as_slice() {
                if let Some(actor) = seen.actors.get(&wait.to)
                    && seen.kept.contains(&wait.to)
                {
                    let path = format!("{who} → {}{}", actor.info, wait.for_what);
                    let path = Deadlock::new(path, false);
                    let warning = Warning::EndlessWait(path, vec![self.status_of(actor)]);
                    found.push((wait.to, warning));
                }
            }
        }
        found
    }

    pub(super) fn status_of(&self, actor: &SeenActor) -> ActorStatus {
        self.status(actor.info.clone(), &actor.look)
    }
}

impl SeenActors {
    /// Finds the stuck actors: of those that may be, it drops the ones whom another actor may wake,
    /// until none is left.
    fn find_stuck(&mut self, is_answered_elsewhere: bool) {
        let may_be = |actor: &&SeenActor| {
            let SeenActor { look, waits, .. } = actor;
            let known = waits.as_slice().len();
            // The look itself holds a reference.
            look.is_dormant && !look.is_receiving && known > 0 && look.others as usize == known + 1
        };
        let actors = self.actors.values().filter(may_be);
        let own = |actor: &SeenActor, wait: &NotedWait| wait.to == actor.info.id();
        let is_known = |actor: &&SeenActor| {
            let mut waits = actor.waits.as_slice().iter();
            waits.all(|wait| {
                !is_answered_elsewhere || wait.for_what != WaitsFor::Answer || own(actor, wait)
            })
        };
        let stuck = actors.filter(is_known).map(|actor| actor.info.id());
        self.stuck = stuck.collect();
        loop {
            let left = |id: &u64| self.are_endless(&self.actors[id].waits);
            let left: BTreeSet<u64> = self.stuck.iter().copied().filter(left).collect();
            if left.len() == self.stuck.len() {
                return;
            }
            self.stuck = left;
        }
    }

    /// Returns whether none of these waits ends, as far as is known.
    fn are_endless(&self, waits: &NotedWaits) -> bool {
        let mut waits = waits.as_slice().iter();
        waits.all(|wait| {
            let is_kept = wait.for_what == WaitsFor::End && self.kept.contains(&wait.to);
            is_kept || self.stuck.contains(&wait.to)
        })
    }

    /// Returns the waits of the stuck actors.
    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for actor in self.stuck.iter().filter_map(|id| self.actors.get(id)) {
            for wait in actor.waits.as_slice() {
                if let Some(to) = self.actors.get(&wait.to) {
                    let from = Who::Task(actor.info.clone());
                    edges.push(Edge {
                        for_what: wait.for_what,
                        ..Edge::of_ask(from, to.info.clone())
                    });
                }
            }
        }
        edges
    }
}
