//! The futures that wait for a name: until an actor has it, or until none has.
//!
//! While one waits it is in a list of its name. The list is dropped with the last wait.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::LookupError;
use super::name::Name;
use crate::actor::Address;
use crate::runtime::Inner;
use crate::task::{WaitsFor, run};
use crate::time::{Sleep, sleep};
use crate::timers::DeadlineKind;
use crate::waiters::{Ticket, Waiters};

/// A look at a name on a runtime.
type NameLook<M, T> = fn(&Name<M>, &Arc<Inner>) -> Option<Result<T, LookupError>>;

/// The future of [`Name::wait`], [`Name::wait_timeout`] and [`Name::wait_until_free`].
struct Wait<M, T> {
    name: Name<M>,
    /// Returns what the wait ends with, once that is so.
    look: NameLook<M, T>,
    /// Set by the first poll.
    entry: Option<WaitEntry>,
    is_over: bool,
    timeout: Option<Duration>,
    /// Armed by the first poll.
    deadline: Option<Sleep>,
}

/// An entry in the list of those that wait for a name.
struct WaitEntry {
    runtime: Arc<Inner>,
    waits: Arc<Waiters>,
    ticket: Ticket,
}

impl<M: Send + 'static> Name<M> {
    /// Returns a future that waits until an open actor has this name, and returns its address.
    ///
    /// The future borrows nothing. It looks at the runtime that is current at its first poll,
    /// unless one was set with [`on`](Name::on).
    ///
    /// # Errors
    /// - [`LookupError::WrongType`] if the actor with the name receives messages of another type.
    /// - [`LookupError::NoRuntime`] if no runtime is current at the first poll and none was set, or
    ///   when it has shut down.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses nothing.
    pub fn wait(&self) -> impl Future<Output = Result<Address<M>, LookupError>> + use<M> {
        Wait::new(self, Name::found, None)
    }

    /// Returns a future that waits until no actor has this name, so that it can be
    /// [registered](Name::register).
    ///
    /// An actor that was stopped or killed has the name until it has ended. Each wait for a name ends
    /// when it is free. Another actor may be registered first, so the next call may find it taken.
    /// An actor that waits so for its own name waits for its own end, without end.
    ///
    /// The future borrows nothing. It looks at the runtime that is current at its first poll,
    /// unless one was set with [`on`](Name::on).
    ///
    /// # Errors
    /// [`LookupError::NoRuntime`] as [`wait`](Name::wait).
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses nothing.
    ///
    /// ```
    /// use greenroom::registry::Name;
    /// use greenroom::{Context, spawn};
    ///
    /// const LEADER: Name<()> = Name::new("leader");
    ///
    /// async fn lead(mut cx: Context<()>) {
    ///     while cx.recv().await.is_some() {}
    /// }
    ///
    /// greenroom::run(async {
    ///     let first = spawn!(lead(_));
    ///     LEADER.register(&first).unwrap();
    ///     first.stop();
    ///     let second = spawn!(lead(_));
    ///     while LEADER.register(&second).is_err() {
    ///         LEADER.wait_until_free().await.unwrap();
    ///     }
    ///     assert_eq!(LEADER.get().unwrap(), *second);
    /// });
    /// ```
    pub fn wait_until_free(&self) -> impl Future<Output = Result<(), LookupError>> + use<M> {
        Wait::new(self, Name::freed, None)
    }

    /// Does what [`wait`](Name::wait) does, for at most `duration` from the first poll.
    ///
    /// # Errors
    /// As [`wait`](Name::wait), and [`LookupError::TimedOut`] if the duration elapses first.
    ///
    /// # Panics
    /// As [`sleep`].
    ///
    /// # Cancel safety
    /// As [`wait`](Name::wait).
    pub fn wait_timeout(
        &self,
        duration: Duration,
    ) -> impl Future<Output = Result<Address<M>, LookupError>> + use<M> {
        Wait::new(self, Name::found, Some(duration))
    }

    /// Returns the address of the actor with this name, or why there will be none.
    fn found(&self, runtime: &Arc<Inner>) -> Option<Result<Address<M>, LookupError>> {
        match self.find(runtime) {
            Some(Ok(None)) => None,
            Some(Ok(Some(address))) => Some(Ok(address)),
            Some(Err(registered)) => Some(Err(self.wrong_type(registered))),
            None => Some(Err(LookupError::NoRuntime)),
        }
    }

    /// Returns `Some` if no actor has this name, or if it never will be free.
    fn freed(&self, runtime: &Arc<Inner>) -> Option<Result<(), LookupError>> {
        match self.is_free(runtime) {
            Some(false) => None,
            Some(true) => Some(Ok(())),
            None => Some(Err(LookupError::NoRuntime)),
        }
    }
}

impl<M, T> Wait<M, T> {
    fn new(name: &Name<M>, look: NameLook<M, T>, timeout: Option<Duration>) -> Self {
        Wait {
            name: name.clone(),
            look,
            entry: None,
            is_over: false,
            timeout,
            deadline: None,
        }
    }
}

impl<M: Send + 'static, T> Wait<M, T> {
    /// Enters the list of the name.
    fn begin(&mut self) -> Result<(), LookupError> {
        let entry = self.name.with_runtime(|runtime| {
            let fresh = Arc::new(Waiters::new());
            let names = &runtime.directory_made().names;
            let waits = names.change(self.name.as_str(), |entry| {
                entry.waits.get_or_insert(fresh).clone()
            })?;
            Some(WaitEntry {
                runtime: runtime.clone(),
                waits,
                ticket: Ticket::default(),
            })
        });
        self.entry = Some(entry.flatten().ok_or(LookupError::NoRuntime)?);
        self.deadline = self.timeout.map(sleep);
        Ok(())
    }

    fn poll_list(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, LookupError>> {
        assert!(!self.is_over, "`wait` polled after it was ready");
        if self.entry.is_none() {
            self.begin()?;
        }
        let entry = self.entry.as_mut().expect("the first poll has set it");
        // It looks before and after the waker is in the list. What was found is kept.
        let found = Cell::new(None);
        let happened = || match (self.look)(&self.name, &entry.runtime) {
            None => false,
            now => {
                found.set(now);
                true
            }
        };
        let polled = entry.waits.poll(&mut entry.ticket, cx, happened);
        if polled.is_pending() {
            run::note_wait_for(cx.waker(), WaitsFor::Other("a name"), || 0);
        }
        polled.map(|()| found.take().expect("it was found"))
    }
}

impl<M, T> Wait<M, T> {
    /// Leaves the list of the name, and drops the list if it is empty.
    fn leave(&mut self) {
        self.is_over = true;
        let Some(mut entry) = self.entry.take() else {
            return;
        };
        if !entry.runtime.is_here() {
            return;
        }
        entry.waits.leave(&mut entry.ticket);
        let names = &entry.runtime.directory_made().names;
        names.leave_waits(self.name.as_str(), entry.waits);
    }
}

impl<M: Send + 'static, T> Future for Wait<M, T> {
    type Output = Result<T, LookupError>;

    /// Looks at the name, or waits for a change of it.
    ///
    /// # Panics
    /// If it is polled again after completion, or as [`sleep`] if a timeout was set.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut polled = this.poll_list(cx);
        if polled.is_pending()
            && let Some(deadline) = &mut this.deadline
            && deadline.poll_as(DeadlineKind::Event, cx).is_ready()
        {
            polled = Poll::Ready(Err(LookupError::TimedOut {
                name: this.name.text(),
                after: this.timeout.unwrap_or_default(),
            }));
        }
        if polled.is_ready() {
            this.leave();
        }
        polled
    }
}

impl<M, T> Drop for Wait<M, T> {
    fn drop(&mut self) {
        self.leave();
    }
}
