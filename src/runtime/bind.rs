//! The binding of a tokio runtime, as a method of a runtime.
//!
//! What is bound is in `bound.rs`, where the context of a thread looks.

use tokio::runtime::Handle;

use super::bound;
use super::handle::Runtime;

impl Runtime {
    /// Makes this the [current](Runtime::current) runtime in all tasks of a tokio runtime, with the
    /// actors that run there.
    ///
    /// So names, groups, supervisors, spools, [`spawn`](crate::spawn()) and
    /// [`unblock`](crate::unblock()) work in such a task as on a thread of this runtime. An actor
    /// that is spawned there without the option `on` runs on the tokio runtime, too: an ask between
    /// the two costs 80 times as much as one within. All else that is spawned there runs on this
    /// runtime. [Beside tokio](crate::docs::with_tokio) has a table.
    ///
    /// The binding lasts until another runtime is bound to that tokio runtime, or until this one is
    /// gone. It keeps neither of them alive. When this runtime shuts down, an actor that is spawned
    /// there is refused, and those that run there go on. It is the same if this runtime has shut down
    /// already.
    ///
    /// A [simulated](crate::policy::Simulated) runtime may be bound as well. The actors there run on
    /// tokio's threads and in real time then, which no seed repeats. All else waits until the thread
    /// of the simulation drives it.
    ///
    /// ```
    /// use greenroom::registry::Name;
    /// use greenroom::{Context, Reply, Runtime, spawn};
    ///
    /// const CLOCK: Name<Reply<&str>> = Name::new("clock");
    ///
    /// async fn clock(mut cx: Context<Reply<&'static str>>) {
    ///     while let Some(reply) = cx.recv().await {
    ///         tokio::time::sleep(std::time::Duration::from_millis(1)).await; // needs tokio
    ///         reply.send("tick");
    ///     }
    /// }
    ///
    /// let mut builder = tokio::runtime::Builder::new_multi_thread();
    /// let tokio = builder.worker_threads(1).enable_time().build()?;
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// runtime.bind(tokio.handle());
    /// tokio.block_on(async {
    ///     let clock = spawn!(clock(_)); // a task of tokio
    ///     CLOCK.register(&clock).unwrap();
    ///     let found = CLOCK.get().unwrap();
    ///     assert_eq!(found.ask(|reply| reply).await, Ok("tick"));
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bind(&self, handle: &Handle) {
        bound::bind(handle, &self.inner);
    }
}
