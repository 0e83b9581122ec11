//! Timers that are armed in a turn which then blocks its thread: another thread that is idle fires
//! them in time.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::{Context as Cx, Poll, Wake, Waker};
use std::time::Duration;

use futures::executor::block_on;
use greenroom::market::{Job, Market};
use greenroom::policy::{Polling, Prioritized, Sharing, Stealing};
use greenroom::time::{Sleep, TimedOut, sleep, timeout};
use greenroom::{Builder, Context, Detached, Pinned, Runtime, actor, looper, unblock};

use crate::driver::AsyncIo;
use crate::support::{Gate, WATCH, within};

const MILLI: Duration = Duration::from_millis(1);

/// How often each case runs: the thread that would fire the timer may be awake by chance.
const ROUNDS: usize = 10;

/// Waits for timers, as a thread that runs no task may.
fn wait_for_timers() {
    block_on(sleep(MILLI));
    let never = std::future::pending::<()>();
    assert_eq!(block_on(timeout(MILLI, never)), Err(TimedOut));
}

/// Arms a timer with this waker, and wakes it if the timer is over by then.
fn arm(timer: Pin<&mut Sleep>, waker: &Waker) {
    if timer.poll(&mut Cx::from_waker(waker)).is_ready() {
        waker.wake_by_ref();
    }
}

/// Returns the waker of the task that awaits this.
async fn own_waker() -> Waker {
    poll_fn(|cx| Poll::Ready(cx.waker().clone())).await
}

/// Runs `test` with two workers, of which one is idle: with each policy, with and without a driver.
fn with_an_idle_worker(test: fn(&Runtime)) {
    within(WATCH, move || {
        for driven in [false, true] {
            let builder = || {
                let builder = Runtime::builder().workers(2);
                if driven {
                    builder.driver(AsyncIo)
                } else {
                    builder
                }
            };
            let with = |builder: Builder| {
                let runtime = builder.build().unwrap();
                (0..ROUNDS).for_each(|_| test(&runtime));
            };
            with(builder());
            with(builder().policy(Stealing::polling(Polling::default())));
            with(builder().policy(Sharing::default()));
            with(builder().policy(Prioritized::default()));
        }
    });
}

#[test]
fn a_task_that_blocks_its_worker_may_wait_for_a_timer() {
    with_an_idle_worker(|runtime| runtime.block_on(runtime.spawn(async { wait_for_timers() })));
}

#[test]
fn an_actor_that_blocks_its_worker_may_wait_for_a_timer() {
    with_an_idle_worker(|runtime| {
        let blocks = actor(|_: Context<()>| async { wait_for_timers() });
        runtime.block_on(async { blocks.spawn().join().await.unwrap() });
    });
}

/// A task that waits until another one wakes it, and then sends on its channel.
struct Waits {
    waker: Waker,
    woken: mpsc::Receiver<()>,
}

impl Waits {
    /// Starts the task, and returns when it waits.
    async fn start() -> Waits {
        let (begins, begun) = futures::channel::oneshot::channel();
        let (wakes, woken) = mpsc::channel();
        greenroom::spawn(async move {
            let mut begins = Some(begins);
            poll_fn(|cx| match begins.take() {
                Some(begins) => {
                    begins.send(cx.waker().clone()).unwrap();
                    Poll::Pending
                }
                None => Poll::Ready(()),
            })
            .await;
            let _ = wakes.send(());
        })
        .detach();
        let waker = begun.await.unwrap();
        Waits { waker, woken }
    }
}

#[test]
fn a_turn_that_blocks_its_worker_may_have_armed_a_timer_for_another_task() {
    with_an_idle_worker(|runtime| {
        runtime.block_on(runtime.spawn(async {
            let other = Waits::start().await;
            let mut timer = pin!(sleep(MILLI));
            arm(timer.as_mut(), &other.waker);
            other.woken.recv().unwrap();
        }));
    });
}

#[test]
fn the_timer_for_another_task_need_not_be_the_earliest() {
    with_an_idle_worker(|runtime| {
        runtime.block_on(runtime.spawn(async {
            let other = Waits::start().await;
            let (mut own, mut timer) = (pin!(sleep(MILLI)), pin!(sleep(2 * MILLI)));
            arm(own.as_mut(), &own_waker().await);
            arm(timer.as_mut(), &other.waker);
            other.woken.recv().unwrap();
        }));
    });
}

#[test]
fn a_timer_of_a_task_may_be_waited_for_in_a_block_on_of_its_turn() {
    with_an_idle_worker(|runtime| {
        runtime.block_on(runtime.spawn(async {
            let mut timer = pin!(sleep(MILLI));
            arm(timer.as_mut(), &own_waker().await);
            block_on(timer);
        }));
    });
}

#[test]
fn an_idle_worker_fires_a_timer_that_two_blocked_workers_have_armed() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(3).build().unwrap();
        for _ in 0..ROUNDS {
            let tasks = [(); 2].map(|()| runtime.spawn(async { wait_for_timers() }));
            tasks.into_iter().for_each(|task| runtime.block_on(task));
        }
    });
}

#[test]
fn jobs_that_block_their_thread_may_wait_for_timers() {
    with_an_idle_worker(|runtime| {
        runtime.block_on(async {
            unblock(wait_for_timers).await;
            let market = Market::<()>::builder().build().unwrap();
            market
                .try_offer(Job::new(wait_for_timers))
                .unwrap()
                .await
                .unwrap();
            let controller = looper::Controller::builder().build().unwrap();
            let looper = controller.looper();
            looper.post(wait_for_timers).unwrap().await.unwrap();
        });
    });
}

/// Calls `with` in a task of a thread that has one task or few: a detached actor, a pinned thread,
/// and stages with and without a runtime. A worker is idle, if there is one.
fn on_each_other_thread(test: fn(Waker)) {
    within(WATCH, move || {
        let test = move || async move { test(own_waker().await) };
        let runtime = Runtime::builder().workers(1).build().unwrap();
        for _ in 0..ROUNDS {
            runtime.block_on(async {
                let detached = actor(move |_: Context<()>| test()).on(Detached).spawn();
                detached.join().await.unwrap();
            });
            let pinned = runtime.spawn_pinned("pinned").unwrap();
            runtime.block_on(pinned.spawn(test));
            let stage = runtime.pinned_here();
            stage.block_on(stage.spawn_local(test()));
        }
        let stage = Pinned::here();
        stage.block_on(stage.spawn_local(test()));
    });
}

#[test]
fn a_task_that_blocks_another_thread_may_wait_for_a_timer() {
    on_each_other_thread(|_| wait_for_timers());
}

#[test]
fn a_timer_of_another_thread_may_be_waited_for_in_a_block_on_of_its_turn() {
    on_each_other_thread(|own| {
        let mut timer = pin!(sleep(MILLI));
        arm(timer.as_mut(), &own);
        block_on(timer);
    });
}

#[test]
fn a_task_that_blocks_another_thread_may_have_armed_a_timer_for_another() {
    on_each_other_thread(|_| {
        let gate = Gate::default();
        let waker = Waker::from(Arc::new(Opens(gate.clone())));
        let mut timer = pin!(sleep(MILLI));
        arm(timer.as_mut(), &waker);
        gate.pass();
    });
}

struct Opens(Gate);

impl Wake for Opens {
    fn wake(self: Arc<Self>) {
        self.0.open();
    }
}
