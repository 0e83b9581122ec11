//! A set of tasks, whose results come in the order of their ends.
//!
//! Each task puts its value into a list that it shares with the set, and then wakes what waits for
//! the set. So a result costs the set one look at that list, and no poll of the task. A task that
//! ends without a value leaves a note there, and only then the set asks its handle for the fault.
//!
//! # Invariants
//! - SET-1: the list gets exactly one entry of each task, once its future was dropped.

mod future;
mod line;

mod results;

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use slab::Slab;

use self::future::{ResultEntry, SetFuture};
use self::line::{LinePart, TaskLine};
use self::results::{SetResult, SetResults};
use crate::error::{Fault, SpawnProblem};
use crate::pinned::spawn_made;
use crate::runtime::{Runtime, context, spawn_named};
use crate::task::{Task, TaskName, WaitsFor, run};

/// A set of tasks that run at once, and whose results are taken as they come.
///
/// Dropping the set cancels its tasks, without waiting, as dropping a [`Task`] does.
/// [`shutdown`](TaskSet::shutdown) also waits until their futures are dropped. Neither lets a task
/// begin that waits for the [`limit`](TaskSet::limit). A panic of a task is the result of that task,
/// and ends no other. If it is not taken, it goes to [`on_fault`](crate::Builder::on_fault).
///
/// ```
/// use greenroom::TaskSet;
///
/// greenroom::run(async {
///     let mut squares = TaskSet::new();
///     for number in 1..=4_u32 {
///         squares.spawn(async move { number * number });
///     }
///     let mut sum = 0;
///     while let Some(square) = squares.next().await {
///         sum += square.unwrap();
///     }
///     assert_eq!(sum, 30);
/// });
/// ```
///
/// An actor that goes on to receive takes [`on_return`](crate::Context::on_return) instead, which
/// makes a message of each result. For futures that need no tasks of their own, there is
/// [`concurrently`](crate::concurrently()).
///
/// # Futures that are not `Send`
///
/// On a [`Pinned`](crate::Pinned) thread or a [`Stage`](crate::Stage),
/// [`spawn_local`](TaskSet::spawn_local) takes futures that stay on their thread. Their values need
/// not be `Send` either, and neither is the set then.
///
/// ```
/// use greenroom::TaskSet;
/// use std::rc::Rc;
///
/// let stage = greenroom::Pinned::here();
/// let words = stage.block_on(async {
///     let shared = Rc::new("word");
///     let mut tasks = TaskSet::new();
///     for _ in 0..3 {
///         let own = shared.clone();
///         tasks.spawn_local(async move { own });
///     }
///     let mut words = 0;
///     while let Some(Ok(word)) = tasks.next().await {
///         words += usize::from(Rc::ptr_eq(&word, &shared));
///     }
///     words
/// });
/// assert_eq!(words, 3);
/// ```
#[must_use = "dropping a set cancels its tasks"]
pub struct TaskSet<T> {
    results: Arc<SetResults<T>>,
    line: Option<Arc<TaskLine>>,
    name: Option<TaskName>,
    /// The number of tasks that were ever spawned.
    spawned: u64,
    /// Those whose results were not returned, by the keys of their entries.
    tasks: Slab<Task<()>>,
    /// What was taken out of the list at once, and is to be returned.
    taken: VecDeque<SetResult<T>>,
    /// The key of the task whose fault is to be returned.
    faulty: Option<usize>,
    /// The list may have a waker of this set.
    is_awaited: bool,
}

// No value is pinned here.
impl<T> Unpin for TaskSet<T> {}

impl<T> TaskSet<T> {
    /// Creates an empty set.
    pub fn new() -> Self {
        TaskSet {
            results: Arc::new(SetResults::new()),
            line: None,
            name: None,
            spawned: 0,
            tasks: Slab::new(),
            taken: VecDeque::new(),
            faulty: None,
            is_awaited: false,
        }
    }

    /// Gives this name to each task that is spawned from now on, as [`task`](crate::task()) does.
    ///
    /// ```
    /// use greenroom::TaskSet;
    ///
    /// greenroom::run(async {
    ///     let mut pages = TaskSet::new().named("fetch");
    ///     pages.spawn(async { 42 });
    ///     assert_eq!(pages.next().await.unwrap().unwrap(), 42);
    /// });
    /// ```
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(Arc::new(name.into().into()));
        self
    }

    /// Lets at most `tasks` futures run at once. By default there is no limit.
    ///
    /// Further ones wait in the order in which they were spawned. Each begins when another one of
    /// the set ends, whether or not its result is taken. The limit holds for futures that are
    /// spawned from now on.
    ///
    /// # Panics
    /// If `tasks` is 0.
    ///
    /// ```
    /// use greenroom::TaskSet;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// static RUNNING: AtomicU32 = AtomicU32::new(0);
    ///
    /// greenroom::run(async {
    ///     let mut pages = TaskSet::new().limit(2);
    ///     for page in 0..100 {
    ///         pages.spawn(async move {
    ///             assert!(RUNNING.fetch_add(1, Ordering::SeqCst) < 2);
    ///             greenroom::yield_now().await;
    ///             RUNNING.fetch_sub(1, Ordering::SeqCst);
    ///             page
    ///         });
    ///     }
    ///     let mut sum = 0;
    ///     while let Some(page) = pages.next().await {
    ///         sum += page.unwrap();
    ///     }
    ///     assert_eq!(sum, 4950);
    /// });
    /// ```
    #[track_caller]
    pub fn limit(mut self, tasks: usize) -> Self {
        assert!(tasks > 0, "the limit is 0, but must be at least 1");
        self.line = Some(Arc::new(TaskLine::new(tasks)));
        self
    }

    /// Returns how many results were not returned by [`next`](TaskSet::next) yet.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether each result was returned, so that [`next`](TaskSet::next) returns `None`.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits until a task ends, and returns its value or its fault; `None` if the set is empty.
    ///
    /// The results come in the order in which the tasks end. The set is also a stream of them.
    ///
    /// # Errors
    /// - [`Fault::Panicked`] if the future has panicked.
    /// - [`Fault::Cancelled`] if the shutdown of the runtime or pinned thread has dropped it.
    /// - [`Fault::NotStarted`] if it was spawned when that had begun.
    ///
    /// # Cancel safety
    /// Cancel safe: a result that was not returned is left to the next call.
    pub async fn next(&mut self) -> Option<Result<T, Fault>> {
        let next = &mut NextResult(self);
        poll_fn(|cx| next.0.poll_result(cx)).await
    }

    /// Cancels all tasks, waits until their futures are dropped, and drops the results.
    ///
    /// The set is empty then, and takes further futures. Panics that were not returned go to
    /// [`on_fault`](crate::Builder::on_fault).
    ///
    /// # Cancel safety
    /// If this future is dropped after its first poll, all tasks are cancelled all the same. The set
    /// has none of them then. If it was never polled, nothing has happened.
    ///
    /// ```
    /// use greenroom::TaskSet;
    /// use std::sync::Arc;
    ///
    /// greenroom::run(async {
    ///     let shared = Arc::new(());
    ///     let mut tasks = TaskSet::new();
    ///     for _ in 0..3 {
    ///         let own = shared.clone();
    ///         tasks.spawn(async move {
    ///             let _own = own;
    ///             std::future::pending::<()>().await;
    ///         });
    ///     }
    ///     tasks.shutdown().await;
    ///     assert_eq!(Arc::strong_count(&shared), 1);
    /// });
    /// ```
    pub async fn shutdown(&mut self) {
        let tasks = self.leave();
        for task in &tasks {
            task.close();
        }
        for task in tasks {
            task.ended().await;
        }
    }

    /// Gives up all tasks and their results, also those that come later.
    fn leave(&mut self) -> Vec<Task<()>> {
        if let Some(line) = &self.line {
            line.give_up(self.spawned);
        }
        let tasks = std::mem::take(&mut self.tasks).into_iter();
        let tasks = tasks.map(|(_, task)| task).collect();
        (self.faulty, self.is_awaited) = (None, false);
        let results = std::mem::replace(&mut self.results, Arc::new(SetResults::new()));
        let taken = std::mem::take(&mut self.taken);
        // Last: a drop of a value may panic.
        results.close();
        drop(taken);
        tasks
    }

    /// Returns the next result, which is there, or leaves the waker for it.
    fn poll_result(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Fault>>> {
        // Results that are always there must not occupy the worker.
        if !self.is_empty() && run::is_spent(context::is_alone) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            if let Some(key) = self.faulty {
                let fault = ready!(self.tasks[key].poll_fault(cx));
                self.faulty = None;
                drop(self.tasks.remove(key));
                return Poll::Ready(Some(Err(fault)));
            }
            match self.taken.pop_front() {
                Some((key, Some(value))) => {
                    self.tasks.remove(key).detach();
                    run::spend();
                    return Poll::Ready(Some(Ok(value)));
                }
                Some((key, None)) => {
                    self.faulty = Some(key);
                    continue;
                }
                None if self.tasks.is_empty() => return Poll::Ready(None),
                None => {}
            }
            context::apply_effects();
            if !self.results.take_or_wait(&mut self.taken, cx.waker()) {
                self.is_awaited = true;
                run::note_wait_for(cx.waker(), WaitsFor::Other("a task of a set"), || 0);
                return Poll::Pending;
            }
        }
    }

    /// Returns the future of a task that is to be added.
    fn member<F: Future<Output = T>>(&mut self, future: F) -> SetFuture<T, F> {
        self.spawned += 1;
        let part = |line| LinePart::new(line, self.spawned);
        let entry = ResultEntry::new(&self.results, self.tasks.vacant_key());
        SetFuture::new(future, self.line.as_ref().map(part), entry)
    }
}

impl<T: Send + 'static> TaskSet<T> {
    /// Spawns a future on the current runtime, as [`spawn`](crate::spawn()) does.
    ///
    /// # Panics
    /// If no runtime is current on this thread.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        // Looked for before there is an entry for the task.
        match context::runtime() {
            Some(runtime) => {
                let member = self.member(future);
                let task = spawn_named::<F, _>(runtime, self.name.clone(), member);
                self.tasks.insert(task);
            }
            None => panic!("{}", SpawnProblem::NoRuntime),
        }
    }

    /// Spawns a future on this runtime, as [`Runtime::spawn`] does.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, runtime: &Runtime, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (runtime, member) = (runtime.inner().clone(), self.member(future));
        let task = spawn_named::<F, _>(runtime, self.name.clone(), member);
        self.tasks.insert(task);
    }
}

impl<T: 'static> TaskSet<T> {
    /// Spawns a future on this thread, as [`spawn_local`](crate::spawn_local()) does.
    ///
    /// # Panics
    /// If this is neither a pinned thread nor the thread of a stage.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F)
    where
        F: Future<Output = T> + 'static,
    {
        let task = spawn_made::<F, _>(self.name.clone(), || self.member(future));
        self.tasks.insert(task);
    }
}

/// A wait for the next result.
struct NextResult<'a, T>(&'a mut TaskSet<T>);

impl<T> Drop for NextResult<'_, T> {
    fn drop(&mut self) {
        if std::mem::take(&mut self.0.is_awaited) {
            self.0.results.await_no_more();
        }
    }
}

impl<T> Stream for TaskSet<T> {
    type Item = Result<T, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_result(cx)
    }
}

impl<T> Drop for TaskSet<T> {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

impl<T> Default for TaskSet<T> {
    fn default() -> Self {
        TaskSet::new()
    }
}

impl<T> fmt::Debug for TaskSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSet")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
