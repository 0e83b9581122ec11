//! The controls of a source outside its actor: cancel it, or put it into the background.
//!
//! The guard sets a switch and wakes the source, which checks the switch before it yields an item.
//! A cancelled source therefore yields nothing, even if it was ready before. All clones of a guard
//! share one switch, and the drop of the last one cancels.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::task::Waker;

use crate::contain::KeptWaker;
use crate::runtime::context;
use crate::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::sync::{Mutex, Process};

/// The state of a source, as its actor treats it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum Standing {
    /// The source keeps the actor open.
    Foreground,
    Background,
    /// The source has ended.
    Cancelled,
}

/// The state that a source and its guards share.
pub(in crate::actor) struct Switch {
    standing: AtomicU32,
    /// The number of guards that are not dropped. One that was detached stays counted.
    guards: AtomicUsize,
    source: Mutex<Option<KeptWaker>>,
    process: Process,
}

impl Switch {
    pub(in crate::actor) fn new(standing: Standing) -> Arc<Self> {
        Arc::new(Switch {
            standing: AtomicU32::new(standing as u32),
            guards: AtomicUsize::new(1),
            source: Mutex::new(None),
            process: Process::current(),
        })
    }

    /// Returns the state of the source. A later change wakes `waker`.
    pub(in crate::actor) fn look(&self, waker: &Waker) -> Standing {
        let is_new = |kept: &Option<KeptWaker>| kept.as_ref().is_none_or(|it| !it.will_wake(waker));
        if is_new(&self.source.lock()) {
            let kept = KeptWaker::new(waker);
            let before = self.source.lock().replace(kept);
            drop(before);
        }
        // Acquire pairs with the Release in `set`. The lock orders this load with `set`: either it
        // sees the new state, or `set` wakes the source.
        match self.standing.load(Ordering::Acquire) {
            standing if standing == Standing::Foreground as u32 => Standing::Foreground,
            standing if standing == Standing::Background as u32 => Standing::Background,
            _ => Standing::Cancelled,
        }
    }

    fn set(&self, standing: Standing) {
        context::apply_effects();
        // Release pairs with the Acquire in `look`.
        self.standing.store(standing as u32, Ordering::Release);
        // At a fork, a thread of the parent may have held the lock.
        if !self.process.is_current() {
            return;
        }
        let source = self.source.lock().take();
        if let Some(source) = source {
            source.wake();
        }
    }
}

/// A guard for a source that cancels the source when dropped.
///
/// It is returned by [`send_after`](crate::Context::send_after),
/// [`send_every`](crate::Context::send_every), [`attach`](crate::Context::attach) and
/// [`watch`](crate::Context::watch). A cancelled source yields nothing, even if it was ready before.
///
/// A clone guards the same source, which is cancelled when the last clone is dropped. So a guard
/// can be a part of a state that is cloned, as that of a [machine](crate::machine) with
/// [restarts](crate::ActorBuilder::restart):
///
/// ```
/// use greenroom::{Context, SourceGuard, spawn};
/// use std::time::Duration;
///
/// #[derive(Clone)]
/// struct Waiting {
///     text: String,
///     _deadline: SourceGuard,
/// }
///
/// async fn patient(mut cx: Context<Option<&'static str>>) -> String {
///     let mut message = cx.recv().await.flatten();
///     let deadline = cx.send_after(Duration::from_millis(1), None);
///     let mut state = Waiting { text: String::new(), _deadline: deadline };
///     while let Some(text) = message {
///         let mut next = state.clone();
///         next.text.push_str(text);
///         state = next; // the clone keeps the deadline
///         message = cx.recv().await.flatten();
///     }
///     state.text
/// }
///
/// greenroom::run(async {
///     let patient = spawn!(patient(_));
///     patient.tell(Some("so far")).unwrap();
///     assert_eq!(patient.join().await.unwrap(), "so far");
/// });
/// ```
#[must_use = "dropping the guard cancels the source; `detach` keeps the source"]
pub struct SourceGuard(Option<Arc<Switch>>);

// The fields are a flag and a waker, which a panic leaves consistent.
impl UnwindSafe for SourceGuard {}
impl RefUnwindSafe for SourceGuard {}

impl SourceGuard {
    pub(in crate::actor) fn new(switch: Arc<Switch>) -> Self {
        SourceGuard(Some(switch))
    }

    /// Drops the guard and keeps the source, whatever happens to other clones.
    pub fn detach(mut self) {
        self.0 = None;
    }

    /// Puts the source into the background, where it does not keep the actor open. That holds for
    /// all clones.
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    /// use std::time::Duration;
    ///
    /// async fn sum(mut cx: Context<Option<u32>>) -> u32 {
    ///     let _tick = cx.send_every(Duration::from_secs(1), || None).background();
    ///     let mut sum = 0;
    ///     while let Some(message) = cx.recv().await {
    ///         match message {
    ///             Some(number) => sum += number,
    ///             None => println!("{sum} so far"),
    ///         }
    ///     }
    ///     sum
    /// }
    ///
    /// greenroom::run(async {
    ///     let sum = spawn!(sum(_));
    ///     sum.tell(Some(42)).unwrap();
    ///     assert_eq!(sum.join().await.unwrap(), 42); // the ticks did not keep it open
    /// });
    /// ```
    pub fn background(self) -> Self {
        if let Some(switch) = &self.0 {
            switch.set(Standing::Background);
        }
        self
    }
}

impl Clone for SourceGuard {
    fn clone(&self) -> Self {
        if let Some(switch) = &self.0 {
            // Relaxed: this guard is counted meanwhile, and nothing is published.
            switch.guards.fetch_add(1, Ordering::Relaxed);
        }
        SourceGuard(self.0.clone())
    }
}

impl Drop for SourceGuard {
    fn drop(&mut self) {
        let Some(switch) = &self.0 else { return };
        // Release pairs with the Acquire of the last drop: what other guards have set comes before.
        if switch.guards.fetch_sub(1, Ordering::AcqRel) == 1 {
            switch.set(Standing::Cancelled);
        }
    }
}

impl fmt::Debug for SourceGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceGuard").finish_non_exhaustive()
    }
}
