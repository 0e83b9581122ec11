//! Children on other threads and other runtimes than their supervisor.

use std::sync::mpsc;
use std::time::Duration;

use greenroom::supervise::{ChildState, Strategy};
use greenroom::{Address, AskCause, Context, Detached, End, Reply, Runtime, actor, yield_now};

use super::{
    Job, LONG, all_run, cause, child, escape, hold, number, patient, start, start_three, wait_for,
};
use crate::support::{Gate, Home, Log, WATCH, drive, on_threads, within};

on_threads!(
    children_of_one_tree_may_have_threads_of_their_own,
    a_thread_that_a_child_blocks_delays_its_round,
    the_end_of_another_runtime_ends_its_children_and_no_other,
);

fn children_of_one_tree_may_have_threads_of_their_own(home: &Home) {
    let pinned = home.runtime.spawn_pinned("of a child").unwrap();
    home.block_on(async {
        for strategy in [
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
        ] {
            let log = Log::default();
            let tree = patient(strategy).spawn().unwrap();
            let logs = [(); 3].map(|()| log.clone());
            let [of_a, of_b, of_c] = logs;
            let a = tree.start(actor(move |cx| child(cx, "a", of_a)).on(Detached));
            let b = tree.start(actor(move |cx| child(cx, "b", of_b)).on(&pinned));
            let c = tree.start(actor(move |cx| child(cx, "c", of_c)));
            let children = [a.unwrap(), b.unwrap(), c.unwrap()];
            for round in 0..3 {
                let failing = &children[round];
                failing.tell(Job::Note(round as u32)).unwrap();
                let before = number(failing).await;
                failing.tell(Job::Fail).unwrap();
                for child in &children[round..] {
                    child.tell(Job::Note(5)).unwrap();
                }
                while number(failing).await == before {
                    yield_now().await;
                }
            }
            for child in &children {
                number(child).await;
            }
            tree.stop();
            tree.join().await.unwrap();
            let log = log.take();
            let notes = log.iter().filter(|it| it.ends_with('5')).count();
            assert_eq!(notes, 3 + 2 + 1);
            let ends = &log[log.len() - 3..];
            assert_eq!(ends, ["-c", "-b", "-a"]);
        }
    });
}

fn a_thread_that_a_child_blocks_delays_its_round(home: &Home) {
    home.block_on(async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let a = start(&tree, &log, "a");
        let (blocks, gate) = (Gate::default(), Gate::default());
        let (is_blocked, until) = (blocks.clone(), gate.clone());
        let b = actor(move |mut cx: Context<Reply<u64>>| async move {
            while let Some(reply) = cx.recv().await {
                blocks.open();
                gate.pass();
                reply.send(cx.incarnation_number());
            }
        });
        let b = tree.start(b.on(Detached)).unwrap();
        let c = start(&tree, &log, "c");
        number(&c).await;
        all_run(&tree).await;
        let (reply, answer) = Reply::pair();
        b.tell(reply).unwrap();
        is_blocked.wait().await;
        a.tell(Job::Fail).unwrap();
        while log.len() < 4 {
            yield_now().await;
        }
        for _ in 0..100 {
            yield_now().await;
        }
        let mut seen = log.take();
        seen[2..].sort();
        assert_eq!(seen, ["+a", "+c", "-a", "-c"]);
        until.open();
        // The message in hand was answered before the thread came back.
        assert_eq!(answer.await, Ok(0));
        // Its turn may handle another one before it is dropped.
        while b.ask(|reply| reply).await == Ok(0) {}
        assert_eq!((number(&a).await, number(&c).await), (1, 1));
        tree.stop();
        tree.join().await.unwrap();
    });
}

fn the_end_of_another_runtime_ends_its_children_and_no_other(home: &Home) {
    home.block_on(async {
        let log = Log::default();
        let other = Runtime::builder().workers(1).grace(Duration::ZERO);
        let other = other.on_fault(|_| {}).build().unwrap();
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let a = start(&tree, &log, "a");
        let own = log.clone();
        let b = tree
            .start(actor(move |cx| child(cx, "b", own)).on(&other))
            .unwrap();
        let c = start(&tree, &log, "c");
        let own = log.clone();
        let d = tree
            .start(actor(move |cx| child(cx, "d", own)).on(&other))
            .unwrap();
        assert_eq!((number(&b).await, number(&d).await), (0, 0));
        let (place, escaped) = escape(&d).await;
        b.tell(Job::Fail).unwrap();
        wait_for(&tree, &c, ChildState::Restarting).await;
        let report = other.shutdown().await;
        assert!(report.cancelled > 0);
        // The round goes on without them.
        while number(&c).await == 0 {
            yield_now().await;
        }
        assert_eq!(number(&a).await, 1);
        assert_eq!(tree.children().len(), 2);
        // Its mailbox was closed while it waited, so it ends with its fault if it has one more turn.
        let ended = b.ended().await;
        assert!([End::Panicked, End::Cancelled].contains(&ended));
        assert_eq!(d.ended().await, End::Cancelled);
        let why = cause(escaped.await);
        assert!([AskCause::Restarted, AskCause::Cancelled].contains(&why));
        drop(place);
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn a_tree_ends_although_its_runtime_ends_before_that_of_a_child() {
    within(WATCH, || {
        let log = Log::default();
        let other = Runtime::builder().workers(1).build().unwrap();
        let own = Runtime::builder()
            .workers(1)
            .grace(Duration::ZERO)
            .build()
            .unwrap();
        let (tree, a, held) = own.block_on(async {
            let tree = patient(Strategy::OneForOne).grace(LONG).spawn().unwrap();
            let notes = log.clone();
            let a = tree
                .start(actor(move |cx| child(cx, "a", notes)).on(&other))
                .unwrap();
            let held = hold(&a).await;
            (tree, a, held)
        });
        drive(own.shutdown());
        drive(tree.join()).unwrap();
        // A supervisor that is cancelled kills its children.
        assert_eq!(drive(a.ended()), End::Killed);
        assert_eq!(cause(drive(held)), AskCause::Killed);
        assert_eq!(log.take(), ["+a", "-a"]);
    });
}

#[test]
fn a_tree_may_be_used_from_any_thread() {
    within(WATCH, || {
        let runtime = Runtime::builder()
            .workers(2)
            .on_fault(|_| {})
            .build()
            .unwrap();
        let tree = runtime.block_on(async { patient(Strategy::RestForOne).spawn().unwrap() });
        let (sends, children) = mpsc::channel::<Address<Job>>();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let sends = sends.clone();
                scope.spawn(|| {
                    let log = Log::default();
                    runtime.block_on(async {
                        for round in 0..20 {
                            let [a, b, c] = start_three(&tree, &log);
                            b.tell(Job::Fail).unwrap();
                            tree.restart(&c).unwrap();
                            if round % 3 == 0 {
                                c.kill();
                            }
                            number(&a).await;
                            number(&b).await;
                            tree.stop_child(&a).unwrap();
                            sends.send(b).unwrap();
                        }
                    });
                    drop(sends);
                });
            }
            drop(sends);
            for child in children {
                assert!(tree.children().iter().any(|it| it.id == child.id()));
            }
        });
        tree.stop();
        drive(tree.join()).unwrap();
        drop(runtime);
    });
}
