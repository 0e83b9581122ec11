//! Models 59 to 64, of lanes that are polled by hand: grants, cancels, worlds and sleeping lanes.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use ::loom::thread::spawn;

use super::controller::Controller;
use super::error::TaskError;
use super::handle::Looper;
use super::job::Posted;
use super::lane::Lane;
use super::lock::{Guarded, Lock};
use super::monitor::Monitor;
use super::table::LooperTable;
use super::world::World;
use crate::park::Parker;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::follow_waits;

/// Unparks a thread.
struct Thread(Parker);

impl Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread until it is ready.
fn drive<F: Future>(future: F) -> F::Output {
    let own = Arc::new(Thread(Parker::new()));
    let waker = Waker::from(own.clone());
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => own.0.park(None),
        };
    }
}

fn controller<const LANES: usize>() -> (Arc<Monitor>, [Lane; LANES]) {
    follow_waits();
    let builder = Controller::builder().detect_deadlocks(false);
    let monitor = builder.monitor(LANES, None);
    let lane = |_| {
        let number = monitor.change(|table, _| table.lanes.make());
        Lane::new(monitor.clone(), number)
    };
    let lanes = std::array::from_fn(lane);
    (monitor, lanes)
}

fn loopers<const COUNT: usize>(monitor: &Arc<Monitor>) -> [Looper; COUNT] {
    std::array::from_fn(|_| Looper::new(monitor, None))
}

fn close(monitor: &Monitor) {
    monitor.change(LooperTable::close_all);
}

fn stop_the_world<R: Send + 'static>(
    monitor: &Arc<Monitor>,
    task: impl FnOnce(&mut World) -> R + Send + 'static,
) -> Posted<R> {
    Controller::of(monitor.clone())
        .stop_the_world(task)
        .unwrap()
}

fn outcome<R>(posted: &mut Posted<R>) -> Result<R, TaskError> {
    let polled = Pin::new(posted).poll(&mut TaskContext::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("a task has no outcome"),
    }
}

/// Counts tasks that run at the same time; one that is alone counts as many.
#[derive(Clone)]
struct Users(Arc<AtomicUsize>);

const MANY: usize = 100;

impl Users {
    fn new() -> Self {
        Users(Arc::new(AtomicUsize::new(0)))
    }

    fn alone(&self) {
        // Relaxed: the count says only what happens at the same time.
        let others = self.0.fetch_add(MANY, Ordering::Relaxed);
        assert_eq!(others, 0, "a task is not alone");
        self.0.fetch_sub(MANY, Ordering::Relaxed);
    }

    fn together(&self) {
        // Relaxed: as above.
        let others = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(others < MANY, "a task is not alone");
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Checks that a lock that two lanes hand on is never that of a writer and of another task, and
/// that all get it.
#[test]
fn model_59_a_writer_has_the_lock_alone_and_all_get_it() {
    ::loom::model(|| {
        let (monitor, [one, two]) = controller();
        let [first, second, third] = loopers(&monitor);
        let (lock, users) = (Lock::new(&monitor, None), Users::new());
        let [reads, writes, reads_later] = std::array::from_fn(|_| users.clone());
        let reader = first.with(lock.shared()).post(move |()| reads.together());
        let writer = second.with(lock.exclusive()).post(move |()| writes.alone());
        let later = third
            .with(lock.shared())
            .post(move |()| reads_later.together());
        close(&monitor);
        let runs = spawn(move || drive(one));
        drive(two);
        runs.join().unwrap();
        for posted in [
            &mut reader.unwrap(),
            &mut writer.unwrap(),
            &mut later.unwrap(),
        ] {
            outcome(posted).unwrap();
        }
    });
}

/// Checks that a request behind one that is cancelled gets its lock from the cancel.
#[test]
fn model_60_a_cancelled_request_frees_those_behind_it() {
    ::loom::model(|| {
        let (monitor, [mut lane]) = controller();
        let [holder, first, second] = loopers(&monitor);
        let lock = Lock::new(&monitor, None);
        assert_eq!(holder.attempt(lock.shared()), Ok(true));
        let writer = first.with(lock.exclusive()).post(|()| ()).unwrap();
        let mut reader = second.with(lock.shared()).post(|()| ()).unwrap();
        let cancels = spawn(move || writer.cancel());
        let read = poll_fn(|cx| {
            let _ = Pin::new(&mut lane).poll(cx);
            Pin::new(&mut reader).poll(cx)
        });
        drive(read).unwrap();
        assert!(cancels.join().unwrap(), "a writer began beside a reader");
        close(&monitor);
        drive(lane);
    });
}

/// Checks that a request that is cancelled while it is granted does not keep the lock.
#[test]
fn model_60_a_cancel_against_its_grant_leaves_the_lock_free() {
    ::loom::model(|| {
        let (monitor, [lane]) = controller();
        let [holder, first, second] = loopers(&monitor);
        let lock = Lock::new(&monitor, None);
        assert_eq!(holder.attempt(lock.exclusive()), Ok(true));
        let writer = first.with(lock.exclusive()).post(|()| ()).unwrap();
        let mut reader = second.with(lock.shared()).post(|()| ()).unwrap();
        let cancels = spawn(move || (writer.cancel(), writer));
        holder.unlock(&lock).unwrap();
        close(&monitor);
        drive(lane);
        let (is_cancelled, mut writer) = cancels.join().unwrap();
        let is_done = outcome(&mut writer).is_ok();
        assert_ne!(is_cancelled, is_done, "a cancelled task ran");
        outcome(&mut reader).unwrap();
    });
}

/// Checks that the world is alone beside the end of one task and the begin of another one, and that
/// the loopers go on after it.
#[test]
fn model_61_the_world_is_alone_and_all_goes_on() {
    ::loom::model(|| {
        let (monitor, [one, two]) = controller();
        let [first, second] = loopers(&monitor);
        let users = Users::new();
        let [before, world, after] = std::array::from_fn(|_| users.clone());
        let mut before = first.post(move || before.together()).unwrap();
        let runs = spawn(move || drive(one));
        let mut world = stop_the_world(&monitor, move |_| world.alone());
        let mut after = second.post(move || after.together()).unwrap();
        close(&monitor);
        drive(two);
        runs.join().unwrap();
        for posted in [&mut before, &mut world, &mut after] {
            outcome(posted).unwrap();
        }
    });
}

/// Checks that a task that is posted while a lane goes to sleep is run.
#[test]
fn model_62_a_post_wakes_a_lane_that_goes_to_sleep() {
    ::loom::model(|| {
        let (monitor, [lane]) = controller();
        let [looper] = loopers(&monitor);
        let runs = spawn(move || drive(lane));
        let mut posted = looper.post(|| ()).unwrap();
        close(&monitor);
        runs.join().unwrap();
        outcome(&mut posted).unwrap();
    });
}

/// Checks that a task that is posted into the inbox while a lane goes to sleep is run, although
/// nothing else changes the table.
#[test]
fn model_64_a_lane_that_goes_to_sleep_finds_what_is_in_the_inbox() {
    ::loom::model(|| {
        let (monitor, [lane]) = controller();
        let [looper] = loopers(&monitor);
        let runs = spawn(move || drive(lane));
        drive(looper.post(|| ()).unwrap()).unwrap();
        close(&monitor);
        runs.join().unwrap();
    });
}

/// Checks that the end of a looper wakes the task that closes it, and that of the controller the task
/// that shuts it down.
#[test]
fn model_62_a_close_returns_at_the_end() {
    ::loom::model(|| {
        let (monitor, [lane]) = controller();
        let [looper] = loopers(&monitor);
        drop(looper.post(|| ()).unwrap());
        let runs = spawn(move || drive(lane));
        drive(looper.close());
        close(&monitor);
        drive(
            monitor
                .waiters
                .until(|| monitor.look(|table| table.is_over)),
        );
        runs.join().unwrap();
    });
}

/// Checks that the value of a closed lock is given back beside a world that looks at it.
#[test]
fn model_63_a_value_is_given_back_beside_the_world() {
    ::loom::model(|| {
        let (monitor, [lane]) = controller();
        let value = Guarded::new(&monitor, None, 7);
        let seen = value.clone();
        let mut world = stop_the_world(&monitor, move |world| world.get(&seen).is_ok());
        close(&monitor);
        let runs = spawn(move || drive(lane));
        assert_eq!(drive(value.close()), Ok(7), "the value is given back");
        runs.join().unwrap();
        outcome(&mut world).unwrap();
    });
}
