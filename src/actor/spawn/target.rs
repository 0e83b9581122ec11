//! The places where an actor can run.
//!
//! A place that is not running any more is refused when the actor is spawned.

use std::sync::Arc;

use crate::contain::{contain, drop_refused};
use crate::error::SpawnProblem;
use crate::pinned::{Pinned, PinnedThread, Stage};
use crate::runtime::{Inner, Runtime, context};

/// The default place of an actor: the current runtime. In a task of a tokio runtime that is
/// [bound](crate::docs::with_tokio), it is that tokio runtime.
#[derive(Debug, Clone, Copy)]
pub struct Current;

/// A place for one actor: a dedicated thread, for actors that block.
///
/// The thread belongs to the current runtime. It starts when the actor is spawned, and ends with
/// the actor. It is named after the actor, or `greenroom-detached` if the actor has no name. The
/// actor's future need not be `Send`. Whatever the actor itself spawns runs on the workers.
///
/// # Blocking
/// The actor may block in a system call, or in [`block_on`](Runtime::block_on), which simply waits
/// there. That delays only code that waits for this actor. Nothing interrupts a blocking call: a
/// `kill` takes effect after the call returns. If the call does not return in time, a shutdown
/// leaves the thread behind.
///
/// ```
/// use greenroom::{Context, Detached, spawn};
/// use std::sync::mpsc;
///
/// async fn reader(_cx: Context<()>, lines: mpsc::Receiver<String>) -> usize {
///     lines.iter().count() // blocks until the sender is dropped
/// }
///
/// greenroom::run(async {
///     let (line, lines) = mpsc::channel();
///     let reader = spawn!(reader(_, lines), name = "reader", on = Detached);
///     line.send("hello".into()).unwrap();
///     drop(line);
///     assert_eq!(reader.join().await.unwrap(), 1);
/// });
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Detached;

/// A place where actors with the future `Fut` can run.
///
/// This trait is implemented for the places that [`on`](crate::ActorBuilder::on) accepts. A runtime
/// requires that the future is `Send`, since any of its workers may poll it. So does a tokio runtime
/// (feature `tokio`). A pinned or dedicated thread does not.
#[diagnostic::on_unimplemented(
    message = "an actor with this future cannot run on `{Self}`",
    note = "the workers of a runtime need a future that is `Send`",
    note = "others can run on a pinned thread, `on = &pinned`, or on a thread of their own, \
            `on = greenroom::Detached`",
    note = "with the feature `tokio`, a `tokio::runtime::Handle` is a place by reference: \
            `on = &handle`"
)]
pub trait SpawnTarget<Fut>: sealed::ExecutorSource {}

/// A place where an actor that was made on this thread can be spawned.
///
/// `A` is the function, closure or value, with its arguments. It must be `Send`, unless the place is
/// the [`Stage`] of this thread, which it never leaves.
#[diagnostic::on_unimplemented(
    message = "an actor cannot be spawned on `{Self}`",
    note = "places are `on = &runtime`, `on = &pinned`, `on = &stage`, `on = greenroom::Detached`",
    note = "with the feature `tokio`, a `tokio::runtime::Handle` is a place by reference: \
            `on = &handle`"
)]
pub trait SpawnFrom<A>: sealed::ExecutorSource {
    /// Drops an actor that a shutdown has refused.
    #[doc(hidden)]
    fn drop_refused(actor: A);
}

macro_rules! spawn_from_send {
    ($($place:ty),*) => {$(
        impl<A: Send + 'static> SpawnFrom<A> for $place {
            fn drop_refused(actor: A) {
                drop_refused(actor);
            }
        }
    )*};
}

spawn_from_send!(Current, &Runtime, &Pinned, Detached);

impl<A> SpawnFrom<A> for &Stage {
    fn drop_refused(actor: A) {
        contain(|| drop(actor));
    }
}

pub(super) mod sealed {
    use crate::error::SpawnProblem;

    /// Seals `SpawnTarget`. The types here are public in name only.
    pub trait ExecutorSource {
        type Executor: crate::task::ActorExecutor;
        /// A value that keeps the executor until the actor itself does.
        type Kept;

        /// Returns an executor for an actor with this name and priority.
        fn executor(
            &self,
            name: Option<&str>,
            priority: u8,
        ) -> Result<(Self::Executor, Self::Kept), SpawnProblem>;
    }
}

use sealed::ExecutorSource;

#[cfg(not(feature = "tokio"))]
impl ExecutorSource for Current {
    type Executor = Arc<Inner>;
    type Kept = ();

    fn executor(&self, _: Option<&str>, priority: u8) -> Result<(Arc<Inner>, ()), SpawnProblem> {
        let runtime = context::runtime().ok_or(SpawnProblem::NoRuntime)?;
        check(&runtime, priority)?;
        Ok((runtime, ()))
    }
}

impl ExecutorSource for &Runtime {
    type Executor = Arc<Inner>;
    type Kept = ();

    fn executor(&self, _: Option<&str>, priority: u8) -> Result<(Arc<Inner>, ()), SpawnProblem> {
        check(self.inner(), priority)?;
        Ok((self.inner().clone(), ()))
    }
}

impl ExecutorSource for &Pinned {
    type Executor = Arc<PinnedThread>;
    type Kept = ();

    fn executor(
        &self,
        _: Option<&str>,
        priority: u8,
    ) -> Result<(Arc<PinnedThread>, ()), SpawnProblem> {
        check(self.thread().runtime(), priority)?;
        Ok((self.thread().clone(), ()))
    }
}

impl ExecutorSource for &Stage {
    type Executor = Arc<PinnedThread>;
    type Kept = ();

    fn executor(
        &self,
        name: Option<&str>,
        priority: u8,
    ) -> Result<(Arc<PinnedThread>, ()), SpawnProblem> {
        let pinned: &Pinned = self;
        pinned.executor(name, priority)
    }
}

impl ExecutorSource for Detached {
    type Executor = Arc<PinnedThread>;
    type Kept = Pinned;

    fn executor(
        &self,
        name: Option<&str>,
        priority: u8,
    ) -> Result<(Arc<PinnedThread>, Pinned), SpawnProblem> {
        let runtime = context::runtime().ok_or(SpawnProblem::NoRuntime)?;
        // Checked before a thread is started.
        check(&runtime, priority)?;
        let own = Pinned::start_detached(&runtime, name)
            .map_err(|error| SpawnProblem::Thread(error.kind()))?;
        Ok((own.thread().clone(), own))
    }
}

pub(super) fn check(runtime: &Inner, priority: u8) -> Result<(), SpawnProblem> {
    if !runtime.is_here() {
        return Err(SpawnProblem::Forked);
    }
    let highest = runtime.options().priorities;
    if priority > highest {
        return Err(SpawnProblem::Priority { priority, highest });
    }
    Ok(())
}

// The compiler shows these lines to users whose futures are not `Send`.
impl<Fut: Send> SpawnTarget<Fut> for Current {} // not `Send`: `on = &pinned` or `on = Detached`
impl<Fut: Send> SpawnTarget<Fut> for &Runtime {} // not `Send`: `on = &pinned` or `on = Detached`
impl<Fut> SpawnTarget<Fut> for &Pinned {}
impl<Fut> SpawnTarget<Fut> for &Stage {}
impl<Fut> SpawnTarget<Fut> for Detached {}
