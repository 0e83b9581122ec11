//! Deadlocks while timers are armed: the timeouts of the asks, and other timers.

use greenroom::time::{Instant, sleep, timeout};
use greenroom::{Detached, Task};

use super::*;
use crate::support::{Gate, inside, open_when_pending, poll_here, poll_once, until};

/// Longer than the watchdog's limit.
const HOUR: Duration = Duration::from_secs(3600);
/// Usually longer than an idle runtime takes to become quiescent.
const SHORT: Duration = Duration::from_millis(20);

const LATE: &str = "no answer came in time";

macro_rules! on_threads_that_detect {
    ($($scenario:ident),+ $(,)?) => {$(
        mod $scenario {
            #[test]
            fn in_its_homes() {
                let homes = super::homes().without_simulations();
                homes.watch(module_path!(), super::$scenario);
            }
        }
    )+};
}

on_threads_that_detect!(
    a_ring_with_long_timeouts_gets_its_error_at_once,
    an_actor_that_asks_itself_with_a_long_timeout_gets_its_error_at_once,
    an_ask_with_a_long_timeout_that_changed_its_waker_gets_its_error_at_once,
    a_long_timeout_of_an_ask_to_a_ring_does_not_delay_the_error,
    an_endless_timeout_counts_as_no_timeout,
    the_error_of_a_ring_waits_for_a_pending_sleep,
    a_timeout_around_an_ask_fires_before_the_deadlock_is_found,
    a_timer_dropped_on_another_thread_does_not_delay_the_detection,
    the_error_of_a_ring_waits_for_a_timeout_outside_the_ring,
    an_ask_with_a_timeout_may_be_answered_by_an_unknown_thread,
    a_ring_on_a_runtime_kept_alive_waits_for_its_timeouts,
    a_runtime_is_quiescent_only_after_the_timeout_of_an_ask,
    a_runtime_is_quiescent_after_a_ring_got_its_error,
);

mod a_simulated_ring_waits_for_its_timeouts {
    #[test]
    fn in_its_homes() {
        let homes = super::homes().without_threads();
        homes.watch(
            module_path!(),
            super::a_simulated_ring_waits_for_its_timeouts,
        );
    }
}

/// Spawns an actor that asks the next one with a timeout.
fn patient(home: &Home, name: &str, patience: Duration) -> Handle<Message, ()> {
    home.spawn(actor(move |cx| patient_link(cx, Some(patience))).name(name))
}

/// Spawns two actors that ask each other, each with this timeout.
fn patient_ring(home: &Home, patience: Duration) -> [Handle<Message, ()>; 2] {
    let actors = ["a", "b"].map(|name| patient(home, name, patience));
    ring(&actors);
    actors
}

/// Asks in a task, so that only the runtime's own detection looks for deadlocks.
fn asked<T>(home: &Home, actor: &Handle<Message, T>) -> Task<Result<Answer, AskError>> {
    let address = actor.address();
    home.spawn_task(async move { address.ask(Message::Ask).await })
}

fn a_ring_with_long_timeouts_gets_its_error_at_once(home: &Home) {
    let actors = patient_ring(home, HOUR);
    for _ in 0..3 {
        let found = deadlock(home.block_on(actors[0].ask(Message::Ask)));
        assert_eq!(names(found.as_str()), "a → b → a");
    }
    assert_eq!(home.block_on(actors[1].ask(Message::Say)), Ok(7));
}

fn an_actor_that_asks_itself_with_a_long_timeout_gets_its_error_at_once(home: &Home) {
    let actors = [patient(home, "a", HOUR)];
    ring(&actors);
    let found = deadlock(home.block_on(actors[0].ask(Message::Ask)));
    assert_eq!(names(found.as_str()), "a → a");
}

/// The second poll arms the timeout anew, for the actor's own waker.
fn an_ask_with_a_long_timeout_that_changed_its_waker_gets_its_error_at_once(home: &Home) {
    let asks = home.spawn(
        actor(async |mut cx: Context<Reply<Deadlock>>| {
            let (own, reply) = (cx.address(), cx.recv().await.unwrap());
            let mut asked = own.ask(|reply| reply).timeout(HOUR);
            assert!(poll_once(&mut asked).is_pending());
            reply.send(deadlock(asked.await));
        })
        .name("asks"),
    );
    let found = deadlock(home.block_on(asks.ask(|reply| reply)));
    assert_eq!(names(found.as_str()), "asks → asks");
    home.block_on(asks.join()).unwrap();
}

fn a_long_timeout_of_an_ask_to_a_ring_does_not_delay_the_error(home: &Home) {
    let actors = [named(home, "a"), named(home, "b")];
    ring(&actors);
    let found = deadlock(home.block_on(actors[0].ask(Message::Ask).timeout(HOUR)));
    assert_eq!(names(found.as_str()), "a → b → a");
}

fn an_endless_timeout_counts_as_no_timeout(home: &Home) {
    let actors = patient_ring(home, HOUR);
    let last = home.spawn(actor(deaf).name("last"));
    home.block_on(async {
        let endless = last.ask(Message::Ask).timeout(Duration::MAX);
        let (ring, chain) = futures::join!(actors[0].ask(Message::Ask), endless);
        assert_eq!(names(deadlock(ring).as_str()), "a → b → a");
        assert_eq!(names(deadlock(chain).as_str()), "block_on → last");
    });
}

fn the_error_of_a_ring_waits_for_a_pending_sleep(home: &Home) {
    let actors = patient_ring(home, HOUR);
    let sleeps = Gate::default();
    let slept = home.spawn_task(open_when_pending(sleeps.clone(), sleep(SHORT)));
    sleeps.pass();
    deadlock(home.block_on(actors[0].ask(Message::Ask)));
    assert!(slept.is_finished());
}

/// The runtime can't know that this timeout only ends an ask.
fn a_timeout_around_an_ask_fires_before_the_deadlock_is_found(home: &Home) {
    let actors = patient_ring(home, HOUR);
    let asked = timeout(SHORT, actors[0].ask(Message::Ask));
    assert!(home.block_on(asked).is_err());
}

fn a_timer_dropped_on_another_thread_does_not_delay_the_detection(home: &Home) {
    let mut slept = Box::pin(sleep(HOUR));
    assert!(home.block_on(poll_here(&mut slept)).is_pending());
    let actors = patient_ring(home, HOUR);
    let task = asked(home, &actors[0]);
    look(home);
    std::thread::spawn(move || drop(slept)).join().unwrap();
    until(|| task.is_finished());
    deadlock(home.block_on(task));
}

/// The asks form a ring, but the reply that would end it is held by an actor whose timeout will
/// fire.
fn the_error_of_a_ring_waits_for_a_timeout_outside_the_ring(home: &Home) {
    let nobody = home.spawn(actor(deaf)).address();
    let answers = home.spawn(actor(async move |mut cx: Context<Reply<Answer>>| {
        while let Some(reply) = cx.recv().await {
            let asked = nobody.ask(Message::Ask).timeout(SHORT).await;
            reply.send(Err(asked.unwrap_err().to_string()));
        }
    }));
    let asks = named(home, "asks");
    let (answers, asker) = (answers.address(), asks.address());
    let passes_on = home.spawn(actor(async move |mut cx: Context<Message>| {
        let Some(Message::Ask(reply)) = cx.recv().await else {
            unreachable!("the first message is an ask")
        };
        answers.tell(reply).unwrap();
        asker.ask(Message::Say).await
    }));
    know(&asks, &passes_on);
    let heard = home.block_on(asks.ask(Message::Ask));
    assert_eq!(heard, Ok(Err(LATE.to_owned())));
    assert_eq!(home.block_on(passes_on.join()).unwrap(), Ok(7));
}

/// Makes the runtime look for deadlocks many times.
fn look(home: &Home) {
    (0..100).for_each(|_| home.block_on(async {}));
}

fn an_ask_with_a_timeout_may_be_answered_by_an_unknown_thread(home: &Home) {
    let (hands_out, replies) = hands_out(home);
    let asked = async move { hands_out.ask(|reply| reply).timeout(HOUR).await };
    let task = home.spawn_task(asked);
    let reply = received(&replies);
    look(home);
    assert!(reply.is_wanted());
    reply.send(7);
    assert_eq!(home.block_on(task), Ok(7));
}

fn a_ring_on_a_runtime_kept_alive_waits_for_its_timeouts(home: &Home) {
    let keep = home.runtime.keep_alive();
    let actors = patient_ring(home, SHORT);
    let heard = home.block_on(actors[0].ask(Message::Ask));
    assert_eq!(heard, Ok(Err(LATE.to_owned())));
    drop(keep);
}

fn a_runtime_is_quiescent_only_after_the_timeout_of_an_ask(home: &Home) {
    let last = home.spawn(actor(deaf)).address();
    let asked = async move { last.ask(Message::Ask).timeout(SHORT).await };
    let task = home.spawn_task(asked);
    home.runtime.run_until_quiescent();
    assert!(task.is_finished());
    assert_eq!(home.block_on(task), Err(AskError::TimedOut));
}

fn a_runtime_is_quiescent_after_a_ring_got_its_error(home: &Home) {
    let actors = patient_ring(home, HOUR);
    let task = asked(home, &actors[0]);
    home.runtime.run_until_quiescent();
    assert!(task.is_finished());
    deadlock(home.block_on(task));
}

fn a_simulated_ring_waits_for_its_timeouts(home: &Home) {
    let actors = patient_ring(home, HOUR);
    let heard = home.block_on(actors[0].ask(Message::Ask));
    assert_eq!(heard, Ok(Err(LATE.to_owned())));
}

/// The actor's thread has its own timers.
#[test]
fn a_detached_ring_with_long_timeouts_gets_its_error_at_once() {
    within(WATCH, || {
        let home = Home::built(1, detecting());
        let link = |name| {
            let link = |cx| patient_link(cx, Some(HOUR));
            actor(link).name(name).on(Detached).spawn()
        };
        let actors = inside(&home.runtime, || ["a", "b"].map(link));
        ring(&actors);
        let found = deadlock(home.block_on(actors[0].ask(Message::Ask)));
        assert_eq!(names(found.as_str()), "a → b → a");
    });
}

/// The actor blocks in `block_on`, which waits for the deadlines of its thread.
#[test]
fn a_detached_actor_that_blocks_on_itself_gets_its_error_at_once() {
    within(WATCH, || {
        let home = Home::built(1, detecting());
        let blocks = |mut cx: Context<Reply<Deadlock>>| async move {
            let own = cx.address();
            while let Some(reply) = cx.recv().await {
                let asked = own.ask(|reply| reply).timeout(HOUR);
                reply.send(deadlock(Runtime::current().block_on(asked)));
            }
        };
        let spawned = || actor(blocks).name("blocks").on(Detached).spawn();
        let blocks = inside(&home.runtime, spawned);
        let found = deadlock(home.block_on(blocks.ask(|reply| reply)));
        assert_eq!(names(found.as_str()), "blocks → blocks");
    });
}

/// The loop that drives a stage uses `next_deadline`.
#[test]
fn the_timeout_of_an_ask_is_a_deadline_of_its_stage() {
    within(WATCH, || {
        let runtime = detecting().workers(1).build().unwrap();
        let stage = runtime.pinned_here();
        let last = spawn!(deaf(_), on = &runtime).address();
        let task = stage.spawn(move || async move { last.ask(Message::Ask).timeout(HOUR).await });
        stage.run_ready();
        assert!(stage.next_deadline().unwrap() > Instant::now());
        drop(task);
    });
}
