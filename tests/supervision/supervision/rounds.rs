//! Rounds: the children that a failure restarts, and the order in which they begin.

use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

use futures::future::join_all;
use greenroom::supervise::{ChildState, Restarts, Strategy, Supervisor};
use greenroom::time::{Instant, RetryIntervals, sleep};
use greenroom::{AskCause, Context, Runtime, actor, yield_now};

use super::{
    Job, LONG, all_run, cause, child, escape, everywhere, number, patient, simulated, start,
    start_three,
};
use crate::support::{Log, WATCH, within};

/// Fails b, and returns what happened, and the numbers of the incarnations of a, b and c.
async fn restarted_by(strategy: Strategy) -> (Vec<String>, [u64; 3]) {
    let log = Log::default();
    let tree = patient(strategy).spawn().unwrap();
    let [a, b, c] = start_three(&tree, &log);
    number(&c).await;
    log.take();
    b.tell(Job::Fail).unwrap();
    number(&b).await;
    let numbers = [number(&a).await, number(&b).await, number(&c).await];
    let seen = log.take();
    tree.stop();
    tree.join().await.unwrap();
    assert_eq!(log.take(), ["-c", "-b", "-a"]);
    (seen, numbers)
}

#[test]
fn each_strategy_restarts_its_children_in_order() {
    everywhere(|| async {
        let (log, numbers) = restarted_by(Strategy::OneForOne).await;
        assert_eq!((log, numbers), (vec!["-b".into(), "+b".into()], [0, 1, 0]));

        let (mut log, numbers) = restarted_by(Strategy::RestForOne).await;
        log[..2].sort();
        assert_eq!(log, ["-b", "-c", "+b", "+c"]);
        assert_eq!(numbers, [0, 1, 1]);

        let (mut log, numbers) = restarted_by(Strategy::OneForAll).await;
        log[..3].sort();
        assert_eq!(log, ["-a", "-b", "-c", "+a", "+b", "+c"]);
        assert_eq!(numbers, [1, 1, 1]);
    });
}

#[test]
fn children_begin_in_the_order_of_their_start() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let [a, ..] = start_three(&tree, &log);
        let below = tree.supervisor(patient(Strategy::OneForOne)).unwrap();
        all_run(&tree).await;
        assert_eq!(log.take(), ["+a", "+b", "+c"]);
        start(&below, &log, "d");
        start(&below, &log, "e");
        all_run(&below).await;
        let f = start(&tree, &log, "f");
        number(&f).await;
        assert_eq!(log.take(), ["+d", "+e", "+f"]);
        a.tell(Job::Fail).unwrap();
        while number(&f).await == 0 {
            yield_now().await;
        }
        let begun: Vec<_> = (log.take().into_iter())
            .filter(|it| it.starts_with('+'))
            .collect();
        assert_eq!(begun, ["+a", "+b", "+c", "+d", "+e", "+f"]);
    });
}

#[test]
fn a_child_that_fails_while_another_begins_is_restarted() {
    everywhere(|| async {
        for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
            let log = Log::default();
            let tree = patient(strategy).spawn().unwrap();
            let [a, b, c] = start_three(&tree, &log);
            for _ in 0..5 {
                a.tell(Job::Fail).unwrap();
                yield_now().await;
                b.tell(Job::Fail).unwrap();
            }
            for child in [a, b, c] {
                number(&child).await;
            }
            tree.stop();
            tree.join().await.unwrap();
        }
    });
}

#[test]
fn messages_survive_each_strategy_in_order() {
    everywhere(|| async {
        for strategy in [
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
        ] {
            let log = Log::default();
            let tree = patient(strategy).spawn().unwrap();
            let children = start_three(&tree, &log);
            for number in 0..10 {
                for child in &children {
                    child.tell(Job::Note(number)).unwrap();
                    if number % 3 == 1 {
                        child.tell(Job::Fail).unwrap();
                    }
                }
                yield_now().await;
            }
            tree.stop();
            tree.join().await.unwrap();
            let seen = log.take();
            for name in ["a", "b", "c"] {
                let notes = (0..10).map(|number| format!("{name}{number}"));
                let seen = seen.iter().filter(|it| it.starts_with(name));
                assert!(notes.eq(seen.cloned()), "{name}");
            }
        }
    });
}

#[test]
fn a_round_begins_nothing_before_all_contexts_are_back() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let [a, b, c] = start_three(&tree, &log);
        number(&c).await;
        let (place, escaped) = escape(&c).await;
        a.tell(Job::Fail).unwrap();
        while log.len() < 5 {
            yield_now().await;
        }
        assert_eq!(log.take()[..3], ["+a", "+b", "+c"]);
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(log.take(), [""; 0], "the context of c is elsewhere");
        drop(place.lock().unwrap().take());
        number(&b).await;
        number(&c).await;
        assert_eq!(log.take(), ["-c", "+a", "+b", "+c"]);
        assert_eq!(cause(escaped.await), AskCause::Restarted);
    });
}

#[test]
fn the_back_off_of_one_child_delays_its_round_and_nothing_else() {
    simulated(|| async {
        for (strategy, waits) in [
            (Strategy::OneForOne, [false, true, false]),
            (Strategy::RestForOne, [false, true, true]),
            (Strategy::OneForAll, [true, true, true]),
        ] {
            let log = Log::default();
            let tree = patient(strategy).spawn().unwrap();
            let a = start(&tree, &log, "a");
            let own = log.clone();
            let hour = Duration::from_secs(3600);
            let delays = RetryIntervals::every(hour);
            let later = Restarts::on_fault().delays(delays);
            let b = actor(move |cx| child(cx, "b", own)).restart(later);
            let b = tree.start(b).unwrap();
            let c = start(&tree, &log, "c");
            number(&c).await;
            b.tell(Job::Fail).unwrap();
            let begun = Instant::now();
            wait_for_back_off(&tree, &b).await;
            let asked = [&a, &b, &c].map(|child| async move {
                number(child).await;
                begun.elapsed() >= hour
            });
            assert_eq!(join_all(asked).await, waits);
            assert!(begun.elapsed() < hour * 2);
        }
    });
}

/// Waits until a child backs off.
async fn wait_for_back_off(tree: &Supervisor, child: &greenroom::Address<Job>) {
    loop {
        let children = tree.children();
        let status = children.iter().find(|it| it.id == child.id()).unwrap();
        if let ChildState::BackingOff { left } = status.state {
            assert!(!left.is_zero());
            return;
        }
        yield_now().await;
    }
}

#[test]
fn a_round_waits_for_the_longest_back_off_in_it() {
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::RestForOne).spawn().unwrap();
        let hour = Duration::from_secs(3600);
        let [a, b] = [1, 2].map(|hours| {
            let delays = RetryIntervals::every(hour * hours);
            let later = Restarts::on_fault().delays(delays);
            let log = log.clone();
            let child = actor(move |cx| child(cx, "child", log)).restart(later);
            tree.start(child).unwrap()
        });
        all_run(&tree).await;
        let begun = Instant::now();
        b.tell(Job::Fail).unwrap();
        wait_for_back_off(&tree, &b).await;
        a.tell(Job::Fail).unwrap();
        number(&b).await;
        assert!(begun.elapsed() >= hour * 2 && begun.elapsed() < hour * 3);
    });
}

#[test]
fn a_stale_wake_up_ends_no_back_off() {
    simulated(|| async {
        let wakers = Log::default();
        let stored = wakers.clone();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let hour = Duration::from_secs(3600);
        let delays = RetryIntervals::every(hour);
        let later = Restarts::on_fault().delays(delays);
        let a = actor(move |mut cx: Context<()>| {
            let stored = stored.clone();
            async move {
                stored.add(poll_fn(|cx| Poll::Ready(cx.waker().clone())).await);
                cx.recv().await;
                panic!("bomb");
            }
        });
        let a = tree.start(a.restart(later)).unwrap();
        a.tell(()).unwrap();
        while tree.children()[0].last_fault.is_none() {
            yield_now().await;
        }
        let begun = Instant::now();
        for _ in 0..10 {
            wakers.take().into_iter().for_each(Waker::wake);
            a.tell(()).unwrap();
            yield_now().await;
        }
        while tree.children()[0].restarts == 0 {
            sleep(hour / 4).await;
        }
        assert!(begun.elapsed() >= hour);
    });
}

#[test]
fn children_that_always_fail_keep_the_supervisor_from_nothing() {
    within(WATCH, || {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        runtime.block_on(async {
            let tree = patient(Strategy::OneForOne).spawn().unwrap();
            // So many that there are more reports than the supervisor takes in a turn.
            for _ in 0..200 {
                let any = Restarts::always().intensity(u32::MAX, LONG);
                let fails = actor(|_: Context<()>| std::future::ready(()));
                tree.start(fails.restart(any)).unwrap();
            }
            let last = start(&tree, &Log::default(), "last");
            assert_eq!(number(&last).await, 0);
            tree.stop();
            tree.join().await.unwrap();
        });
    });
}
