//! Supervisors below supervisors: what is restarted, and who is told why.

use greenroom::supervise::{ChildState, Restarts, Strategy, Supervisor};
use greenroom::{Context, actor, yield_now};

use super::{
    Job, LONG, all_run, cause, child, escape, everywhere, hold, number, patient, start, start_three,
};
use crate::support::{Log, names};

#[test]
fn a_supervisor_whose_intensity_is_used_up_stops_its_children_and_says_why() {
    everywhere(|| async {
        let log = Log::default();
        let tree = Supervisor::builder().intensity(1, LONG).spawn().unwrap();
        let [a, b, c] = start_three(&tree, &log);
        b.tell(Job::Fail).unwrap();
        assert_eq!(number(&b).await, 1);
        b.tell(Job::Fail).unwrap();
        let escalated = tree.join().await.unwrap_err();
        assert_eq!(escalated.child().id(), b.id());
        assert_eq!(escalated.faults().collect::<Vec<_>>(), ["bomb b"; 2]);
        let text = names(&escalated.to_string());
        assert_eq!(text, "b failed too often, at last: bomb b");
        assert!(a.is_closed() && c.is_closed());
        assert_eq!(tree.children(), []);
    });
}

#[test]
fn the_error_has_the_last_10_faults() {
    everywhere(|| async {
        let tree = Supervisor::builder().intensity(20, LONG).spawn().unwrap();
        let a = actor(|mut cx: Context<u32>| async move {
            let number = cx.recv().await;
            panic!("bomb {number:?}");
        });
        let any = Restarts::on_fault().intensity(u32::MAX, LONG);
        let a = tree.start(a.restart(any)).unwrap();
        for number in 0..30 {
            a.tell(number).unwrap();
        }
        let escalated = tree.join().await.unwrap_err();
        let last = (11..=20).map(|number| format!("bomb Some({number})"));
        assert!(last.eq(escalated.faults()), "{escalated:?}");
    });
}

#[test]
fn the_intensity_of_a_child_is_judged_before_that_of_its_supervisor() {
    everywhere(|| async {
        let log = Log::default();
        let tree = patient(Strategy::OneForOne).spawn().unwrap();
        let own = log.clone();
        let a = actor(move |cx| child(cx, "a", own)).name("a");
        let a = a.restart(Restarts::on_fault().intensity(2, LONG));
        let a = tree.start(a).unwrap();
        let b = start(&tree, &log, "b");
        for _ in 0..3 {
            a.tell(Job::Fail).unwrap();
            b.tell(Job::Fail).unwrap();
        }
        let escalated = tree.join().await.unwrap_err();
        assert_eq!(escalated.child().id(), a.id());
        assert_eq!(escalated.faults().len(), 3);
    });
}

#[test]
fn a_supervisor_below_is_restarted_with_all_its_addresses() {
    everywhere(|| async {
        let log = Log::default();
        let top = Supervisor::builder().name("top").spawn().unwrap();
        let below = Supervisor::builder().intensity(0, LONG).name("below");
        let below = top.supervisor(below).unwrap();
        let [a, b, c] = start_three(&below, &log);
        number(&c).await;
        b.tell(Job::Fail).unwrap();
        assert_eq!(number(&b).await, 1);
        assert_eq!((number(&a).await, number(&c).await), (1, 1));
        all_run(&top).await;
        let status = &top.children()[0];
        assert_eq!((status.restarts, status.incarnation), (1, 1));
        assert_eq!(status.last_fault.as_deref(), Some("bomb b"));
        for _ in 0..5 {
            b.tell(Job::Fail).unwrap();
            b.ask(Job::Number).await.ok();
        }
        let escalated = top.join().await.unwrap_err();
        assert_eq!(escalated.child().name(), Some("below"));
        assert_eq!(escalated.faults().collect::<Vec<_>>(), ["bomb b"; 6]);
        let escalated = below.join().await.unwrap_err();
        assert_eq!(escalated.child().name(), Some("b"));
        assert!(a.is_closed());
    });
}

#[test]
fn a_supervisor_that_is_restarted_has_all_its_intensity_again() {
    everywhere(|| async {
        let log = Log::default();
        let top = patient(Strategy::OneForAll).spawn().unwrap();
        let below = top.supervisor(Supervisor::builder().intensity(1, LONG));
        let below = below.unwrap();
        let [a, _b, _c] = start_three(&below, &log);
        let d = start(&top, &log, "d");
        for failures in 1..=9_u64 {
            a.tell(Job::Fail).unwrap();
            // Every second failure restarts the whole tree.
            assert_eq!(
                (number(&a).await, number(&d).await),
                (failures, failures / 2)
            );
        }
        all_run(&top).await;
        assert_eq!(top.children()[0].restarts, 4);
        top.stop();
        top.join().await.unwrap();
        below.join().await.unwrap();
    });
}

#[test]
fn a_round_above_drops_everything_below_first() {
    everywhere(|| async {
        let log = Log::default();
        let top = patient(Strategy::OneForAll).spawn().unwrap();
        let a = start(&top, &log, "a");
        let below = top.supervisor(patient(Strategy::OneForOne)).unwrap();
        let lowest = below.supervisor(patient(Strategy::OneForOne)).unwrap();
        let b = start(&lowest, &log, "b");
        let c = start(&below, &log, "c");
        number(&c).await;
        all_run(&top).await;
        let (place, escaped) = escape(&b).await;
        let held = hold(&c).await;
        log.take();
        a.tell(Job::Fail).unwrap();
        assert_eq!(cause(held.await), greenroom::AskCause::Restarted);
        let is_told = || lowest.children()[0].state == ChildState::Restarting;
        while log.len() < 2 || !is_told() {
            yield_now().await;
        }
        for _ in 0..100 {
            yield_now().await;
        }
        assert_eq!(log.take(), ["-a", "-c"]);
        assert_eq!(lowest.children()[0].state, ChildState::Restarting);
        drop(place.lock().unwrap().take());
        drop(escaped);
        number(&c).await;
        assert_eq!(log.take(), ["-b", "+a", "+b", "+c"]);
    });
}

#[test]
fn a_supervisor_that_gives_up_in_a_round_above_takes_part_in_it() {
    everywhere(|| async {
        let log = Log::default();
        let top = patient(Strategy::OneForAll).spawn().unwrap();
        let below = top.supervisor(Supervisor::builder().intensity(0, LONG));
        let below = below.unwrap();
        let b = start(&below, &log, "b");
        let a = start(&top, &log, "a");
        for _ in 0..5 {
            a.tell(Job::Fail).unwrap();
            b.tell(Job::Fail).unwrap();
            yield_now().await;
        }
        number(&a).await;
        number(&b).await;
        top.stop();
        top.join().await.unwrap();
    });
}

#[test]
fn a_supervisor_below_may_be_stopped_at_any_time() {
    everywhere(|| async {
        for turns in 0..10 {
            let log = Log::default();
            let top = patient(Strategy::OneForAll).spawn().unwrap();
            let below = top.supervisor(Supervisor::builder().intensity(0, LONG));
            let below = below.unwrap();
            let [a, _b, c] = start_three(&below, &log);
            let d = start(&top, &log, "d");
            a.tell(Job::Fail).unwrap();
            c.tell(Job::Note(1)).unwrap();
            d.tell(Job::Fail).unwrap();
            for _ in 0..turns {
                yield_now().await;
            }
            below.stop();
            below.join().await.unwrap();
            number(&d).await;
            assert_eq!(log.take().iter().filter(|it| **it == "c1").count(), 1);
            while top.children().len() > 1 {
                yield_now().await;
            }
            top.stop();
            top.join().await.unwrap();
        }
    });
}

#[test]
fn the_children_of_a_stopped_supervisor_begin_with_the_round_above() {
    everywhere(|| async {
        let log = Log::default();
        let top = patient(Strategy::OneForAll).spawn().unwrap();
        let a = start(&top, &log, "a");
        let below = top.supervisor(patient(Strategy::OneForOne)).unwrap();
        let b = start(&below, &log, "b");
        let c = start(&top, &log, "c");
        number(&c).await;
        all_run(&top).await;
        let (place, escaped) = escape(&c).await;
        log.take();
        a.tell(Job::Fail).unwrap();
        while log.len() < 2 {
            yield_now().await;
        }
        b.tell(Job::Note(1)).unwrap();
        below.stop();
        for _ in 0..100 {
            yield_now().await;
        }
        let mut dropped = log.take();
        dropped.sort();
        assert_eq!(dropped, ["-a", "-b"], "c is not dropped yet");
        drop((place.lock().unwrap().take(), escaped));
        below.join().await.unwrap();
        number(&c).await;
        let log = log.take();
        assert_eq!(log[..4], ["-c", "+a", "+b", "b1"]);
    });
}
