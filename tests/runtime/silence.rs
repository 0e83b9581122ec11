//! Waits that never end are reported after two seconds in which nothing runs.

use std::pin::pin;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use futures::future::{Either, pending, select};
use greenroom::policy::{Prioritized, Sharing, Simulated};
use greenroom::supervise::Restarts;
use greenroom::{ActorWait, Address, Context, Handle, Reply, Runtime, Warning, ctrl_c, spawn};

use crate::child::alone;
use crate::support::drive;

enum Friend {
    Is(Address<Friend>),
    Ask(Reply<()>),
}

/// Asks its friend before it replies.
async fn shy(mut cx: Context<Friend>) {
    let mut friend = None;
    while let Some(message) = cx.recv().await {
        match message {
            Friend::Is(address) => friend = Some(address),
            Friend::Ask(reply) => {
                if let Some(friend) = &friend {
                    let _ = friend.ask(Friend::Ask).await;
                }
                reply.send(());
            }
        }
    }
}

/// Returns a runtime and what it warns of.
fn runtime() -> (Runtime, Receiver<Warning>) {
    let (warn, warned) = channel();
    let builder = Runtime::builder().workers(2).endless_waits(true);
    let builder = builder.on_warning(move |warning| drop(warn.send(warning.clone())));
    (builder.build().unwrap(), warned)
}

fn is_cycle_of_two(warning: &Warning) -> bool {
    matches!(warning, Warning::EndlessWait(_, actors) if actors.len() == 2)
}

fn befriend(a: &Address<Friend>, b: &Address<Friend>) {
    a.tell(Friend::Is(b.clone())).unwrap();
    b.tell(Friend::Is(a.clone())).unwrap();
    let (reply, _answer) = Reply::pair();
    a.tell(Friend::Ask(reply)).unwrap();
}

#[test]
fn a_worker_reports_actors_that_ask_each_other() {
    let (runtime, warned) = runtime();
    let [a, b] = ["a", "b"].map(|name| spawn!(shy(_), name = name, on = &runtime));
    befriend(&a, &b);
    let warning = warned.recv().unwrap();
    assert!(is_cycle_of_two(&warning), "{warning}");
    assert!(warning.to_string().contains("silence.rs:"), "{warning}");
}

#[test]
fn restarted_actors_that_ask_each_other_are_reported() {
    let (runtime, warned) = runtime();
    let restarts = Restarts::on_fault;
    let [a, b] =
        ["a", "b"].map(|name| spawn!(shy(_), name = name, restart = restarts(), on = &runtime));
    befriend(&a, &b);
    let warning = warned.recv().unwrap();
    assert!(is_cycle_of_two(&warning), "{warning}");
}

#[test]
fn a_worker_of_another_policy_reports_actors_that_ask_each_other() {
    let (warn, warned) = channel();
    let builder = |name: &str| {
        let (name, warn) = (name.to_owned(), warn.clone());
        let builder = Runtime::builder().workers(2).endless_waits(true);
        builder.on_warning(move |warning| {
            assert!(is_cycle_of_two(warning), "{warning}");
            drop(warn.send(name.clone()));
        })
    };
    let runtimes = [
        builder("sharing").policy(Sharing::default()).build(),
        builder("prioritized")
            .policy(Prioritized::default())
            .build(),
    ];
    let runtimes = runtimes.map(Result::unwrap);
    for runtime in &runtimes {
        let [a, b] = ["a", "b"].map(|name| spawn!(shy(_), name = name, on = runtime));
        befriend(&a, &b);
        a.detach();
        b.detach();
    }
    let mut names: Vec<_> = runtimes.iter().map(|_| warned.recv().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["prioritized", "sharing"]);
}

#[test]
fn a_pinned_thread_reports_actors_that_ask_each_other() {
    let (runtime, warned) = runtime();
    let host = runtime.spawn_pinned("host").unwrap();
    let [a, b] = ["a", "b"].map(|name| spawn!(shy(_), name = name, on = &host));
    befriend(&a, &b);
    let warning = warned.recv().unwrap();
    assert!(is_cycle_of_two(&warning), "{warning}");
}

#[test]
fn a_thread_in_block_on_reports_that_the_actor_that_it_joins_keeps_itself() {
    let (runtime, warned) = runtime();
    let keeper = spawn!(keeper(_), on = &runtime);
    let joins = thread::spawn(move || runtime.block_on(keeper.join()));
    let warning = warned.recv().unwrap();
    let Warning::EndlessWait(path, actors) = &warning else {
        panic!("{warning}")
    };
    assert!(path.as_str().starts_with("block_on → keeper #"), "{path}");
    assert_eq!(actors[0].addresses, 1);
    assert!(!joins.is_finished());
}

async fn keeper(mut cx: Context<u32>) {
    let _own = cx.address();
    while cx.recv().await.is_some() {}
}

async fn sink(mut cx: Context<u32>) {
    while cx.recv().await.is_some() {}
}

/// Waits on a thread of its own until the actor has ended, or the other future is done.
fn join_beside<F: Future + Send + 'static>(
    runtime: &Runtime,
    actor: Handle<u32, ()>,
    other: impl FnOnce() -> F + Send + 'static,
) {
    let (begin, begun) = channel();
    let runtime = runtime.clone();
    thread::spawn(move || {
        runtime.block_on(async {
            begin.send(()).unwrap();
            select(actor.join(), pin!(other())).await;
        });
    });
    begun.recv().unwrap();
}

#[test]
fn what_something_else_may_wake_is_not_reported() {
    alone(
        "silence::what_something_else_may_wake_is_not_reported",
        || {
            let (runtime, warned) = runtime();
            let kept = || spawn!(keeper(_), on = &runtime);
            join_beside(&runtime, kept(), ctrl_c);
            join_beside(&runtime, kept(), || async {
                let listener = async_net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                listener.accept().await.map(drop)
            });
            let tokio = tokio::runtime::Builder::new_multi_thread().build().unwrap();
            let (_send, mut received) = tokio::sync::mpsc::channel(1);
            let told = spawn!(sink(_), on = &runtime);
            let address = told.address();
            tokio.spawn(async move {
                while let Some(number) = received.recv().await {
                    address.tell(number).unwrap();
                }
            });
            join_beside(&runtime, told, pending::<()>);
            let told = spawn!(sink(_), on = &runtime);
            let (address, (_lines, line)) = (told.address(), channel());
            thread::spawn(move || {
                // As a thread that reads lines of stdin.
                while let Ok(number) = line.recv() {
                    address.tell(number).unwrap();
                }
            });
            join_beside(&runtime, told, pending::<()>);
            let [a, b] = ["a", "b"].map(|name| spawn!(shy(_), name = name, on = &runtime));
            befriend(&a, &b);
            let warning = warned.recv().unwrap();
            assert!(is_cycle_of_two(&warning), "{warning}");
            // The thread that reports counts as activity.
            runtime.run_until_quiescent();
            assert!(warned.try_recv().is_err());
        },
    );
}

#[test]
fn a_runtime_with_a_stage_reports_nothing() {
    let (runtime, warned) = runtime();
    let (begin, begun) = channel();
    let (end, ended) = channel::<()>();
    let staged = runtime.clone();
    let stage = thread::spawn(move || {
        let stage = staged.pinned_here();
        begin.send(()).unwrap();
        ended.recv().unwrap_err();
        drop(stage);
    });
    begun.recv().unwrap();
    let [a, b] = ["a", "b"].map(|name| spawn!(shy(_), name = name, on = &runtime));
    befriend(&a, &b);
    // Another runtime reports the same meanwhile.
    let (control, control_warned) = self::runtime();
    let [c, d] = ["c", "d"].map(|name| spawn!(shy(_), name = name, on = &control));
    befriend(&c, &d);
    control_warned.recv().unwrap();
    assert!(warned.try_recv().is_err());
    drop(end);
    stage.join().unwrap();
    assert!(is_cycle_of_two(&warned.recv().unwrap()));
}

/// Asks itself while the same task receives.
async fn selects(mut cx: Context<Reply<()>>) {
    let own = cx.address();
    cx.recv().await.unwrap().send(());
    let mut ask = own.ask(|reply| reply);
    while let Either::Left((reply, _)) = select(pin!(cx.recv()), &mut ask).await {
        reply.unwrap().send(());
    }
}

/// Gives its context to a task, in a turn that has received nothing.
async fn moves_its_context(mut cx: Context<Reply<()>>) {
    let own = cx.address();
    cx.recv().await.unwrap().send(());
    greenroom::yield_now().await;
    let receives = greenroom::spawn(async move { cx.recv().await.unwrap().send(()) });
    own.ask(|reply| reply).await.unwrap();
    receives.await;
}

/// Receives the answer of its own as a message.
async fn gets_the_answer(mut cx: Context<Option<Reply<()>>>) {
    cx.recv().await.unwrap().unwrap().send(());
    let asked = cx.address().request(Some);
    cx.on_answer(asked, |_| None);
    while let Some(Some(reply)) = cx.recv().await {
        reply.send(());
    }
}

#[test]
fn asks_to_oneself_that_something_receives_are_not_reported() {
    let (runtime, warned) = runtime();
    runtime.block_on(async {
        for _ in 0..100 {
            let (selects, moves) = (spawn!(selects(_)), spawn!(moves_its_context(_)));
            let gets = spawn!(gets_the_answer(_));
            selects.ask(|reply| reply).await.unwrap();
            moves.ask(|reply| reply).await.unwrap();
            gets.ask(Some).await.unwrap();
            selects.join().await.unwrap();
            moves.join().await.unwrap();
            gets.join().await.unwrap();
        }
    });
    drop(runtime);
    assert!(warned.recv().is_err());
}

#[test]
fn a_report_tells_what_each_actor_waits_for() {
    async fn patient(mut cx: Context<Address<Friend>>, number: u32) {
        let Some(friend) = cx.recv().await else {
            return;
        };
        match number {
            0 => drop(friend.ask(Friend::Ask).await),
            1 => friend.closed().await,
            2 => drop(friend.send(Friend::Ask(Reply::pair().0)).await),
            3 => greenroom::time::sleep(Duration::from_secs(3600)).await,
            4 => greenroom::unblock(move || drive(friend.closed())).await,
            _ => pending().await,
        }
    }
    for is_noted in [true, false] {
        let runtime = Runtime::builder().workers(2).endless_waits(is_noted);
        let runtime = runtime.build().unwrap();
        let mute = async |_cx: Context<Friend>| pending::<()>().await;
        let mute = spawn!(mute, name = "mute", capacity = 1, on = &runtime);
        let names = [
            "asks", "joins", "sends", "sleeps", "blocks", "other", "receives",
        ];
        let patients: Vec<_> = (0..).zip(names).collect();
        let patients = patients.into_iter().map(|(number, name)| {
            let patient = spawn!(patient(_, number), name = name, on = &runtime);
            if number < 6 {
                patient.tell(mute.address()).unwrap();
            }
            // The first ask fills the mailbox.
            while number == 0 && mute.is_empty() {
                thread::yield_now();
            }
            patient
        });
        let patients: Vec<_> = patients.collect();
        let waits = |name: &str| {
            let report = runtime.report();
            let mut of = report.iter().filter(|it| it.task.name() == Some(name));
            of.next().unwrap().waits.clone()
        };
        for (name, patient) in names.into_iter().zip(&patients) {
            let id = runtime
                .report()
                .into_iter()
                .find(|it| it.task.name() == Some("mute"));
            let to = id.unwrap().task;
            let expected = match (name, is_noted) {
                ("receives", _) => ActorWait::Message,
                ("asks", true) => ActorWait::Answer(to),
                ("joins", true) => ActorWait::End(to),
                ("sends", true) => ActorWait::Room(to),
                ("sleeps", true) => ActorWait::Noted("a timer"),
                ("blocks", true) => ActorWait::Noted("a blocking call"),
                _ => ActorWait::Other,
            };
            // It is in a turn at first.
            while waits(name).is_empty() {
                thread::yield_now();
            }
            assert_eq!(waits(name), [expected], "{name} {patient:?}");
        }
        let text = runtime.report().pop().unwrap().to_string();
        assert!(text.starts_with(r#""receives" #"#), "{text}");
        assert!(text.ends_with(" waits for a message"), "{text}");
        for patient in patients {
            patient.kill();
        }
        mute.kill();
    }
}

#[test]
fn a_report_has_the_names_of_plain_tasks_after_the_actors() {
    async fn fetch(_page: u32) {
        pending::<()>().await;
    }
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let reader = greenroom::task("reader").spawn_on(&runtime, pending::<()>());
    let actor = spawn!(shy(_), name = "a", on = &runtime);
    let fetch = runtime.spawn(fetch(1));
    runtime.run_until_quiescent();
    let report = runtime.report();
    let called: Vec<_> = report.iter().map(|it| it.task.called()).collect();
    assert_eq!(called[0], "a");
    assert_eq!(called.len(), 3);
    assert!(called.contains(&"reader".into()) && called.contains(&"fetch".into()));
    for task in &report[1..] {
        assert!(task.actor.is_none());
        let text = task.to_string();
        let begins = [r#""reader" #"#, "fetch #"].map(|name| text.starts_with(name));
        assert!(begins.contains(&true), "{text}");
        assert!(
            text.ends_with(" waits for something that nothing has noted"),
            "{text}"
        );
    }
    drop((reader, actor, fetch));
}

#[test]
fn a_report_of_a_simulation_tells_what_each_actor_waits_for() {
    let runtime = Runtime::builder().policy(Simulated::new(1));
    let runtime = runtime.endless_waits(true).build().unwrap();
    let friends = ["a", "b"].map(|name| spawn!(shy(_), name = name, on = &runtime));
    let [a, b] = &friends;
    runtime.block_on(async {
        a.tell(Friend::Is(b.address())).unwrap();
        let mute = spawn!(async |_cx: Context<Friend>| pending::<()>().await);
        b.tell(Friend::Is(mute.address())).unwrap();
        let (reply, _answer) = Reply::pair();
        a.tell(Friend::Ask(reply)).unwrap();
        let waits = || runtime.report().into_iter().map(|actor| actor.waits);
        while !waits().all(|waits| !waits.is_empty() && waits != [ActorWait::Message]) {
            greenroom::yield_now().await;
        }
        let waits: Vec<_> = waits().flatten().collect();
        assert!(
            matches!(&waits[..], [ActorWait::Answer(of_b), ActorWait::Answer(of_mute), ActorWait::Other]
                if of_b.id() == b.id() && of_mute.id() == mute.id()),
            "{waits:?}"
        );
        mute.kill();
    });
}
