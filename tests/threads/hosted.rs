//! Hosted values: they never leave their pinned thread; closures are sent to them.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Cx, Wake, Waker};
use std::thread::ThreadId;

use greenroom::policy::TaskInfo;
use greenroom::{Context, HostFault, Hosted, Observer, Pinned, Runtime, Stage, spawn};

use crate::support::{
    Bomb, Drops, Gate, Home, Log, OpenOnDrop, WATCH, drive, keep_bombs_quiet, poll_once, simulated,
    until, within,
};

/// Runs `test` with a pinned thread, and with one of a simulated runtime.
fn with_pinned(test: fn(&Runtime, &Pinned)) {
    with_pinned_thread(test);
    Home::simulate(move |runtime| test(runtime, &runtime.spawn_pinned("pinned").unwrap()));
}

/// Runs `test` with a pinned thread that is a real thread.
fn with_pinned_thread(test: fn(&Runtime, &Pinned)) {
    within(WATCH, move || {
        keep_bombs_quiet();
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        test(&runtime, &pinned);
    });
}

fn here() -> ThreadId {
    std::thread::current().id()
}

/// Waits until the thread has run all tasks queued before.
fn turn(pinned: &Pinned) {
    if simulated::is_here() {
        return simulated::turn();
    }
    drive(pinned.spawn(|| async {}));
}

/// Blocks the thread until the returned guard is dropped.
fn hold(pinned: &Pinned) -> OpenOnDrop {
    if simulated::is_here() {
        // In a simulation tasks run only while this thread waits.
        return OpenOnDrop(Gate::default());
    }
    let (begun, gate) = (Gate::default(), Gate::default());
    let (here, waits) = (begun.clone(), gate.clone());
    let holds = move || async move {
        here.open();
        waits.pass();
    };
    pinned.spawn(holds).detach();
    begun.pass();
    OpenOnDrop(gate)
}

#[test]
fn a_value_is_made_called_and_dropped_on_its_thread() {
    struct Here(Cell<u32>, Log<ThreadId>);
    impl Drop for Here {
        fn drop(&mut self) {
            self.1.add(here());
        }
    }
    with_pinned_thread(|_, pinned| {
        let (log, made) = (Log::default(), Log::default());
        let (own, at) = (log.clone(), made.clone());
        let hosted = drive(pinned.host(move || {
            at.add(here());
            Rc::new(Here(Cell::new(40), own))
        }))
        .unwrap();
        let called = drive(hosted.with(|value| {
            value.0.set(value.0.get() + 2);
            (value.0.get(), here())
        }));
        let (sum, own) = called.unwrap();
        assert_eq!(sum, 42);
        assert_ne!(own, here());
        // This thread drops the last clone, the pinned thread drops the value.
        drop(hosted.clone());
        turn(pinned);
        assert_eq!(log.take(), []);
        drop(hosted);
        turn(pinned);
        assert_eq!(log.take(), [own]);
        assert_eq!(made.take(), [own]);
    });
}

#[test]
fn with_mut_changes_the_value() {
    with_pinned(|_, pinned| {
        let hosted = drive(pinned.host(Vec::new)).unwrap();
        for n in 0..10 {
            assert_eq!(
                drive(hosted.with_mut(move |list| (list.push(n), list.len()).1)).unwrap(),
                n + 1
            );
        }
        assert_eq!(
            drive(hosted.with(|list| list.iter().sum::<usize>())).unwrap(),
            45
        );
        let taken = drive(hosted.with_mut(std::mem::take)).unwrap();
        assert_eq!(taken.len(), 10);
        assert!(drive(hosted.with(Vec::is_empty)).unwrap());
    });
}

#[test]
fn calls_are_served_in_the_order_in_which_they_are_first_polled() {
    with_pinned(|_, pinned| {
        let hosted = drive(pinned.host(Vec::new)).unwrap();
        let held = hold(pinned);
        let mut calls: Vec<_> = (0..100)
            .map(|n| Box::pin(hosted.with_mut(move |list| list.push(n))))
            .collect();
        // Polled from the last to the first, awaited from the first to the last.
        calls
            .iter_mut()
            .rev()
            .for_each(|call| assert!(poll_once(call).is_pending()));
        drop(held);
        for call in calls {
            drive(call).unwrap();
        }
        let order = drive(hosted.with(Clone::clone)).unwrap();
        assert_eq!(order, (0..100).rev().collect::<Vec<_>>());
    });
}

#[test]
fn many_threads_call_the_same_value() {
    with_pinned_thread(|_, pinned| {
        let hosted = drive(pinned.host(|| 0_u32)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let hosted = hosted.clone();
                scope.spawn(move || {
                    for _ in 0..100 {
                        drive(hosted.with_mut(|sum| *sum += 1)).unwrap();
                    }
                });
            }
        });
        assert_eq!(drive(hosted.with(|sum| *sum)).unwrap(), 800);
    });
}

#[test]
fn several_values_live_on_one_thread() {
    with_pinned(|_, pinned| {
        let values: Vec<Hosted<String>> = (0..20)
            .map(|n| drive(pinned.host(move || n.to_string())).unwrap())
            .collect();
        for (n, value) in values.iter().enumerate() {
            assert_eq!(drive(value.with(Clone::clone)).unwrap(), n.to_string());
        }
        let mut values = values.into_iter();
        drop(values.by_ref().take(10).collect::<Vec<_>>());
        turn(pinned);
        let more = drive(pinned.host(|| String::from("more"))).unwrap();
        assert_eq!(drive(more.with(String::len)).unwrap(), 4);
        assert_eq!(
            drive(values.next().unwrap().with(Clone::clone)).unwrap(),
            "10"
        );
    });
}

#[test]
fn host_returns_the_error_or_panic_of_making_the_value() {
    with_pinned(|_, pinned| {
        let made = drive(pinned.try_host(|| "42".parse::<u32>()))
            .unwrap()
            .unwrap();
        assert_eq!(drive(made.with(|number| *number)).unwrap(), 42);
        let failed = drive(pinned.try_host(|| "forty-two".parse::<u32>())).unwrap();
        assert_eq!(failed.map(drop), "forty-two".parse::<u32>().map(drop));
        let panicked =
            drive(pinned.try_host(|| -> Result<u32, std::fmt::Error> { panic!("bomb") }));
        let panicked = panicked.unwrap_err();
        assert!(panicked.to_string().contains("bomb"), "{panicked}");
        assert!(matches!(panicked, HostFault::Panicked(_)));
        let panicked = drive(pinned.host(|| -> u32 { panic!("bomb") })).unwrap_err();
        assert!(matches!(panicked, HostFault::Panicked(panic) if panic.text() == Some("bomb")));
        turn(pinned);
    });
}

#[test]
fn a_value_can_be_called_after_a_panic_in_a_closure() {
    with_pinned(|_, pinned| {
        let hosted = drive(pinned.host(|| vec![1])).unwrap();
        let fault = drive(hosted.with_mut(|list| {
            list.push(2);
            if list.len() == 2 {
                panic!("bomb in a call");
            }
        }));
        let HostFault::Panicked(panic) = fault.unwrap_err() else {
            panic!("the closure must have panicked")
        };
        assert_eq!(panic.text(), Some("bomb in a call"));
        let fault = drive(hosted.with(|_| -> u32 { panic!("bomb in another") })).unwrap_err();
        assert_eq!(fault.to_string(), "the closure panicked: bomb in another");
        assert_eq!(
            drive(hosted.with_mut(|list| (list.push(3), list.clone()).1)).unwrap(),
            [1, 2, 3]
        );
    });
}

#[test]
fn a_call_dropped_before_it_began_is_not_made() {
    with_pinned(|_, pinned| {
        let calls = Arc::new(AtomicUsize::new(0));
        let drops = Drops::default();
        let hosted = drive(pinned.host(|| ())).unwrap();
        let call = || {
            let (calls, dropped) = (calls.clone(), drops.one());
            Box::pin(hosted.with(move |()| {
                let _dropped = dropped;
                calls.fetch_add(1, Ordering::SeqCst);
            }))
        };
        // Dropped without a poll.
        drop(call());
        let held = hold(pinned);
        let (mut given_up, mut awaited) = (call(), call());
        assert!(poll_once(&mut given_up).is_pending());
        assert!(poll_once(&mut awaited).is_pending());
        drop(given_up);
        drop(held);
        drive(awaited).unwrap();
        turn(pinned);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert_eq!(drops.count(), 3);
    });
}

#[test]
fn a_call_dropped_after_it_began_runs_to_its_end() {
    with_pinned_thread(|_, pinned| {
        let (begun, go, done) = (Gate::default(), Gate::default(), Gate::default());
        let hosted = drive(pinned.host(|| ())).unwrap();
        let drops = Drops::default();
        let (here, waits, opens, result) = (begun.clone(), go.clone(), done.clone(), drops.one());
        let mut call = Box::pin(hosted.with(move |()| {
            here.open();
            waits.pass();
            opens.open();
            result
        }));
        assert!(poll_once(&mut call).is_pending());
        begun.pass();
        drop(call);
        go.open();
        done.pass();
        until(|| drops.count() == 1);
    });
}

#[test]
fn a_dropped_host_leaves_no_value() {
    with_pinned(|_, pinned| {
        let drops = Drops::default();
        let host = || {
            let drops = drops.clone();
            Box::pin(pinned.host(move || drops.one()))
        };
        let held = hold(pinned);
        let (mut early, mut late) = (host(), host());
        assert!(poll_once(&mut early).is_pending());
        assert!(poll_once(&mut late).is_pending());
        drop(early);
        drop(held);
        turn(pinned);
        // The other value was made, and is dropped without being received.
        drop(late);
        turn(pinned);
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn a_panic_in_the_drop_of_a_hosted_value_is_contained() {
    with_pinned(|runtime, pinned| {
        let drops = Drops::default();
        let host = || {
            let bomb = Bomb::new(true, &drops);
            drive(pinned.host(move || bomb)).unwrap()
        };
        drop(host());
        turn(pinned);
        assert_eq!(drops.count(), 1);
        let other = drive(pinned.host(|| 42)).unwrap();
        let _kept = host();
        assert_eq!(drive(other.with(|number| *number)).unwrap(), 42);
        drive(runtime.shutdown());
        assert_eq!(drops.count(), 2);
    });
}

#[test]
fn a_hosted_value_may_hold_other_values_and_itself() {
    with_pinned(|runtime, pinned| {
        let drops = Drops::default();
        let inner = (drops.one(), drive(pinned.host(|| 42)).unwrap());
        let outer = drive(pinned.host(move || inner)).unwrap();
        let of_outer = drive(outer.with(|(_, inner)| inner.clone())).unwrap();
        assert_eq!(drive(of_outer.with(|number| *number)).unwrap(), 42);
        drop(outer);
        turn(pinned);
        assert_eq!(drops.count(), 1);
        assert_eq!(drive(of_outer.with(|number| *number)).unwrap(), 42);
        // A value that holds itself lives until the runtime ends.
        struct Own(Option<(Hosted<Own>, crate::support::Dropped)>);
        let own = drive(pinned.host(|| Own(None))).unwrap();
        let held = (own.clone(), drops.one());
        drive(own.with_mut(move |own| own.0 = Some(held))).unwrap();
        drop(own);
        turn(pinned);
        assert_eq!(drops.count(), 1);
        drive(runtime.shutdown());
        assert_eq!(drops.count(), 2);
    });
}

#[test]
fn a_task_on_the_same_thread_may_call_the_value() {
    with_pinned(|_, pinned| {
        let hosted = drive(pinned.host(|| Rc::new(40))).unwrap();
        let caller = hosted.clone();
        let sum = drive(pinned.spawn(move || async move {
            let local = Rc::new(2);
            caller.with(|number| **number).await.unwrap() + *local
        }));
        assert_eq!(sum, 42);
    });
}

#[test]
fn a_closure_may_spawn_tell_and_drop_clones() {
    with_pinned(|runtime, pinned| {
        let counter = spawn!(
            |mut cx: Context<u32>| async move {
                let mut sum = 0;
                while let Some(n) = cx.recv().await {
                    sum += n;
                }
                sum
            },
            on = runtime
        );
        let hosted = drive(pinned.host(|| 42)).unwrap();
        let (address, clone, own) = (counter.address(), hosted.clone(), pinned.clone());
        let task = drive(hosted.with(move |number| {
            address.tell(*number).unwrap();
            drop((address, clone));
            let number = *number;
            own.spawn(move || async move { greenroom::spawn(async move { number }).await })
        }));
        assert_eq!(drive(task.unwrap()), 42);
        assert_eq!(drive(counter.join()).unwrap(), 42);
    });
}

#[test]
fn calls_are_answered_during_the_grace() {
    with_pinned(|runtime, pinned| {
        let drops = Drops::default();
        let dropped = drops.one();
        let hosted = drive(pinned.host(move || (dropped, vec![1, 2, 3]))).unwrap();
        let caller = hosted.clone();
        let writer = spawn!(
            |mut cx: Context<()>| async move {
                while cx.recv().await.is_some() {}
                // The shutdown has begun: the last batch is written.
                for n in 4..=100 {
                    caller
                        .with_mut(move |(_, list)| list.push(n))
                        .await
                        .unwrap();
                }
                caller.with(|(_, list)| list.len()).await.unwrap()
            },
            on = runtime
        );
        let report = drive(runtime.shutdown());
        assert_eq!((report.ended, report.cancelled), (1, 0));
        assert_eq!(drive(writer.join()).unwrap(), 100);
        assert_eq!(drops.count(), 1, "the value is dropped after the last call");
        assert!(matches!(drive(hosted.with(|_| ())), Err(HostFault::Gone)));
    });
}

#[test]
fn when_the_runtime_ends_a_value_is_dropped_on_its_thread_and_calls_fail() {
    struct SaysWhere(Log<ThreadId>);
    impl Drop for SaysWhere {
        fn drop(&mut self) {
            self.0.add(here());
        }
    }
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let pinned = runtime.spawn_pinned("pinned").unwrap();
        let own = drive(pinned.spawn(|| async { here() }));
        let log = Log::default();
        let on_drop = log.clone();
        let hosted = drive(pinned.host(move || Rc::new(SaysWhere(on_drop)))).unwrap();
        drop(runtime);
        assert_eq!(log.take(), [own]);
        let fault = drive(hosted.with(|_| ())).unwrap_err();
        assert_eq!(fault.to_string(), "the pinned thread has ended");
        assert!(matches!(
            drive(hosted.with_mut(|_| ())),
            Err(HostFault::Gone)
        ));
        assert!(matches!(drive(pinned.host(|| ())), Err(HostFault::Gone)));
        let failed = drive(pinned.try_host(|| Err::<(), _>(1)));
        assert!(matches!(failed, Err(HostFault::Gone)));
        drop((hosted.clone(), hosted, pinned));
        assert_eq!(log.take(), []);
    });
}

#[test]
fn a_call_queued_when_the_runtime_ends_returns_or_fails() {
    within(WATCH, || {
        for _ in 0..50 {
            let runtime = Runtime::builder().workers(1).build().unwrap();
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            let hosted = drive(pinned.host(|| 42)).unwrap();
            let held = hold(&pinned);
            let mut call = Box::pin(hosted.with(|number| *number));
            assert!(poll_once(&mut call).is_pending());
            let ending = std::thread::spawn(move || drop(runtime));
            drop(held);
            // The call was queued before, so it may have been served.
            match drive(call) {
                Ok(number) => assert_eq!(number, 42),
                Err(fault) => assert!(matches!(fault, HostFault::Gone)),
            }
            ending.join().unwrap();
        }
    });
}

/// An observer, waker and value that records its name when it is notified, woken or dropped.
struct Writes(&'static str, Log<&'static str>);

impl Observer for Writes {
    fn completed(&self, _task: &TaskInfo) {
        self.1.add(self.0);
    }
}

impl Wake for Writes {
    fn wake(self: Arc<Self>) {
        self.1.add(self.0);
    }
}

impl Drop for Writes {
    fn drop(&mut self) {
        self.1.add(self.0);
    }
}

/// Hosts a value on a stage of a runtime whose observer records completed calls.
fn observed(log: &Log<&'static str>) -> (Runtime, Stage, Hosted<i32>) {
    let observer = Writes("completed", log.clone());
    let runtime = Runtime::builder().observer(observer).build().unwrap();
    let stage = runtime.pinned_here();
    let hosted = stage.block_on(stage.host(|| 42)).unwrap();
    (runtime, stage, hosted)
}

#[test]
fn an_observer_is_notified_of_a_completed_call_before_its_caller() {
    within(WATCH, || {
        let log = Log::default();
        let (_runtime, stage, hosted) = observed(&log);
        let waker = Waker::from(Arc::new(Writes("heard", log.clone())));
        let call = || {
            let dropped = Writes("dropped", log.clone());
            let mut call = Box::pin(hosted.with(move |_| drop(dropped)));
            assert!(call.as_mut().poll(&mut Cx::from_waker(&waker)).is_pending());
            call
        };
        let served = call();
        log.take();
        stage.run_ready();
        assert_eq!(log.take(), ["dropped", "completed", "heard"]);
        drop(served);
        let lost = call();
        drop(stage);
        assert_eq!(log.take(), ["completed", "dropped", "heard"]);
        drop(lost);
    });
}

#[test]
fn an_observer_is_notified_of_a_dropped_call_when_its_thread_reaches_it() {
    within(WATCH, || {
        let log = Log::default();
        let (_runtime, stage, hosted) = observed(&log);
        let dropped = Writes("dropped", log.clone());
        let mut call = Box::pin(hosted.with(move |_| drop(dropped)));
        let polled = call.as_mut().poll(&mut Cx::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        log.take();
        drop(call);
        assert_eq!(log.take(), ["dropped"]);
        stage.run_ready();
        assert_eq!(log.take(), ["completed"]);
    });
}
