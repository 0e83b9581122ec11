//! What is done to a source from outside of its actor: it is cancelled, or put into the background.
//!
//! The guard sets a switch and wakes the source, which looks at the switch before it gives anything. So a source
//! that was cancelled gives nothing, though it may have been ready before.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::task::Waker;

use futures_util::task::AtomicWaker;

use crate::contain::contain;
use crate::sync::atomic::{AtomicU32, Ordering};

/// What a source is to its actor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum Standing {
    /// It keeps the actor open.
    Foreground,
    Background,
    /// It is over.
    Cancelled,
}

/// What a source and its guard share.
pub(in crate::actor) struct Switch {
    standing: AtomicU32,
    source: AtomicWaker,
}

impl Switch {
    pub(in crate::actor) fn new() -> Arc<Self> {
        Arc::new(Switch {
            standing: AtomicU32::new(Standing::Foreground as u32),
            source: AtomicWaker::new(),
        })
    }

    /// Returns how the source stands; a change from now on wakes `waker`.
    pub(in crate::actor) fn look(&self, waker: &Waker) -> Standing {
        self.source.register(waker);
        // Acquire pairs with the Release in `set`; `register` and `wake` order the two looks.
        match self.standing.load(Ordering::Acquire) {
            standing if standing == Standing::Foreground as u32 => Standing::Foreground,
            standing if standing == Standing::Background as u32 => Standing::Background,
            _ => Standing::Cancelled,
        }
    }

    fn set(&self, standing: Standing) {
        // Release pairs with the Acquire in `look`.
        self.standing.store(standing as u32, Ordering::Release);
        contain(|| self.source.wake());
    }
}

/// Keeps a source of [`send_after`](crate::Context::send_after), [`send_every`](crate::Context::send_every)
/// or [`attach`](crate::Context::attach); dropping it cancels the source.
///
/// A source that was cancelled gives nothing, though it may have been ready before.
#[must_use = "a source is cancelled when its guard is dropped; `detach` lets it go on"]
pub struct SourceGuard(Option<Arc<Switch>>);

// It has a flag and a waker, which no panic leaves half changed.
impl UnwindSafe for SourceGuard {}
impl RefUnwindSafe for SourceGuard {}

impl SourceGuard {
    pub(in crate::actor) fn new(switch: Arc<Switch>) -> Self {
        SourceGuard(Some(switch))
    }

    /// Lets the source go on without a guard.
    pub fn detach(mut self) {
        self.0 = None;
    }

    /// Puts the source into the background: it does not keep the actor open.
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
    ///     assert_eq!(sum.join().await.unwrap(), 42); // the ticks have not kept it open
    /// });
    /// ```
    pub fn background(self) -> Self {
        if let Some(switch) = &self.0 {
            switch.set(Standing::Background);
        }
        self
    }
}

impl Drop for SourceGuard {
    fn drop(&mut self) {
        if let Some(switch) = &self.0 {
            switch.set(Standing::Cancelled);
        }
    }
}

impl fmt::Debug for SourceGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceGuard").finish_non_exhaustive()
    }
}
