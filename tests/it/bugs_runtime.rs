//! Bugs that other runtimes had, one test each: the number is that of the catalogue.
//!
//! Those of stealing (W2, W8, S2), fairness (S1, S4), nesting (W4), panics (D16), pinned drops (D3)
//! and drops that do things (D6) stand with their subjects.

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

// Other runtimes, which other threads hold or wake as they end.
on_threads!(
    bug_d1_a_runtime_ends_while_others_wake_its_tasks,
    bug_d1_a_runtime_ends_while_others_tell_its_actors,
    bug_d1_a_wake_under_a_lock_that_the_dropped_future_takes_does_not_hang,
    bug_d4_wakers_that_outlive_the_runtime_free_everything_when_they_go,
);

/// A future that leaves its waker in the list at every poll and never ends.
async fn leave_wakers(list: Arc<Mutex<Vec<Waker>>>) {
    poll_fn(|cx| {
        list.lock().unwrap().push(cx.waker().clone());
        Poll::<()>::Pending
    })
    .await;
}

/// Another runtime of the same kind, to be dropped by the scenario.
fn another(home: &Home) -> Home {
    let here =
        home.block_on(home.spawn_task(async { std::thread::current().name() == Some("pinned") }));
    if here {
        Home::pinned()
    } else {
        Home::workers(2)
    }
}

fn bug_d1_a_runtime_ends_while_others_wake_its_tasks(home: &Home) {
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
                        let some: Vec<Waker> = wakers.lock().unwrap().drain(..).collect();
                        some.iter().for_each(Waker::wake_by_ref);
                        // Late ones, too.
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

fn bug_d1_a_runtime_ends_while_others_tell_its_actors(home: &Home) {
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
        // What was told as the last messages were dropped goes with its mailbox.
        drop(addresses);
        assert_eq!(messages.count(), told);
    }
}

fn bug_d1_a_wake_under_a_lock_that_the_dropped_future_takes_does_not_hang(home: &Home) {
    /// A list of those who wait, as a lock that wakes under itself has it.
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
                    // Under the lock; what is woken is about to be dropped.
                    list.lock().unwrap().iter().for_each(Waker::wake_by_ref);
                }
            });
            drop(ending);
        });
    }
}

/// A runtime, and something that lives as long as the last of what it was.
fn traced(workers: usize) -> (Runtime, Weak<()>) {
    let trace = Arc::new(());
    let weak = Arc::downgrade(&trace);
    let builder = Runtime::builder().workers(workers).on_fault(move |_| {
        let _held = &trace;
    });
    (builder.build().unwrap(), weak)
}

fn bug_d4_wakers_that_outlive_the_runtime_free_everything_when_they_go(home: &Home) {
    let pinned =
        home.block_on(home.spawn_task(async { std::thread::current().name() == Some("pinned") }));
    for _ in 0..10 {
        let (runtime, trace) = traced(1);
        let seat = runtime.spawn_pinned("pinned").unwrap();
        let wakers = Arc::new(Mutex::new(Vec::new()));
        let drops = Drops::default();
        // Of a task and of an actor.
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
            "a waker keeps its task, which keeps its runtime"
        );
        clones.into_iter().for_each(Waker::wake);
        assert!(trace.upgrade().is_none());
    }
}

/// Whatever a user may keep of a runtime that is gone.
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
fn bug_d4_nothing_that_is_kept_of_a_runtime_keeps_more_than_itself() {
    for (what, keep) in KEPT {
        within(WATCH, move || {
            let (runtime, trace) = traced(2);
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            // Some life, that a cycle could hold.
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

/// Uses what it can when it is dropped, as late as a thread-local of the user is.
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
fn bug_d12_everything_may_be_used_while_the_threads_locals_are_dropped() {
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
                // Clones that do not count: a thread of its own must not keep it.
                runtime: runtime.block_on(async { Runtime::current() }),
                pinned: pinned.clone(),
                address: counter.address(),
                hosted: hosted.clone(),
                ended,
            };
            move || LATE.with(|slot| *slot.borrow_mut() = Some(late))
        };
        // A thread of the user's, while the runtime lives.
        std::thread::spawn(late()).join().unwrap();
        let (on_worker, on_pinned, in_call) = (late(), late(), late());
        drive(runtime.spawn(async move { on_worker() }));
        drive(pinned.spawn(|| async move { on_pinned() }));
        runtime.block_on(async { greenroom::unblock(in_call).await });
        // And one that outlives it.
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
fn bug_d12_the_last_clone_may_go_with_a_thread_local() {
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

/// Those of the tests here in which threads wait for each other most.
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
fn bug_w10_on_one_core_nobody_spins_for_ever() {
    use std::process::Stdio;
    crate::child::alone(
        "bugs_runtime::bug_w10_on_one_core_nobody_spins_for_ever",
        || {
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
        },
    );
}
