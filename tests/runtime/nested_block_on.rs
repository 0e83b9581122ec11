//! `block_on` and `run` in a task: another thread takes the worker's place while the task's thread
//! waits.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use greenroom::time::sleep;
use greenroom::{Context, Detached, Fault, Pinned, Reply, Runtime, spawn, unblock, yield_now};

use crate::support::{
    Drops, Gate, Home, Log, OpenOnDrop, WATCH, drive, panic_of, poll_here, within,
};

/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3600);

fn runtime(workers: usize) -> Runtime {
    named(workers, "greenroom")
}

fn named(workers: usize, name: &str) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .thread_name(name)
        .grace(Duration::from_millis(10))
        .on_fault(|_| {})
        .build()
        .unwrap()
}

fn here() -> std::thread::ThreadId {
    std::thread::current().id()
}

/// Runs a task on a runtime with one worker and in simulations, under the watchdog.
fn in_a_task<R, F>(task: impl Fn() -> F + Clone + Send + 'static) -> R
where
    F: Future<Output = R> + Send + 'static,
    R: Send + 'static,
{
    let again = task.clone();
    Home::simulate(move |runtime| drop(drive(runtime.spawn(again()))));
    on_a_worker(task)
}

/// Does the same as [`in_a_task`], but only on threads: for tests that depend on threads, stacks or
/// another runtime.
fn on_a_worker<R, F>(task: impl FnOnce() -> F + Send + 'static) -> R
where
    F: Future<Output = R> + Send + 'static,
    R: Send + 'static,
{
    within(WATCH, || {
        let runtime = runtime(1);
        drive(runtime.spawn(async { task().await }))
    })
}

/// Waits in `block_on` of the current runtime.
fn wait<F: Future>(future: F) -> F::Output {
    Runtime::current().block_on(future)
}

#[test]
fn block_on_in_a_task_may_wait_for_a_task_of_its_only_worker() {
    let value = in_a_task(|| async { wait(async { greenroom::spawn(async { 40 }).await + 2 }) });
    assert_eq!(value, 42);
}

#[test]
fn tasks_queued_behind_a_task_in_block_on_still_run() {
    in_a_task(|| async {
        let gates: Vec<Gate> = (0..300).map(|_| Gate::default()).collect();
        for gate in gates.clone() {
            // The last one is in the LIFO slot, the ring is full, and some tasks have overflowed.
            greenroom::spawn(async move { gate.open() }).detach();
        }
        wait(async {
            for gate in &gates {
                gate.wait().await;
            }
        });
    });
}

#[test]
fn a_task_that_called_block_on_stays_on_its_thread_until_its_turn_ends() {
    on_a_worker(|| async {
        let worker = here();
        let (inside, spawned) = wait(async {
            let spawned = greenroom::spawn(async { here() });
            (here(), spawned.await)
        });
        assert_eq!((inside, here()), (worker, worker));
        assert_ne!(
            spawned, worker,
            "another thread has taken the worker's place"
        );
        // The other thread also runs tasks that are woken or spawned in the rest of the turn.
        let rest = greenroom::spawn(async { here() });
        yield_now().await;
        assert_eq!(here(), spawned, "the thread is no worker after its turn");
        assert_eq!(rest.await, spawned);
    });
}

#[test]
fn the_runtime_is_current_in_the_rest_of_the_turn() {
    in_a_task(|| async {
        let other = named(1, "other");
        assert_eq!(other.block_on(async { current() }), "other");
        assert_eq!(current(), "greenroom");
        assert_eq!(greenroom::spawn(async { current() }).await, "greenroom");
    });
}

fn current() -> String {
    let text = format!("{:?}", Runtime::current());
    text.split('"').nth(1).unwrap().to_owned()
}

#[test]
fn a_task_may_call_block_on_repeatedly_and_nested() {
    in_a_task(|| async {
        for _ in 0..3 {
            let sum = wait(async {
                let inner = wait(async { greenroom::spawn(async { 1 }).await });
                inner + greenroom::spawn(async { 1 }).await
            });
            assert_eq!(sum, 2);
        }
    });
}

#[test]
fn a_deep_chain_of_tasks_in_block_on_completes() {
    fn deep(left: u32) -> u32 {
        if left == 0 {
            return 0;
        }
        wait(async move { greenroom::spawn(async move { deep(left - 1) }).await + 1 })
    }
    assert_eq!(in_a_task(|| async { deep(50) }), 50);
}

#[test]
fn tasks_in_block_on_take_no_threads_from_blocking_calls() {
    on_a_worker(|| async {
        let (all, waiting) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..520)
            .map(|_| {
                let (all, waiting) = (all.clone(), waiting.clone());
                greenroom::spawn(async move {
                    wait(async {
                        if waiting.fetch_add(1, Ordering::SeqCst) == 519 {
                            all.open();
                        }
                        all.wait().await;
                        // Tasks in `block_on` take no threads from blocking calls.
                        assert_eq!(unblock(|| 42).await, 42);
                    });
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn repeated_block_on_calls_in_a_task_reuse_threads() {
    within(WATCH, || {
        let runtime = named(1, "again");
        drive(runtime.spawn(async {
            for _ in 0..200 {
                wait(async { greenroom::spawn(async {}).await });
                yield_now().await;
            }
        }));
        // Several threads, because a thread that was a worker may not be idle yet when the next one
        // is needed.
        let threads = crate::child::threads_named("again");
        assert!((2..50).contains(&threads), "{threads} threads");
        drop(runtime);
        crate::support::until(|| crate::child::threads_named("again") == 0);
    });
}

#[test]
fn all_workers_may_be_in_block_on_at_the_same_time() {
    within(WATCH, || {
        let runtime = runtime(2);
        let gates = [Gate::default(), Gate::default()];
        let tasks: Vec<_> = (0..2)
            .map(|at| {
                let gates = gates.clone();
                runtime.spawn(async move {
                    gates[at].open();
                    gates[1 - at].pass();
                    wait(async { greenroom::spawn(async { 21 }).await })
                })
            })
            .collect();
        let sum: u32 = tasks.into_iter().map(drive).sum();
        assert_eq!(sum, 42);
    });
}

#[test]
fn an_actor_may_block_on_an_ask_to_another_actor() {
    async fn twice(mut cx: Context<(u32, Reply<u32>)>) {
        while let Some((number, reply)) = cx.recv().await {
            reply.send(2 * number);
        }
    }
    in_a_task(|| async {
        let twice = spawn!(twice(_));
        let address = twice.address();
        let waits = spawn!(|mut cx: Context<u32>| async move {
            let mut sum = 0;
            while let Some(number) = cx.recv().await {
                sum += wait(address.ask(|reply| (number, reply))).unwrap();
            }
            sum
        });
        (1..=6).for_each(|number| waits.tell(number).unwrap());
        assert_eq!(waits.join().await.unwrap(), 42);
        twice.stop();
        twice.join().await.unwrap();
    });
}

#[test]
fn timers_armed_before_block_on_fire() {
    in_a_task(|| async {
        const BRIEF: Duration = Duration::from_millis(3);
        // Armed on the worker in this turn, so no other thread knows the deadline.
        let mut before = sleep(BRIEF);
        while poll_here(&mut before).await.is_ready() {
            // It was over before its first poll.
            before = sleep(BRIEF);
        }
        let spawned = greenroom::spawn(sleep(BRIEF));
        wait(async {
            sleep(BRIEF).await;
            spawned.await;
        });
        before.await;
        sleep(BRIEF).await;
    });
}

#[test]
fn two_runtimes_may_block_on_each_other_in_turns() {
    fn bounce(one: Runtime, other: Runtime, left: u32) -> u32 {
        if left == 0 {
            return 0;
        }
        let next = one.clone();
        let task = async move { bounce(other, next, left - 1) };
        one.block_on(one.spawn(task)) + 1
    }
    within(WATCH, || {
        let (a, b) = (runtime(1), runtime(1));
        assert_eq!(bounce(a, b, 20), 20);
    });
}

#[test]
fn runtimes_that_end_out_of_order_in_a_task_restore_the_current_one() {
    on_a_worker(|| async {
        let (b, c) = (named(1, "b"), named(1, "c"));
        b.block_on(async {
            c.block_on(async {
                // The outer runtime of the two ends first.
                assert_eq!(b.shutdown().await.left_behind, 0);
                assert_eq!(current(), "c");
            });
            drop(c);
            assert_eq!(current(), "b");
        });
        assert_eq!(current(), "greenroom");
        yield_now().await;
        assert_eq!(greenroom::spawn(async { 42 }).await, 42);
    });
}

#[test]
fn block_on_works_inside_unblock_inside_block_on_inside_a_task() {
    let value = in_a_task(|| async {
        wait(async { unblock(|| wait(async { greenroom::spawn(async { 42 }).await })).await })
    });
    assert_eq!(value, 42);
}

#[test]
fn run_in_a_task_starts_a_separate_runtime() {
    let value = on_a_worker(|| async {
        let ended = Gate::default();
        let end = ended.clone();
        let value = greenroom::run(async {
            spawn!(|mut cx: Context<()>| async move {
                let _end = OpenOnDrop(end);
                while cx.recv().await.is_some() {}
            })
            .detach();
            greenroom::spawn(async { 40 }).await
        });
        assert!(ended.is_open(), "`run` has shut its runtime down");
        value + greenroom::spawn(async { 2 }).await
    });
    assert_eq!(value, 42);
}

#[test]
fn a_panic_in_block_on_faults_the_task_and_the_workers_continue() {
    within(WATCH, || {
        let runtime = runtime(1);
        let actor = spawn!(
            |_cx: Context<()>| async { wait(async { panic!("bomb in a wait") }) },
            on = &runtime
        );
        let fault = drive(actor.join()).unwrap_err();
        let Fault::Panicked(panic) = fault else {
            panic!("{fault:?}")
        };
        assert_eq!(panic.text(), Some("bomb in a wait"));
        let (text, ..) = drive(runtime.spawn(async {
            let told = panic_of(|| wait(async { panic!("bomb again") }));
            // The task continues after it, as after any caught panic.
            wait(yield_now());
            told
        }));
        assert_eq!(text, "bomb again");
        assert_eq!(drive(runtime.spawn(async { 42 })), 42);
    });
}

#[test]
fn block_on_in_a_drop_during_a_nested_shutdown_is_contained() {
    struct WaitsInDrop(Runtime);
    impl Drop for WaitsInDrop {
        fn drop(&mut self) {
            assert_eq!(self.0.block_on(self.0.spawn(async { 42 })), 42);
        }
    }
    on_a_worker(|| async {
        let (outer, inner) = (Runtime::current(), named(1, "inner"));
        let dropped = Gate::default();
        let (held, opens) = (WaitsInDrop(outer), OpenOnDrop(dropped.clone()));
        let pinned = inner.spawn_pinned("held").unwrap();
        let task = move || async move {
            let _held = (held, opens);
            std::future::pending::<()>().await;
        };
        pinned.spawn(task).detach();
        pinned.spawn(|| async {}).await;
        // On a pinned thread `block_on` panics; the panic is contained like any panic in a drop.
        let (shut, gone) = (inner.clone(), dropped.clone());
        wait(async move {
            shut.shutdown().await;
            gone.wait().await;
        });
    });
}

#[test]
fn many_tasks_in_block_on_lose_no_messages() {
    within(WATCH, || {
        const TASKS: usize = 16;
        const ROUNDS: usize = 60;
        let runtime = runtime(2);
        let drops = Drops::default();
        let tally = spawn!(
            |mut cx: Context<u32>| async move {
                let mut sum = 0;
                while let Some(number) = cx.recv().await {
                    sum += number;
                }
                sum
            },
            on = &runtime
        );
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let (address, drops) = (tally.address(), drops.clone());
                runtime.spawn(async move {
                    for round in 0..ROUNDS {
                        let dropped = drops.one();
                        let told = address.clone();
                        let spawned = greenroom::spawn(async move {
                            let _dropped = dropped;
                            yield_now().await;
                            told.tell(1).unwrap();
                        });
                        if (task + round) % 2 == 0 {
                            wait(spawned);
                        } else {
                            spawned.await;
                        }
                        address.tell(1).unwrap();
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(drive);
        assert_eq!(drops.count(), TASKS * ROUNDS);
        assert_eq!(drive(tally.join()).unwrap(), 2 * (TASKS * ROUNDS) as u32);
    });
}

#[test]
fn a_wake_after_block_on_in_the_same_turn_reaches_the_workers() {
    in_a_task(|| async {
        let (log, go) = (Log::default(), Gate::default());
        let (later, waits) = (log.clone(), go.clone());
        let task = greenroom::spawn(async move {
            waits.wait().await;
            later.add("woken");
        });
        yield_now().await;
        wait(async { yield_now().await });
        // This thread is no worker here, so no worker wakes the task.
        go.open();
        wait(task);
        assert_eq!(log.take(), ["woken"]);
    });
}

type Waiting<'a> = Pin<&'a mut dyn Future<Output = ()>>;

/// Runs one wait within another; the outer one is woken first.
fn wait_within_a_wait(wait: impl Fn(Waiting<'_>)) {
    let told: [Arc<AtomicBool>; 2] = Default::default();
    let is_told = |which: usize| match told[which].load(Ordering::SeqCst) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    };
    let (mut outer_waits, mut inner_waits) = (false, false);
    wait(pin!(poll_fn(|outer| {
        if std::mem::replace(&mut outer_waits, true) {
            return is_told(0);
        }
        wait(pin!(poll_fn(|inner| {
            if std::mem::replace(&mut inner_waits, true) {
                return is_told(1);
            }
            let wakers = [outer.waker().clone(), inner.waker().clone()];
            let told = told.clone();
            std::thread::spawn(move || {
                for (told, waker) in told.iter().zip(wakers) {
                    told.store(true, Ordering::SeqCst);
                    waker.wake();
                }
            });
            Poll::Pending
        })));
        Poll::Pending
    })));
}

#[test]
fn an_outer_block_on_woken_during_an_inner_one_returns() {
    on_a_worker(|| async { wait_within_a_wait(|future| wait(future)) });
    within(WATCH, || {
        let runtime = runtime(1);
        wait_within_a_wait(|future| runtime.block_on(future));
    });
}

#[test]
fn an_outer_block_on_in_a_detached_actor_woken_during_an_inner_one_returns() {
    for has_deadline in [false, true] {
        on_a_worker(move || async move {
            let waits = move |_: Context<()>| async move {
                let mut far = sleep(HOUR);
                if has_deadline {
                    assert!(poll_here(&mut far).await.is_pending());
                }
                wait_within_a_wait(|future| wait(future));
            };
            spawn!(waits(_), on = Detached).join().await.unwrap();
        });
    }
}

#[test]
fn an_outer_block_on_on_a_stage_woken_during_an_inner_one_returns() {
    for has_deadline in [false, true] {
        within(WATCH, move || {
            let (runtime, none) = (runtime(1), Pinned::here());
            wait_within_a_wait(|future| none.block_on(future));
            drop(none);
            let stage = runtime.pinned_here();
            if has_deadline {
                stage.spawn(|| sleep(HOUR)).detach();
            }
            wait_within_a_wait(|future| stage.block_on(future));
            wait_within_a_wait(|future| runtime.block_on(future));
        });
    }
}
