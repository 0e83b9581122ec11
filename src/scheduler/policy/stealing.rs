//! Work stealing, the default policy: each worker has a queue, and an idle worker steals.
//!
//! The design follows the scheduler of Sophie (<https://github.com/kjosib/sophie>) and CAF's
//! work-stealing policy, after Blumofe and Leiserson, 1994. `queues.rs` has the queues and the
//! order in which a worker checks them. `sleep.rs` decides which workers sleep and which one is
//! woken.

mod view;

use std::cell::Cell;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

pub(crate) use view::PolicyView;

use super::polling::{Polling, PollingPhase};
use super::{Duties, Policy, Runnable, Setup};
use crate::scheduler::queues::{LocalQueue, Queues, runnable};
use crate::scheduler::ring::Queued;
use crate::scheduler::sleep::{Woken, WorkerSleep};
use crate::scheduler::thief::Loot;
use crate::sync::mutant;

/// The default interval of rebalancing: long enough to cost nothing, short enough that a task on a
/// crowded worker does not wait long.
const REBALANCE_INTERVAL: Duration = Duration::from_millis(5);

/// Work stealing: each worker has a queue, and steals half of another worker's when its own is
/// empty.
///
/// This is the default policy. It ignores priorities.
///
/// # Behavior today
///
/// The following may change in any release.
///
/// - **Order.** A woken task goes to the worker that woke it, and the newest task runs first. While
///   older tasks wait, that is limited: after three such turns the worker reads the clock, and the
///   newest goes first for about 16 µs more, but for at least one turn. At every other turn the
///   worker first checks the injector, where tasks from outside the workers are queued.
/// - **Stealing.** One worker at a time searches the queues of other workers. Workers without work
///   are parked, so an idle runtime uses no processor time. If a thief's loot was small and used up
///   at once three times in a row, it steals again only after 50 to 400 µs. A task from outside
///   ends that wait.
/// - **Rebalancing.** Tasks that only wake each other may stay on a worker with many more or far
///   fewer tasks than the others. So every 5 ms a busy worker compares the queue lengths, and takes
///   half of the surplus of the longest queue over its own.
///   [`rebalance_interval`](Stealing::rebalance_interval) changes or disables that. Identical
///   actors get similar shares of time within a few of these intervals.
///
/// # Examples
///
/// ```
/// use greenroom::{Runtime, policy};
///
/// let runtime = Runtime::builder().policy(policy::Stealing::default()).build()?;
/// assert_eq!(runtime.block_on(async { 40 + 2 }), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Stealing {
    pub(crate) queues: Arc<Queues>,
    polling: Option<Polling>,
    rebalance_interval: Option<Duration>,
}

impl Stealing {
    /// Creates a policy whose workers poll before they park.
    ///
    /// It suits machines where a wake-up is expensive, and where idle workers may keep their cores
    /// busy. [`build`](crate::Builder::build) fails with
    /// [`BuildError::Impossible`](crate::BuildError) if a steal interval is 0.
    pub fn polling(polling: Polling) -> Self {
        Stealing {
            polling: Some(polling),
            ..Stealing::default()
        }
    }

    /// Sets how often a busy worker takes tasks from a longer queue; 5 ms by default.
    ///
    /// `None` disables rebalancing: tasks then stay on their worker as long as no worker is idle.
    pub fn rebalance_interval(mut self, every: Option<Duration>) -> Self {
        self.rebalance_interval = every;
        self
    }

    /// Takes the next entry from this worker's queues or the injector, or steals one.
    fn find(&self, worker: &StealingWorker, duties: &Duties<'_>, steals: bool) -> Option<Queued> {
        let local = &worker.local;
        local.next(duties).or_else(|| {
            if !steals {
                return None;
            }
            // Before it searches: a thief whose loot was not worth it waits, see `thief.rs`.
            self.hold_off(worker, duties).or_else(|| {
                if !(worker.searching.get() || local.try_search()) {
                    return None;
                }
                worker.set_searching();
                local.steal().inspect(|_| {
                    local.is_fed.set(false);
                    worker.loot.take(local.len(), duties.turns(local.index()));
                    duties.own_counters().count_steal();
                })
            })
        })
    }

    /// Waits a while if the last loot was used up at once, see `thief.rs`; returns an entry that
    /// arrived meanwhile.
    fn hold_off(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Queued> {
        let me = worker.local.index();
        let wait = worker.loot.used_up(duties.turns(me))?;
        if duties.driver().is_some() {
            // A sleep would block the driver as well.
            return None;
        }
        // Other workers may search meanwhile.
        let view = PolicyView::new(self, duties);
        self.look_no_more(worker, &view);
        let wait = duties.until_next().map_or(wait, |next| next.min(wait));
        self.queues.sleep.hold_off(me, wait, &view);
        worker.local.next(duties)
    }

    /// Ends the search before this worker runs an entry.
    #[cold]
    fn finish_search(&self, worker: &StealingWorker, duties: &Duties<'_>) {
        let view = PolicyView::new(self, duties);
        if worker.take_unkept_deadline() && !mutant("no_keeper_for_a_deadline_of_a_worker") {
            self.queues.sleep.hand_over(&view);
        }
        if worker.searching.get() && mutant("counted_only_after_the_take") {
            self.queues.sleep.count_awake();
        }
        self.look_no_more(worker, &view);
        worker.attempts.set(0);
        worker.is_unfinished.set(false);
    }

    /// Stops searching and watching, since this worker is about to do something else.
    fn look_no_more(&self, worker: &StealingWorker, view: &PolicyView<'_>) {
        if worker.has_watched.take() {
            self.queues.sleep.watch_no_more();
        }
        if worker.searching.take() {
            self.queues.sleep.search_no_more(view);
        }
    }

    /// Sleeps, unless the worker has something to do. Returns an entry if the worker woke as the
    /// watcher and took one from a slot.
    fn rest(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Queued> {
        let me = worker.local.index();
        let view = PolicyView::new(self, duties);
        let sleep = &self.queues.sleep;
        // After an entry from outside: the thread that pushed it may wait for the result, and push
        // again soon. Entries of other workers are no reason to linger: a worker has its own queue,
        // and what it cannot do within the time that a core takes to wake up is worth a wake-up.
        // Only the thief lingers, so one worker at a time does.
        let is_fed = worker.local.is_fed.take();
        if is_fed && worker.searching.get() && sleep.linger(me, &view) {
            return None;
        }
        let searching = worker.searching.take();
        let ends_watch = worker.has_watched.take() && !worker.saw_others_run.get();
        duties.own_counters().count_park();
        worker.is_asleep.set(true);
        sleep.lie_down(me, (searching, ends_watch), &view);
        self.wait(worker, duties, &view)
    }

    /// Waits until this sleeper is woken. Returns an entry if it woke as the watcher and took one
    /// from a slot. A driven worker may have to wait on, and is still a sleeper then.
    fn wait(
        &self,
        worker: &StealingWorker,
        duties: &Duties<'_>,
        view: &PolicyView<'_>,
    ) -> Option<Queued> {
        let (me, sleep) = (worker.local.index(), &self.queues.sleep);
        let woken = match duties.driver() {
            None => sleep.park(me, view),
            Some(driven) => {
                // Before the poll, after which the waker may have been called.
                driven.sleep(Some(Duration::ZERO));
                let woken = sleep.poll(me, view, driven.waker().as_waker(), driven.take_over());
                match woken {
                    Ok(_) => driven.wake(),
                    Err(wait) => driven.sleep(wait),
                }
                woken.ok()?
            }
        };
        worker.is_asleep.set(false);
        duties.wakes_up();
        self.take_over_duties(worker, duties, woken)
    }

    /// Takes over what a worker that woke up has to do next; returns an entry as `wait` does.
    fn take_over_duties(
        &self,
        worker: &StealingWorker,
        duties: &Duties<'_>,
        woken: Woken,
    ) -> Option<Queued> {
        let sleep = &self.queues.sleep;
        // A keeper that was woken for work left its deadline to an heir or to the next sleeper.
        match woken {
            Woken::ByWork => worker.set_searching(),
            // It may have been the keeper, and may find an entry before it fires the deadline.
            Woken::ByItself { watching: false } => worker.set_unkept_deadline(),
            Woken::ByItself { watching: true } => {
                let (stuck, moved) = worker.local.watch(|worker| duties.turns(worker));
                if stuck.is_some() {
                    duties.own_counters().count_steal();
                    sleep.watch_no_more();
                    return stuck;
                }
                worker.has_watched.set(true);
                worker.saw_others_run.set(moved);
                worker.is_unfinished.set(true);
            }
        }
        None
    }

    /// Searches the other workers and, if they have nothing either, sleeps until there is an entry.
    #[inline(never)]
    fn dequeue_elsewhere(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Queued> {
        let mut may_steal = true;
        loop {
            if let Some(entry) = self.find(worker, duties, may_steal) {
                return Some(entry);
            }
            if duties.must_rise() || duties.until_next() == Some(Duration::ZERO) {
                self.look_no_more(worker, &PolicyView::new(self, duties));
                return None;
            }
            match self.pass_time(worker, duties) {
                Ok(_) if duties.is_waiting() => return None,
                Ok(steals) => may_steal = steals,
                Err(entry) => return Some(entry),
            }
        }
    }

    /// Waits as long as this worker's phase demands before its next attempt. Returns whether that
    /// attempt may steal, or as the error an entry that was found meanwhile.
    fn pass_time(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Result<bool, Queued> {
        let phase = self.polling.map(|polling| {
            worker.is_unfinished.set(true);
            worker.attempts.set(worker.attempts.get().saturating_add(1));
            (polling.phase(worker.attempts.get()), polling)
        });
        match phase {
            Some((PollingPhase::Aggressive { steals }, _)) => {
                std::hint::spin_loop();
                steal_slot(worker, duties, steals)
            }
            // A nap would block the driver.
            Some((PollingPhase::Moderate { steals }, polling)) if duties.driver().is_none() => {
                self.look_no_more(worker, &PolicyView::new(self, duties));
                let until_next = duties.until_next().unwrap_or(Duration::MAX);
                let wait = polling.moderate_sleep.min(until_next);
                self.queues.sleep.nap(worker.local.index(), wait);
                steal_slot(worker, duties, steals)
            }
            Some((PollingPhase::Moderate { steals } | PollingPhase::Relaxed { steals }, _)) => {
                match self.rest(worker, duties) {
                    // A worker that was woken for an entry may steal it.
                    None => Ok(steals || worker.searching.get()),
                    Some(entry) => Err(entry),
                }
            }
            None => self.rest(worker, duties).map_or(Ok(true), Err),
        }
    }
}

/// Takes the entry in the slot of a stuck worker, if this attempt steals, since there is no watcher
/// while all workers poll. Otherwise returns whether the attempt steals.
fn steal_slot(worker: &StealingWorker, duties: &Duties<'_>, steals: bool) -> Result<bool, Queued> {
    if steals && let (Some(entry), _) = worker.local.watch(|worker| duties.turns(worker)) {
        duties.own_counters().count_steal();
        return Err(entry);
    }
    Ok(steals)
}

impl Default for Stealing {
    fn default() -> Self {
        Stealing {
            queues: Arc::new(Queues::new(0, WorkerSleep::new(0, None))),
            polling: None,
            rebalance_interval: Some(REBALANCE_INTERVAL),
        }
    }
}

impl std::fmt::Debug for Stealing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stealing")
            .field("polling", &self.polling)
            .field("rebalance_interval", &self.rebalance_interval)
            .finish_non_exhaustive()
    }
}

/// The data of a worker of [`Stealing`].
///
/// If several values of one index exist, the first owns the worker's ring as long as it lives. The
/// others push to the injector, and take from any queue.
pub struct StealingWorker {
    pub(crate) local: LocalQueue,
    loot: Loot,
    /// This worker is among the sleepers.
    is_asleep: Cell<bool>,
    /// This worker is the thief.
    searching: Cell<bool>,
    /// This worker has watched the slots. If it does not sleep next, another worker must watch.
    has_watched: Cell<bool>,
    /// It saw another worker run then.
    saw_others_run: Cell<bool>,
    /// No sleeper may know of the next deadline. This worker keeps it if it sleeps next, and otherwise
    /// hands it over before it runs anything else (`sleep.md`).
    has_unkept_deadline: Cell<bool>,
    /// The number of attempts since it ran out of work.
    attempts: Cell<u32>,
    /// `searching`, `has_watched`, `has_unkept_deadline` or `attempts` may be set. `finish_search` clears
    /// them before an entry is run.
    is_unfinished: Cell<bool>,
}

impl StealingWorker {
    /// Notes that this worker is the thief.
    fn set_searching(&self) {
        self.searching.set(true);
        self.is_unfinished.set(true);
    }

    /// Notes that no sleeper may know of the next deadline.
    pub(crate) fn set_unkept_deadline(&self) {
        self.has_unkept_deadline.set(true);
        self.is_unfinished.set(true);
    }

    /// Returns whether that was noted, and clears it.
    pub(crate) fn take_unkept_deadline(&self) -> bool {
        self.has_unkept_deadline.take()
    }
}

impl Policy for Stealing {
    type Worker = StealingWorker;

    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        if let Some(polling) = &self.polling {
            polling.judge()?;
        }
        let sleep = WorkerSleep::new(setup.workers, setup.activity.clone());
        self.queues = Arc::new(Queues::new(setup.workers, sleep));
        Ok(())
    }

    fn worker(&self, index: usize) -> StealingWorker {
        StealingWorker {
            local: LocalQueue::new(
                &self.queues,
                index,
                // A seed for each worker, so that their series of victims differ.
                fastrand::u64(..),
                self.rebalance_interval,
            ),
            loot: Loot::new(),
            is_asleep: Cell::new(false),
            searching: Cell::new(false),
            has_watched: Cell::new(false),
            saw_others_run: Cell::new(false),
            has_unkept_deadline: Cell::new(false),
            attempts: Cell::new(0),
            is_unfinished: Cell::new(false),
        }
    }

    fn central_enqueue(&self, runnable: Runnable) {
        self.queues.push_outside(runnable.into_raw());
    }

    fn internal_enqueue(&self, worker: &StealingWorker, runnable: Runnable) {
        if !worker.local.owns() {
            return self.central_enqueue(runnable);
        }
        worker.local.push(runnable.into_raw(), false);
    }

    fn resume_later(&self, worker: &StealingWorker, runnable: Runnable) {
        if !worker.local.owns() {
            return self.central_enqueue(runnable);
        }
        worker.local.push(runnable.into_raw(), true);
    }

    fn dequeue(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Runnable> {
        if !worker.local.own() {
            return self.queues.take_any().map(runnable);
        }
        self.dequeue_own(worker, duties)
    }

    fn interrupt(&self) {
        // If another policy wraps this one, a call may mean a deadline, which needs a keeper.
        self.queues.sleep.appoint(false);
        self.queues.sleep.wake_all();
    }
}

impl Stealing {
    /// Continues the wait of a driven worker that sleeps.
    pub(crate) fn resume(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Runnable> {
        let found = self.wait(worker, duties, &PolicyView::new(self, duties));
        if duties.is_waiting() {
            return None;
        }
        let entry = found.or_else(|| self.dequeue_elsewhere(worker, duties))?;
        if worker.is_unfinished.get() {
            self.finish_search(worker, duties);
        }
        Some(runnable(entry))
    }

    /// Makes a worker whose loop panicked one that is awake, and neither searches nor watches.
    pub(crate) fn recover(&self, worker: &StealingWorker, duties: &Duties<'_>) {
        let view = PolicyView::new(self, duties);
        if worker.is_asleep.take() {
            let me = worker.local.index();
            match self.queues.sleep.poll(me, &view, Waker::noop(), true) {
                Ok(Woken::ByWork) => worker.set_searching(),
                Ok(Woken::ByItself { watching }) => {
                    worker.has_watched.set(watching);
                    worker.saw_others_run.set(true);
                }
                Err(_) => unreachable!("its wait is over"),
            }
        }
        self.finish_search(worker, duties);
    }

    /// Does what `dequeue` does, for a worker that owns its ring. Inlining is forced, as for
    /// `next`: a call costs a fifth of the lookup.
    #[inline(always)]
    pub(crate) fn dequeue_own(
        &self,
        worker: &StealingWorker,
        duties: &Duties<'_>,
    ) -> Option<Runnable> {
        let next = worker.local.next(duties);
        let entry = next.or_else(|| self.dequeue_elsewhere(worker, duties))?;
        if worker.is_unfinished.get() {
            self.finish_search(worker, duties);
        }
        Some(runnable(entry))
    }
}
