//! Bugs of other runtimes, a test each. `docs/origins.md` lists the sources.
//!
//! The tests for bugs in stealing, fairness, nesting, panics, pinned drops and drops with side
//! effects are in the files of those subjects.

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use greenroom::{Address, Context, Pinned, Runtime, spawn};

use crate::support::{
    Drops, Gate, Home, WATCH, drive, inside, on_threads, poll_here, poll_once, until, within,
};

// These runtimes are held or woken by other threads while they end.
on_threads!(
    a_runtime_may_end_while_other_threads_wake_its_tasks,
    a_runtime_may_end_while_other_threads_message_its_actors,
    a_wake_under_a_lock_that_the_dropped_future_takes_does_not_hang,
    dropping_the_last_waker_after_the_runtime_frees_everything,
);

/// Pushes its waker to the list at every poll and never ends.
async fn leave_wakers(list: Arc<Mutex<Vec<Waker>>>) {
    poll_fn(|cx| {
        list.lock().unwrap().push(cx.waker().clone());
        Poll::<()>::Pending
    })
    .await;
}

/// Creates another runtime of the same kind, to be dropped by the scenario.
fn another(home: &Home) -> Home {
    let here =
        home.block_on(home.spawn_task(async { std::thread::current().name() == Some("pinned") }));
    if here {
        Home::pinned()
    } else {
        Home::workers(2)
    }
}

fn a_runtime_may_end_while_other_threads_wake_its_tasks(home: &Home) {
    for _ in 0..100 {
        let ending = another(home);
        let (drops, wakers) = (Drops::default(), Arc::new(Mutex::new(Vec::new())));
        for _ in 0..10 {
            let (dropped, wakers) = (drops.one(), wakers.clone());
            ending
                .spawn_task(async move {
                    let _dropped = dropped;
                    leave_wakers(wakers).await;
                })
                .detach();
        }
        until(|| wakers.lock().unwrap().len() >= 10);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (over, wakers) = (&over, &wakers);
                scope.spawn(move || {
                    while !over.load(Ordering::SeqCst) {
                        // A worker waits for this lock in a turn.
                        std::thread::yield_now();
                        let some: Vec<Waker> = wakers.lock().unwrap().drain(..).collect();
                        some.iter().for_each(Waker::wake_by_ref);
                        // Also wakes tasks that were dropped before.
                        some.into_iter().for_each(Waker::wake);
                    }
                });
            }
            drop(ending);
            assert_eq!(drops.count(), 10);
            over.store(true, Ordering::SeqCst);
        });
        assert_eq!(drops.count(), 10);
    }
}

fn a_runtime_may_end_while_other_threads_message_its_actors(home: &Home) {
    for _ in 0..100 {
        let ending = another(home);
        let (states, messages) = (Drops::default(), Drops::default());
        let addresses: Vec<_> = (0..4)
            .map(|_| {
                let state = states.one();
                let actor =
                    greenroom::actor(|mut cx: Context<crate::support::Dropped>| async move {
                        let _state = state;
                        while cx.recv().await.is_some() {}
                    });
                ending.spawn(actor).address()
            })
            .collect();
        let told: usize = std::thread::scope(|scope| {
            let tellers: Vec<_> = (0..2)
                .map(|_| {
                    let (addresses, messages) = (&addresses, &messages);
                    scope.spawn(move || {
                        let mut told = 0;
                        loop {
                            let refused = addresses.iter().filter(|address| {
                                told += 1;
                                address.tell(messages.one()).is_err()
                            });
                            if refused.count() == addresses.len() {
                                return told;
                            }
                        }
                    })
                })
                .collect();
            drop(ending);
            tellers
                .into_iter()
                .map(|teller| teller.join().unwrap())
                .sum()
        });
        assert_eq!(states.count(), 4);
        // Messages told while the last messages were dropped are dropped with their mailboxes.
        drop(addresses);
        assert_eq!(messages.count(), told);
    }
}

fn a_wake_under_a_lock_that_the_dropped_future_takes_does_not_hang(home: &Home) {
    /// The wakers of waiting tasks; a lock that wakes tasks while it is held has such a list.
    type List = Arc<Mutex<Vec<Waker>>>;
    struct Leaves(List);
    impl Drop for Leaves {
        fn drop(&mut self) {
            drop(self.0.lock().unwrap().pop());
        }
    }
    for _ in 0..100 {
        let ending = another(home);
        let lists: Vec<List> = (0..8).map(|_| List::default()).collect();
        for list in &lists {
            for _ in 0..2 {
                let (leaves, own) = (Leaves(list.clone()), list.clone());
                ending
                    .spawn_task(async move {
                        let _leaves = leaves;
                        leave_wakers(own).await;
                    })
                    .detach();
            }
        }
        until(|| lists.iter().all(|list| list.lock().unwrap().len() >= 2));
        std::thread::scope(|scope| {
            let lists = &lists;
            scope.spawn(move || {
                for list in lists.iter().cycle().take(400) {
                    // Wakes under the lock; the woken tasks are about to be dropped.
                    list.lock().unwrap().iter().for_each(Waker::wake_by_ref);
                }
            });
            drop(ending);
        });
    }
}

/// Builds a runtime and returns a weak reference to a value that lives as long as any part of it.
fn traced(workers: usize) -> (Runtime, Weak<()>) {
    let trace = Arc::new(());
    let weak = Arc::downgrade(&trace);
    let builder = Runtime::builder().workers(workers).on_fault(move |_| {
        let _held = &trace;
    });
    (builder.build().unwrap(), weak)
}

fn dropping_the_last_waker_after_the_runtime_frees_everything(home: &Home) {
    let pinned =
        home.block_on(home.spawn_task(async { std::thread::current().name() == Some("pinned") }));
    for _ in 0..10 {
        let (runtime, trace) = traced(1);
        let seat = runtime.spawn_pinned("pinned").unwrap();
        let wakers = Arc::new(Mutex::new(Vec::new()));
        let drops = Drops::default();
        // The wakers of a task and of an actor.
        let (of_task, dropped) = (leave_wakers(wakers.clone()), drops.one());
        let task = async move {
            let _dropped = dropped;
            of_task.await;
        };
        if pinned {
            seat.spawn(move || task).detach()
        } else {
            runtime.spawn(task).detach()
        }
        let (of_actor, dropped) = (leave_wakers(wakers.clone()), drops.one());
        let actor = greenroom::actor(|_cx: Context<()>| async move {
            let _dropped = dropped;
            of_actor.await;
        });
        let handle = if pinned {
            actor.on(&seat).spawn()
        } else {
            actor.on(&runtime).spawn()
        };
        until(|| wakers.lock().unwrap().len() == 2);
        drop((runtime, seat, handle));
        assert_eq!(drops.count(), 2);
        let kept = std::mem::take(&mut *wakers.lock().unwrap());
        let clones = kept.clone();
        kept.iter().for_each(Waker::wake_by_ref);
        drop(kept);
        assert!(
            trace.upgrade().is_some(),
            "a waker keeps its task, which keeps the runtime's shared state"
        );
        clones.into_iter().for_each(Waker::wake);
        assert!(trace.upgrade().is_none());
    }
}

/// Returns a value that a user may keep after the runtime was dropped.
type Keep = fn(&Runtime, &Pinned) -> Box<dyn std::any::Any>;

async fn reader(mut cx: Context<Vec<u8>>) {
    while cx.recv().await.is_some() {}
}

const KEPT: &[(&str, Keep)] = &[
    ("nothing", |_, _| Box::new(())),
    ("a clone that does not count", |runtime, _| {
        Box::new(runtime.block_on(async { Runtime::current() }))
    }),
    ("a pinned thread", |_, pinned| Box::new(pinned.clone())),
    ("a task", |runtime, _| {
        Box::new(runtime.spawn(std::future::pending::<()>()))
    }),
    ("a task that was done", |runtime, _| {
        let task = runtime.spawn(async { vec![1] });
        until(|| task.is_finished());
        Box::new(task)
    }),
    ("a pinned task", |_, pinned| {
        Box::new(pinned.spawn(std::future::pending::<()>))
    }),
    ("a handle", |runtime, _| {
        Box::new(spawn!(reader(_), on = runtime))
    }),
    ("an address and its weak one", |_, pinned| {
        let actor = spawn!(reader(_), on = pinned);
        Box::new((actor.address(), actor.downgrade()))
    }),
    ("a join", |runtime, _| {
        Box::new(spawn!(reader(_), on = runtime).join())
    }),
    ("a hosted value", |_, pinned| {
        Box::new(drive(pinned.host(|| vec![1])).unwrap())
    }),
    ("a sleep", |runtime, _| {
        let mut sleep = greenroom::time::sleep(Duration::from_secs(1_000_000));
        assert!(runtime.block_on(poll_here(&mut sleep)).is_pending());
        Box::new(sleep)
    }),
    ("a pinned sleep", |_, pinned| {
        let (send, receive) = std::sync::mpsc::channel();
        drive(pinned.spawn(|| async move {
            let mut sleep = greenroom::time::sleep(Duration::from_secs(1_000_000));
            assert!(poll_here(&mut sleep).await.is_pending());
            send.send(sleep).unwrap();
        }));
        Box::new(receive.recv().unwrap())
    }),
    ("a blocking call", |runtime, _| {
        Box::new(inside(runtime, || greenroom::unblock(|| vec![1])))
    }),
    ("a shutdown", |runtime, _| {
        let runtime = runtime.block_on(async { Runtime::current() });
        let mut shutdown = Box::pin(async move { runtime.shutdown().await });
        let _ = poll_once(&mut shutdown);
        Box::new(shutdown)
    }),
];

#[test]
fn values_kept_from_a_runtime_do_not_keep_the_rest_of_it() {
    for (what, keep) in KEPT {
        within(WATCH, move || {
            let (runtime, trace) = traced(2);
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            // An actor and a task that a reference cycle could keep alive.
            let talker: Address<_> = spawn!(reader(_), on = &pinned).address();
            let sleeper = runtime.spawn(async move {
                greenroom::time::sleep(Duration::from_secs(1_000_000)).await;
                drop(talker);
            });
            sleeper.detach();
            drive(runtime.spawn(async { greenroom::unblock(|| ()).await }));
            let kept = keep(&runtime, &pinned);
            drop((runtime, pinned));
            drop(kept);
            // A thread that helped with the shutdown may be about to end.
            until(|| trace.upgrade().is_none());
            eprintln!("{what} keeps nothing");
        });
    }
}

/// A value that uses the whole library in its drop, which runs as late as a user's thread-local.
struct Late {
    runtime: Runtime,
    pinned: Pinned,
    address: Address<u32>,
    hosted: greenroom::Hosted<u32>,
    ended: Gate,
}

impl Drop for Late {
    fn drop(&mut self) {
        let _ = Runtime::try_current();
        let _ = self.address.tell(1);
        self.runtime.spawn(async {}).detach();
        drop(self.runtime.spawn(async {}));
        self.pinned.spawn(|| async {}).detach();
        let _ = greenroom::actor(|_cx: Context<()>| async {})
            .on(&self.runtime)
            .try_spawn();
        let _ = greenroom::actor(|_cx: Context<()>| async {}).try_spawn();
        let _ = poll_once(&mut Box::pin(self.hosted.with(|number| *number)));
        let _ = poll_once(&mut greenroom::time::sleep(Duration::from_secs(1)));
        greenroom::unblock(|| ()).detach();
        self.address.stop();
        self.ended.open();
    }
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

#[test]
fn the_library_may_be_used_in_destructors_of_thread_locals() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let hosted = drive(pinned.host(|| 42)).unwrap();
        let mut gates = Vec::new();
        let mut late = || {
            let ended = Gate::default();
            gates.push(ended.clone());
            let counter = spawn!(
                |mut cx: Context<u32>| async move { while cx.recv().await.is_some() {} },
                on = &runtime
            );
            let late = Late {
                // Clones that do not count as owners: a thread of the runtime must not keep it
                // alive.
                runtime: runtime.block_on(async { Runtime::current() }),
                pinned: pinned.clone(),
                address: counter.address(),
                hosted: hosted.clone(),
                ended,
            };
            move || LATE.with(|slot| *slot.borrow_mut() = Some(late))
        };
        // A thread of the user, while the runtime lives.
        std::thread::spawn(late()).join().unwrap();
        let (on_worker, on_pinned, in_call) = (late(), late(), late());
        drive(runtime.spawn(async move { on_worker() }));
        drive(pinned.spawn(|| async move { on_pinned() }));
        runtime.block_on(async { greenroom::unblock(in_call).await });
        // A thread that outlives the runtime.
        let (outlives, go) = (late(), Gate::default());
        let waits = go.clone();
        let thread = std::thread::spawn(move || {
            outlives();
            waits.pass();
        });
        drop((runtime, pinned, hosted));
        go.open();
        thread.join().unwrap();
        assert_eq!(gates.len(), 5);
        gates.iter().for_each(Gate::pass);
    });
}

#[test]
fn the_last_clone_may_be_dropped_by_a_thread_local() {
    thread_local! {
        static LAST: RefCell<Option<Runtime>> = const { RefCell::new(None) };
    }
    within(WATCH, || {
        let (runtime, trace) = traced(1);
        let drops = Drops::default();
        let dropped = drops.one();
        runtime
            .spawn(async move {
                let _dropped = dropped;
                std::future::pending::<()>().await;
            })
            .detach();
        drive(runtime.spawn(async {}));
        let thread = std::thread::spawn(|| LAST.with(|last| *last.borrow_mut() = Some(runtime)));
        thread.join().unwrap();
        assert_eq!(drops.count(), 1);
        assert!(trace.upgrade().is_none());
    });
}

/// Test files whose threads wait for each other the most.
#[cfg(target_os = "linux")]
const ON_ONE_CORE: [&str; 5] = [
    "runtime_fairness",
    "runtime_stealing",
    "runtime_spawn",
    "pinned_threads",
    "hosted",
];

#[cfg(target_os = "linux")]
#[test]
fn no_thread_spins_forever_on_one_core() {
    use std::process::Stdio;
    crate::child::alone("bugs_runtime::no_thread_spins_forever_on_one_core", || {
        crate::child::use_one_core();
        let mut tests = crate::child::all_over();
        tests.args(ON_ONE_CORE).arg("--test-threads=2");
        let output = crate::child::finish(tests.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "on one core, {}:\n{text}",
            output.status
        );
        assert!(!text.contains(" 0 passed"), "no test was run:\n{text}");
    });
}
