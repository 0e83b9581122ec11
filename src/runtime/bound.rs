//! Which greenroom runtime a tokio runtime is bound to.
//!
//! Where no runtime of greenroom is current, that of the tokio runtime is. A binding does not keep
//! a runtime alive.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::runtime::{Handle, Id};

use super::handle::Runtime;
use super::inner::Inner;
use crate::sync::global::{AtomicU64, Ordering};
use crate::sync::{Mutex, PerProcess};

/// Whether a runtime was ever bound in this process, as a number.
static IS_USED: AtomicU64 = AtomicU64::new(0);

fn bindings() -> &'static Mutex<HashMap<Id, Weak<Inner>>> {
    static BINDINGS: PerProcess<Mutex<HashMap<Id, Weak<Inner>>>> = PerProcess::new();
    BINDINGS.get_or_init(|| Mutex::new(HashMap::new()))
}

/// Returns the runtime to which the tokio runtime of this thread is bound, and that tokio runtime.
pub(super) fn bound_here() -> Option<(Arc<Inner>, Handle)> {
    // Relaxed: a thread that relies on a binding was told of it by other means. It publishes
    // nothing.
    if IS_USED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let handle = Handle::try_current().ok()?;
    let bound = bindings().lock().get(&handle.id())?.upgrade();
    Some((bound?, handle))
}

impl Runtime {
    /// Makes this the [current](Runtime::current) runtime in all tasks of a tokio runtime, with the
    /// actors that run there.
    ///
    /// So names, groups, supervisors, spools, [`spawn`](crate::spawn()) and
    /// [`unblock`](crate::unblock()) work in such a task as on a thread of this runtime. An actor
    /// that is spawned there without the option `on` runs on the tokio runtime, too, since an ask
    /// between the two runtimes costs 80 times as much as one within. All else that is spawned
    /// there runs on this runtime. [Beside tokio](crate::docs::with_tokio) has a table.
    ///
    /// The binding lasts until another runtime is bound to that tokio runtime, or until this one is
    /// gone. It keeps neither of them alive. When this runtime shuts down, an actor that is spawned
    /// there is refused, and those that run there go on.
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
        // Relaxed: as above.
        IS_USED.store(1, Ordering::Relaxed);
        let mut bindings = bindings().lock();
        bindings.retain(|_, runtime| runtime.strong_count() > 0);
        bindings.insert(handle.id(), Arc::downgrade(&self.inner));
    }
}
