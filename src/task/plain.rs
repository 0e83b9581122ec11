//! A plain task: any future, run by async-task, with a handle that smol's users know.
//!
//! What async-task would abort the process over, a panic in the drop of a future or of a result,
//! is contained here; what it would lose, a task that nobody can wake, is kept alive by its home.

#![expect(
    unsafe_code,
    reason = "async-task's unchecked form, for futures that stay on a thread; a future and a result dropped by hand"
)]

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_task::{Builder, ScheduleInfo, WithInfo};
use pin_project_lite::pin_project;

use super::home::{Home, Ticket};
use super::runnable::Runnable;
use crate::contain::{Panic, attempt, contain};
use crate::error::{Fault, Unjoined};

/// A spawned future: await it for its value, drop it to cancel, or let it go with `detach`.
///
/// Awaiting resumes the panic of a future that panicked. If the runtime was shut down first,
/// awaiting panics with a text that says so; [`fallible`](Task::fallible) gives `None` then.
/// A panic that nobody awaits goes to [`on_fault`](crate::Builder::on_fault).
///
/// ```
/// greenroom::run(async {
///     let task = greenroom::spawn(async { 40 + 2 });
///     assert_eq!(task.await, 42);
/// });
/// ```
#[must_use = "a task that is dropped is cancelled; use `detach` to let it go on"]
pub struct Task<T>(async_task::FallibleTask<Outcome<T>>);

impl<T> Task<T> {
    /// Lets the task go on by itself; its value is dropped.
    pub fn detach(self) {
        self.0.detach();
    }

    /// Cancels the task and waits until its future is dropped; gives the value if it was ready.
    ///
    /// # Panics
    /// Resumes the panic of a future that had panicked.
    pub async fn cancel(self) -> Option<T> {
        self.0.cancel().await.map(Outcome::open)
    }

    /// A task that, awaited, gives `None` where this one would panic for being cancelled.
    pub fn fallible(self) -> FallibleTask<T> {
        FallibleTask(self.0)
    }

    /// Whether the future is done or cancelled.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.0).poll(cx)) {
            Some(outcome) => Poll::Ready(outcome.open()),
            None => panic!("the task was cancelled by the shutdown of its runtime"),
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// A [`Task`] that gives `None` if it was cancelled.
#[must_use = "a task that is dropped is cancelled; use `detach` to let it go on"]
pub struct FallibleTask<T>(async_task::FallibleTask<Outcome<T>>);

impl<T> FallibleTask<T> {
    /// As [`Task::detach`].
    pub fn detach(self) {
        self.0.detach();
    }

    /// As [`Task::cancel`].
    ///
    /// # Panics
    /// Resumes the panic of a future that had panicked.
    pub async fn cancel(self) -> Option<T> {
        self.0.cancel().await.map(Outcome::open)
    }

    /// As [`Task::is_finished`].
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for FallibleTask<T> {
    type Output = Option<T>;

    /// # Panics
    /// Resumes the panic of a future that panicked.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|outcome| outcome.map(Outcome::open))
    }
}

impl<T> fmt::Debug for FallibleTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallibleTask")
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// A value whose drop is contained: async-task would abort the process over its panic.
///
/// No larger than the value, as each task has room for it.
pub(crate) struct Contained<T>(ManuallyDrop<T>);

impl<T> Contained<T> {
    fn new(value: T) -> Self {
        Contained(ManuallyDrop::new(value))
    }

    fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once, since `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        // SAFETY: dropped here alone, and not used afterwards.
        contain(|| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

/// What a plain task comes to; dropping it never unwinds.
pub(crate) enum Outcome<T> {
    Value(Contained<T>),
    /// In a box, so that a task that waits has no room for it.
    Panicked(Box<Unheard>),
}

impl<T> Outcome<T> {
    fn open(self) -> T {
        match self {
            Outcome::Value(value) => value.into_inner(),
            Outcome::Panicked(mut unheard) => {
                let panic = unheard.panic.take().expect("a panic is heard of once");
                resume_unwind(panic.into_payload())
            }
        }
    }
}

/// A panic that is reported to the home unless somebody awaits the task.
pub(crate) struct Unheard {
    panic: Option<Panic>,
    report: Box<dyn Fn(&Unjoined<'_>) + Send + Sync>,
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if let Some(panic) = self.panic.take() {
            let fault = Fault::Panicked(panic);
            contain(|| {
                (self.report)(&Unjoined {
                    name: None,
                    id: None,
                    fault: &fault,
                })
            });
        }
    }
}

pin_project! {
    /// A future as async-task gets it.
    struct Plain<H: Home, Fut> {
        home: H,
        ticket: Option<Ticket>,
        // Dropped by our own drop, contained. No `Option`, which may take a word.
        #[pin]
        future: ManuallyDrop<Fut>,
    }

    impl<H: Home, Fut> PinnedDrop for Plain<H, Fut> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.home.task_completed();
            // SAFETY: dropped in place, here alone, and not used afterwards.
            contain(|| unsafe { ManuallyDrop::drop(this.future.get_unchecked_mut()) });
            this.home.task_dropped();
            if let Some(ticket) = this.ticket.take() {
                this.home.untrack(ticket);
            }
        }
    }
}

impl<H: Home, Fut: Future> Future for Plain<H, Fut> {
    type Output = Outcome<Fut::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // SAFETY: what is pinned in a `ManuallyDrop` is pinned.
        let future = unsafe { this.future.map_unchecked_mut(|future| &mut **future) };
        match attempt(|| future.poll(cx)) {
            Ok(Poll::Ready(value)) => Poll::Ready(Outcome::Value(Contained::new(value))),
            Ok(Poll::Pending) => {
                if this.ticket.is_none() {
                    *this.ticket = this.home.track(cx.waker());
                    if this.ticket.is_none() {
                        cx.waker().wake_by_ref();
                    }
                }
                Poll::Pending
            }
            Err(panic) => {
                let home = this.home.clone();
                let report = Box::new(move |unjoined: &Unjoined<'_>| home.report(unjoined));
                Poll::Ready(Outcome::Panicked(Box::new(Unheard {
                    panic: Some(panic),
                    report,
                })))
            }
        }
    }
}

/// Spawns a future on `home`.
pub(crate) fn spawn<H, Fut>(home: H, future: Fut) -> Task<Fut::Output>
where
    H: Home,
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    // SAFETY: the future is `Send`, so it may be polled and dropped anywhere.
    unsafe { spawn_unchecked(home, future) }
}

/// Spawns a future that need not be `Send`.
///
/// # Safety
/// From its first poll on, the home polls and drops the future on one thread only; before, it may
/// be dropped on any.
pub(crate) unsafe fn spawn_unchecked<H, Fut>(home: H, future: Fut) -> Task<Fut::Output>
where
    H: Home,
    Fut: Future + 'static,
    Fut::Output: Send + 'static,
{
    let future = Plain {
        home: home.clone(),
        ticket: None,
        future: ManuallyDrop::new(future),
    };
    let schedule = move |runnable, info: ScheduleInfo| {
        home.schedule(Runnable::from_task(runnable), info.woken_while_running);
    };
    // SAFETY: the future is `'static`, and the caller answers for its threads; the schedule
    // closure is `Send`, `Sync` and `'static`, as a home is.
    let (runnable, task) =
        unsafe { Builder::new().spawn_unchecked(|()| future, WithInfo(schedule)) };
    runnable.schedule();
    Task(task.fallible())
}

/// A task that was cancelled before it began.
pub(crate) fn cancelled<T: Send + 'static>() -> Task<T> {
    let (runnable, task) = async_task::spawn(
        std::future::pending::<Outcome<T>>(),
        |_: async_task::Runnable| {},
    );
    drop(runnable);
    Task(task.fallible())
}
