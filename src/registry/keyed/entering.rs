//! The future of `get_or_spawn`: an address of the actor of a key.
//!
//! While an actor of the key is being started or ends, it waits in the list of the key. The wait of
//! an actor for the end of another one is known to all sets.

use std::cell::Cell;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::core::KeyedCore;
use super::error::KeyError;
use super::waits::KeyWait;
use crate::actor::Address;
use crate::error::{Deadlock, SpawnProblem};
use crate::task::{TaskInfo, WaitsFor, run};
use crate::waiters::{Ticket, Waiters};

pub(super) struct Entering<'a, K, M> {
    core: &'a Arc<KeyedCore<K, M>>,
    key: &'a K,
    /// The hash of the key, set by the first poll.
    hash: Option<u64>,
    wait: Option<(Arc<Waiters>, Ticket)>,
    /// The same wait, if an actor waits for the end of another one.
    for_end: Option<KeyWait>,
    is_over: bool,
}

impl<'a, K, M> Entering<'a, K, M> {
    pub(super) fn new(core: &'a Arc<KeyedCore<K, M>>, key: &'a K) -> Self {
        Entering {
            core,
            key,
            hash: None,
            wait: None,
            for_end: None,
            is_over: false,
        }
    }

    #[inline]
    fn leave(&mut self) {
        if self.wait.is_some() {
            self.leave_list();
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_list(&mut self) {
        self.for_end = None;
        if let Some((waits, mut ticket)) = self.wait.take()
            && self.core.runtime.is_here()
        {
            waits.leave(&mut ticket);
        }
    }

    /// Notes that the task waits, for the end of this actor if there is one.
    fn note(&mut self, cx: &Context<'_>, ending: Option<TaskInfo>) -> Result<(), Deadlock> {
        let Some(ending) = ending else {
            self.for_end = None;
            run::note_wait_for(cx.waker(), WaitsFor::Other("a key"), || 0);
            return Ok(());
        };
        if !(self.for_end.as_ref()).is_some_and(|wait| wait.is_for(&ending)) {
            self.for_end = None;
            self.for_end = KeyWait::begin(&ending)?;
        }
        run::note_wait_for(cx.waker(), WaitsFor::End, || ending.id());
        Ok(())
    }
}

impl<K, M> Entering<'_, K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    fn poll_key(&mut self, cx: &mut Context<'_>) -> Poll<Result<Address<M>, KeyError>> {
        let (core, key) = (self.core, self.key);
        if !core.runtime.is_here() {
            return Poll::Ready(Err(KeyError::Spawn(SpawnProblem::Forked)));
        }
        let hash = *self.hash.get_or_insert_with(|| core.hash(key));
        loop {
            let entered = match &mut self.wait {
                None => core.enter(hash, key),
                Some((waits, ticket)) => {
                    // What was found is kept, since the look may have started an actor.
                    let (found, ending) = (Cell::new(None), Cell::new(None));
                    let happened = || match core.enter(hash, key) {
                        Ok(Err((same, actor))) if Arc::ptr_eq(&same, waits) => {
                            ending.set(actor);
                            false
                        }
                        other => {
                            found.set(Some(other));
                            true
                        }
                    };
                    if waits.poll(ticket, cx, happened).is_pending() {
                        let Err(cycle) = self.note(cx, ending.take()) else {
                            return Poll::Pending;
                        };
                        self.leave();
                        return Poll::Ready(Err(KeyError::Deadlock(cycle)));
                    }
                    found.take().expect("it was found")
                }
            };
            self.leave();
            match entered {
                Ok(Ok(address)) => return Poll::Ready(Ok(address)),
                Ok(Err((waits, _))) => self.wait = Some((waits, Ticket::default())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl<K, M> Future for Entering<'_, K, M>
where
    K: Hash + Eq + Clone + Send + 'static,
    M: Send + 'static,
{
    type Output = Result<Address<M>, KeyError>;

    /// Returns the address of the actor of the key, which is started if there is none.
    ///
    /// # Panics
    /// If it is polled again after completion.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!this.is_over, "`get_or_spawn` polled after it was ready");
        let polled = this.poll_key(cx);
        this.is_over = polled.is_ready();
        polled
    }
}

impl<K, M> Drop for Entering<'_, K, M> {
    fn drop(&mut self) {
        self.leave();
    }
}
