//! What a run of the model has seen of its tasks, and the rules that hold at each step.
//!
//! A hold of a lock is entered when its task begins, and removed before the lock can be given back.

use std::sync::{Arc, Mutex, PoisonError};

use greenroom::looper::{Guarded, Lock, LockError, Looper, Posted, TaskError};

use crate::support::{Dropped, Drops};

/// How a task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Panicked,
    AlreadyHeld,
    NotHeld,
    Closed,
    TimedOut,
    Deadlock,
    Cancelled,
    NotStarted,
}

impl Outcome {
    pub fn of(error: &TaskError) -> Outcome {
        match error {
            TaskError::Panicked(_) => Outcome::Panicked,
            TaskError::Lock(LockError::AlreadyHeld(_)) => Outcome::AlreadyHeld,
            TaskError::Lock(LockError::NotHeld(_)) => Outcome::NotHeld,
            TaskError::Lock(LockError::Closed(_)) => Outcome::Closed,
            TaskError::Lock(LockError::TimedOut(_)) => Outcome::TimedOut,
            TaskError::Deadlock(_) => Outcome::Deadlock,
            TaskError::Cancelled => Outcome::Cancelled,
            TaskError::NotStarted => Outcome::NotStarted,
            other => panic!("{other}"),
        }
    }
}

/// A lock that a task wants.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    pub lock: usize,
    pub is_exclusive: bool,
    pub is_kept: bool,
    pub is_held: bool,
}

/// A task that was accepted.
pub struct JobPage {
    /// `None` for the world.
    pub looper: Option<usize>,
    pub wants: Vec<Want>,
    pub has_limit: bool,
    pub posted: Option<Posted<()>>,
    pub begun: u32,
    pub has_ended: bool,
    pub is_cancelled: bool,
    pub outcomes: Vec<Outcome>,
}

pub struct LooperPage {
    pub handle: Option<Looper>,
    pub id: u64,
    pub is_closed: bool,
    /// The task that runs.
    pub running: Option<usize>,
    last: Option<usize>,
}

/// The value behind a lock.
pub struct Value {
    pub writes: usize,
    pub _dropped: Dropped,
}

pub struct LockPage {
    pub place: Place,
    /// The tasks and guards that use the lock, and whether for themselves.
    pub users: Vec<(usize, bool)>,
    /// The loopers that keep the lock.
    pub kept: Vec<(usize, bool)>,
    pub writes: usize,
    pub is_closed: bool,
    pub is_gone: bool,
}

#[derive(Clone)]
pub enum Place {
    Plain(Lock),
    Valued(Guarded<Value>),
}

#[derive(Default)]
pub struct Pages {
    pub jobs: Vec<JobPage>,
    pub loopers: Vec<LooperPage>,
    pub locks: Vec<LockPage>,
    pub lanes: usize,
    polled: usize,
    world_pending: usize,
    is_world_running: bool,
    pub faults: Vec<String>,
    pub captures: Drops,
    pub made: usize,
    pub is_over: bool,
    /// The runtime ended before the controller.
    pub is_aborted: bool,
}

#[derive(Clone, Default)]
pub struct Book(Arc<Mutex<Pages>>);

impl Book {
    pub fn with<R>(&self, note: impl FnOnce(&mut Pages) -> R) -> R {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Pages {
    pub fn check(&mut self, is_so: bool, text: impl FnOnce() -> String) {
        if !is_so {
            self.faults.push(text());
        }
    }

    pub fn add_looper(&mut self, handle: Looper) {
        self.loopers.push(LooperPage {
            id: handle.id(),
            is_closed: handle.is_closed(),
            handle: Some(handle),
            running: None,
            last: None,
        });
    }

    pub fn add_lock(&mut self, place: Place) {
        self.locks.push(LockPage {
            place,
            users: Vec::new(),
            kept: Vec::new(),
            writes: 0,
            is_closed: false,
            is_gone: false,
        });
    }

    pub fn add_job(&mut self, looper: Option<usize>, wants: Vec<Want>, has_limit: bool) -> usize {
        self.jobs.push(JobPage {
            looper,
            wants,
            has_limit,
            posted: None,
            begun: 0,
            has_ended: false,
            is_cancelled: false,
            outcomes: Vec::new(),
        });
        self.jobs.len() - 1
    }

    /// Enters a task of the world that waits for its turn.
    pub fn world_waits(&mut self) {
        self.world_pending += 1;
    }

    pub fn cancel(&mut self, job: usize) {
        let page = &mut self.jobs[job];
        page.is_cancelled = true;
        let (begun, is_world) = (page.begun, page.looper.is_none());
        self.check(begun == 0, || {
            format!("{job} was cancelled after its begin")
        });
        self.world_pending -= usize::from(is_world);
    }

    fn begin(&mut self, job: usize) {
        self.jobs[job].begun += 1;
        let (begun, is_cancelled) = (self.jobs[job].begun, self.jobs[job].is_cancelled);
        self.check(begun == 1 && !is_cancelled, || {
            format!("{job} was begun {begun} times")
        });
        let (pending, runs) = (self.world_pending, self.is_world_running);
        self.check(!runs, || format!("{job} was begun beside the world"));
        let Some(looper) = self.jobs[job].looper else {
            self.world_pending -= 1;
            self.is_world_running = true;
            let begun: Vec<_> = self.loopers.iter().filter_map(|it| it.running).collect();
            self.check(begun.is_empty(), || {
                format!("the world was begun beside {begun:?}")
            });
            let holds = self.locks.iter().position(|it| {
                let valued = matches!(it.place, Place::Valued(_));
                valued && !it.users.is_empty()
            });
            self.check(holds.is_none(), || {
                format!("the world was begun beside guards of {holds:?}")
            });
            return;
        };
        self.check(pending == 0, || format!("{job} was begun before the world"));
        let page = &mut self.loopers[looper];
        let (before, last) = (page.running.replace(job), page.last.replace(job));
        self.check(before.is_none(), || {
            format!("{job} was begun beside {before:?}")
        });
        self.check(last < Some(job), || {
            format!("{job} was begun after {last:?}")
        });
    }

    fn end(&mut self, job: usize) {
        self.jobs[job].has_ended = true;
        match self.jobs[job].looper {
            Some(looper) => self.loopers[looper].running = None,
            None => self.is_world_running = false,
        }
    }

    /// Enters a lock of a task.
    fn use_lock(&mut self, job: usize, want: Want) {
        let looper = self.jobs[job].looper.unwrap();
        let lock = &mut self.locks[want.lock];
        let users = lock
            .users
            .iter()
            .find(|it| it.1 || want.is_exclusive)
            .copied();
        let mut keepers = lock.kept.iter();
        let keeper = keepers
            .find(|it| it.0 != looper && (it.1 || want.is_exclusive))
            .copied();
        lock.users.push((job, want.is_exclusive));
        lock.writes += usize::from(want.is_exclusive);
        let is_gone = lock.is_gone;
        if want.is_kept && !want.is_held && !self.loopers[looper].is_closed {
            self.keep(looper, want.lock, want.is_exclusive);
        }
        self.check(users.is_none(), || {
            format!("{job} has {want:?} beside {users:?}")
        });
        self.check(keeper.is_none(), || {
            format!("{job} has {want:?}, kept by {keeper:?}")
        });
        self.check(!is_gone, || format!("{job} has the closed {want:?}"));
    }

    pub fn keep(&mut self, looper: usize, lock: usize, is_exclusive: bool) {
        self.locks[lock].kept.push((looper, is_exclusive));
    }

    /// Enters that a looper has got a lock by an attempt.
    pub fn attempt(&mut self, looper: usize, lock: usize, is_exclusive: bool) {
        let page = &self.locks[lock];
        let user = page.users.iter().find(|it| it.1 || is_exclusive).copied();
        let keeper = page.kept.iter().find(|it| it.1 || is_exclusive).copied();
        self.check(user.is_none() && keeper.is_none(), || {
            format!("{looper} got {lock} beside {user:?}, {keeper:?}")
        });
        self.keep(looper, lock, is_exclusive);
    }

    /// Enters that a looper gives up a lock that it keeps. Returns whether it keeps it.
    pub fn unlock(&mut self, looper: usize, lock: usize) -> bool {
        let page = &mut self.locks[lock];
        let before = page.kept.len();
        page.kept.retain(|it| it.0 != looper);
        if let Place::Plain(_) = page.place {
            // The lock is given back at once, even while a task has it.
            let jobs = &self.jobs;
            page.users.retain(|it| jobs[it.0].looper != Some(looper));
        }
        page.kept.len() < before
    }

    /// Enters that a looper will end.
    pub fn close(&mut self, looper: usize) {
        self.loopers[looper].is_closed = true;
        for lock in 0..self.locks.len() {
            self.unlock(looper, lock);
        }
    }

    pub fn unfinished(&self) -> Vec<usize> {
        let jobs = self.jobs.iter().enumerate();
        let open = jobs.filter(|(_, page)| !page.is_finished());
        open.map(|(job, _)| job).collect()
    }

    /// Returns the first task of a looper that waits while nothing is in its way, when nothing moves.
    pub fn left(&self) -> Option<usize> {
        let may_wait = |page: &JobPage| {
            let has_outcome = page.begun > 0 || page.is_cancelled || !page.outcomes.is_empty();
            !has_outcome && page.posted.as_ref().is_none_or(|it| !it.is_finished())
        };
        let waiting: Vec<_> = (0..self.jobs.len())
            .filter(|&job| may_wait(&self.jobs[job]))
            .collect();
        let of = |job: usize| self.jobs[job].looper;
        let is_first = |job: usize| {
            let runs = of(job).and_then(|at| self.loopers[at].running);
            runs.is_none() && !waiting.iter().any(|&it| it < job && of(it) == of(job))
        };
        let is_in_the_way = |job: usize, want: &Want| {
            let kept = self.locks[want.lock].kept.iter();
            let mut kept = kept.filter(|it| Some(it.0) != of(job) && (it.1 || want.is_exclusive));
            let mut others = waiting.iter().filter(|&&it| of(it) != of(job));
            kept.next().is_some()
                || others.any(|&it| {
                    let mut same = self.jobs[it].wants.iter().filter(|it| it.lock == want.lock);
                    same.any(|it| it.is_exclusive || want.is_exclusive)
                })
        };
        let mut known = waiting
            .iter()
            .copied()
            .filter(|&job| self.jobs[job].posted.is_some());
        known.find(|&job| {
            let wants = &self.jobs[job].wants;
            is_first(job) && !wants.iter().any(|want| is_in_the_way(job, want))
        })
    }

    /// Returns a number that grows with each begin and end.
    pub fn progress(&self) -> usize {
        let jobs = self.jobs.iter();
        jobs.map(|page| page.begun as usize + usize::from(page.is_finished()))
            .sum()
    }

    /// Checks that each task has had one outcome, which fits.
    pub fn judge(&mut self, may_deadlock: bool) {
        for job in 0..self.jobs.len() {
            let page = &self.jobs[job];
            let text = format!(
                "{job} of {:?}: {:?}, {:?}, begun {}, cancelled {}",
                page.looper, page.wants, page.outcomes, page.begun, page.is_cancelled
            );
            let fits = match page.outcomes[..] {
                // The result was dropped.
                [] => page.posted.is_none() && (page.begun == 0 || page.has_ended),
                [Outcome::Done | Outcome::Panicked] => page.begun == 1 && page.has_ended,
                [Outcome::Cancelled] if page.is_cancelled => page.begun == 0,
                [Outcome::Cancelled] => self.is_aborted && page.has_ended,
                [Outcome::NotStarted] => self.is_aborted && page.begun == 0,
                [Outcome::TimedOut] => page.has_limit && page.begun == 0,
                [Outcome::NotHeld] => page.wants.iter().any(|it| it.is_held) && page.begun == 0,
                [Outcome::AlreadyHeld] => !page.wants.is_empty() && page.begun == 0,
                [Outcome::Closed] => {
                    let is_closed = |want: &Want| self.locks[want.lock].is_closed;
                    page.begun == 0 && page.wants.iter().any(is_closed)
                }
                [Outcome::Deadlock] => may_deadlock && page.begun == 0,
                _ => false,
            };
            self.check(fits, || text);
        }
        let (made, dropped) = (self.made, self.captures.count());
        self.check(made == dropped, || {
            format!("{dropped} of {made} captures were dropped")
        });
    }
}

impl JobPage {
    pub fn is_finished(&self) -> bool {
        self.posted.as_ref().is_none_or(Posted::is_finished)
    }
}

/// A task that has begun and not ended.
pub struct Life(pub Book, pub usize);

impl Life {
    pub fn begin(book: &Book, job: usize) -> Life {
        book.with(|pages| pages.begin(job));
        Life(book.clone(), job)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.with(|pages| pages.end(self.1));
    }
}

/// A turn of a task, in which it takes a lane.
pub struct Turn(Book);

impl Turn {
    pub fn begin(book: &Book) -> Turn {
        book.with(|pages| {
            pages.polled += 1;
            let (polled, lanes) = (pages.polled, pages.lanes);
            pages.check(polled <= lanes, || format!("{polled} tasks run at a time"));
        });
        Turn(book.clone())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.with(|pages| pages.polled -= 1);
    }
}

/// Locks that are used.
pub struct Use(Book, usize, Vec<usize>);

impl Use {
    pub fn begin(book: &Book, job: usize, wants: &[Want]) -> Use {
        book.with(|pages| wants.iter().for_each(|&want| pages.use_lock(job, want)));
        let locks = wants.iter().map(|want| want.lock);
        Use(book.clone(), job, locks.collect())
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.with(|pages| {
            for &lock in &self.2 {
                pages.locks[lock].users.retain(|it| it.0 != self.1);
            }
        });
    }
}
