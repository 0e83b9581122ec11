//! Asks that no actor can answer any more, on a runtime that detects deadlocks.

use std::sync::mpsc;
use std::time::Duration;

use greenroom::{
    Address, AskDetail, AskError, Builder, Context, Deadlock, Handle, Reply, Runtime, actor, spawn,
    unblock,
};

use crate::support::{
    Dropped, Drops, Home, Homes, WATCH, drive, names, on_threads, received, within,
};

enum Message {
    /// Sets the actor that is asked from now on.
    Know(Address<Message>),
    /// Asks the known actor and replies with its answer or error.
    Ask(Reply<Answer>),
    /// Is answered at once.
    Say(Reply<u32>),
}

/// The outcome of an actor's own ask.
type Answer = Result<u32, String>;

/// Handles an ask by asking the known actor, unless the reply is no longer wanted; answers 7 if no
/// actor is known.
async fn link(cx: Context<Message>) {
    patient_link(cx, None).await;
}

/// Does the same as [`link`], with a timeout for the asks that it makes.
async fn patient_link(mut cx: Context<Message>, patience: Option<Duration>) {
    let mut other = None;
    while let Some(message) = cx.recv().await {
        match message {
            Message::Know(address) => other = Some(address),
            Message::Ask(reply) if reply.is_wanted() => reply.send(ask_on(&other, patience).await),
            Message::Ask(_unwanted) => {}
            Message::Say(reply) => reply.send(7),
        }
    }
}

async fn ask_on(other: &Option<Address<Message>>, patience: Option<Duration>) -> Answer {
    let Some(other) = other else { return Ok(7) };
    let asked = other.ask(Message::Ask);
    let asked = match patience {
        Some(patience) => asked.timeout(patience),
        None => asked,
    };
    match asked.await {
        Ok(answer) => answer,
        Err(error) => Err(error.to_string()),
    }
}

/// Keeps its context, and never receives a message.
async fn deaf(cx: Context<Message>) {
    std::future::pending::<()>().await;
    drop(cx);
}

/// Builds a runtime that detects deadlocks.
fn detecting() -> Builder {
    Runtime::builder().on_fault(|_| {}).detect_deadlocks(true)
}

/// Returns homes on runtimes that detect deadlocks, as simulations always do.
fn homes() -> Homes {
    Homes::built(detecting)
}

/// Like [`in_every_home`](crate::support::in_every_home), in [`homes`].
macro_rules! where_deadlocks_are_detected {
    ($($scenario:ident),+ $(,)?) => {$(
        mod $scenario {
            #[test]
            fn in_its_homes() {
                super::homes().watch(module_path!(), super::$scenario);
            }
        }
    )+};
}

mod timers;
mod waits;

where_deadlocks_are_detected!(
    two_actors_that_ask_each_other_get_a_deadlock_error,
    the_error_of_a_ring_of_three_names_the_whole_ring,
    an_actor_that_asks_itself_gets_a_deadlock_error,
    the_error_of_a_chain_names_the_actor_that_does_not_answer,
    a_deadlock_calls_an_unnamed_actor_after_its_function,
    a_deadlock_names_an_asking_task,
    a_deadlocked_ask_that_waits_for_room_drops_its_request,
    actors_continue_after_a_deadlock,
    a_kept_reply_is_unwanted_after_the_deadlock,
    concurrent_asks_each_get_their_own_deadlock_error,
    a_long_chain_of_asks_that_is_answered_is_no_deadlock,
    an_ask_with_a_timeout_times_out,
    an_ask_waits_for_the_timeout_of_the_asked_actor,
    a_blocking_call_may_still_answer,
);

/// Returns the name that an asker in `block_on` has in a deadlock.
fn asker(home: &Home) -> &'static str {
    match home.is_simulated() {
        true => "main",
        false => "block_on",
    }
}

fn named(home: &Home, name: &str) -> Handle<Message, ()> {
    home.spawn(actor(link).name(name))
}

fn know<T>(one: &Address<Message>, other: &Handle<Message, T>) {
    one.tell(Message::Know(other.address())).unwrap();
}

/// Makes each of these actors ask the next one, and the last one the first.
fn ring(actors: &[Handle<Message, ()>]) {
    for (at, one) in actors.iter().enumerate() {
        know(one, &actors[(at + 1) % actors.len()]);
    }
}

fn deadlock<T>(outcome: Result<T, AskError>) -> Deadlock {
    match outcome {
        Err(AskError::Deadlock(deadlock)) => deadlock,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("there was an answer"),
    }
}

fn two_actors_that_ask_each_other_get_a_deadlock_error(home: &Home) {
    let actors = [named(home, "a"), named(home, "b")];
    ring(&actors);
    let error = home.block_on(actors[0].ask(Message::Ask)).unwrap_err();
    assert_eq!(
        names(&error.to_string()),
        "the actors wait for each other: a → b → a"
    );
    let found = deadlock::<()>(Err(error.clone()));
    assert_eq!(names(found.as_str()), "a → b → a");
    assert_eq!(found.to_string(), found.as_str());
    assert_eq!(AskError::Deadlock(found), error);
}

fn the_error_of_a_ring_of_three_names_the_whole_ring(home: &Home) {
    let actors = ["a", "b", "c"].map(|name| named(home, name));
    ring(&actors);
    let found = deadlock(home.block_on(actors[1].ask(Message::Ask)));
    assert_eq!(names(found.as_str()), "b → c → a → b");
}

fn an_actor_that_asks_itself_gets_a_deadlock_error(home: &Home) {
    let actors = [named(home, "a")];
    ring(&actors);
    let found = deadlock(home.block_on(actors[0].ask(Message::Ask)));
    assert_eq!(names(found.as_str()), "a → a");
}

fn the_error_of_a_chain_names_the_actor_that_does_not_answer(home: &Home) {
    let [a, b] = ["a", "b"].map(|name| named(home, name));
    let last = home.spawn(actor(deaf).name("last"));
    know(&a, &b);
    know(&b, &last);
    let error = home.block_on(a.ask(Message::Ask)).unwrap_err();
    assert_eq!(
        names(&error.to_string()),
        format!("no answer can come: {} → a → b → last", asker(home))
    );
    assert!(!last.is_closed());
}

fn a_deadlock_calls_an_unnamed_actor_after_its_function(home: &Home) {
    let a = home.spawn(actor(link));
    let last = home.spawn(actor(deaf));
    know(&a, &last);
    let found = deadlock(home.block_on(a.ask(Message::Ask)));
    // A simulation numbers its actors itself.
    let (a, last) = match home.is_simulated() {
        true => (1, 2),
        false => (a.id(), last.id()),
    };
    assert_eq!(
        found.as_str(),
        format!("{} → link #{a} → deaf #{last}", asker(home))
    );
}

fn a_deadlock_names_an_asking_task(home: &Home) {
    let last = home.spawn(actor(deaf).name("last"));
    let address = last.address();
    let task = home.spawn_task(async move { address.ask(Message::Ask).await });
    let found = deadlock(home.block_on(task));
    let task = match home.is_simulated() {
        true => "task #2",
        false => "a task",
    };
    assert_eq!(names(found.as_str()), format!("{task} → last"));
}

fn a_deadlocked_ask_that_waits_for_room_drops_its_request(home: &Home) {
    let drops = Drops::default();
    let full = home.spawn(
        actor(async |cx: Context<(Dropped, Option<Reply<u32>>)>| {
            std::future::pending::<()>().await;
            drop(cx);
        })
        .name("full")
        .capacity(1),
    );
    full.tell((drops.one(), None)).unwrap();
    let asked = full.ask(|reply| (drops.one(), Some(reply)));
    let found = deadlock(home.block_on(asked));
    assert_eq!(names(found.as_str()), format!("{} → full", asker(home)));
    assert_eq!(drops.count(), 1, "the request was dropped");
    full.kill();
    home.block_on(full.closed());
    assert_eq!(drops.count(), 2);
}

fn actors_continue_after_a_deadlock(home: &Home) {
    let actors = [named(home, "a"), named(home, "b")];
    for _ in 0..3 {
        ring(&actors);
        deadlock(home.block_on(actors[0].ask(Message::Ask)));
    }
    for one in &actors {
        assert_eq!(home.block_on(one.ask(Message::Say)), Ok(7));
    }
    know(&actors[1], &home.spawn(actor(link)));
    home.block_on(async {
        assert_eq!(actors[0].ask(Message::Ask).await, Ok(Ok(7)));
        for one in actors {
            one.stop();
            one.join().await.unwrap();
        }
    });
}

fn a_kept_reply_is_unwanted_after_the_deadlock(home: &Home) {
    let keeps = home
        .spawn(actor(async |mut cx: Context<Reply<u32>>| cx.recv().await.unwrap()).name("keeps"));
    let found = deadlock(home.block_on(keeps.ask(|reply| reply)));
    assert_eq!(names(found.as_str()), format!("{} → keeps", asker(home)));
    let reply = home.block_on(keeps.join()).unwrap();
    assert!(!reply.is_wanted());
    reply.send(7);
}

fn concurrent_asks_each_get_their_own_deadlock_error(home: &Home) {
    let last = home.spawn(actor(deaf).name("last"));
    let actors = [named(home, "a"), named(home, "b")];
    ring(&actors);
    home.block_on(async {
        let (first, second) = futures::join!(last.ask(Message::Ask), actors[0].ask(Message::Ask));
        assert_eq!(
            names(deadlock(first).as_str()),
            format!("{} → last", asker(home))
        );
        assert_eq!(names(deadlock(second).as_str()), "a → b → a");
    });
}

fn a_long_chain_of_asks_that_is_answered_is_no_deadlock(home: &Home) {
    let actors: Vec<_> = (0..100).map(|_| home.spawn(actor(link))).collect();
    for pair in actors.windows(2) {
        know(&pair[0], &pair[1]);
    }
    home.block_on(async {
        for _ in 0..10 {
            assert_eq!(actors[0].ask(Message::Ask).await, Ok(Ok(7)));
        }
        let closed = home.spawn(actor(link));
        closed.stop();
        assert_eq!(
            closed.ask(Message::Ask).await,
            Err(AskError::Closed(AskDetail::default()))
        );
    });
}

/// The ask is in no cycle, so its timeout counts as a future event.
fn an_ask_with_a_timeout_times_out(home: &Home) {
    let last = home.spawn(actor(deaf));
    let asked = last.ask(Message::Ask).timeout(Duration::from_millis(1));
    assert_eq!(home.block_on(asked), Err(AskError::TimedOut));
}

fn an_ask_waits_for_the_timeout_of_the_asked_actor(home: &Home) {
    let last = home.spawn(actor(deaf));
    let address = last.address();
    let patient = home.spawn(actor(async move |mut cx: Context<Reply<AskError>>| {
        while let Some(reply) = cx.recv().await {
            let asked = address.ask(Message::Ask).timeout(Duration::from_millis(1));
            reply.send(asked.await.unwrap_err());
        }
    }));
    let heard = home.block_on(patient.ask(|reply| reply));
    assert_eq!(heard, Ok(AskError::TimedOut));
}

fn a_blocking_call_may_still_answer(home: &Home) {
    let calls = home.spawn(actor(async |mut cx: Context<Reply<u32>>| {
        while let Some(reply) = cx.recv().await {
            unblock(move || reply.send(7)).await;
        }
    }));
    assert_eq!(home.block_on(calls.ask(|reply| reply)), Ok(7));
}

// A simulation always detects deadlocks.
on_threads!(without_deadlock_detection_an_ask_waits);

fn without_deadlock_detection_an_ask_waits(home: &Home) {
    let (hands_out, replies) = hands_out(home);
    let task = home.spawn_task(async move { hands_out.ask(|reply| reply).await });
    let reply = received(&replies);
    // A deadlock that the detection would end; here only the timeout ends it.
    let actors = [named(home, "a"), named(home, "b")];
    ring(&actors);
    home.block_on(async {
        let asked = actors[0]
            .ask(Message::Ask)
            .timeout(Duration::from_millis(1));
        assert_eq!(asked.await, Err(AskError::TimedOut));
    });
    assert!(reply.is_wanted());
    reply.send(7);
    assert_eq!(home.block_on(task), Ok(7));
}

/// Spawns an actor that sends every reply to the test.
fn hands_out(home: &Home) -> (Address<Reply<u32>>, mpsc::Receiver<Reply<u32>>) {
    let (out, replies) = mpsc::channel();
    let hands_out = actor(async move |mut cx: Context<Reply<u32>>| {
        while let Some(reply) = cx.recv().await {
            out.send(reply).unwrap();
        }
    });
    (home.spawn(hands_out).address(), replies)
}

/// An ask belongs to the runtime where it is polled, whichever actor is asked.
#[test]
fn an_ask_outside_any_runtime_is_in_no_deadlock() {
    within(WATCH, || {
        let home = Home::built(1, detecting());
        let (address, replies) = hands_out(&home);
        let asker = std::thread::spawn(move || drive(address.ask(|reply| reply)));
        let reply = received(&replies);
        let actors = [named(&home, "a"), named(&home, "b")];
        ring(&actors);
        deadlock(home.block_on(actors[0].ask(Message::Ask)));
        assert!(reply.is_wanted());
        reply.send(7);
        assert_eq!(asker.join().unwrap(), Ok(7));
    });
}

#[test]
fn an_actor_on_another_runtime_is_in_no_deadlock_of_this_one() {
    within(WATCH, || {
        let (home, other) = (Home::built(1, detecting()), Home::workers(1));
        let waits = named(&other, "waits");
        know(&waits, &other.spawn(actor(deaf)));
        let address = waits.address();
        let task = other.spawn_task(async move { address.ask(Message::Ask).await });
        let found = deadlock(home.block_on(waits.ask(Message::Ask)));
        assert_eq!(names(found.as_str()), "block_on → waits");
        waits.kill();
        // The actor may have been asked before or after it was killed.
        let ended = other.block_on(task);
        assert!(matches!(
            ended,
            Err(AskError::NoReply(_) | AskError::Closed(_))
        ));
    });
}

#[test]
fn the_error_of_a_ring_of_thousands_is_short() {
    within(WATCH, || {
        let runtime = detecting().workers(2).build().unwrap();
        runtime.block_on(async {
            let actors: Vec<_> = (0..3_000).map(|_| spawn!(link(_))).collect();
            ring(&actors);
            let found = deadlock(actors[0].ask(Message::Ask).await);
            assert_eq!(found.as_str().split(" → ").count(), 17);
            assert!(found.as_str().contains(" → … (2985 more) → "), "{found}");
        });
    });
}
