//! A child of `fork`, in which the runtime of its parent has no threads. Each test runs in a
//! separate process.

#![expect(unsafe_code, reason = "processes are forked and ended through libc")]

use std::collections::BTreeSet;
use std::future::{pending, poll_fn};
use std::io::{PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::task::Spawn;
use greenroom::market::{Job, Market};
use greenroom::time::{sleep, timeout};
use greenroom::{
    Context, Detached, HostFault, Pinned, Reply, Runtime, SpawnProblem, actor, spawn, unblock,
    yield_now,
};

use crate::child::{alone, interrupt};
use crate::support::{Gate, drive, inside, panic_of, poll_here, poll_once};

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(1);

/// A child of this process.
struct Child(libc::pid_t);

impl Child {
    fn status(self) -> ExitStatus {
        let mut status = 0;
        // SAFETY: the status is plain data, passed by reference for the call only.
        assert_eq!(unsafe { libc::waitpid(self.0, &raw mut status, 0) }, self.0);
        ExitStatus::from_raw(status)
    }
}

/// Forks; returns `None` in the child, which a signal ends if it hangs.
fn fork() -> Option<Child> {
    // SAFETY: the child uses only memory that greenroom permits after a fork.
    let id = unsafe { libc::fork() };
    assert!(id >= 0, "{}", std::io::Error::last_os_error());
    if id > 0 {
        return Some(Child(id));
    }
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: plain data, passed by reference for the call only.
    unsafe {
        libc::alarm(120);
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
    }
    None
}

/// Calls `body` in a child process, and asserts that it neither panics nor hangs.
#[track_caller]
fn in_a_child(body: impl FnOnce()) {
    if let Some(child) = fork() {
        let status = child.status();
        return assert!(status.success(), "the child: {status}");
    }
    let outcome = catch_unwind(AssertUnwindSafe(body));
    // SAFETY: ends this process; no other thread of it needs to run.
    unsafe { libc::_exit(i32::from(outcome.is_err())) }
}

/// Asserts that the call panics because the parent's threads do not exist.
#[track_caller]
fn refused<R>(call: impl FnOnce() -> R) {
    let (text, ..) = panic_of(call);
    assert!(text.contains("belongs to the parent process"), "{text}");
}

fn two_workers() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

enum Order {
    Nothing,
    Answer(Reply<u32>),
    Block { begun: Gate, until: Gate },
}

/// Executes its orders and returns how many it has answered.
async fn obeying(mut cx: Context<Order>) -> u32 {
    let mut answers = 0;
    while let Some(order) = cx.recv().await {
        match order {
            Order::Nothing => {}
            Order::Answer(reply) => {
                reply.send(42);
                answers += 1;
            }
            Order::Block { begun, until } => {
                begun.open();
                until.pass();
            }
        }
    }
    answers
}

/// Uses everything that a runtime of this process offers.
fn use_a_runtime() {
    let sum = greenroom::run(async {
        let actor = spawn!(obeying(_));
        let mut sum = timeout(HOUR, actor.ask(Order::Answer))
            .await
            .unwrap()
            .unwrap();
        sum += actor.join().await.unwrap();
        sleep(SOON).await;
        sum += unblock(|| 1).await;
        let waits = async { Runtime::current().block_on(greenroom::spawn(async { 1 })) };
        sum += greenroom::spawn(waits).await;
        let pinned = Runtime::current().spawn_pinned("pinned").unwrap();
        let hosted = pinned.host(|| 1).await.unwrap();
        sum += hosted.with(|one| *one).await.unwrap();
        sum += spawn!(|_: Context<()>| async { 1 }, on = Detached)
            .join()
            .await
            .unwrap();
        let mut interrupted = Box::pin(greenroom::ctrl_c());
        assert!(poll_here(&mut interrupted).await.is_pending());
        interrupt();
        interrupted.await.unwrap();
        let actors: Vec<_> = (0..3000).map(|_| spawn!(obeying(_))).collect();
        let ids: BTreeSet<_> = actors.iter().map(|actor| actor.id()).collect();
        assert_eq!(ids.len(), actors.len());
        Runtime::current().quiescent().await;
        sum
    });
    assert_eq!(sum, 47);
}

/// Uses a runtime, and the process-wide threads where no runtime is current.
fn use_all_there_is() {
    use_a_runtime();
    drive(sleep(SOON));
    assert_eq!(drive(unblock(|| 42)), 42);
}

#[test]
fn calls_that_need_the_parents_threads_panic_with_the_reason() {
    alone(
        "fork::calls_that_need_the_parents_threads_panic_with_the_reason",
        || {
            let runtime = two_workers();
            let dormant = spawn!(obeying(_), on = &runtime);
            let (stopped, killed) = (dormant.address(), spawn!(obeying(_), on = &runtime));
            let full = spawn!(obeying(_), on = &runtime, capacity = 1);
            let pinned = runtime.spawn_pinned("parent").unwrap();
            let (task, cancelled) = (
                runtime.spawn(pending::<()>()),
                runtime.spawn(pending::<()>()),
            );
            let hosted_task = pinned.spawn(pending::<()>);
            runtime.run_until_quiescent();
            let (begun, until) = (Gate::default(), Gate::default());
            let busy = spawn!(obeying(_), on = &runtime);
            let block = |begun: &Gate| Order::Block {
                begun: begun.clone(),
                until: until.clone(),
            };
            busy.tell(block(&begun)).unwrap();
            begun.pass();
            let full_begun = Gate::default();
            full.tell(block(&full_begun)).unwrap();
            full_begun.pass();
            full.tell(Order::Nothing).unwrap();
            // Polled before the fork.
            let mut sending = full.send(Order::Nothing);
            assert!(poll_once(&mut sending).is_pending());
            let mut asked = Box::pin(busy.ask(Order::Answer));
            assert!(poll_once(&mut asked).is_pending());
            let mut closed = Box::pin(dormant.closed());
            assert!(poll_once(&mut closed).is_pending());
            let mut quiescent = Box::pin(runtime.quiescent());
            assert!(poll_once(&mut quiescent).is_pending());
            in_a_child(|| {
                refused(|| runtime.block_on(async {}));
                refused(|| runtime.run_until_quiescent());
                refused(|| drive(runtime.quiescent()));
                refused(|| drive(quiescent.as_mut()));
                refused(|| drive(runtime.shutdown()));
                refused(|| runtime.stats());
                refused(|| runtime.pinned_here());
                refused(|| runtime.spawn(async {}));
                refused(|| spawn!(obeying(_), on = &runtime));
                refused(|| spawn!(obeying(_), on = &pinned));
                refused(|| pinned.spawn(|| async {}));
                refused(|| drive(task));
                refused(|| drive(hosted_task));
                refused(|| drive(cancelled.cancel()));
                // A message that wakes no task is only queued.
                busy.tell(Order::Nothing).unwrap();
                drive(busy.send(Order::Nothing)).unwrap();
                refused(|| drive(full.send(Order::Nothing)));
                refused(|| drive(&mut sending));
                refused(|| drive(busy.ask(Order::Answer)));
                refused(|| drive(dormant.ask(Order::Answer)));
                refused(|| drive(busy.ask(Order::Answer).timeout(SOON)));
                refused(|| drive(asked.as_mut()));
                refused(|| dormant.tell(Order::Nothing));
                refused(|| drive(closed.as_mut()));
                refused(|| drive(busy.closed()));
                refused(|| killed.kill());
                refused(|| drive(killed.join()));
            });
            until.open();
            assert_eq!(runtime.block_on(&mut asked), Ok(42));
            runtime.block_on(sending).unwrap();
            assert_eq!(runtime.block_on(dormant.ask(Order::Answer)), Ok(42));
            stopped.stop();
        },
    );
}

#[test]
fn fallible_calls_return_errors_in_the_child() {
    alone("fork::fallible_calls_return_errors_in_the_child", || {
        let runtime = two_workers();
        let pinned = runtime.spawn_pinned("parent").unwrap();
        let hosted = runtime.block_on(pinned.host(|| 42)).unwrap();
        let mut interrupted = Box::pin(greenroom::ctrl_c());
        assert!(poll_once(&mut interrupted).is_pending());
        in_a_child(|| {
            let refused = actor(obeying).on(&runtime).try_spawn().unwrap_err();
            assert_eq!(refused.problem(), SpawnProblem::Forked);
            let refused = actor(obeying).on(&pinned).try_spawn().unwrap_err();
            assert_eq!(refused.problem(), SpawnProblem::Forked);
            let refused = runtime.spawn_pinned("child").unwrap_err();
            assert!(refused.to_string().contains("parent process"), "{refused}");
            assert!(runtime.status().unwrap_err().is_shutdown());
            let gone = drive(hosted.with(|value| *value)).unwrap_err();
            assert!(matches!(gone, HostFault::Gone));
            let gone = drive(pinned.host(|| 42)).unwrap_err();
            assert!(matches!(gone, HostFault::Gone));
            let gone = drive(pinned.try_host(|| Err::<(), ()>(()))).unwrap_err();
            assert!(matches!(gone, HostFault::Gone));
            drive(interrupted).unwrap_err();
        });
        assert_eq!(runtime.block_on(hosted.with(|value| *value)).unwrap(), 42);
    });
}

#[test]
fn a_stage_of_the_parent_cannot_be_used_in_the_child() {
    alone(
        "fork::a_stage_of_the_parent_cannot_be_used_in_the_child",
        || {
            let (runtime, none) = (two_workers(), Pinned::here());
            let bound = none.spawn(|| async { 42 });
            in_a_child(|| {
                refused(|| none.run_ready());
                refused(|| none.run_ready_for(SOON));
                refused(|| none.next_deadline());
                refused(|| none.on_wake(|| {}));
                refused(|| none.block_on(async {}));
            });
            assert_eq!(none.block_on(bound), 42);
            in_a_child(move || {
                drop(none);
                let own = Pinned::here();
                assert_eq!(own.block_on(own.spawn(|| async { 42 })), 42);
            });
            let stage = runtime.pinned_here();
            in_a_child(move || drop((stage, runtime)));
        },
    );
}

#[test]
fn drops_in_the_child_do_not_wait() {
    alone("fork::drops_in_the_child_do_not_wait", || {
        let runtime = two_workers();
        let (begun, until) = (Gate::default(), Gate::default());
        let busy = spawn!(obeying(_), on = &runtime);
        busy.tell(Order::Block {
            begun: begun.clone(),
            until: until.clone(),
        })
        .unwrap();
        begun.pass();
        let dormant = spawn!(obeying(_), on = &runtime);
        let mut joining = spawn!(obeying(_), on = &runtime).join();
        let _ = poll_once(&mut joining);
        let pinned = runtime.spawn_pinned("parent").unwrap();
        let hosted = drive(pinned.host(|| 42)).unwrap();
        let mut begun = Box::pin(sleep(HOUR));
        inside(&runtime, || assert!(poll_once(&mut begun).is_pending()));
        let tasks = (runtime.spawn(pending::<()>()), pinned.spawn(pending::<()>));
        // The first request is delivered, the second waits for room.
        let deaf = greenroom::actor(|cx: Context<Reply<()>>| async move {
            let _cx = cx;
            pending::<()>().await;
        });
        let deaf = deaf.capacity(1).on(&runtime).spawn();
        let asks = [(); 2].map(|()| {
            let deaf = deaf.address();
            let mut ask = Box::pin(async move { deaf.ask(|reply| reply).await });
            assert!(poll_once(&mut ask).is_pending());
            ask
        });
        let keep = runtime.keep_alive();
        let (waits, ends) = (runtime.clone(), runtime.clone());
        let mut quiescent = Box::pin(async move { waits.quiescent().await });
        assert!(poll_once(&mut quiescent).is_pending());
        let mut shutdown = Box::pin(async move { ends.shutdown().await });
        assert!(poll_once(&mut shutdown).is_pending());
        let address = dormant.address();
        in_a_child(move || {
            drop((asks, deaf));
            drop((busy, joining, dormant, address, begun, tasks, keep));
            drop((quiescent, shutdown, hosted, pinned, runtime));
        });
        until.open();
    });
}

#[test]
fn a_new_runtime_works_in_the_child() {
    alone("fork::a_new_runtime_works_in_the_child", || {
        let runtime = two_workers();
        use_all_there_is();
        let mut begun = Box::pin(sleep(Duration::from_millis(50)));
        let _ = inside(&runtime, || poll_once(&mut begun));
        in_a_child(|| {
            // A deadline of the parent's runtime is kept by the child's timers.
            drive(begun);
            use_all_there_is();
            in_a_child(use_all_there_is);
            use_all_there_is();
        });
        use_all_there_is();
        drop(runtime);
    });
}

#[test]
fn a_new_runtime_works_wherever_the_process_was_forked() {
    alone(
        "fork::a_new_runtime_works_wherever_the_process_was_forked",
        || {
            let runtime = two_workers();
            fn forks() {
                in_a_child(use_a_runtime);
            }
            runtime.block_on(async { forks() });
            runtime.block_on(runtime.spawn(async move { forks() }));
            runtime.block_on(async { unblock(forks).await });
            let actor = |_: Context<()>| async move { forks() };
            runtime
                .block_on(spawn!(actor(_), on = &runtime).join())
                .unwrap();
            let pinned = runtime.spawn_pinned("parent").unwrap();
            runtime.block_on(pinned.spawn(move || async move { forks() }));
            let hosted = runtime.block_on(pinned.host(|| ())).unwrap();
            runtime.block_on(hosted.with(move |()| forks())).unwrap();
            let detached = inside(&runtime, || spawn!(actor(_), on = Detached));
            runtime.block_on(detached.join()).unwrap();
            let stage = runtime.pinned_here();
            stage.block_on(stage.spawn(move || async move { forks() }));
        },
    );
}

#[test]
fn a_worker_that_forks_is_no_worker_in_the_child() {
    alone(
        "fork::a_worker_that_forks_is_no_worker_in_the_child",
        || {
            let runtime = two_workers();
            let dormant = spawn!(obeying(_), on = &runtime);
            runtime.run_until_quiescent();
            runtime.block_on(runtime.spawn(async move {
                in_a_child(|| {
                    refused(|| dormant.tell(Order::Nothing));
                    refused(|| greenroom::spawn(async {}));
                    refused(|| spawn!(obeying(_)));
                    refused(|| unblock(|| ()));
                    refused(|| Runtime::current().block_on(async {}));
                });
                assert_eq!(dormant.ask(Order::Answer).await, Ok(42));
            }));
        },
    );
}

#[test]
fn block_on_in_progress_returns_its_value_or_panics_in_the_child() {
    alone(
        "fork::block_on_in_progress_returns_its_value_or_panics_in_the_child",
        || {
            let runtime = two_workers();
            let own = runtime.clone();
            for is_ready in [true, false] {
                let mut child = None;
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    own.block_on(poll_fn(|_| {
                        child = fork();
                        match is_ready || child.is_some() {
                            true => Poll::Ready(42),
                            false => Poll::Pending,
                        }
                    }))
                }));
                if let Some(child) = child {
                    assert_eq!(outcome.unwrap(), 42);
                    assert!(child.status().success());
                    continue;
                }
                let is_right = match outcome {
                    Ok(value) => is_ready && value == 42,
                    Err(panic) => {
                        let text = panic.downcast::<String>().unwrap();
                        !is_ready && text.contains("belongs to the parent process")
                    }
                };
                drop((own, runtime));
                // SAFETY: ends this process, which is a child.
                unsafe { libc::_exit(i32::from(!is_right)) }
            }
            let value = greenroom::run(async {
                match fork() {
                    Some(child) => i32::from(!child.status().success()),
                    None => 7,
                }
            });
            if value == 7 {
                // SAFETY: as above.
                unsafe { libc::_exit(0) }
            }
            assert_eq!(value, 0);
        },
    );
}

/// Forks; in the child, stderr is the given pipe, which the parent reads.
fn fork_and_tell(stderr: PipeWriter) -> Option<Child> {
    let child = fork();
    if child.is_none() {
        // SAFETY: both are open files of this process.
        assert_eq!(unsafe { libc::dup2(stderr.as_raw_fd(), 2) }, 2);
    }
    child
}

/// Asserts that the child aborts after the task passed to `start` has forked.
#[track_caller]
fn aborts(start: impl FnOnce(Box<dyn FnOnce() -> Option<Child> + Send>) -> Option<Child>) {
    let (mut said, stderr): (PipeReader, _) = std::io::pipe().unwrap();
    let child = start(Box::new(move || fork_and_tell(stderr))).expect("the child aborts");
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    let status = child.status();
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}: {text}");
    assert!(text.contains("belongs to the parent process"), "{text}");
}

#[test]
fn a_turn_that_ends_in_the_child_aborts_the_child() {
    alone(
        "fork::a_turn_that_ends_in_the_child_aborts_the_child",
        || {
            let runtime = two_workers();
            let pinned = runtime.spawn_pinned("parent").unwrap();
            let hosted = runtime.block_on(pinned.host(|| ())).unwrap();
            aborts(|forks| runtime.block_on(runtime.spawn(async move { forks() })));
            aborts(|forks| {
                runtime.block_on(runtime.spawn(async move {
                    let child = forks();
                    yield_now().await;
                    child
                }))
            });
            aborts(|forks| {
                runtime.block_on(runtime.spawn(async move {
                    let child = forks();
                    if child.is_none() {
                        pending::<()>().await;
                    }
                    child
                }))
            });
            aborts(|forks| {
                let actor = actor(|mut cx: Context<Order>| async move {
                    let child = forks();
                    if child.is_none() {
                        cx.recv().await;
                    }
                    child
                });
                runtime.block_on(actor.on(&runtime).spawn().join()).unwrap()
            });
            aborts(|forks| runtime.block_on(async { unblock(forks).await }));
            aborts(|forks| runtime.block_on(pinned.spawn(move || async move { forks() })));
            aborts(|forks| runtime.block_on(hosted.with(move |()| forks())).unwrap());
            let none = Pinned::here();
            aborts(|forks| none.block_on(none.spawn(move || async move { forks() })));
        },
    );
}

#[test]
fn other_threads_active_at_the_fork_do_not_block_the_child() {
    alone(
        "fork::other_threads_active_at_the_fork_do_not_block_the_child",
        || {
            let runtime = two_workers();
            let over = Arc::new(AtomicBool::new(false));
            let flooded = spawn!(obeying(_), on = &runtime);
            let pinned = runtime.spawn_pinned("parent").unwrap();
            let hosted = runtime.block_on(pinned.host(|| ())).unwrap();
            let load = |load: fn(&Runtime, &greenroom::Address<Order>, &Pinned)| {
                let (over, runtime) = (over.clone(), runtime.clone());
                let (flooded, pinned) = (flooded.address(), pinned.clone());
                std::thread::spawn(move || {
                    while !over.load(Ordering::SeqCst) {
                        load(&runtime, &flooded, &pinned);
                    }
                })
            };
            let loads = [
                load(|runtime, flooded, _| {
                    let told = flooded.clone();
                    runtime.block_on(runtime.spawn(async move {
                        for _ in 0..100 {
                            told.tell(Order::Nothing).unwrap();
                        }
                        sleep(Duration::from_micros(10)).await;
                    }));
                    drive(flooded.ask(Order::Answer)).unwrap();
                }),
                load(|runtime, _, pinned| {
                    drive(pinned.spawn(|| async { yield_now().await }));
                    let actors: Vec<_> =
                        (0..100).map(|_| spawn!(obeying(_), on = runtime)).collect();
                    inside(runtime, || unblock(|| ()).detach());
                    drop(actors);
                    drive(sleep(Duration::from_micros(10)));
                }),
            ];
            for _ in 0..40 {
                let handle = spawn!(obeying(_), on = &runtime);
                let things = (
                    handle,
                    runtime.spawn(pending::<()>()),
                    pinned.clone(),
                    hosted.clone(),
                );
                let (address, runtime) = (flooded.address(), runtime.clone());
                in_a_child(move || {
                    drop((things, address, runtime));
                    let sum = greenroom::run(async {
                        let obeying = spawn!(obeying(_));
                        (0..1000).for_each(|_| obeying.tell(Order::Nothing).unwrap());
                        sleep(SOON).await;
                        obeying.ask(Order::Answer).await.unwrap() + unblock(|| 1).await
                    });
                    assert_eq!(sum, 43);
                    drive(sleep(SOON));
                });
            }
            over.store(true, Ordering::SeqCst);
            loads.into_iter().for_each(|load| load.join().unwrap());
        },
    );
}

#[test]
fn a_market_of_the_parent_refuses_and_is_dropped_without_a_wait() {
    alone(
        "fork::a_market_of_the_parent_refuses_and_is_dropped_without_a_wait",
        || {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let of_runtime = Market::<u32>::builder().on(&runtime).build().unwrap();
            let of_process = Market::<u32>::builder().build().unwrap();
            for market in [of_runtime, of_process] {
                let gate = Gate::default();
                let waits = gate.clone();
                let job = market.try_offer(Job::new(move || waits.pass())).unwrap();
                let mut stopped = Box::pin(market.stopped());
                let mut held = Some((job, market));
                in_a_child(|| {
                    let (job, market) = held.take().unwrap();
                    refused(|| market.try_offer(Job::new(|| ())));
                    refused(|| market.offer_blocking(Job::new(|| ())));
                    refused(|| market.stop());
                    refused(|| market.status());
                    refused(|| poll_once(&mut stopped));
                    refused(|| job.cancel());
                    refused(|| job.is_finished());
                    assert!(format!("{market:?}").starts_with("Market"));
                    assert!(format!("{job:?}").starts_with("JobHandle"));
                    drop((job, market));
                });
                gate.open();
            }
        },
    );
}
