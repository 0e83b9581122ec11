//! The end of a stage: in its own task, with its thread, never, or after all its tasks.

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use std::sync::Mutex;
use std::task::{Poll, Waker};
use std::thread::ThreadId;
use std::time::Duration;

use greenroom::time::sleep;
use greenroom::{
    Context, Fault, HostFault, Hosted, Pinned, Runtime, Stage, Task, actor, yield_now,
};

use crate::support::{Drops, Gate, Log, WATCH, drive, panic_of, poll_once, within};

fn runtime() -> Runtime {
    let builder = Runtime::builder().workers(1).on_fault(|_| {});
    builder.grace(Duration::from_millis(100)).build().unwrap()
}

fn here() -> ThreadId {
    std::thread::current().id()
}

/// Runs the test with a stage of a runtime, and with a stage without a runtime.
fn with_both(test: fn(Stage)) {
    within(WATCH, move || {
        let runtime = runtime();
        test(runtime.pinned_here());
        test(Pinned::here());
    });
}

/// A value that records on which thread it is dropped, and must not leave the thread that made it.
struct SaysWhere(Log<ThreadId>, std::marker::PhantomData<*const ()>);

impl SaysWhere {
    fn new(log: &Log<ThreadId>) -> SaysWhere {
        SaysWhere(log.clone(), std::marker::PhantomData)
    }
}

impl Drop for SaysWhere {
    fn drop(&mut self) {
        self.0.add(here());
    }
}

/// Spawns a task that holds a value of its thread forever.
fn holds(pinned: &Pinned, log: &Log<ThreadId>) -> Task<()> {
    let log = log.clone();
    pinned.spawn(move || {
        let bound = SaysWhere::new(&log);
        async move {
            pending::<()>().await;
            drop(bound);
        }
    })
}

/// Spawns a task like that of [`holds`], which also leaves its waker whenever it is polled.
fn leaves_waker(pinned: &Pinned, log: &Log<ThreadId>, wakers: &Log<Waker>) -> Task<()> {
    let (log, wakers) = (log.clone(), wakers.clone());
    pinned.spawn(move || {
        let bound = SaysWhere::new(&log);
        std::future::poll_fn(move |cx| {
            let _bound = &bound;
            wakers.add(cx.waker().clone());
            Poll::Pending
        })
    })
}

thread_local!(static HERE: RefCell<Option<Rc<Stage>>> = const { RefCell::new(None) });

#[test]
fn a_task_may_drop_its_own_stage() {
    within(WATCH, || {
        for has_waited in [true, false] {
            let runtime = runtime();
            let (log, gone) = (Log::default(), Gate::default());
            let (own, opens) = (log.clone(), gone.clone());
            let stage = runtime.pinned_here();
            holds(&stage, &log).detach();
            let drops = stage.spawn(move || async move {
                let bound = SaysWhere::new(&own);
                if has_waited {
                    yield_now().await;
                }
                HERE.take();
                opens.open();
                pending::<()>().await;
                drop(bound);
            });
            HERE.set(Some(Rc::new(stage)));
            runtime.block_on(gone.wait());
            assert!(runtime.block_on(drops.fallible()).is_none());
            assert_eq!(log.take(), [here(); 2]);
            // Another stage can be created.
            drop(runtime.pinned_here());
        }
    });
}

#[test]
fn an_actor_may_drop_its_own_stage() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let drops = actor(|mut cx: Context<()>| async move {
            cx.recv().await;
            HERE.take();
            pending::<()>().await;
        });
        let drops = drops.on(&stage).spawn();
        HERE.set(Some(Rc::new(stage)));
        drops.tell(()).unwrap();
        assert!(matches!(
            runtime.block_on(drops.join()),
            Err(Fault::Cancelled)
        ));
        drop(runtime.pinned_here());
    });
}

#[test]
fn a_stage_may_be_dropped_with_the_task_or_value_that_holds_it() {
    within(WATCH, || {
        let log = Log::default();
        let bound = || {
            let log = log.clone();
            move || (SaysWhere::new(&log), HERE.take())
        };
        for is_hosted in [true, false] {
            let runtime = runtime();
            let stage = Rc::new(runtime.pinned_here());
            HERE.set(Some(stage.clone()));
            let hosts = is_hosted.then(|| stage.block_on(stage.host(bound())).unwrap());
            let bound = bound();
            let holds = move || async move {
                let _bound = bound();
                pending::<()>().await;
            };
            stage.spawn(holds).detach();
            stage.run_ready();
            drop(stage);
            let report = runtime.block_on(runtime.shutdown());
            let dropped = vec![here(); 1 + usize::from(is_hosted)];
            assert_eq!((report.left_behind, log.take()), (0, dropped));
            drop(hosts);
        }
    });
}

#[test]
fn a_stage_may_be_dropped_in_block_on_on_its_thread() {
    within(WATCH, || {
        let runtime = runtime();
        let log = Log::default();
        let own = log.clone();
        runtime.block_on(async {
            let stage = Pinned::here();
            let task = holds(&stage, &own);
            // The stage runs while this waits.
            stage.spawn(|| async {}).await;
            drop(stage);
            assert!(task.fallible().await.is_none());
            greenroom::spawn(yield_now()).await;
        });
        assert_eq!(log.take(), [here()]);
    });
}

#[test]
fn a_thread_that_ends_drops_the_stage_in_its_thread_local() {
    within(WATCH, || {
        let runtime = runtime();
        for of_runtime in [true, false] {
            let (log, runtime) = (Log::default(), runtime.clone());
            let own = log.clone();
            let thread = std::thread::spawn(move || {
                // Initialised before the stage's own thread-local, so dropped after it.
                assert!(HERE.take().is_none());
                let stage = if of_runtime {
                    runtime.pinned_here()
                } else {
                    Pinned::here()
                };
                let (hosts, other) = (own.clone(), own.clone());
                let hosted = stage
                    .block_on(stage.host(move || SaysWhere::new(&hosts)))
                    .unwrap();
                let waits = stage.spawn(move || async move {
                    let bound = SaysWhere::new(&other);
                    sleep(Duration::from_secs(3600)).await;
                    drop(bound);
                });
                stage.run_ready();
                HERE.set(Some(Rc::new(stage)));
                (here(), hosted, waits)
            });
            let (id, hosted, waits) = thread.join().unwrap();
            assert_eq!(log.take(), [id; 2]);
            assert!(matches!(drive(hosted.with(|_| ())), Err(HostFault::Gone)));
            assert!(drive(waits.fallible()).is_none());
        }
    });
}

#[test]
fn a_thread_that_ends_may_call_block_on_of_its_stage() {
    struct Saves(Stage, Log<ThreadId>);
    impl Drop for Saves {
        fn drop(&mut self) {
            let log = self.1.clone();
            self.0.block_on(self.0.spawn(move || async move {
                sleep(Duration::from_millis(1)).await;
                log.add(here());
            }));
        }
    }
    thread_local!(static SAVES: RefCell<Option<Saves>> = const { RefCell::new(None) });
    within(WATCH, || {
        for of_runtime in [true, false] {
            let (runtime, log) = (runtime(), Log::default());
            let own = log.clone();
            let thread = std::thread::spawn(move || {
                // Initialised before the stage's own thread-local, so dropped after it.
                assert!(SAVES.take().is_none());
                let stage = match of_runtime {
                    true => runtime.pinned_here(),
                    false => Pinned::here(),
                };
                SAVES.set(Some(Saves(stage, own)));
                (here(), runtime)
            });
            assert_eq!([thread.join().unwrap().0], *log.take());
        }
    });
}

/// Leaks the stage, but keeps a pointer so that leak checkers do not report it.
fn keep(stage: Stage) {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let stage: &Stage = Box::leak(Box::new(stage));
    KEPT.lock()
        .unwrap()
        .push(std::ptr::from_ref(stage).expose_provenance());
}

#[test]
fn tasks_and_values_of_a_leaked_stage_are_never_dropped() {
    within(WATCH, || {
        for of_runtime in [true, false] {
            let runtime = runtime();
            let (log, counts) = (Log::default(), runtime.clone());
            let wakers = Log::default();
            let (own, leaves) = (log.clone(), wakers.clone());
            let thread = std::thread::spawn(move || {
                let stage = if of_runtime {
                    counts.pinned_here()
                } else {
                    Pinned::here()
                };
                let task = leaves_waker(&stage, &own, &leaves);
                let hosts = move || SaysWhere::new(&own);
                let hosted = stage.block_on(stage.host(hosts)).unwrap();
                stage.run_ready();
                let never = stage.spawn(|| async {});
                keep(stage);
                (hosted, task, never)
            });
            let (hosted, task, never) = thread.join().unwrap();
            let [waker] = <[Waker; 1]>::try_from(wakers.take()).unwrap();
            waker.wake_by_ref();
            let mut call = Box::pin(hosted.with(|_| ()));
            assert!(poll_once(&mut call).is_pending());
            drop(call);
            drop((hosted, task, never));
            waker.wake();
            let report = drive(runtime.shutdown());
            assert_eq!(report.left_behind, usize::from(of_runtime));
            drop(runtime);
            assert_eq!(
                log.take(),
                [],
                "the value must not be dropped on another thread"
            );
        }
    });
}

#[test]
fn wakers_that_outlive_their_stage_wake_no_task_and_drop_nothing() {
    with_both(|stage| {
        let log = Log::default();
        let wakers = Log::default();
        let mut tasks: Vec<_> = (0..6)
            .map(|_| leaves_waker(&stage, &log, &wakers))
            .collect();
        tasks.drain(..3).for_each(Task::detach);
        stage.run_ready();
        // A wake may be in progress while the stage is dropped.
        let (own, wakes) = (here(), wakers.clone());
        let elsewhere = std::thread::spawn(move || {
            let wakers = wakes.take();
            for waker in &wakers {
                waker.wake_by_ref();
            }
            wakers
        });
        drop(stage);
        let left = elsewhere.join().unwrap();
        assert_eq!(log.take(), [own; 6]);
        for waker in left.into_iter().chain(wakers.take()) {
            waker.wake_by_ref();
            let clone = waker.clone();
            waker.wake();
            std::thread::spawn(move || drop(clone)).join().unwrap();
        }
        drop(tasks);
        assert_eq!(log.take(), []);
    });
}

#[test]
fn calls_after_the_end_of_a_stage_are_dropped_where_they_are_made() {
    with_both(|stage| {
        let hosted = stage.block_on(stage.host(|| 42)).unwrap();
        let drops = Drops::default();
        let one = drops.one();
        let mut queued = Box::pin(hosted.with(move |n| (one, *n).1));
        assert!(poll_once(&mut queued).is_pending());
        let result = Drops::default();
        let comes = result.one();
        let mut done = Box::pin(hosted.with(move |_| comes));
        assert!(poll_once(&mut done).is_pending());
        drop(stage);
        assert_eq!(
            (drops.count(), result.count()),
            (1, 1),
            "the closures were dropped without being called"
        );
        assert!(matches!(drive(queued), Err(HostFault::Gone)));
        assert!(matches!(drive(done), Err(HostFault::Gone)));
        let log = Log::default();
        let own = log.clone();
        let elsewhere = std::thread::spawn(move || {
            struct Here(Log<ThreadId>);
            impl Drop for Here {
                fn drop(&mut self) {
                    self.0.add(here());
                }
            }
            let bound = Here(own);
            let gone = drive(hosted.with(move |_| drop(bound)));
            assert!(matches!(gone, Err(HostFault::Gone)));
            drop(hosted);
            here()
        });
        assert_eq!([elsewhere.join().unwrap()], *log.take());
    });
}

#[test]
fn results_outlive_their_stage() {
    with_both(|stage| {
        let hosted = stage.block_on(stage.host(|| 42)).unwrap();
        let drops = Drops::default();
        let one = drops.one();
        let mut call = Box::pin(hosted.with(move |n| (*n, one)));
        assert!(poll_once(&mut call).is_pending());
        let task = stage.spawn(|| async { 42 });
        stage.run_ready();
        drop(stage);
        assert_eq!(drops.count(), 0);
        let (number, one) = drive(call).unwrap();
        assert_eq!((number, drive(task)), (42, 42));
        drop(one);
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_hosted_value_may_call_back_when_it_is_dropped() {
    struct CallsBack(Option<(Pinned, Hosted<u32>, Drops)>);
    impl Drop for CallsBack {
        fn drop(&mut self) {
            let (pinned, other, drops) = self.0.take().unwrap();
            let one = drops.one();
            let late = pinned.spawn(move || async move { drop(one) });
            let mut call = Box::pin(other.with(|n| *n));
            let _ = poll_once(&mut call);
            let mut host = Box::pin(pinned.host(|| 1));
            let _ = poll_once(&mut host);
            let text = panic_of(Pinned::here).0;
            assert!(text.contains("already has one"), "{text}");
            drop((late, call, host));
            drops.one();
        }
    }
    with_both(|stage| {
        let other = stage.block_on(stage.host(|| 42)).unwrap();
        let (pinned, drops): (Pinned, _) = ((*stage).clone(), Drops::default());
        for _ in 0..2 {
            let held = (pinned.clone(), other.clone(), drops.clone());
            let value = stage
                .block_on(stage.host(move || CallsBack(Some(held))))
                .unwrap();
            if drops.count() == 0 {
                drop(value);
                stage.run_ready_for(Duration::from_secs(3600));
                assert_eq!(drops.count(), 2);
            }
        }
        drop(stage);
        assert_eq!(drops.count(), 4);
    });
}

#[test]
fn the_last_clone_of_its_runtime_may_be_dropped_in_a_task_of_a_stage() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let log = Log::default();
        let own = log.clone();
        let task = stage.spawn(move || async move {
            let bound = SaysWhere::new(&own);
            drop(runtime);
            pending::<()>().await;
            drop(bound);
        });
        while !task.is_finished() {
            stage.run_ready();
            std::thread::yield_now();
        }
        assert_eq!(log.take(), [here()]);
        assert_eq!(stage.run_ready(), 0);
        drop(stage);
        drop(Pinned::here());
    });
}

#[test]
fn a_task_of_a_stage_may_await_the_shutdown() {
    within(WATCH, || {
        let runtime = runtime();
        let stage = runtime.pinned_here();
        let (shuts, drops) = (runtime.clone(), Drops::default());
        let one = drops.one();
        let waits = || async move {
            let _one = one;
            pending::<()>().await;
        };
        stage.spawn(waits).detach();
        let report = stage.spawn(move || async move { shuts.shutdown().await });
        let report = stage.block_on(report);
        assert_eq!((report.left_behind, drops.count()), (0, 1));
        drop(stage);
        // A stage created after the shutdown refuses tasks, and still drives futures.
        let late = runtime.pinned_here();
        assert!(drive(late.spawn(|| async {}).fallible()).is_none());
        assert_eq!((late.run_ready(), late.block_on(async { 42 })), (0, 42));
    });
}

#[test]
fn each_of_many_threads_may_have_a_stage() {
    within(WATCH, || {
        let runtime = runtime();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for round in 0..20 {
                        let stage = if round % 2 == 0 {
                            runtime.pinned_here()
                        } else {
                            Pinned::here()
                        };
                        let own = here();
                        let there = stage.spawn(|| async {
                            sleep(Duration::from_micros(10)).await;
                            here()
                        });
                        let elsewhere = runtime.spawn(async { here() });
                        assert_eq!(stage.block_on(there), own);
                        assert_ne!(stage.block_on(elsewhere), own);
                    }
                });
            }
        });
    });
}
