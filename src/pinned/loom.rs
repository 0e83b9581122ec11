//! Models 13 and 34: a pinned thread and a worker, each of which pushes to the other one that goes idle;
//! a pinned thread that takes what a shutdown waits for. Model 52: one whose going idle brings it something.

mod call;
mod nested;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use ::loom::thread::{JoinHandle, spawn};

use super::local::PinnedLocal;
use super::thread::{PinnedThread, ThreadKind};
use crate::runtime::loom::{Fate, end, join, push, runtime, start, token};
use crate::runtime::{HostThread, Inner, Runtime};
use crate::task::Executor;

/// A pinned thread that this model starts itself.
fn start_pinned(inner: &Arc<Inner>, kind: ThreadKind) -> (Arc<PinnedThread>, JoinHandle<()>) {
    let pinned = Arc::new(PinnedThread::new(inner, String::new(), kind));
    inner.inc_activity();
    let own = pinned.clone();
    let thread = spawn(move || own.serve());
    (pinned, thread)
}

fn push_to(pinned: &Arc<PinnedThread>, body: impl FnOnce() + 'static) -> Arc<Fate> {
    let (runnable, fate) = token(body);
    pinned.schedule(runnable, false);
    fate
}

/// What a pinned thread pushes is found by the worker, however that is about to lie down.
#[test]
fn model_13_what_a_pinned_thread_pushes_is_not_missed_by_a_worker_that_goes_idle() {
    ::loom::model(|| {
        let inner = runtime(1);
        let (pinned, thread) = start_pinned(&inner, ThreadKind::Own);
        let (own, kept) = (inner.clone(), pinned.clone());
        let fate = push_to(&pinned, move || {
            let ending = own.clone();
            push(&own, move || end(&ending));
            // Nothing else keeps the thread.
            kept.let_go();
        });
        join(start(&inner));
        join(vec![thread]);
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}

/// And what a worker pushes by the pinned thread.
#[test]
fn model_13_what_a_worker_pushes_is_not_missed_by_a_pinned_thread_that_goes_idle() {
    ::loom::model(|| {
        let inner = runtime(1);
        let (pinned, thread) = start_pinned(&inner, ThreadKind::Own);
        let workers = start(&inner);
        let (own, kept) = (inner.clone(), pinned.clone());
        let fate = push(&inner, move || {
            let inside = kept.clone();
            push_to(&kept, move || inside.let_go());
            end(&own);
        });
        join(vec![thread]);
        join(workers);
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}

/// A shutdown that begins meanwhile sees that nothing is left, or is told so by the thread.
#[test]
fn model_34_a_shutdown_waits_for_nothing_that_a_pinned_thread_has_taken() {
    ::loom::model(|| {
        let inner = runtime(1);
        let pinned = Arc::new(PinnedThread::new(&inner, String::new(), ThreadKind::Own));
        let fate = push_to(&pinned, || {});
        let own = pinned.clone();
        let thread = spawn(move || {
            let local = PinnedLocal::new(&own);
            own.pop(&local).expect("it was pushed").run();
            own.is_closing_down()
        });
        pinned.close();
        pinned.stop_cells();
        let left = pinned.before();
        let tells = thread.join().unwrap();
        assert!(left == 0 || tells, "nobody tells the shutdown");
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}

/// Has something run on the pinned thread, which ends with that.
struct Brings(Arc<PinnedThread>);

impl Wake for Brings {
    fn wake(self: Arc<Self>) {
        let pinned = self.0.clone();
        push_to(&self.0, move || pinned.let_go());
    }
}

/// A pinned thread goes idle, and may be the last that is counted: then it tells of the end, and what that wakes
/// on this very thread is run.
#[test]
fn model_52_what_its_going_idle_brings_to_a_pinned_thread_is_run() {
    ::loom::model(|| {
        let inner = runtime(1);
        let (pinned, thread) = start_pinned(&inner, ThreadKind::Own);
        let runtime = Runtime::not_counting(inner);
        let hold = runtime.keep_alive();
        let waker = Waker::from(Arc::new(Brings(pinned)));
        let mut quiescent = pin!(runtime.quiescent());
        let polled = quiescent.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "it is held");
        drop(hold);
        join(vec![thread]);
    });
}
