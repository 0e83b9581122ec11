//! A wait that is dropped leaves no waker behind: nothing of greenroom keeps its task in memory.
//!
//! `places.rs` lists every future and stream of the crate, each with its test.

mod places;

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context as Cx, Wake, Waker};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::channel::oneshot;
use greenroom::looper::Controller;
use greenroom::market::{Job, Market};
use greenroom::registry::{Group, Keyed, Name};
use greenroom::request::{first_ok, race, run_until};
use greenroom::sim::TestProbe;
use greenroom::spool::Spool;
use greenroom::supervise::Supervisor;
use greenroom::time::{Interval, RetryIntervals, sleep, sleep_until, timeout, timeout_at};
use greenroom::{
    Address, Context, Driver, Reply, Runtime, TaskSet, actor, concurrently, retry, sequentially,
    try_concurrently, unblock,
};

#[cfg(target_os = "linux")]
use crate::child::alone;
use crate::support::{
    Gate, Home, OpenOnDrop, WATCH, drive, in_every_home, inside, on_threads, within,
};

const HOUR: Duration = Duration::from_secs(3600);

struct Flag;

impl Wake for Flag {
    fn wake(self: Arc<Self>) {}
}

/// Polls a future with one waker and then with another one, and ends it. Checks that both wakers
/// are gone then.
#[track_caller]
fn ends<F: Future>(what: &str, future: F, end: impl FnOnce(Pin<Box<F>>)) {
    let flags = [Arc::new(Flag), Arc::new(Flag)];
    let mut future = Box::pin(future);
    for flag in &flags {
        let waker = Waker::from(flag.clone());
        let polled = future.as_mut().poll(&mut Cx::from_waker(&waker));
        assert!(polled.is_pending(), "{what}: there is nothing to wait for");
    }
    end(future);
    let kept = flags.map(|flag| Arc::strong_count(&flag) - 1);
    assert_eq!(kept, [0, 0], "{what}: wakers that are kept");
}

#[track_caller]
fn leaves<F: Future>(what: &str, future: F) {
    ends(what, future, drop);
}

/// Runs a test in a home's runtime, and where there is no runtime.
fn in_and_outside(home: &Home, test: impl AsyncFn()) {
    home.block_on(test());
    drive(test());
}

/// An actor that never receives, until this is dropped.
struct Idle<M: Send + 'static>(Address<M>);

impl<M: Send + 'static> Drop for Idle<M> {
    fn drop(&mut self) {
        self.0.kill();
    }
}

fn idle<M: Send + 'static>(home: &Home) -> Idle<M> {
    let idle = actor(|cx: Context<M>| async move {
        let _open = cx;
        pending::<()>().await;
    });
    Idle(home.spawn(idle.capacity(1)).address())
}

fn full(home: &Home) -> Idle<u32> {
    let full = idle(home);
    full.0.tell(0).unwrap();
    full
}

/// Returns an actor and its context, which it has given away.
async fn context<M: Send + 'static>(home: &Home) -> (Idle<M>, Context<M>) {
    let (gives, given) = oneshot::channel();
    let actor = actor(move |cx: Context<M>| async move {
        drop(gives.send(cx));
        pending::<()>().await;
    });
    let idle = Idle(home.spawn(actor).address());
    (idle, given.await.unwrap())
}

in_every_home!(
    questions,
    room,
    the_end_of_an_actor,
    messages,
    tasks_and_their_runtime,
    timers,
    several_futures,
    names,
    keyed_actors,
    actors_of_other_executors,
    spools_and_supervisors,
    loopers,
);

fn questions(home: &Home) {
    in_and_outside(home, async || {
        let ask = |reply: Reply<u32>| reply;
        let silent = idle(home);
        leaves("an ask", silent.0.ask(ask));
        let silent = idle(home);
        leaves("an ask with a limit", silent.0.ask(ask).timeout(HOUR));
        leaves("an ask without room", silent.0.ask(ask));
        let silent = idle(home);
        leaves("a request", silent.0.request(ask));
        leaves(
            "a request without room",
            silent.0.request(ask).timeout(HOUR),
        );
        let (_reply, answer) = Reply::<u32>::pair();
        leaves("an answer", answer);
        let map = idle::<Reply<u32>>(home);
        let mapped = map.0.map(|reply| reply);
        leaves("an ask through a map", mapped.ask(ask));
        leaves("an ask without room through a map", mapped.ask(ask));
    });
}

fn room(home: &Home) {
    in_and_outside(home, async || {
        let full = full(home);
        leaves("send", full.0.send(1));
        leaves("reserve", full.0.reserve());
        let mapped = full.0.map(|number: u32| number);
        leaves("send through a map", mapped.send(1));
        leaves("reserve through a map", mapped.reserve());
        let group = Group::owned("full").on(&home.runtime);
        group.join(&full.0).unwrap();
        leaves("send_all", group.send_all(1));
    });
}

fn the_end_of_an_actor(home: &Home) {
    in_and_outside(home, async || {
        let idle = idle::<u32>(home);
        leaves("closed", idle.0.closed());
        leaves("ended", idle.0.ended());
        leaves("closed of a weak address", idle.0.downgrade().closed());
        let spawn = || home.spawn(actor(|mut cx: Context<u32>| async move { cx.recv().await }));
        let joined = spawn();
        let address = joined.address();
        leaves("join", joined.join());
        address.stop();
        let awaited = spawn();
        let address = awaited.address();
        leaves("an awaited handle", awaited.into_future());
        address.stop();
    });
}

fn messages(home: &Home) {
    in_and_outside(home, async || {
        let (_actor, mut cx) = context::<u32>(home).await;
        leaves("recv", cx.recv());
        let asked = idle::<Reply<u32>>(home);
        cx.send_after(HOUR, 1).detach();
        cx.attach(futures::stream::pending()).detach();
        cx.on_return(pending::<u32>(), Result::unwrap);
        cx.on_answer(asked.0.request(|reply| reply), Result::unwrap);
        let child = home.spawn(actor(|cx: Context<()>| async move {
            let _open = cx;
            pending::<u32>().await
        }));
        let child_address = Idle(child.address());
        cx.adopt(child, Result::unwrap);
        leaves("recv with sources", cx.recv());
        leaves("recv with sources, again", cx.recv());
        cx.stop();
        leaves("recv with a child", cx.recv());
        drop((cx, child_address));

        let (actor, mut cx) = context::<u32>(home).await;
        cx.send_after(HOUR, 1).detach();
        let flag = Arc::new(Flag);
        let waker = Waker::from(flag.clone());
        let mut task = Cx::from_waker(&waker);
        for _ in 0..4 {
            let mut woken = Box::pin(cx.recv());
            assert!(woken.as_mut().poll(&mut task).is_pending());
            actor.0.tell(1).unwrap();
            drop(woken);
            assert_eq!(Arc::strong_count(&flag), 2, "it was woken and not polled");
            assert!(pin!(cx.recv()).poll(&mut task).is_ready());
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&flag), 1, "a message was received");

        leaves("a stream of messages", cx.into_future());
        let (_actor, mut cx) = context::<u32>(home).await;
        let elsewhere = Mutex::new(None);
        let moved = cx.incarnation(async |cx| *elsewhere.lock().unwrap() = Some(cx));
        leaves("incarnation", moved);
    });
}

/// A value that blocks the thread that drops it until the gate is open. A worker beside a pinned home is
/// not held, and would end a cancelled task at once.
struct PassOnDrop(Gate);

impl Drop for PassOnDrop {
    fn drop(&mut self) {
        self.0.pass();
    }
}

fn tasks_and_their_runtime(home: &Home) {
    in_and_outside(home, async || {
        let task = || home.spawn_task(pending::<()>());
        leaves("a task", task());
        leaves("a fallible task", task().fallible());
        ends("a task that is detached", task(), |task| {
            // Its end comes with that of the home.
            Pin::into_inner(task).detach();
        });
        let mut set = TaskSet::new();
        set.spawn_on(&home.runtime, pending::<()>());
        leaves("the next result of a set", set.next());
        leaves("a set as a stream", set.into_future());
        let mut watch = home.runtime.watch(HOUR);
        watch.next().await;
        leaves("the next changes of a runtime", watch.next());
        leaves("a watch of a runtime", watch.into_future());
        // Nothing is polled, so no cancelled task ends.
        let _held = home.hold();
        leaves("a task that has not begun", task());
        leaves("cancel", task().cancel());
        let open = OpenOnDrop(Gate::default());
        let last = PassOnDrop(open.0.clone());
        let mut set = TaskSet::new();
        set.spawn_on(&home.runtime, async move {
            let _last = last;
            pending::<()>().await;
        });
        leaves("shutdown of a set", set.shutdown());
        drop(open);
        let _keep = home.runtime.keep_alive();
        leaves("quiescent", home.runtime.quiescent());
        let flag = Arc::new(Flag);
        let waker = Waker::from(flag.clone());
        let yields = Box::pin(greenroom::yield_now());
        assert!(
            { yields }
                .as_mut()
                .poll(&mut Cx::from_waker(&waker))
                .is_pending()
        );
        drop(waker);
        assert_eq!(Arc::strong_count(&flag), 1, "yield_now");
    });
}

fn timers(home: &Home) {
    in_and_outside(home, async || {
        leaves("sleep", sleep(HOUR));
        leaves("timeout", timeout(HOUR, pending::<()>()));
        let deadline = greenroom::time::Instant::now() + HOUR;
        leaves("sleep_until", sleep_until(deadline));
        leaves("timeout_at", timeout_at(deadline, pending::<()>()));
        let mut ticks = Interval::new(HOUR);
        ticks.tick().await;
        leaves("tick", ticks.tick());
        leaves("tick, again", ticks.tick());
        leaves("a stream of ticks", ticks.into_future());
    });
}

fn several_futures(home: &Home) {
    in_and_outside(home, async || {
        let hour = || async {
            sleep(HOUR).await;
            Ok::<(), u32>(())
        };
        leaves("concurrently", concurrently((hour(), hour())));
        leaves("concurrently in a list", concurrently(vec![hour(), hour()]));
        let first = try_concurrently(vec![hour(), hour()]);
        leaves("try_concurrently", first);
        greenroom::task_local!(static VALUE: u32);
        leaves("a future with a value", VALUE.scope(7, hour()));
        leaves("race", race((hour(), hour())));
        leaves("race in a list", race([hour(), hour()]));
        leaves("first_ok", first_ok((hour(), hour())));
        leaves("first_ok in a list", first_ok(vec![hour(), hour()]));
        leaves("run_until", run_until(sleep(HOUR), hour()));
        leaves("sequentially", sequentially([hour(), hour()]));
        let intervals = RetryIntervals::exponential(HOUR, HOUR);
        leaves("an attempt of retry", retry(&intervals, hour));
        leaves("retry", retry(&intervals, || async { Err::<(), u32>(1) }));
    });
}

fn names(home: &Home) {
    in_and_outside(home, async || {
        let name = Name::<u32>::owned("nobody").on(&home.runtime);
        leaves("wait", name.wait());
        leaves("wait with a limit", name.wait_timeout(HOUR));
        let holder = home.spawn(actor(|mut cx: Context<u32>| async move { cx.recv().await }));
        let held = Name::<u32>::owned("held").on(&home.runtime);
        held.register(&holder).unwrap();
        leaves("wait until it is free", held.wait_until_free());
        held.unregister();
        let group = Group::<u32>::owned("nobody").on(&home.runtime);
        let mut watch = group.watch();
        leaves("the next change of a group", watch.next());
        leaves("a watch of a group", group.watch().into_future());
    });
}

fn keyed_actors(home: &Home) {
    in_and_outside(home, async || {
        let make = |_key: u32| {
            actor(|cx: Context<u32>| async move {
                pending::<()>().await;
                drop(cx)
            })
        };
        let set = Keyed::builder(make).on(&home.runtime).build().unwrap();
        set.tell(&1, 1).unwrap();
        leaves("the end of a set", set.ended());
        set.remove(&1);
        leaves("get_or_spawn", set.get_or_spawn(&1));
    });
}

fn actors_of_other_executors(home: &Home) {
    in_and_outside(home, async || {
        let (_address, split) =
            actor(|mut cx: Context<u32>| async move { cx.recv().await }).split();
        leaves("an actor of another executor", split);
        let mut probe = TestProbe::<u32>::new("probe");
        leaves("expect", probe.expect());
        leaves("expect_within", probe.expect_within(HOUR));
        leaves("expect_no_message", probe.expect_no_message(HOUR));
        // What came meanwhile is there.
        probe.tell(1).unwrap();
        assert_eq!(probe.expect().await, 1);
    });
}

fn spools_and_supervisors(home: &Home) {
    home.block_on(async {
        let spool = Spool::<u32, u32>::external().spawn().unwrap();
        leaves("join of a spool", spool.join());
        let (_actor, cx) = context(home).await;
        leaves("serve", spool.clone().serve(cx));
        spool.stop();
        let tree = Supervisor::builder().spawn().unwrap();
        leaves("join of a supervisor", tree.join());
        tree.stop();
    });
}

fn loopers(home: &Home) {
    in_and_outside(home, async || {
        let controller = Controller::builder().on(&home.runtime).build().unwrap();
        let (lock, value) = (controller.lock(), controller.guarded(7));
        let [holds, waits] = std::array::from_fn(|_| controller.looper());
        let both = (lock.exclusive(), value.exclusive());
        assert_eq!(holds.attempt(both), Ok(true));
        let waiting = waits.with(lock.shared()).post(|()| ()).unwrap();
        leaves("a posted task", waiting);
        leaves("close of a looper", waits.close());
        leaves("close of a lock", lock.close());
        leaves("close of a value", value.close());
        // The looper of this one does not end by itself.
        let gate = Gate::default();
        let (open, busy) = (OpenOnDrop(gate.clone()), controller.looper());
        let posted = busy.spawn(async move { gate.wait().await }).unwrap();
        leaves("shutdown of a controller", controller.shutdown());
        drop(open);
        posted.await.unwrap();
        controller.shutdown().await;
    });
}

// Threads block in these.
on_threads!(
    a_lock_that_is_closed_while_the_world_runs,
    markets,
    hosted_values,
    a_shutdown_of_a_runtime,
    calls_that_block,
);

/// Returns a gate, which opens with the first value, and a function that stops at it. A gate that
/// opens when it does so is the last value.
fn stop() -> (OpenOnDrop, impl FnOnce() + Send + 'static, Gate) {
    let (gate, begun) = (Gate::default(), Gate::default());
    let (open, begins) = (OpenOnDrop(gate.clone()), begun.clone());
    let stops = move || {
        begins.open();
        gate.pass();
    };
    (open, stops, begun)
}

fn a_lock_that_is_closed_while_the_world_runs(home: &Home) {
    in_and_outside(home, async || {
        let controller = Controller::builder().on(&home.runtime).build().unwrap();
        let (lock, value) = (controller.lock(), controller.guarded(7));
        let (open, stops, begun) = stop();
        let world = controller.stop_the_world(|_| stops()).unwrap();
        begun.wait().await;
        leaves("close of a lock", lock.close());
        leaves("close of a value", value.close());
        drop(open);
        world.await.unwrap();
    });
}

fn markets(home: &Home) {
    in_and_outside(home, async || {
        let market = Market::<()>::builder().on(&home.runtime);
        let market = market.max_workers(1).capacity(1).build().unwrap();
        let (open, stops, begun) = stop();
        let runs = market.offer(Job::new(stops)).await.unwrap();
        begun.wait().await;
        let waits = market.offer(Job::new(|| 7)).await.unwrap();
        leaves("offer", market.offer(Job::new(|| 7)));
        leaves("a job that runs", runs);
        leaves("a job that waits", waits);
        leaves("stopped", market.stopped());
        leaves("drain", market.drain());
        drop(open);
        market.stopped().await;
    });
}

fn hosted_values(home: &Home) {
    in_and_outside(home, async || {
        let pinned = home.runtime.spawn_pinned("hosts").unwrap();
        let hosted = pinned.host(|| 7).await.unwrap();
        let (open, stops, begun) = stop();
        let task = pinned.spawn(move || async move { stops() });
        begun.wait().await;
        leaves("with", hosted.with(|value| *value));
        leaves("with_mut", hosted.with_mut(|value| *value));
        leaves("host", pinned.host(|| 7));
        leaves("try_host", pinned.try_host(|| Ok::<_, ()>(7)));
        drop(open);
        task.await;
    });
}

fn a_shutdown_of_a_runtime(_: &Home) {
    drive(async {
        let runtime = Runtime::builder().workers(1).grace(WATCH).build().unwrap();
        let gate = Gate::default();
        let open = OpenOnDrop(gate.clone());
        let waits = actor(|cx: Context<()>| async move {
            let _open = cx;
            gate.wait().await;
        });
        waits.on(&runtime).spawn().detach();
        leaves("shutdown", runtime.shutdown());
        drop(open);
        runtime.shutdown().await;
    });
}

fn calls_that_block(home: &Home) {
    in_and_outside(home, async || {
        let (open, stops, begun) = stop();
        let call = inside(&home.runtime, || unblock(stops));
        begun.wait().await;
        leaves("a call that runs", call);
        let (_open, stops, begun) = stop();
        let task = home.spawn_task(async move { stops() });
        begun.wait().await;
        leaves("a task in its turn", task);
        drop(open);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn signals() {
    alone("dropped_waits::signals", || {
        leaves("ctrl_c", greenroom::ctrl_c());
        leaves("terminate", greenroom::terminate());
    });
}

/// A driver that polls its worker with the waker of a flag, and gives up when it is pending.
struct GivesUp(Mutex<Option<Arc<Flag>>>, Gate);

impl Driver for GivesUp {
    fn drive(&self, mut worker: Pin<&mut dyn Future<Output = ()>>) {
        let waker = Waker::from(self.0.lock().unwrap().take().unwrap());
        let mut task = Cx::from_waker(&waker);
        assert!(worker.as_mut().poll(&mut task).is_pending());
        assert!(worker.as_mut().poll(&mut task).is_pending());
        self.1.open();
    }

    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(pending())
    }
}

#[test]
fn a_driver_that_returns_keeps_no_waker() {
    within(WATCH, || {
        let (flag, returns) = (Arc::new(Flag), Gate::default());
        let driver = GivesUp(Mutex::new(Some(flag.clone())), returns.clone());
        let runtime = Runtime::builder().workers(1).driver(driver);
        let runtime = runtime.build().unwrap();
        returns.pass();
        // Without the driver the worker parks and is woken as usual.
        drive(runtime.spawn(greenroom::yield_now()));
        drive(runtime.spawn(async {}));
        assert_eq!(Arc::strong_count(&flag), 1);
    });
}
