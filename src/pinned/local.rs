//! `PinnedLocal`: the part of a pinned thread that only its own thread reaches, and tasks that are
//! spawned there.
#![expect(
    unsafe_code,
    reason = "futures that are not `Send` are spawned here; see PINNED-1 in thread.rs"
)]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::FutureExt;
use slab::Slab;

use super::thread::{PinnedThread, ThreadKeep};
use crate::contain::contain;
use crate::runtime::context::{self, Role, ThreadContext};
use crate::runtime::{HostContext, TaskBuilder};
use crate::task::{
    ActorExecutor, Executor, Named, Runnable, Task, TaskName, cancelled, is_large, spawn_unchecked,
};

/// The part of a pinned thread that only the thread itself can reach.
pub(crate) struct PinnedLocal {
    pub(super) thread: Arc<PinnedThread>,
    /// Runnables that the thread has taken out of its inbox, to run next.
    pub(super) hand: RefCell<VecDeque<Runnable>>,
    pub(super) hosted: RefCell<Slab<Rc<dyn Any>>>,
    /// The tasks and values of a stage are being dropped, or were. Such a drop may drop the stage
    /// itself.
    pub(super) is_ending: Cell<bool>,
}

/// Spawns a plain task on this thread, which is a [`Pinned`](crate::Pinned) one or has a
/// [`Stage`](crate::Stage). The future need not be `Send`, and neither need its value.
///
/// If the thread is ending, the returned task is a cancelled one. Code on other threads uses
/// [`Pinned::spawn`](crate::Pinned::spawn), which calls a closure there.
///
/// # Panics
/// On any other thread, and in an actor that has its thread for itself
/// ([`Detached`](crate::Detached)), since it may block that thread.
///
/// ```
/// use greenroom::{Runtime, spawn_local};
/// use std::rc::Rc;
///
/// greenroom::run(async {
///     let pinned = Runtime::current().spawn_pinned("local").unwrap();
///     let sum = pinned.spawn(|| async {
///         let number = Rc::new(40);
///         let own = number.clone();
///         *number + *spawn_local(async move { own }).await
///     });
///     assert_eq!(sum.await, 80);
/// });
/// ```
#[track_caller]
pub fn spawn_local<F>(future: F) -> Task<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    spawn_made::<F, _>(None, || future)
}

impl TaskBuilder {
    /// Spawns a future on this thread, as [`spawn_local`](crate::spawn_local()) does.
    ///
    /// # Panics
    /// As [`spawn_local`](crate::spawn_local()).
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> Task<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        spawn_made::<F, _>(Some(self.into_name()), || future)
    }
}

/// Does what [`spawn_local`] does with a future that is made once it can be spawned. Without a name
/// it is called after the type `Of`.
#[track_caller]
pub(crate) fn spawn_made<Of, F>(name: Option<TaskName>, make: impl FnOnce() -> F) -> Task<F::Output>
where
    Of: 'static,
    F: Future + 'static,
    F::Output: 'static,
{
    let (mut make, location) = (Some((make, name)), Location::caller());
    let mut spawn = |local: &PinnedLocal| {
        local.thread.runtime().check_process();
        let (make, name) = make.take()?;
        let executor = Named {
            executor: local.thread.clone(),
            name,
        };
        if const { is_large::<F>() } {
            let future = Box::pin(make());
            return Some(local.spawn_as::<Of, _, _>(executor, future, location));
        }
        Some(local.spawn_as::<Of, _, _>(executor, make(), location))
    };
    let spawned = context::with(|context| match context.and_then(PinnedLocal::of) {
        Some(local) if !local.is_detached() => spawn(local),
        Some(_) => None,
        None => spawn((&*context::stage()? as &dyn Any).downcast_ref()?),
    });
    match spawned {
        Some(task) => task,
        None => panic!("`spawn_local` outside a pinned thread and a stage"),
    }
}

impl PinnedLocal {
    pub(super) fn new(thread: &Arc<PinnedThread>) -> Self {
        PinnedLocal {
            thread: thread.clone(),
            hand: RefCell::new(VecDeque::new()),
            hosted: RefCell::new(Slab::new()),
            is_ending: Cell::new(false),
        }
    }

    /// Returns the `PinnedLocal` of the thread whose context this is, if it is a pinned one.
    pub(super) fn of<'a>(context: &ThreadContext<'a>) -> Option<&'a PinnedLocal> {
        match context.role.get() {
            Role::Pinned(host) => (host as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// Calls `job` with the `PinnedLocal` of this thread, which must be a pinned one.
    pub(super) fn with<R>(job: impl FnOnce(&PinnedLocal) -> R) -> R {
        context::with(|context| match context.and_then(PinnedLocal::of) {
            Some(local) => job(local),
            None => unreachable!("jobs of a pinned thread run on it"),
        })
    }

    /// Spawns a plain task on this thread, at `location` in the program. If the thread is ending,
    /// the task is a cancelled one.
    pub(super) fn spawn<F>(
        &self,
        future: F,
        location: &'static Location<'static>,
    ) -> Task<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_as::<F, _, _>(self.thread.clone(), future, location)
    }

    /// Does the same with `executor`, which is this thread's. Without a name the task is called
    /// after the type `Of`.
    fn spawn_as<Of, H, F>(
        &self,
        executor: H,
        future: F,
        location: &'static Location<'static>,
    ) -> Task<F::Output>
    where
        Of: 'static,
        H: Executor,
        F: Future + 'static,
        F::Output: 'static,
    {
        if self.thread.is_closing() {
            contain(|| drop(future));
            return cancelled();
        }
        let kept = ThreadKeep::new(&self.thread);
        let future = future.map(move |value| {
            drop(kept);
            value
        });
        // SAFETY: (PINNED-1) this is its thread, since a `PinnedLocal` is not `Send`.
        unsafe { spawn_unchecked::<Of, _, _>(executor, future, Some(location)) }
    }

    pub(super) fn insert(&self, value: Rc<dyn Any>) -> usize {
        self.hosted.borrow_mut().insert(value)
    }

    pub(super) fn get(&self, key: usize) -> Option<Rc<dyn Any>> {
        self.hosted.borrow().get(key).cloned()
    }

    /// Takes all hosted values out.
    pub(super) fn take_hosted(&self) -> Slab<Rc<dyn Any>> {
        std::mem::take(&mut *self.hosted.borrow_mut())
    }

    pub(super) fn remove(&self, key: usize) -> Option<Rc<dyn Any>> {
        self.hosted.borrow_mut().try_remove(key)
    }
}
