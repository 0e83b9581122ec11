//! What can be read of a runtime at any moment: what its workers have done, and what there is to do.

use std::time::Duration;

use super::engine::Done;
use super::handle::Runtime;
use super::inner::Inner;
use crate::scheduler::WorkerStats;
use crate::task::{Look, TaskInfo};

/// What a runtime has done since it was built, and what it has to do: see
/// [`Runtime::stats`](crate::Runtime::stats).
///
/// Each number is exact for a moment, but they are read one after the other while the runtime goes
/// on: they agree with each other only where nothing runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// Each worker, by its number.
    pub workers: Vec<WorkerStats>,
    /// How many tasks and actors are ready and wait for a worker, in all queues. Those that wait for
    /// a pinned thread are not among them.
    pub queued: usize,
    /// How many of these came from outside the workers and wait for any of them; 0 with a policy
    /// other than [`Stealing`](crate::policy::Stealing), which may keep them as it likes.
    pub injector: usize,
    /// How many plain tasks live that have waited: that were polled, were not done, and have not
    /// ended since. One that is yet to be polled for the first time, or is in that poll, is not
    /// counted. Those on pinned threads are.
    pub tasks: usize,
    /// Each actor that lives on this runtime, those on pinned threads and detached ones included; in
    /// no order.
    pub actors: Vec<ActorStats>,
}

impl Stats {
    /// The sum of all workers.
    pub fn total(&self) -> WorkerStats {
        let mut total = WorkerStats::default();
        for worker in &self.workers {
            total.runs += worker.runs;
            total.steals += worker.steals;
            total.injector_takes += worker.injector_takes;
            total.parks += worker.parks;
            total.wake_ups += worker.wake_ups;
            total.queued += worker.queued;
        }
        total
    }

    /// How many actors are dormant and have no [`Handle`](crate::Handle) left.
    ///
    /// Many of them are at work, told by others what to do. If their number only grows, look for actors that keep
    /// an address of themselves: those never end for want of senders.
    pub fn dormant_without_handle(&self) -> usize {
        let left_alone = |actor: &&ActorStats| actor.is_dormant && !actor.has_handle;
        self.actors.iter().filter(left_alone).count()
    }
}

/// What can be read of an actor that lives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ActorStats {
    /// Which actor it is: its number, its name, its priority.
    pub task: TaskInfo,
    /// How many messages wait in its mailbox. Those that it has taken out already, several at once,
    /// to handle them in turn, are not among them, nor are those for which there is no room.
    pub mailbox: usize,
    /// Whether it is neither in a turn nor ready for one: it waits for a message, or for something else.
    pub is_dormant: bool,
    /// Whether its [`Handle`](crate::Handle), or the [`Join`](crate::Join) of one, is still there.
    pub has_handle: bool,
    /// How long all its turns have taken that are over; `None` if the runtime has no
    /// [`observer`](crate::Builder::observer), since nothing is measured then.
    pub busy: Option<Duration>,
}

impl Runtime {
    /// What this runtime has done since it was built, and what it has to do.
    ///
    /// It waits for nothing but short locks, among them that of every mailbox in turn, so it takes time
    /// in proportion to the number of actors. To those who do not ask, it costs nothing but the
    /// counting. After the end of the runtime it still answers.
    ///
    /// # Panics
    /// In a child of a `fork`, if the runtime is the parent's.
    ///
    /// ```
    /// use greenroom::{Context, Runtime, spawn};
    ///
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let actor = spawn!(
    ///     |mut cx: Context<u32>| async move { while cx.recv().await.is_some() {} },
    ///     name = "sink",
    ///     on = &runtime,
    /// );
    /// runtime.run_until_quiescent();
    ///
    /// let stats = runtime.stats();
    /// assert_eq!(stats.total().runs, 1); // the first turn of the actor
    /// assert_eq!(stats.queued, 0);
    /// assert_eq!(stats.actors.len(), 1);
    /// assert_eq!(stats.actors[0].task.name(), Some("sink"));
    /// assert_eq!(stats.actors[0].mailbox, 0);
    /// # drop(actor);
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    #[track_caller]
    pub fn stats(&self) -> Stats {
        self.inner.check_process();
        self.inner.stats()
    }
}

impl Inner {
    fn stats(&self) -> Stats {
        let (injector, own, mut elsewhere) = self.scheduler.lens();
        // All that was done is to be seen.
        self.engine().settle(self, Done::All);
        elsewhere += self.engine().len();
        let counters = self.scheduler.counters.iter().zip(&own);
        let workers = counters.map(|(counters, &queued)| counters.stats(queued));
        let mut actors = Vec::new();
        let mut describe = |task: TaskInfo, look: Look| {
            let busy = || self.busy.of(task.id()).unwrap_or_default();
            actors.push(ActorStats {
                busy: self.has_observer().then(busy),
                mailbox: look.mailbox,
                is_dormant: look.is_dormant,
                has_handle: look.has_handle,
                task,
            });
        };
        self.live.describe_cells(&mut describe);
        self.hosts.describe_cells(&mut describe);
        Stats {
            workers: workers.collect(),
            queued: injector + own.iter().sum::<usize>() + elsewhere,
            injector,
            tasks: self.live.tasks() + self.hosts.tasks(),
            actors,
        }
    }
}
