//! What a panic hook may ask: whether the panic is contained, and whose turn it is in.
//!
//! A probe notes both and panics. The panic was contained exactly if it does not come out of the
//! call that has led to the probe.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context as TaskContext, Wake, Waker};
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::time::sleep;
use greenroom::{Context, Fault, Reply, Runtime, actor, current_actor, is_contained, unblock};

use crate::support::{
    Gate, Home, Log, OpenOnDrop, WATCH, drive, in_every_home, keep_bombs_quiet, on_threads,
    received, within,
};

in_every_home!(
    a_panic_in_a_turn_of_an_actor_is_contained,
    a_panic_in_a_turn_of_a_task_is_contained,
    a_panic_of_the_future_of_block_on_goes_on,
    a_panic_of_the_future_of_block_on_in_a_turn_is_contained,
    a_panic_in_a_job_is_contained,
    a_panic_in_the_drop_of_a_message_is_contained,
    a_panic_in_the_drop_of_a_result_is_contained,
    a_panic_in_the_drop_of_a_state_is_contained,
    a_panic_of_the_function_of_a_map_goes_on,
    a_panic_of_an_actor_on_another_executor_is_contained,
    a_panic_in_the_drop_of_an_actor_for_another_executor_is_contained,
    a_panic_of_an_incarnation_outside_the_turns_of_its_actor_is_contained,
    a_panic_of_a_waker_in_a_turn_is_contained,
);

on_threads!(
    a_panic_in_a_call_of_a_hosted_value_is_contained,
    a_panic_in_a_task_of_a_stage_is_contained,
    a_panic_in_the_drop_of_a_task_of_a_stage_is_contained,
);

/// Whether a panic is contained, and in a turn of which actor.
type Noted = (bool, Option<u64>);

#[derive(Clone, Default)]
struct Probe(Log<Noted>);

impl Probe {
    fn panics(&self) {
        let actor = current_actor().map(|actor| actor.id());
        self.0.add((is_contained(), actor));
        panic!("bomb of a probe");
    }
}

/// Runs code in which the probe panics once, and returns what the probe has noted.
#[track_caller]
fn noted(code: impl FnOnce(Probe)) -> Noted {
    let (noted, is_ok) = noted_and_outcome(code);
    assert_eq!(noted.0, is_ok, "whether the panic is contained");
    noted
}

/// Does the same. Also returns whether the code has returned, so that the panic was contained.
#[track_caller]
fn noted_and_outcome(code: impl FnOnce(Probe)) -> (Noted, bool) {
    keep_bombs_quiet();
    let probe = Probe::default();
    let own = probe.clone();
    let outcome = catch_unwind(AssertUnwindSafe(|| code(own)));
    let all = probe.0.take();
    let [noted] = all[..] else {
        panic!("the probe has panicked {} times", all.len())
    };
    assert!(!is_contained(), "nothing is contained outside the code");
    (noted, outcome.is_ok())
}

/// Waits until a task has ended, and lets go of its panic.
fn ended(home: &Home, task: greenroom::Task<()>) {
    home.block_on(async {
        while !task.is_finished() {
            greenroom::yield_now().await;
        }
    });
    drop(task);
}

fn a_panic_in_a_turn_of_an_actor_is_contained(home: &Home) {
    let mut id = 0;
    let noted = noted(|probe| {
        let panics = home.spawn(actor(move |_cx: Context<()>| async move { probe.panics() }));
        id = panics.id();
        let fault = home.block_on(panics.join()).unwrap_err();
        assert!(matches!(fault, Fault::Panicked(_)));
    });
    assert_eq!(noted, (true, Some(id)));
}

fn a_panic_in_a_turn_of_a_task_is_contained(home: &Home) {
    let noted = noted(|probe| ended(home, home.spawn_task(async move { probe.panics() })));
    assert_eq!(noted, (true, None));
}

fn a_panic_of_the_future_of_block_on_goes_on(home: &Home) {
    let noted = noted(|probe| home.block_on(async { probe.panics() }));
    assert_eq!(noted, (false, None));
}

fn a_panic_of_the_future_of_block_on_in_a_turn_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let runtime = home.runtime.clone();
        // Tasks of pinned threads cannot block.
        let task = async move { runtime.block_on(async { probe.panics() }) };
        ended(home, home.runtime.spawn(task));
    });
    assert_eq!(noted, (true, None));
}

fn a_panic_in_a_job_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let job = async move { unblock(move || probe.panics()).await };
        ended(home, home.spawn_task(job));
    });
    assert_eq!(noted, (true, None));
}

/// Panics in its drop.
struct PanicsInDrop(Probe);

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        self.0.panics();
    }
}

/// Keeps its context, and never receives a message.
async fn deaf<M>(cx: Context<M>) {
    pending::<()>().await;
    drop(cx);
}

fn a_panic_in_the_drop_of_a_message_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let deaf = home.spawn(actor(deaf));
        assert!(deaf.tell(PanicsInDrop(probe)).is_ok());
        deaf.kill();
        home.block_on(deaf.closed());
    });
    assert_eq!(noted, (true, None));
}

fn a_panic_in_the_drop_of_a_result_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let returns = actor(move |_cx: Context<()>| async move { PanicsInDrop(probe) });
        let returns = home.spawn(returns);
        home.block_on(returns.closed());
        drop(returns);
    });
    assert_eq!(noted, (true, None));
}

/// Has a state, whether it has begun or not.
fn holds(
    state: PanicsInDrop,
) -> greenroom::ActorBuilder<(), impl Send + 'static, impl Future<Output = ()> + Send + 'static> {
    actor(move |cx: Context<()>| async move {
        let _state = state;
        deaf(cx).await;
    })
}

fn a_panic_in_the_drop_of_a_state_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let holds = home.spawn(holds(PanicsInDrop(probe)));
        holds.kill();
        home.block_on(holds.closed());
    });
    assert_eq!(noted, (true, None));
}

fn a_panic_of_the_function_of_a_map_goes_on(home: &Home) {
    let noted = noted(|probe| {
        let deaf = home.spawn(actor(deaf::<()>));
        let mapped = deaf.map(move |_: u32| probe.panics());
        let _ = mapped.tell(1);
    });
    assert_eq!(noted, (false, None));
}

fn a_panic_of_an_actor_on_another_executor_is_contained(_home: &Home) {
    let mut id = 0;
    let noted = noted(|probe| {
        let panics = actor(move |_cx: Context<()>| async move { probe.panics() });
        let (address, future) = panics.split();
        id = address.id();
        drive(future).unwrap_err();
    });
    assert_eq!(noted, (true, Some(id)));
}

fn a_panic_in_the_drop_of_an_actor_for_another_executor_is_contained(_home: &Home) {
    let noted = noted(|probe| {
        drop(holds(PanicsInDrop(probe)).split());
    });
    assert_eq!(noted, (true, None));
}

fn a_panic_of_an_incarnation_outside_the_turns_of_its_actor_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let (give, given) = mpsc::channel();
        let gives = home.spawn(actor(move |cx: Context<()>| async move {
            give.send(cx).unwrap();
            pending::<()>().await;
        }));
        let mut cx = received(&given);
        let outcome = drive(cx.incarnation(|_cx| async move { probe.panics() }));
        assert!(matches!(outcome, Err(Fault::Panicked(_))));
        drop(cx);
        gives.kill();
        home.block_on(gives.closed());
    });
    assert_eq!(noted, (true, None));
}

fn a_panic_in_a_call_of_a_hosted_value_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let pinned = home.runtime.spawn_pinned("hosts").unwrap();
        let value = home.block_on(pinned.host(|| 1)).unwrap();
        let called = home.block_on(value.with(move |_| probe.panics()));
        called.unwrap_err();
    });
    assert_eq!(noted, (true, None));
}

fn a_panic_in_a_task_of_a_stage_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let stage = home.runtime.pinned_here();
        stage.spawn(|| async move { probe.panics() }).detach();
        assert!(!is_contained(), "the loop that drives the stage is not");
        stage.run_ready();
    });
    assert_eq!(noted, (true, None));
}

fn a_panic_in_the_drop_of_a_task_of_a_stage_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let stage = home.runtime.pinned_here();
        let state = PanicsInDrop(probe);
        let task = stage.spawn(|| async move {
            let _state = state;
            pending::<()>().await;
        });
        stage.run_ready();
        drop(task);
        stage.run_ready();
    });
    assert_eq!(noted, (true, None));
}

/// Panics when it is woken, and opens the gate then.
struct WakerProbe(Probe, Gate);

impl WakerProbe {
    fn waker(probe: Probe, woken: &Gate) -> Waker {
        Waker::from(Arc::new(WakerProbe(probe, woken.clone())))
    }
}

impl Wake for WakerProbe {
    fn wake(self: Arc<Self>) {
        let _opens = OpenOnDrop(self.1.clone());
        self.0.panics();
    }
}

/// Returns the reply of an answer that wakes the waker.
fn reply_that_wakes(waker: &Waker) -> (Reply<u32>, greenroom::Answer<u32>) {
    let (reply, mut answer) = Reply::pair();
    let polled = Pin::new(&mut answer).poll(&mut TaskContext::from_waker(waker));
    assert!(polled.is_pending());
    (reply, answer)
}

fn a_panic_of_a_waker_in_a_turn_is_contained(home: &Home) {
    let noted = noted(|probe| {
        let woken = Gate::default();
        let waker = WakerProbe::waker(probe, &woken);
        let (reply, _answer) = reply_that_wakes(&waker);
        home.spawn_task(async move { reply.send(7) }).detach();
        home.block_on(woken.wait());
    });
    assert_eq!(noted, (true, None));
}

#[test]
fn a_panic_of_a_waker_on_a_thread_of_greenroom_is_contained() {
    within(WATCH, || {
        let noted = noted(|probe| {
            let woken = Gate::default();
            let waker = WakerProbe::waker(probe, &woken);
            let mut cx = TaskContext::from_waker(&waker);
            // A sleep that is over before its first poll wakes nobody.
            let _sleep = (0..)
                .map(|double| Box::pin(sleep(Duration::from_millis(1 << double))))
                .find_map(|mut sleep| sleep.as_mut().poll(&mut cx).is_pending().then_some(sleep));
            woken.pass();
        });
        assert_eq!(noted, (true, None));
    });
}

#[test]
fn a_panic_of_a_waker_on_a_thread_of_the_program_is_contained_and_not_noted() {
    let (noted, is_ok) = noted_and_outcome(|probe| {
        let waker = WakerProbe::waker(probe, &Gate::default());
        let (reply, _answer) = reply_that_wakes(&waker);
        reply.send(7);
    });
    assert!(is_ok, "it is contained");
    assert_eq!(noted, (false, None));
}

#[test]
fn a_panic_of_on_fault_is_contained() {
    within(WATCH, || {
        let noted = noted(|probe| {
            let called = Gate::default();
            let opens = called.clone();
            let builder = Runtime::builder().workers(1).on_fault(move |_| {
                let _opens = OpenOnDrop(opens.clone());
                probe.panics();
            });
            let runtime = builder.build().unwrap();
            runtime.spawn(async { panic!("bomb in a task") }).detach();
            called.pass();
            drop(runtime);
        });
        assert_eq!(noted, (true, None));
    });
}

#[test]
fn a_panic_of_a_judged_simulation_is_contained() {
    let noted = noted(|probe| {
        let run = Simulated::new(1).try_run(async move { probe.panics() });
        assert!(run.is_err());
    });
    assert_eq!(noted, (true, None));
}

#[test]
fn a_panic_on_a_thread_of_the_program_goes_on() {
    assert_eq!(noted(|probe| probe.panics()), (false, None));
}

/// Runs in a separate process, which has one hook.
#[test]
#[cfg(target_os = "linux")]
fn a_hook_may_ask_whether_a_panic_is_contained_and_who_panics() {
    const TEST: &str = "panic_hooks::a_hook_may_ask_whether_a_panic_is_contained_and_who_panics";
    async fn clerk(mut cx: Context<u32>) {
        cx.recv().await;
        panic!("bomb in an actor");
    }
    async fn fails() {
        panic!("bomb in the program");
    }
    crate::child::alone(TEST, || {
        let asked = Log::default();
        let log = asked.clone();
        std::panic::set_hook(Box::new(move |_| {
            let who = current_actor().map(|actor| actor.called().into_owned());
            log.add((is_contained(), who));
        }));
        greenroom::run(async {
            let clerk = greenroom::spawn!(clerk(_));
            clerk.tell(1).unwrap();
            clerk.join().await.unwrap_err();
        });
        catch_unwind(|| greenroom::run(fails())).unwrap_err();
        let _ = std::panic::take_hook();
        let expected = [(true, Some("clerk".to_owned())), (false, None)];
        assert_eq!(asked.take(), expected);
    });
}
