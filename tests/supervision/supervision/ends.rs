//! The end of a tree: in reverse order, with what was accepted, and within bounds.

use std::time::Duration;

use greenroom::policy::Simulated;
use greenroom::supervise::{ChildState, Restarts, StartError, Strategy, Supervisor};
use greenroom::time::{Instant, RetryIntervals, sleep};
use greenroom::{AskCause, Context, Detached, End, Reply, Runtime, actor, unblock, yield_now};

use super::{
    Escaped, Job, LONG, all_have_begun, all_run, cause, child, escape, everywhere, hold, number,
    on_two_workers, patient, simulated, start, start_three, wait_for,
};
use crate::support::{Drops, Gate, Log, WATCH, drive, within};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_stop_ends_the_youngest_child_first() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        start(&tree, &log, "a");
        let below = tree.supervisor(patient(Strategy::OneForAll)).unwrap();
        start(&below, &log, "b");
        start(&below, &log, "c");
        let d = start(&tree, &log, "d");
        number(&d).await;
        log.take();
        tree.stop();
        tree.join().await.unwrap();
        below.join().await.unwrap();
        assert_eq!(log.take(), ["-d", "-c", "-b", "-a"]);
        assert_eq!((tree.children(), below.children()), (vec![], vec![]));
    });
}

#[test]
fn a_tree_that_is_stopped_early_begins_in_order_first() {
    /// Asks the other one before it handles anything.
    async fn web(mut cx: Context<Reply<u64>>, db: greenroom::Address<Job>) {
        let number = number(&db).await;
        while let Some(reply) = cx.recv().await {
            reply.send(number);
        }
    }
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::RestForOne).spawn().unwrap();
        let db = start(&tree, &log, "db");
        let of_web = db.clone();
        let web = actor(move |cx| web(cx, of_web.clone()));
        let web = tree.start(web).unwrap();
        let begun = Instant::now();
        let answer = web.request(|reply| reply);
        let stop = async { tree.stop() };
        let (answer, ()) = greenroom::concurrently((answer, stop)).await;
        assert_eq!(answer, Ok(0));
        tree.join().await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(1));
    });
}

#[test]
fn a_stop_ends_the_back_off_of_a_round_and_begins_it_in_order() {
    simulated(|| async {
        for strategy in [
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
        ] {
            let log = Log::default();
            let tree = patient(strategy).spawn().unwrap();
            let delays = RetryIntervals::every(LONG);
            let later = Restarts::on_fault().delays(delays);
            let own = log.clone();
            let a = actor(move |cx| child(cx, "a", own)).restart(later);
            let a = tree.start(a).unwrap();
            let b = start(&tree, &log, "b");
            number(&b).await;
            a.tell(Job::Fail).unwrap();
            a.tell(Job::Note(1)).unwrap();
            b.tell(Job::Note(2)).unwrap();
            while tree.children()[0].last_fault.is_none() {
                yield_now().await;
            }
            log.take();
            let begun = Instant::now();
            tree.stop();
            tree.join().await.unwrap();
            assert!(begun.elapsed() < LONG / 2);
            let log = log.take();
            let of = |what: &str| log.iter().position(|it| it == what).unwrap();
            assert!(of("+a") < of("a1") && of("-b") < of("-a"), "{log:?}");
        }
    });
}

#[test]
fn children_that_fail_during_the_stop_handle_what_was_accepted() {
    everywhere(|| async {
        for strategy in [Strategy::OneForOne, Strategy::OneForAll] {
            let log = Log::default();
            let tree = patient(strategy).spawn().unwrap();
            let children = start_three(&tree, &log);
            number(&children[2]).await;
            for child in &children {
                for number in 0..3 {
                    child.tell(Job::Note(number)).unwrap();
                    child.tell(Job::Fail).unwrap();
                }
            }
            tree.stop();
            tree.join().await.unwrap();
            let seen = log.take();
            for name in ["a", "b", "c"] {
                let notes = (0..3).map(|number| format!("{name}{number}"));
                let seen = seen.iter().filter(|it| it.starts_with(name));
                assert!(notes.eq(seen.cloned()), "{name}");
            }
        }
    });
}

#[test]
fn a_child_that_fails_too_often_during_the_stop_leaves_the_rest_undelivered() {
    everywhere(|| async {
        let (log, lost) = (Log::default(), Log::default());
        let tree = Supervisor::builder().intensity(2, LONG).spawn().unwrap();
        let (own, rest) = (log.clone(), lost.clone());
        let a = actor(move |cx| child(cx, "a", own)).on_undelivered(move |job| {
            if let Job::Note(number) = job {
                rest.add(number);
            }
        });
        let a = tree.start(a).unwrap();
        let (begun, gate) = (Gate::default(), Gate::default());
        let (reply, held) = Reply::pair();
        a.tell(Job::Hold(begun, gate.clone(), reply)).unwrap();
        for number in 0..5 {
            a.tell(Job::Fail).unwrap();
            a.tell(Job::Note(number)).unwrap();
        }
        tree.stop();
        wait_for(&tree, &a, ChildState::Stopping).await;
        gate.open();
        tree.join().await.unwrap();
        assert_eq!(held.await, Ok(()));
        assert_eq!(a.ended().await, End::Panicked);
        let notes: Vec<_> = (log.take().into_iter())
            .filter(|it| it.starts_with('a'))
            .collect();
        assert_eq!(
            (notes, lost.take()),
            (vec!["a0".into(), "a1".into()], vec![2, 3, 4])
        );
    });
}

#[test]
fn each_child_has_its_own_grace() {
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).grace(MINUTE).spawn().unwrap();
        let below = tree.supervisor(patient(Strategy::OneForOne).grace(2 * MINUTE));
        let below = below.unwrap();
        let in_below = start_three(&below, &log);
        let children = start_three(&tree, &log);
        all_run(&tree).await;
        let mut held = Vec::new();
        for child in children.iter().chain(&in_below) {
            held.push(hold(child).await);
        }
        let begun = Instant::now();
        tree.stop();
        tree.join().await.unwrap();
        let (least, took) = (9 * MINUTE, begun.elapsed());
        assert!(took >= least && took < least + MINUTE, "{took:?}");
        for held in held {
            assert_eq!(cause(held.await), AskCause::Killed);
        }
    });
}

#[test]
fn a_stop_in_a_round_waits_no_longer_than_the_grace() {
    simulated(|| async {
        for strategy in [
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
        ] {
            let (log, mut escaped) = (Log::default(), Vec::new());
            let top = patient(strategy).grace(MINUTE).spawn().unwrap();
            let below = top.supervisor(patient(strategy).grace(MINUTE)).unwrap();
            for tree in [&below, &top] {
                let [a, b, _c] = start_three(tree, &log);
                all_run(tree).await;
                all_have_begun(&top).await;
                escaped.push(escape(&b).await);
                match strategy {
                    Strategy::OneForOne => tree.restart(&b).unwrap(),
                    _ => a.tell(Job::Fail).unwrap(),
                }
                wait_for(tree, &b, ChildState::Restarting).await;
            }
            let begun = Instant::now();
            top.stop();
            top.join().await.unwrap();
            assert!(begun.elapsed() < 5 * MINUTE, "{:?}", begun.elapsed());
        }
    });
}

#[test]
fn a_child_that_begins_in_a_stop_has_its_grace_from_its_own_stop_on() {
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).grace(MINUTE).spawn().unwrap();
        let [a, b, c] = start_three(&tree, &log);
        all_run(&tree).await;
        let (place, _escaped) = escape(&c).await;
        a.tell(Job::Fail).unwrap();
        wait_for(&tree, &c, ChildState::Restarting).await;
        for child in [&b, &b, &c] {
            child.tell(Job::Sleep(MINUTE * 3 / 4)).unwrap();
        }
        let begun = Instant::now();
        tree.stop();
        sleep(MINUTE / 2).await;
        drop(place.lock().unwrap().take());
        for child in [&c, &b, &a] {
            assert_eq!(child.ended().await, End::Returned);
        }
        assert!(begun.elapsed() >= MINUTE * 3 / 2 + MINUTE / 2);
    });
}

#[test]
fn a_child_that_backs_off_begins_before_others_are_stopped() {
    /// Asks the other one about each message.
    async fn asks(mut cx: Context<Reply<u64>>, other: greenroom::Address<Job>) {
        while let Some(reply) = cx.recv().await {
            reply.send(number(&other).await);
        }
    }
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let delays = RetryIntervals::every(LONG);
        let later = Restarts::on_fault().delays(delays);
        let own = log.clone();
        let a = actor(move |cx| child(cx, "a", own)).restart(later);
        let a = tree.start(a).unwrap();
        let other = a.clone();
        let b = actor(move |cx| asks(cx, other.clone()));
        let b = tree.start(b).unwrap();
        a.tell(Job::Fail).unwrap();
        while tree.children()[0].last_fault.is_none() {
            yield_now().await;
        }
        let (reply, answer) = Reply::pair();
        b.tell(reply).unwrap();
        tree.stop();
        assert_eq!(answer.await, Ok(1));
        tree.join().await.unwrap();
    });
}

#[test]
fn what_is_started_from_many_threads_ends_in_order_or_comes_back() {
    within(WATCH, || {
        for round in 0..100 {
            on_two_workers(async {
                let log = Log::default();
                let tree = patient(Strategy::OneForAll).grace(LONG).spawn().unwrap();
                let starters = (0..3).map(|_| {
                    let (tree, log) = (tree.clone(), log.clone());
                    unblock(move || {
                        let mut started = Vec::new();
                        for _ in 0..5 {
                            let own = log.clone();
                            let one = actor(move |cx| child(cx, "a", own)).on(Detached);
                            let Ok(one) = tree.start(one) else { break };
                            let is_told = one.tell(Job::Note(1)).is_ok();
                            started.push((one, is_told));
                        }
                        started
                    })
                });
                let starters: Vec<_> = starters.collect();
                for _ in 0..round % 20 * 10 {
                    yield_now().await;
                }
                tree.stop();
                let mut notes = 0;
                for starter in starters {
                    for (child, is_told) in starter.await {
                        assert_eq!(child.ended().await, End::Returned);
                        notes += usize::from(is_told);
                    }
                }
                tree.join().await.unwrap();
                let log = log.take();
                assert_eq!(log.iter().filter(|it| **it == "a1").count(), notes);
            });
        }
    });
}

#[test]
fn the_drop_of_the_last_clone_stops_the_tree() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let clone = tree.clone();
        let [a, _b, c] = start_three(&tree, &log);
        drop(tree);
        assert_eq!(number(&c).await, 0);
        a.tell(Job::Note(1)).unwrap();
        drop(clone);
        assert_eq!(a.ended().await, End::Returned);
        let log: Vec<_> = (log.take().into_iter()).filter(|it| it != "a1").collect();
        assert_eq!(log, ["+a", "+b", "+c", "-c", "-b", "-a"]);
    });
}

#[test]
fn a_child_may_have_the_last_clone_of_its_supervisor() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let a = start(&tree, &log, "a");
        let own = tree.clone();
        let b = actor(move |mut cx: Context<Option<Supervisor>>| async move {
            while let Some(tree) = cx.recv().await {
                drop(tree);
            }
        });
        let b = tree.start(b).unwrap();
        b.tell(Some(own)).unwrap();
        drop(tree);
        assert_eq!(
            (b.ended().await, a.ended().await),
            (End::Returned, End::Returned)
        );
    });
}

#[test]
fn a_supervisor_lets_go_of_what_its_children_had() {
    everywhere(|| async {
        let drops = Drops::default();
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let mut children = Vec::new();
        for _ in 0..3 {
            let one = std::sync::Arc::new(drops.one());
            let child = actor(move |mut cx: Context<()>| async move {
                let _one = one;
                cx.recv().await;
                panic!("bomb");
            });
            children.push(tree.start(child.restart(Restarts::on_fault())).unwrap());
        }
        children[1].tell(()).unwrap();
        while tree.children()[1].restarts == 0 {
            yield_now().await;
        }
        assert_eq!(drops.count(), 0);
        tree.stop();
        tree.join().await.unwrap();
        assert_eq!(drops.count(), 3);
    });
}

#[test]
fn a_child_that_is_started_after_a_stop_comes_back() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let a = start(&tree, &log, "a");
        let held = hold(&a).await;
        tree.stop();
        for _ in 0..2 {
            let own = log.clone();
            let late = actor(move |cx| child(cx, "late", own)).restart(Restarts::always());
            let error = tree.start(late).unwrap_err();
            assert!(matches!(error, StartError::Stopping(_)));
            let below = Supervisor::builder().name("below");
            let error = tree.supervisor(below).unwrap_err();
            assert!(matches!(error, StartError::Stopping(_)));
            a.kill();
            tree.join().await.unwrap();
        }
        assert_eq!(cause(held.await), AskCause::Killed);
    });
}

/// A tree with a tree in it, in which something goes on.
async fn busy_tree(strategy: Strategy, turns: u64) -> (Supervisor, Vec<Escaped>) {
    let (log, mut escaped) = (Log::default(), Vec::new());
    let top = patient(strategy).spawn().unwrap();
    let below = top.supervisor(patient(strategy)).unwrap();
    for tree in [&below, &top] {
        let children = start_three(tree, &log);
        all_run(tree).await;
        all_have_begun(&top).await;
        if turns.is_multiple_of(2) {
            escaped.push(escape(&children[1]).await);
        }
        for child in &children {
            child.tell(Job::Fail).unwrap();
            child.tell(Job::Note(1)).unwrap();
        }
    }
    for _ in 0..turns {
        yield_now().await;
    }
    (top, escaped)
}

#[test]
fn a_shutdown_ends_a_tree_in_any_phase() {
    let check = |runtime: Runtime, turns| {
        let strategy = [Strategy::OneForAll, Strategy::RestForOne][turns as usize / 2 % 2];
        let (tree, _escaped) = runtime.block_on(busy_tree(strategy, turns));
        drop(runtime);
        drive(tree.join()).unwrap();
        assert_eq!(tree.children(), []);
        let late = tree.supervisor(Supervisor::builder()).unwrap_err();
        assert!(matches!(late, StartError::Stopping(_)));
    };
    within(WATCH, move || {
        for turns in 0..100 {
            let grace = [Duration::ZERO, MINUTE, LONG][turns as usize % 3];
            let builder = Runtime::builder().grace(grace).on_fault(|_| {});
            let policy = Simulated::new(turns);
            check(builder.policy(policy).build().unwrap(), turns);
        }
        for turns in 0..20 {
            let builder = Runtime::builder().grace(Duration::ZERO).on_fault(|_| {});
            check(builder.workers(2).build().unwrap(), turns);
        }
    });
}
