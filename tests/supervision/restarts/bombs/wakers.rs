//! Wakers of the lender and the holder of a context that panic, or whose drops do.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use futures::stream;
use greenroom::{Context, actor};

use super::still_serves;
use crate::support::{Home, Log, keep_bombs_quiet, on_threads, poll_here};

// A simulation clones wakers for its own use.
on_threads!(
    a_waker_of_the_lender_that_panics_is_contained,
    a_waker_of_the_lender_whose_drop_panics_is_contained,
    a_waker_of_the_holder_whose_drop_panics_is_contained,
);

/// A waker that panics when it is woken, or when the last of it is dropped.
struct Rigged {
    wakes: bool,
    woken: AtomicUsize,
}

impl Wake for Rigged {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        if self.wakes {
            panic!("bomb of a waker");
        }
    }
}

impl Drop for Rigged {
    fn drop(&mut self) {
        if !self.wakes {
            panic!("bomb in the drop of a waker");
        }
    }
}

fn rigged(wakes: bool) -> Waker {
    let woken = AtomicUsize::new(0);
    Waker::from(Arc::new(Rigged { wakes, woken }))
}

/// Polls with a waker, of which no other clone is kept.
fn poll_with<F: Future + Unpin>(future: &mut F, waker: Waker) -> Poll<F::Output> {
    let polled = Pin::new(future).poll(&mut TaskContext::from_waker(&waker));
    // The clone that was stored is not the last one.
    drop(waker);
    polled
}

/// Creates an actor that moves its context away for good, and returns both.
async fn without_context(home: &Home) -> (greenroom::Handle<u32, ()>, Context<u32>) {
    let contexts = Log::default();
    let escapes = contexts.clone();
    let gives = home.spawn(actor(move |cx: Context<u32>| async move {
        escapes.add(cx);
        std::future::pending().await
    }));
    loop {
        match contexts.take().pop() {
            Some(cx) => return (gives, cx),
            None => greenroom::yield_now().await,
        }
    }
}

/// A call of `incarnation` in a future, and the context that it has lent.
async fn lent(
    mut cx: Context<u32>,
) -> (
    Pin<Box<dyn Future<Output = Context<u32>> + Send>>,
    Context<u32>,
) {
    let below = Log::default();
    let moves = below.clone();
    let mut call: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(async move {
        let moves = |cx| async move { moves.add(cx) };
        cx.incarnation(moves).await.unwrap();
        cx
    });
    assert!(poll_here(&mut call).await.is_pending());
    let inner = below.take().pop().unwrap();
    (call, inner)
}

fn a_waker_of_the_lender_that_panics_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        let (gives, cx) = without_context(home).await;
        let (mut call, inner) = lent(cx).await;
        assert!(poll_with(&mut call, rigged(true)).is_pending());
        drop(inner);
        let Poll::Ready(mut cx) = poll_here(&mut call).await else {
            panic!("it has come back")
        };
        gives.tell(1).unwrap();
        assert_eq!(cx.recv().await, Some(1));
        gives.kill();
    });
    still_serves(home);
}

fn a_waker_of_the_lender_whose_drop_panics_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for again in [false, true] {
            let (gives, cx) = without_context(home).await;
            let (mut call, mut inner) = lent(cx).await;
            assert!(poll_with(&mut call, rigged(false)).is_pending());
            if again {
                assert!(poll_here(&mut call).await.is_pending());
            }
            drop(call);
            assert!(gives.is_closed());
            assert_eq!(inner.recv().await, None);
            gives.kill();
        }
    });
    still_serves(home);
}

fn a_waker_of_the_holder_whose_drop_panics_is_contained(home: &Home) {
    keep_bombs_quiet();
    home.block_on(async {
        for source in [false, true] {
            let (gives, cx) = without_context(home).await;
            let (mut call, mut inner) = lent(cx).await;
            if source {
                inner.attach(stream::pending()).detach();
            }
            let mut recv = inner.recv();
            // A new source may wake the task at once, and then keeps no waker.
            assert!(poll_with(&mut recv, Waker::noop().clone()).is_pending());
            assert!(poll_with(&mut recv, rigged(false)).is_pending());
            match source {
                // The source keeps its clone.
                true => drop(recv),
                false => std::mem::forget(recv),
            }
            drop(inner);
            let Poll::Ready(mut cx) = poll_here(&mut call).await else {
                panic!("it has come back")
            };
            gives.tell(1).unwrap();
            assert_eq!(cx.recv().await, Some(1));
            gives.kill();
        }
    });
    still_serves(home);
}
