//! `Pinned`: the handle of a pinned thread.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::Either;

use super::hosted::Hosted;
use super::thread::PinnedThread;
use crate::contain::{attempt, drop_refused};
use crate::error::HostFault;
use crate::runtime::{Inner, Runtime};
use crate::task::{ActorExecutor, Task, cancelled, is_large};

/// A thread with a single-thread executor, for futures and values that must stay on it.
///
/// A clone is cheap and refers to the same thread. The thread ends when no clone is left and no
/// task, actor or hosted value lives on it. It also ends with its runtime, which cancels what lives
/// there. A `Pinned` does not keep the runtime alive.
///
/// ```
/// use greenroom::{Context, Runtime, spawn};
/// use std::rc::Rc;
///
/// async fn counter(mut cx: Context<u32>) -> u32 {
///     let sum = Rc::new(std::cell::Cell::new(0)); // not `Send`
///     while let Some(number) = cx.recv().await {
///         sum.set(sum.get() + number);
///     }
///     sum.get()
/// }
///
/// greenroom::run(async {
///     let pinned = Runtime::current().spawn_pinned("counter").unwrap();
///     let counter = spawn!(counter(_), on = &pinned);
///     counter.tell(42).unwrap();
///     assert_eq!(counter.join().await.unwrap(), 42);
/// });
/// ```
///
/// # Lua, Python, COM
///
/// Other libraries that are bound to a thread are used in the same way. These sketches are compiled
/// and run. Small `!Send` types stand in for the libraries.
///
/// A Lua state is a value that many tasks call. It is created on its thread, which may fail:
///
/// ```
/// # #[derive(Debug)]
/// # struct LuaError;
/// # struct Lua(std::collections::HashMap<String, i64>, std::marker::PhantomData<*mut ()>);
/// # impl Lua {
/// #     fn new() -> Result<Lua, LuaError> { Ok(Lua(Default::default(), Default::default())) }
/// #     fn add(&mut self, name: &str, n: i64) { *self.0.entry(name.into()).or_default() += n; }
/// #     fn get(&self, name: &str) -> Result<i64, LuaError> {
/// #         self.0.get(name).copied().ok_or(LuaError)
/// #     }
/// # }
/// use greenroom::{Runtime, spawn};
///
/// greenroom::run(async {
///     let thread = Runtime::current().spawn_pinned("lua").unwrap();
///     let lua = thread.try_host(Lua::new).await.unwrap().unwrap();
///     let sums = (1..=4).map(|n| {
///         let lua = lua.clone();
///         spawn(async move { lua.with_mut(move |lua| lua.add("total", n)).await })
///     });
///     for sum in sums.collect::<Vec<_>>() {
///         sum.await.unwrap();
///     }
///     assert_eq!(lua.with(|lua| lua.get("total")).await.unwrap().unwrap(), 10);
/// });
/// ```
///
/// A Python interpreter that one thread initializes, runs and finalizes is an actor that receives
/// scripts:
///
/// ```
/// # #[derive(Debug, PartialEq)]
/// # struct PyErr;
/// # struct Python(std::marker::PhantomData<*mut ()>);
/// # impl Python {
/// #     fn initialize() -> Python { Python(std::marker::PhantomData) }
/// #     fn eval(&self, script: &str) -> Result<i64, PyErr> {
/// #         let terms = script.split('+').map(|term| term.trim().parse::<i64>());
/// #         terms.sum::<Result<i64, _>>().map_err(|_| PyErr)
/// #     }
/// # }
/// use greenroom::{Context, Reply, Runtime, spawn};
///
/// struct Script(&'static str, Reply<Result<i64, PyErr>>);
///
/// async fn interpreter(mut cx: Context<Script>) {
///     let python = Python::initialize(); // held over each `await`, so the future is not `Send`
///     while let Some(Script(script, reply)) = cx.recv().await {
///         reply.send(python.eval(script));
///     }
/// }
///
/// greenroom::run(async {
///     let thread = Runtime::current().spawn_pinned("python").unwrap();
///     let python = spawn!(interpreter(_), on = &thread);
///     let eval = |script| python.ask(move |reply| Script(script, reply));
///     assert_eq!(eval("40 + 2").await, Ok(Ok(42)));
///     assert_eq!(eval("40 +").await, Ok(Err(PyErr)));
/// });
/// ```
///
/// A COM apartment is initialized on a thread before its first object is created, and uninitialized
/// after the last object is dropped. In between, the thread pumps messages. So the thread is a
/// [`Stage`](crate::Stage), and the apartment is a local variable declared before the stage:
///
/// ```
/// # use std::{cell::Cell, marker::PhantomData, rc::Rc, sync::mpsc};
/// # thread_local!(static IS_INITIALIZED: Cell<bool> = const { Cell::new(false) });
/// # struct Apartment(PhantomData<*mut ()>);
/// # impl Apartment {
/// #     fn initialize() -> Apartment { IS_INITIALIZED.set(true); Apartment(PhantomData) }
/// # }
/// # impl Drop for Apartment { fn drop(&mut self) { IS_INITIALIZED.set(false); } }
/// # #[derive(Default)]
/// # struct Sheet(i64, Rc<()>);
/// # impl Sheet {
/// #     fn create() -> Sheet { assert!(IS_INITIALIZED.get()); Sheet::default() }
/// #     fn put(&mut self, n: i64) -> i64 { self.0 += n; self.0 }
/// # }
/// # impl Drop for Sheet { fn drop(&mut self) { assert!(IS_INITIALIZED.get()); } }
/// # enum Message { Run, Quit }
/// use greenroom::Runtime;
///
/// let runtime = Runtime::new()?;
/// let _apartment = Apartment::initialize(); // dropped after the stage and all that lives on it
/// let stage = runtime.pinned_here();
/// let (post, messages) = mpsc::channel(); // the thread's message queue
/// let (wake, quit) = (post.clone(), post);
/// stage.on_wake(move || wake.send(Message::Run).unwrap());
///
/// let sheet = stage.block_on(stage.host(Sheet::create)).unwrap();
/// let sum = runtime.spawn(async move {
///     sheet.with_mut(|sheet| sheet.put(40)).await.unwrap();
///     let sum = sheet.with_mut(|sheet| sheet.put(2)).await.unwrap();
///     quit.send(Message::Quit).unwrap();
///     sum
/// });
/// while let Ok(Message::Run) = messages.recv() {
///     stage.run_ready();
/// }
/// assert_eq!(stage.block_on(sum), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub struct Pinned {
    pub(super) thread: Arc<PinnedThread>,
}

impl Pinned {
    pub(crate) fn start(runtime: &Arc<Inner>, name: String) -> std::io::Result<Pinned> {
        // A new pinned thread starts with one keep, which this handle owns.
        Ok(Pinned {
            thread: PinnedThread::start(runtime, name)?,
        })
    }

    /// Starts a thread for one actor of this name. This handle keeps the thread until the actor
    /// does.
    pub(crate) fn start_detached(
        runtime: &Arc<Inner>,
        name: Option<&str>,
    ) -> std::io::Result<Pinned> {
        Ok(Pinned {
            thread: PinnedThread::start_detached(runtime, name)?,
        })
    }

    pub(crate) fn thread(&self) -> &Arc<PinnedThread> {
        &self.thread
    }

    /// Spawns a plain task on the thread: `make` is called there and its future stays there.
    ///
    /// If the thread has ended or is ending, the returned task is a cancelled one.
    #[track_caller]
    pub fn spawn<F, Fut>(&self, make: F) -> Task<Fut::Output>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        self.thread.runtime().check_process();
        self.spawn_at(Some(Location::caller()), make)
    }

    /// Spawns the future of `make`. Not inlined: so the stack of the caller has no copy of a large
    /// closure.
    #[inline(never)]
    fn spawn_at<F, Fut>(
        &self,
        location: Option<&'static Location<'static>>,
        make: F,
    ) -> Task<Fut::Output>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        if self.thread.is_closing() {
            drop_refused(make);
            return cancelled();
        }
        if const { is_large::<F>() || is_large::<Fut>() } {
            let make = Box::new(make);
            return PinnedThread::spawn(&self.thread, || Box::pin(make()), location);
        }
        PinnedThread::spawn(&self.thread, make, location)
    }

    /// Creates a value on the thread and keeps it there; the returned `Hosted` calls it from any
    /// thread.
    ///
    /// # Errors
    /// [`HostFault`] if `make` panicked or the thread has ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, a value that was already created is dropped on its thread.
    ///
    /// ```
    /// greenroom::run(async {
    ///     let pinned = greenroom::Runtime::current().spawn_pinned("lua").unwrap();
    ///     let list = pinned.host(|| std::rc::Rc::new(vec![1, 2])).await.unwrap();
    ///     assert_eq!(list.with(|list| list.len()).await.unwrap(), 2);
    /// });
    /// ```
    pub fn host<T, F>(&self, make: F) -> impl Future<Output = Result<Hosted<T>, HostFault>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: 'static,
    {
        let outcome = |made: Result<_, Infallible>| match made {
            Ok(hosted) => hosted,
            Err(never) => match never {},
        };
        if const { is_large::<F>() } {
            let make = Box::new(make);
            return Either::Left(self.host_as(|| Ok(make()), outcome));
        }
        Either::Right(self.host_as(|| Ok(make()), outcome))
    }

    /// Does what [`host`](Pinned::host) does, for a value whose creation can fail. The inner result
    /// is that of `make`.
    ///
    /// # Errors
    /// [`HostFault`] if `make` panicked or the thread has ended.
    ///
    /// # Cancel safety
    /// As [`host`](Pinned::host).
    ///
    /// ```
    /// greenroom::run(async {
    ///     let pinned = greenroom::Runtime::current().spawn_pinned("numbers").unwrap();
    ///     let number = pinned.try_host(|| "42".parse::<u32>()).await.unwrap().unwrap();
    ///     assert_eq!(number.with(|number| *number).await.unwrap(), 42);
    ///     assert!(pinned.try_host(|| "forty-two".parse::<u32>()).await.unwrap().is_err());
    /// });
    /// ```
    pub fn try_host<T, E, F>(
        &self,
        make: F,
    ) -> impl Future<Output = Result<Result<Hosted<T>, E>, HostFault>>
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: 'static,
        E: Send + 'static,
    {
        if const { is_large::<F>() } {
            return Either::Left(self.host_as(Box::new(make), |made| made));
        }
        Either::Right(self.host_as(make, |made| made))
    }

    /// Does what [`try_host`](Pinned::try_host) does, with an outcome that `outcome` makes of the
    /// inner result.
    async fn host_as<T, E, F, X>(
        &self,
        make: F,
        outcome: fn(Result<Hosted<T>, E>) -> X,
    ) -> Result<X, HostFault>
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: 'static,
        E: Send + 'static,
    {
        if !self.thread.runtime().is_here() {
            return Err(HostFault::Gone);
        }
        let thread = self.thread.clone();
        // As with calls of the value, the thread is there for it.
        let made = self.spawn_at(None, move || async move {
            match attempt(|| make().map(|value| Rc::new(RefCell::new(value)))) {
                Ok(made) => Ok(made.map(|value| Hosted::new(&thread, value))),
                Err(panic) => Err(HostFault::Panicked(panic)),
            }
        });
        let made = made.fallible().await;
        made.unwrap_or(Err(HostFault::Gone)).map(outcome)
    }
}

impl Runtime {
    /// Starts a thread with a single-thread executor, for values that must not leave their thread.
    ///
    /// # Errors
    /// - The error of the operating system if it could not start the thread.
    /// - `InvalidInput` if the name contains a NUL.
    /// - An error of kind `Other` if the runtime is shutting down, or belongs to the parent of this
    ///   process.
    pub fn spawn_pinned(&self, name: impl Into<String>) -> std::io::Result<Pinned> {
        Pinned::start(self.inner(), name.into())
    }
}

impl Clone for Pinned {
    fn clone(&self) -> Self {
        self.thread.keep();
        Pinned {
            thread: self.thread.clone(),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.thread.let_go();
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned")
            .field("name", &self.thread.name())
            .finish_non_exhaustive()
    }
}
