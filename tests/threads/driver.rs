//! Workers that wait in a reactor of another crate.

use std::collections::HashSet;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use async_net::{TcpListener, TcpStream};
use futures::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use greenroom::policy::{Policy, Prioritized, Sharing, Simulated, Stealing};
use greenroom::{BuildError, Builder, Continues, Driver, Runtime, Warning};

use crate::support::{WATCH, drive, within};

/// The reactor of `async-io`.
pub struct AsyncIo;

impl Driver for AsyncIo {
    fn drive(&self, worker: Pin<&mut dyn Future<Output = ()>>) {
        async_io::block_on(worker);
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            async_io::Timer::at(at).await;
        })
    }
}

fn driven(workers: usize) -> Builder {
    Runtime::builder().workers(workers).driver(AsyncIo)
}

/// Sends a byte to and fro `rounds` times between two tasks. Returns the threads that they ran on.
async fn ping_pong(rounds: usize) -> HashSet<ThreadId> {
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let bounce = |mut stream: TcpStream, begins: bool| {
        let threads = threads.clone();
        async move {
            let mut byte = [7];
            if begins {
                stream.write_all(&byte).await.unwrap();
            }
            for round in 1..=rounds {
                stream.read_exact(&mut byte).await.unwrap();
                threads.lock().unwrap().insert(thread::current().id());
                if round < rounds || !begins {
                    stream.write_all(&byte).await.unwrap();
                }
            }
        }
    };
    let (near, far) = futures::join!(TcpStream::connect(address), listener.accept());
    let far = greenroom::spawn(bounce(far.unwrap().0, false));
    let near = greenroom::spawn(bounce(near.unwrap(), true));
    far.await;
    near.await;
    std::mem::take(&mut threads.lock().unwrap())
}

#[test]
fn a_task_woken_by_a_socket_runs_on_the_worker_that_waited_for_it() {
    within(WATCH, || {
        let runtime = driven(1).build().unwrap();
        let task = runtime.spawn(async { (ping_pong(200).await, thread::current().id()) });
        let (threads, worker) = runtime.block_on(task);
        assert_eq!(threads, HashSet::from([worker]));
    });
}

/// The waker of a task, counting the calls on one thread.
struct CountedWaker {
    task: Waker,
    thread: ThreadId,
    calls: Arc<AtomicUsize>,
}

impl Wake for CountedWaker {
    fn wake(self: Arc<Self>) {
        if thread::current().id() == self.thread {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        self.task.wake_by_ref();
    }
}

/// Runs in a separate process, because threads of other tests wait in the same reactor.
#[test]
fn a_worker_that_waits_is_itself_the_one_that_wakes_the_reader_of_a_socket() {
    const CALLS: usize = 100;
    let own = "driver::a_worker_that_waits_is_itself_the_one_that_wakes_the_reader_of_a_socket";
    crate::child::alone(own, || {
        let runtime = driven(1).build().unwrap();
        runtime.block_on(runtime.spawn(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (near, far) = futures::join!(TcpStream::connect(address), listener.accept());
            let (mut near, far) = (near.unwrap(), far.unwrap().0);
            let echo =
                greenroom::spawn(async move { futures::io::copy(far.clone(), &mut { far }).await });
            let (thread, calls) = (thread::current().id(), Arc::new(AtomicUsize::new(0)));
            // The thread of the reactor makes a call if the worker is late, but not each of them.
            while calls.load(Ordering::Relaxed) < CALLS {
                near.write_all(&[7]).await.unwrap();
                let read = poll_fn(|cx| {
                    let (task, calls) = (cx.waker().clone(), calls.clone());
                    let waker = Waker::from(Arc::new(CountedWaker {
                        task,
                        thread,
                        calls,
                    }));
                    Pin::new(&mut near).poll_read(&mut Context::from_waker(&waker), &mut [0])
                });
                assert_eq!(read.await.unwrap(), 1);
            }
            drop(near);
            assert!(echo.await.unwrap() >= CALLS as u64);
        }));
    });
}

/// The reactor of `async-io`, counting the calls of `drive`.
struct Counted(Arc<AtomicUsize>);

impl Driver for Counted {
    fn drive(&self, worker: Pin<&mut dyn Future<Output = ()>>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        AsyncIo.drive(worker);
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        AsyncIo.sleep_until(at)
    }
}

#[test]
fn a_worker_calls_its_driver_only_once() {
    within(WATCH, || {
        let calls = Arc::new(AtomicUsize::new(0));
        let builder = Runtime::builder().workers(2);
        let runtime = builder.driver(Counted(calls.clone())).build().unwrap();
        for number in 0..100 {
            let task = runtime.spawn(async move {
                greenroom::time::sleep(Duration::from_micros(100)).await;
                number
            });
            assert_eq!(runtime.block_on(task), number);
        }
        runtime.block_on(runtime.shutdown());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    });
}

/// Runs tasks that wake each other and wait for timers, for another thread, and for quiescence.
fn does_all_that_a_runtime_does(builder: Builder) {
    let runtime = builder.build().unwrap();
    let (asks, questions) =
        futures::channel::mpsc::unbounded::<futures::channel::oneshot::Sender<u32>>();
    let answers = thread::spawn(move || {
        use futures::StreamExt;
        let mut answered = 0;
        for answer in futures::executor::block_on_stream(questions.boxed()) {
            answered += 1;
            let _ = answer.send(answered);
        }
        answered
    });
    let sums: Vec<_> = (0..20)
        .map(|number| {
            let asks = asks.clone();
            runtime.spawn(async move {
                let (answer, answered) = futures::channel::oneshot::channel();
                asks.unbounded_send(answer).unwrap();
                let inner = greenroom::spawn(async move {
                    greenroom::time::sleep(Duration::from_micros(50 * number)).await;
                    number
                });
                for _ in 0..10 {
                    greenroom::yield_now().await;
                }
                answered.await.unwrap();
                inner.await
            })
        })
        .collect();
    drop(asks);
    let sum: u64 = runtime.block_on(async {
        let mut sum = 0;
        for part in sums {
            sum += part.await;
        }
        sum
    });
    assert_eq!(sum, 190);
    assert_eq!(answers.join().unwrap(), 20);
    let detached = Arc::new(AtomicUsize::new(0));
    let own = detached.clone();
    let late = runtime.spawn(async move {
        greenroom::time::sleep(Duration::from_millis(1)).await;
        own.fetch_add(1, Ordering::Relaxed);
    });
    late.detach();
    runtime.run_until_quiescent();
    assert_eq!(
        detached.load(Ordering::Relaxed),
        1,
        "a pending timer keeps the runtime from being quiescent"
    );
    let report = runtime.block_on(runtime.shutdown());
    assert_eq!(report.left_behind, 0);
}

#[test]
fn workers_of_each_policy_wait_in_the_driver() {
    fn with(policy: impl Policy, workers: usize) {
        does_all_that_a_runtime_does(driven(workers).policy(policy));
    }
    within(WATCH, || {
        for workers in [1, 2] {
            with(Stealing::default(), workers);
            with(Stealing::polling(Default::default()), workers);
            with(Sharing::default(), workers);
            with(Prioritized::default(), workers);
        }
    });
}

#[test]
fn another_thread_takes_the_place_in_the_driver_of_a_worker_in_block_on() {
    within(WATCH, || {
        let runtime = driven(1).build().unwrap();
        let outer = runtime.spawn(async {
            let inner = Runtime::current().block_on(async { greenroom::spawn(ping_pong(3)).await });
            inner.len()
        });
        assert_eq!(runtime.block_on(outer), 1);
        let report = runtime.block_on(runtime.shutdown());
        assert_eq!(report.left_behind, 0);
    });
}

#[test]
fn a_task_queued_by_a_blocked_worker_runs_on_a_worker_in_the_driver() {
    within(WATCH, || {
        let runtime = driven(2).build().unwrap();
        let task = runtime.spawn(async {
            let (done, is_done) = channel();
            greenroom::spawn(async move { done.send(42).unwrap() }).detach();
            is_done.recv().unwrap()
        });
        assert_eq!(runtime.block_on(task), 42);
    });
}

/// The ways in which a faulty driver breaks its contract.
#[derive(Clone, Copy, PartialEq)]
enum Breach {
    ReturnsAtOnce,
    PollsOnce,
    Panics,
    PanicsInSleep,
}

struct Faulty(Breach);

impl Driver for Faulty {
    fn drive(&self, mut worker: Pin<&mut dyn Future<Output = ()>>) {
        match self.0 {
            Breach::ReturnsAtOnce => {}
            Breach::PollsOnce => {
                let _ = futures::executor::block_on(poll_fn(|cx: &mut Context<'_>| {
                    Poll::Ready(worker.as_mut().poll(cx))
                }));
            }
            Breach::Panics => panic!("a driver that panics"),
            Breach::PanicsInSleep => AsyncIo.drive(worker),
        }
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        assert!(self.0 != Breach::PanicsInSleep, "a driver without a clock");
        AsyncIo.sleep_until(at)
    }
}

#[test]
fn a_worker_continues_without_a_driver_that_panics_or_returns() {
    let breaches = [
        Breach::ReturnsAtOnce,
        Breach::PollsOnce,
        Breach::Panics,
        Breach::PanicsInSleep,
    ];
    for breach in breaches {
        within(WATCH, move || {
            let builder = Runtime::builder().workers(2);
            does_all_that_a_runtime_does(builder.driver(Faulty(breach)));
        });
    }
}

#[test]
fn a_driver_that_panics_is_reported() {
    for breach in [Breach::Panics, Breach::PanicsInSleep] {
        within(WATCH, move || {
            let (warn, warnings) = channel();
            let builder = Runtime::builder().workers(1).driver(Faulty(breach));
            let builder = builder.on_warning(move |warning| warn.send(warning.clone()).unwrap());
            let runtime = builder.build().unwrap();
            // A worker with a deadline sleeps in its driver.
            let sleeps = greenroom::time::sleep(Duration::from_secs(3600));
            runtime.spawn(sleeps).detach();
            let warning = crate::support::received(&warnings);
            let Warning::WorkerPanicked { continues, .. } = &warning else {
                panic!("another warning")
            };
            assert!(matches!(continues, Continues::WithoutDriver));
            let text = warning.to_string();
            assert!(
                text.starts_with("worker 0 panicked outside any turn: a driver "),
                "{text}"
            );
            assert!(text.ends_with("; it goes on without its driver"), "{text}");
        });
    }
}

#[test]
fn a_simulated_runtime_refuses_a_driver() {
    let built = driven(1).policy(Simulated::new(1)).build();
    let BuildError::Impossible { option, reason } = built.unwrap_err() else {
        panic!("the builder must refuse a driver")
    };
    assert_eq!(option, "driver");
    assert_eq!(reason, "was set, but a simulated runtime has no workers");
}

/// A reactor whose events are closures. They run on the worker's thread while it waits.
#[derive(Default)]
struct Manual {
    events: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    thread: Mutex<Option<thread::Thread>>,
    /// Whether it polls the worker even if no event has woken it.
    polls_for_nothing: bool,
}

impl Manual {
    fn send(&self, event: impl FnOnce() + Send + 'static) {
        self.events.lock().unwrap().push(Box::new(event));
        self.thread
            .lock()
            .unwrap()
            .iter()
            .for_each(thread::Thread::unpark);
    }
}

struct ManualDriver(Arc<Manual>);

impl Driver for ManualDriver {
    fn drive(&self, mut worker: Pin<&mut dyn Future<Output = ()>>) {
        struct Unparks(thread::Thread, AtomicUsize);
        impl futures::task::ArcWake for Unparks {
            fn wake_by_ref(this: &Arc<Self>) {
                this.1.fetch_add(1, Ordering::SeqCst);
                this.0.unpark();
            }
        }
        *self.0.thread.lock().unwrap() = Some(thread::current());
        let woken = Arc::new(Unparks(thread::current(), AtomicUsize::new(1)));
        let waker = futures::task::waker(woken.clone());
        loop {
            let is_wanted = woken.1.swap(0, Ordering::SeqCst) > 0 || self.0.polls_for_nothing;
            if is_wanted
                && worker
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_ready()
            {
                return;
            }
            let events = std::mem::take(&mut *self.0.events.lock().unwrap());
            events.into_iter().for_each(|event| event());
            if woken.1.load(Ordering::SeqCst) == 0 && !self.0.polls_for_nothing {
                thread::park();
            }
        }
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        AsyncIo.sleep_until(at)
    }
}

#[test]
fn a_task_woken_by_a_driver_event_runs_on_that_worker_with_any_policy() {
    fn with(policy: impl Policy) {
        let manual = Arc::<Manual>::default();
        let builder = Runtime::builder().workers(1).policy(policy);
        let runtime = builder
            .driver(ManualDriver(manual.clone()))
            .build()
            .unwrap();
        for _ in 0..20 {
            let (sender, receiver) = futures::channel::oneshot::channel();
            let task = runtime.spawn(async move {
                let from: ThreadId = receiver.await.unwrap();
                (from, thread::current().id())
            });
            manual.send(move || sender.send(thread::current().id()).unwrap());
            let (from, ran) = runtime.block_on(task);
            assert_eq!(from, ran);
        }
    }
    within(WATCH, || {
        with(Stealing::default());
        with(Sharing::default());
        with(Prioritized::default());
    });
}

#[test]
fn a_deadline_fires_while_a_task_woken_by_a_socket_blocks_its_worker() {
    within(WATCH, || {
        let runtime = driven(2).build().unwrap();
        for _ in 0..10 {
            let (late, is_late) = channel();
            let timer = runtime.spawn(async move {
                greenroom::time::sleep(Duration::from_millis(5)).await;
                late.send(()).unwrap();
            });
            let (mut near, far) = drive(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let (near, far) = futures::join!(TcpStream::connect(address), listener.accept());
                (near.unwrap(), far.unwrap().0)
            });
            let blocks = runtime.spawn(async move {
                let mut far = far;
                far.read_exact(&mut [0]).await.unwrap();
                is_late.recv().unwrap();
            });
            drive(async { near.write_all(&[1]).await.unwrap() });
            drive(timer);
            drive(blocks);
        }
    });
}

#[test]
fn a_waker_called_by_a_deadline_may_call_block_on() {
    struct Waits(Runtime, std::sync::mpsc::Sender<u32>);
    impl futures::task::ArcWake for Waits {
        fn wake_by_ref(this: &Arc<Self>) {
            let answer = this
                .0
                .block_on(async { greenroom::spawn(async { 42 }).await });
            this.1.send(answer).unwrap();
        }
    }
    within(WATCH, || {
        let runtime = driven(1).build().unwrap();
        let (told, heard) = channel();
        let uncounted = runtime.block_on(async { Runtime::current() });
        let waker = futures::task::waker(Arc::new(Waits(uncounted, told)));
        let stop = Arc::new(AtomicUsize::new(0));
        let stopped = stop.clone();
        // Keeps the worker busy, so that it handles the deadline between two turns.
        let busy = runtime.spawn(async move {
            let armed = || {
                let mut sleep = Box::pin(greenroom::time::sleep(Duration::from_millis(2)));
                let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
                polled.is_pending().then_some(sleep)
            };
            // A sleep that is over before its first poll wakes nobody.
            let _sleep = std::iter::repeat_with(armed).flatten().next();
            while stopped.load(Ordering::SeqCst) == 0 {
                greenroom::yield_now().await;
            }
        });
        assert_eq!(heard.recv(), Ok(42));
        stop.store(1, Ordering::SeqCst);
        drive(busy);
        runtime.run_until_quiescent();
        assert_eq!(drive(runtime.shutdown()).left_behind, 0);
    });
}

#[test]
fn block_on_panics_in_a_callback_of_the_driver() {
    within(WATCH, || {
        let manual = Arc::<Manual>::default();
        let builder = Runtime::builder().workers(1);
        let runtime = builder
            .driver(ManualDriver(manual.clone()))
            .build()
            .unwrap();
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })), 1);
        let (told, heard) = channel();
        let uncounted = runtime.block_on(async { Runtime::current() });
        manual.send(move || {
            let waits = std::panic::AssertUnwindSafe(|| uncounted.block_on(async {}));
            let panic = std::panic::catch_unwind(waits).unwrap_err();
            told.send(*panic.downcast::<String>().unwrap()).unwrap();
        });
        let text = heard.recv().unwrap();
        assert!(text.contains("would wait for itself"), "{text}");
        assert_eq!(runtime.block_on(runtime.spawn(async { 2 })), 2);
    });
}

#[test]
fn workers_that_wait_in_the_driver_are_counted_as_parked() {
    fn asleep(runtime: &Runtime) {
        let sleeps = |worker: &greenroom::WorkerStats| worker.parks == worker.wake_ups + 1;
        while !runtime.stats().workers.iter().all(sleeps) {
            thread::yield_now();
        }
    }
    fn with(policy: impl Policy) {
        let runtime = driven(2).policy(policy).build().unwrap();
        asleep(&runtime);
        // Each is the new earliest deadline, of which the workers are notified.
        for hours in (1..5).rev() {
            let mut sleep = Box::pin(greenroom::time::sleep(Duration::from_secs(3600 * hours)));
            runtime.block_on(poll_fn(|cx| {
                assert!(sleep.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            }));
            asleep(&runtime);
        }
    }
    within(WATCH, || {
        with(Stealing::default());
        with(Sharing::default());
        with(Prioritized::default());
    });
}

/// A driver that is the loop of another runtime.
struct Nested(Runtime);

impl Driver for Nested {
    fn drive(&self, worker: Pin<&mut dyn Future<Output = ()>>) {
        self.0.block_on(worker);
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        AsyncIo.sleep_until(at)
    }
}

#[test]
fn a_driver_may_be_the_block_on_of_another_runtime() {
    within(WATCH, || {
        let outer = Runtime::builder().workers(1).thread_name("outer");
        let driver = Nested(outer.build().unwrap());
        let builder = Runtime::builder().workers(1).thread_name("inner");
        let runtime = builder.driver(driver).build().unwrap();
        let name = runtime.spawn(async {
            let own = greenroom::spawn(async { thread::current().name().unwrap().to_owned() });
            own.await
        });
        assert_eq!(
            drive(name),
            "inner-0",
            "the worker's own runtime is the current one"
        );
    });
}

#[test]
fn spurious_polls_by_a_driver_have_no_effect() {
    within(WATCH, || {
        let manual = Arc::new(Manual {
            polls_for_nothing: true,
            ..Manual::default()
        });
        let builder = Runtime::builder().workers(1);
        does_all_that_a_runtime_does(builder.driver(ManualDriver(manual)));
    });
}
