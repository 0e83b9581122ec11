//! Way a: the actor is a future of `async-task`, its mailbox a second allocation beside it.
//!
//! The mailbox is the one of way b2, including the block list, so that only the cell differs. Of
//! the flags it uses "receptive" (the reader is dormant) and "closed". The waker is created once
//! and kept.

use std::cell::UnsafeCell;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Poll, Waker};

use async_task::Runnable;

use crate::blocks::Blocks;
use crate::mail::{Mail, More};
use crate::queue::{Injector, RunQueue, runs_here};
use crate::way::Way;

thread_local! {
    static READY: RunQueue<Runnable> = const { RunQueue::new() };
}
static INJECTOR: Injector<Runnable> = Injector::new();

pub struct Beside;

struct Mailbox<M> {
    mail: Blocks<M>,
    addresses: AtomicU32,
    /// Written once, before there is an address and before the actor is scheduled.
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: `waker` is read only after it was written (see the field), and `Waker` is `Sync`.
unsafe impl<M: Send> Sync for Mailbox<M> {}

impl<M: Send> Mailbox<M> {
    fn waker(&self) -> Option<&Waker> {
        // SAFETY: the only write is over: only what `spawn` has returned calls this.
        unsafe { &*self.waker.get() }.as_ref()
    }

    fn wake_if(&self, asleep: bool) {
        if asleep && let Some(waker) = self.waker() {
            waker.wake_by_ref();
        }
    }
}

pub struct Address<M: Send>(Arc<Mailbox<M>>);

impl<M: Send> Clone for Address<M> {
    fn clone(&self) -> Self {
        self.0.addresses.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<M: Send> Drop for Address<M> {
    fn drop(&mut self) {
        if self.0.addresses.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.wake_if(self.0.mail.close());
        }
    }
}

pub struct Context<M: Send>(Arc<Mailbox<M>>);

impl<M: Send> Context<M> {
    fn next(&mut self) -> Next<M> {
        let mail = &self.0.mail;
        loop {
            // SAFETY: the context is the one reader, and borrowed mutably.
            if let Some(message) = unsafe { mail.pop() } {
                return Next::Message(message);
            }
            // SAFETY: as above.
            match unsafe { mail.take() } {
                More::Some => {}
                More::Never => return Next::Never,
                More::NotNow if mail.sleep(true) => return Next::NotNow,
                More::NotNow => {}
            }
        }
    }
}

enum Next<M> {
    Message(M),
    NotNow,
    Never,
}

impl<M: Send> Drop for Context<M> {
    fn drop(&mut self) {
        self.0.wake_if(self.0.mail.close());
        // SAFETY: the context is the one reader, and borrowed mutably.
        while unsafe { self.0.mail.pop().is_some() || self.0.mail.take() == More::Some } {}
    }
}

fn schedule(ready: Runnable) {
    if runs_here() {
        READY.with(|queue| queue.push(ready))
    } else {
        INJECTOR.push(ready)
    }
}

impl Way for Beside {
    const NAME: &str = "a: async-task, mailbox beside";
    type Address<M: Send + 'static> = Address<M>;
    type Context<M: Send + 'static> = Context<M>;

    fn spawn<M, F>(start: impl FnOnce(Context<M>) -> F) -> Address<M>
    where
        M: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let mail = Blocks::new();
        let (addresses, waker) = (AtomicU32::new(1), UnsafeCell::new(None));
        let mailbox = Arc::new(Mailbox {
            mail,
            addresses,
            waker,
        });
        let future = start(Context(Arc::clone(&mailbox)));
        let (runnable, task) = async_task::spawn(future, schedule);
        // SAFETY: the actor has not run and has no address yet, so no other thread accesses it.
        unsafe { *mailbox.waker.get() = Some(runnable.waker()) };
        task.detach();
        runnable.schedule();
        Address(mailbox)
    }

    fn tell<M: Send + 'static>(address: &Address<M>, message: M) -> Result<(), M> {
        address.0.wake_if(address.0.mail.push(message)?);
        Ok(())
    }

    fn recv<M: Send + 'static>(context: &mut Context<M>) -> impl Future<Output = Option<M>> + Send {
        poll_fn(|cx| match context.next() {
            Next::Message(message) => Poll::Ready(Some(message)),
            Next::Never => Poll::Ready(None),
            Next::NotNow => {
                let own = context
                    .0
                    .waker()
                    .is_some_and(|waker| waker.will_wake(cx.waker()));
                assert!(own, "this prototype reads only in the actor's own task");
                Poll::Pending
            }
        })
    }

    fn run_one() -> bool {
        let ready = READY.with(RunQueue::pop).or_else(|| INJECTOR.pop());
        ready.map(Runnable::run).is_some()
    }
}
