//! Loopers, as programs hold them.
//!
//! The last handle closes its looper, which then runs what was posted.

use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::access::{Access, Requested};
use super::alarm::Alarm;
use super::current;
use super::error::{LockDetail, LockError, PostError, PostProblem};
use super::inbox::Shut;
use super::job::{Cell, Job, JobExtras, Origin, Work};
use super::lock::Lockable;
use super::monitor::Monitor;
use super::posted::Posted;
use super::seat::Seat;
use super::table::Table;
use super::want::Wants;
use super::work::{Later, LaterWith, Plain, With};
use crate::task::is_large;
use crate::waker::KeptWaker;

/// A serial queue of a [`Controller`](super::Controller): the `Looper` of MTLL.
///
/// Its tasks run one at a time, in the order in which they were posted. Any thread, task or stopped
/// world may post. A clone is the same looper. When the last clone is dropped, the queued tasks run
/// and the looper gives back its locks.
///
/// ```
/// use greenroom::looper::Controller;
///
/// greenroom::run(async {
///     let controller = Controller::builder().build().unwrap();
///     let looper = controller.looper();
///     let words = controller.guarded(Vec::new());
///     for word in ["one", "two"] {
///         drop(looper.with(words.exclusive()).post(move |words| words.push(word)));
///     }
///     let all = looper.with(words.shared()).post(|words| words.join(" ")).unwrap();
///     assert_eq!(all.await.unwrap(), "one two");
/// });
/// ```
pub struct Looper {
    seat: Arc<Seat>,
    monitor: Arc<Monitor>,
}

/// A looper that this does not keep open.
#[derive(Clone)]
pub struct WeakLooper(Arc<Seat>);

/// The options of a task that is about to be posted.
#[must_use = "a posting does nothing until `post` or `spawn`"]
#[derive(Debug)]
pub struct Posting<'a, A = NoLocks> {
    looper: &'a Looper,
    priority: u8,
    within: Option<Duration>,
    access: A,
}

/// The access of a task without locks.
#[derive(Debug)]
pub struct NoLocks;

impl Looper {
    pub(super) fn new(monitor: &Arc<Monitor>, name: Option<Box<str>>) -> Self {
        let hub = monitor.clone();
        let seat = |key, identity| Seat::new(hub, key, identity);
        Looper {
            seat: monitor.change(|table, _| table.add(name, seat)),
            monitor: monitor.clone(),
        }
    }

    /// Posts a closure of priority 0, without locks.
    ///
    /// Its captures are dropped on the thread that ran it, before its result is seen.
    ///
    /// # Errors
    /// [`PostError`] returns the closure if the looper or its controller is closed.
    pub fn post<F, R>(&self, task: F) -> Result<Posted<R>, PostError<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.priority(0).post(task)
    }

    /// Posts a future of priority 0, without locks. The next task begins when it has ended.
    ///
    /// While it waits it takes no lane, so other loopers go on.
    ///
    /// # Errors
    /// [`PostError`] returns the future if the looper or its controller is closed.
    pub fn spawn<Fut>(&self, task: Fut) -> Result<Posted<Fut::Output>, PostError<Fut>>
    where
        Fut: Future<Output: Send + 'static> + Send + 'static,
    {
        self.priority(0).spawn(task)
    }

    /// Sets the priority of a task: from 0, the lowest, to the highest of the controller.
    ///
    /// It orders loopers among themselves, while this task is the next one of its looper.
    pub fn priority(&self, priority: u8) -> Posting<'_> {
        Posting {
            looper: self,
            priority,
            within: None,
            access: NoLocks,
        }
    }

    /// Ends a task with [`LockError::TimedOut`] if it is not the next one of its looper with all of
    /// its locks granted within this time from its posting.
    pub fn within(&self, time: Duration) -> Posting<'_> {
        self.priority(0).within(time)
    }

    /// Requests locks for a task. It runs when the looper has all of them.
    pub fn with<A: Access>(&self, access: A) -> Posting<'_, A> {
        self.priority(0).with(access)
    }

    /// Takes a lock now, or not at all: the `attemptLock` of MTLL. Returns whether the looper has
    /// it.
    ///
    /// The looper keeps the lock, as after [`keep`](super::Claim::keep). A request that waits for
    /// the lock is not overtaken. Of a set, all locks are taken or none.
    ///
    /// # Errors
    /// [`LockError`] if the looper holds the lock, if either is closed, or if the lock belongs to
    /// another controller.
    ///
    /// ```
    /// use greenroom::looper::Controller;
    ///
    /// greenroom::run(async {
    ///     let controller = Controller::builder().build().unwrap();
    ///     let (first, second) = (controller.looper(), controller.looper());
    ///     let lock = controller.lock();
    ///     assert_eq!(first.attempt(lock.exclusive()), Ok(true));
    ///     assert_eq!(second.attempt(lock.shared()), Ok(false));
    ///     assert_eq!(first.unlock(&lock), Ok(()));
    ///     assert_eq!(second.attempt(lock.shared()), Ok(true));
    /// });
    /// ```
    pub fn attempt(&self, access: impl Access) -> Result<bool, LockError> {
        let wants = self.wants(&access);
        if let Some(want) = wants
            .as_slice()
            .iter()
            .find(|want| want.place.controller != self.monitor.id)
        {
            return Err(LockError::Foreign(self.detail(&want.place.identity)));
        }
        self.monitor
            .change(|table, _| table.attempt(&self.seat, wants.as_slice()))
    }

    /// Releases a lock that the looper holds, and hands it to the tasks that wait for it.
    ///
    /// While a task or a guard uses the value of the lock, the lock is released when that use ends.
    ///
    /// # Errors
    /// [`LockError::NotHeld`] if the looper does not hold the lock, and [`LockError::Foreign`] if
    /// the lock belongs to another controller.
    pub fn unlock(&self, lock: &impl Lockable) -> Result<(), LockError> {
        let place = lock.shared_place().0;
        if place.controller != self.monitor.id {
            return Err(LockError::Foreign(self.detail(&place.identity)));
        }
        self.monitor
            .change(|table, effects| table.unlock(&self.seat, &place, effects))
    }

    /// Accepts no more tasks, and waits until the queued ones have run and the locks are released:
    /// the `safeDelete` of MTLL.
    ///
    /// A call by a task of this looper, or of the world, does not wait.
    ///
    /// # Cancel safety
    /// The looper stays closed when the future is dropped.
    pub async fn close(&self) {
        let is_own = current::with(|job| {
            let is_same = job.origin.hub().id() == self.monitor.id;
            let seat = job.origin.seat();
            is_same && seat.is_none_or(|seat| Arc::ptr_eq(seat, &self.seat))
        });
        let shut = Shut::Looper(&self.seat);
        let waiters = self.monitor.change_after(shut, |table, effects| {
            table.close(&self.seat, effects);
            let waits = is_own != Some(true);
            waits.then(|| table.closers(&self.seat)).flatten()
        });
        if let Some(waiters) = waiters {
            let is_over = |table: &mut Table| table.entry(&self.seat).is_none();
            let has_ended = || self.monitor.change(|table, _| is_over(table));
            waiters.until(has_ended).await;
        }
    }

    /// Returns the number of the looper, which no other looper or lock of its controller has.
    pub fn id(&self) -> u64 {
        self.seat.identity.id
    }

    /// Returns the name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.seat.identity.name()
    }

    /// Returns the number of tasks that have not ended. A running task counts.
    pub fn len(&self) -> usize {
        let entry = |table: &mut Table| table.entry(&self.seat).map_or(0, |it| it.len());
        self.monitor.change(|table, _| entry(table))
    }

    /// Returns whether all tasks have ended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the looper accepts no more tasks.
    pub fn is_closed(&self) -> bool {
        self.monitor
            .change(|table, _| table.entry(&self.seat).is_none_or(|it| it.is_closed))
    }

    /// Returns a handle that does not keep the looper open.
    pub fn downgrade(&self) -> WeakLooper {
        WeakLooper(self.seat.clone())
    }

    fn detail(&self, lock: &dyn fmt::Display) -> LockDetail {
        LockDetail::new(&self.seat.identity, lock)
    }

    fn wants(&self, access: &impl Access) -> Wants {
        let mut wants = Requested(Wants::default());
        access.add_to(&mut wants);
        wants.0.sort();
        wants.0
    }
}

impl<A> Posting<'_, A> {
    /// Sets the priority, as [`Looper::priority`].
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets a limit for the wait, as [`Looper::within`].
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }
}

impl<'a> Posting<'a> {
    /// Requests locks, as [`Looper::with`].
    pub fn with<A: Access>(self, access: A) -> Posting<'a, A> {
        Posting {
            looper: self.looper,
            priority: self.priority,
            within: self.within,
            access,
        }
    }

    /// Posts a closure.
    ///
    /// # Errors
    /// [`PostError`] returns the closure and says why it was not accepted.
    pub fn post<F, R>(self, task: F) -> Result<Posted<R>, PostError<F>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let none = Wants::default();
        if const { is_large::<F>() } {
            let posted = self.submit(none, None, false, Plain(Box::new(task)));
            return posted.or_else(|(work, problem)| PostError::unbox(work.0, problem));
        }
        let posted = self.submit(none, None, false, Plain(task));
        posted.map_err(|(work, problem)| PostError::new(work.0, problem))
    }

    /// Posts a future.
    ///
    /// # Errors
    /// [`PostError`] returns the future and says why it was not accepted.
    pub fn spawn<Fut>(self, task: Fut) -> Result<Posted<Fut::Output>, PostError<Fut>>
    where
        Fut: Future<Output: Send + 'static> + Send + 'static,
    {
        let task = Later(Box::new(task));
        let waker = self.looper.waker();
        let posted = self.submit(Wants::default(), Some(waker.into()), false, task);
        posted.or_else(|(work, problem)| PostError::unbox(work.0, problem))
    }
}

impl<'a, A: Access> Posting<'a, A> {
    /// Posts a closure that gets what its locks guard: `&T`, `&mut T`, or `()` for a lock without a
    /// value. A set of locks leads to a set of these.
    ///
    /// # Errors
    /// [`PostError`] returns the closure and says why it was not accepted.
    pub fn post<F, R>(self, task: F) -> Result<Posted<R>, PostError<F>>
    where
        F: FnOnce(A::Given<'_>) -> R + Send + 'static,
        R: Send + 'static,
    {
        let (posting, wants, access) = self.split();
        if const { is_large::<F>() } {
            let posted = posting.submit(wants, None, false, With(access, Box::new(task)));
            return posted.or_else(|(work, problem)| PostError::unbox(work.1, problem));
        }
        let posted = posting.submit(wants, None, false, With(access, task));
        posted.map_err(|(work, problem)| PostError::new(work.1, problem))
    }

    /// Posts a future, made by `task`, that owns what its locks guard: [`Shared`](super::Shared),
    /// [`Exclusive`](super::Exclusive), or `()` for a lock without a value.
    ///
    /// The locks are given back when their guards are dropped.
    ///
    /// # Errors
    /// [`PostError`] returns the function and says why it was not accepted.
    pub fn spawn<F, Fut>(self, task: F) -> Result<Posted<Fut::Output>, PostError<F>>
    where
        F: FnOnce(A::Owned) -> Fut + Send + 'static,
        Fut: Future<Output: Send + 'static> + Send + 'static,
    {
        let (posting, wants, access) = self.split();
        let waker = posting.looper.waker();
        if const { is_large::<F>() } {
            let task = LaterWith(access, Box::new(task));
            let posted = posting.submit(wants, Some(waker.into()), true, task);
            return posted.or_else(|(work, problem)| PostError::unbox(work.1, problem));
        }
        let posted = posting.submit(wants, Some(waker.into()), true, LaterWith(access, task));
        posted.map_err(|(work, problem)| PostError::new(work.1, problem))
    }

    fn split(self) -> (Posting<'a>, Wants, A) {
        let posting = Posting {
            looper: self.looper,
            priority: self.priority,
            within: self.within,
            access: NoLocks,
        };
        (posting, self.looper.wants(&self.access), self.access)
    }
}

impl Posting<'_> {
    fn submit<W: Work>(
        self,
        wants: Wants,
        waker: Option<KeptWaker>,
        is_owning: bool,
        work: W,
    ) -> Result<Posted<W::Output>, (W, PostProblem)> {
        let Looper { seat, monitor } = self.looper;
        let highest = monitor.limits.highest;
        if self.priority > highest {
            let asked = self.priority;
            return Err((work, PostProblem::Priority { asked, highest }));
        }
        if wants
            .as_slice()
            .iter()
            .any(|want| want.place.controller != monitor.id)
        {
            return Err((work, PostProblem::Foreign));
        }
        let deadline = self.within.and_then(|time| monitor.now().checked_add(time));
        let deadline = deadline.map(|at| (at, monitor.change(|table, _| table.number())));
        let has_extras = deadline.is_some() || waker.is_some();
        let extras = has_extras.then(|| Box::new(JobExtras { deadline, waker }));
        let job = Arc::new(Job {
            origin: Origin::Looper(seat.clone()),
            priority: self.priority,
            wants,
            extras,
            is_owning,
            body: Cell::new(work),
        });
        let erased: Arc<Job> = job.clone();
        let accepted = if deadline.is_some() {
            monitor.change(|table, effects| table.post(seat, erased, effects))
        } else {
            monitor.post(seat, erased)
        };
        if accepted {
            return Ok(Posted::new(job));
        }
        match job.body.recover() {
            Some(work) => Err((work, PostProblem::Closed)),
            // The table took it, so it has an outcome.
            None => Ok(Posted::new(job)),
        }
    }
}

impl Looper {
    fn waker(&self) -> Waker {
        Waker::from(Arc::new(Alarm {
            seat: self.seat.clone(),
            monitor: self.monitor.clone(),
        }))
    }
}

impl WeakLooper {
    pub(super) fn new(seat: &Arc<Seat>) -> Self {
        WeakLooper(seat.clone())
    }

    /// Returns the looper, unless its last handle was dropped.
    pub fn upgrade(&self) -> Option<Looper> {
        self.0.try_add_handle().then(|| Looper {
            seat: self.0.clone(),
            monitor: Monitor::of(&self.0.hub),
        })
    }

    /// Returns the number of the looper.
    pub fn id(&self) -> u64 {
        self.0.identity.id
    }

    /// Returns the name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.identity.name()
    }
}

impl Clone for Looper {
    fn clone(&self) -> Self {
        self.seat.add_handle();
        Looper {
            seat: self.seat.clone(),
            monitor: self.monitor.clone(),
        }
    }
}

impl Drop for Looper {
    fn drop(&mut self) {
        if self.seat.remove_handle() {
            let shut = Shut::Looper(&self.seat);
            self.monitor.change_after(shut, |table, effects| {
                table.close(&self.seat, effects);
            });
        }
    }
}

impl PartialEq for Looper {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.seat, &other.seat)
    }
}

impl Eq for Looper {}

impl Hash for Looper {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.seat).hash(state);
    }
}

impl fmt::Debug for Looper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Looper({})", self.seat.identity)
    }
}

impl fmt::Debug for WeakLooper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakLooper({})", self.0.identity)
    }
}
