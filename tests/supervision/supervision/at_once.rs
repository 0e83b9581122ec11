//! The end of a tree at once: in reverse order, without what was accepted, and within bounds.

use std::time::Duration;

use greenroom::supervise::{ChildState, ChildStatus, Restarts, Strategy};
use greenroom::time::{Instant, RetryIntervals};
use greenroom::{Address, AskCause, AskError, Reply, actor, yield_now};

use super::{
    Job, LONG, cause, child, everywhere, hold, number, patient, simulated, start, start_three,
    wait_for,
};
use crate::support::{Gate, Log};

/// Lets a child hold a message until the second gate opens. Returns when it does.
async fn hold_until(child: &Address<Job>, until: &Gate) {
    let holds = Gate::default();
    let (reply, _answer) = Reply::pair();
    child
        .tell(Job::Hold(holds.clone(), until.clone(), reply))
        .unwrap();
    holds.wait().await;
}

async fn until_closed(child: &Address<Job>) {
    while !child.is_closed() {
        yield_now().await;
    }
}

#[test]
fn a_tree_that_is_stopped_at_once_ends_its_youngest_child_first() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let a = start(&tree, &log, "a");
        let below = tree.supervisor(patient(Strategy::OneForAll)).unwrap();
        start(&below, &log, "b");
        let c = start(&below, &log, "c");
        let d = start(&tree, &log, "d");
        number(&d).await;
        log.take();
        let [of_a, of_c] = [Gate::default(), Gate::default()];
        for (held, until) in [(&a, &of_a), (&c, &of_c)] {
            hold_until(held, until).await;
            held.tell(Job::Note(1)).unwrap();
        }
        tree.stop_now();
        d.closed().await;
        until_closed(&c).await;
        // The older ones go on until it has ended.
        assert!(!a.is_closed());
        of_c.open();
        until_closed(&a).await;
        of_a.open();
        tree.join().await.unwrap();
        below.join().await.unwrap();
        assert_eq!(log.take(), ["-d", "-c", "-b", "-a"]);
    });
}

#[test]
fn a_stop_at_once_drops_what_a_stop_has_left() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let [a, _, c] = start_three(&tree, &log);
        number(&c).await;
        log.take();
        let [of_a, of_c] = [Gate::default(), Gate::default()];
        for (held, until) in [(&a, &of_a), (&c, &of_c)] {
            hold_until(held, until).await;
            held.tell(Job::Note(1)).unwrap();
        }
        tree.stop();
        until_closed(&c).await;
        tree.stop_now();
        // It has reached the child when the child refuses for that reason.
        loop {
            match c.ask(Job::Number).await {
                Err(AskError::Closed(detail)) if *detail.why() == AskCause::StoppedNow => break,
                _ => yield_now().await,
            }
        }
        of_c.open();
        until_closed(&a).await;
        of_a.open();
        tree.join().await.unwrap();
        assert_eq!(log.take(), ["-c", "-b", "-a"]);
    });
}

#[test]
fn a_child_that_does_not_end_at_once_is_killed_after_the_grace() {
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).grace(Duration::from_secs(3));
        let tree = tree.spawn().unwrap();
        let [_, b, _] = start_three(&tree, &log);
        let held = hold(&b).await;
        let begun = Instant::now();
        tree.stop_now();
        tree.join().await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert_eq!(cause(held.await), AskCause::Killed);
    });
}

#[test]
fn a_child_that_backs_off_does_not_begin_again_before_it_ends_at_once() {
    simulated(|| async {
        for strategy in [
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
        ] {
            let log = Log::default();
            let tree = patient(strategy).spawn().unwrap();
            let later = Restarts::on_fault().delays(RetryIntervals::every(LONG));
            let own = log.clone();
            let a = actor(move |cx| child(cx, "a", own)).restart(later);
            let a = tree.start(a).unwrap();
            let b = start(&tree, &log, "b");
            number(&b).await;
            a.tell(Job::Fail).unwrap();
            loop {
                let backs_off = |it: &ChildStatus| {
                    it.id == a.id()
                        && matches!(
                            it.state,
                            ChildState::BackingOff { .. } | ChildState::Restarting
                        )
                };
                if tree.children().iter().any(backs_off) {
                    break;
                }
                yield_now().await;
            }
            let _ = a.tell(Job::Note(1));
            let begun = Instant::now();
            tree.stop_now();
            tree.join().await.unwrap();
            assert!(begun.elapsed() < Duration::from_secs(1));
            let begins = log.take().iter().filter(|entry| *entry == "+a").count();
            assert_eq!(begins, 1, "{strategy:?}");
        }
    });
}

#[test]
fn a_supervisor_below_that_waits_ends_at_once_with_its_children() {
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let later = Restarts::on_fault().delays(RetryIntervals::every(LONG));
        let own = log.clone();
        let a = actor(move |cx| child(cx, "a", own)).restart(later);
        let a = tree.start(a).unwrap();
        let below = tree.supervisor(patient(Strategy::OneForOne)).unwrap();
        let b = start(&below, &log, "b");
        number(&b).await;
        a.tell(Job::Fail).unwrap();
        wait_for(&below, &b, ChildState::Restarting).await;
        tree.stop_now();
        tree.join().await.unwrap();
        below.join().await.unwrap();
        assert!(b.is_closed());
    });
}
