#![doc = include_str!("sleep.md")]

#[cfg(all(test, not(greenroom_loom)))]
mod litmus;

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::activity::ActivityCount;
use super::sleepers::SleeperStack;
use crate::park::Parker;
use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Fences, MODEL, Mutex, mutant};

/// How long the watcher sleeps between two looks at the slots of running workers.
///
/// What waits in the slot of a worker that user code blocks is found after at most two of these.
/// Shorter costs wake-ups under load (a few µs each), longer delays such a task.
pub(crate) const WATCH: Duration = Duration::from_millis(2);

/// A worker searches for others' work. At most one at a time: the one thief.
const SEARCHING: usize = 1;
/// One of the sleepers wakes every [`WATCH`] to look at slots.
const WATCHED: usize = 2;
const ONE_SLEEPER: usize = 4;

pub(crate) struct WorkerSleep {
    /// `sleepers * ONE_SLEEPER | WATCHED | SEARCHING`; all but SEARCHING changes under the lock.
    state: AtomicUsize,
    fences: Fences,
    sleepers: Mutex<Sleepers>,
    parkers: Box<[Parker]>,
    /// One worker that holds off, plus one; 0 if none is known to.
    napper: AtomicUsize,
    /// Where workers that are awake are counted, if anywhere.
    activity: Option<Arc<ActivityCount>>,
}

struct Sleepers {
    /// Who sleeps, the last to lie down last.
    stack: SleeperStack,
    /// The sleeper that wakes by itself, for deadlines and to watch. It lies at the bottom, and is woken for work
    /// before others only for its thread.
    keeper: Option<usize>,
}

/// What a worker that is about to sleep can see of the queues.
pub(crate) trait View {
    /// Whether a ring or the injector has something.
    fn has_work(&self) -> bool;
    /// Whether anything waits at a worker other than `me`, in its slot for instance.
    fn has_any(&self, me: usize) -> bool;
    /// Whether something is from outside.
    fn has_outside(&self) -> bool;
    /// How long until the next deadline.
    fn until_deadline(&self) -> Option<Duration>;
    /// Whether the worker has something to see to instead of sleeping.
    fn must_rise(&self) -> bool;
    /// How long a sleep may last at most, by the worker's own choice.
    fn longest_sleep(&self) -> Option<Duration>;
    /// The worker sleeps, and was the last that was counted.
    fn last_lies_down(&self);
}

/// Why a worker no longer sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// There is something for it: it is the searching one.
    ByWork,
    /// Its time was up, or it was not to sleep at all; `watching`: it has looked after the slots.
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
            }),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
            napper: AtomicUsize::new(0),
            activity,
        }
    }

    /// After a push to a ring or the injector: wakes one sleeper, if there is one and nobody
    /// searches already.
    pub(crate) fn notify(&self) {
        if !mutant("notify_without_fence") {
            // SeqCst pairs with the fence in `lie_down`: either we see the sleeper in `state`, or it
            // sees our push. (SLEEP-1)
            fence(Ordering::SeqCst);
        }
        // Relaxed: ordered by the fence.
        let state = self.state.load(Ordering::Relaxed);
        if state & SEARCHING == 0 && state >= ONE_SLEEPER {
            self.rouse();
        }
    }

    /// After a push to the owner's slot: sees to it that somebody watches it.
    pub(crate) fn notify_slot(&self) {
        // Pairs with the heavy fence in `must_watch_on`. (SLEEP-3)
        self.fences.light();
        // Relaxed: ordered by the fence.
        let state = self.state.load(Ordering::Relaxed);
        if state & WATCHED == 0 && state >= ONE_SLEEPER && !mutant("slot_unwatched") {
            self.appoint(true);
        }
    }

    /// A deadline has become the earliest: whoever sleeps until another one is told.
    ///
    /// `by_worker`: the caller is a worker, which keeps the deadline itself if it sleeps next, and
    /// hands it over if it does not.
    pub(crate) fn notify_deadline(&self, by_worker: bool) {
        let keeper = self.sleepers.lock().keeper;
        match keeper {
            Some(_) if mutant("keeper_hears_of_no_deadline") => {}
            Some(keeper) => self.parkers[keeper].unpark(),
            None if by_worker || mutant("no_keeper_for_a_deadline") => {}
            None => self.appoint(false),
        }
    }

    /// Lets one of the sleepers, if there is one, wake by itself from now on.
    pub(crate) fn appoint(&self, watch: bool) {
        let mut sleepers = self.sleepers.lock();
        if sleepers.keeper.is_none() {
            sleepers.keeper = sleepers.stack.bottom();
        }
        let Some(keeper) = sleepers.keeper else {
            return;
        };
        if watch {
            // Relaxed: under the lock; who reads it without has fenced.
            self.state.fetch_or(WATCHED, Ordering::Relaxed);
        }
        drop(sleepers);
        self.parkers[keeper].unpark();
    }

    /// Wakes all that sleep, to see what the shutdown wants of them.
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
        // The woken one is the searching one from now on; if there is one, it will look.
        // SeqCst: this is read by the fences' other side; a read-modify-write reads the newest.
        if self.state.fetch_or(SEARCHING, Ordering::SeqCst) & SEARCHING != 0 {
            return;
        }
        let Some(woken) = sleepers.stack.pop() else {
            return;
        };
        self.state.fetch_sub(ONE_SLEEPER, Ordering::SeqCst);
        let was_keeper = sleepers.keeper == Some(woken);
        let watched = self.dismiss(&mut sleepers, woken);
        // One that is woken for its thread may be the keeper while others sleep: one of these keeps what it kept.
        let heir = if was_keeper && !mutant("a_keeper_leaves_no_heir") {
            sleepers.stack.bottom()
        } else {
            None
        };
        if let Some(heir) = heir {
            self.keep(&mut sleepers, heir, false);
            if watched {
                // Relaxed: under the lock; who reads it without has fenced.
                self.state.fetch_or(WATCHED, Ordering::Relaxed);
            }
        }
        drop(sleepers);
        self.parkers[woken].unpark();
        if let Some(heir) = heir {
            self.parkers[heir].unpark();
        }
    }

    /// A sleeper is awake from now on, and counted before it takes anything.
    pub(crate) fn rise(&self) {
        self.activity.iter().for_each(|activity| activity.inc());
    }

    /// `who` is no longer asleep, so it keeps nothing. Says whether it watched.
    fn dismiss(&self, sleepers: &mut Sleepers, who: usize) -> bool {
        if sleepers.keeper != Some(who) {
            return false;
        }
        sleepers.keeper = None;
        // Relaxed: under the lock; who reads it without has fenced.
        self.state.fetch_and(!WATCHED, Ordering::Relaxed) & WATCHED != 0
    }

    // -- the one thief ------------------------------------------------------------------------

    /// Becomes the searching one; false if there is one.
    pub(crate) fn try_search(&self) -> bool {
        // Relaxed: spares the exchange when somebody searches.
        self.state.load(Ordering::Relaxed) & SEARCHING == 0
            && (self.state.fetch_or(SEARCHING, Ordering::SeqCst) & SEARCHING == 0
                || mutant("two_thieves"))
    }

    /// Has found something, and goes on to run it. If there is more, another one is woken.
    pub(crate) fn search_no_more(&self, view: &impl View) {
        self.clear_searching();
        if !mutant("search_ends_without_fence") {
            // SeqCst pairs with the fence in `notify`: a push that saw us searching and woke
            // nobody is seen here. (SLEEP-2)
            fence(Ordering::SeqCst);
        }
        if view.has_work() && !mutant("no_chain_wake") {
            self.notify();
        }
    }

    /// Has watched, and goes to run something: another sleeper watches.
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

    /// Sleeps until there is something for this worker, or a deadline it keeps is over.
    ///
    /// `searching`: it is the searching one, and stops being it. `moved`: it has just watched, and has
    /// seen others run, or not.
    #[cfg(test)]
    pub(crate) fn sleep(&self, me: usize, state: (bool, Option<bool>), view: &impl View) -> Woken {
        self.lie_down(me, state, view);
        self.park(me, view)
    }

    /// Becomes a sleeper, which [`park`](WorkerSleep::park) or [`poll`](WorkerSleep::poll) is called for next.
    ///
    /// `searching`: it is the searching one, and stops being it. `moved`: it has just watched, and has
    /// seen others run, or not.
    pub(crate) fn lie_down(
        &self,
        me: usize,
        (searching, moved): (bool, Option<bool>),
        view: &impl View,
    ) {
        let mut sleepers = self.sleepers.lock();
        sleepers.stack.push(me);
        self.state.fetch_add(ONE_SLEEPER, Ordering::SeqCst);
        // Who sleeps has filled no slot, and sees this one asleep when it gets up.
        let others_run = sleepers.stack.len() < self.parkers.len();
        let watch_ends = moved == Some(false);
        if others_run && !watch_ends {
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
            // SeqCst pairs with the fence in `notify`: whoever pushed before sees us asleep, or we
            // see the push. (SLEEP-1)
            fence(Ordering::SeqCst);
        }
        let looks = searching || !mutant("only_the_searcher_looks_again");
        if looks && view.has_work() {
            self.notify();
        }
        if last {
            view.last_lies_down();
        }
        let watch = others_run && watch_ends && self.must_watch_on(me, view);
        if watch || view.until_deadline().is_some() {
            let mut sleepers = self.sleepers.lock();
            if sleepers.stack.contains(me) {
                self.keep(&mut sleepers, me, watch);
            }
        }
    }

    /// The searching one looks a while longer before it sleeps, if that has been worth it; whether there
    /// is something to do. Meanwhile no push wakes anybody.
    pub(crate) fn linger(&self, me: usize, view: &impl View) -> bool {
        let parker = &self.parkers[me];
        let is_wanted = || view.has_work() || view.must_rise();
        parker.is_eager() && parker.look(view.until_deadline(), is_wanted)
    }

    /// A thief sleeps for so long, unless something comes from outside. It is none of the sleepers.
    pub(crate) fn hold_off(&self, me: usize, wait: Duration, view: &impl View) {
        // Relaxed: ordered by the fence.
        self.napper.store(me + 1, Ordering::Relaxed);
        // SeqCst pairs with the fence in `notify`, which each push from outside comes to before it looks for a
        // napper: either that one sees us, or we see what it pushed. (SLEEP-1)
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

    /// After a push from outside, and after `notify`: a worker that holds off looks at it.
    pub(crate) fn rouse_napper(&self) {
        // Relaxed: ordered by the fence of `notify`.
        if let Some(napper) = self.napper.load(Ordering::Relaxed).checked_sub(1) {
            self.parkers[napper].unpark();
        }
    }

    /// Sleeps for so long without being one of the sleepers: nobody wakes it but `wake_all`.
    pub(crate) fn nap(&self, me: usize, wait: Duration) {
        self.parkers[me].park(Some(wait));
    }

    /// Whether something was pushed before nobody watched.
    fn must_watch_on(&self, me: usize, view: &impl View) -> bool {
        // Pairs with the light fence in `notify_slot`: whoever filled a slot before sees that nobody
        // watches, or we see the slot. (SLEEP-3)
        let fenced = mutant("watch_ends_without_fence") || self.fences.heavy();
        !fenced || view.has_any(me) && !mutant("slots_are_not_looked_at")
    }

    /// This sleeper becomes the keeper, unless there is one; `watch`: the keeper watches.
    fn keep(&self, sleepers: &mut Sleepers, me: usize, watch: bool) {
        if sleepers.keeper.is_none() {
            sleepers.keeper = Some(me);
            // At the bottom: the keeper is the last to be woken for work.
            sleepers.stack.push_to_bottom(me);
        }
        if watch {
            // Relaxed: under the lock; who reads it without has fenced.
            let watched = self.state.fetch_or(WATCHED, Ordering::Relaxed) & WATCHED != 0;
            if let Some(keeper) = sleepers.keeper.filter(|&keeper| keeper != me && !watched) {
                self.parkers[keeper].unpark();
            }
        }
    }

    /// Sleeps until there is something for this sleeper, or a deadline it keeps is over.
    pub(crate) fn park(&self, me: usize, view: &impl View) -> Woken {
        loop {
            let wait = self.wait_of(me, view);
            let woken = self.parkers[me].park_timed(wait);
            if let Some(woken) = self.get_up(me, view, !woken && wait.is_some()) {
                return woken;
            }
        }
    }

    /// Does the same without sleeping: leaves `waker` if there is nothing, and says how long it may wait at most.
    /// `is_over`: the time that it was to wait is.
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
            let had_token = self.parkers[me].poll(waker.clone());
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

    /// Gets up, if this sleeper was woken for work, has something to see to, or its time is over.
    fn get_up(&self, me: usize, view: &impl View, is_over: bool) -> Option<Woken> {
        let mut sleepers = self.sleepers.lock();
        if !sleepers.stack.contains(me) {
            if !mutant("counted_only_after_the_take") {
                self.rise();
            }
            return Some(Woken::ByWork);
        }
        if !is_over && !view.must_rise() {
            // Told of a new duty or deadline: sleeps on, by another clock.
            return None;
        }
        sleepers.stack.remove(me);
        self.state.fetch_sub(ONE_SLEEPER, Ordering::SeqCst);
        self.rise();
        let watching = self.dismiss(&mut sleepers, me);
        Some(Woken::ByItself { watching })
    }

    /// How long this sleeper may sleep.
    fn wait_of(&self, me: usize, view: &impl View) -> Option<Duration> {
        if view.must_rise() {
            return Some(Duration::ZERO);
        }
        let keeps = self.sleepers.lock().keeper == Some(me);
        // Relaxed: whoever changed it has unparked us after that.
        let watched = self.state.load(Ordering::Relaxed) & WATCHED != 0;
        let watch = (keeps && watched).then_some(WATCH);
        let deadline = if keeps { view.until_deadline() } else { None };
        [watch, deadline, view.longest_sleep()]
            .into_iter()
            .flatten()
            .min()
    }

    /// A worker that was to keep the deadlines goes to run something: another sleeper takes over.
    pub(crate) fn hand_over(&self, view: &impl View) {
        // Relaxed: who lay down before the deadline came up is seen, since `notify_deadline` had
        // the lock after it; who lies down later sees the deadline itself.
        let sleepers = self.state.load(Ordering::Relaxed) >= ONE_SLEEPER;
        if sleepers && view.until_deadline().is_some() && self.sleepers.lock().keeper.is_none() {
            self.appoint(false);
        }
    }

    /// Whether no other worker is awake. A hint.
    pub(crate) fn is_alone(&self) -> bool {
        // Relaxed: a hint.
        self.state.load(Ordering::Relaxed) / ONE_SLEEPER + 1 >= self.parkers.len()
    }

    /// See [`Parker::let_time_pass`].
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn let_time_pass(&self, parks: u32, longest: Duration) {
        self.parkers
            .iter()
            .for_each(|parker| parker.let_time_pass(parks, longest));
    }

    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn is_watched(&self) -> bool {
        self.state.load(Ordering::Acquire) & WATCHED != 0
    }

    /// Checks what holds whenever the lock is free; says how many sleep.
    #[cfg(all(test, greenroom_loom))]
    pub(crate) fn audit(&self) -> usize {
        let sleepers = self.sleepers.lock();
        let state = self.state.load(Ordering::Acquire);
        assert_eq!(
            state / ONE_SLEEPER,
            sleepers.stack.len(),
            "sleepers are miscounted"
        );
        let all_sleep = sleepers.stack.len() == self.parkers.len();
        assert!(
            !all_sleep || state & SEARCHING == 0,
            "a sleeper is taken for a searcher"
        );
        let keeper = sleepers.keeper;
        assert!(
            keeper.is_none_or(|keeper| sleepers.stack.contains(keeper)),
            "the keeper is awake"
        );
        assert!(keeper.is_some() || state & WATCHED == 0, "nobody watches");
        sleepers.stack.len()
    }
}
