//! Waits that are no asks: for room in a mailbox, and for the end of an actor.

use std::sync::mpsc;
use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::time::timeout;
use greenroom::{
    Address, AskError, Builder, Context, Handle, Reply, Runtime, Warning, actor, spawn,
};

use super::detecting;
use crate::support::{Log, WATCH, names, within};

/// Runs the test on one worker, on two, and in two simulations, with the warnings so far.
fn on_each(test: impl Fn(&Runtime, &Log<Warning>) + Send + 'static) {
    within(WATCH, move || {
        let seeds = [1, 2].map(|seed| detecting().policy(Simulated::new(seed)));
        let builders = [detecting().workers(1), detecting().workers(2)];
        for builder in builders.into_iter().chain(seeds) {
            let (runtime, warnings) = warned(builder);
            test(&runtime, &warnings);
        }
    });
}

/// Builds the runtime. No turn is long, but the places of actors are known in release builds, too.
fn warned(builder: Builder) -> (Runtime, Log<Warning>) {
    let warnings = Log::default();
    let log = warnings.clone();
    let builder = builder.long_turns(Duration::from_secs(3600));
    let builder = builder.on_warning(move |warning| log.add(warning.clone()));
    (builder.build().unwrap(), warnings)
}

/// Returns the texts of the deadlocks among the warnings.
fn deadlocks(warnings: &Log<Warning>) -> Vec<String> {
    let all = warnings.take().into_iter();
    let deadlocks = all.filter(|warning| matches!(warning, Warning::Deadlock(_)));
    deadlocks
        .map(|warning| names(&warning.to_string()))
        .collect()
}

enum Push {
    To(Address<Push>),
    Begin,
}

/// Sends to the other actor without an end once it has begun, and receives nothing from then on.
async fn pusher(mut cx: Context<Push>) {
    let mut to = None;
    while let Some(message) = cx.recv().await {
        match (message, &to) {
            (Push::To(address), _) => to = Some(address),
            (Push::Begin, Some(to)) => while to.send(Push::Begin).await.is_ok() {},
            (Push::Begin, None) => {}
        }
    }
}

/// Spawns actors that send to each other, in a ring, and begins.
fn pushers(runtime: &Runtime, names: &[&str]) -> Vec<Handle<Push, ()>> {
    let pusher = |name: &&str| actor(pusher).name(*name).capacity(1).on(runtime).spawn();
    let pushers: Vec<_> = names.iter().map(pusher).collect();
    runtime.block_on(async {
        for (at, one) in pushers.iter().enumerate() {
            let next = pushers[(at + 1) % pushers.len()].address();
            one.send(Push::To(next)).await.unwrap();
        }
        pushers[0].send(Push::Begin).await.unwrap();
    });
    pushers
}

#[test]
fn actors_that_wait_for_room_of_each_other_are_reported_once() {
    on_each(|runtime, warnings| {
        let pushers = pushers(runtime, &["a", "b"]);
        for _ in 0..3 {
            runtime.run_until_quiescent();
            runtime.block_on(runtime.spawn(greenroom::yield_now()));
        }
        let text = "the actors wait for each other: a → b (for room) → a (for room)";
        assert_eq!(deadlocks(warnings), [text]);
        for one in &pushers {
            one.kill();
        }
    });
}

#[test]
fn a_cycle_is_reported_although_nothing_waits_for_quiescence() {
    within(WATCH, || {
        let (warn, warnings) = mpsc::channel();
        // A machine that pauses holds turns for long.
        let builder = detecting().workers(2).long_turns(None);
        let builder =
            builder.on_warning(move |warning| warn.send(names(&warning.to_string())).unwrap());
        let runtime = builder.build().unwrap();
        let pushers = pushers(&runtime, &["a", "b", "c"]);
        let text = "the actors wait for each other: a → b (for room) → c (for room) → a (for room)";
        assert_eq!(warnings.recv().unwrap(), text);
        pushers.iter().for_each(|one| one.kill());
    });
}

#[test]
fn actors_that_wait_for_the_end_of_each_other_are_reported() {
    on_each(|runtime, warnings| {
        let joins = actor(async |mut cx: Context<Handle<(), ()>>| {
            let other = cx.recv().await.unwrap();
            other.join().await.is_ok()
        });
        let joins = joins.name("joins").on(runtime).spawn();
        let address = joins.address();
        let closed = actor(async move |_cx: Context<()>| address.closed().await);
        let closed = closed.name("closed").on(runtime).spawn();
        let end = closed.address();
        joins.tell(closed).unwrap();
        runtime.run_until_quiescent();
        let text = "the actors wait for each other: \
                    joins → closed (for its end) → joins (for its end)";
        assert_eq!(deadlocks(warnings), [text]);
        end.kill();
        assert!(!runtime.block_on(joins.join()).unwrap());
    });
}

#[test]
fn an_ask_in_a_cycle_with_another_wait_ends_with_its_path() {
    on_each(|runtime, warnings| {
        let joins = actor(async |mut cx: Context<Ask>| {
            let mut outcome = None;
            while let Some(message) = cx.recv().await {
                match message {
                    Ask::Join(other) => outcome = Some(other.join().await.unwrap()),
                    Ask::Answer(reply) => reply.send(()),
                }
            }
            outcome
        });
        let joins = joins.name("joins").on(runtime).spawn();
        let asked = joins.address();
        let asks = actor(async move |mut cx: Context<()>| {
            cx.recv().await;
            asked.ask(Ask::Answer).await
        });
        let asks = asks.name("asks").on(runtime).spawn();
        let begin = asks.address();
        joins.tell(Ask::Join(asks)).unwrap();
        runtime.run_until_quiescent();
        begin.tell(()).unwrap();
        let outcome = runtime.block_on(joins.join()).unwrap().unwrap();
        assert_eq!(
            names(&outcome.unwrap_err().to_string()),
            "the actors wait for each other: asks → joins → asks (for its end)"
        );
        assert_eq!(deadlocks(warnings), [""; 0], "the cycle is over");
    });
}

enum Ask {
    Join(Handle<(), Result<(), AskError>>),
    Answer(Reply<()>),
}

#[test]
fn an_ask_that_leads_to_a_wait_for_an_end_names_that_actor() {
    on_each(|runtime, _| {
        let idle = spawn!(idle(_), name = "idle", on = runtime);
        let end = idle.address();
        let waits = actor(async move |mut cx: Context<Reply<()>>| {
            let _reply = cx.recv().await;
            end.closed().await;
        });
        let waits = waits.name("waits").on(runtime).spawn();
        let asked = runtime.block_on(waits.ask(|reply| reply));
        let error = names(&asked.unwrap_err().to_string());
        assert!(error.ends_with(" → waits → idle (for its end)"), "{error}");
    });
}

async fn idle(mut cx: Context<()>) {
    while cx.recv().await.is_some() {}
}

#[test]
fn actors_that_receive_while_they_wait_for_an_end_are_not_reported() {
    on_each(|runtime, warnings| {
        let linked = || {
            let linked = actor(async |mut cx: Context<Address<()>>| {
                let other = cx.recv().await.unwrap();
                let end = std::pin::pin!(other.closed());
                let message = std::pin::pin!(cx.recv());
                futures::future::select(end, message).await;
            });
            linked.on(runtime).spawn()
        };
        let (one, other) = (linked(), linked());
        one.tell(other.map(|()| unreachable!("it is only watched")))
            .unwrap();
        other
            .tell(one.map(|()| unreachable!("it is only watched")))
            .unwrap();
        runtime.run_until_quiescent();
        one.stop();
        runtime.block_on(async {
            one.join().await.unwrap();
            other.join().await.unwrap();
        });
        assert_eq!(deadlocks(warnings), [""; 0]);
    });
}

#[test]
fn a_wait_that_was_given_up_is_in_no_cycle() {
    on_each(|runtime, warnings| {
        let give_up = async |mut cx: Context<Address<()>>| {
            let other = cx.recv().await.unwrap();
            let given_up = timeout(Duration::from_millis(2), other.closed()).await;
            assert!(given_up.is_err());
            std::future::pending::<()>().await;
            drop(cx);
        };
        let own = [(); 2].map(|()| actor(give_up).on(runtime).spawn());
        for (one, other) in [(0, 1), (1, 0)] {
            let end = own[other].map(|()| unreachable!("it is only watched"));
            own[one].tell(end).unwrap();
        }
        runtime.run_until_quiescent();
        assert_eq!(deadlocks(warnings), [""; 0]);
        own.iter().for_each(|one| one.kill());
    });
}

#[test]
fn without_detection_nothing_is_reported() {
    within(WATCH, || {
        let (runtime, warnings) = warned(Runtime::builder().workers(2));
        let pushers = pushers(&runtime, &["a", "b"]);
        runtime.run_until_quiescent();
        assert_eq!(warnings.len(), 0);
        pushers.iter().for_each(|one| one.kill());
    });
}

#[test]
fn a_judged_simulation_fails_with_a_cycle_of_waits_for_ends() {
    let run = Simulated::new(1).try_run(async {
        let (give, given) = futures::channel::oneshot::channel::<Address<()>>();
        let waits = actor(async |_cx: Context<()>| given.await.unwrap().closed().await);
        let one = waits.name("one").spawn();
        let end = one.address();
        let other = actor(async move |_cx: Context<()>| end.closed().await);
        let other = other.name("other").spawn();
        give.send(other.address()).unwrap();
        one.join().await.unwrap();
    });
    let failure = run.unwrap_err().to_string();
    let path = r#""one" #1 → "other" #2 (for its end) → "one" #1 (for its end)"#;
    assert!(failure.contains(path), "{failure}");
}

#[test]
fn dormant_actors_without_a_handle_are_listed_once_at_quiescence() {
    on_each(|runtime, warnings| {
        let line = line!() + 1;
        let keeps = spawn!(idle(_), name = "keeps", on = runtime);
        if runtime.stats().actors[0].spawned_at.is_none() {
            // A simulation in a release build.
            return runtime.run_until_quiescent();
        }
        let address = keeps.address();
        let held = spawn!(idle(_), name = "held", on = runtime, allow_long_turns);
        let own = format!(
            "\"keeps\" #{} ({}:{line}) with 1 address",
            keeps.id(),
            file!()
        );
        drop(keeps);
        for _ in 0..2 {
            runtime.run_until_quiescent();
        }
        let shown = |warning: &Warning| warning.to_string();
        let texts: Vec<_> = warnings.take().iter().map(shown).collect();
        assert_eq!(texts, [format!("1 actor waits without a handle: {own}")]);
        let other = actor(idle).on(runtime).spawn();
        let others = (other.address(), other.address(), held.address());
        drop((other, held));
        runtime.run_until_quiescent();
        let [Warning::LeftAlone(actors)] = &warnings.take()[..] else {
            panic!("one warning")
        };
        let names = actors.iter().map(|actor| actor.task.name());
        assert_eq!(names.collect::<Vec<_>>(), [Some("held"), None]);
        let addresses = actors.iter().map(|actor| actor.addresses);
        assert_eq!(addresses.collect::<Vec<_>>(), [1, 2]);
        drop((address, others));
    });
}
