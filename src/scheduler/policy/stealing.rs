//! Work stealing, the default: a queue for each worker, and whoever has none left takes of others.
//!
//! Documents 1 and 3, after Blumofe and Leiserson 1994. The queues and their order are in
//! `queues.rs`; who sleeps and who is woken is in `sleep.rs`.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::polling::{Phase, Polling};
use super::{Duties, Policy, Runnable, Setup};
use crate::scheduler::counters::Counted;
use crate::scheduler::loot::Loot;
use crate::scheduler::queues::{LocalQueue, Queues, runnable};
use crate::scheduler::ring::Entry;
use crate::scheduler::sleep::{View, Woken, WorkerSleep};
use crate::sync::mutant;

/// How often the tasks of unequal workers are mixed by default: seldom enough to cost nothing, often
/// enough that nobody has to wait long.
const REBALANCE_INTERVAL: Duration = Duration::from_millis(5);

/// Work stealing: each worker has a queue, and takes half of another's when its own is empty.
///
/// The default policy. A task that is woken goes to the worker that woke it, and the newest is run first. While older
/// tasks wait that has an end: after three turns the clock is read, and then it goes on for some 16 µs, for one turn
/// at least. Tasks from outside are looked for at every other turn.
///
/// One worker at a time looks for others' work, and workers without any are parked, so an idle runtime uses no time at
/// all. A worker that took little from another and had used it up at once, three times in a row, waits for 50 to
/// 400 µs before it takes more; a task from outside ends that wait.
///
/// Tasks that keep to themselves may share a worker with many more or far fewer tasks than others do
/// (document 1's *insular groups*). So every 5 ms a busy worker takes of the longest queue half of
/// what that has more than its own; [`rebalance_interval`](Stealing::rebalance_interval) sets or ends that. Equal actors
/// get equal shares within a few of these times.
///
/// Priorities mean nothing to it.
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
    /// Polls before it parks, as in document 3: for machines where to be woken is dear, and a core
    /// that has nothing to do may be kept busy.
    pub fn polling(polling: Polling) -> Self {
        Stealing {
            polling: Some(polling),
            ..Stealing::default()
        }
    }

    /// How often a busy worker takes of a longer queue: 5 ms by default, `None` for never, when
    /// tasks stay on their worker as long as nobody is idle.
    pub fn rebalance_interval(mut self, every: Option<Duration>) -> Self {
        self.rebalance_interval = every;
        self
    }

    /// The next entry: of this worker's queues, or another's.
    fn find(&self, worker: &StealingWorker, duties: &Duties<'_>, may_steal: bool) -> Option<Entry> {
        let local = &worker.local;
        local.next(duties).or_else(|| {
            if !may_steal {
                return None;
            }
            self.hold_off(worker, duties).or_else(|| {
                if !(worker.searching.get() || local.try_search()) {
                    return None;
                }
                worker.search();
                local.steal().inspect(|_| {
                    local.is_fed.set(false);
                    worker.loot.take(local.len(), duties.turns(local.index()));
                    duties.count(Counted::Steal);
                })
            })
        })
    }

    /// Waits a while if what was taken last was used up at once, see `loot.rs`; gives something that came meanwhile.
    fn hold_off(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Entry> {
        let me = worker.local.index();
        let wait = worker.loot.used_up(duties.turns(me))?;
        if duties.driver().is_some() {
            // The driver would wait as well.
            return None;
        }
        // Others may search meanwhile.
        let view = Seen::new(self, duties);
        self.look_no_more(worker, &view);
        let wait = duties.until_next().map_or(wait, |next| next.min(wait));
        self.queues.sleep.hold_off(me, wait, &view);
        worker.local.next(duties)
    }

    /// What is done before something is run, if this worker has looked for it in vain before.
    #[cold]
    fn settle(&self, worker: &StealingWorker, duties: &Duties<'_>) {
        let view = Seen::new(self, duties);
        if worker.owes_keeper.take() && !mutant("no_keeper_for_a_deadline_of_a_worker") {
            self.queues.sleep.hand_over(&view);
        }
        if worker.searching.get() && mutant("counted_only_after_the_take") {
            self.queues.sleep.rise();
        }
        self.look_no_more(worker, &view);
        worker.attempts.set(0);
        worker.unsettled.set(false);
    }

    /// It goes to do something: neither searches nor watches from here on.
    fn look_no_more(&self, worker: &StealingWorker, view: &Seen<'_>) {
        if worker.moved.take().is_some() {
            self.queues.sleep.watch_no_more();
        }
        if worker.searching.take() {
            self.queues.sleep.search_no_more(view);
        }
    }

    /// Sleeps, unless there is something to see to; what the keeper found when its time was over.
    fn rest(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Entry> {
        let me = worker.local.index();
        let view = Seen::new(self, duties);
        let sleep = &self.queues.sleep;
        // Another thread may wait for what this one did for it, and come again. A worker has its own
        // queue to go on with: what it cannot do in the time that a core takes to be roused is worth
        // taking to another one, less is not. One looks at a time, as one searches.
        let is_fed = worker.local.is_fed.take();
        if is_fed && worker.searching.get() && sleep.linger(me, &view) {
            return None;
        }
        let searching = worker.searching.take();
        let moved = worker.moved.take();
        duties.count(Counted::Park);
        sleep.lie_down(me, (searching, moved), &view);
        self.wait(worker, duties, &view)
    }

    /// Waits for what wakes a worker that has lain down; gives what the keeper found when its time was over. A driven
    /// worker that waits on has lain down yet.
    fn wait(&self, worker: &StealingWorker, duties: &Duties<'_>, view: &Seen<'_>) -> Option<Entry> {
        let (me, sleep) = (worker.local.index(), &self.queues.sleep);
        let woken = match duties.driver() {
            None => sleep.park(me, view),
            Some(driven) => {
                // First, so that a panic of the waker leaves a worker that knows that it has lain down.
                driven.set_waits(Some(Some(Duration::ZERO)));
                let woken = sleep.poll(me, view, &driven.waker(), driven.take_over());
                driven.set_waits(woken.err());
                woken.ok()?
            }
        };
        duties.wakes_up();
        match woken {
            Woken::ByWork => worker.search(),
            Woken::ByItself { watching: false } => {}
            Woken::ByItself { watching: true } => {
                let (stuck, moved) = worker.local.watch(|worker| duties.turns(worker));
                if stuck.is_some() {
                    duties.count(Counted::Steal);
                    sleep.watch_no_more();
                    return stuck;
                }
                worker.moved.set(Some(moved));
                worker.unsettled.set(true);
            }
        }
        None
    }

    /// Looks at the others and, when they have nothing either, rests until there is something.
    #[inline(never)]
    fn dequeue_elsewhere(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Entry> {
        let mut may_steal = true;
        loop {
            if let Some(entry) = self.find(worker, duties, may_steal) {
                return Some(entry);
            }
            if duties.must_rise() || duties.until_next() == Some(Duration::ZERO) {
                self.look_no_more(worker, &Seen::new(self, duties));
                return None;
            }
            match self.pass_time(worker, duties) {
                Ok(_) if duties.is_waiting() => return None,
                Ok(steals) => may_steal = steals,
                Err(entry) => return Some(entry),
            }
        }
    }

    /// Lets the time pass that goes before the next look, in the phase this worker is in: what it
    /// found meanwhile, or whether it may steal in that look.
    fn pass_time(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Result<bool, Entry> {
        let phase = self.polling.map(|polling| {
            worker.unsettled.set(true);
            worker.attempts.set(worker.attempts.get().saturating_add(1));
            (polling.phase(worker.attempts.get()), polling)
        });
        match phase {
            Some((Phase::Aggressive { steals }, _)) => {
                std::hint::spin_loop();
                steal_slot(worker, duties, steals)
            }
            // A nap would keep the thread from its driver.
            Some((Phase::Moderate { steals }, polling)) if duties.driver().is_none() => {
                self.look_no_more(worker, &Seen::new(self, duties));
                let until_next = duties.until_next().unwrap_or(Duration::MAX);
                let wait = polling.moderate_sleep.min(until_next);
                self.queues.sleep.nap(worker.local.index(), wait);
                steal_slot(worker, duties, steals)
            }
            Some((Phase::Moderate { steals } | Phase::Relaxed { steals }, _)) => {
                match self.rest(worker, duties) {
                    // It was woken for something, wherever that is.
                    None => Ok(steals || worker.searching.get()),
                    Some(entry) => Err(entry),
                }
            }
            None => self.rest(worker, duties).map_or(Ok(true), Err),
        }
    }
}

/// Before an attempt that steals: takes what is in the slot of a worker that is stuck, which
/// nobody watches while all poll. Otherwise whether the attempt steals.
fn steal_slot(worker: &StealingWorker, duties: &Duties<'_>, steals: bool) -> Result<bool, Entry> {
    if steals && let (Some(entry), _) = worker.local.watch(|worker| duties.turns(worker)) {
        duties.count(Counted::Steal);
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

/// What a worker of [`Stealing`] has for itself.
///
/// Of several with one index the first has the worker's queue, as long as it lives; another one uses
/// what all share.
pub struct StealingWorker {
    pub(crate) local: LocalQueue,
    loot: Loot,
    /// It is the one that searches.
    searching: Cell<bool>,
    /// It has watched the slots, and whether it saw others run. If it does not sleep next, another
    /// one watches.
    moved: Cell<Option<bool>>,
    /// Before it runs something else, a sleeper must keep the next deadline.
    owes_keeper: Cell<bool>,
    /// How often it has polled in vain.
    attempts: Cell<u32>,
    /// One of these is set, and to be seen to before something is run.
    unsettled: Cell<bool>,
}

impl StealingWorker {
    fn search(&self) {
        self.searching.set(true);
        self.unsettled.set(true);
    }

    /// Before this worker runs something else, a sleeper must keep the next deadline.
    pub(crate) fn owe_keeper(&self) {
        self.owes_keeper.set(true);
        self.unsettled.set(true);
    }

    /// Whether it owed one until now.
    pub(crate) fn owed_keeper(&self) -> bool {
        self.owes_keeper.take()
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
                fastrand::u64(..),
                self.rebalance_interval,
            ),
            loot: Loot::new(),
            searching: Cell::new(false),
            moved: Cell::new(None),
            owes_keeper: Cell::new(false),
            attempts: Cell::new(0),
            unsettled: Cell::new(false),
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
        // Behind another policy nobody says that it is for a deadline, which somebody has to keep.
        self.queues.sleep.appoint(false);
        self.queues.sleep.wake_all();
    }
}

impl Stealing {
    /// Goes on with the wait of a driven worker that has lain down.
    pub(crate) fn resume(&self, worker: &StealingWorker, duties: &Duties<'_>) -> Option<Runnable> {
        let found = self.wait(worker, duties, &Seen::new(self, duties));
        if duties.is_waiting() {
            return None;
        }
        let entry = found.or_else(|| self.dequeue_elsewhere(worker, duties))?;
        if worker.unsettled.get() {
            self.settle(worker, duties);
        }
        Some(runnable(entry))
    }

    /// `dequeue` of a worker that owns its ring. Forced, as that of `next`: a call costs a fifth of
    /// the look.
    #[inline(always)]
    pub(crate) fn dequeue_own(
        &self,
        worker: &StealingWorker,
        duties: &Duties<'_>,
    ) -> Option<Runnable> {
        let next = worker.local.next(duties);
        let entry = next.or_else(|| self.dequeue_elsewhere(worker, duties))?;
        if worker.unsettled.get() {
            self.settle(worker, duties);
        }
        Some(runnable(entry))
    }
}

/// The queues and the duties of a worker, as whoever is about to sleep sees them.
pub(crate) struct Seen<'a> {
    policy: &'a Stealing,
    duties: &'a Duties<'a>,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(policy: &'a Stealing, duties: &'a Duties<'a>) -> Self {
        Seen { policy, duties }
    }
}

impl View for Seen<'_> {
    fn has_work(&self) -> bool {
        self.policy.queues.has_work()
    }

    fn has_any(&self, me: usize) -> bool {
        self.policy.queues.has_any(me)
    }

    fn has_outside(&self) -> bool {
        self.policy.queues.has_outside()
    }

    fn until_deadline(&self) -> Option<Duration> {
        self.duties.until_next()
    }

    fn must_rise(&self) -> bool {
        self.duties.must_rise()
    }

    fn longest_sleep(&self) -> Option<Duration> {
        self.policy.polling.map(|polling| polling.relaxed_sleep)
    }

    fn last_lies_down(&self) {
        self.duties.lies_down();
    }
}
