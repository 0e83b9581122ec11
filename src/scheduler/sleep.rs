#![doc = include_str!("sleep.md")]

#[cfg(all(test, not(greenroom_loom)))]
mod litmus;
#[cfg(all(test, greenroom_loom))]
mod loom;

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::activity::ActivityCount;
use super::sleepers::SleeperStack;
use crate::contain::KeptWaker;
use crate::instant::Instant;
use crate::park::Parker;
use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Fences, MODEL, Mutex, mutant};

/// How long the watcher sleeps between two checks of the slots of running workers.
///
/// The entry in the slot of a worker that user code blocks is found after at most two of these. A
/// shorter time costs wake-ups under load (a few µs each); a longer one delays such a task.
pub(crate) const WATCH: Duration = Duration::from_millis(2);

/// A worker searches: the one thief.
const SEARCHING: usize = 1;
/// The keeper wakes every [`WATCH`] to check slots.
const WATCHED: usize = 2;
const ONE_SLEEPER: usize = 4;

pub(crate) struct WorkerSleep {
    /// `sleepers * ONE_SLEEPER | WATCHED | SEARCHING`; all but `SEARCHING` changes under the lock.
    state: AtomicUsize,
    fences: Fences,
    sleepers: Mutex<Sleepers>,
    parkers: Box<[Parker]>,
    /// The index of a worker that holds off, plus 1; 0 if none is recorded.
    napper: AtomicUsize,
    /// The count of awake workers, if the runtime keeps one.
    activity: Option<Arc<ActivityCount>>,
}

struct Sleepers {
    /// The workers that sleep.
    stack: SleeperStack,
    /// The sleeper that wakes by a timeout, for deadlines and to watch. It is at the bottom of the
    /// stack, so it is woken for work last, unless its driver runs on the thread that pushes.
    keeper: Option<usize>,
    /// The deadline until which the keeper sleeps at most. A new keeper looks for itself.
    kept: Option<Instant>,
}

/// What the sleep protocol can see of the queues and of a worker's duties.
pub(crate) trait View {
    /// Returns whether a ring, a backlog or the injector has an entry.
    fn has_work(&self) -> bool;
    /// Returns whether a worker other than `me` has an entry, in its slot for instance.
    fn has_any(&self, me: usize) -> bool;
    /// Returns whether the injector has an entry.
    fn has_outside(&self) -> bool;
    /// Returns the earliest deadline.
    fn deadline(&self) -> Option<Instant>;
    /// Returns whether the worker has a duty that keeps it from sleeping.
    fn must_rise(&self) -> bool;
    /// Returns the longest sleep that the policy allows.
    fn longest_sleep(&self) -> Option<Duration>;
    /// Notes that the worker sleeps, and was the last activity.
    fn last_lies_down(&self);
    /// Returns how long a sleeper without a timeout waits before it looks once, if it is to look.
    fn until_silence(&self) -> Option<Duration> {
        None
    }
    /// Looks for waits that never end, after that time. If there are any, the worker has a duty.
    fn find_endless_waits(&self) {}
}

/// Returns the time until a deadline, or zero if it has passed.
fn until(deadline: Instant) -> Duration {
    deadline.duration_since(Instant::now())
}

/// Why a worker woke up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// For an entry: the worker is the searcher.
    ByWork,
    /// By its timeout or for a duty; `watching`: it must check the slots.
    ByItself { watching: bool },
}

impl WorkerSleep {
    pub(crate) fn new(workers: usize, activity: Option<Arc<ActivityCount>>) -> Self {
        for _ in 0..workers {
            activity.iter().for_each(|activity| activity.inc());
        }
        WorkerSleep {
            state: AtomicUsize::new(0),
            fences: Fences::new(),
            sleepers: Mutex::new(Sleepers {
                stack: SleeperStack::new(workers),
                keeper: None,
                kept: None,
            }),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
            napper: AtomicUsize::new(0),
            activity,
        }
    }

    /// Wakes a sleeper after a push to a ring or the injector, if there is one and no worker
    /// searches.
    pub(crate) fn notify(&self) {
        if !mutant("notify_without_fence") {
            // SeqCst pairs with the fence in `lie_down`: either this thread sees the sleeper in
            // `state`, or the sleeper sees the push. (SLEEP-1)
            fence(Ordering::SeqCst);
        }
        // Relaxed: ordered by the fence.
        let state = self.state.load(Ordering::Relaxed);
        if state & SEARCHING == 0 && state >= ONE_SLEEPER {
            self.rouse();
        }
    }

    /// Makes a sleeper watch after the owner filled its slot, unless one watches already.
    pub(crate) fn notify_slot(&self) {
        // Pairs with the heavy fence in `must_watch_on`. (SLEEP-3)
        self.fences.light();
        // Relaxed: ordered by the fence.
        let state = self.state.load(Ordering::Relaxed);
        if state & WATCHED == 0 && state >= ONE_SLEEPER && !mutant("slot_unwatched") {
            self.appoint(true);
        }
    }

    /// Notes that a deadline was armed. A keeper that sleeps beyond the `next` one is woken in any
    /// case, since a later hand-over only looks whether there is a keeper. If there is none, one is
    /// appointed, unless the deadline is `by_turn`: it wakes only the task whose turn has armed it on
    /// a worker. That worker sees to it after the turn. Any other turn may block its worker.
    pub(crate) fn notify_deadline(&self, next: Instant, by_turn: bool) {
        let sleepers = self.sleepers.lock();
        let (keeper, kept) = (sleepers.keeper, sleepers.kept);
        drop(sleepers);
        let waits = by_turn || mutant("each_deadline_waits_for_its_turn");
        match keeper {
            Some(_) if kept.is_some_and(|kept| kept <= next) => {}
            Some(_) if mutant("keeper_is_woken_for_no_deadline") => {}
            Some(keeper) => self.parkers[keeper].unpark(),
            None if waits || mutant("no_keeper_for_a_deadline") => {}
            None => self.appoint(false),
        }
    }

    /// Makes one of the sleepers, if there are any, the keeper; `watch`: it watches.
    pub(crate) fn appoint(&self, watch: bool) {
        let mut sleepers = self.sleepers.lock();
        if sleepers.keeper.is_none() {
            sleepers.keeper = sleepers.stack.bottom();
        }
        let Some(keeper) = sleepers.keeper else {
            return;
        };
        if watch {
            // Relaxed: under the lock. A thread that reads it without the lock has fenced.
            self.state.fetch_or(WATCHED, Ordering::Relaxed);
        }
        drop(sleepers);
        self.parkers[keeper].unpark();
    }

    /// Wakes all sleepers, so that they check their duties.
    pub(crate) fn wake_all(&self) {
        for parker in &self.parkers {
            parker.unpark();
        }
    }

    #[cold]
    #[inline(never)]
    fn rouse(&self) {
        let mut sleepers = self.sleepers.lock();
        if sleepers.stack.len() == 0 {
            return;
        }
        // The woken worker is the searcher from now on. If there is one already, it will check.
        // SeqCst: the other side of the fences reads this, and an RMW reads the newest value.
        if self.state.fetch_or(SEARCHING, Ordering::SeqCst) & SEARCHING != 0 {
            return;
        }
        let Some(woken) = sleepers.stack.pop() else {
            return;
        };
        self.state.fetch_sub(ONE_SLEEPER, Ordering::SeqCst);
        let was_keeper = sleepers.keeper == Some(woken);
        let watched = self.dismiss(&mut sleepers, woken);
        // A sleeper that was chosen because its driver runs on this thread may be the keeper while
        // others sleep: one of these inherits its duties.
        let heir = if was_keeper && !mutant("a_keeper_leaves_no_heir") {
            sleepers.stack.bottom()
        } else {
            None
        };
        if let Some(heir) = heir {
            self.keep(&mut sleepers, heir, false);
            if watched {
                // Relaxed: under the lock. A thread that reads it without the lock has fenced.
                self.state.fetch_or(WATCHED, Ordering::Relaxed);
            }
        }
        drop(sleepers);
        self.parkers[woken].unpark();
        if let Some(heir) = heir {
            self.parkers[heir].unpark();
        }
    }

    /// Counts a sleeper that woke up, before it takes anything.
    pub(crate) fn count_awake(&self) {
        self.activity.iter().for_each(|activity| activity.inc());
    }

    /// Ends the duties of `who` as the keeper, since it is awake; returns whether it watched.
    fn dismiss(&self, sleepers: &mut Sleepers, who: usize) -> bool {
        if sleepers.keeper != Some(who) {
            return false;
        }
        sleepers.keeper = None;
        // Relaxed: under the lock. A thread that reads it without the lock has fenced.
        self.state.fetch_and(!WATCHED, Ordering::Relaxed) & WATCHED != 0
    }

    // -- the one thief ------------------------------------------------------------------------

    /// Becomes the searcher; returns false if there is one.
    pub(crate) fn try_search(&self) -> bool {
        // Relaxed: avoids the RMW when a worker searches.
        self.state.load(Ordering::Relaxed) & SEARCHING == 0
            && (self.state.fetch_or(SEARCHING, Ordering::SeqCst) & SEARCHING == 0
                || mutant("two_thieves"))
    }

    /// Ends the search of a worker that found an entry, and wakes another worker if there are more.
    pub(crate) fn search_no_more(&self, view: &impl View) {
        self.clear_searching();
        if !mutant("search_ends_without_fence") {
            // SeqCst pairs with the fence in `notify`: a push that saw the searcher and woke no
            // worker is visible here. (SLEEP-2)
            fence(Ordering::SeqCst);
        }
        if view.has_work() && !mutant("no_chain_wake") {
            self.notify();
        }
    }

    /// Leaves the watch to another sleeper, since this worker is about to run a task.
    pub(crate) fn watch_no_more(&self) {
        if !mutant("watch_is_not_left_to_another") {
            self.appoint(true);
        }
    }

    fn clear_searching(&self) {
        let before = self.state.fetch_and(!SEARCHING, Ordering::SeqCst);
        if MODEL {
            assert!(before & SEARCHING != 0, "two workers searched at once");
        }
    }

    // -- sleeping -----------------------------------------------------------------------------

    /// Sleeps until this worker is woken, or a deadline that it keeps has passed.
    ///
    /// The parameters are those of [`lie_down`](WorkerSleep::lie_down).
    #[cfg(test)]
    pub(crate) fn sleep(&self, me: usize, state: (bool, bool), view: &impl View) -> Woken {
        self.lie_down(me, state, view);
        self.park(me, view)
    }

    /// Becomes a sleeper. The caller calls [`park`](WorkerSleep::park) or
    /// [`poll`](WorkerSleep::poll) next.
    ///
    /// `searching`: it is the searcher, and stops searching. `ends_watch`: it has just watched,
    /// and saw no other worker run.
    pub(crate) fn lie_down(
        &self,
        me: usize,
        (searching, ends_watch): (bool, bool),
        view: &impl View,
    ) {
        let mut sleepers = self.sleepers.lock();
        sleepers.stack.push(me);
        self.state.fetch_add(ONE_SLEEPER, Ordering::SeqCst);
        // A sleeper has no filled slot, and sees this worker asleep when it wakes up.
        let others_run = sleepers.stack.len() < self.parkers.len();
        if others_run && !ends_watch {
            self.keep(&mut sleepers, me, true);
        }
        if searching {
            self.clear_searching();
        }
        let last = self
            .activity
            .as_ref()
            .is_some_and(|activity| activity.dec());
        drop(sleepers);
        if !mutant("sleep_without_fence") {
            // SeqCst pairs with the fence in `notify`: either the pusher sees us asleep, or we see
            // its push. (SLEEP-1)
            fence(Ordering::SeqCst);
        }
        let looks = searching || !mutant("only_the_searcher_looks_again");
        if looks && view.has_work() {
            self.notify();
        }
        if last {
            view.last_lies_down();
        }
        let watch = others_run && ends_watch && self.must_watch_on(me, view);
        if watch || view.deadline().is_some() {
            let mut sleepers = self.sleepers.lock();
            if sleepers.stack.contains(me) {
                self.keep(&mut sleepers, me, watch);
            }
        }
    }

    /// Lets the searcher keep checking for a while before it sleeps, if its last wait was short;
    /// returns whether there is something to do. Meanwhile a push wakes no worker.
    pub(crate) fn linger(&self, me: usize, view: &impl View) -> bool {
        let parker = &self.parkers[me];
        let is_wanted = || view.has_work() || view.must_rise();
        parker.is_eager() && parker.look(view.deadline().map(until), is_wanted)
    }

    /// Lets a thief sleep for this long, unless a push from outside wakes it. It is no sleeper.
    pub(crate) fn hold_off(&self, me: usize, wait: Duration, view: &impl View) {
        // Relaxed: ordered by the fence.
        self.napper.store(me + 1, Ordering::Relaxed);
        // SeqCst pairs with the fence in `notify`, which follows each push from outside, before the
        // pusher reads `napper`: it sees us, or we see its push. (SLEEP-1)
        if !mutant("hold_off_without_fence") {
            fence(Ordering::SeqCst);
        }
        if !view.has_outside() && !view.must_rise() {
            self.nap(me, wait);
        }
        // Relaxed: at worst the next push unparks a worker that is awake.
        let _ = self
            .napper
            .compare_exchange(me + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Wakes a worker that holds off, after a push from outside and `notify`.
    pub(crate) fn rouse_napper(&self) {
        // Relaxed: ordered by the fence of `notify`.
        if let Some(napper) = self.napper.load(Ordering::Relaxed).checked_sub(1) {
            self.parkers[napper].unpark();
        }
    }

    /// Sleeps for this long without being a sleeper: only `wake_all` wakes it, or `rouse_napper` if
    /// it holds off.
    pub(crate) fn nap(&self, me: usize, wait: Duration) {
        self.parkers[me].park(Some(wait));
    }

    /// Returns whether a slot was filled before the watch ended.
    fn must_watch_on(&self, me: usize, view: &impl View) -> bool {
        // Pairs with the light fence in `notify_slot`: a thread that filled a slot before sees that
        // no sleeper watches, or we see the slot. (SLEEP-3)
        let fenced = mutant("watch_ends_without_fence") || self.fences.heavy();
        !fenced || view.has_any(me) && !mutant("slots_are_not_looked_at")
    }

    /// Makes this sleeper the keeper, unless there is one; `watch`: the keeper watches.
    fn keep(&self, sleepers: &mut Sleepers, me: usize, watch: bool) {
        if sleepers.keeper.is_none() {
            sleepers.keeper = Some(me);
            // At the bottom: the keeper is the last to be woken for an entry.
            sleepers.stack.push_to_bottom(me);
        }
        if watch {
            // Relaxed: under the lock. A thread that reads it without the lock has fenced.
            let watched = self.state.fetch_or(WATCHED, Ordering::Relaxed) & WATCHED != 0;
            if let Some(keeper) = sleepers.keeper.filter(|&keeper| keeper != me && !watched) {
                self.parkers[keeper].unpark();
            }
        }
    }

    /// Sleeps until this sleeper is woken, or a deadline that it keeps has passed.
    pub(crate) fn park(&self, me: usize, view: &impl View) -> Woken {
        loop {
            let wait = self.wait_of(me, view);
            let silence = match wait {
                None => view.until_silence(),
                Some(_) => None,
            };
            let woken = self.parkers[me].park_timed(wait.or(silence));
            if !woken && silence.is_some() {
                // Still a sleeper. If another thread wakes it meanwhile, it finds a token.
                view.find_endless_waits();
            } else if let Some(woken) = self.get_up(me, view, !woken && wait.is_some()) {
                return woken;
            }
        }
    }

    /// Checks the same without blocking: if this sleeper must wait, leaves `waker` and returns how
    /// long it may wait. `is_over`: its last wait has passed.
    pub(crate) fn poll(
        &self,
        me: usize,
        view: &impl View,
        waker: &Waker,
        is_over: bool,
    ) -> Result<Woken, Option<Duration>> {
        self.sleepers.lock().stack.waits_here(me);
        loop {
            let wait = self.wait_of(me, view);
            let is_over = is_over || wait == Some(Duration::ZERO);
            let had_token = self.parkers[me].poll(KeptWaker::new(waker));
            if !had_token && !is_over {
                return Err(wait);
            }
            if let Some(woken) = self.get_up(me, view, is_over) {
                self.parkers[me].stop_waiting();
                self.sleepers.lock().stack.woken(me);
                return Ok(woken);
            }
        }
    }

    /// Ends the sleep, if this worker was woken for an entry, has a duty, or its wait has passed.
    fn get_up(&self, me: usize, view: &impl View, is_over: bool) -> Option<Woken> {
        let mut sleepers = self.sleepers.lock();
        if !sleepers.stack.contains(me) {
            if !mutant("counted_only_after_the_take") {
                self.count_awake();
            }
            return Some(Woken::ByWork);
        }
        if !is_over && !view.must_rise() {
            // Unparked as a new keeper, or for a new deadline: sleep on, with another timeout.
            return None;
        }
        sleepers.stack.remove(me);
        self.state.fetch_sub(ONE_SLEEPER, Ordering::SeqCst);
        self.count_awake();
        let watching = self.dismiss(&mut sleepers, me);
        Some(Woken::ByItself { watching })
    }

    /// Returns how long this sleeper may sleep.
    fn wait_of(&self, me: usize, view: &impl View) -> Option<Duration> {
        if view.must_rise() {
            return Some(Duration::ZERO);
        }
        let mut sleepers = self.sleepers.lock();
        let keeps = sleepers.keeper == Some(me);
        let deadline = if keeps { view.deadline() } else { None };
        if keeps {
            // Under the lock: a deadline that is armed later is compared with it.
            sleepers.kept = deadline;
        }
        drop(sleepers);
        // Relaxed: a thread that changes it unparks us after that.
        let watched = self.state.load(Ordering::Relaxed) & WATCHED != 0;
        let watch = (keeps && watched).then_some(WATCH);
        [watch, deadline.map(until), view.longest_sleep()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Hands the deadlines over to a sleeper, since the worker that keeps them is about to run a
    /// task.
    pub(crate) fn hand_over(&self, view: &impl View) {
        // SeqCst pairs with the fence in `lie_down`: a worker that goes to sleep sees the deadline,
        // or is visible here.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        let sleepers = self.state.load(Ordering::Relaxed) >= ONE_SLEEPER;
        if sleepers && view.deadline().is_some() && self.sleepers.lock().keeper.is_none() {
            self.appoint(false);
        }
    }

    /// Returns whether no other worker is awake, as a hint.
    pub(crate) fn is_alone(&self) -> bool {
        // Relaxed: a hint.
        self.state.load(Ordering::Relaxed) / ONE_SLEEPER + 1 >= self.parkers.len()
    }
}
