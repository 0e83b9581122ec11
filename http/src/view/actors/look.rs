//! A look at the runtime, which all readers share for a moment.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use greenroom::policy::TaskInfo;
use greenroom::{ActorStatus, Runtime, Stats, TaskReport};

use super::chart::LoadChart;
use crate::view::console::word_of_state;
use crate::view::count_book::{ActorCounts, CountBook};

/// How long a look serves all readers, and so the least time between two of them.
const SHARED: Duration = Duration::from_millis(500);

/// What a runtime was like at some moment, and the progress since the look before.
pub(super) struct ActorsLook {
    pub(super) stats: Stats,
    /// When they were read, on the clock of the runtime.
    pub(super) at: greenroom::time::Instant,
    /// The progress of each actor, in the order of the statistics. Empty without a look before.
    progress: Vec<Option<ActorCounts>>,
    /// The time since the look before.
    pub(super) since: Option<Duration>,
    /// The charts up to this look.
    pub(super) charts: String,
    report: OnceLock<Vec<TaskReport>>,
}

/// The state of an actor, and its progress.
#[derive(Clone, Copy)]
pub(super) struct SeenStatus<'a> {
    pub(super) status: &'a ActorStatus,
    progress: Option<ActorCounts>,
    look: &'a ActorsLook,
}

/// The last look, and what the next one needs.
#[derive(Default)]
pub(super) struct SharedLook(Mutex<LastLook>);

#[derive(Default)]
struct LastLook {
    last: Option<(Instant, Arc<ActorsLook>)>,
    book: CountBook,
    chart: LoadChart,
}

impl SharedLook {
    /// Returns the last look, or a new one if it is too old. Readers that come meanwhile wait for that.
    pub(super) fn get(&self, runtime: &Runtime) -> Arc<ActorsLook> {
        self.get_at(Instant::now(), || runtime.stats())
    }

    pub(super) fn get_at(&self, now: Instant, stats: impl FnOnce() -> Stats) -> Arc<ActorsLook> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let LastLook { last, book, chart } = &mut *shared;
        let mut since = None;
        if let Some((at, look)) = last {
            let age = now.saturating_duration_since(*at);
            if age < SHARED {
                return look.clone();
            }
            since = Some(age);
        }
        // One that is too old gives its memory back before the next one needs it.
        *last = None;
        let (stats, at) = (stats(), greenroom::time::Instant::now());
        let progress = stats.actors.iter().filter(|_| since.is_some());
        let progress: Vec<_> = progress.map(|actor| book.since(actor)).collect();
        book.note(&stats.actors);
        let messages = progress.iter().flatten().map(|it| it.messages).sum();
        chart.add(now, &stats, messages);
        let look = Arc::new(ActorsLook {
            stats,
            at,
            progress,
            since,
            charts: chart.draw(now),
            report: OnceLock::new(),
        });
        *last = Some((now, look.clone()));
        look
    }
}

impl ActorsLook {
    /// Returns all actors with their progress.
    pub(super) fn actors(&self) -> impl Iterator<Item = SeenStatus<'_>> {
        let actors = self.stats.actors.iter().enumerate();
        actors.map(|(index, status)| self.seen(status, index))
    }

    /// Returns the actor with this number.
    pub(super) fn actor(&self, id: u64) -> Option<SeenStatus<'_>> {
        let index = self.stats.actors.iter().position(|it| it.task.id() == id)?;
        Some(self.seen(&self.stats.actors[index], index))
    }

    fn seen<'a>(&'a self, status: &'a ActorStatus, index: usize) -> SeenStatus<'a> {
        SeenStatus {
            status,
            progress: self.progress.get(index).copied().flatten(),
            look: self,
        }
    }

    /// Returns the children of this actor.
    pub(super) fn children(&self, id: u64) -> impl Iterator<Item = &TaskInfo> {
        let actors = self.stats.actors.iter();
        let children = actors.filter(move |actor| actor.parent == Some(id));
        children.map(|actor| &actor.task)
    }

    /// Returns whether the times of all turns are measured.
    pub(super) fn is_measured(&self) -> bool {
        self.stats.actors.iter().any(|actor| actor.busy.is_some())
    }

    /// Returns what actors wait for, which is found out when the first reader asks for it.
    pub(super) fn report(&self, runtime: &Runtime) -> &[TaskReport] {
        self.report.get_or_init(|| runtime.report())
    }
}

impl SeenStatus<'_> {
    /// Returns the word for its state.
    pub(super) fn state(&self) -> &'static str {
        word_of_state(self.status, &self.look.stats)
    }

    /// Returns the longest turn: of all if turns are measured, and otherwise of those that were timed.
    pub(super) fn longest(&self) -> Option<Duration> {
        let sampled = self.status.sampled;
        let sampled = (sampled.turns > 0).then_some(sampled.longest);
        self.status.longest.or(sampled)
    }

    /// Returns the messages a second since the look before.
    pub(super) fn rate(&self) -> Option<f64> {
        let (progress, since) = (self.progress?, self.look.since?);
        let is_known = self.look.stats.is_counting && !since.is_zero();
        is_known.then(|| progress.messages as f64 / since.as_secs_f64())
    }

    /// Returns the messages a second by which a wait is estimated. It is not known for an actor that has
    /// handled none, and whose mailbox was empty at the look before.
    pub(super) fn handling_rate(&self) -> Option<f64> {
        let has_waited = self.progress.is_some_and(|it| it.mailbox > 0);
        self.rate().filter(|rate| *rate > 0.0 || has_waited)
    }

    /// Returns the part of the time since the look before that the actor was in turns: exact if turns
    /// are measured, and otherwise estimated from those that were timed.
    pub(super) fn busy(&self) -> Option<f64> {
        let (progress, since) = (self.progress?, self.look.since?);
        let since = since.as_secs_f64();
        if let Some(busy) = progress.busy {
            return Some(busy.as_secs_f64() / since);
        }
        if !self.look.stats.is_counting {
            return None;
        }
        let sampled = self.status.sampled;
        match (progress.turns, sampled.turns) {
            (0, _) => Some(0.0),
            // None of its turns was timed yet.
            (_, 0) => None,
            (turns, timed) => {
                let one = sampled.busy.as_secs_f64() / timed as f64;
                Some((one * turns as f64 / since).min(1.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_within_half_a_second_share_a_look() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let (shared, begun) = (SharedLook::default(), Instant::now());
        let mut walks = 0;
        let mut at = |milliseconds| {
            let now = begun + Duration::from_millis(milliseconds);
            shared.get_at(now, || {
                walks += 1;
                runtime.stats()
            })
        };
        let [first, second, third] = [0, 499, 500].map(&mut at);
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&second, &third));
        assert_eq!(first.since, None);
        assert_eq!(third.since, Some(SHARED));
        let fourth = at(2500);
        assert_eq!(fourth.since, Some(Duration::from_secs(2)));
        assert_eq!(walks, 3);
    }
}
