//! Values of a task: set for a future, and found by what it calls.
//!
//! The values that are in scope are a list, shared by those that inherit it. A future with a scope
//! puts its list into a thread-local for each of its polls. So code that sets no value costs
//! nothing, neither in a task nor at a spawn.
//!
//! # Invariants
//! - LOCAL-1: the thread-local has the list of the innermost poll or call with a scope. Each puts
//!   back what it has found, also if it panics.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::contain::OnDrop;

/// Declares values of tasks: each `static` is a [`TaskLocal`].
///
/// ```
/// use greenroom::{inherit, spawn, task_local};
///
/// task_local! {
///     /// The number of the request for which a task works.
///     pub static REQUEST: u64;
///     static USER: String;
/// }
///
/// fn log(text: &str) -> String {
///     REQUEST.with(|request| format!("[{request}] {text}"))
/// }
///
/// greenroom::run(REQUEST.scope(7, async {
///     assert_eq!(log("begins"), "[7] begins");
///     // A task that is spawned has the values only if it inherits them.
///     let (own, other) = (spawn(inherit(async { log("reads") })), spawn(async { REQUEST.get() }));
///     assert_eq!(own.await, "[7] reads");
///     assert!(other.await.is_none() && USER.get().is_none());
/// }));
/// ```
#[macro_export]
macro_rules! task_local {
    () => {};
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty $(; $($rest:tt)*)?) => {
        $(#[$attribute])*
        $vis static $name: $crate::TaskLocal<$type> = $crate::TaskLocal::new();
        $($crate::task_local!($($rest)*);)?
    };
}

/// A value that a task or an actor may have, declared with [`task_local!`](crate::task_local!).
///
/// [`scope`](TaskLocal::scope) sets it for a future, on whatever executor that is polled. What the
/// future calls finds it, and so do futures that it awaits. A task that it spawns does not, unless
/// it [inherits](inherit) the values. Scopes nest, and the innermost one is found.
///
/// Values are shared and are `Send + Sync`, since they may be inherited by tasks of other threads.
///
/// ```
/// use greenroom::{Context, Reply, spawn, task_local};
///
/// task_local!(static TENANT: &'static str);
///
/// async fn clerk(mut cx: Context<Reply<&'static str>>) {
///     while let Some(reply) = cx.recv().await {
///         reply.send(TENANT.get().unwrap());
///     }
/// }
///
/// greenroom::run(TENANT.scope("blue", async {
///     let clerk = spawn!(clerk(_), inherit);
///     assert_eq!(clerk.ask(|reply| reply).await, Ok("blue"));
/// }));
/// ```
pub struct TaskLocal<T: 'static> {
    /// So that each one has an address of its own, which is its key.
    _place: u8,
    _of: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> TaskLocal<T> {
    #[doc(hidden)]
    pub const fn new() -> Self {
        TaskLocal {
            _place: 0,
            _of: PhantomData,
        }
    }

    fn key(&'static self) -> usize {
        ptr::from_ref(self).addr()
    }

    fn node(&'static self, value: T, outer: Option<SharedNode>) -> SharedNode {
        Arc::new(LocalNode {
            key: self.key(),
            outer,
            value,
        })
    }

    /// Returns a future that runs `future` with this value.
    ///
    /// The other values are those that are in scope at its first poll. The value is still there
    /// while `future` is dropped.
    ///
    /// # Panics
    /// The future panics if `future` does.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub fn scope<F: IntoFuture>(&'static self, value: T, future: F) -> LocalScope<F::IntoFuture> {
        LocalScope {
            head: Some(self.node(value, None)),
            has_begun: false,
            future: Some(future.into_future()),
        }
    }

    /// Calls `f` with this value.
    ///
    /// # Panics
    /// If `f` does. The value is not set any more then.
    pub fn sync_scope<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        TaskLocals(Some(self.node(value, TaskLocals::current().0))).run(f)
    }

    /// Calls `f` with the value.
    ///
    /// # Panics
    /// If the value is not set here, and if `f` does.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// Calls `f` with the value, if it is set here.
    ///
    /// # Errors
    /// [`LocalUnset`] if it is not; `f` is not called then.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, LocalUnset> {
        let mut next = TaskLocals::current().0;
        while let Some(node) = next {
            if node.key == self.key()
                && let Some(value) = node.value.downcast_ref()
            {
                return Ok(f(value));
            }
            next = node.outer.clone();
        }
        Err(LocalUnset)
    }

    /// Returns a clone of the value, or `None` if it is not set here.
    pub fn get(&'static self) -> Option<T>
    where
        T: Clone,
    {
        self.try_with(T::clone).ok()
    }
}

impl<T> fmt::Debug for TaskLocal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLocal").finish_non_exhaustive()
    }
}

/// An error of [`TaskLocal::try_with`]: the value is not set here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalUnset;

impl fmt::Display for LocalUnset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this value of a task is not set here: set it with `scope`, and let a task that is \
             spawned `inherit` it",
        )
    }
}

impl std::error::Error for LocalUnset {}

type SharedNode = Arc<LocalNode<dyn Any + Send + Sync>>;

/// A value that is set, and those that were in scope before.
struct LocalNode<V: ?Sized> {
    key: usize,
    outer: Option<SharedNode>,
    value: V,
}

std::thread_local! {
    /// What is in scope (LOCAL-1).
    static HEAD: Cell<Option<SharedNode>> = const { Cell::new(None) };
}

/// Exchanges what is in scope on this thread for `own`. When its thread-locals are gone, nothing is
/// in scope.
fn exchange(own: &mut Option<SharedNode>) {
    let _ = HEAD.try_with(|head| *own = head.replace(own.take()));
}

/// All values that are in scope somewhere, to be in scope elsewhere: in a task that is spawned
/// later, in a job of [`unblock`](crate::unblock()), of a [market](crate::market) or of a
/// [looper](crate::looper).
///
/// ```
/// use greenroom::{TaskLocals, task_local, unblock};
///
/// task_local!(static REQUEST: u64);
///
/// greenroom::run(REQUEST.scope(7, async {
///     let values = TaskLocals::current();
///     let job = unblock(move || values.run(|| REQUEST.get()));
///     assert_eq!(job.await, Some(7));
/// }));
/// ```
#[derive(Clone, Default)]
pub struct TaskLocals(Option<SharedNode>);

impl TaskLocals {
    /// Returns the values that are in scope here.
    pub fn current() -> Self {
        let mut own = None;
        exchange(&mut own);
        let current = TaskLocals(own.clone());
        exchange(&mut own);
        current
    }

    /// Calls `f` with these values in scope, and no others.
    ///
    /// # Panics
    /// If `f` does. What was in scope before is so again then.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        let mut own = self.0;
        exchange(&mut own);
        let _restore = OnDrop(|| exchange(&mut own));
        f()
    }

    /// Returns a future that runs `future` with these values in scope, and no others.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub fn scope<F: IntoFuture>(self, future: F) -> LocalScope<F::IntoFuture> {
        LocalScope {
            head: self.0,
            has_begun: true,
            future: Some(future.into_future()),
        }
    }
}

impl fmt::Debug for TaskLocals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = std::iter::successors(self.0.as_ref(), |node| node.outer.as_ref());
        f.debug_struct("TaskLocals")
            .field("values", &nodes.count())
            .finish()
    }
}

/// Returns a future that runs `future` with all values that are in scope now.
///
/// So a task that is spawned with it has the [values](TaskLocal) of the task that spawns it. An
/// actor has them with the option `inherit`. For jobs there is [`TaskLocals`].
///
/// # Panics
/// The future panics if `future` does.
///
/// # Cancel safety
/// As cancel safe as `future`.
///
/// ```
/// use greenroom::{inherit, spawn, task_local};
///
/// task_local!(static REQUEST: u64);
///
/// greenroom::run(REQUEST.scope(7, async {
///     let parts = [1, 2].map(|part| spawn(inherit(async move { (part, REQUEST.get()) })));
///     for (part, task) in (1..).zip(parts) {
///         assert_eq!(task.await, (part, Some(7)));
///     }
/// }));
/// ```
pub fn inherit<F: IntoFuture>(future: F) -> LocalScope<F::IntoFuture> {
    TaskLocals::current().scope(future)
}

pin_project! {
    /// The future of [`TaskLocal::scope`], [`TaskLocals::scope`] and [`inherit`].
    #[must_use = "futures do nothing unless polled"]
    pub struct LocalScope<F> {
        head: Option<SharedNode>,
        // Whether the head has what was in scope at the first poll.
        has_begun: bool,
        // `None` once it was dropped.
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for LocalScope<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            exchange(this.head);
            let _restore = OnDrop(|| exchange(this.head));
            this.future.set(None);
        }
    }
}

impl<F: Future> Future for LocalScope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if !std::mem::replace(this.has_begun, true)
            && let Some(own) = this.head.as_mut().and_then(Arc::get_mut)
        {
            own.outer = TaskLocals::current().0;
        }
        exchange(this.head);
        let _restore = OnDrop(|| exchange(this.head));
        let future = this.future.as_pin_mut();
        future.expect("the future is there until the drop").poll(cx)
    }
}

impl<F> fmt::Debug for LocalScope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalScope").finish_non_exhaustive()
    }
}
