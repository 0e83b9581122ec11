//! Models 13, 34 and 52: pinned threads that go idle or shut down.
//!
//! Model 13: a pinned thread and a worker, each of which pushes to the other while that goes idle.
//! Model 34: a pinned thread takes a runnable that a shutdown waits for. Model 52: a pinned thread
//! whose own step to idle wakes a task on it.

mod call;
mod nested;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use ::loom::thread::{JoinHandle, spawn};

use super::local::PinnedLocal;
use super::thread::{PinnedThread, ThreadKind};
use crate::runtime::loom::{Fate, Gate, OnDrop, end, join, push, runtime, start, token};
use crate::runtime::{HostThread, Inner, Runtime};
use crate::task::Executor;

/// Starts a pinned thread of this kind on a loom thread.
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

/// Checks that a worker that is about to park runs what a pinned thread pushes.
#[test]
fn model_13_worker_that_goes_idle_runs_what_a_pinned_thread_pushes() {
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

/// Checks that a pinned thread that is about to park runs what a worker pushes.
#[test]
fn model_13_pinned_thread_that_goes_idle_runs_what_a_worker_pushes() {
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

/// Checks that a shutdown that begins meanwhile sees an empty queue, or is notified by the thread.
#[test]
fn model_34_shutdown_is_notified_of_runnables_a_pinned_thread_takes() {
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
        let notifies = thread.join().unwrap();
        assert!(left == 0 || notifies, "the shutdown is not notified");
        assert_eq!(fate.of(), (1, 0), "run once");
    });
}

/// Checks that a pinned thread that stays for a task which awaits the shutdown drops what is pushed.
/// A thread for which the shutdown waits may wait for that drop.
#[test]
fn model_34_a_pinned_thread_drops_what_is_pushed_while_it_stays_for_a_task() {
    ::loom::model(|| {
        let inner = runtime(1);
        inner.shutdown.expect_workers(1);
        let pinned = Arc::new(PinnedThread::new(&inner, String::new(), ThreadKind::Own));
        let (awaits, fate) = token(|| ());
        inner.shutdown.exempt(awaits.key());
        pinned.schedule(awaits, false);
        assert!(inner.shutdown.begin());
        pinned.finish();
        inner.inc_activity();
        let own = pinned.clone();
        let thread = spawn(move || own.serve());
        let own = inner.clone();
        let waits = spawn(move || {
            let dropped = Gate::new();
            let opens = OnDrop({
                let dropped = dropped.clone();
                move || dropped.open()
            });
            push_to(&pinned, move || drop(opens));
            dropped.wait();
            own.shutdown.worker_left();
        });
        inner.shutdown.wait_until(None, |state| state.all_out());
        inner.shutdown.set_report(0, (0, Vec::new()), 0);
        join(vec![thread, waits]);
        assert_eq!(fate.of(), (1, 0), "it has the report");
    });
}

/// A waker that pushes a runnable to the pinned thread, which ends with it.
struct Brings(Arc<PinnedThread>);

impl Wake for Brings {
    fn wake(self: Arc<Self>) {
        let pinned = self.0.clone();
        push_to(&self.0, move || pinned.let_go());
    }
}

/// Checks that a pinned thread runs a task that its own step to idle has woken. The thread may be
/// the last activity; then that step resolves `quiescent()`.
#[test]
fn model_52_pinned_thread_runs_a_task_that_its_own_idling_wakes() {
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
