//! Model 41: nested waits on the thread of a detached actor, which share its parker.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use ::loom::thread::spawn;

use super::{push_to, start_pinned};
use crate::contain::KeptWaker;
use crate::instant::Instant;
use crate::pinned::thread::{PinnedThread, ThreadKind};
use crate::runtime::HostThread;
use crate::runtime::loom::{join, runtime};
use crate::runtime::{Inner, Runtime};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::timers;

/// A duration that never passes in the model.
const LATE: Duration = Duration::from_secs(100);

/// A flag that one thread sets and another one awaits in `block_on`.
#[derive(Default)]
struct Flag(AtomicBool);

impl Flag {
    fn set(&self, waker: &Waker) {
        // Relaxed: the waker must publish it.
        self.0.store(true, Ordering::Relaxed);
        waker.wake_by_ref();
    }

    /// Waits for the flag. The first poll calls `first` with the waker and does not look at the
    /// flag.
    fn wait(&self, runtime: &Arc<Inner>, first: impl FnOnce(&Waker)) {
        let mut first = Some(first);
        Runtime::not_counting(runtime.clone()).block_on(poll_fn(|cx| {
            if let Some(first) = first.take() {
                first(cx.waker());
                return Poll::Pending;
            }
            // Relaxed: as above.
            match self.0.load(Ordering::Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }));
    }
}

/// Checks that the outer wait does not sleep until the deadline if the inner wait took its token.
#[test]
fn model_41_outer_wait_is_woken_while_a_nested_wait_takes_the_token() {
    ::loom::model(|| {
        let inner = runtime(1);
        let (pinned, thread) = start_pinned(&inner, ThreadKind::Detached);
        let late = Instant::now() + LATE;
        let armed = pinned
            .timers
            .insert(late, timers::DeadlineKind::Event, KeptWaker::noop());
        let (kept, own) = (pinned.clone(), inner.clone());
        let fate = push_to(&pinned, move || {
            let flags = [(); 2].map(|()| Arc::new(Flag::default()));
            let [outer, nested] = flags.clone();
            outer.wait(&own, |outer| {
                let outer = outer.clone();
                nested.wait(&own, |nested| {
                    let wakers = [outer, nested.clone()];
                    spawn(move || {
                        for (flag, waker) in flags.iter().zip(&wakers) {
                            flag.set(waker);
                        }
                    });
                });
            });
            kept.timers.remove(armed.expect("the timers are open").0);
            kept.let_go();
        });
        join(vec![thread]);
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}

/// A waker that waits on the thread of a detached actor; the loop of that thread wakes it at a
/// deadline.
struct Waits {
    pinned: Arc<PinnedThread>,
    done: Arc<Flag>,
}

impl Wake for Waits {
    fn wake(self: Arc<Self>) {
        self.done.wait(self.pinned.runtime(), |waker| {
            let (pinned, done, waker) = (self.pinned.clone(), self.done.clone(), waker.clone());
            spawn(move || {
                pinned.finish();
                done.set(&waker);
            });
        });
    }
}

/// Checks that the loop ends if `finish` was called while a wait in one of its wakers took the
/// token.
#[test]
fn model_41_loop_sees_finish_while_a_waker_waits_on_its_thread() {
    ::loom::model(|| {
        let inner = runtime(1);
        let pinned = Arc::new(PinnedThread::new(
            &inner,
            String::new(),
            ThreadKind::Detached,
        ));
        let waker = Waker::from(Arc::new(Waits {
            pinned: pinned.clone(),
            done: Arc::default(),
        }));
        assert!(
            pinned
                .timers
                .insert(Instant::now(), timers::DeadlineKind::Event, waker.into())
                .is_some()
        );
        inner.inc_activity();
        pinned.serve();
    });
}
