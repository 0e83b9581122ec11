//! Policies and wakers that behave in unexpected ways.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use greenroom::policy::{Duties, Policy, Runnable, Setup, Stealing};
use greenroom::{BuildError, Context, Fault, Runtime, actor, time, yield_now};

use crate::support::{WATCH, drive, keep_bombs_quiet, within};

/// A single queue with a state for each worker, and a closure that receives refused runnables.
struct Odd<W> {
    queue: Mutex<VecDeque<Runnable>>,
    worker: fn() -> W,
    /// Called with a refused runnable, when it is enqueued or, if `late` is set, when it is
    /// dequeued.
    refuses: Option<fn(Runnable)>,
    late: bool,
}

impl<W> Odd<W> {
    fn new(worker: fn() -> W) -> Self {
        Odd {
            queue: Mutex::default(),
            worker,
            refuses: None,
            late: false,
        }
    }

    fn refuse(&self, late: bool, runnable: Runnable) -> Option<Runnable> {
        let refused = self.late == late && runnable.info().name() == Some("refused");
        match self.refuses {
            Some(refuse) if refused => {
                refuse(runnable);
                None
            }
            _ => Some(runnable),
        }
    }
}

impl<W: 'static> Policy for Odd<W> {
    type Worker = W;

    fn worker(&self, _index: usize) -> W {
        (self.worker)()
    }

    fn central_enqueue(&self, runnable: Runnable) {
        if let Some(runnable) = self.refuse(false, runnable) {
            self.queue.lock().unwrap().push_back(runnable);
        }
    }

    fn dequeue(&self, _worker: &W, _duties: &Duties<'_>) -> Option<Runnable> {
        let next = self.queue.lock().unwrap().pop_front()?;
        self.refuse(true, next)
    }
}

/// Receives messages until it is stopped.
async fn waits(mut cx: Context<()>) {
    while cx.recv().await.is_some() {}
}

/// A waker that calls `block_on` on the worker that wakes it.
struct Waits(Runtime, AtomicBool);

impl Wake for Waits {
    fn wake(self: Arc<Self>) {
        self.0.block_on(yield_now());
        self.1.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_waker_called_by_the_timers_of_a_worker_may_call_block_on() {
    let builders = || {
        let one = || Runtime::builder().workers(1);
        [one(), one().policy(Odd::new(|| ()))]
    };
    for builder in builders() {
        within(WATCH, move || {
            let runtime = builder.build().unwrap();
            for _ in 0..30 {
                let fired = Arc::new(Waits(runtime.clone(), AtomicBool::new(false)));
                let waker = Waker::from(fired.clone());
                let soon = || time::sleep(Duration::from_micros(200));
                let mut sleep = Box::pin(soon());
                runtime.block_on(async {
                    let mut cx = std::task::Context::from_waker(&waker);
                    // On a busy machine a sleep may be over before it is polled.
                    while sleep.as_mut().poll(&mut cx).is_ready() {
                        sleep.set(soon());
                    }
                });
                // The timer fires between two turns of this task.
                let busy = fired.clone();
                drive(runtime.spawn(async move {
                    while !busy.1.load(Ordering::SeqCst) {
                        yield_now().await;
                    }
                }));
                for n in 0..3 {
                    assert_eq!(drive(runtime.spawn(async move { n })), n);
                }
                runtime.run_until_quiescent();
            }
        });
    }
}

#[test]
fn a_shutdown_ends_even_if_the_policy_keeps_a_runnable() {
    static KEPT: Mutex<Vec<Runnable>> = Mutex::new(Vec::new());
    within(WATCH, || {
        let odd = Odd {
            refuses: Some(|runnable| KEPT.lock().unwrap().push(runnable)),
            ..Odd::new(|| ())
        };
        let builder = Runtime::builder().policy(odd);
        let runtime = builder.grace(Duration::ZERO).build().unwrap();
        let kept = actor(waits).name("refused").on(&runtime).spawn();
        let task = runtime.spawn(async { 42 });
        assert_eq!(drive(task), 42);
        drive(runtime.shutdown());
        // The runnable is dropped late, and is cancelled as if it were in time.
        KEPT.lock().unwrap().clear();
        assert!(matches!(drive(kept.join()), Err(Fault::NotStarted)));
    });
}

#[test]
fn a_panic_in_the_drop_of_a_policys_worker_state_is_contained() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("bomb in a policy");
        }
    }

    within(WATCH, || {
        keep_bombs_quiet();
        let builder = Runtime::builder().workers(1);
        let runtime = builder.policy(Odd::new(|| Bomb)).build().unwrap();
        for _ in 0..3 {
            let own = runtime.clone();
            let task = runtime.spawn(async move { own.block_on(greenroom::spawn(async { 42 })) });
            assert_eq!(drive(task), 42);
        }
        assert_eq!(drive(runtime.shutdown()).left_behind, 0);
    });
}

#[test]
fn actors_cancelled_by_the_policy_are_not_in_the_shutdown_report() {
    within(WATCH, || {
        let odd = Odd {
            refuses: Some(drop),
            ..Odd::new(|| ())
        };
        let runtime = Runtime::builder().policy(odd).build().unwrap();
        let refused = actor(waits).name("refused").on(&runtime).spawn();
        assert!(matches!(drive(refused.join()), Err(Fault::NotStarted)));
        let stays = actor(waits).on(&runtime).spawn();
        let report = drive(runtime.shutdown());
        assert_eq!((report.ended, report.cancelled), (1, 0));
        drive(stays.join()).unwrap();
    });
}

#[test]
fn a_policy_whose_start_panics_is_an_error() {
    struct Panics;

    impl Policy for Panics {
        type Worker = ();

        fn start(&mut self, _setup: &Setup) -> Result<(), String> {
            panic!("bomb in a policy");
        }

        fn worker(&self, _index: usize) {}

        fn central_enqueue(&self, _runnable: Runnable) {}

        fn dequeue(&self, _worker: &(), _duties: &Duties<'_>) -> Option<Runnable> {
            None
        }
    }

    keep_bombs_quiet();
    let error = Runtime::builder().policy(Panics).build().unwrap_err();
    assert!(matches!(
        error,
        BuildError::Impossible {
            option: "policy",
            ..
        }
    ));
    assert_eq!(error.to_string(), "policy panicked: bomb in a policy");
}

#[test]
fn a_future_that_a_policy_drops_may_call_block_on_in_its_drop() {
    struct WaitsInDrop(Runtime);

    impl Drop for WaitsInDrop {
        fn drop(&mut self) {
            self.0.block_on(greenroom::spawn(async {}));
        }
    }

    within(WATCH, || {
        let odd = Odd {
            refuses: Some(drop),
            late: true,
            ..Odd::new(|| ())
        };
        let runtime = Runtime::builder().workers(1).policy(odd).build().unwrap();
        for _ in 0..10 {
            let own = runtime.clone();
            let task = runtime.spawn(async move {
                let waits = WaitsInDrop(Runtime::current());
                let refused = actor(move |_: Context<()>| async move { drop(waits) });
                let refused = refused.name("refused").on(&own).spawn();
                refused.join().await
            });
            assert!(matches!(drive(task), Err(Fault::NotStarted)));
            runtime.run_until_quiescent();
            assert_eq!(drive(runtime.spawn(async { 42 })), 42);
        }
    });
}

/// Uses work stealing as if every worker were the first one, with two states each.
#[derive(Default)]
struct AllTheFirst(Stealing);

type StealingWorker = <Stealing as Policy>::Worker;

impl Policy for AllTheFirst {
    type Worker = [StealingWorker; 2];

    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        self.0.start(setup)
    }

    fn worker(&self, _index: usize) -> [StealingWorker; 2] {
        [self.0.worker(0), self.0.worker(0)]
    }

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.central_enqueue(runnable);
    }

    fn internal_enqueue(&self, worker: &[StealingWorker; 2], runnable: Runnable) {
        self.0.internal_enqueue(&worker[0], runnable);
    }

    fn resume_later(&self, worker: &[StealingWorker; 2], runnable: Runnable) {
        self.0.resume_later(&worker[1], runnable);
    }

    fn dequeue(&self, worker: &[StealingWorker; 2], duties: &Duties<'_>) -> Option<Runnable> {
        self.0.dequeue(&worker[0], duties)
    }

    fn interrupt(&self) {
        self.0.interrupt();
    }
}

#[test]
fn a_stealing_queue_used_by_several_workers_runs_each_task_once() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(3)
            .policy(AllTheFirst::default())
            .build()
            .unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        for round in 1..=50 {
            for _ in 0..20 {
                let ran = ran.clone();
                runtime
                    .spawn(async move {
                        for _ in 0..20 {
                            let ran = ran.clone();
                            greenroom::spawn(async move {
                                yield_now().await;
                                ran.fetch_add(1, Ordering::SeqCst);
                            })
                            .detach();
                        }
                    })
                    .detach();
            }
            runtime.run_until_quiescent();
            assert_eq!(
                ran.load(Ordering::SeqCst),
                round * 400,
                "each task ran exactly once"
            );
        }
    });
}
