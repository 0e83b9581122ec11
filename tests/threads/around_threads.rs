//! `Builder::around_threads`: a function around the whole life of each thread of a runtime.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use greenroom::policy::Simulated;
use greenroom::{
    BuildError, Builder, Context, Detached, Runtime, SpawnProblem, actor, spawn, unblock,
};

use crate::support::{
    Drops, Gate, OpenOnDrop, WATCH, drive, inside, keep_bombs_quiet, panic_of, until, within,
};

thread_local! {
    /// The number of guards on this thread.
    static ENTERED: Cell<usize> = const { Cell::new(0) };
}

/// A guard of this thread, like tokio's.
struct Entered;

impl Entered {
    fn new() -> Entered {
        ENTERED.set(ENTERED.get() + 1);
        Entered
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.set(ENTERED.get() - 1);
    }
}

fn entered() -> usize {
    ENTERED.get()
}

fn builder() -> Builder {
    Runtime::builder().workers(1).on_fault(|_| {})
}

/// Builds a runtime whose threads have a guard.
fn with_guards() -> Runtime {
    let around = |run: &mut dyn FnMut()| {
        let _guard = Entered::new();
        run();
    };
    builder().around_threads(around).build().unwrap()
}

#[test]
fn workers_pinned_blocking_and_detached_threads_run_within_the_function() {
    within(WATCH, || {
        let runtime = with_guards();
        assert_eq!(drive(runtime.spawn(async { entered() })), 1);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        assert_eq!(drive(pinned.spawn(|| async { entered() })), 1);
        let blocking = inside(&runtime, || unblock(entered));
        assert_eq!(drive(blocking), 1);
        let count = |_: Context<()>| async { entered() };
        let detached = inside(&runtime, || spawn!(count, on = Detached));
        assert_eq!(drive(detached.join()).unwrap(), 1);
        // The caller of `block_on` enters by itself.
        assert_eq!(runtime.block_on(async { entered() }), 0);
    });
}

#[test]
fn the_thread_that_replaces_a_worker_runs_within_the_function() {
    within(WATCH, || {
        let runtime = with_guards();
        let counts = runtime.spawn(async {
            let other = greenroom::spawn(async { (entered(), std::thread::current().id()) });
            let (count, thread) = Runtime::current().block_on(other);
            assert_ne!(thread, std::thread::current().id());
            (entered(), count)
        });
        assert_eq!(drive(counts), (1, 1));
    });
}

#[test]
fn a_shutdown_on_its_own_thread_runs_within_the_function() {
    within(WATCH, || {
        let runtime = with_guards();
        let seen = Arc::new(Mutex::new(None));
        struct Looks(Arc<Mutex<Option<usize>>>);
        impl Drop for Looks {
            fn drop(&mut self) {
                *self.0.lock().unwrap() = Some(entered());
            }
        }
        let (begun, looks) = (Gate::default(), Looks(seen.clone()));
        let here = begun.clone();
        runtime
            .spawn(async move {
                let _looks = looks;
                here.open();
                std::future::pending::<()>().await;
            })
            .detach();
        begun.pass();
        drive(runtime.shutdown());
        assert_eq!(*seen.lock().unwrap(), Some(1));
    });
}

#[test]
fn the_guard_lives_until_the_thread_has_dropped_what_runs_there() {
    within(WATCH, || {
        let order = Arc::new(Mutex::new(Vec::new()));
        let writes = order.clone();
        let around = move |run: &mut dyn FnMut()| {
            writes.lock().unwrap().push("enters");
            run();
            writes.lock().unwrap().push("leaves");
        };
        struct Says(Arc<Mutex<Vec<&'static str>>>);
        impl Drop for Says {
            fn drop(&mut self) {
                self.0.lock().unwrap().push("drops");
            }
        }
        let runtime = builder().around_threads(around).build().unwrap();
        let (begun, says) = (Gate::default(), Says(order.clone()));
        let here = begun.clone();
        runtime
            .spawn(async move {
                let _says = says;
                here.open();
                std::future::pending::<()>().await;
            })
            .detach();
        begun.pass();
        // The worker drops the task: no other thread of the runtime shuts it down.
        drive(runtime.shutdown());
        until(|| order.lock().unwrap().len() == 5);
        // The thread of the shutdown is the second one.
        let order = order.lock().unwrap();
        let last = order.iter().rposition(|it| *it == "leaves").unwrap();
        let drops = order.iter().position(|it| *it == "drops").unwrap();
        assert!(order[0] == "enters" && drops < last, "{order:?}");
    });
}

#[test]
fn the_function_is_dropped_with_the_runtime() {
    within(WATCH, || {
        let drops = Drops::default();
        let one = drops.one();
        let around = move |run: &mut dyn FnMut()| {
            let _kept = &one;
            run();
        };
        let runtime = builder().around_threads(around).build().unwrap();
        drop(runtime);
        until(|| drops.count() == 1);
    });
}

#[test]
fn a_function_in_a_static_needs_no_move() {
    static ENTERS: fn() -> Entered = Entered::new;
    within(WATCH, || {
        let runtime = builder()
            .around_threads(|run| {
                let _guard = ENTERS();
                run()
            })
            .build()
            .unwrap();
        assert_eq!(drive(runtime.spawn(async { entered() })), 1);
    });
}

/// Builds a runtime whose function refuses the threads after the first `most`, by a return or by a
/// panic.
fn refusing(most: usize, panics: bool) -> Result<Runtime, BuildError> {
    keep_bombs_quiet();
    let started = AtomicUsize::new(0);
    let around = move |run: &mut dyn FnMut()| {
        if started.fetch_add(1, Ordering::SeqCst) < most {
            run();
        } else if panics {
            panic!("bomb before run");
        }
    };
    builder().workers(2).around_threads(around).build()
}

#[test]
fn a_worker_that_does_not_run_is_a_build_error_that_says_why() {
    within(WATCH, || {
        for most in [0, 1] {
            for (panics, why) in [
                (false, "`around_threads` did not call `run`"),
                (
                    true,
                    "`around_threads` panicked before it called `run`: bomb before run",
                ),
            ] {
                let Err(BuildError::Thread {
                    workers,
                    started,
                    source,
                }) = refusing(most, panics)
                else {
                    panic!("the runtime was built")
                };
                assert_eq!((workers, started), (2, most));
                assert_eq!(source.to_string(), why);
            }
        }
    });
}

#[test]
fn a_pinned_thread_that_does_not_run_is_an_error_and_no_activity() {
    within(WATCH, || {
        for panics in [false, true] {
            let runtime = refusing(2, panics).unwrap();
            let error = runtime.spawn_pinned("pinned").unwrap_err();
            assert!(error.to_string().contains("`around_threads`"), "{error}");
            drive(runtime.quiescent());
            let report = drive(runtime.shutdown());
            assert_eq!(report.left_behind, 0);
        }
    });
}

#[test]
fn a_detached_actor_whose_thread_does_not_run_is_returned() {
    within(WATCH, || {
        for panics in [false, true] {
            let runtime = refusing(2, panics).unwrap();
            let make = || actor(|_: Context<()>| async { 42 }).on(Detached);
            let error = inside(&runtime, || make().try_spawn()).unwrap_err();
            assert!(matches!(error.problem(), SpawnProblem::Thread(_)));
            let (text, ..) = panic_of(|| inside(&runtime, || make().spawn()));
            assert!(text.contains("did not start"), "{text}");
            let again = actor(error.into_inner()).on(&runtime).spawn();
            assert_eq!(drive(again.join()).unwrap(), 42);
        }
    });
}

#[test]
fn a_call_whose_thread_does_not_run_runs_on_the_caller() {
    within(WATCH, || {
        for panics in [false, true] {
            let runtime = refusing(2, panics).unwrap();
            let here = || std::thread::current().id();
            assert_eq!(runtime.block_on(async { unblock(here).await }), here());
            drive(runtime.quiescent());
        }
    });
}

#[test]
fn block_on_a_worker_without_a_spare_thread_panics_and_says_why() {
    within(WATCH, || {
        let runtime = refusing(2, false).unwrap();
        let text = runtime.spawn(async { panic_of(|| Runtime::current().block_on(async {})).0 });
        let text = drive(text);
        assert!(text.contains("`around_threads` did not call"), "{text}");
        assert_eq!(drive(runtime.spawn(async { 42 })), 42);
    });
}

#[test]
fn a_shutdown_whose_thread_does_not_run_happens_all_the_same() {
    within(WATCH, || {
        for panics in [false, true] {
            let runtime = refusing(2, panics).unwrap();
            let gone = Gate::default();
            let opens = OpenOnDrop(gone.clone());
            let begun = Gate::default();
            let here = begun.clone();
            runtime
                .spawn(async move {
                    let _opens = opens;
                    here.open();
                    std::future::pending::<()>().await;
                })
                .detach();
            begun.pass();
            assert_eq!(drive(runtime.shutdown()).left_behind, 0);
            assert!(gone.is_open());
        }
    });
}

#[test]
fn a_function_that_runs_twice_runs_once() {
    within(WATCH, || {
        let returned = Arc::new(AtomicUsize::new(0));
        let counts = returned.clone();
        let around = move |run: &mut dyn FnMut()| {
            run();
            run();
            counts.fetch_add(1, Ordering::SeqCst);
        };
        let runtime = builder().around_threads(around).build().unwrap();
        assert_eq!(drive(runtime.spawn(async { 42 })), 42);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
        drop(pinned);
        drop(runtime);
        until(|| returned.load(Ordering::SeqCst) == 2);
    });
}

#[test]
fn a_panic_after_the_run_is_contained() {
    within(WATCH, || {
        keep_bombs_quiet();
        let around = |run: &mut dyn FnMut()| {
            run();
            panic!("bomb after run");
        };
        let runtime = builder().around_threads(around).build().unwrap();
        assert_eq!(drive(runtime.spawn(async { 42 })), 42);
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
        drop(pinned);
        let call = inside(&runtime, || unblock(|| 42));
        assert_eq!(drive(call), 42);
        assert_eq!(drive(runtime.shutdown()).left_behind, 0);
    });
}

#[test]
fn the_function_may_use_the_runtime_while_a_thread_starts() {
    within(WATCH, || {
        let own = Arc::new(Mutex::new(None::<Runtime>));
        let uses = own.clone();
        let around = move |run: &mut dyn FnMut()| {
            let runtime = uses.lock().unwrap().take();
            if let Some(runtime) = runtime {
                // No lock of the runtime is held meanwhile.
                let pinned = runtime.spawn_pinned("from within").unwrap();
                assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
                runtime.stats();
            }
            run();
        };
        let runtime = builder().around_threads(around).build().unwrap();
        *own.lock().unwrap() = Some(runtime.clone());
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        assert_eq!(drive(pinned.spawn(|| async { 42 })), 42);
    });
}

#[test]
fn a_simulated_runtime_never_calls_the_function() {
    within(WATCH, || {
        let called = Arc::new(AtomicUsize::new(0));
        let counts = called.clone();
        let around = move |run: &mut dyn FnMut()| {
            counts.fetch_add(1, Ordering::SeqCst);
            run();
        };
        let simulated = Runtime::builder().policy(Simulated::new(1));
        let runtime = simulated.around_threads(around).build().unwrap();
        let sum = runtime.block_on(async {
            let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
            let one = pinned.spawn(|| async { 1 }).await;
            let two = unblock(|| 2).await;
            let four = spawn!(|_: Context<()>| async { 4 }, on = Detached);
            one + two + four.join().await.unwrap()
        });
        assert_eq!(sum, 7);
        drop(runtime);
        assert_eq!(called.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_blocking_thread_that_does_not_start_is_tried_again() {
    let fails = Arc::new(AtomicBool::new(false));
    let is_failing = fails.clone();
    within(WATCH, move || {
        // A thread for which the function does not call `run` has not started.
        let around = move |run: &mut dyn FnMut()| {
            if !is_failing.load(Ordering::SeqCst) {
                run();
            }
        };
        let runtime = builder().around_threads(around).build().unwrap();
        let (begun, end) = (Gate::default(), Gate::default());
        let (begins, ends) = (begun.clone(), end.clone());
        let first = inside(&runtime, || {
            unblock(move || {
                begins.open();
                drive(ends.wait());
            })
        });
        drive(begun.wait());
        fails.store(true, Ordering::SeqCst);
        // This call ends the first one, which has the only thread.
        let second = inside(&runtime, || unblock(move || end.open()));
        until(|| runtime.stats().blocking.failed_starts >= 3);
        assert_eq!(runtime.stats().blocking.queued, 1);
        fails.store(false, Ordering::SeqCst);
        drive(second);
        drive(first);
        assert_eq!(runtime.stats().blocking.threads, 2);
    });
}
