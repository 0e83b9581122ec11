//! Waits that never end, which are reported when nothing has run for two seconds.
//!
//! The last thread that parks does so for that time, once after each activity, and then looks. It
//! is awake for that look alone: the time is no deadline, and no activity.
//!
//! A look notes which waits never end, as far as the notes tell, and has all who wait polled again.
//! The next look follows soon, and reports the waits that are noted anew. So a wait that was
//! dropped after it was noted, or noted twice in a turn, is not reported.
//!
//! An actor is *stuck* if it does not receive, greenroom knows each waker of it, and each of them
//! is left with an actor that is stuck too. The references to its cell tell how many wakers there
//! are. An actor is *kept* if it only receives, and its context has made all of its addresses. A
//! wait for its end never ends, unless one of these was given to something that still runs. So no
//! actor counts as kept while a task waits, or an actor or a call of `block_on` has another waker.
//!
//! An actor has the requests that it has received, as far as this can be known. On threads with a
//! context of another runtime, something else may have one. So only an ask of an actor to itself
//! counts there. With a driver nothing looks.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::deadlock::{Edge, Who, wait_cycles};
use super::inner::Inner;
use super::live_cells::SeenActor;
use super::silence_state::{EndlessWait, Findings};
use super::status::ActorStatus;
use super::warning::Warning;
use crate::error::Deadlock;
use crate::scheduler::{ActivityCount, PolicyImpl};
use crate::sync::atomic::{Ordering, fence};
use crate::task::{NotedWait, NotedWaits, TaskInfo, WaitsFor};
use crate::timers::Left;

/// How long nothing runs before a thread looks. The tests here look themselves.
const SILENCE: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 2 });

/// How long nothing runs before a thread looks for the waits that the last look has found: time for
/// polls that wake each other.
const SILENCE_AGAIN: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 20 });

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
        let begun = is_last.then(|| self.silence.begins(reading)).flatten()?;
        let time = match self.silence.has_suspects() {
            true => SILENCE_AGAIN,
            false => SILENCE,
        };
        Some(time.saturating_sub(begun.elapsed()))
    }

    /// Makes a worker park anew for that time, after the end of an activity of no thread that
    /// parks.
    pub(crate) fn begin_silence(&self) {
        if self.until_silence().is_none() {
            return;
        }
        match &self.scheduler.policy {
            PolicyImpl::Stealing(stealing) => stealing.queues.sleep.appoint(false),
            PolicyImpl::Other(_) => self.scheduler.interrupt(),
            PolicyImpl::Elsewhere(_) => {}
        }
    }

    /// Reports the waits that never end, where wakers may be called: after such a time.
    #[cold]
    pub(crate) fn report_silence(&self) {
        let found = self.find_silent().unwrap_or_default();
        if !found.is_empty() {
            // The function that gets a warning may create work.
            self.inc_activity();
            self.act_on(found);
            self.dec_activity();
        }
    }

    /// Does as [`report_silence`](Inner::report_silence) if the time has passed, on a worker whose
    /// policy parks it.
    pub(super) fn report_silence_in_time(&self) {
        if self.until_silence() == Some(Duration::ZERO) {
            self.report_silence();
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
            self.act_on(self.silence.take());
        }
    }

    /// Reports what is certain, and has the rest polled again. The caller counts as activity.
    fn act_on(&self, found: Findings) {
        for warning in &found.warnings {
            self.warnings.warn(warning);
        }
        if let Some(suspects) = found.suspects {
            self.live.wake_cells(&suspects);
            self.hosts.wake_cells(&suspects);
            self.silence.poll_calls_again();
        } else if !found.warnings.is_empty() {
            let reading = self.scheduler.activity.read(Ordering::Relaxed);
            self.silence.has_reported(ActivityCount::idle(reading));
        }
    }

    /// Warns once of an actor that waits for an answer of its own, if it `may_hang` at the ends of
    /// two turns, the first of which has received a message. Returns whether the second one is to
    /// follow.
    ///
    /// A task to which the first turn has given the context receives by then.
    pub(super) fn judge_own_ask(
        &self,
        actor: &TaskInfo,
        may_hang: bool,
        has_received: bool,
    ) -> bool {
        if !self.options.endless_waits || self.is_simulated() {
            return false;
        }
        // The first look only suspects: a task that has the context may receive before the second.
        let was_suspected = self.silence.unsuspect_own_ask(actor.id());
        if !may_hang || !was_suspected {
            return may_hang && has_received && self.silence.suspect_own_ask(actor.id());
        }
        let path = Deadlock::new(format!("{actor} → {actor}"), true);
        if self.silence.is_news(path.as_str()) {
            let mut found = Vec::new();
            self.describe_actors(|status| {
                found.extend((status.task == *actor).then_some(status));
            });
            self.warnings.warn(&Warning::EndlessWait(path, found));
        }
        false
    }

    /// Looks for waits that never end and were not reported yet. Returns `None` if it has not
    /// looked, because something runs or has run since a thread parked for this.
    fn find_silent(&self) -> Option<Findings> {
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
            return Some(Findings::default());
        }
        let mut seen = self.see_actors();
        let calls = self.silence.calls();
        let is_answered_elsewhere = self.options.around.is_some();
        seen.find_stuck(is_answered_elsewhere);
        let tasks = self.live.tasks() + self.hosts.tasks();
        if calls.is_none() || tasks > 0 || !seen.are_known() {
            seen.kept.clear();
            seen.find_stuck(is_answered_elsewhere);
        }
        let mut found = self.endless_cycles(&seen);
        found.extend(self.endless_joins(&seen, calls.unwrap_or_default()));
        // Acquire pairs with the Release of each removal that was seen, as for quiescence.
        fence(Ordering::Acquire);
        if activity.read(Ordering::Relaxed) != before || self.scheduler.has_uncounted() {
            return None;
        }
        let (certain, has_suspects) = self.silence.sort(found);
        let warning = |(path, actors)| Warning::EndlessWait(path, actors);
        Some(Findings {
            warnings: certain.into_iter().map(warning).collect(),
            suspects: has_suspects.then_some(seen.stuck),
        })
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
        let is_kept = |actor: &SeenActor| {
            let own = self.silence.own_addresses(actor.info.id());
            actor.only_receives() && own > 0 && own == actor.look.addresses
        };
        let kept = actors.iter().filter(|(_, actor)| is_kept(actor));
        SeenActors {
            kept: kept.map(|(&id, _)| id).collect(),
            stuck: BTreeSet::new(),
            actors,
        }
    }

    /// Returns the cycles of stuck actors, each with these actors.
    fn endless_cycles(&self, seen: &SeenActors) -> Vec<EndlessWait> {
        let edges = seen.edges();
        let cycles = wait_cycles(&edges.iter().collect::<Vec<_>>()).into_iter();
        let found = cycles.map(|(path, waits)| {
            let from = waits.iter().map(|&at| edges[at].from.number());
            let actors = BTreeSet::from_iter(from);
            let statuses = actors.iter().filter_map(|id| seen.actors.get(id));
            (path, statuses.map(|actor| self.status_of(actor)).collect())
        });
        found.collect()
    }

    /// Returns the waits for the ends of kept actors, each with that actor.
    fn endless_joins(&self, seen: &SeenActors, calls: Vec<NotedWaits>) -> Vec<EndlessWait> {
        let calls = calls.into_iter().filter(|waits| seen.are_endless(waits));
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
                    found.push((path, vec![self.status_of(actor)]));
                }
            }
        }
        found
    }

    pub(super) fn status_of(&self, actor: &SeenActor) -> ActorStatus {
        self.status(actor.info.clone(), &actor.look)
    }
}

impl SeenActor {
    /// Returns whether the actor waits for a message, and nothing else has a waker of it.
    fn only_receives(&self) -> bool {
        // The look itself holds a reference.
        self.look.is_dormant && self.look.is_receiving && self.look.others == 1
    }
}

impl SeenActors {
    /// Returns whether each actor is stuck or only receives.
    fn are_known(&self) -> bool {
        let mut actors = self.actors.iter();
        actors.all(|(id, actor)| self.stuck.contains(id) || actor.only_receives())
    }

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
