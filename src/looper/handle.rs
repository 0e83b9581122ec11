//! Loopers, as programs hold them.
//!
//! The last handle closes its looper, which then runs what was posted.

use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::cell::{LockCell, LooperCell, LooperPhase, Want};
use super::claim::{Access, Claim};
use super::error::{LockDetail, LockError, PostError, PostProblem};
use super::job::{Posted, PostedJob, with_current};
use super::lock::Lock;
use super::monitor::Monitor;
use super::work::{TypedJob, done};
use crate::runtime::context;
use crate::task::is_large;

/// A serial queue of closures and futures, on the lanes of a [`Controller`](super::Controller).
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
pub struct Looper(Arc<LooperCell>);

/// A looper that this does not keep open.
#[derive(Clone)]
pub struct WeakLooper(Arc<LooperCell>);

/// The options of a task that is about to be posted.
#[must_use = "a posting does nothing until `post` or `spawn`"]
#[derive(Debug)]
pub struct Posting<'a, A = ()> {
    looper: &'a Looper,
    priority: u8,
    lock_timeout: Option<Duration>,
    access: A,
}

impl Looper {
    pub(super) fn new(monitor: &Arc<Monitor>, name: Option<Box<str>>) -> Self {
        Looper(monitor.change(|table, _| table.add(monitor, name)))
    }

    /// Posts a closure of priority 0, without locks.
    ///
    /// Its captures are dropped on the thread that ran it, before its result is seen.
    ///
    /// # Errors
    /// [`PostError`] returns the closure if the looper or its controller is closed.
    #[doc(alias = "enqueue")]
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
            lock_timeout: None,
            access: (),
        }
    }

    /// Sets how long a task waits for its locks, from its posting.
    ///
    /// It ends with [`LockError::TimedOut`] if it is not the next one of its looper, with all of its
    /// locks granted, within this time.
    pub fn lock_timeout(&self, time: Duration) -> Posting<'_> {
        self.priority(0).lock_timeout(time)
    }

    /// Requests locks for a task. It runs when the looper has all of them.
    pub fn with<A: Access>(&self, access: A) -> Posting<'_, A> {
        self.priority(0).with(access)
    }

    /// Takes a lock now, or not at all. Returns whether the looper has it.
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
    #[doc(alias = "attemptLock")]
    pub fn attempt(&self, access: impl Access) -> Result<bool, LockError> {
        let set = set_of(&access);
        if let Some(foreign) = foreign(&self.0.monitor, &set) {
            return Err(self.is_foreign(foreign));
        }
        let monitor = &self.0.monitor;
        monitor.change(|table, _| table.attempt(&self.0, &set))
    }

    /// Releases a lock that the looper holds, and hands it to the tasks that wait for it.
    ///
    /// While a task or a guard uses the value of the lock, the lock is released when that use ends.
    ///
    /// # Errors
    /// [`LockError::NotHeld`] if the looper does not hold the lock, and [`LockError::Foreign`] if
    /// the lock belongs to another controller.
    pub fn unlock(&self, lock: &impl AsRef<Lock>) -> Result<(), LockError> {
        let (lock, monitor) = (lock.as_ref().cell(), &self.0.monitor);
        if !Arc::ptr_eq(&lock.monitor, monitor) {
            return Err(self.is_foreign(lock));
        }
        monitor.change(|table, follow_up| table.unlock(&self.0, lock, follow_up))
    }

    /// Accepts no more tasks, and waits until the queued ones have run and the locks are released.
    ///
    /// A call by a task of this looper, or of the world, does not wait.
    ///
    /// # Cancel safety
    /// The looper stays closed when the future is dropped.
    #[doc(alias = "safeDelete")]
    pub async fn close(&self) {
        let looper = &self.0;
        // A task that waits for its own end, or for the end of the world, would wait forever.
        let is_own = with_current(|job| {
            let own = &job.looper;
            own.is_world() && own.monitor.id == looper.monitor.id || Arc::ptr_eq(own, looper)
        });
        let waiters = looper.monitor.change(|table, follow_up| {
            table.close(looper, follow_up);
            let waits = is_own != Some(true);
            waits.then(|| table.closers(looper)).flatten()
        });
        if let Some(waiters) = waiters {
            let has_ended = || {
                let monitor = &looper.monitor;
                monitor.look(|_| looper.phase() == LooperPhase::Ended)
            };
            waiters.until(has_ended).await;
        }
    }

    /// Returns the number of the looper, which no other looper or lock of its controller has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Returns the name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Returns the number of tasks that have not ended. A running task counts.
    pub fn len(&self) -> usize {
        context::apply_effects();
        self.0.with(|state| state.len())
    }

    /// Returns whether all tasks have ended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the looper accepts no more tasks.
    pub fn is_closed(&self) -> bool {
        context::apply_effects();
        self.0.with(|state| state.is_closed)
    }

    /// Returns a handle that does not keep the looper open.
    pub fn downgrade(&self) -> WeakLooper {
        WeakLooper(self.0.clone())
    }

    fn is_foreign(&self, lock: &LockCell) -> LockError {
        LockError::Foreign(LockDetail::new(&*self.0, lock))
    }
}

/// Returns the locks in the order of their numbers, in which all sets of a controller are taken.
pub(super) fn set_of(access: &impl Access) -> Vec<Want> {
    let mut set = Vec::new();
    access.add_to(&mut set);
    set.sort_by_key(|want| want.lock.id);
    set
}

/// Returns a lock of another controller, if there is one among these.
fn foreign<'a>(monitor: &Arc<Monitor>, wants: &'a [Want]) -> Option<&'a LockCell> {
    let foreign = wants
        .iter()
        .find(|want| !Arc::ptr_eq(&want.lock.monitor, monitor));
    foreign.map(|want| &*want.lock)
}

impl<A> Posting<'_, A> {
    /// Sets the priority, as [`Looper::priority`].
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets how long the task waits for its locks, as [`Looper::lock_timeout`].
    pub fn lock_timeout(mut self, time: Duration) -> Self {
        self.lock_timeout = Some(time);
        self
    }
}

impl<'a, A> Posting<'a, A> {
    fn map<B>(self, map: impl FnOnce(A) -> B) -> Posting<'a, B> {
        Posting {
            looper: self.looper,
            priority: self.priority,
            lock_timeout: self.lock_timeout,
            access: map(self.access),
        }
    }
}

impl<'a> Posting<'a> {
    /// Requests locks, as [`Looper::with`].
    pub fn with<A: Access>(self, access: A) -> Posting<'a, A> {
        self.map(|()| access)
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
        if const { is_large::<F>() } {
            let begin = |task: Box<F>, _: Option<&_>, _: &_| done(task());
            let posted = self.without_locks().submit(Box::new(task), false, begin);
            return posted.map_err(PostError::unbox);
        }
        let begin = |task: F, _: Option<&_>, _: &_| done(task());
        self.without_locks().submit(task, false, begin)
    }

    /// Posts a future.
    ///
    /// # Errors
    /// [`PostError`] returns the future and says why it was not accepted.
    pub fn spawn<Fut>(self, task: Fut) -> Result<Posted<Fut::Output>, PostError<Fut>>
    where
        Fut: Future<Output: Send + 'static> + Send + 'static,
    {
        let begin =
            |task: Box<Fut>, _: Option<&_>, _: &_| ControlFlow::Continue(Box::into_pin(task));
        let posted = self.without_locks().submit(Box::new(task), false, begin);
        posted.map_err(PostError::unbox)
    }

    fn without_locks(self) -> Posting<'a, Option<Claim<()>>> {
        self.map(|()| None)
    }
}

impl<A: Access> Posting<'_, A> {
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
        if const { is_large::<F>() } {
            let begin = |task: Box<F>, access: Option<&A>, _: &_| {
                done(task(A::give(&mut open(access, None))))
            };
            let posted = self.map(Some).submit(Box::new(task), false, begin);
            return posted.map_err(PostError::unbox);
        }
        let begin =
            |task: F, access: Option<&A>, _: &_| done(task(A::give(&mut open(access, None))));
        self.map(Some).submit(task, false, begin)
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
        let begin = |task: Box<F>, access: Option<&A>, looper: &Arc<LooperCell>| {
            ControlFlow::Continue(Box::pin(task(open(access, Some(looper)))))
        };
        let posted = self.map(Some).submit(Box::new(task), true, begin);
        posted.map_err(PostError::unbox)
    }
}

fn open<A: Access>(access: Option<&A>, owner: Option<&LooperCell>) -> A::Owned {
    access
        .expect("a task that gets values has locks")
        .open(owner)
}

impl<A: Access> Posting<'_, Option<A>> {
    /// Posts a task that `begin` begins.
    fn submit<F, Fut, B>(
        self,
        task: F,
        is_owning: bool,
        begin: B,
    ) -> Result<Posted<Fut::Output>, PostError<F>>
    where
        F: Send + 'static,
        Fut: Future<Output: Send + 'static> + Send + 'static,
        B: Fn(F, Option<&A>, &Arc<LooperCell>) -> ControlFlow<Fut::Output, Pin<Box<Fut>>>,
        B: Send + Sync + 'static,
    {
        let Looper(looper) = self.looper;
        let (priority, monitor) = (self.priority, &looper.monitor);
        if priority > monitor.highest {
            let (asked, highest) = (priority, monitor.highest);
            return Err(PostError::new(
                task,
                PostProblem::Priority { asked, highest },
            ));
        }
        // A single lock is found in the access itself. A set is sorted, in a list of its own.
        let access = self.access.as_ref();
        let set = match access.map(Access::want) {
            Some(None) => access.map(set_of).unwrap_or_default(),
            _ => Vec::new(),
        };
        let deadline = self
            .lock_timeout
            .and_then(|time| monitor.now().checked_add(time));
        let deadline = deadline.map(|at| Box::new((at, monitor.change(|table, _| table.number()))));
        let is_timed = deadline.is_some();
        let job = Arc::new(PostedJob {
            looper: looper.clone(),
            priority,
            is_owning,
            deadline,
            set: set.into(),
            body: TypedJob::new(task, self.access, begin),
        });
        // From here on the task is in the job. A job that is refused gives it back.
        let refused = match foreign(monitor, job.wants()) {
            Some(_) => Some(PostProblem::Foreign),
            None => {
                let job: Arc<PostedJob> = job.clone();
                let is_accepted = match is_timed {
                    true => monitor.change(|table, follow_up| table.post_timed(&job, follow_up)),
                    false => monitor.post(looper, job),
                };
                (!is_accepted).then_some(PostProblem::Closed)
            }
        };
        match refused.and_then(|problem| Some((job.body.recover()?, problem))) {
            Some((task, problem)) => Err(PostError::new(task, problem)),
            None => Ok(Posted::new(job)),
        }
    }
}

impl WeakLooper {
    pub(super) fn new(looper: &Arc<LooperCell>) -> Self {
        WeakLooper(looper.clone())
    }

    /// Returns the looper, unless its last handle was dropped.
    pub fn upgrade(&self) -> Option<Looper> {
        self.0.try_add_handle().then(|| Looper(self.0.clone()))
    }

    /// Returns the number of the looper.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Returns the name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }
}

impl Clone for Looper {
    fn clone(&self) -> Self {
        self.0.add_handle();
        Looper(self.0.clone())
    }
}

impl Drop for Looper {
    fn drop(&mut self) {
        if self.0.remove_handle() {
            let monitor = &self.0.monitor;
            monitor.change(|table, follow_up| table.close(&self.0, follow_up));
        }
    }
}

impl PartialEq for Looper {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Looper {}

impl Hash for Looper {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for Looper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Looper({})", self.0)
    }
}

impl fmt::Debug for WeakLooper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakLooper({})", self.0)
    }
}
