//! A worker: find something, run it, and sleep when there is nothing.

use std::sync::Arc;

use super::blocking;
use super::current::{Place, Role};
use super::inner::Inner;
use super::queues::Local;
use super::ring::Entry;
use super::sleep::Woken;
use crate::contain::contain;
use crate::instant::Instant;
use crate::sync::mutant;
use crate::task::Runnable;
use crate::timers::Pace;

/// The body of a worker's thread.
pub(super) fn work(inner: &Arc<Inner>, index: usize) {
    if hold_place(inner, index) == Left::Displaced {
        blocking::come(inner);
    }
}

/// Why a thread is no worker any more.
#[derive(PartialEq, Eq)]
pub(super) enum Left {
    /// The runtime is over, and with it the thread.
    Over,
    /// Another thread goes on in its place: it waited in `block_on`, in a turn that has ended.
    Displaced,
}

/// Is worker `index` until the runtime is over, or until another thread is.
pub(super) fn hold_place(inner: &Arc<Inner>, index: usize) -> Left {
    let local = Local::new(&inner.queues, index, fastrand::u64(..));
    let place = Place::new(inner, Role::Worker(&local));
    let _entered = place.enter();
    let mut worker = Worker {
        inner,
        local: &local,
        place: &place,
        searching: false,
        pace: Pace::new(),
    };
    let left = worker.run_until_over();
    if left == Left::Displaced {
        if inner.closing.is_settled() {
            // What came to rest on a thread that is given back late.
            inner.cancel_all();
        } else if inner.is_over() {
            // What this turn pushed, when no worker was there any more to take it.
            inner.drain();
        }
        return left;
    }
    worker.drop_all();
    let lingered = inner.closing.linger(|runnable| worker.turn(runnable));
    if lingered || inner.closing.is_settled() {
        // What was exempt until now, or came to rest on a thread that is given back late.
        inner.cancel_all();
        worker.drop_all();
    }
    inner.drain();
    // What the drops pushed on this thread.
    worker.drop_all();
    inner.blocking.crew.leave();
    inner.closing.leave_place();
    left
}

struct Worker<'a> {
    inner: &'a Arc<Inner>,
    local: &'a Local<'a>,
    place: &'a Place<'a>,
    /// This worker is the searching one.
    searching: bool,
    pace: Pace,
}

impl Worker<'_> {
    fn run_until_over(&mut self) -> Left {
        let mut watch = false;
        loop {
            if self.place.is_displaced() {
                return Left::Displaced;
            }
            if self.inner.closing.has_begun() {
                if self.inner.is_over() {
                    return Left::Over;
                }
                if !self.inner.queues.is_counted(self.local.index()) {
                    self.local.count_queued();
                    self.inner.closing.progress();
                }
            }
            self.inner.timers.fire_at_pace(&mut self.pace);
            let found = match self.local.next() {
                None => self.search(),
                found => found,
            };
            if let Some(entry) = found {
                self.run(entry);
                continue;
            }
            if self.inner.timers.fire(Instant::now()) > 0 {
                continue;
            }
            let searching = std::mem::take(&mut self.searching);
            let sleep = &self.inner.queues.sleep;
            match sleep.sleep(self.local.index(), searching, watch, &**self.inner) {
                Woken::ByWork => {
                    self.searching = true;
                    watch = false;
                }
                Woken::ByItself { watching } => watch = self.look_around(watching),
            }
        }
    }

    /// Steals, if nobody else does.
    fn search(&mut self) -> Option<Entry> {
        self.searching = self.searching || self.local.try_search();
        if self.searching {
            self.local.steal()
        } else {
            None
        }
    }

    /// After a sleep that ended by itself; says whether to go on watching.
    fn look_around(&mut self, watching: bool) -> bool {
        let sleep = &self.inner.queues.sleep;
        if self.inner.timers.fire(Instant::now()) > 0 {
            sleep.hand_over(&**self.inner);
        }
        if !watching {
            return false;
        }
        let (stuck, moved) = self.local.watch();
        if let Some(entry) = stuck {
            // While this one runs, somebody else watches the slots.
            sleep.appoint(true);
            self.run(entry);
        }
        moved
    }

    fn run(&mut self, entry: Entry) {
        if self.local.owed_keeper() && !mutant("no_keeper_for_a_deadline_of_a_worker") {
            self.inner.queues.sleep.hand_over(&**self.inner);
        }
        if std::mem::take(&mut self.searching) {
            self.inner.queues.sleep.search_no_more(&**self.inner);
        }
        self.turn(runnable(entry));
        if self.inner.closing.has_begun() {
            self.inner.closing.progress();
        }
    }

    /// Drops what is left in this worker's queues, but for what is exempt.
    fn drop_all(&self) {
        if mutant("an_ended_worker_keeps_its_queues") {
            return;
        }
        for entry in self.local.drain() {
            if let Some(unneeded) = self.inner.closing.spare(runnable(entry)) {
                contain(|| drop(unneeded));
            }
        }
    }

    fn turn(&self, runnable: Runnable) {
        self.local.begin_turn();
        self.place.running.set(Some(runnable.key()));
        contain(|| runnable.run());
        self.place.running.set(None);
    }
}

fn runnable(entry: Entry) -> Runnable {
    #[expect(unsafe_code, reason = "an entry is a `Runnable` in its raw form")]
    // SAFETY: (N1) the entry was taken from a queue, so it is in our hands alone.
    unsafe {
        Runnable::from_raw(entry)
    }
}
