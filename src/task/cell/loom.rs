//! Model 37, of a plain task: wake-ups are not lost, its end wakes the handle, its outcome is
//! dropped once.

use std::future::poll_fn;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};

use ::loom::sync::Arc;
use ::loom::thread::{spawn, yield_now};

use super::super::handle::TaskHandle;
use crate::error::UnhandledFault;
use crate::park::Parker;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::task::handle::TaskOutcome;
use crate::task::{Executor, LiveIndex, Runnable, TaskHooks};

/// Checks a model with a preemption bound of 3, one more than other models, which some of these
/// orders need.
fn model(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

/// An executor that keeps its runnables until the model runs them.
#[derive(Clone)]
struct Desk(Arc<Mutex<Vec<Runnable>>>);

impl Desk {
    fn new() -> Self {
        Desk(Arc::new(Mutex::new(Vec::new())))
    }

    fn take(&self) -> Option<Runnable> {
        self.0.lock().pop()
    }

    /// Runs runnables until there is none.
    fn run(&self) {
        while let Some(runnable) = self.take() {
            runnable.run();
        }
    }
}

impl Executor for Desk {
    fn schedule(&self, runnable: Runnable, _again: bool) {
        self.0.lock().push(runnable);
    }

    fn track(&self, _waker: &Waker) -> Option<LiveIndex> {
        Some(LiveIndex::new(0))
    }

    fn untrack(&self, _live_index: LiveIndex) {}

    fn hooks(&self) -> &(dyn TaskHooks + 'static) {
        self
    }
}

impl TaskHooks for Desk {
    fn report(&self, _unjoined: &UnhandledFault<'_>) {}
}

fn new<Fut: Future + 'static>(desk: &Desk, future: Fut) -> TaskHandle<Fut::Output> {
    #[expect(unsafe_code, reason = "the futures here are `Send`")]
    // SAFETY: the futures in these models are `Send`.
    unsafe {
        super::new::<(), _, _>(desk.clone(), future, None)
    }
}

/// Creates a task that waits until a counter reaches `times`. Returns its handle, its waker and the
/// counter.
fn told(desk: &Desk, times: usize) -> (TaskHandle<()>, Waker, Arc<AtomicUsize>) {
    let tells = Arc::new(AtomicUsize::new(0));
    let (waker, heard) = (StdArc::new(std::sync::Mutex::new(None)), tells.clone());
    let left = waker.clone();
    let handle = new(
        desk,
        poll_fn(move |cx| {
            left.lock()
                .unwrap()
                .get_or_insert_with(|| cx.waker().clone());
            // Relaxed: the wake-up that follows each increment orders it.
            if heard.load(Ordering::Relaxed) < times {
                return Poll::Pending;
            }
            Poll::Ready(())
        }),
    );
    desk.take().expect("a new task is scheduled").run();
    let waker = waker.lock().unwrap().take().expect("it was polled");
    (handle, waker, tells)
}

/// Checks that a wake-up during a turn leads to another one, which sees the reason of the wake-up.
#[test]
fn model_37_a_wake_up_is_followed_by_a_turn_that_sees_its_reason() {
    model(|| {
        let desk = Desk::new();
        let (handle, waker, tells) = told(&desk, 2);
        let other = {
            let (desk, waker, tells) = (desk.clone(), waker.clone(), tells.clone());
            spawn(move || {
                tells.fetch_add(1, Ordering::Relaxed);
                waker.wake();
                desk.run();
            })
        };
        tells.fetch_add(1, Ordering::Relaxed);
        waker.wake();
        desk.run();
        other.join().unwrap();
        assert!(handle.is_finished(), "a wake-up was lost");
    });
}

/// Checks that two wake-ups of a scheduled task are both seen. Neither pushes a runnable, which
/// would order their writes.
#[test]
fn model_37_wake_ups_that_are_merged_are_all_seen() {
    model(|| {
        let desk = Desk::new();
        let (handle, waker, tells) = told(&desk, 2);
        waker.wake_by_ref();
        let others = [(); 2].map(|()| {
            let (waker, tells) = (waker.clone(), tells.clone());
            spawn(move || {
                tells.fetch_add(1, Ordering::Relaxed);
                waker.wake();
            })
        });
        for _ in 0..2 {
            yield_now();
            desk.run();
        }
        // Joining would establish the order that the wake-ups have to: a turn before it must have
        // seen all.
        let rested = handle.is_finished();
        for other in others {
            other.join().unwrap();
        }
        let again = desk.take();
        assert!(rested || again.is_some(), "a wake-up was lost");
        again.into_iter().for_each(Runnable::run);
        desk.run();
    });
}

/// Checks that two turns on different threads are ordered, although only the state word is between
/// them.
#[test]
fn model_37_a_turn_sees_the_writes_of_the_previous_turn() {
    model(|| {
        let desk = Desk::new();
        let (handle, waker, tells) = told(&desk, 2);
        waker.wake_by_ref();
        let runnable = desk.take().expect("it was woken");
        let other = spawn(move || runnable.run());
        tells.fetch_add(2, Ordering::Relaxed);
        waker.wake();
        if let Some(runnable) = desk.take() {
            runnable.run();
        }
        other.join().unwrap();
        desk.run();
        assert!(handle.is_finished(), "a wake-up was lost");
    });
}

/// Checks a task that wakes itself while another thread wakes it, too.
#[test]
fn model_37_a_task_that_wakes_itself_runs_again() {
    model(|| {
        let desk = Desk::new();
        let waker = StdArc::new(std::sync::Mutex::new(None));
        let (left, mut runs) = (waker.clone(), 0);
        let handle = new(
            &desk,
            poll_fn(move |cx| {
                left.lock()
                    .unwrap()
                    .get_or_insert_with(|| cx.waker().clone());
                runs += 1;
                if runs == 4 {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            }),
        );
        desk.take().expect("a new task is scheduled").run();
        let waker = waker.lock().unwrap().take().expect("it was polled");
        let other = spawn(move || Waker::wake(waker));
        desk.run();
        other.join().unwrap();
        assert!(handle.is_finished(), "a wake-up was lost");
        assert!(desk.take().is_none(), "an ended task was scheduled");
    });
}

/// Unparks the thread that waits for the task.
struct Caller(Parker);

impl Wake for Caller {
    fn wake(self: StdArc<Self>) {
        self.0.unpark();
    }
}

fn poll<T>(handle: &mut TaskHandle<T>, waker: &Waker) -> Poll<Option<TaskOutcome<T>>> {
    handle.poll(&mut Context::from_waker(waker))
}

/// Creates a task that returns a seven, whose leak loom detects. Returns its handle and its
/// runnable.
fn seven(desk: &Desk) -> (TaskHandle<Arc<usize>>, Runnable) {
    let kept = Arc::new(7);
    let handle = new(desk, async move { kept });
    (handle, desk.take().expect("a new task is scheduled"))
}

/// Checks that the end wakes the waker of the last poll, whenever that was.
#[test]
fn model_37_the_end_wakes_the_waker_of_the_last_poll() {
    model(|| {
        let desk = Desk::new();
        let (mut handle, runnable) = seven(&desk);
        let runs = spawn(move || runnable.run());
        let run_part = StdArc::new(Caller(Parker::new()));
        let mut heard = poll(&mut handle, Waker::noop());
        if heard.is_pending() {
            heard = poll(&mut handle, &Waker::from(run_part.clone()));
        }
        if heard.is_pending() {
            run_part.0.park(None);
            heard = poll(&mut handle, Waker::noop());
        }
        let Poll::Ready(Some(Ok(seven))) = heard else {
            panic!("woken for nothing");
        };
        assert_eq!(*seven, 7);
        runs.join().unwrap();
    });
}

/// Checks that a task that is dropped instead of run also wakes its handle.
#[test]
fn model_37_a_discarded_task_wakes_its_handle() {
    model(|| {
        let desk = Desk::new();
        let (mut handle, runnable) = seven(&desk);
        let drops = spawn(move || drop(runnable));
        let run_part = StdArc::new(Caller(Parker::new()));
        let mut heard = poll(&mut handle, &Waker::from(run_part.clone()));
        if heard.is_pending() {
            run_part.0.park(None);
            heard = poll(&mut handle, Waker::noop());
        }
        assert!(matches!(heard, Poll::Ready(None)), "there is nothing else");
        drops.join().unwrap();
    });
}

/// Checks that no seven leaks, whether the handle is dropped before, during or after the turn.
#[test]
fn model_37_a_dropped_or_detached_handle_leaks_nothing() {
    for detached in [false, true] {
        model(move || {
            let desk = Desk::new();
            let (handle, runnable) = seven(&desk);
            let runs = spawn(move || runnable.run());
            if detached {
                handle.detach();
            } else {
                drop(handle);
            }
            runs.join().unwrap();
            desk.run();
        });
    }
}

/// Checks that the waker of a handle that is given up is dropped by the handle or used by the end,
/// and not by both.
#[test]
fn model_37_a_handle_that_is_given_up_takes_its_waker_or_the_end_does() {
    for detached in [false, true] {
        model(move || {
            let desk = Desk::new();
            let (mut handle, runnable) = seven(&desk);
            let caller = StdArc::new(Caller(Parker::new()));
            let heard = poll(&mut handle, &Waker::from(caller.clone()));
            assert!(heard.is_pending(), "it has not run");
            let runs = spawn(move || runnable.run());
            if detached {
                handle.detach();
            } else {
                drop(handle);
            }
            runs.join().unwrap();
            desk.run();
            assert_eq!(StdArc::strong_count(&caller), 1, "a waker is left");
        });
    }
}

/// Checks that a task that is cancelled and woken at once ends once, and that its waker may outlive
/// it.
#[test]
fn model_37_a_cancelled_task_ends_once() {
    model(|| {
        let desk = Desk::new();
        let (handle, waker, _tells) = told(&desk, usize::MAX);
        let other = {
            let (desk, waker) = (desk.clone(), waker.clone());
            spawn(move || {
                waker.wake();
                desk.run();
            })
        };
        drop(handle);
        desk.run();
        other.join().unwrap();
        desk.run();
        waker.wake();
        assert!(desk.take().is_none(), "an ended task was scheduled");
    });
}
