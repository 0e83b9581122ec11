//! Wakers of other executors that panic in their clone, in their call or in their drop: no wait
//! panics, and nothing is lost.
#![expect(
    unsafe_code,
    reason = "only a waker of one's own making panics in its clone"
)]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::{Context as Cx, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::{Duration, Instant};

use greenroom::looper::Controller;
use greenroom::market::{Job, Market};
use greenroom::policy::Sharing;
use greenroom::registry::{Group, Name};
use greenroom::time::sleep;
use greenroom::{Context, Driver, Handle, Reply, Runtime, actor, concurrently, unblock};

use crate::support::{Gate, Log, WATCH, drive, inside, keep_bombs_quiet, until, within};

/// Which functions of a waker panic.
const CLONE: usize = 1;
const CALL: usize = 2;
const DROP: usize = 4;

/// The wakers that a wait meets. The last one is kept when the wait ends.
const PARTS: [usize; 5] = [DROP, CLONE, CALL, CLONE | CALL | DROP, CALL | DROP];

/// Returns a waker of which these functions panic. No two with different numbers wake the same
/// task. It is never dropped: only its clones are.
fn bomb(parts: usize, number: usize) -> std::mem::ManuallyDrop<Waker> {
    fn panics(data: *const (), part: usize) {
        assert!(data.addr() & part == 0, "bomb in a waker");
    }
    static BOMB: RawWakerVTable = RawWakerVTable::new(
        |data| {
            panics(data, CLONE);
            RawWaker::new(data, &BOMB)
        },
        |data| panics(data, CALL | DROP),
        |data| panics(data, CALL),
        |data| panics(data, DROP),
    );
    let data = std::ptr::without_provenance(parts | (number << 3));
    // SAFETY: the functions only look at the bits of the pointer.
    std::mem::ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, &BOMB)) })
}

/// Polls a wait with wakers of all kinds. Then lets what it waits for happen, and returns its output.
fn outlives<F: Future>(wait: F, happens: impl FnOnce()) -> F::Output {
    let mut wait = pin!(wait);
    for parts in PARTS {
        for number in 0..2 {
            let waker = bomb(parts, number);
            let polled = wait.as_mut().poll(&mut Cx::from_waker(&waker));
            assert!(polled.is_pending());
        }
    }
    happens();
    drive(wait)
}

/// Drops a wait that has a waker which panics in its drop.
fn is_dropped<F: Future>(wait: F) {
    let mut wait = Box::pin(wait);
    let waker = bomb(DROP, 0);
    assert!(wait.as_mut().poll(&mut Cx::from_waker(&waker)).is_pending());
    // A panic of this drop would fail the test.
    drop(wait);
}

/// Runs a test on a runtime with one worker.
fn at_work(test: impl FnOnce(&Runtime) + Send + 'static) {
    keep_bombs_quiet();
    within(WATCH, move || {
        let runtime = Runtime::builder().workers(1).on_fault(|_| {}).build();
        test(&runtime.unwrap());
    });
}

/// Spawns an actor that reads its messages once the gate is open, and returns them.
fn gated(runtime: &Runtime, capacity: usize) -> (Handle<u32, Vec<u32>>, Gate) {
    let gate = Gate::default();
    let opens = gate.clone();
    let reads = async move |cx: Context<u32>| {
        opens.wait().await;
        let mut cx = cx;
        let mut all = Vec::new();
        while let Some(message) = cx.recv().await {
            all.push(message);
        }
        all
    };
    (actor(reads).capacity(capacity).on(runtime).spawn(), gate)
}

/// Spawns an actor that never ends, and returns its context.
fn lent(runtime: &Runtime) -> (Handle<u32, ()>, Context<u32>) {
    let (give, given) = mpsc::channel();
    let gives = move |cx: Context<u32>| async move {
        give.send(cx).unwrap();
        std::future::pending().await
    };
    (actor(gives).on(runtime).spawn(), given.recv().unwrap())
}

#[test]
fn a_recv_loses_no_message_of_a_source() {
    at_work(|runtime| {
        let (_handle, mut cx) = lent(runtime);
        let (give, given) = futures::channel::mpsc::unbounded();
        cx.attach(given).detach();
        for number in 0..10 {
            is_dropped(cx.recv());
            let gives = || give.unbounded_send(number).unwrap();
            assert_eq!(outlives(cx.recv(), gives), Some(number));
        }
        cx.send_after(Duration::from_millis(1), 77).detach();
        let received = (0..).find_map(|number| {
            let waker = bomb(DROP, number);
            let polled = pin!(cx.recv()).poll(&mut Cx::from_waker(&waker));
            std::thread::yield_now();
            Some(polled).filter(Poll::is_ready)
        });
        assert_eq!(received, Some(Poll::Ready(Some(77))));
    });
}

#[test]
fn a_recv_loses_no_message_of_its_mailbox() {
    at_work(|runtime| {
        let (handle, mut cx) = lent(runtime);
        for number in 0..10 {
            is_dropped(cx.recv());
            let tells = || handle.tell(number).unwrap();
            assert_eq!(outlives(cx.recv(), tells), Some(number));
        }
    });
}

#[test]
fn a_recv_loses_no_answer_of_a_request() {
    at_work(|runtime| {
        let (_handle, mut cx) = lent(runtime);
        let gate = Gate::default();
        let opens = gate.clone();
        let answers = move |mut asked: Context<Reply<u32>>| async move {
            let reply = asked.recv().await.unwrap();
            opens.wait().await;
            reply.send(42);
        };
        let asked = actor(answers).on(runtime).spawn();
        cx.on_answer(asked.request(|reply| reply), |answer| answer.unwrap());
        is_dropped(cx.recv());
        assert_eq!(outlives(cx.recv(), || gate.open()), Some(42));
    });
}

#[test]
fn a_join_returns_the_fault_of_its_actor() {
    at_work(|runtime| {
        let fails = actor(async |mut cx: Context<()>| {
            cx.recv().await;
            panic!("bomb in an actor");
        });
        let fails = fails.on(runtime).spawn();
        let address = fails.address();
        let joined: Result<(), _> = outlives(fails.join(), || address.tell(()).unwrap());
        assert!(joined.unwrap_err().to_string().contains("bomb in an actor"));
    });
}

#[test]
fn waits_for_a_mailbox_and_for_its_end_lose_nothing() {
    at_work(|runtime| {
        let (handle, gate) = gated(runtime, 1);
        let address = handle.address();
        handle.tell(1).unwrap();
        is_dropped(handle.send(9));
        is_dropped(handle.reserve());
        is_dropped(address.closed());
        let send = handle.send(2);
        let mut reserve = Box::pin(handle.reserve());
        outlives(send, || {
            let waker = bomb(DROP, 0);
            let polled = reserve.as_mut().poll(&mut Cx::from_waker(&waker));
            assert!(polled.is_pending());
            outlives(handle.reserve(), || {
                drop(reserve);
                gate.open();
            })
            .unwrap()
            .send(3);
        })
        .unwrap();
        outlives(address.closed(), || handle.stop());
        assert_eq!(drive(handle.join()).unwrap(), [1, 2, 3]);
    });
}

#[test]
fn an_ask_returns_its_answer() {
    at_work(|runtime| {
        let (give, given) = mpsc::channel();
        let keeps = move |mut cx: Context<Reply<u32>>| async move {
            while let Some(reply) = cx.recv().await {
                give.send(reply).unwrap();
            }
        };
        let keeps = actor(keeps).on(runtime).spawn();
        is_dropped(keeps.ask(|reply| reply));
        drop(given.recv().unwrap());
        let answers = || given.recv().unwrap().send(42);
        assert_eq!(outlives(keeps.ask(|reply| reply), answers), Ok(42));
    });
}

#[test]
fn waits_for_tasks_return_their_values() {
    at_work(|runtime| {
        let gate = Gate::default();
        let waits = || {
            let gate = gate.clone();
            async move {
                gate.wait().await;
                42
            }
        };
        is_dropped(runtime.spawn(waits()));
        let blocking = gate.clone();
        let blocks = inside(runtime, || unblock(move || blocking.pass()));
        let several = concurrently([runtime.spawn(waits()), runtime.spawn(waits())]);
        let values = outlives(several, || {
            assert_eq!(outlives(runtime.spawn(waits()), || gate.open()), 42);
        });
        assert_eq!(values, [42, 42]);
        drive(blocks);
    });
}

#[test]
fn a_call_on_a_thread_of_its_own_returns_its_value() {
    at_work(|runtime| {
        let gate = Gate::default();
        let opens = gate.clone();
        let blocks = inside(runtime, || unblock(move || opens.pass()));
        outlives(blocks, || gate.open());
        let (pinned, gate) = (runtime.spawn_pinned("pinned").unwrap(), Gate::default());
        let hosted = drive(pinned.host(|| 40)).unwrap();
        let opens = gate.clone();
        let called = hosted.with(move |value| {
            opens.pass();
            *value + 2
        });
        assert_eq!(outlives(called, || gate.open()).unwrap(), 42);
    });
}

#[test]
fn a_sleep_ends() {
    at_work(|runtime| {
        inside(runtime, || {
            is_dropped(sleep(Duration::from_secs(3600)));
            let mut sleeps = Box::pin(sleep(Duration::from_millis(20)));
            for number in 0..2 {
                let waker = bomb(DROP | CALL, number);
                let _ = sleeps.as_mut().poll(&mut Cx::from_waker(&waker));
            }
            drive(sleeps);
        });
    });
}

#[test]
fn waits_for_a_whole_runtime_end() {
    at_work(|runtime| {
        let gate = Gate::default();
        let opens = gate.clone();
        let busy = runtime.spawn(async move { opens.pass() });
        is_dropped(runtime.quiescent());
        outlives(runtime.quiescent(), || gate.open());
        drive(busy);
        let (_handle, gate) = gated(runtime, 1);
        let report = outlives(runtime.shutdown(), || gate.open());
        assert_eq!(report.left_behind, 0);
    });
}

#[test]
fn a_wait_for_a_name_finds_it() {
    at_work(|runtime| {
        let name = Name::<u32>::new("waker panics").on(runtime);
        let (handle, _gate) = gated(runtime, 1);
        is_dropped(name.wait());
        let found = outlives(name.wait(), || name.register(&handle).unwrap());
        assert_eq!(found.unwrap().id(), handle.id());
    });
}

#[test]
fn a_message_to_a_group_reaches_all() {
    at_work(|runtime| {
        let group = Group::<u32>::new("waker panics").on(runtime);
        let readers = [(); 2].map(|()| gated(runtime, 1));
        for (reader, _) in &readers {
            group.join(reader).unwrap();
            reader.tell(1).unwrap();
        }
        is_dropped(group.send_all(9));
        let all = outlives(group.send_all(2), || {
            readers.iter().for_each(|(_, gate)| gate.open());
        });
        assert_eq!(all.sent, 2);
        for (reader, _) in readers {
            reader.stop();
            assert_eq!(drive(reader.join()).unwrap(), [1, 2]);
        }
    });
}

#[test]
fn a_market_loses_no_job() {
    at_work(|runtime| {
        inside(runtime, || {
            let market = Market::<u32>::builder().max_workers(1).capacity(1);
            let (market, gate) = (market.build().unwrap(), Gate::default());
            let job = |number| {
                let (gate, key) = (gate.clone(), number);
                Job::new(move || {
                    gate.pass();
                    number
                })
                .key(key)
            };
            let first = drive(market.offer(job(1))).unwrap();
            until(|| market.status().running == 1);
            let second = market.try_offer(job(2)).unwrap();
            is_dropped(market.offer(job(9)));
            let third = market.offer(job(3));
            let ends = market.stopped();
            let third = outlives(third, || {
                assert_eq!(outlives(first, || gate.open()).unwrap(), 1);
            });
            assert_eq!(drive(second).unwrap(), 2);
            assert_eq!(drive(third.unwrap()).unwrap(), 3);
            outlives(ends, || market.stop());
        });
    });
}

#[test]
fn a_looper_loses_no_task() {
    at_work(|runtime| {
        inside(runtime, || {
            let controller = Controller::builder().build().unwrap();
            let (looper, gate) = (controller.looper(), Gate::default());
            let opens = gate.clone();
            let posted = looper.spawn(async move {
                opens.wait().await;
                42
            });
            is_dropped(
                controller
                    .looper()
                    .spawn(std::future::pending::<()>())
                    .unwrap(),
            );
            let close = looper.close();
            let value = outlives(posted.unwrap(), || gate.open());
            assert_eq!(value.unwrap(), 42);
            drive(close);
        });
    });
}

#[test]
fn an_actor_that_another_executor_runs_loses_no_message() {
    keep_bombs_quiet();
    within(WATCH, || {
        let sum = async |mut cx: Context<u32>| {
            let mut sum = 0;
            while let Some(number) = cx.recv().await {
                sum += number;
            }
            sum
        };
        let (address, future) = actor(sum).split();
        address.tell(40).unwrap();
        let ends = || {
            address.tell(2).unwrap();
            address.stop();
        };
        assert_eq!(outlives(future, ends).unwrap(), 42);
    });
}

/// A driver that polls its workers with wakers of which these parts panic, and then waits for them
/// or returns.
struct Bombs {
    parts: usize,
    waits: bool,
}

impl Driver for Bombs {
    fn drive(&self, mut worker: Pin<&mut dyn Future<Output = ()>>) {
        for number in 0..3 {
            let waker = bomb(self.parts, number);
            let polled = worker.as_mut().poll(&mut Cx::from_waker(&waker));
            // All may be done in the first poll, and the runtime over before the next one.
            if polled.is_ready() {
                assert!(
                    number > 0,
                    "the runtime was over before a bomb was its waker"
                );
                return;
            }
        }
        if self.waits {
            drive(worker);
        }
    }

    fn sleep_until(&self, _at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_worker_survives_the_wakers_of_its_driver() {
    keep_bombs_quiet();
    within(WATCH, || {
        for parts in PARTS {
            for waits in [true, false] {
                let new = || Runtime::builder().workers(1).driver(Bombs { parts, waits });
                for builder in [new(), new().policy(Sharing::default())] {
                    let warnings = Log::default();
                    let log = warnings.clone();
                    let builder = builder.on_warning(move |warning| log.add(warning.clone()));
                    let runtime = builder.build().unwrap();
                    for number in 0..20 {
                        assert_eq!(drive(runtime.spawn(async move { number })), number);
                    }
                    assert_eq!(drive(runtime.shutdown()).left_behind, 0);
                    // A worker calls the waker in its poll if it wants to be polled again. That panic
                    // is the driver's.
                    let panics = warnings.take();
                    assert!(parts & CALL != 0 || panics.is_empty(), "{panics:?}");
                }
            }
        }
    });
}
