//! The report of a run that hangs: which task waits for what, and which one could end that.

use std::future::pending;
#[cfg(target_os = "linux")]
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    sync::{Arc, Mutex},
};

use greenroom::policy::Simulated;
#[cfg(target_os = "linux")]
use greenroom::sim;
use greenroom::{Address, Context, Reply, spawn};

use super::{Friend, deaf, reads};
#[cfg(target_os = "linux")]
use crate::{
    child::{command, is_for},
    support::{WATCH, within},
};

/// Asserts that the failure text of each seed has these lines.
#[track_caller]
fn tells<F: Future<Output = ()>>(program: impl Fn() -> F, lines: &[&str]) {
    for seed in 0..20 {
        let failure = Simulated::new(seed).try_run(program()).unwrap_err();
        let text = failure.to_string();
        for line in lines {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }
}

/// Forwards its asks.
async fn forwards(mut cx: Context<Friend>) {
    let mut friend: Option<Address<Friend>> = None;
    while let Some(message) = cx.recv().await {
        match message {
            Friend::Is(address) => friend = Some(address),
            Friend::Ask(reply) => friend.as_ref().unwrap().tell(Friend::Ask(reply)).unwrap(),
        }
    }
}

/// Keeps its messages.
async fn keeps(mut cx: Context<Friend>) {
    let mut kept = Vec::new();
    while let Some(message) = cx.recv().await {
        kept.push(message);
    }
}

#[test]
fn a_deadlock_names_the_awaited_task_or_actor() {
    let ended = r#"main waits for the end of "reader" #1, and nothing is left that could wake it"#;
    tells(
        || async {
            let reader = spawn!(reads(_), name = "reader");
            let _keeps_it_open = reader.address();
            reader.join().await.unwrap();
        },
        &[ended, "  \"reader\" #1 waits for a message\n"],
    );
    tells(
        || async { spawn!(reads(_), name = "reader").closed().await },
        &[ended],
    );
    tells(
        || async { spawn(pending::<()>()).await },
        &["main waits for the end of task #1, and nothing is left that could wake it\n"],
    );
}

#[test]
fn a_deadlock_names_the_actor_that_does_not_read() {
    tells(
        || async {
            let deaf = spawn!(deaf(_), name = "deaf", capacity = 1);
            deaf.send(1).await.unwrap();
            deaf.send(2).await.unwrap();
        },
        &["  main waits for room in the mailbox of \"deaf\" #1, which does not read\n"],
    );
    tells(
        || async {
            let deaf = spawn!(
                async |cx: Context<Friend>| {
                    pending::<()>().await;
                    drop(cx);
                },
                name = "deaf"
            );
            let _ = deaf.ask(Friend::Ask).await;
        },
        &["  main waits for the answer of \"deaf\" #1, which has not read the question\n"],
    );
}

#[test]
fn a_deadlock_names_the_current_holder_of_the_reply() {
    tells(
        || async {
            let back = spawn!(keeps(_), name = "back");
            let front = spawn!(forwards(_), name = "front");
            front.tell(Friend::Is(back.address())).unwrap();
            let _ = front.ask(Friend::Ask).await;
        },
        &["  main waits for the answer of \"front\" #2; \"back\" #1 holds the reply\n"],
    );
    tells(
        || async {
            let gives_away = spawn!(
                async |mut cx: Context<Reply<()>>| {
                    while let Some(reply) = cx.recv().await {
                        spawn(async move {
                            pending::<()>().await;
                            reply.send(());
                        })
                        .detach();
                    }
                },
                name = "gives away"
            );
            let _ = gives_away.ask(|reply| reply).await;
        },
        &["  main waits for the answer of \"gives away\" #1; task #2 holds the reply\n"],
    );
}

#[test]
fn a_trace_shows_messages_of_actors_that_allow_it() {
    #[derive(Debug)]
    struct Local(#[expect(dead_code, reason = "only shown")] u32);
    async fn takes(mut cx: Context<Local>) {
        cx.recv().await;
        panic!("bomb");
    }
    let program = |shows: bool| async move {
        let takes = greenroom::actor(takes).name("takes");
        let takes = if shows { takes.show() } else { takes };
        takes.spawn().tell(Local(7)).unwrap();
        pending::<()>().await;
    };
    crate::support::keep_bombs_quiet();
    tells(|| program(true), &["#1 Local(7) from main"]);
    tells(|| program(false), &["#1 Local from main"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_turn_that_blocks_its_thread_is_reported_with_seed_step_and_task() {
    const TEST: &str =
        "simulation::hangs::a_turn_that_blocks_its_thread_is_reported_with_seed_step_and_task";
    if is_for(TEST) {
        sim::run(7, async {
            let shared = Arc::new(Mutex::new(()));
            let other = shared.clone();
            let blocks = |_cx: Context<()>| async move { drop(other.lock()) };
            let blocks = spawn!(blocks, name = "the blocked one");
            let _held = shared.lock();
            blocks.join().await
        })
        .unwrap();
        return;
    }
    within(WATCH, || {
        let mut child = command(TEST).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines
            .map_while(Result::ok)
            .find(|line| line.contains("no step"));
        child.kill().unwrap();
        child.wait().unwrap();
        let line = line.expect("the child waits until it is killed");
        assert!(line.starts_with("greenroom: seed 7: no step"), "{line}");
        assert!(
            line.contains(": step 2 is the turn of \"the blocked one\" #1, "),
            "{line}"
        );
    });
}
