//! Orders for one child: restarts by hand, stops and kills.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use greenroom::supervise::{ChildState, Restarts, Strategy, Supervisor};
use greenroom::time::{Instant, RetryIntervals};
use greenroom::{AskCause, Context, End, actor, yield_now};

use super::{
    Job, LONG, all_run, cause, child, escape, everywhere, hold, number, on_two_workers, patient,
    simulated, start, start_three, wait_for, wait_for_id,
};
use crate::support::{Log, WATCH, within};

#[test]
fn a_child_is_restarted_by_hand() {
    everywhere(|| async {
        let log = Log::default();
        let tree = Supervisor::builder().name("tree").spawn().unwrap();
        let [a, b, _c] = start_three(&tree, &log);
        let held = hold(&a).await;
        wait_for(&tree, &a, ChildState::Running).await;
        tree.restart(&a).unwrap();
        assert_eq!(cause(held.await), AskCause::Restarted);
        assert_eq!((number(&a).await, number(&b).await), (1, 0));
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn a_child_may_be_restarted_by_hand_at_any_time() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::RestForOne).spawn().unwrap();
        let children = start_three(&tree, &log);
        for round in 0..20 {
            let child = &children[round % 3];
            tree.restart(child).unwrap();
            if round % 4 == 3 {
                children[round % 2].tell(Job::Fail).unwrap();
            }
            yield_now().await;
        }
        for child in &children {
            number(child).await;
        }
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn restarts_by_hand_count_against_no_intensity() {
    everywhere(|| async {
        let log = Log::default();
        let tree = Supervisor::builder().intensity(0, LONG).spawn().unwrap();
        let own = log.clone();
        let a = actor(move |cx| child(cx, "a", own));
        let a = a.restart(Restarts::on_fault().intensity(0, LONG));
        let a = tree.start(a).unwrap();
        for round in 1..=10 {
            all_run(&tree).await;
            tree.restart(&a).unwrap();
            while number(&a).await < round {
                yield_now().await;
            }
        }
        a.tell(Job::Fail).unwrap();
        tree.join().await.unwrap_err();
    });
}

#[test]
fn a_restart_by_hand_ends_a_back_off() {
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let delays = RetryIntervals::every(LONG);
        let later = Restarts::on_fault().delays(delays);
        let a = actor(move |cx| child(cx, "a", log)).restart(later);
        let a = tree.start(a).unwrap();
        a.tell(Job::Fail).unwrap();
        while tree.children()[0].last_fault.is_none() {
            yield_now().await;
        }
        let begun = Instant::now();
        tree.restart(&a).unwrap();
        assert_eq!(number(&a).await, 1);
        assert!(begun.elapsed() < LONG / 2);
    });
}

#[test]
fn a_child_that_is_stopped_handles_its_messages_and_leaves_the_others() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).spawn().unwrap();
        let [a, b, c] = start_three(&tree, &log);
        number(&c).await;
        log.take();
        for number in 0..3 {
            b.tell(Job::Note(number)).unwrap();
            b.tell(Job::Fail).unwrap();
        }
        b.tell(Job::Note(3)).unwrap();
        tree.stop_child(&b).unwrap();
        assert_eq!(b.ended().await, End::Returned);
        let notes: Vec<_> = (log.take().into_iter())
            .filter(|it| !it.starts_with(['-', '+']))
            .collect();
        assert_eq!(notes, ["b0", "b1", "b2", "b3"]);
        while tree.children().len() > 2 {
            yield_now().await;
        }
        number(&a).await;
        number(&c).await;
        let error = tree.stop_child(&b).unwrap_err();
        assert_eq!(
            (error.actor().id(), error.actor().name()),
            (b.id(), Some("b"))
        );
    });
}

#[test]
fn a_stopped_child_that_does_not_end_is_killed_after_the_grace() {
    simulated(|| async {
        let log = Log::default();
        let grace = Duration::from_secs(60);
        let tree = patient(Strategy::OneForOne).grace(grace).spawn().unwrap();
        let [a, b, c] = start_three(&tree, &log);
        all_run(&tree).await;
        let held = hold(&a).await;
        let (place, escaped) = escape(&b).await;
        let begun = Instant::now();
        tree.stop_child(&a).unwrap();
        tree.stop_child(&b).unwrap();
        tree.stop_child(&a).unwrap();
        assert_eq!(a.ended().await, End::Killed);
        assert_eq!(b.ended().await, End::Killed);
        let took = begun.elapsed();
        assert!(
            took >= grace && took < grace + Duration::from_secs(1),
            "{took:?}"
        );
        assert_eq!(cause(held.await), AskCause::Killed);
        assert_eq!(cause(escaped.await), AskCause::Killed);
        drop(place);
        assert_eq!(number(&c).await, 0);
    });
}

#[test]
fn a_child_that_backs_off_begins_at_once_when_it_is_stopped() {
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let delays = RetryIntervals::every(LONG);
        let later = Restarts::on_fault().delays(delays);
        let own = log.clone();
        let a = actor(move |cx| child(cx, "a", own)).restart(later);
        let a = tree.start(a).unwrap();
        a.tell(Job::Fail).unwrap();
        a.tell(Job::Note(1)).unwrap();
        while tree.children()[0].last_fault.is_none() {
            yield_now().await;
        }
        let begun = Instant::now();
        tree.stop_child(&a).unwrap();
        assert_eq!(a.ended().await, End::Returned);
        assert!(begun.elapsed() < Duration::from_secs(1));
        assert_eq!(log.take(), ["+a", "-a", "+a", "a1", "-a"]);
    });
}

#[test]
fn a_child_that_backs_off_ends_at_once_when_its_address_stops_it() {
    simulated(|| async {
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let delays = RetryIntervals::every(LONG);
        let later = Restarts::on_fault().delays(delays);
        let log = Log::default();
        let own = log.clone();
        let a = actor(move |cx| child(cx, "a", own)).restart(later);
        let a = tree.start(a).unwrap();
        a.tell(Job::Fail).unwrap();
        while tree.children()[0].last_fault.is_none() {
            yield_now().await;
        }
        let begun = Instant::now();
        a.stop();
        assert_eq!(a.ended().await, End::Panicked);
        assert!(begun.elapsed() < Duration::from_secs(1));
        assert_eq!(log.take(), ["+a", "-a"]);
    });
}

#[test]
fn a_kill_is_final_and_no_failure() {
    everywhere(|| async {
        for strategy in [Strategy::OneForOne, Strategy::OneForAll] {
            let log = Log::default();
            let tree = patient(strategy).intensity(0, LONG).spawn().unwrap();
            let [a, b, c] = start_three(&tree, &log);
            number(&c).await;
            b.kill();
            assert_eq!(b.ended().await, End::Killed);
            while tree.children().len() > 2 {
                yield_now().await;
            }
            assert_eq!((number(&a).await, number(&c).await), (0, 0));
            tree.stop();
            tree.join().await.unwrap();
        }
    });
}

#[test]
fn a_round_goes_on_without_a_child_that_is_killed_in_it() {
    everywhere(|| async {
        for killed in 0..3 {
            let log = Log::default();
            let tree = patient(Strategy::OneForAll).spawn().unwrap();
            let children = start_three(&tree, &log);
            all_run(&tree).await;
            let (_place, _answer) = escape(&children[killed]).await;
            children[(killed + 1) % 3].tell(Job::Fail).unwrap();
            while (tree.children().iter()).any(|it| it.state == ChildState::Running) {
                yield_now().await;
            }
            children[killed].kill();
            let others = (0..3).filter(|other| *other != killed);
            for other in others {
                assert_eq!(number(&children[other]).await, 1);
            }
            tree.stop();
            tree.join().await.unwrap();
        }
    });
}

#[test]
fn a_child_that_returns_ends_and_does_not_come_back() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll)
            .intensity(0, LONG)
            .spawn()
            .unwrap();
        let [a, b, c] = start_three(&tree, &log);
        b.tell(Job::Return).unwrap();
        assert_eq!(b.ended().await, End::Returned);
        assert_eq!((number(&a).await, number(&c).await), (0, 0));
        let own = log.clone();
        let always = actor(move |cx| child(cx, "d", own)).restart(Restarts::always());
        let d = tree.start(always).unwrap();
        d.tell(Job::Return).unwrap();
        let escalated = tree.join().await.unwrap_err();
        assert_eq!(
            (escalated.child().id(), escalated.faults().len()),
            (d.id(), 0)
        );
    });
}

#[test]
fn a_stopped_child_is_dropped_and_begun_with_its_round() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).grace(LONG).spawn().unwrap();
        let [a, b, _c] = start_three(&tree, &log);
        all_run(&tree).await;
        let held = hold(&b).await;
        b.tell(Job::Note(1)).unwrap();
        tree.stop_child(&b).unwrap();
        a.tell(Job::Fail).unwrap();
        assert_eq!(b.ended().await, End::Returned);
        assert_eq!(cause(held.await), AskCause::Restarted);
        let log = log.take();
        assert_eq!(log.iter().filter(|it| **it == "b1").count(), 1);
    });
}

#[test]
fn a_child_that_fails_too_often_while_it_is_stopped_ends_without_its_grace() {
    within(WATCH, || {
        on_two_workers(async {
            for _ in 0..1000 {
                let tree = patient(Strategy::OneForOne).grace(LONG).spawn().unwrap();
                let a = actor(|mut cx: greenroom::Context<bool>| async move {
                    while let Some(fails) = cx.recv().await {
                        assert!(!fails, "bomb");
                    }
                });
                let a = a.restart(Restarts::on_fault().intensity(0, LONG));
                let a = tree.start(a.on_undelivered(drop)).unwrap();
                all_run(&tree).await;
                a.tell(true).unwrap();
                // Perhaps the supervisor has given up already.
                let _ = a.tell(false);
                let _ = tree.stop_child(&a);
                a.ended().await;
            }
        });
    });
}

#[test]
fn a_stopped_child_that_waits_in_a_round_has_its_grace_when_it_begins() {
    simulated(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForAll).grace(Duration::from_secs(1));
        let tree = tree.spawn().unwrap();
        let own = log.clone();
        let delay = Duration::from_secs(100);
        let a = actor(move |cx| child(cx, "a", own));
        let a = a.restart(Restarts::on_fault().stand_down(delay));
        let a = tree.start(a).unwrap();
        let b = start(&tree, &log, "b");
        all_run(&tree).await;
        a.tell(Job::Fail).unwrap();
        wait_for(&tree, &b, ChildState::Restarting).await;
        b.tell(Job::Note(7)).unwrap();
        tree.stop_child(&b).unwrap();
        assert_eq!(b.ended().await, End::Returned);
        assert_eq!(log.take(), ["+a", "+b", "-a", "-b", "+a", "+b", "b7", "-b"]);
        tree.stop();
        tree.join().await.unwrap();
    });
}

#[test]
fn an_intensity_that_is_used_up_while_the_child_is_dropped_counts() {
    within(WATCH, || {
        for strategy in [Strategy::OneForAll, Strategy::OneForOne] {
            on_two_workers(async move {
                let log = Log::default();
                let tree = patient(strategy).spawn().unwrap();
                let a = start(&tree, &log, "a");
                let (begun, begins) = mpsc::channel();
                let (go_on, goes_on) = mpsc::channel::<()>();
                let goes_on = Arc::new(Mutex::new(goes_on));
                let blocking = actor(async move |mut cx: Context<()>| {
                    cx.recv().await;
                    begun.send(()).unwrap();
                    goes_on.lock().unwrap().recv().unwrap();
                    panic!("bomb blocking");
                });
                let none = Restarts::on_fault().intensity(0, LONG);
                let blocking = tree.start(blocking.restart(none)).unwrap();
                all_run(&tree).await;
                blocking.tell(()).unwrap();
                begins.recv().unwrap();
                match strategy {
                    Strategy::OneForAll => a.tell(Job::Fail).unwrap(),
                    _ => tree.restart(&blocking).unwrap(),
                }
                wait_for_id(&tree, blocking.id(), ChildState::Restarting).await;
                go_on.send(()).unwrap();
                let escalated = tree.join().await.unwrap_err();
                assert_eq!(escalated.child().id(), blocking.id());
            });
        }
    });
}
