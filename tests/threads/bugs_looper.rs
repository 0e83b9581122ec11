//! Faults of loopers that were mended: deadlocks that were none, ends, and strange user code.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use greenroom::Runtime;
use greenroom::looper::{Controller, Looper, Posted, TaskError};
use greenroom::policy::Simulated;
use greenroom::time::sleep;

use crate::support::{
    Bomb, Drops, Gate, WATCH, drive, keep_bombs_quiet, open_when_pending, within,
};

const SEEDS: u64 = 20;

/// Runs a scenario in many simulations, with a controller of one lane and one of two.
fn simulated<Fut: Future<Output = ()>>(scenario: impl Fn(Controller) -> Fut + Send + 'static) {
    within(WATCH, move || {
        keep_bombs_quiet();
        for (seed, lanes) in (0..SEEDS).flat_map(|seed| [(seed, 1), (seed, 2)]) {
            let _named = crate::support::matrix::Named(format!("seed {seed}, {lanes} lanes"));
            let runtime = Runtime::builder().policy(Simulated::new(seed));
            let runtime = runtime.on_fault(|_| {}).build().unwrap();
            let builder = Controller::builder().lanes(lanes);
            let builder = builder.detect_deadlocks(true).on(&runtime);
            runtime.block_on(scenario(builder.build().unwrap()));
        }
    });
}

/// Makes two loopers and the locks of a set, which are taken in this order.
fn pair(controller: &Controller) -> [Looper; 2] {
    [
        controller.looper_named("first"),
        controller.looper_named("second"),
    ]
}

#[test]
fn two_requests_that_are_granted_together_are_no_deadlock() {
    simulated(async |controller| {
        let (left, right) = (controller.lock(), controller.lock());
        let [first, second] = pair(&controller);
        let holder = controller.looper();
        assert_eq!(holder.attempt(left.exclusive()), Ok(true));
        assert_eq!(second.attempt(right.exclusive()), Ok(true));
        let both = first
            .with((left.shared(), right.exclusive()))
            .post(|_| ())
            .unwrap();
        let one = second.with(left.shared()).post(|()| ()).unwrap();
        holder.unlock(&left).unwrap();
        one.await.unwrap();
        second.unlock(&right).unwrap();
        both.await.unwrap();
    });
}

#[test]
fn a_result_that_is_there_is_no_longer_waited_for() {
    simulated(async |controller| {
        let [first, second] = pair(&controller);
        let value = controller.guarded(0);
        let (own, other) = (value.clone(), second.clone());
        let task = first.with(own.exclusive()).spawn(async move |mut own| {
            let one = other.post(|| ()).unwrap();
            let two = other
                .with(value.exclusive())
                .post(|value| *value += 1)
                .unwrap();
            one.await.unwrap();
            *own += 1;
            (two,)
        });
        let (two,) = task.unwrap().await.unwrap();
        two.await.unwrap();
    });
}

#[test]
fn a_world_that_stops_an_awaited_task_behind_a_begun_one_is_a_deadlock() {
    simulated(async |controller| {
        let [first, second] = pair(&controller);
        let gate = Gate::default();
        let waits = gate.clone();
        let begun = Gate::default();
        let begins = begun.clone();
        let one = second.spawn(async move {
            begins.open();
            waits.wait().await;
        });
        begun.wait().await;
        let two = second.post(|| ()).unwrap();
        let awaits = first.spawn(two).unwrap();
        sleep(Duration::from_secs(1)).await;
        let world = controller.stop_the_world(|_| ()).unwrap();
        gate.open();
        one.unwrap().await.unwrap();
        assert!(matches!(world.await, Err(TaskError::Deadlock(_))));
        awaits.await.unwrap().unwrap();
    });
}

#[test]
fn a_shutdown_ends_a_closed_looper_whose_next_lock_is_closed() {
    simulated(async |controller| {
        let (left, right) = (controller.lock(), controller.lock());
        let [first, second] = pair(&controller);
        assert_eq!(first.attempt(left.exclusive()), Ok(true));
        right.close().await;
        let task = second
            .with((left.shared(), right.shared()))
            .post(|_| ())
            .unwrap();
        drop(second);
        controller.shutdown().await;
        assert!(matches!(task.await, Err(TaskError::Lock(_))));
        assert_eq!(controller.status().loopers, 0);
    });
}

/// Makes a controller of two lanes on three workers, and without grace.
fn on_threads() -> (Runtime, Controller) {
    keep_bombs_quiet();
    let runtime = Runtime::builder().workers(3).grace(Duration::ZERO);
    let runtime = runtime.on_fault(|_| {}).build().unwrap();
    let controller = Controller::builder().lanes(2).priorities(1).on(&runtime);
    (runtime.clone(), controller.build().unwrap())
}

/// Posts a task that blocks its lane until the gate is opened, and waits until it has begun.
fn block(looper: &Looper) -> (Posted<()>, Gate) {
    let (begun, gate) = (Gate::default(), Gate::default());
    let (begins, waits) = (begun.clone(), gate.clone());
    let posted = looper.post(move || {
        begins.open();
        waits.pass();
    });
    begun.pass();
    (posted.unwrap(), gate)
}

#[test]
fn a_lane_that_outlives_the_grace_finds_no_tasks_that_were_dropped() {
    within(WATCH, || {
        let (runtime, controller) = on_threads();
        let [first, second] = pair(&controller);
        let third = controller.looper();
        let (one, ends) = block(&first);
        let (two, ends_later) = block(&second);
        let ready = third.post(|| ()).unwrap();
        let queued = second.post(|| ()).unwrap();
        assert!(queued.cancel());
        let shutdown = std::thread::spawn(move || drop(runtime));
        assert!(matches!(drive(ready), Err(TaskError::NotStarted)));
        assert_eq!(second.len(), 1);
        ends.open();
        drive(one).unwrap();
        ends_later.open();
        drive(two).unwrap();
        drive(controller.shutdown());
        shutdown.join().unwrap();
    });
}

#[test]
fn a_world_that_outlives_the_grace_finds_no_tasks_that_were_dropped() {
    within(WATCH, || {
        let (runtime, controller) = on_threads();
        let [first, second] = pair(&controller);
        let (begun, gate) = (Gate::default(), Gate::default());
        let (polled, ends) = (Gate::default(), Gate::default());
        let (begins, waits, is_over) = (begun.clone(), gate.clone(), ends.clone());
        let one = first.spawn(open_when_pending(polled.clone(), async move {
            is_over.wait().await;
        }));
        polled.pass();
        let world = controller.stop_the_world(move |_| {
            begins.open();
            waits.pass();
        });
        // A lane finds this one before the first one, which is of a lower priority.
        let halted = second.priority(1).post(|| ()).unwrap();
        ends.open();
        drive(one.unwrap()).unwrap();
        begun.pass();
        let shutdown = std::thread::spawn(move || drop(runtime));
        assert!(matches!(drive(halted), Err(TaskError::NotStarted)));
        gate.open();
        drive(world.unwrap()).unwrap();
        drive(controller.shutdown());
        shutdown.join().unwrap();
    });
}

#[test]
fn a_value_whose_drop_panics_stops_no_lane() {
    simulated(async |controller| {
        let drops = Drops::default();
        let [first, second] = pair(&controller);
        let closed = controller.lock();
        closed.close().await;
        let value = || controller.guarded(Bomb::new(true, &drops));
        for _ in 0..3 {
            drop(first.with(value().exclusive()).post(|_| ()).unwrap());
            let holds = first.post(|| ()).unwrap();
            drop(
                first
                    .with((closed.shared(), value().shared()))
                    .post(|_| ())
                    .unwrap(),
            );
            holds.await.unwrap();
        }
        first.post(|| ()).unwrap().await.unwrap();
        second.post(|| ()).unwrap().await.unwrap();
        assert_eq!(drops.count(), 6);
    });
}

/// A waker that uses the controller when it is woken and when it is dropped.
struct Asks(Controller);

impl Wake for Asks {
    fn wake(self: Arc<Self>) {
        self.0.status();
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        self.0.status();
    }
}

#[test]
fn a_waker_may_use_the_controller_when_it_is_dropped() {
    within(WATCH, || {
        let (_runtime, controller) = on_threads();
        let (looper, lock) = (controller.looper(), controller.lock());
        assert_eq!(looper.attempt(lock.exclusive()), Ok(true));
        let (running, gate) = block(&looper);
        let mut ends = [
            Box::pin(lock.close()) as Pin<Box<dyn Future<Output = ()>>>,
            Box::pin(looper.close()),
            Box::pin(controller.shutdown()),
        ];
        for _ in 0..3 {
            for end in &mut ends {
                let waker = Waker::from(Arc::new(Asks(controller.clone())));
                assert!(
                    end.as_mut()
                        .poll(&mut Context::from_waker(&waker))
                        .is_pending()
                );
            }
        }
        gate.open();
        drive(running).unwrap();
        for end in ends {
            drive(end);
        }
    });
}

#[test]
fn a_cancelled_task_is_not_counted() {
    simulated(async |controller| {
        let looper = controller.looper();
        let first = looper.post(|| ()).unwrap();
        let second = looper.post(|| ()).unwrap();
        assert!(first.cancel());
        assert_eq!(looper.len(), 1);
        assert!(second.cancel());
        assert!(looper.is_empty());
    });
}
